//! Checks the invariants of a store, beside the running service.

use domain::Timestamp;
use domain::limits::NODE_DEAD_AFTER_MS;
use store::queries::invariants::invariants;
use store::transfer::Snapshot;
use store::{StoreError, Target};

use crate::BackupError;

/// The sentence about damaged data.
const PAGES: &str = "pages";

/// A sentence about a store, and what contradicts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the sentence.
    pub name: &'static str,
    /// The sentence.
    pub sentence: &'static str,
    /// What to do when it is not true.
    pub mend: String,
    /// What contradicts it. Empty if it is true.
    pub contradictions: Vec<String>,
    /// There are more contradictions than are named.
    pub are_more: bool,
}

/// Checks every sentence in one snapshot, the pages and the foreign keys first. Reads the whole store.
///
/// # Errors
/// The store cannot be opened, or its schema is another one.
pub async fn inspect(target: &Target, now: Timestamp) -> Result<Vec<Finding>, BackupError> {
    let snapshot = Snapshot::open(target).await.map_err(BackupError::of("the store"))?;
    let findings = [
        found(
            PAGES,
            "Every page of the store can be read, and every index fits its table.",
            "Restore the newest backup, or the archive, into another folder, and start the service there: stagedoor \
             restore BACKUP --data FOLDER. Then check the disk",
            snapshot.damage().await,
        )?,
        found(
            "foreign-keys",
            "Each row that names another one names one that is there.",
            "A channel that is missing is made again: PUT /platform/v1/channels/{channelId}. Else stop the service, and \
             delete the row that is named from its table",
            snapshot.orphans().await,
        )?,
    ];
    Ok([findings.into(), inspect_snapshot(&snapshot, now).await?].concat())
}

/// What a check has found. A check that fails on damaged data is a finding.
fn found(
    name: &'static str,
    sentence: &'static str,
    mend: &str,
    contradictions: Result<(Vec<String>, bool), StoreError>,
) -> Result<Finding, BackupError> {
    let ((contradictions, are_more), mend) = match contradictions {
        Err(error @ StoreError::Unavailable(_)) => return Err(BackupError::of("the store")(error)),
        Err(error) => {
            let mend = if name == PAGES { mend } else { "Mend the pages first, and examine the store again" };
            ((vec![format!("it cannot be checked: {error}")], false), mend)
        }
        Ok(found) => (found, mend),
    };
    Ok(Finding { name, sentence, mend: mend.to_owned(), contradictions, are_more })
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
        let contradictions = snapshot.contradictions(&invariant).await;
        findings.push(found(invariant.name, invariant.sentence, &invariant.mend, contradictions)?);
    }
    Ok(findings)
}
