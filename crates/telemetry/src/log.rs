//! Starts the log, and with a collector the export. The log goes to stderr, because stdout has the output of
//! a command.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt as lines, registry};

use crate::collector::Collector;
use crate::exporter::Exporter;
use crate::layer::{CollectorLayer, is_traced};
use crate::queue::{ExportFigures, QUEUE_MAX, Queue};
use crate::sampler::Sampler;
use crate::sources::Sources;

/// How long the end of a process waits for the last export.
const LAST_EXPORT_WITHIN: Duration = Duration::from_secs(1);

/// The form of the lines of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object in each line.
    Json,
}

/// What a process logs and exports.
#[derive(Debug)]
pub struct Telemetry {
    filter: EnvFilter,
    /// The filter again, for the collector.
    directives: String,
    format: LogFormat,
    collector: Option<Collector>,
}

impl Telemetry {
    /// Logs what a filter admits. A collector gets the same lines, and traces.
    ///
    /// # Errors
    /// A sentence for the operator: the filter is invalid.
    pub fn new(filter: &str, format: LogFormat, collector: Option<Collector>) -> Result<Self, String> {
        let directives = filter.to_owned();
        let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log {filter}: {error}"))?;
        Ok(Self { filter, directives, format, collector })
    }

    /// The form of its lines.
    pub fn format(&self) -> LogFormat {
        self.format
    }

    /// Starts logging.
    ///
    /// # Errors
    /// A sentence for the operator: logging is already running, or TLS is not available.
    pub fn start(self, sources: Sources) -> Result<RunningTelemetry, String> {
        if self.format == LogFormat::Json {
            std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a thread panicked")));
        }
        let figures = Arc::new(ExportFigures::default());
        let Some(collector) = self.collector else {
            start_lines(self.filter, self.format)?;
            return Ok(RunningTelemetry { figures, exporter: None, running: None, stop: None });
        };
        let (queue, waiting) = Queue::new(QUEUE_MAX, figures.clone());
        let sampler = Sampler::new(collector.ratio);
        let (stop, stopping) = watch::channel(false);
        let exporter = Exporter::new(collector, waiting, figures.clone(), sources.clone(), stopping)?;
        let exported = filter_fn(is_traced).or(EnvFilter::new(self.directives));
        let collected = CollectorLayer::new(sources, sampler, queue).with_filter(exported);
        let lines = match self.format {
            LogFormat::Text => lines::layer().with_writer(std::io::stderr).with_ansi(is_terminal()).boxed(),
            LogFormat::Json => {
                lines::layer().with_writer(std::io::stderr).json().with_span_list(false).boxed()
            }
        };
        let started = registry().with(lines.with_filter(self.filter)).with(collected).try_init();
        started.map_err(|error| format!("failed to start logging: {error}"))?;
        Ok(RunningTelemetry { figures, exporter: Some(exporter), running: None, stop: Some(stop) })
    }
}

/// Starts the log alone.
fn start_lines(filter: EnvFilter, format: LogFormat) -> Result<(), String> {
    let lines = lines::Subscriber::builder().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => lines.with_ansi(is_terminal()).try_init(),
        LogFormat::Json => lines.json().with_span_list(false).try_init(),
    };
    started.map_err(|error| format!("failed to start logging: {error}"))
}

fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// The log of this process, and its export.
pub struct RunningTelemetry {
    figures: Arc<ExportFigures>,
    /// Until it runs.
    exporter: Option<Exporter>,
    running: Option<JoinHandle<()>>,
    stop: Option<watch::Sender<bool>>,
}

impl RunningTelemetry {
    /// The counters of the export; `None` without a collector.
    pub fn figures(&self) -> Option<Arc<ExportFigures>> {
        self.stop.as_ref().map(|_| self.figures.clone())
    }

    /// Begins to export, on the runtime that calls this. What was recorded before waits in the queue.
    pub fn export(&mut self) {
        self.running = self.exporter.take().map(|exporter| tokio::spawn(exporter.run()));
    }

    /// Exports what is left, for a second at the most.
    pub async fn stop(self) {
        let Some(stop) = self.stop else { return };
        let _ = stop.send(true);
        if let Some(mut running) = self.running
            && tokio::time::timeout(LAST_EXPORT_WITHIN, &mut running).await.is_err()
        {
            running.abort();
        }
    }
}
