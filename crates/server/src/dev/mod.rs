//! The sandbox: a small world, seeded once and found again, and what its developer needs to know about it.

mod applications;
mod notes;
mod program;
mod seed;
mod world;

use std::path::Path;

use domain::secret::OperatorKey;

use crate::Node;

pub use world::World;

/// The operator's key of the world in `folder`: made the first time, found again after that.
///
/// # Errors
/// A sentence, when the notes cannot be read or written.
pub fn operator_key(folder: &Path) -> Result<OperatorKey, String> {
    let notes = notes::open(folder)?;
    OperatorKey::presented(&notes.operator_key).ok_or(format!("{} is damaged", notes::path(folder).display()))
}

/// Sees that a folder with a store is a sandbox's, before anything is written there.
///
/// # Errors
/// A sentence, when `stagedoor serve` made the store.
pub fn check_folder(folder: &Path, store: &Path) -> Result<(), String> {
    if store.exists() && !notes::are_in(folder) {
        return Err(format!(
            "{} holds a store of `stagedoor serve`: give `stagedoor dev` another folder with --data",
            folder.display()
        ));
    }
    Ok(())
}

/// Seeds the world of a node, unless that was done before, and gives everybody fresh tokens.
///
/// # Errors
/// A sentence, when the store or the notes fail.
pub async fn settle(node: &Node, folder: &Path) -> Result<World, String> {
    let notes = notes::open(folder)?;
    seed::plant(node.service(), &notes)
        .await
        .map_err(|error| format!("the world could not be seeded: {error}"))?;
    World::describe(node, &notes).await.map_err(|error| format!("the world could not be described: {error}"))
}
