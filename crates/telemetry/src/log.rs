//! Starts the log, and with a collector the export. The log goes to stderr, because stdout has the output of
//! a command.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
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

/// Whether a collector gets the traces of this process.
static HAS_COLLECTOR: AtomicBool = AtomicBool::new(false);

/// Whether requests are traced. `tracing::enabled!` would ask the filters of all layers, and leave their
/// answer for the next span, which the log would then lack.
pub fn is_tracing() -> bool {
    HAS_COLLECTOR.load(Relaxed)
}

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
        let collected = CollectorLayer::new(sources, sampler, queue);
        let both = both(self.filter, &self.directives, self.format, collected, std::io::stderr);
        both.try_init().map_err(|error| format!("failed to start logging: {error}"))?;
        HAS_COLLECTOR.store(true, Relaxed);
        Ok(RunningTelemetry { figures, exporter: Some(exporter), running: None, stop: Some(stop) })
    }
}

/// The log, and what the collector gets.
fn both<W>(
    filter: EnvFilter,
    directives: &str,
    format: LogFormat,
    collected: CollectorLayer,
    writer: W,
) -> impl Subscriber + Send + Sync + use<W>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let exported = filter_fn(is_traced).or(EnvFilter::new(directives));
    let lines = lines::layer().with_writer(writer).log_internal_errors(false);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(is_terminal()).boxed(),
        LogFormat::Json => lines.json().with_span_list(false).boxed(),
    };
    registry().with(lines.with_filter(filter)).with(collected.with_filter(exported))
}

/// Starts the log alone.
fn start_lines(filter: EnvFilter, format: LogFormat) -> Result<(), String> {
    let lines = lines::Subscriber::builder().with_env_filter(filter).with_writer(std::io::stderr);
    // Where the log cannot be written, nothing can be said of it.
    let lines = lines.log_internal_errors(false);
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Mutex, PoisonError};

    use domain::Timestamp;
    use tracing::subscriber::with_default;

    use super::*;
    use crate::TRACES;
    use crate::collector::SampleRatio;

    /// What was written.
    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A request with parts of a trace, and a line.
    fn request(id: &str) {
        let span = tracing::info_span!("request", %id, client = "127.0.0.1", path = "/a");
        span.in_scope(|| {
            tracing::trace!(target: TRACES, route = "/{x}");
            tracing::trace_span!(target: TRACES, "store read").in_scope(|| {
                tracing::trace!(target: TRACES, status = 200_u16);
                tracing::info!(target: "web", "within {id}");
            });
            tracing::debug!(target: "web", "not in the log");
        });
    }

    #[test]
    fn a_line_has_its_request_whatever_a_collector_gets() {
        for (format, ratio) in
            [(LogFormat::Text, "0"), (LogFormat::Text, "1"), (LogFormat::Json, "0"), (LogFormat::Json, "1")]
        {
            let sources = Sources {
                now: Arc::new(|| Timestamp::from_millis(1_000)),
                monotonic: Arc::new(|| Duration::from_secs(5)),
                random: Arc::new(|| 7),
            };
            let (queue, _waiting) = Queue::new(100, Arc::default());
            let sampler = Sampler::new(SampleRatio::parse(ratio).expect("a ratio"));
            let collected = CollectorLayer::new(sources, sampler, queue);
            let written = Written::default();
            let writer = written.clone();
            let log = both(EnvFilter::new("info"), "info", format, collected, move || writer.clone());
            with_default(log, || ["one", "two"].map(request));
            let text = String::from_utf8(written.0.lock().expect("not poisoned").clone()).expect("UTF-8");
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 2, "{format:?} {ratio}: {text}");
            for (line, id) in lines.iter().zip(["one", "two"]) {
                let words = match format {
                    LogFormat::Text => format!("request{{id={id} client=\"127.0.0.1\" path=\"/a\"}}"),
                    LogFormat::Json => format!("\"id\":\"{id}\""),
                };
                assert!(line.contains(&words), "{format:?} {ratio}: {line}");
            }
        }
    }
}
