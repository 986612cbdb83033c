//! `stagedoor-load worlds`: how long the worlds of a sandbox take to begin and to go back, and their memory.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::{Clock, Nanos, SECOND_NS};
use crate::http::{Body, Call, Client, Origin};
use crate::process::Memory;
use crate::server::Spawned;

/// Maximum time of a snapshot, a restore, a fork and a reset, in milliseconds.
const GO_BACK_MAX_MS: f64 = 100.0;
/// Maximum time of a new world, in milliseconds.
const CREATE_MAX_MS: f64 = 150.0;
/// Maximum memory of a world, in bytes.
const MEMORY_MAX: u64 = 8 * 1024 * 1024;
const MILLISECOND_NS: f64 = SECOND_NS as f64 / 1_000.0;
const WORLDS: &str = "/sandbox/v1/worlds";

const ABOUT: &str =
    "Makes worlds in a sandbox, lets a filled one go back, and measures their time and memory.";
const MANUAL: &str = "\
  The load starts its own sandbox. It imports a world with --rows rows (people, follows, subscriptions, messages, tokens), and lets it go back
  --rounds times. Then it makes --worlds further worlds, which run at the same time:

    target/release/stagedoor-load worlds --spawn target/release/stagedoor

  A time counts from the call to its answer. The memory of a world is its share of what the process grew by (PSS). The exit status is 1 when
  a figure is above its limit.";

/// The options.
#[derive(Args, Debug)]
#[command(about = ABOUT, after_help = MANUAL)]
pub(crate) struct WorldsOptions {
    /// The server: starts this program on a free port, and stops it at the end.
    #[arg(long, value_name = "STAGEDOOR")]
    spawn: PathBuf,

    /// Number of rows of the filled world.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    rows: u32,

    /// Number of further worlds.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=50))]
    worlds: u16,

    /// Number of times that the filled world goes back.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,

    /// Prints the report as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The times of a kind of call, in milliseconds.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct CallTimes {
    median_ms: f64,
    max_ms: f64,
    limit_ms: f64,
}

/// The results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorldsReport {
    rows: usize,
    import_ms: f64,
    snapshot: CallTimes,
    restore: CallTimes,
    fork: CallTimes,
    reset: CallTimes,
    worlds: u16,
    create: CallTimes,
    /// Memory of a world, in bytes.
    memory_each: Option<u64>,
    is_within_limits: bool,
}

/// The sandbox under load.
struct Host {
    client: Client,
    clock: Clock,
    authorization: String,
}

impl Host {
    /// Makes a call, and returns the content of its answer and the milliseconds that it took.
    async fn call(&mut self, method: &str, path: &str, body: Body<'_>) -> Result<(Value, f64), String> {
        let headers = [("Authorization", self.authorization.as_str())];
        let path = format!("{WORLDS}{path}");
        let began = self.clock.now();
        let call = Call { method, path: &path, headers: &headers, body };
        let answer = self.client.call(&call).await.map_err(|error| format!("{path}: {}", error.kind()))?;
        let took = milliseconds(self.clock.now() - began);
        let content = answer.content().map_err(|problem| {
            format!("{method} {path}: {problem}: {}", String::from_utf8_lossy(&answer.body))
        })?;
        Ok((content, took))
    }

    async fn post(&mut self, path: &str, body: &Value) -> Result<f64, String> {
        Ok(self.call("POST", path, Body::Json(&body.to_string())).await?.1)
    }
}

/// Runs the load. The report is an error when a figure is above its limit.
///
/// # Errors
/// A sentence, or the report.
pub(crate) async fn run(options: &WorldsOptions) -> Result<String, String> {
    let clock = Clock::start();
    let mut command = Command::new(&options.spawn);
    // A name of its own leaves the names of other sandboxes alone.
    let name = format!("load-{}", std::process::id());
    command.args(["dev", "--json", "--listen", "127.0.0.1:0", "--log", "warn", "--name", &name]);
    let (server, line) = Spawned::start(command)?;
    let started: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    let text = |name: &str| started[name].as_str().unwrap_or_default();
    let (origin, _) = Origin::split(text("baseUrl"))?;
    let authorization = format!("Bearer {}", text("operatorKey"));
    let mut host = Host { client: Client::new(origin, clock), clock, authorization };
    let report = measure(options, &mut host, server.pid()).await;
    server.stop(clock)?;
    let report = report?;
    let shown = if options.json {
        serde_json::to_string(&report).map_err(|error| error.to_string())? + "\n"
    } else {
        report.text()
    };
    if report.is_within_limits { Ok(shown) } else { Err(format!("a figure is above its limit\n{shown}")) }
}

async fn measure(options: &WorldsOptions, host: &mut Host, pid: u32) -> Result<WorldsReport, String> {
    let (file, rows) = filled(options.rows);
    let import_ms = host.post("/import?name=filled", &file).await?;
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..options.rounds {
        times[0].push(host.post("/filled/snapshots", &json!({ "name": "before" })).await?);
        times[1].push(host.post("/filled/restore", &json!({ "snapshot": "before" })).await?);
        times[2].push(host.post("", &json!({ "name": "fork", "from": "before" })).await?);
        host.call("DELETE", "/fork", Body::Nothing).await?;
        times[3].push(host.post("/filled/reset", &json!({})).await?);
    }
    host.call("DELETE", "/filled", Body::Nothing).await?;
    // The first world makes the template of the others.
    host.post("", &json!({ "name": "first" })).await?;
    host.call("DELETE", "/first", Body::Nothing).await?;
    let before = Memory::of(pid).and_then(|memory| memory.pss);
    let mut created = Vec::new();
    for number in 0..options.worlds {
        created.push(host.post("", &json!({ "name": format!("w{number}") })).await?);
    }
    let after = Memory::of(pid).and_then(|memory| memory.pss);
    let grown = after.zip(before).map(|(after, before)| after.saturating_sub(before));
    let memory_each = grown.map(|grown| grown / u64::from(options.worlds));
    let [snapshot, restore, fork, reset] = times.map(|times| CallTimes::of(times, GO_BACK_MAX_MS));
    let create = CallTimes::of(created, CREATE_MAX_MS);
    let all = [&snapshot, &restore, &fork, &reset, &create];
    let is_within_limits = all.iter().all(|times| times.max_ms <= times.limit_ms)
        && memory_each.is_none_or(|bytes| bytes <= MEMORY_MAX);
    Ok(WorldsReport {
        rows,
        import_ms,
        snapshot,
        restore,
        fork,
        reset,
        worlds: options.worlds,
        create,
        memory_each,
        is_within_limits,
    })
}

/// A world file of about `rows` rows, and their number.
fn filled(rows: u32) -> (Value, usize) {
    let time = |second: u32| {
        let (hour, minute) = (second / 3_600 % 24, second / 60 % 60);
        format!("2026-01-{:02}T{hour:02}:{minute:02}:{:02}Z", 1 + second / 86_400, second % 60)
    };
    let id = |number: u32| format!("person-{number}");
    // Of each ten rows one is a person, one a subscription, three are follows, four messages, one is a token.
    let people = (rows / 10).max(1);
    let other = |number: u32, step: u32| id((number + step) % people);
    let each = |count: u32| 0..count;
    let persons: Vec<_> =
        each(people).map(|n| json!({ "channelId": id(n), "channelName": format!("Person {n}") })).collect();
    let follows: Vec<_> = each(people)
        .flat_map(|n| [1, 2, 3].map(|step| (n, step)))
        .filter(|(_, step)| *step < people)
        .map(|(n, step)| {
            json!({ "channelId": id(n), "followerChannelId": other(n, step), "createdDate": time(n) })
        })
        .collect();
    let subscriptions: Vec<_> = each(people)
        .filter(|_| people > 1)
        .map(|n| json!({ "channelId": id(n), "subscriberChannelId": other(n, 1), "createdDate": time(n) }))
        .collect();
    let messages: Vec<_> = each(people * 4)
        .map(|n| {
            let (of, text) = (id(n % people), format!("message {n}"));
            json!({ "channelId": of, "senderChannelId": of, "content": text, "messageTime": time(n) })
        })
        .collect();
    let tokens: Vec<_> = each(people)
        .map(|n| {
            let (access, refresh) = (format!("access-token-of-{n:08}"), format!("refresh-token-of-{n:08}"));
            json!({ "channelId": id(n), "clientId": "bot", "accessToken": access, "refreshToken": refresh })
        })
        .collect();
    let rows = [&persons, &follows, &subscriptions, &messages, &tokens].iter().map(|list| list.len()).sum();
    let application = json!({ "clientId": "bot", "redirectUris": ["http://localhost:3000/callback"] });
    let file = json!({
        "people": persons, "applications": [application], "follows": follows, "subscriptions": subscriptions,
        "messages": messages, "tokens": tokens, "furtherTokens": false,
    });
    (file, rows)
}

impl CallTimes {
    fn of(mut times: Vec<f64>, limit_ms: f64) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |place: usize| times.get(place).copied().unwrap_or_default();
        Self { median_ms: at(times.len() / 2), max_ms: at(times.len().saturating_sub(1)), limit_ms }
    }
}

impl WorldsReport {
    fn text(&self) -> String {
        let mut text = format!("a world of {} rows, imported in {:.0} ms\n", self.rows, self.import_ms);
        let rows = [
            ("snapshot", &self.snapshot),
            ("restore", &self.restore),
            ("fork", &self.fork),
            ("reset", &self.reset),
            ("new world", &self.create),
        ];
        for (name, CallTimes { median_ms, max_ms, limit_ms }) in rows {
            // Writing into a String cannot fail.
            let _ = writeln!(
                text,
                "  {name:<10} median {median_ms:7.1} ms   maximum {max_ms:7.1} ms   limit {limit_ms:.0} ms"
            );
        }
        if let Some(bytes) = self.memory_each {
            let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
            let _ = writeln!(
                text,
                "  memory of each of {} worlds {:.2} MiB   limit {:.0} MiB",
                self.worlds,
                mib(bytes),
                mib(MEMORY_MAX)
            );
        }
        text
    }
}

fn milliseconds(nanos: Nanos) -> f64 {
    nanos as f64 / MILLISECOND_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_world_has_the_wanted_number_of_rows() {
        for wanted in [10, 100, 10_000] {
            let (_, rows) = filled(wanted);
            assert!(rows.abs_diff(wanted as usize) <= 4, "{rows} instead of {wanted}");
        }
    }

    #[test]
    fn times_have_a_median_and_a_maximum() {
        let times = CallTimes::of(vec![3.0, 1.0, 2.0], 5.0);
        assert_eq!((times.median_ms, times.max_ms, times.limit_ms), (2.0, 3.0, 5.0));
    }
}
