//! What a node checks of its store before it serves: that it is the expected one, that `serve` and `dev` keep
//! apart, and that the service key is the store's.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use service::Service;
use service::service_key::KeyCheck;

use crate::config::{ExpectedStore, StoreSettings};

impl ExpectedStore {
    /// Whether the store was made before.
    pub fn exists(&self) -> bool {
        self.existing || self.marker.as_ref().is_some_and(|marker| marker.exists())
    }

    /// Refuses an empty folder of a store that was made before, and one in which a restore was interrupted.
    /// Makes nothing.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check_folder(&self, data_file: &Path) -> Result<(), String> {
        if let Some(why) = backup::interrupted_restore(data_file) {
            return Err(why);
        }
        if self.exists() && !data_file.exists() {
            let folder = data_file.parent().unwrap_or(data_file);
            return Err(self.missing(&StoreSettings::Sqlite { path: folder.join(backup::DATA_FILE) }));
        }
        Ok(())
    }

    /// Why a start on an empty place is refused.
    pub(crate) fn missing(&self, store: &StoreSettings) -> String {
        let place = match store {
            StoreSettings::Sqlite { path } => {
                let folder = path.parent().unwrap_or(path).display();
                format!("there is no store in {folder} (--data): is its disk mounted?")
            }
            StoreSettings::Postgres { .. } => {
                "there is no store in the database (--database-url): is it the right one?".to_owned()
            }
        };
        match &self.marker {
            Some(marker) if !self.existing => format!(
                "--existing-marker {0} says that the store was made before, but {place} To begin with an empty store, \
                 delete {0}",
                marker.display()
            ),
            _ => format!(
                "--existing says that the store was made before, but {place} Only for the first start leave out \
                 --existing (STAGEDOOR_EXISTING)"
            ),
        }
    }

    /// Makes the marker after the first start.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn mark(&self) -> Result<(), String> {
        let Some(marker) = &self.marker else { return Ok(()) };
        let mark = || {
            let mut file =
                std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(marker)?;
            file.write_all(
                b"The store was made: an empty one is not served any more (--existing-marker).\n",
            )?;
            file.sync_all()
        };
        match mark() {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(format!("--existing-marker {}: {error}", marker.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses a store that another command created: `dev` refuses that of `serve`, and the reverse.
pub(crate) async fn check_origin(service: &Service, sandbox: bool) -> Result<(), String> {
    let (command, other) = if sandbox { ("dev", "serve") } else { ("serve", "dev") };
    let claim = service.claim_store(command).await.map_err(failed)?;
    if claim.made_by != command {
        return Err(format!(
            "the store was made by `stagedoor {other}`: give `stagedoor {command}` another folder (--data) or \
             database (--database-url)"
        ));
    }
    match claim.is_new {
        _ if sandbox => {}
        true => tracing::info!(store = %claim.store_id, "made a new, empty store"),
        false => tracing::info!(store = %claim.store_id, "opened the store"),
    }
    Ok(())
}

/// Refuses a service key that is not the store's.
pub(crate) async fn check_service_key(service: &Service, expected: &ExpectedStore) -> Result<(), String> {
    let checked = service.check_service_key().await.map_err(failed)?;
    match checked {
        KeyCheck::Good | KeyCheck::Adopted { lost: 0 } => {}
        KeyCheck::Adopted { lost } => tracing::warn!(
            lost,
            "some sealed secrets of the store do not open with this service key: another one has sealed them, which \
             STAGEDOOR_OTHER_SERVICE_KEY may name"
        ),
        KeyCheck::Wrong if expected.key_lost => {
            service.replace_service_key().await.map_err(failed)?;
            tracing::warn!("the store has a new service key: what the former one has sealed is lost");
        }
        KeyCheck::Wrong => return Err(WRONG_KEY.to_owned()),
        KeyCheck::Missing => return Err(MISSING_KEY.to_owned()),
    }
    if expected.key_lost {
        tracing::warn!("leave out --service-key-lost now: with it a wrong service key is not refused");
    }
    Ok(())
}

const WRONG_KEY: &str = "the service key is not the one of this store, so its stream keys, webhook secrets and one-time \
    code secrets cannot be opened. Set STAGEDOOR_SERVICE_KEY to the key that has sealed them; without a service key \
    the operator key was it. While the key is changed, set that key as STAGEDOOR_OTHER_SERVICE_KEY beside the next \
    one. If the key is lost, start once with --service-key-lost";

const MISSING_KEY: &str = "the secrets of this store are sealed with a service key, and none is given: set \
    STAGEDOOR_SERVICE_KEY or STAGEDOOR_SERVICE_KEY_FILE; without a service key the operator key was it";

fn failed(error: service::Error) -> String {
    format!("the store failed: {error}")
}
