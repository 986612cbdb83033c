//! `stagedoor-load webhooks`: measures the delay from claims of many publishers to their webhooks.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::clock::{Clock, Nanos, SECOND_NS, seconds};
use crate::crowd::each;
use crate::http::{Body, Call, Client};
use crate::process::Memory;
use crate::server::{Own, Server};
use crate::stats::{Summary, Times};
use crate::world::World;

/// Rewards of a campaign. A channel claims each of them once.
const REWARDS: usize = 100;
/// Lines of a bulk call.
const LINES: usize = 500;
/// Number of connections for claims.
const CONNECTIONS: usize = 16;
/// Pause before the server's memory is read.
const SETTLE: Duration = Duration::from_secs(5);
/// After this time without an arrival, the missing messages count as lost.
const STUCK_NS: Nanos = 20 * SECOND_NS;
const TICK: Duration = Duration::from_millis(10);
/// The path of the bulk call.
const EVENTS: &str = "/platform/v1/events";

const ABOUT: &str = "Claims rewards of many publishers, and measures the delay of their webhooks.";
const MANUAL: &str = "\
  The load starts its own server, as `stagedoor dev --no-sandbox --no-quota`. The receivers are in this process; one more hangs, and
  never answers. With --waiting, that many messages for the hanging receiver are written first, and the server is
  restarted, so that its memory is that of a server with waiting messages.

    target/release/stagedoor-load webhooks --spawn target/release/stagedoor --claims 100000
    target/release/stagedoor-load webhooks --spawn target/release/stagedoor --claims 10000 --rate 500 --waiting 1000000

  The delay of a message is the time from the beginning of the claim's call to its arrival, including the commit.";

/// The options.
#[derive(Args, Debug)]
#[command(about = ABOUT, after_help = MANUAL)]
pub(crate) struct WebhookOptions {
    /// The server: starts this program on a free port with a temporary folder, and stops it at the end.
    #[arg(long, value_name = "STAGEDOOR")]
    spawn: PathBuf,

    /// The database of the server: postgres://user:password@host/database. Default: SQLite.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,

    /// Number of publishers, each with a receiver that answers at once.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    receivers: u32,

    /// Number of claims, of each publisher in turn. The publisher whose receiver hangs gets a twentieth as
    /// many.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    claims: u32,

    /// Claims per second, each in a single call. Default: as fast as the server accepts them in bulk.
    #[arg(long, value_name = "CLAIMS_PER_S", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,

    /// Messages that wait for the hanging receiver before the measurement.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
    waiting: u32,

    /// Prints the report as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookReport {
    receivers: u32,
    claims: u32,
    /// Messages that waited for the hanging receiver.
    waiting: u32,
    /// Seconds from the first claim to the last arrival.
    seconds: f64,
    deliveries_per_second: f64,
    /// Claims whose call failed.
    failed: u64,
    /// Claims whose message never arrived.
    missing: usize,
    /// Messages that arrived more than once.
    doubled: usize,
    /// Delays from the beginning of a claim's call to the arrival of its message.
    lateness: Summary,
    /// Durations of the claims' calls.
    call: Summary,
    /// Number of attempts at the hanging receiver.
    hanging: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_before: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_after: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_us_per_delivery: Option<f64>,
}

/// The records that claimants and receivers share.
struct Board {
    clock: Clock,
    /// The time at which each claim's call began; 0 before.
    called: Vec<Nanos>,
    received: Vec<bool>,
    count: usize,
    doubled: usize,
    hanging: usize,
    last: Nanos,
    failed: u64,
    lateness: Times,
    call: Times,
}

type SharedBoard = Rc<RefCell<Board>>;

/// Runs the load, and returns the report as text or JSON.
///
/// # Errors
/// A sentence.
pub(crate) async fn run(options: &WebhookOptions) -> Result<String, String> {
    let clock = Clock::start();
    let claims = options.claims as usize;
    let board = Rc::new(RefCell::new(Board {
        clock,
        called: vec![0; claims],
        received: vec![false; claims],
        count: 0,
        doubled: 0,
        hanging: 0,
        last: clock.now(),
        failed: 0,
        lateness: Times::default(),
        call: Times::default(),
    }));
    let good = listen(board.clone(), true).await?;
    let hanging = listen(board.clone(), false).await?;

    let own = Own::new(&options.spawn, options.database_url.as_deref())?;
    let (spawned, line) = own.start()?;
    let mut server = Server::Own(own, Some(spawned));
    let mut world = Rc::new(World::read(&line)?);
    set_up(&world, clock, options, [good, hanging]).await?;
    let waiting = options.waiting as usize;
    in_bulk(&world, &board, (0..waiting).map(|n| line_of("hanging", n, None)).collect()).await?;
    if let Some(line) = server.restart(clock)? {
        world = Rc::new(World::read(&line)?);
    }
    tokio::time::sleep(SETTLE).await;
    let (memory_before, cpu) = (server.probe().memory(), server.probe().cpu());

    let began = clock.now();
    board.borrow_mut().last = began;
    let publishers = options.receivers as usize;
    let claim = |n: usize| line_of(&(n % publishers).to_string(), n / publishers, Some(n));
    // Claims for the hanging receiver are spread over the whole load.
    let hung = |n: usize| line_of("hanging", waiting + n, None);
    match options.rate {
        Some(rate) => one_by_one(&world, &board, rate, (0..claims).map(claim).collect()).await,
        None => {
            let lines = (0..claims).flat_map(|n| [(n % 20 == 0).then(|| hung(n / 20)), Some(claim(n))]);
            in_bulk(&world, &board, lines.flatten().collect()).await?;
        }
    }
    while board.borrow().count < claims && clock.now() - board.borrow().last < STUCK_NS {
        tokio::time::sleep(TICK).await;
    }
    let cpu = server.probe().cpu().zip(cpu).map(|(after, before)| after - before);
    let memory_after = server.probe().memory();
    server.stop(clock)?;

    let board = board.borrow();
    let seconds = seconds(board.last - began);
    let report = WebhookReport {
        receivers: options.receivers,
        claims: options.claims,
        waiting: options.waiting,
        seconds,
        deliveries_per_second: board.count as f64 / seconds,
        failed: board.failed,
        missing: claims - board.count,
        doubled: board.doubled,
        lateness: board.lateness.summary(),
        call: board.call.summary(),
        hanging: board.hanging,
        memory_before,
        memory_after,
        cpu_us_per_delivery: cpu.map(|cpu| cpu * 1e6 / board.count.max(1) as f64),
    };
    Ok(if options.json { serde_json::to_string(&report).unwrap_or_default() + "\n" } else { report.text() })
}

/// The `n`th claim of a publisher, with an id that identifies it on arrival.
fn line_of(publisher: &str, n: usize, id: Option<usize>) -> (Option<usize>, String) {
    let mut line = json!({
        "kind": "claim", "campaignId": format!("load-{publisher}"), "rewardId": format!("r{}", n % REWARDS),
        "channelId": format!("load-{}", n / REWARDS),
    });
    if let Some(id) = id {
        line["claimId"] = format!("load-{id}").into();
    }
    (id, line.to_string())
}

/// Makes a call of the platform API.
async fn platform(client: &mut Client, world: &World, call: Call<'_>) -> Result<Value, String> {
    let authorization = format!("Bearer {}", world.operator_key);
    let headers = [("Authorization", authorization.as_str())];
    let answer = client.call(&Call { headers: &headers, ..call }).await.map_err(|broken| broken.kind())?;
    answer.content()
}

/// Creates the publishers with their webhooks, and the channels that claim.
async fn set_up(
    world: &World,
    clock: Clock,
    options: &WebhookOptions,
    ports: [u16; 2],
) -> Result<(), String> {
    let mut client = Client::new(world.platform.clone(), clock);
    let mut put = async |path: String, body: Value| {
        let body = body.to_string();
        let call = Call { method: "PUT", path: &path, headers: &[], body: Body::Json(&body) };
        platform(&mut client, world, call).await.map_err(|problem| format!("{path}: {problem}"))
    };
    put("/platform/v1/categories/load".into(), json!({ "categoryType": "GAME", "categoryValue": "load" }))
        .await?;
    let publishers = (0..options.receivers).map(|n| n.to_string()).chain(["hanging".to_owned()]);
    for publisher in publishers {
        let name = format!("load-{publisher}");
        let port = ports[usize::from(publisher == "hanging")];
        let organization = json!({ "organizationName": name, "verified": true });
        put(format!("/platform/v1/organizations/{name}"), organization).await?;
        let application = json!({
            "name": name, "redirectUris": ["http://127.0.0.1:9999/"], "scopes": ["드롭스"], "organizationId": name,
        });
        put(format!("/platform/v1/applications/{name}"), application).await?;
        let rewards: Vec<_> =
            (0..REWARDS).map(|n| json!({ "rewardId": format!("r{n}"), "rewardName": "r" })).collect();
        let campaign = json!({
            "campaignName": name, "organizationId": name, "categoryId": "load", "rewards": rewards,
        });
        put(format!("/platform/v1/drops/campaigns/{name}"), campaign).await?;
        // Each publisher has its own host: 127.0.0.1, 127.0.0.2, …
        let host = publisher.parse::<u32>().map_or(250, |n| n % 200 + 1);
        let url = json!({ "url": format!("http://127.0.0.{host}:{port}/{name}") });
        put(format!("/platform/v1/applications/{name}/webhook"), url).await?;
    }
    let each = options.claims.div_ceil(options.receivers).max(options.waiting + options.claims / 20 + 1);
    let line =
        |n| json!({ "kind": "channel", "channelId": format!("load-{n}"), "channelName": "load" }).to_string();
    let lines: Vec<_> = (0..=each as usize / REWARDS).map(line).collect();
    for some in lines.chunks(LINES) {
        bulk(&mut client, world, &some.join("\n")).await?;
    }
    Ok(())
}

async fn bulk(client: &mut Client, world: &World, lines: &str) -> Result<(), String> {
    let call = Call { method: "POST", path: EVENTS, headers: &[], body: Body::Lines(lines) };
    let content = platform(client, world, call).await?;
    match content["refusedCount"].as_u64() {
        Some(0) => Ok(()),
        _ => Err(format!("lines were refused: {}", content["refused"][0])),
    }
}

/// Claims as fast as the server accepts them.
async fn in_bulk(
    world: &Rc<World>,
    board: &SharedBoard,
    lines: Vec<(Option<usize>, String)>,
) -> Result<(), String> {
    let clock = board.borrow().clock;
    let (origin, calls) = (world.platform.clone(), lines.chunks(LINES).map(<[_]>::to_vec).collect());
    let problem = Rc::new(RefCell::new(None));
    let (world, board, failed) = (world.clone(), board.clone(), problem.clone());
    each(
        calls,
        CONNECTIONS,
        || Client::new(origin.clone(), clock),
        async move |client: &mut Client, lines: Vec<_>| {
            let now = clock.now();
            for id in lines.iter().filter_map(|(id, _)| *id) {
                board.borrow_mut().called[id] = now;
            }
            let body: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
            if let Err(kind) = bulk(client, &world, &body.join("\n")).await {
                *failed.borrow_mut() = Some(kind);
            }
            board.borrow_mut().call.record(now, clock.now());
        },
    )
    .await;
    problem.take().map_or(Ok(()), Err)
}

/// Claims one by one, at a rate, regardless of the calls' duration.
async fn one_by_one(world: &Rc<World>, board: &SharedBoard, rate: u32, lines: Vec<(Option<usize>, String)>) {
    let clock = board.borrow().clock;
    let began = clock.now();
    let (origin, world, board) = (world.platform.clone(), world.clone(), board.clone());
    let work = async move |client: &mut Client, (id, line): (Option<usize>, String)| {
        let Some(id) = id else { return };
        let due = began + id as u64 * SECOND_NS / u64::from(rate);
        tokio::time::sleep(Duration::from_nanos(due.saturating_sub(clock.now()))).await;
        let now = clock.now();
        board.borrow_mut().called[id] = now;
        let call =
            Call { method: "POST", path: "/platform/v1/drops/claims", headers: &[], body: Body::Json(&line) };
        let answered = platform(client, &world, call).await;
        let mut board = board.borrow_mut();
        board.call.record(now, clock.now());
        board.failed += u64::from(answered.is_err());
    };
    each(lines, CONNECTIONS, || Client::new(origin.clone(), clock), work).await;
}

/// Listens on every address of this machine, because the receivers have different addresses. Returns the
/// port.
async fn listen(board: SharedBoard, answers: bool) -> Result<u16, String> {
    let listener = TcpListener::bind("0.0.0.0:0").await.map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(receive(stream, board.clone(), answers));
        }
    });
    Ok(port)
}

/// Receives messages on one connection until it ends.
async fn receive(mut stream: TcpStream, board: SharedBoard, answers: bool) -> Option<()> {
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::new();
    loop {
        let length = loop {
            if let Some(length) = message_length(&bytes)
                && bytes.len() >= length
            {
                break length;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let message: Vec<u8> = bytes.drain(..length).collect();
        if answers {
            board.borrow_mut().note(claim_of(&message)?);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.ok()?;
        } else {
            board.borrow_mut().hanging += 1;
        }
    }
}

impl Board {
    fn note(&mut self, claim: usize) {
        if std::mem::replace(&mut self.received[claim], true) {
            self.doubled += 1;
            return;
        }
        let now = self.clock.now();
        self.count += 1;
        self.last = now;
        self.lateness.record(self.called[claim], now);
    }
}

/// The length of a request including its head; `None` while the head is incomplete.
fn message_length(bytes: &[u8]) -> Option<usize> {
    let head = memchr::memmem::find(bytes, b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text.split("\r\n").find_map(|line| line.strip_prefix("content-length: "))?;
    Some(head + 4 + length.parse::<usize>().ok()?)
}

fn claim_of(message: &[u8]) -> Option<usize> {
    const NAME: &[u8] = br#""claimId":"load-"#;
    let at = memchr::memmem::find(message, NAME)? + NAME.len();
    let digits = message[at..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |claim, digit| claim * 10 + usize::from(digit - b'0')))
}

impl WebhookReport {
    fn text(&self) -> String {
        let line = |name: &str, times: &Summary| {
            let Summary { p50_ms, p90_ms, p99_ms, max_ms, .. } = times;
            format!(
                "  {name}: p50 {p50_ms:.1} ms, p90 {p90_ms:.1} ms, p99 {p99_ms:.1} ms, max {max_ms:.1} ms\n"
            )
        };
        let mut text = format!(
            "{} claims to {} receivers, while one hangs with {} messages waiting\n  {:.0} deliveries/s for {:.1} s; \
             {} calls failed, {} messages missing, {} doubled; {} attempts at the one that hangs\n",
            self.claims,
            self.receivers,
            self.waiting,
            self.deliveries_per_second,
            self.seconds,
            self.failed,
            self.missing,
            self.doubled,
            self.hanging
        );
        text += &line("late", &self.lateness);
        text += &line("call", &self.call);
        if let (Some(before), Some(after)) = (self.memory_before, self.memory_after) {
            let mb = |bytes: u64| bytes as f64 / 1e6;
            text += &format!("  server: {:.1} MB before, {:.1} MB after", mb(before.rss), mb(after.rss));
        }
        if let Some(cpu) = self.cpu_us_per_delivery {
            text += &format!(", CPU {cpu:.0} us per delivery");
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_completely_and_identified_by_its_claim() {
        let message =
            b"POST / HTTP/1.1\r\nContent-Length: 26\r\n\r\n{\"a\":{\"claimId\":\"load-42\"}".as_slice();
        assert_eq!(message_length(message), Some(message.len()));
        assert_eq!(message_length(&message[..20]), None);
        assert_eq!(claim_of(message), Some(42));
        assert_eq!(claim_of(b"{}"), None);
    }

    #[test]
    fn every_claim_of_a_publisher_is_of_another_reward_or_channel() {
        let lines: Vec<_> = (0..250).map(|n| line_of("7", n, None).1).collect();
        let mut different = lines.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), lines.len());
        assert!(lines[249].contains(r#""channelId":"load-2""#) && lines[249].contains(r#""rewardId":"r49""#));
    }
}
