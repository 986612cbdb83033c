//! What `stagedoor serve` is told about its store before the start.

use std::path::PathBuf;

use clap::Args;

use super::common::{KEYS, STORE};
use super::store_options::check_marker;
use crate::config::ExpectedStore;

/// What is known of the store.
#[derive(Debug, Args)]
pub struct ExpectedStoreOptions {
    /// The store was made before: an empty folder or database is refused, because an unmounted disk looks
    /// like one. For every start but the first.
    #[arg(long, env = "STAGEDOOR_EXISTING", help_heading = STORE)]
    existing: bool,

    /// The first start makes this file, and each later one is as with --existing. Choose a place that is not
    /// on the disk of the data.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_EXISTING_MARKER", help_heading = STORE)]
    existing_marker: Option<PathBuf>,

    /// The former service key is lost: the store takes the present one, and what the former one has sealed
    /// can never be opened. For one start; otherwise a service key that is not the store's is refused.
    #[arg(long, env = "STAGEDOOR_SERVICE_KEY_LOST", help_heading = KEYS)]
    service_key_lost: bool,
}

impl ExpectedStoreOptions {
    /// What is known of the store.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub(super) fn settings(&self) -> Result<ExpectedStore, String> {
        if let Some(marker) = &self.existing_marker {
            check_marker(marker)?;
        }
        Ok(ExpectedStore {
            existing: self.existing,
            marker: self.existing_marker.clone(),
            key_lost: self.service_key_lost,
        })
    }
}
