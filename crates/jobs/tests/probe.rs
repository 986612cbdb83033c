//! Connection tests: each step with its result, only to judged addresses, one test at a time.

use std::net::IpAddr;
use std::sync::Arc;

use domain::outbound::{Reach, SendFailure, WebhookUrl};
use domain::probe::{ProbeFault, ProbeRequest, ProbeStep, ProbeTarget, Probed, TlsFault};
use domain::{ChannelId, ClientId, Timestamp};
use http_client::RootCertStore;
use jobs::webhooks::{ATTEMPT_MAX, ClientConfig, ConnectionProber, Resolver, TEST_PAUSE};
use service::connection_tests::{Prober, ProberBusy};
use service::{Clock, ManualClock};
use testkit::{Authority, Receiver, Reply, patiently};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LOOPBACK: Reach = Reach { loopback: true, private: false };

struct Desk {
    prober: ConnectionProber,
    hand: ManualClock,
    reach: Reach,
}

impl Desk {
    fn new(reach: Reach, resolver: Resolver, roots: RootCertStore) -> Self {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(0));
        let config = ClientConfig { reach, clock, resolver, roots, idle_max: 0 };
        Self { prober: ConnectionProber::new(config).expect("a prober"), hand, reach }
    }

    /// Every name leads to this address.
    fn leading_to(address: &str, roots: RootCertStore) -> Self {
        let address: IpAddr = address.parse().expect("an address");
        Self::new(LOOPBACK, Arc::new(move |_| Box::pin(async move { Ok(vec![address]) })), roots)
    }

    fn target(&self, url: &str, requests: Vec<ProbeRequest>) -> ProbeTarget {
        ProbeTarget { url: WebhookUrl::parse(url, self.reach).expect("may be registered"), requests }
    }

    async fn get(&self, url: &str) -> Probed {
        self.hand.advance(TEST_PAUSE);
        let targets = vec![self.target(url, vec![ProbeRequest::Get])];
        let test = patiently("a test", self.prober.test(&person("app"), &client("app"), targets));
        test.await.expect("not busy").remove(0).remove(0)
    }
}

fn client(id: &str) -> ClientId {
    ClientId::stored(id.to_owned())
}

/// The person who tests an application.
fn person(id: &str) -> ChannelId {
    ChannelId::stored(format!("developer of {id}"))
}

fn names(probed: &Probed) -> Vec<ProbeStep> {
    probed.steps.iter().map(|step| step.step).collect()
}

fn last_fault(probed: &Probed) -> Option<ProbeFault> {
    assert!(probed.steps.iter().rev().skip(1).all(|step| step.fault.is_none()), "{probed:?}");
    probed.steps.last().and_then(|step| step.fault.clone())
}

/// Answers one connection with HTTP, whatever it sends. Returns the port.
async fn answer_in_plain_http() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("an answer");
        let mut rest = Vec::new();
        // The client's end may be a reset.
        let _ = stream.read_to_end(&mut rest).await;
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_is_named_up_to_the_one_that_fails() {
    use ProbeStep::{Address, Http, Name, Tcp, Tls};
    let (authority, other) = (Authority::new(), Authority::new());
    let desk = Desk::leading_to("127.0.0.1", authority.roots());
    let good = Receiver::start_tls(&authority, "hook.example", "hook.example").await;
    let probed = desk.get(&good.url("/hook?key=1")).await;
    assert_eq!((names(&probed), probed.status), (vec![Name, Address, Tcp, Tls, Http], Some(200)));
    assert_eq!(good.next().await.line, "GET /hook?key=1 HTTP/1.1");

    let misnamed = Receiver::start_tls(&authority, "other.example", "hook.example").await;
    let probed = desk.get(&misnamed.url("/")).await;
    assert_eq!(names(&probed), [Name, Address, Tcp, Tls]);
    let expected = TlsFault::OtherName(vec!["other.example".to_owned()]);
    assert_eq!(last_fault(&probed), Some(ProbeFault::Tls(expected)));
    let untrusted = Receiver::start_tls(&other, "hook.example", "hook.example").await;
    let fault = last_fault(&desk.get(&untrusted.url("/")).await);
    assert_eq!(fault, Some(ProbeFault::Tls(TlsFault::Untrusted)));

    let port = answer_in_plain_http().await;
    let fault = last_fault(&desk.get(&format!("https://hook.example:{port}/")).await);
    assert_eq!(fault, Some(ProbeFault::Tls(TlsFault::NotTls)));

    let plain = Receiver::start().await;
    plain.usually(Reply::Close);
    let probed = desk.get(&plain.url("/")).await;
    assert_eq!(names(&probed), [Name, Address, Tcp, Http]);
    assert_eq!(last_fault(&probed), Some(ProbeFault::Send(SendFailure::Closed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_may_not_be_called_is_not_connected_to() {
    let receiver = Receiver::start().await;
    for address in ["10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"] {
        let desk = Desk::leading_to(address, RootCertStore::empty());
        let probed = desk.get(&format!("https://hook.example:{}/", receiver.address().port())).await;
        assert_eq!(names(&probed), [ProbeStep::Name], "{address}");
        assert_eq!(last_fault(&probed), Some(ProbeFault::Send(SendFailure::Address)));
    }
    // The answer is the same for a name that does not exist.
    let lost: Resolver = Arc::new(|_| Box::pin(async { Ok(Vec::new()) }));
    let probed = Desk::new(LOOPBACK, lost, RootCertStore::empty()).get("https://hook.example/").await;
    assert_eq!(last_fault(&probed), Some(ProbeFault::Send(SendFailure::Address)));
    assert_eq!((names(&probed), receiver.count()), (vec![ProbeStep::Name], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_one_test_at_a_time_and_a_pause_after_it() {
    let (desk, receiver) = (Desk::leading_to("127.0.0.1", RootCertStore::empty()), Receiver::start().await);
    receiver.usually(Reply::Hang);
    let start = |id: &str| {
        let post = ProbeRequest::Post { headers: Vec::new(), body: b"{}".to_vec() };
        let target = desk.target(&receiver.url("/"), vec![post.clone(), post]);
        desk.prober.test(&person(id), &client(id), vec![target])
    };
    let first = tokio::spawn(start("app"));
    receiver.next().await;
    assert_eq!(start("app").await.err(), Some(ProberBusy));
    let others: Vec<_> = ["b", "c", "d"].map(start).into_iter().map(tokio::spawn).collect();
    for _ in 0..3 {
        receiver.next().await;
    }
    assert_eq!(start("e").await.err(), Some(ProberBusy), "four run at once");
    desk.hand.advance(ATTEMPT_MAX);
    for running in others.into_iter().chain([first]) {
        let results = patiently("the end of a test", running).await.expect("no panic").expect("not busy");
        // Without an answer the second request is not sent.
        assert_eq!(results[0].len(), 1);
        assert_eq!(last_fault(&results[0][0]), Some(ProbeFault::Send(SendFailure::Timeout)));
    }
    assert_eq!(receiver.count(), 4);
    receiver.usually(Reply::Status(204));
    assert_eq!(start("app").await.err(), Some(ProberBusy), "it has just ended");
    desk.hand.advance(TEST_PAUSE);
    let results = start("app").await.expect("not busy");
    assert!(results[0].len() == 2 && results[0].iter().all(Probed::is_accepted));
    // The person has no test of another application meanwhile.
    let other = desk.target(&receiver.url("/"), vec![ProbeRequest::Get]);
    assert_eq!(desk.prober.test(&person("app"), &client("g"), vec![other]).await.err(), Some(ProberBusy));
    // A test whose caller is gone makes room.
    drop(start("f"));
    desk.hand.advance(TEST_PAUSE);
    assert!(start("f").await.is_ok());
}
