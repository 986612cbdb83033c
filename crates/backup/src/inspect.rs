//! Checks the invariants of a store, beside the running service.

use domain::Timestamp;
use domain::limits::NODE_DEAD_AFTER_MS;
use store::Target;
use store::queries::invariants::invariants;
use store::transfer::Snapshot;

use crate::BackupError;

/// A sentence about a store, and what contradicts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the sentence.
    pub name: &'static str,
    /// The sentence.
    pub sentence: &'static str,
    /// What to do when it is not true.
    pub mend: &'static str,
    /// What contradicts it. Empty if it is true.
    pub contradictions: Vec<String>,
    /// There are more contradictions than are named.
    pub are_more: bool,
}

/// Checks every sentence in one snapshot.
///
/// # Errors
/// The store cannot be opened, or its schema is another one.
pub async fn inspect(target: &Target, now: Timestamp) -> Result<Vec<Finding>, BackupError> {
    let snapshot = Snapshot::open(target).await.map_err(BackupError::of("the store"))?;
    inspect_snapshot(&snapshot, now).await
}

/// The nodes that are alive, by their names.
///
/// # Errors
/// The store cannot be opened, or its schema is another one.
pub async fn living_nodes(target: &Target, now: Timestamp) -> Result<Vec<String>, BackupError> {
    let of_store = || BackupError::of("the store");
    let snapshot = Snapshot::open(target).await.map_err(of_store())?;
    snapshot.nodes_seen_after(now.plus_ms(-NODE_DEAD_AFTER_MS).as_millis()).await.map_err(of_store())
}

pub(crate) async fn inspect_snapshot(
    snapshot: &Snapshot,
    now: Timestamp,
) -> Result<Vec<Finding>, BackupError> {
    let mut findings = Vec::new();
    for invariant in invariants(now) {
        let found = snapshot.contradictions(&invariant).await;
        let (contradictions, are_more) = found.map_err(BackupError::of("the store"))?;
        let (name, sentence, mend) = (invariant.name, invariant.sentence, invariant.mend);
        findings.push(Finding { name, sentence, mend, contradictions, are_more });
    }
    Ok(findings)
}
