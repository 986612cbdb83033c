//! Logs, to stderr, so that stdout belongs to what a command prints.

use tracing_subscriber::EnvFilter;

/// Starts logging what `filter` lets through.
///
/// # Errors
/// A sentence, when the filter cannot be read or logging was started before.
pub fn init(filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log {filter}: {error}"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init()
        .map_err(|error| format!("logging did not start: {error}"))
}
