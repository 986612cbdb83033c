//! Logs to stderr, because stdout has the output of a command.

use tracing_subscriber::EnvFilter;

/// What `serve` logs without `--log`.
pub const SERVE_LOG: &str = "info";
/// What `dev` logs without `--log`: what its developer needs to know. Its own log has each refused request.
pub const DEV_LOG: &str = "info,store=warn,gateway=warn,server::descriptors=warn";

/// Starts logging with a filter.
///
/// # Errors
/// A sentence for the operator: the filter is invalid, or logging is already running.
pub fn init(filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log {filter}: {error}"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init()
        .map_err(|error| format!("failed to start logging: {error}"))
}
