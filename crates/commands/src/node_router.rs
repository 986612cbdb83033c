//! What a node of a service says about its router: the sessions in its memory beside those in the store.

use std::time::Duration;

use http::Method;
use serde_json::Value;

use crate::client::Failure;
use crate::failure::CommandFailure;
use crate::target::Target;

/// A node with many sessions reads for some seconds, and looks at differences again.
const PATIENCE: Duration = Duration::from_secs(105);

/// Asks a node for the comparison of its router with the store.
///
/// # Errors
/// The node was not reached, refused the key, or is of a release without the comparison.
pub async fn compare_router(node: &str, operator_key: &str) -> Result<Value, CommandFailure> {
    let target = Target::new(node, operator_key).map_err(|failure| match failure {
        CommandFailure::Usage(text) => CommandFailure::Usage(text.replace("--server", "--node")),
        other => other,
    })?;
    let asked = target.attempt(Method::GET, "/router", None, PATIENCE).await;
    asked.map_err(|failure| match &failure {
        Failure::Unreachable(why) => CommandFailure::Unreachable(why.clone()),
        Failure::Refused { status: 401, .. } => {
            CommandFailure::Failed(format!("{failure}\nthe operator key is wrong for {node}"))
        }
        Failure::Refused { status: 404, .. } => CommandFailure::Failed(format!(
            "{failure}\n{node} does not compare its router: its platform API may be off, or listen elsewhere \
             (--platform-listen)"
        )),
        Failure::Refused { .. } => failure.into(),
    })
}
