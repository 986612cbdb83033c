//! Sends batches to the collector. While the collector is away, a batch is tried some times and then dropped.
//! Nothing waits for it: later records wait in the queue, or are dropped there.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::LogInterval;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use http_client::{Connection, Error, Limits, Tls, system_roots};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use crate::collector::Collector;
use crate::otlp::{self, Resource};
use crate::queue::{ExportFigures, Signal};
use crate::record::TelemetryRecord;
use crate::sources::Sources;

/// Maximum number of records in a batch.
const BATCH_MAX: usize = 512;
/// The pause after a batch that was not full, so that later records share one.
const PAUSE: Duration = Duration::from_secs(1);
/// The pauses before a batch is sent again.
const RETRY_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Deadline of a connection and of an answer, together.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Limits of an answer. Its body is not read.
const LIMITS: Limits = Limits { received_max: 64 * 1024, body_max: 16 * 1024, kept_max: 0 };

/// Why the collector did not take a batch.
#[derive(Debug, thiserror::Error)]
enum ExportFailure {
    #[error("no connection: {0}")]
    Connect(std::io::Error),
    #[error("{0}")]
    Exchange(Error),
    #[error("no answer within {} s", ANSWER_WITHIN.as_secs())]
    Timeout,
    #[error("it answers {0}")]
    Status(StatusCode),
}

impl ExportFailure {
    /// Whether the same batch may be taken later.
    fn may_pass(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Exchange(_) | Self::Timeout => true,
            Self::Status(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        }
    }
}

/// Takes records out of the queue.
pub(crate) struct Exporter {
    collector: Collector,
    /// Only for an address of https.
    tls: Option<Tls>,
    queue: mpsc::Receiver<TelemetryRecord>,
    figures: Arc<ExportFigures>,
    resource: Resource,
    sources: Sources,
    /// The connection, while it can be used again.
    connection: Option<Connection>,
    stopping: watch::Receiver<bool>,
    failures: LogInterval,
}

impl Exporter {
    /// An exporter that runs until `stopping` is `true`.
    ///
    /// # Errors
    /// A sentence for the operator: TLS is not available.
    pub fn new(
        collector: Collector,
        queue: mpsc::Receiver<TelemetryRecord>,
        figures: Arc<ExportFigures>,
        sources: Sources,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, String> {
        let tls = collector.is_secure.then(|| Tls::new(system_roots())).transpose();
        let tls = tls.map_err(|error| format!("the collector cannot be called: {error}"))?;
        let resource = Resource { instance: format!("{:016x}", (sources.random)()) };
        let (connection, failures) = (None, LogInterval::default());
        Ok(Self { collector, tls, queue, figures, resource, sources, connection, stopping, failures })
    }

    /// Sends until it has to stop. Then what is left is sent once.
    pub async fn run(mut self) {
        let mut stopping = self.stopping.clone();
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while !*stopping.borrow() {
            tokio::select! {
                () = stopped(&mut stopping) => break,
                taken = self.queue.recv_many(&mut batch, BATCH_MAX) => if taken == 0 { return },
            }
            let is_full = batch.len() == BATCH_MAX;
            self.export(std::mem::take(&mut batch)).await;
            if !is_full {
                self.pause(PAUSE).await;
            }
        }
        self.queue.close();
        while self.queue.recv_many(&mut batch, BATCH_MAX).await > 0 {
            self.export(std::mem::take(&mut batch)).await;
        }
    }

    /// Waits, at most until it has to stop.
    async fn pause(&mut self, pause: Duration) {
        let _ = tokio::time::timeout(pause, stopped(&mut self.stopping)).await;
    }

    async fn export(&mut self, batch: Vec<TelemetryRecord>) {
        let (mut spans, mut lines) = (Vec::new(), Vec::new());
        for record in batch {
            match record {
                TelemetryRecord::Span(span) => spans.push(*span),
                TelemetryRecord::Log(line) => lines.push(*line),
            }
        }
        if !spans.is_empty() {
            let body = otlp::traces(&self.resource, &spans).to_string();
            self.deliver(Signal::Traces, body.into(), spans.len()).await;
        }
        if !lines.is_empty() {
            let body = otlp::logs(&self.resource, &lines).to_string();
            self.deliver(Signal::Logs, body.into(), lines.len()).await;
        }
    }

    /// Sends a batch until the collector takes it, or until it is given up.
    async fn deliver(&mut self, signal: Signal, body: Bytes, records: usize) {
        let mut pauses = RETRY_PAUSES.into_iter();
        loop {
            let posted = tokio::time::timeout(ANSWER_WITHIN, self.post(signal, body.clone())).await;
            let failure = match posted.unwrap_or(Err(ExportFailure::Timeout)) {
                Ok(()) => return self.figures.count_sent(signal, records),
                Err(failure) => failure,
            };
            self.connection = None;
            match pauses.next().filter(|_| failure.may_pass() && !*self.stopping.borrow()) {
                Some(pause) => self.pause(pause).await,
                None => return self.give_up(signal, records, &failure),
            }
        }
    }

    fn give_up(&mut self, signal: Signal, records: usize, failure: &ExportFailure) {
        self.figures.count_not_taken(signal, records);
        if let Some(times) = self.failures.due((self.sources.monotonic)()) {
            let (collector, signal) = (&self.collector.authority, signal.name());
            tracing::warn!(%collector, signal, records, %failure, times, "the collector did not take telemetry");
        }
    }

    async fn post(&mut self, signal: Signal, body: Bytes) -> Result<(), ExportFailure> {
        let mut connection = self.connected().await?;
        let request = self.request(signal, body);
        let answer = match connection.send(request).await {
            // An idle connection has just ended.
            Err(Error::Unsent(request)) => {
                connection = self.connect().await?;
                connection.send(*request).await
            }
            answer => answer,
        };
        let answer = answer.map_err(ExportFailure::Exchange)?;
        if answer.is_whole {
            self.connection = Some(connection);
        }
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(ExportFailure::Status(answer.status)),
        }
    }

    fn request(&self, signal: Signal, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = http::Method::POST;
        let path = format!("{}/v1/{}", self.collector.base_path, signal.name());
        // The path of the settings was part of an address, so it is one.
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(host) = HeaderValue::from_str(self.collector.authority.as_str()) {
            headers.insert(HOST, host);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("stagedoor/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &self.collector.headers {
            headers.insert(name.clone(), value.clone());
        }
        request
    }

    /// The last connection, or a new one.
    async fn connected(&mut self) -> Result<Connection, ExportFailure> {
        if let Some(mut connection) = self.connection.take()
            && connection.is_ready().await
        {
            return Ok(connection);
        }
        self.connect().await
    }

    async fn connect(&self) -> Result<Connection, ExportFailure> {
        let (host, port) = self.collector.host();
        let stream = TcpStream::connect((host, port)).await.map_err(ExportFailure::Connect)?;
        let tls = self.tls.as_ref().map(|tls| (tls, host));
        Connection::open(stream, tls, LIMITS).await.map_err(ExportFailure::Exchange)
    }
}

/// Returns when the exporter has to stop.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
