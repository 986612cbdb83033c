//! Makes records of spans and events.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tracing::span::{self, Id};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::TRACES;
use crate::queue::Queue;
use crate::record::{Attributes, LogRecord, SpanKind, SpanRecord, TelemetryRecord};
use crate::sampler::Sampler;
use crate::sources::Sources;
use crate::trace_context::{RemoteParent, SpanId, TraceId};

/// The name of the span of a request.
const REQUEST: &str = "request";
/// The field of a span that calls another service. Its value is `client`.
const KIND: &str = "kind";
/// What this crate logs is not exported: an export that fails would cause the next one.
const OWN_TARGET: &str = "telemetry";

/// Whether a span or an event belongs to traces.
pub(crate) fn is_traced(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TRACES || (metadata.is_span() && metadata.name() == REQUEST)
}

/// Random ids from one random number, because drawing one costs a system call.
#[derive(Debug)]
struct IdSource {
    seed: u64,
    drawn: AtomicU64,
}

impl IdSource {
    /// The next 64 bits of SplitMix64.
    fn next(&self) -> u64 {
        let n = self.drawn.fetch_add(1, Relaxed).wrapping_add(1);
        let mut bits = self.seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// Where a span stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    trace: TraceId,
    id: SpanId,
    is_sampled: bool,
    /// When the first span of this process began: on the wall clock, in nanoseconds since 1970, and on the
    /// monotonic clock. All times of a trace come from these two.
    origin_ns: u64,
    origin: Duration,
}

impl Place {
    fn time_ns(&self, at: Duration) -> u64 {
        let since = at.saturating_sub(self.origin).as_nanos();
        self.origin_ns.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

/// A span that has not ended.
#[derive(Debug)]
struct OpenSpan {
    place: Place,
    parent: Option<SpanId>,
    began: Duration,
    /// The id of the request, for lines of the log.
    request: Option<String>,
    /// Empty if the span is not sampled.
    attributes: Attributes,
}

/// Puts records of spans and events into the queue.
#[derive(Debug)]
pub(crate) struct CollectorLayer {
    sources: Sources,
    ids: IdSource,
    sampler: Sampler,
    queue: Queue,
}

impl CollectorLayer {
    pub fn new(sources: Sources, sampler: Sampler, queue: Queue) -> Self {
        let ids = IdSource { seed: (sources.random)(), drawn: AtomicU64::new(0) };
        Self { sources, ids, sampler, queue }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from((self.sources.now)().as_millis()).unwrap_or_default().saturating_mul(1_000_000)
    }

    /// A span without a parent in this process.
    fn root(&self, mut attributes: Attributes, began: Duration) -> OpenSpan {
        let remote = attributes.take_text("traceparent").and_then(|header| RemoteParent::parse(&header));
        let trace =
            remote.map_or_else(|| TraceId::of(self.ids.next(), self.ids.next()), |remote| remote.trace);
        let is_sampled = self.sampler.samples(trace, remote.as_ref(), began);
        let id = SpanId::of(self.ids.next());
        let place = Place { trace, id, is_sampled, origin_ns: self.now_ns(), origin: began };
        let request = attributes.text("id").map(str::to_owned);
        let attributes = if is_sampled { attributes } else { Attributes::default() };
        OpenSpan { place, parent: remote.map(|remote| remote.span), began, request, attributes }
    }

    /// A part of a span.
    fn part(&self, of: Place, attributes: Attributes, began: Duration) -> OpenSpan {
        let place = Place { id: SpanId::of(self.ids.next()), ..of };
        OpenSpan { place, parent: Some(of.id), began, request: None, attributes }
    }
}

impl<S> Layer<S> for CollectorLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, given: &span::Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|span| is_traced(span.metadata())) else { return };
        let parent = span.scope().skip(1).find_map(|outer| Some(outer.extensions().get::<OpenSpan>()?.place));
        if parent.is_some_and(|parent| !parent.is_sampled) {
            return;
        }
        let began = (self.sources.monotonic)();
        let mut attributes = Attributes::default();
        given.record(&mut attributes);
        let open = match parent {
            Some(parent) => self.part(parent, attributes, began),
            None if is_root(span.metadata()) => self.root(attributes, began),
            // Background work without a span of its own.
            None => return,
        };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>().filter(|open| open.place.is_sampled) {
            values.record(&mut open.attributes);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == TRACES {
            let span = context.event_span(event);
            let Some(span) = span.and_then(|span| span.scope().find(is_open)) else { return };
            if let Some(open) =
                span.extensions_mut().get_mut::<OpenSpan>().filter(|open| open.place.is_sampled)
            {
                event.record(&mut open.attributes);
            }
            return;
        }
        if metadata.target().starts_with(OWN_TARGET) {
            return;
        }
        let mut attributes = Attributes::default();
        event.record(&mut attributes);
        let (mut span, mut request) = (None, None);
        for outer in context.event_scope(event).into_iter().flatten() {
            if let Some(open) = outer.extensions().get::<OpenSpan>() {
                let place = open.place;
                span = span.or(Some((place.trace, place.id, place.is_sampled)));
                request = request.or_else(|| open.request.clone());
            }
        }
        self.queue.put(TelemetryRecord::Log(Box::new(LogRecord {
            at_ns: self.now_ns(),
            level: *metadata.level(),
            target: metadata.target(),
            message: attributes.take_text("message").unwrap_or_default(),
            attributes,
            span,
            request,
        })));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else { return };
        if open.place.is_sampled {
            let ended = (self.sources.monotonic)();
            self.queue.put(TelemetryRecord::Span(Box::new(ended_span(open, span.metadata().name(), ended))));
        }
    }
}

/// Whether a span begins a trace: a request, or a call to another service.
fn is_root(metadata: &Metadata<'_>) -> bool {
    metadata.name() == REQUEST || metadata.fields().field(KIND).is_some()
}

fn is_open<S: for<'a> LookupSpan<'a>>(span: &SpanRef<'_, S>) -> bool {
    span.extensions().get::<OpenSpan>().is_some()
}

fn ended_span(open: OpenSpan, name: &'static str, ended: Duration) -> SpanRecord {
    let OpenSpan { place, parent, began, mut attributes, .. } = open;
    let status = attributes.integer("status");
    let (name, kind) = if name == REQUEST {
        let method = attributes.text("method").unwrap_or("request");
        let name = match attributes.text("route") {
            Some(route) => format!("{method} {route}"),
            None => method.to_owned(),
        };
        (name, SpanKind::Server)
    } else {
        let is_call = attributes.take_text(KIND).is_some();
        (name.to_owned(), if is_call { SpanKind::Client } else { SpanKind::Internal })
    };
    // A caller's mistake is a failure of the call, not of its answer.
    let failed_from = if kind == SpanKind::Client { 400 } else { 500 };
    let has_failed =
        status.is_some_and(|status| status >= failed_from) || attributes.text("failure").is_some();
    attributes.0.iter_mut().for_each(|(name, _)| *name = conventional(name));
    SpanRecord {
        trace: place.trace,
        id: place.id,
        parent,
        name,
        kind,
        began_ns: place.time_ns(began),
        ended_ns: place.time_ns(ended),
        attributes,
        has_failed,
    }
}

/// The name of an attribute in the semantic conventions of OpenTelemetry.
fn conventional(field: &'static str) -> &'static str {
    match field {
        "id" => "stagedoor.request_id",
        "application" => "stagedoor.application_id",
        "client" => "client.address",
        "delivery" => "stagedoor.message_id",
        "failure" => "error.type",
        "method" => "http.request.method",
        "path" => "url.path",
        "route" => "http.route",
        "status" => "http.response.status_code",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::Timestamp;
    use tokio::sync::mpsc;
    use tracing::subscriber::with_default;
    use tracing_subscriber::filter::{FilterExt, filter_fn};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{EnvFilter, registry};

    use super::*;
    use crate::collector::SampleRatio;
    use crate::queue::{ExportFigures, Signal};

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// Runs this with a collector, and returns what it gets and the counters of the queue.
    fn collected(ratio: &str, room: usize, run: impl FnOnce()) -> (Vec<TelemetryRecord>, Arc<ExportFigures>) {
        let sources = Sources {
            now: Arc::new(|| Timestamp::from_millis(1_000)),
            monotonic: Arc::new(|| Duration::from_secs(5)),
            random: Arc::new(|| 7),
        };
        let figures = Arc::new(ExportFigures::default());
        let (queue, mut waiting): (_, mpsc::Receiver<_>) = Queue::new(room, figures.clone());
        let sampler = Sampler::new(SampleRatio::parse(ratio).expect("a ratio"));
        let filter = filter_fn(is_traced).or(EnvFilter::new("info"));
        let layer = CollectorLayer::new(sources, sampler, queue).with_filter(filter);
        with_default(registry().with(layer), run);
        let mut records = Vec::new();
        while let Ok(record) = waiting.try_recv() {
            records.push(record);
        }
        (records, figures)
    }

    fn request(traceparent: Option<&str>) {
        let span = tracing::info_span!("request", id = "r", method = "GET", path = "/a", traceparent);
        span.in_scope(|| {
            tracing::trace_span!(target: TRACES, "store read")
                .in_scope(|| tracing::info!(target: "web", "within"));
            tracing::debug!("not in the log");
            tracing::info!(target: "telemetry::exporter", "not exported");
            tracing::trace!(target: TRACES, route = "/{x}", application = Some("bot"));
            tracing::trace!(target: TRACES, status = 503_u16);
        });
    }

    #[test]
    fn a_request_its_parts_and_its_lines_are_records_of_one_trace() {
        let (records, _) = collected("1", 100, || request(None));
        let [TelemetryRecord::Log(line), TelemetryRecord::Span(part), TelemetryRecord::Span(root)] =
            &records[..]
        else {
            panic!("{records:?}")
        };
        assert_eq!((line.message.as_str(), line.request.as_deref()), ("within", Some("r")));
        assert_eq!(line.span, Some((root.trace, part.id, true)));
        assert_eq!(
            (part.name.as_str(), part.kind, part.parent),
            ("store read", SpanKind::Internal, Some(root.id))
        );
        assert_eq!((root.name.as_str(), root.kind, root.parent), ("GET /{x}", SpanKind::Server, None));
        assert!(root.has_failed && root.began_ns == 1_000_000_000 && root.ended_ns == root.began_ns);
        assert_eq!(root.attributes.text("stagedoor.application_id"), Some("bot"));
        assert_eq!(root.attributes.integer("http.response.status_code"), Some(503));
    }

    #[test]
    fn a_request_that_is_not_sampled_has_lines_only() {
        let (records, _) = collected("0", 100, || request(None));
        let [TelemetryRecord::Log(line)] = &records[..] else { panic!("{records:?}") };
        assert!(
            line.request.as_deref() == Some("r") && line.span.is_some_and(|(.., is_sampled)| !is_sampled)
        );
        let (records, _) = collected("0", 100, || request(Some(PARENT)));
        let Some(TelemetryRecord::Span(root)) = records.last() else { panic!("{records:?}") };
        let remote = RemoteParent::parse(PARENT).expect("good");
        assert_eq!((root.trace, root.parent), (remote.trace, Some(remote.span)));
        assert_eq!(root.attributes.text("traceparent"), None);
    }

    #[test]
    fn background_work_is_traced_only_as_a_call() {
        let (records, _) = collected("1", 100, || {
            tracing::trace_span!(target: TRACES, "store write").in_scope(|| {});
            let call = tracing::trace_span!(target: TRACES, "webhook attempt", kind = "client");
            call.in_scope(|| tracing::trace!(target: TRACES, failure = "dns"));
        });
        let [TelemetryRecord::Span(call)] = &records[..] else { panic!("{records:?}") };
        assert!(call.kind == SpanKind::Client && call.has_failed && call.attributes.text("kind").is_none());
    }

    #[test]
    fn what_finds_no_room_is_counted_and_dropped() {
        let (records, figures) = collected("1", 1, || request(None));
        assert_eq!(records.len(), 1);
        let dropped = Signal::ALL.map(|signal| figures.found_no_room(signal));
        assert_eq!(dropped, [2, 0]);
    }
}
