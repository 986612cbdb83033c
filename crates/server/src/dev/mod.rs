//! The sandbox: a small world that is seeded once, and its description for developers.

mod applications;
mod notes;
mod program;
mod seed;
mod tls_entry;
mod world;

use std::path::Path;

use domain::secret::{ClientSecret, OperatorKey};

use crate::Node;

pub use world::{Start, World};

/// The operator's key of the world in `folder`. The first start generates it.
///
/// # Errors
/// A sentence for the developer: the notes cannot be read or written.
pub fn operator_key(folder: &Path) -> Result<OperatorKey, String> {
    let notes = notes::open(folder)?;
    OperatorKey::presented(&notes.operator_key).ok_or(format!("{} is damaged", notes::path(folder).display()))
}

/// Refuses a folder with a store of `stagedoor serve`, before anything is written to it.
///
/// # Errors
/// A sentence for the developer: `stagedoor serve` created the store.
pub fn check_folder(folder: &Path, store: &Path) -> Result<(), String> {
    if store.exists() && !notes::are_in(folder) {
        return Err(format!(
            "{} holds a store of `stagedoor serve`: give `stagedoor dev` another folder with --data",
            folder.display()
        ));
    }
    Ok(())
}

/// Seeds the world of a node, if it is new, and gives every user new tokens.
///
/// # Errors
/// A sentence for the developer: the store or the notes fail.
pub async fn seed(node: &Node, folder: &Path) -> Result<World, String> {
    let notes = notes::open(folder)?;
    seed::seed_world(node.service(), &notes)
        .await
        .map_err(|error| format!("failed to seed the world: {error}"))?;
    if let Some(sandbox) = node.sandbox() {
        for (client_id, secret) in &notes.client_secrets {
            let secret = ClientSecret::presented(secret).ok_or("the notes of the world are damaged")?;
            sandbox.remember_client_secret(client_id.clone(), secret);
        }
    }
    World::describe(node, &notes).await.map_err(|error| format!("failed to describe the world: {error}"))
}
