//! The service key of a command that compares it with that of a store.

use clap::Args;
use commands::secret;
use domain::seal::ServiceKey;

/// Fewest characters of a key, because the key is derived from them.
const KEY_CHARS_MIN: usize = 32;

/// A service key that is only compared.
#[derive(Debug, Args)]
pub struct ServiceKeyOptions {
    /// The service key of the store, which is compared with the one that has sealed its secrets. Better set
    /// by STAGEDOOR_SERVICE_KEY or STAGEDOOR_SERVICE_KEY_FILE. Without it nothing is compared.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_SERVICE_KEY", hide_env_values = true)]
    service_key: Option<String>,

    /// A second service key, while the key is changed. Better set by STAGEDOOR_OTHER_SERVICE_KEY or
    /// STAGEDOOR_OTHER_SERVICE_KEY_FILE.
    #[arg(long, value_name = "KEY", env = "STAGEDOOR_OTHER_SERVICE_KEY", hide_env_values = true)]
    other_service_key: Option<String>,
}

impl ServiceKeyOptions {
    /// The key, if one is given.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub(super) fn key(&self) -> Result<Option<ServiceKey>, String> {
        read_keys(self.service_key.as_deref(), self.other_service_key.as_deref())
    }
}

/// The service key of the options, the environment or a file, with the other one beside it.
pub(super) fn read_keys(given: Option<&str>, other: Option<&str>) -> Result<Option<ServiceKey>, String> {
    let given = secret("STAGEDOOR_SERVICE_KEY", given)?;
    let other = secret("STAGEDOOR_OTHER_SERVICE_KEY", other)?;
    match (given, other) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err("--other-service-key needs --service-key".to_owned()),
        (Some(given), None) => check_key(&given).map(Some),
        (Some(given), Some(other)) if given == other => {
            Err("--other-service-key is the same as --service-key: leave it out".to_owned())
        }
        (Some(given), Some(other)) => Ok(Some(check_key(&given)?.beside(&check_key(&other)?))),
    }
}

fn check_key(key: &str) -> Result<ServiceKey, String> {
    if key.chars().count() < KEY_CHARS_MIN {
        return Err(format!("the service key must have {KEY_CHARS_MIN} characters or more"));
    }
    Ok(ServiceKey::of_text(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_refused() {
        assert!(check_key(&"k".repeat(31)).is_err());
        assert!(check_key(&"k".repeat(32)).is_ok());
    }
}
