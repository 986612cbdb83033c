//! Connection tests: the steps of one request to an address, each with its result and its time. A test uses
//! the connector of the sender, so it connects only to judged addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use domain::outbound::SendFailure;
use domain::probe::{ProbeFault, ProbeRequest, ProbeStep, ProbeTarget, Probed, ProbedStep, TlsFault};
use domain::{ChannelId, ClientId};
use domain::{Timestamp, outbound::WebhookUrl};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request};
use http_body_util::Full;
use http_client::{Error, Tls, TlsProblem, TlsUnavailable};
use service::Clock;
use service::connection_tests::{Prober, ProberBusy};
use tokio::sync::Semaphore;

use super::client::{ATTEMPT_MAX, ClientConfig, Outgoing};
use super::connect::{Connector, Lookups, failure_of};

/// Maximum number of tests at once in a node.
const TESTS_AT_ONCE: usize = 4;
/// The pause between two tests of an application, and between two tests of a person, in a node.
pub const TEST_PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of applications and people that are remembered for [`TEST_PAUSE`].
const REMEMBERED_MAX: usize = 20_000;

/// Makes the connections of tests. Cheap to clone.
#[derive(Clone)]
pub struct ConnectionProber(Arc<ProberState>);

struct ProberState {
    connector: Connector,
    permits: Arc<Semaphore>,
    /// Those whose test runs (`None`), or ended at this time.
    tested: Mutex<HashMap<Tester, Option<Duration>>>,
}

/// Who has one test at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Tester {
    Application(ClientId),
    Person(ChannelId),
}

impl std::fmt::Debug for ConnectionProber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConnectionProber")
    }
}

impl ConnectionProber {
    /// A prober with the configuration of a client.
    ///
    /// # Errors
    /// When the TLS library refuses its own defaults.
    pub fn new(config: ClientConfig) -> Result<Self, TlsUnavailable> {
        let ClientConfig { reach, clock, resolver, roots, idle_max: _ } = config;
        let tls = Tls::new(roots)?;
        let connector = Connector { reach, clock, tls, lookups: Lookups::new(resolver) };
        let permits = Arc::new(Semaphore::new(TESTS_AT_ONCE));
        Ok(Self(Arc::new(ProberState { connector, permits, tested: Mutex::default() })))
    }

    fn tested(&self) -> MutexGuard<'_, HashMap<Tester, Option<Duration>>> {
        self.0.tested.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a test begins, if one may.
    fn begin(&self, testers: [Tester; 2]) -> Result<RunningTest, ProberBusy> {
        let now = self.0.connector.clock.monotonic();
        let mut tested = self.tested();
        tested.retain(|_, ended| ended.is_none_or(|ended| ended + TEST_PAUSE > now));
        if testers.iter().any(|tester| tested.contains_key(tester)) || tested.len() >= REMEMBERED_MAX {
            return Err(ProberBusy);
        }
        let permit = self.0.permits.clone().try_acquire_owned().map_err(|_| ProberBusy)?;
        tested.extend(testers.clone().map(|tester| (tester, None)));
        Ok(RunningTest { prober: self.clone(), testers, _permit: permit })
    }

    async fn probe_all(&self, target: ProbeTarget) -> Vec<Probed> {
        let mut results = Vec::with_capacity(target.requests.len());
        for request in target.requests {
            let probed = self.probe(&target.url, request).await;
            let has_answer = probed.status.is_some();
            results.push(probed);
            if !has_answer {
                break;
            }
        }
        results
    }

    /// The steps of one request, within the deadline of an attempt.
    async fn probe(&self, url: &WebhookUrl, request: ProbeRequest) -> Probed {
        let clock = &self.0.connector.clock;
        let mut trace = Trace { clock, steps: Vec::new(), running: None };
        let in_time = clock.sleep(ATTEMPT_MAX);
        let ended = tokio::select! {
            ended = steps(&self.0.connector, &mut trace, url, request) => ended,
            () = in_time => Err(ProbeFault::Send(SendFailure::Timeout)),
        };
        trace.end(ended.as_ref().err().cloned());
        Probed { steps: trace.steps, status: ended.ok() }
    }
}

impl Prober for ConnectionProber {
    fn test(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        targets: Vec<ProbeTarget>,
    ) -> BoxFuture<'static, Result<Vec<Vec<Probed>>, ProberBusy>> {
        let running = self.begin([Tester::Person(person.clone()), Tester::Application(client_id.clone())]);
        let prober = self.clone();
        async move {
            let _running = running?;
            Ok(join_all(targets.into_iter().map(|target| prober.probe_all(target))).await)
        }
        .boxed()
    }
}

/// A test that runs. Its end is noted when this is dropped.
struct RunningTest {
    prober: ConnectionProber,
    testers: [Tester; 2],
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Drop for RunningTest {
    fn drop(&mut self) {
        let now = self.prober.0.connector.clock.monotonic();
        self.prober.tested().extend(self.testers.clone().map(|tester| (tester, Some(now))));
    }
}

/// The steps of a request so far.
struct Trace<'a> {
    clock: &'a Clock,
    steps: Vec<ProbedStep>,
    running: Option<(ProbeStep, Duration)>,
}

impl Trace<'_> {
    /// The last step was done, and this one begins.
    fn begin(&mut self, step: ProbeStep) {
        self.end(None);
        self.running = Some((step, self.clock.monotonic()));
    }

    fn end(&mut self, fault: Option<ProbeFault>) {
        let Some((step, began)) = self.running.take() else { return };
        let took = self.clock.shown(self.clock.monotonic().saturating_sub(began));
        let took_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        self.steps.push(ProbedStep { step, took_ms, fault });
    }
}

/// Makes the steps, and returns the status.
async fn steps(
    connector: &Connector,
    trace: &mut Trace<'_>,
    url: &WebhookUrl,
    request: ProbeRequest,
) -> Result<u16, ProbeFault> {
    trace.begin(ProbeStep::Name);
    // One answer for a name that is not found, and for one of another network: otherwise a test would tell
    // which names exist there.
    let addresses = connector.look_up(url).await;
    let judged = addresses.and_then(|addresses| connector.judged(url, addresses));
    let judged = judged.map_err(|_| ProbeFault::Send(SendFailure::Address))?;
    trace.begin(ProbeStep::Address);
    trace.begin(ProbeStep::Tcp);
    let stream = connector.open(url, &judged).await.map_err(ProbeFault::Send)?;
    trace.begin(if url.is_secure() { ProbeStep::Tls } else { ProbeStep::Http });
    let mut connection = connector.speak(url, stream).await.map_err(|error| fault(&error))?;
    if url.is_secure() {
        trace.begin(ProbeStep::Http);
    }
    let request = prepared(url, request).ok_or(ProbeFault::Send(SendFailure::Address))?;
    let answer = connection.send(request).await.map_err(|error| fault(&error))?;
    Ok(answer.status.as_u16())
}

fn prepared(url: &WebhookUrl, request: ProbeRequest) -> Option<Request<Full<Bytes>>> {
    let (method, headers, body) = match request {
        ProbeRequest::Get => {
            let agent = HeaderValue::from_static(concat!("stagedoor/", env!("CARGO_PKG_VERSION")));
            ("GET", HeaderMap::from_iter([(USER_AGENT, agent)]), Bytes::new())
        }
        ProbeRequest::Post { headers, body } => {
            let outgoing = Outgoing::new(url.clone(), &headers, body)?;
            ("POST", outgoing.headers, outgoing.body)
        }
    };
    let request = Request::builder().method(method).uri(url.path_and_query());
    let mut request = request.body(Full::new(body)).ok()?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, HeaderValue::from_str(&url.authority()).ok()?);
    Some(request)
}

fn fault(error: &Error) -> ProbeFault {
    match error.tls_problem() {
        Some(problem) => ProbeFault::Tls(tls_fault(problem)),
        None => ProbeFault::Send(failure_of(error)),
    }
}

fn tls_fault(problem: TlsProblem) -> TlsFault {
    let at = |seconds: Option<u64>| {
        let ms = seconds.and_then(|seconds| i64::try_from(seconds).ok())?.checked_mul(1_000)?;
        Some(Timestamp::from_millis(ms))
    };
    match problem {
        TlsProblem::Expired(seconds) => TlsFault::Expired(at(seconds)),
        TlsProblem::NotYetValid(seconds) => TlsFault::NotYetValid(at(seconds)),
        TlsProblem::OtherName(names) => TlsFault::OtherName(names),
        TlsProblem::Untrusted => TlsFault::Untrusted,
        TlsProblem::NotTls => TlsFault::NotTls,
        TlsProblem::Other => TlsFault::Other,
    }
}
