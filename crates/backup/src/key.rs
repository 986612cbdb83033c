//! Whether a service key is that of a store or a backup.

use domain::StoreId;
use domain::seal::ServiceKey;
use store::Target;
use store::transfer::Snapshot;

use crate::{BackupError, Finding};

/// Refuses a service key that does not open what the store's key has sealed. A store without a key has no
/// test, nor has a backup of an earlier release.
///
/// # Errors
/// [`BackupError::Refused`] with what to set.
pub fn check_service_key(
    store_id: Option<&StoreId>,
    key_test: Option<&str>,
    key: &ServiceKey,
) -> Result<(), BackupError> {
    let Some((store_id, test)) = store_id.zip(key_test) else { return Ok(()) };
    if key.opens_test(store_id, test).is_some() {
        return Ok(());
    }
    Err(BackupError::Refused(format!(
        "the service key is not the one of the store {store_id}: no service starts on the restored store with it. Set \
         STAGEDOOR_SERVICE_KEY to the key of the backup, or STAGEDOOR_OTHER_SERVICE_KEY if the key was changed later; \
         unset both to restore without this check"
    )))
}

/// Says whether a service key is the store's.
///
/// # Errors
/// The store cannot be opened, or its schema is another one.
pub async fn inspect_service_key(target: &Target, key: &ServiceKey) -> Result<Finding, BackupError> {
    let snapshot = Snapshot::open(target).await.map_err(BackupError::of("the store"))?;
    let identity = snapshot.identity().await.map_err(BackupError::of("the store"))?;
    let is_good = check_service_key(Some(&identity.store_id), identity.key_test.as_deref(), key).is_ok();
    let contradictions = if is_good { Vec::new() } else { vec![identity.store_id.as_str().to_owned()] };
    Ok(Finding {
        name: "service-key",
        sentence: "The secrets of the store are sealed with the given service key, or with the other one.",
        mend: "Set STAGEDOOR_SERVICE_KEY to the key that has sealed them, or beside the next key as \
               STAGEDOOR_OTHER_SERVICE_KEY; if it is lost, start once with stagedoor serve --service-key-lost"
            .to_owned(),
        contradictions,
        are_more: false,
    })
}
