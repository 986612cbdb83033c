//! Logs to stderr, because stdout has the output of a command.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// What `serve` logs without `--log`.
pub const SERVE_LOG: &str = "info";
/// What `dev` logs without `--log`: what its developer needs to know. Its own log has each refused request.
pub const DEV_LOG: &str = "info,store=warn,gateway=warn,server::descriptors=warn";

/// The form of the lines of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object in each line.
    Json,
}

/// What a process logs, and how.
#[derive(Debug)]
pub struct Telemetry {
    filter: EnvFilter,
    format: LogFormat,
}

impl Telemetry {
    /// Logs what a filter admits.
    ///
    /// # Errors
    /// A sentence for the operator: the filter is invalid.
    pub fn new(filter: &str, format: LogFormat) -> Result<Self, String> {
        let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log {filter}: {error}"))?;
        Ok(Self { filter, format })
    }

    /// The form of its lines.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// Starts logging.
    ///
    /// # Errors
    /// A sentence for the operator: logging is already running.
    pub fn start(self) -> Result<(), String> {
        let lines = tracing_subscriber::fmt().with_env_filter(self.filter).with_writer(std::io::stderr);
        let started = match self.format {
            LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
            LogFormat::Json => {
                std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a thread panicked")));
                lines.json().with_span_list(false).try_init()
            }
        };
        started.map_err(|error| format!("failed to start logging: {error}"))
    }
}
