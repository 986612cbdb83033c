//! Checks the invariants of a store, beside the running service.

use domain::Timestamp;
use domain::limits::NODE_DEAD_AFTER_MS;
use store::queries::invariants::invariants;
use store::transfer::Snapshot;
use store::{StoreError, Target};

use crate::BackupError;

/// The sentence about damaged data.
const PAGES: &str = "pages";

/// The mend of every other sentence while data cannot be read. A count that is made again from the rest would
/// make the loss permanent.
const PAGES_FIRST: &str = "Mend first what cannot be read, as the sentence about pages or the error here says, and examine \
                           the store again";

/// The mend of a row that is named and missing, before the words about a restore.
const REFERENCES: &str = "Make a missing row of channels, applications, organizations or categories again under its id, and \
                          then put it right: PUT /platform/v1/channels/{channelId} or PUT \
                          /platform/v1/applications/{clientId} or PUT /platform/v1/organizations/{organizationId} or PUT \
                          /platform/v1/categories/{categoryId} but for a missing row of another table";

/// What depends on the engine of a store.
struct Words {
    pages: &'static str,
    mend_pages: &'static str,
    restore: &'static str,
}

const SQLITE: Words = Words {
    pages: "Every page and every row of the store can be read, and every index fits its table.",
    mend_pages: "Check the disk, and",
    restore: "restore the newest backup, or the archive, into another folder, and start the service there: stagedoor restore \
              BACKUP --data FOLDER",
};

const POSTGRESQL: Words = Words {
    pages: "Every row of the store can be read. Indexes are not compared: pg_amcheck does that.",
    mend_pages: "Check the disk of the database, and let pg_amcheck say what is damaged. An index is made again with REINDEX \
                 INDEX and its name; for a table",
    restore: "restore the newest backup into an empty database, and start the service on it: stagedoor restore BACKUP \
              --database-url URL",
};

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
    let words = if snapshot.engine() == "sqlite" { SQLITE } else { POSTGRESQL };
    let with_restore = |mend: &str| format!("{mend} {}", words.restore);
    let references = "Each row that names another one names one that is there.";
    let mut checks = vec![
        checked(PAGES, words.pages, &with_restore(words.mend_pages), snapshot.damage().await)?,
        checked("foreign-keys", references, &with_restore(REFERENCES), snapshot.orphans().await)?,
    ];
    checks.extend(check_invariants(&snapshot, now).await?);
    let is_damaged = checks.iter().any(|check| check.is_unread || check.finding.is_about_pages());
    let mends = checks.into_iter().map(|Check { mut finding, .. }| {
        if is_damaged && finding.name != PAGES {
            finding.mend = PAGES_FIRST.to_owned();
        }
        finding
    });
    Ok(mends.collect())
}

/// A finding, and whether its data could not be read.
struct Check {
    finding: Finding,
    is_unread: bool,
}

impl Finding {
    fn is_about_pages(&self) -> bool {
        self.name == PAGES && !self.contradictions.is_empty()
    }
}

/// What a check has found. A check that fails on damaged data is a finding.
fn checked(
    name: &'static str,
    sentence: &'static str,
    mend: &str,
    contradictions: Result<(Vec<String>, bool), StoreError>,
) -> Result<Check, BackupError> {
    let is_unread = contradictions.is_err();
    let (contradictions, are_more) = match contradictions {
        Err(error @ StoreError::Unavailable(_)) => return Err(BackupError::of("the store")(error)),
        Err(error) => (vec![format!("it cannot be checked: {error}")], false),
        Ok(found) => found,
    };
    let finding = Finding { name, sentence, mend: mend.to_owned(), contradictions, are_more };
    Ok(Check { finding, is_unread })
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
    let checks = check_invariants(snapshot, now).await?;
    Ok(checks.into_iter().map(|check| check.finding).collect())
}

async fn check_invariants(snapshot: &Snapshot, now: Timestamp) -> Result<Vec<Check>, BackupError> {
    let mut checks = Vec::new();
    for invariant in invariants(now) {
        let contradictions = snapshot.contradictions(&invariant).await;
        checks.push(checked(invariant.name, invariant.sentence, &invariant.mend, contradictions)?);
    }
    Ok(checks)
}
