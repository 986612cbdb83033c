//! Peers that begin a head or a body and do not finish it keep no place that another peer needs, and use
//! little memory.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use testkit::{Api, Connection, Request, patiently};

use super::descriptors::{limited, with_limit};
use crate::cli::process::{descriptors_of, memory_of};
use crate::cli::serving;

/// The default limit of descriptors, which gives 870 places.
const LIMIT: usize = 1_024;
/// Number of calls of other clients, each on its own connection.
const CALLS: usize = 60;
/// Maximum of the median of these calls, which do not wait for the body grace of other peers. It is some
/// milliseconds on an idle machine.
const P50_MAX: Duration = Duration::from_secs(1);
/// Maximum of the slowest call, which waits for the body grace of other peers.
const LONGEST: Duration = Duration::from_secs(8);
/// Maximum of the slowest call beside few addresses with many peers each, which have no grace.
const LONGEST_BESIDE_FEW: Duration = Duration::from_secs(1);
/// So few addresses.
const FEW: usize = 20;

/// Number of peers for the memory measurement, so many that the other memory of the process does not matter.
const MEASURED: usize = 1_500;
/// The limit of descriptors for these peers.
const MEASURED_LIMIT: usize = 4_096;
/// Maximum memory of an unfinished request beyond its bytes: 16 KiB and a tenth.
const MEMORY_MAX: usize = 16 * 1024 * 11 / 10;
/// Further memory of a request that is handled by a sandbox, which records it.
const RECORDING_MAX: usize = 4 * 1024;
/// After this time freed memory is back at the system: docs/adr/0011-memory-is-given-back.md.
const GIVEN_BACK_AFTER: Duration = Duration::from_secs(3);

const UNFINISHED: &[u8] = b"POST /auth/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";

/// Peers with unfinished bodies, in turn from these addresses.
async fn attack(api: &Api, peers: usize, from: impl Fn(usize) -> Ipv4Addr) -> Vec<Connection> {
    attack_with(UNFINISHED, api, peers, from).await
}

/// Peers that send only these bytes.
async fn attack_with(
    bytes: &[u8],
    api: &Api,
    peers: usize,
    from: impl Fn(usize) -> Ipv4Addr,
) -> Vec<Connection> {
    let mut attackers = Vec::new();
    for number in 0..peers {
        let mut peer = Connection::open_from(from(number), api.address()).await;
        peer.write(bytes).await;
        attackers.push(peer);
    }
    attackers
}

#[allow(clippy::disallowed_methods, reason = "what others notice is about real time")]
fn now() -> Instant {
    Instant::now()
}

/// The durations of other clients' calls, sorted. Every call is answered.
async fn calls(api: &Api, token: &str) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..CALLS {
        let began = now();
        let mut connection = Connection::open(api.address()).await;
        connection.send(&Request::get("/open/v1/users/me").bearer(token)).await.content();
        took.push(began.elapsed());
    }
    took.sort_unstable();
    took
}

fn from_one(_: usize) -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}

fn from_many(number: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(
        Ipv4Addr::new(127, 1, 0, 1).to_bits() + u32::try_from(number).expect("a small number"),
    )
}

fn from_few(number: usize) -> Ipv4Addr {
    from_many(number % FEW)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_from_few_addresses_costs_other_callers_less_than_a_second() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = limited(&folder, LIMIT).await;
    let token = sandbox.user(0, "demo").1.access;
    let attackers = attack(&sandbox.api, 2_610, from_few).await;
    let took = calls(&sandbox.api, &token).await;
    let (p50, longest) = (took[CALLS / 2], took[CALLS - 1]);
    println!("2610 peers from {FEW} addresses: p50 {p50:?}, longest {longest:?}");
    assert!(longest < LONGEST_BESIDE_FEW, "p50 {p50:?}, longest {longest:?}");
    drop(attackers);
    sandbox.signal("TERM").await;
    assert_eq!(sandbox.end().await.0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_bodies_do_not_delay_other_callers() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = limited(&folder, LIMIT).await;
    let token = sandbox.user(0, "demo").1.access;
    for (name, from) in [("one address", from_one as fn(usize) -> Ipv4Addr), ("many addresses", from_many)] {
        for peers in [1_500, 2_610] {
            let attackers = attack(&sandbox.api, peers, from).await;
            let took = calls(&sandbox.api, &token).await;
            let (p50, longest) = (took[CALLS / 2], took[CALLS - 1]);
            println!("{peers} unfinished bodies from {name}: p50 {p50:?}, longest {longest:?}");
            assert!(
                p50 < P50_MAX && longest < LONGEST,
                "{peers} from {name}: p50 {p50:?}, longest {longest:?}"
            );
            drop(attackers);
        }
    }
    sandbox.signal("TERM").await;
    assert_eq!(sandbox.end().await.0.code(), Some(0));
}

/// The memory of a process per peer, for many peers that send only these bytes.
async fn memory_per_peer(process: u32, api: &Api, token: &str, bytes: &[u8]) -> usize {
    calls(api, token).await;
    tokio::time::sleep(GIVEN_BACK_AFTER).await;
    let memory = memory_of(process);
    let peers = attack_with(bytes, api, MEASURED, from_many).await;
    calls(api, token).await;
    tokio::time::sleep(GIVEN_BACK_AFTER).await;
    let each = (memory_of(process).saturating_sub(memory) / MEASURED as u64) as usize;
    assert!(descriptors_of(process) > MEASURED, "not all of them are there");
    drop(peers);
    each
}

/// The same of `stagedoor serve`.
async fn memory_of_serve(bytes: &[u8]) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = with_limit(&serving::command(&folder), MEASURED_LIMIT);
    command.env("STAGEDOOR_OPERATOR_KEY", serving::KEY);
    let (child, base_url) = serving::serve(command, &folder).await;
    let api = Api::new(&base_url, serving::KEY);
    let app = api.application("bot").create().await;
    let token = api.sign_in(&app, &api.person("someone").create().await).await.access;
    let each = memory_per_peer(child.id().expect("it runs"), &api, &token, bytes).await;
    serving::stop(child).await;
    each
}

/// The same of a sandbox.
async fn memory_of_sandbox(bytes: &[u8]) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = limited(&folder, MEASURED_LIMIT).await;
    let token = sandbox.user(0, "demo").1.access;
    let each = memory_per_peer(sandbox.id(), &sandbox.api, &token, bytes).await;
    sandbox.signal("TERM").await;
    assert_eq!(sandbox.end().await.0.code(), Some(0));
    each
}

fn assert_little(name: &str, bytes: &[u8], each: usize, max: usize) {
    println!("{name} of which {} bytes have come costs {each} bytes", bytes.len());
    assert!(each > 1_024, "{name}: {each} bytes: the peers were not measured");
    assert!(each <= bytes.len() + max, "{name}: {each} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_request_costs_little_memory() {
    let head = b"GET /open/v1/users/me HTTP/1.1\r\nHost: localhost\r\nA: ".to_vec();
    let long = [&head[..], &[b'a'; 15_000]].concat();
    for (name, bytes) in [("a head", &head[..]), ("a long head", &long), ("a body", UNFINISHED)] {
        assert_little(name, bytes, memory_of_serve(bytes).await, MEMORY_MAX);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_request_of_a_sandbox_costs_its_record_besides() {
    let each = memory_of_sandbox(UNFINISHED).await;
    assert_little("a body", UNFINISHED, each, MEMORY_MAX + RECORDING_MAX);
}

/// The operator is authenticated, so its body may arrive slowly although others need places.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_bulk_body_keeps_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = limited(&folder, 200).await;
    let channel = sandbox.user(0, "demo").0.channel_id;
    let line = format!(
        "{{\"kind\":\"chat\",\"channelId\":\"{channel}\",\"senderChannelId\":\"{channel}\",\"message\":\"a\"}}\n"
    );
    let head = |key: &str, lines: usize| {
        format!(
            "POST /platform/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Length: {}\r\n\r\n",
            line.len() * lines
        )
    };
    let key = sandbox.world["operatorKey"].as_str().expect("a text");
    let mut honest = Connection::open(sandbox.api.address()).await;
    honest.write(head(key, 4).as_bytes()).await;
    let mut stranger = Connection::open(sandbox.api.address()).await;
    stranger.write(head("the-key-of-a-stranger-of-32-chars", 1_000).as_bytes()).await;
    for _ in 0..4 {
        honest.write(line.as_bytes()).await;
        drop(attack(&sandbox.api, 150, from_many).await);
        let kept = attack(&sandbox.api, 150, from_many).await;
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        drop(kept);
    }
    assert_eq!(honest.read_response(false).await.map(|answer| answer.status), Some(200));
    let end = patiently("the end of the stranger's connection", stranger.rest()).await;
    assert!(end.is_empty() || end.starts_with(b"HTTP/1.1 401 "), "{}", String::from_utf8_lossy(&end));
}
