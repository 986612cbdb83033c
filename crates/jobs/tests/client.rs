//! Attempts at webhooks: allowed addresses, deadlines, and limits of the answer.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::Timestamp;
use domain::outbound::{Reach, SendFailure, WebhookUrl};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_client::RootCertStore;
use jobs::webhooks::{ANSWER_BYTES_MAX, ATTEMPT_MAX, Answer, Client, ClientConfig, Outgoing, Resolver};
use service::{Clock, ManualClock};
use testkit::{Authority, Receiver, Reply, ReservedPort, patiently};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LOOPBACK: Reach = Reach { loopback: true, private: false };

/// A client on a manual clock.
struct Sender {
    client: Client,
    hand: ManualClock,
    reach: Reach,
}

impl Sender {
    fn new(reach: Reach, resolver: Resolver, roots: RootCertStore) -> Self {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(0));
        let client =
            Client::new(ClientConfig { reach, clock, resolver, roots, idle_max: 8 }).expect("a client");
        Self { client, hand, reach }
    }

    /// A sender with the system's resolver and without certificate authorities.
    fn plain(reach: Reach) -> Self {
        Self::new(reach, jobs::webhooks::system_resolver(), RootCertStore::empty())
    }

    async fn send(&self, url: &str) -> Result<Answer, SendFailure> {
        let url = WebhookUrl::parse(url, self.reach).expect("may be registered");
        let headers = HeaderMap::from_iter([(
            HeaderName::from_static("service-event-message-id"),
            HeaderValue::from_static("the-id"),
        )]);
        let body = r#"{"한":"글"}"#.into();
        patiently("an attempt", self.client.send(Outgoing { url, headers, body })).await
    }

    async fn status(&self, url: &str) -> Result<u16, SendFailure> {
        self.send(url).await.map(|answer| answer.status)
    }
}

/// A resolver that resolves every name to these addresses.
fn leads_to(addresses: &[&str]) -> Resolver {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().expect(text)).collect();
    Arc::new(move |_| {
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_sends_the_given_bytes_and_returns_the_answer() {
    let (sender, receiver) = (Sender::plain(LOOPBACK), Receiver::start().await);
    let body = b"thank\0you \xff ".to_vec();
    receiver.reply([Reply::Whole(429, vec!["Retry-After: 120".into()], body)]);
    let answer = sender.send(&receiver.url("/hook?key=secret&b=%20")).await.expect("an answer");
    let beginning = b"thank\0you \xff ".to_vec();
    assert_eq!(answer, Answer { status: 429, retry_after: Some("120".into()), beginning });

    let received = receiver.next().await;
    assert_eq!(received.line, "POST /hook?key=secret&b=%20 HTTP/1.1");
    assert_eq!(received.header("Host"), receiver.address().to_string());
    assert_eq!(received.header("Service-Event-Message-Id"), "the-id");
    assert_eq!(received.body, r#"{"한":"글"}"#.as_bytes());
    assert_eq!(received.headers.len(), 3, "nothing is added: {:?}", received.headers);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_answers_and_are_not_followed() {
    let (sender, receiver) = (Sender::plain(LOOPBACK), Receiver::start().await);
    for status in [200, 201, 204, 301, 302, 303, 307, 308, 400, 410, 500, 599] {
        receiver.reply([Reply::Whole(status, vec![format!("Location: {}", receiver.url("/there"))], vec![])]);
        assert_eq!(sender.status(&receiver.url("/here")).await, Ok(status));
    }
    assert!(receiver.received().iter().all(|received| received.line.starts_with("POST /here ")));
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_have_names() {
    let (sender, receiver) = (Sender::plain(LOOPBACK), Receiver::start().await);
    let raw = |text: &str| Reply::Raw(text.as_bytes().to_vec());
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(20_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    let check = async |reply, failure| {
        receiver.reply([reply]);
        assert_eq!(sender.status(&receiver.url("/")).await, Err(failure));
    };
    check(Reply::Close, SendFailure::Closed).await;
    check(raw("HTTP/1.1 200 OK\r\n"), SendFailure::Closed).await;
    check(raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), SendFailure::Closed).await;
    check(raw("SSH-2.0-OpenSSH_9.9\r\n\r\n"), SendFailure::Protocol).await;
    check(raw("HTTP/1.1 2000 OK\r\n\r\n"), SendFailure::Protocol).await;
    check(raw("HTTP/2 200 OK\r\n\r\n"), SendFailure::Protocol).await;
    check(raw(&long), SendFailure::Protocol).await;
    check(raw(&many), SendFailure::Protocol).await;

    let port = ReservedPort::take();
    assert_eq!(sender.status(&port.url("/")).await, Err(SendFailure::Connect));
    let lost: Resolver = Arc::new(|_| Box::pin(async { Err(io::Error::other("no such name")) }));
    for resolver in [lost, leads_to(&[])] {
        let sender = Sender::new(LOOPBACK, resolver, RootCertStore::empty());
        assert_eq!(sender.status("https://hook.example/").await, Err(SendFailure::Dns));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_times_out_after_five_seconds_in_every_phase() {
    let (sender, receiver) = (Sender::plain(LOOPBACK), Receiver::start().await);
    let drip = Duration::from_millis(1);
    for reply in [Reply::Hang, Reply::Drip(drip), Reply::After(Duration::from_secs(3_600))] {
        receiver.reply([reply]);
        let url = receiver.url("/");
        let (sent, ()) = tokio::join!(sender.status(&url), async {
            receiver.next().await;
            sender.hand.advance(ATTEMPT_MAX);
        });
        assert_eq!(sent, Err(SendFailure::Timeout));
    }
    // The lookup and the handshake have no deadline of their own.
    let (asked, was_asked) = (Arc::new(tokio::sync::Notify::new()), Arc::new(AtomicUsize::new(0)));
    let resolver: Resolver = Arc::new({
        let (asked, was_asked) = (asked.clone(), was_asked.clone());
        move |_| {
            was_asked.fetch_add(1, Ordering::SeqCst);
            asked.notify_one();
            Box::pin(std::future::pending())
        }
    });
    let slow = Sender::new(LOOPBACK, resolver, RootCertStore::empty());
    for _ in 0..3 {
        let (sent, ()) = tokio::join!(slow.status("https://hook.example/"), async {
            if was_asked.load(Ordering::SeqCst) == 0 {
                asked.notified().await;
            }
            tokio::task::yield_now().await;
            slow.hand.advance(ATTEMPT_MAX);
        });
        assert_eq!(sent, Err(SendFailure::Timeout));
    }
    assert_eq!(was_asked.load(Ordering::SeqCst), 1, "a name that is being looked up is not asked for again");

    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://127.0.0.1:{}/", silent.local_addr().expect("an address").port());
    let (sent, _kept_open) = tokio::join!(sender.status(&url), async {
        let connection = silent.accept().await.expect("a connection");
        sender.hand.advance(ATTEMPT_MAX);
        connection
    });
    assert_eq!(sent, Err(SendFailure::Timeout), "a peer that never shakes hands");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_cut_at_64_kib_and_its_status_counts() {
    let (sender, receiver) = (Sender::plain(LOOPBACK), Receiver::start().await);
    for status in [200, 500] {
        receiver.reply([Reply::Endless(status)]);
        let answer = sender.send(&receiver.url("/")).await.expect("an answer");
        assert_eq!((answer.status, answer.beginning.len()), (status, 1_024));
    }
    // The receiver wrote more than 64 KiB only because of the socket buffers.
    assert!(receiver.poured() < 16 * 1024 * 1024, "{} bytes were taken", receiver.poured());
    let largest = vec![b'x'; ANSWER_BYTES_MAX];
    receiver.reply([
        Reply::Whole(200, vec![], largest.clone()),
        Reply::Whole(200, vec![], [largest, vec![b'x']].concat()),
    ]);
    let before = receiver.connections();
    for _ in 0..3 {
        assert_eq!(sender.status(&receiver.url("/")).await, Ok(200));
    }
    assert_eq!(
        receiver.connections() - before,
        2,
        "only the connection whose answer was too long was closed"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resolved_address_is_judged_before_it_is_connected_to() {
    let receiver = Receiver::start().await;
    let port = receiver.address().port();
    let addresses =
        ["127.0.0.1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "64:ff9b::7f00:1", "fd00:ec2::254"];
    for address in addresses {
        let sender = Sender::new(Reach::PUBLIC, leads_to(&[address]), RootCertStore::empty());
        let sent = sender.status(&format!("https://hook.example:{port}/")).await;
        assert_eq!(sent, Err(SendFailure::Address), "{address}");
    }
    // A name for loopback that resolves to another address is not called without TLS.
    let sender = Sender::new(LOOPBACK, leads_to(&["8.8.8.8"]), RootCertStore::empty());
    assert_eq!(sender.status(&format!("http://localhost:{port}/")).await, Err(SendFailure::Address));
    assert_eq!(receiver.connections(), 0, "no connection was made");

    // Forbidden addresses are skipped. An address without a listener does not stop the next one.
    let addresses = ["10.0.0.1", "169.254.169.254", "::1", "127.0.0.1"];
    let sender = Sender::new(LOOPBACK, leads_to(&addresses), RootCertStore::empty());
    assert_eq!(sender.status(&format!("http://localhost:{port}/")).await, Ok(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_needs_a_valid_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let sender = Sender::new(LOOPBACK, leads_to(&["127.0.0.1"]), authority.roots());
    let check = async |authority: &Authority, certificate: &str, reached_as: &str, expected| {
        let receiver = Receiver::start_tls(authority, certificate, reached_as).await;
        assert_eq!(sender.status(&receiver.url("/hook")).await, expected, "{certificate} {reached_as}");
        assert_eq!(receiver.count(), usize::from(expected.is_ok()));
        receiver
    };
    let tls = Err(SendFailure::Tls);
    let receiver = check(&authority, "hook.example", "hook.example", Ok(200)).await;
    let host = receiver.next().await.header("Host").to_owned();
    assert_eq!(host, format!("hook.example:{}", receiver.address().port()));
    check(&authority, "127.0.0.1", "127.0.0.1", Ok(200)).await;
    check(&authority, "hook.example", "other.example", tls).await;
    check(&authority, "hook.example", "127.0.0.1", tls).await;
    check(&authority, "expired.example", "expired.example", tls).await;
    check(&stranger, "hook.example", "hook.example", tls).await;
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://hook.example:{}/", plain.local_addr().expect("an address").port());
    let (sent, ()) = tokio::join!(sender.status(&url), async {
        let (mut peer, _) = plain.accept().await.expect("a connection");
        let _ = peer.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    assert_eq!(sent, tls);
}

/// The clock does not advance, so no attempt ends by its deadline.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_of_any_kind_exceeds_the_byte_budget() {
    let authority = Authority::new();
    let sender = Sender::new(LOOPBACK, leads_to(&["127.0.0.1"]), authority.roots());
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let floods = [
        ("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("", "\r\n"),
        ("", "\n"),
        (chunked, "0"),
        (chunked, "1\r\nx\r\n"),
        (chunked, "1;a=b;c=d\r\nx\r\n"),
        (&format!("{chunked}1;"), "a"),
        (&format!("{chunked}1 "), " "),
        (&format!("{chunked}0\r\n"), "A: b\r\n"),
    ];
    for tls in [false, true] {
        for (head, piece) in &floods {
            let receiver = match tls {
                false => Receiver::start().await,
                true => Receiver::start_tls(&authority, "hook.example", "hook.example").await,
            };
            let url = receiver.url("/");
            assert_eq!(sender.status(&url).await, Ok(200));
            let reply = Reply::Flood(head.as_bytes().to_vec(), piece.as_bytes().to_vec());
            receiver.reply([reply]);
            let sent = sender.status(&url).await;
            assert_eq!(sent, Err(SendFailure::Protocol), "{head:?} {piece:?}");
            assert!(
                receiver.poured() < 16 * 1024 * 1024,
                "{} bytes of {piece:?} were taken",
                receiver.poured()
            );
            assert_eq!(sender.status(&url).await, Ok(200));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_exchange_of_a_connection_has_its_own_byte_budget() {
    let (sender, receiver) = (Sender::plain(LOOPBACK), Receiver::start().await);
    let long = vec![b'x'; ANSWER_BYTES_MAX];
    for _ in 0..8 {
        receiver.reply([Reply::Whole(200, vec![], long.clone())]);
        assert_eq!(sender.status(&receiver.url("/")).await, Ok(200));
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_reused_and_a_closed_one_is_replaced() {
    let authority = Authority::new();
    let sender = Sender::new(LOOPBACK, leads_to(&["127.0.0.1"]), authority.roots());
    let receiver = Receiver::start_tls(&authority, "hook.example", "hook.example").await;
    let send = async || assert_eq!(sender.status(&receiver.url("/")).await, Ok(200));
    for _ in 0..5 {
        send().await;
    }
    assert_eq!(receiver.connections(), 1);
    sender.hand.advance(Duration::from_secs(4));
    send().await;
    assert_eq!(receiver.connections(), 2, "not after 4 seconds");
    for _ in 0..20 {
        sender.hand.advance(Duration::from_secs(3));
        send().await;
    }
    assert_eq!(receiver.connections(), 3, "nor when it is a minute old");
    receiver.reply([Reply::Whole(200, vec!["Connection: close".into()], vec![]), Reply::Status(200)]);
    send().await;
    send().await;
    assert_eq!(receiver.connections(), 4);
    receiver.reply([Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec())]);
    let before = receiver.count();
    send().await;
    // A message that is sent while the connection closes may be lost, and is not sent twice.
    receiver.let_go(1).await;
    send().await;
    send().await;
    assert_eq!(
        receiver.count() - before,
        3,
        "a connection that ended without a word is replaced, nothing is sent twice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_connection_is_closed() {
    let sender = Sender::plain(LOOPBACK);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().expect("an address").port());
    let (sent, mut peer) = tokio::join!(sender.status(&url), async {
        let (mut peer, _) = listener.accept().await.expect("a connection");
        peer.read_exact(&mut [0; 10]).await.expect("a request");
        peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("an answer");
        peer
    });
    assert_eq!(sent, Ok(204));
    sender.hand.advance(Duration::from_secs(4));
    sender.client.close_idle();
    patiently("the end of the connection", peer.read_to_end(&mut Vec::new())).await.expect("an end");
}
