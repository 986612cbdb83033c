//! `stagedoor-load rest`: one call, made on many connections as fast as the server answers.

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use wire_client::HEAD_BYTES_MAX;

use crate::clock::{Clock, Nanos, SECOND_NS, seconds};
use crate::http::{Body, Call, Client, Origin};
use crate::server::{Own, Probe, Server, Spawned};
use crate::stats::{Summary, Times};

/// The warm-up before a round.
const WARM_UP_NS: Nanos = SECOND_NS / 2;
/// How long calls may continue after the end of a round.
const ROUND_GRACE: Duration = Duration::from_secs(30);

const ABOUT: &str = "Makes one REST call on many connections, as fast as the server answers, and counts.";
const MANUAL: &str = "\
  The load starts its own server, as `stagedoor dev --no-sandbox --no-quota`. With --baseline each round is followed by one against
  that program, which must answer `GET /open/v1/users/me` with the same bytes:

    cargo build --release && cargo build --release -p web --examples
    target/release/stagedoor-load rest --spawn target/release/stagedoor --baseline target/release/examples/bare

  The ratio compares the medians of all rounds. `CPU` is user and system time of the server for each call, in steps of
  10 ms a round. Unlike the rate it does not depend on other programs of the machine.";

/// The call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RestCall {
    /// GET /open/v1/users/me
    UsersMe,
    /// POST /open/v1/chats/send
    ChatsSend,
    /// POST /platform/v1/channels/{id}/chats, as a viewer's message, to 1,000 channels in turn
    ChannelChats,
    /// POST /platform/v1/events: lines of such messages, each to the next of 1,000 channels
    Events,
}

/// Number of channels that messages are sent to in turn.
const CHANNELS: usize = 1_000;
/// The sender of viewers' messages.
const VIEWER: &str = "load-viewer";

/// The options.
#[derive(Args, Debug)]
#[command(about = ABOUT, after_help = MANUAL)]
pub(crate) struct RestOptions {
    /// The server: starts this program on a free port with a temporary folder, and stops it at the end.
    #[arg(long, value_name = "STAGEDOOR")]
    spawn: PathBuf,

    /// The database of the server: postgres://user:password@host/database. Default: SQLite.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,

    /// The call.
    #[arg(long, value_enum, default_value = "users-me")]
    target: RestCall,

    /// Number of lines in a call to --target events.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    lines: u16,

    /// Calls per second, on all connections together. A call that is late because an earlier one took long
    /// counts from its due time. Default: as fast as the server answers.
    #[arg(long, value_name = "CALLS_PER_S", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,

    /// Number of connections, each with one call in flight.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    connections: u16,

    /// Seconds of a round.
    #[arg(long, value_name = "SECS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    duration: u32,

    /// Number of rounds.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,

    /// A program that gives the same answer without a service, started with the channel's id and name: the
    /// example `bare`.
    #[arg(long, value_name = "PROGRAM")]
    baseline: Option<PathBuf>,

    /// Prints the report as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RestReport {
    target: String,
    connections: u16,
    seconds: u32,
    server: Side,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Side>,
    /// The server's median divided by the baseline's.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    calls_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_us_per_call: Option<f64>,
    rounds: Vec<RestRound>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RestRound {
    calls_per_second: f64,
    call: Summary,
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_us_per_call: Option<f64>,
}

/// Runs the load, and returns the report as text or JSON.
///
/// # Errors
/// A sentence.
pub(crate) async fn run(options: &RestOptions) -> Result<String, String> {
    let clock = Clock::start();
    let own = Own::new(&options.spawn, options.database_url.as_deref())?;
    let (spawned, line) = own.start()?;
    let world: Value = serde_json::from_str(&line).map_err(|_| "the server prints no world".to_owned())?;
    let token = world["users"].as_array().into_iter().flatten().find_map(access_token);
    let token = token.ok_or("the server's world has no user with tokens")?;
    let origin = origin(&world)?;
    let target = if options.target.needs_channels() { place(&world, "platformUrl")? } else { origin.clone() };
    let key = world["operatorKey"].as_str().unwrap_or_default();
    if options.target.needs_channels() {
        make_channels(&target, key, clock).await?;
    }
    let requests = options.target.requests(&target.host, token, key, options.lines.into());
    let baseline = match &options.baseline {
        Some(program) => Some(start_baseline(program, &origin, token, clock).await?),
        None => None,
    };

    let (mut ours, mut bare) = (Side::default(), Side::default());
    for _ in 0..options.rounds {
        let probe = Probe(Some(spawned.pid()));
        ours.rounds.push(round(options, &target, &requests, probe, clock).await?);
        if let Some((process, origin)) = &baseline {
            let requests = RestCall::UsersMe.requests(&origin.host, token, key, 1);
            bare.rounds.push(round(options, origin, &requests, Probe(Some(process.pid())), clock).await?);
        }
    }
    Server::Own(own, Some(spawned)).stop(clock)?;
    ours.conclude();
    bare.conclude();
    let baseline = baseline.is_some().then_some(bare);
    let ratio = baseline.as_ref().map(|bare| ours.calls_per_second / bare.calls_per_second);
    let target = options.target.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned());
    let (connections, seconds) = (options.connections, options.duration);
    let report = RestReport { target, connections, seconds, server: ours, baseline, ratio };
    Ok(if options.json { serde_json::to_string(&report).unwrap_or_default() + "\n" } else { report.text() })
}

impl RestCall {
    fn needs_channels(self) -> bool {
        matches!(self, Self::ChannelChats | Self::Events)
    }

    /// The requests that the connections send in turn.
    fn requests(self, host: &str, token: &str, operator_key: &str, lines: usize) -> Rc<Vec<Vec<u8>>> {
        let credential = if self.needs_channels() { operator_key } else { token };
        let authorization = format!("Bearer {credential}");
        let request = |method, path: &str, body: Body<'_>| {
            let headers = [("Authorization", authorization.as_str())];
            Call { method, path, headers: &headers, body }.bytes(host)
        };
        let post = |path: &str, body: &str| request("POST", path, Body::Json(body));
        let channels: Vec<_> = (0..CHANNELS).map(channel).collect();
        Rc::new(match self {
            Self::UsersMe => vec![request("GET", "/open/v1/users/me", Body::Nothing)],
            Self::ChatsSend => vec![post("/open/v1/chats/send", r#"{"message":"one of many"}"#)],
            Self::ChannelChats => {
                let path = |id| format!("/platform/v1/channels/{id}/chats");
                channels.iter().map(|id| post(&path(id), &chat(id))).collect()
            }
            Self::Events => {
                let lines_to = |ids: &[String]| ids.iter().map(|id| chat(id)).collect::<Vec<_>>().join("\n");
                channels.chunks(lines).map(|ids| post(EVENTS, &lines_to(ids))).collect()
            }
        })
    }
}

/// The path of the bulk call.
const EVENTS: &str = "/platform/v1/events";

fn channel(number: usize) -> String {
    format!("load-{number}")
}

/// A line of the bulk call. It is also a body of the single call, which ignores unknown fields.
fn chat(channel: &str) -> String {
    json!({ "kind": "chat", "channelId": channel, "senderChannelId": VIEWER, "message": "one of many" })
        .to_string()
}

/// Creates the channels that the call needs.
async fn make_channels(origin: &Origin, operator_key: &str, clock: Clock) -> Result<(), String> {
    let authorization = format!("Bearer {operator_key}");
    let headers = [("Authorization", authorization.as_str())];
    let ids = (0..CHANNELS).map(channel).chain([VIEWER.to_owned()]);
    let line = |id| json!({ "kind": "channel", "channelId": id, "channelName": id }).to_string();
    let body = ids.map(line).collect::<Vec<_>>().join("\n");
    let call = Call { method: "POST", path: EVENTS, headers: &headers, body: Body::Json(&body) };
    let answer = Client::new(origin.clone(), clock).call(&call).await.map_err(|broken| broken.kind())?;
    match answer.content()?["refusedCount"].as_u64() {
        Some(0) => Ok(()),
        _ => Err("the channels were not made".to_owned()),
    }
}

fn access_token(user: &Value) -> Option<&str> {
    match user {
        Value::Object(fields) => fields
            .get("accessToken")
            .and_then(Value::as_str)
            .or_else(|| fields.values().find_map(access_token)),
        Value::Array(items) => items.iter().find_map(access_token),
        _ => None,
    }
}

fn origin(world: &Value) -> Result<Origin, String> {
    place(world, "baseUrl")
}

fn place(world: &Value, name: &str) -> Result<Origin, String> {
    let url = world[name].as_str().ok_or_else(|| format!("the first line has no {name}"))?;
    Ok(Origin::split(url)?.0)
}

/// Starts the baseline with the channel's id and name, and checks that its answer equals the service's.
async fn start_baseline(
    program: &PathBuf,
    ours: &Origin,
    token: &str,
    clock: Clock,
) -> Result<(Spawned, Origin), String> {
    let authorization = format!("Bearer {token}");
    let headers = [("Authorization", authorization.as_str())];
    let call = Call { method: "GET", path: "/open/v1/users/me", headers: &headers, body: Body::Nothing };
    let answer = Client::new(ours.clone(), clock).call(&call).await.map_err(|broken| broken.kind())?;
    let me = answer.content()?;
    let mut command = Command::new(program);
    command.args([&me["channelId"], &me["channelName"]].map(|text| text.as_str().unwrap_or_default()));
    let (spawned, line) =
        Spawned::start(command).map_err(|problem| format!("{}: {problem}", program.display()))?;
    let described: Value =
        serde_json::from_str(&line).map_err(|_| "the baseline prints no JSON".to_owned())?;
    let origin = origin(&described)?;
    let theirs = Client::new(origin.clone(), clock).call(&call).await.map_err(|broken| broken.kind())?;
    if theirs.body != answer.body {
        return Err("the baseline answers other bytes than the service".to_owned());
    }
    Ok((spawned, origin))
}

/// The counters that the connections of a round share.
#[derive(Default)]
struct Counts {
    times: Times,
    failed: u64,
}

async fn round(
    options: &RestOptions,
    origin: &Origin,
    requests: &Rc<Vec<Vec<u8>>>,
    probe: Probe,
    clock: Clock,
) -> Result<RestRound, String> {
    let counts = Rc::new(RefCell::new(Counts::default()));
    let begin = clock.now() + WARM_UP_NS;
    let end = begin + u64::from(options.duration) * SECOND_NS;
    let mut connections = JoinSet::new();
    let started = clock.now();
    for number in 0..options.connections {
        let stream = TcpStream::connect(origin.address).await;
        let stream = stream.map_err(|error| format!("{}: {error}", origin.address))?;
        let _ = stream.set_nodelay(true);
        let counts = counts.clone();
        let turns = Turns {
            requests: requests.clone(),
            turn: number.into(),
            step: options.connections.into(),
            schedule: options.rate.map(|rate| (started, SECOND_NS as f64 / f64::from(rate))),
            end,
            clock,
        };
        connections.spawn_local(async move {
            if call_until((begin, end), stream, turns, &counts, clock).await.is_none() {
                counts.borrow_mut().failed += 1;
            }
        });
    }
    tokio::time::sleep(Duration::from_nanos(begin.saturating_sub(clock.now()))).await;
    let cpu = probe.cpu();
    tokio::time::sleep(Duration::from_nanos(end.saturating_sub(clock.now()))).await;
    let cpu = probe.cpu().zip(cpu).map(|(after, before)| after - before);
    let all = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(ROUND_GRACE, all).await.map_err(|_| "some calls were never answered".to_owned())?;
    let counts = counts.borrow();
    let call = counts.times.summary();
    let calls_per_second = call.count as f64 / seconds(end - begin);
    let cpu_us_per_call = cpu.map(|cpu| cpu * 1e6 / call.count.max(1) as f64);
    Ok(RestRound { calls_per_second, call, failed: counts.failed, cpu_us_per_call })
}

/// The calls of one connection, which takes every n-th call of all connections.
struct Turns {
    requests: Rc<Vec<Vec<u8>>>,
    /// The number of the next call.
    turn: usize,
    step: usize,
    /// The due time of call 0, and the nanoseconds between two calls.
    schedule: Option<(Nanos, f64)>,
    end: Nanos,
    clock: Clock,
}

impl Turns {
    /// Waits until the next call is due. Returns the call and the time from which its latency counts: the due
    /// time, if an earlier call took too long. Delays of the system's timers do not count.
    async fn next(&mut self) -> Option<(Nanos, &[u8])> {
        let turn = self.turn;
        self.turn += self.step;
        let mut called = self.clock.now();
        if let Some((first, apart)) = self.schedule {
            let due = first + (apart * turn as f64) as Nanos;
            if due > called {
                tokio::time::sleep(Duration::from_nanos(due - called)).await;
                called = self.clock.now();
            } else {
                called = due;
            }
        }
        (called < self.end).then(|| (called, &self.requests[turn % self.requests.len()][..]))
    }
}

/// Returns `None` if the connection broke. Calls that end between `begin` and `end` count.
async fn call_until(
    (begin, end): (Nanos, Nanos),
    mut stream: TcpStream,
    mut turns: Turns,
    counts: &RefCell<Counts>,
    clock: Clock,
) -> Option<()> {
    let mut buffer = vec![0; HEAD_BYTES_MAX];
    while let Some((called, request)) = turns.next().await {
        stream.write_all(request).await.ok()?;
        let mut filled = 0;
        let good = loop {
            match stream.read(&mut buffer[filled..]).await {
                Ok(0) | Err(_) => return None,
                Ok(more) => filled += more,
            }
            if let Some((good, length)) = answer_in(&buffer[..filled])
                && filled >= length
            {
                break good;
            }
        };
        let answered = clock.now();
        if (begin..end).contains(&answered) {
            let mut counts = counts.borrow_mut();
            counts.times.record(called, answered);
            counts.failed += u64::from(!good);
        }
    }
    Some(())
}

/// Whether the answer is a success, and its length including the head; `None` while the head is incomplete.
fn answer_in(bytes: &[u8]) -> Option<(bool, usize)> {
    const LENGTH: &[u8] = b"content-length: ";
    let head = memchr::memmem::find(bytes, b"\r\n\r\n")?;
    let length = memchr::memmem::find(&bytes[..head], LENGTH)? + LENGTH.len();
    let digits = bytes[length..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    Some((bytes.starts_with(b"HTTP/1.1 200"), head + 4 + length))
}

impl Side {
    fn conclude(&mut self) {
        self.calls_per_second = median(self.rounds.iter().map(|round| round.calls_per_second));
        let cpu: Vec<_> = self.rounds.iter().filter_map(|round| round.cpu_us_per_call).collect();
        self.cpu_us_per_call = (!cpu.is_empty()).then(|| median(cpu.into_iter()));
    }

    fn text(&self, name: &str) -> String {
        let line = |round: &RestRound| {
            let RestRound { calls_per_second, call, failed, .. } = round;
            let cpu = round.cpu_us_per_call.map_or_else(String::new, |us| format!(", CPU {us:.1} us"));
            let Summary { p50_ms, p99_ms, .. } = call;
            format!(
                "  {name}: {calls_per_second:.0} calls/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms{cpu}, {failed} failed\n"
            )
        };
        self.rounds.iter().map(line).collect()
    }
}

impl RestReport {
    fn text(&self) -> String {
        let mut text = format!("{} on {} connections\n", self.target, self.connections);
        text += &self.server.text("server");
        if let (Some(baseline), Some(ratio)) = (&self.baseline, self.ratio) {
            text += &baseline.text("baseline");
            text += &format!("  ratio of the medians: {ratio:.2}\n");
        }
        text
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_recognized_by_its_head() {
        let bytes = b"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 12\r\n\r\nhello";
        assert_eq!(answer_in(bytes), Some((true, bytes.len() + 7)));
        assert_eq!(answer_in(&bytes[..30]), None);
        assert_eq!(answer_in(b"HTTP/1.1 401 U\r\ncontent-length: 0\r\n\r\n"), Some((false, 37)));
    }

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median(std::iter::empty()), 0.0);
    }

    #[test]
    fn the_first_token_of_a_world_is_found() {
        let user = serde_json::json!({ "login": "a", "tokens": [{ "accessToken": "t" }] });
        assert_eq!(access_token(&user), Some("t"));
        assert_eq!(access_token(&serde_json::json!({ "login": "a" })), None);
    }
}
