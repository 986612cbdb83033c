//! Reads the log of a sandbox.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::failure::CommandFailure;
use crate::target::Target;

/// A condition that no record fulfils.
const NOTHING: &str = "kind=due&nothing=nothing";

/// The mark of the latest record. `after` is a mark that is known already.
///
/// # Errors
/// [`CommandFailure`].
pub async fn latest_mark(target: &Target, after: u64) -> Result<u64, CommandFailure> {
    let path = format!("/sandbox/v1/log?after={after}&{NOTHING}");
    let found = target.call(Method::GET, &path, None, Duration::ZERO).await?;
    Ok(found["mark"].as_u64().unwrap_or(after))
}

/// The records after a mark, oldest first.
///
/// # Errors
/// [`CommandFailure`].
pub async fn records_after(target: &Target, mut after: u64) -> Result<Vec<Value>, CommandFailure> {
    let mut records = Vec::new();
    loop {
        let path = format!("/sandbox/v1/log?after={after}");
        let mut found = target.call(Method::GET, &path, None, Duration::ZERO).await?;
        let Value::Array(page) = found["data"].take() else { return Ok(records) };
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page);
        after = found["mark"].as_u64().unwrap_or(after);
    }
}
