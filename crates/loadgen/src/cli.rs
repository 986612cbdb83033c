//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::http::Origin;
use crate::plan::applications;
use crate::publish::Pace;
use crate::rest;
use crate::webhooks;
use crate::worlds;

const ABOUT: &str =
    "Opens many realtime sessions to a running Stagedoor and measures their cost and their events.";

const MANUAL: &str = "\
WHAT IT DOES
  The program creates people and applications through the platform API, signs the streamers in and consents like a
  browser, fetches a session URL for each session, connects the session (Engine.IO 3 over websocket) and subscribes it.
  Then it waits (--idle), publishes (--rate or --publish), or both. It reports the rate of connects, the rate and latency
  of events, the latency of publish calls, and the memory and CPU of the server.

  Each message contains a number. A missing, duplicate, disordered, misplaced or malformed message is reported as a
  violation. Failed calls and lost sessions are reported, too.

LIMITS
  An application may have 10 sessions, so 10,000 sessions need 1,000 applications, and every pair of application and
  streamer needs a consent: the set-up takes a while. The server must run without rate limits (--no-quota).
  A process may have `ulimit -n` open files: this program needs one for each session and some more, and so does the
  server. Beyond 20,000 sessions they use several source addresses of 127.0.1.0/24, because one has too few ports.

WHAT THE FIGURES MEAN
  Memory is the user-space memory of the server, before the first session and after the last one, without the kernel's
  socket buffers. A server of --spawn is restarted after the set-up. Otherwise the sessions would reuse memory that the
  hashing of passwords has freed, and seem to cost nothing. With --world this happens, so use --spawn to measure memory.
  Latency is from the publish call to the receipt. With --rate, a call that is late because an earlier one took long
  counts from its due time.
  CPU is user and system time of the server, in steps of 10 ms. With --peer a session is connected when it is in the root
  namespace, and the order of messages is only checked for each publisher. Otherwise the load is the same.

EXIT STATUS
  0: no errors; 1: the load could not run; 2: it ran, but calls failed, sessions were lost or promises were broken.

EXAMPLES
  The cost of 10,000 idle sessions with three subscriptions each, on a new server:

    cargo build --release && ulimit -n 11000
    target/release/stagedoor-load --spawn target/release/stagedoor --sessions 10000 --subscriptions 3 --idle 60

  One hot channel with 1,000 sessions and 200 messages a second (200,000 deliveries), on a running server:

    target/release/stagedoor dev --no-sandbox --json --no-quota > world.json &
    target/release/stagedoor-load --world world.json --pid $! --sessions 1000 --rate 200 --duration 30 --json";

/// The call that publishes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Via {
    /// POST /platform/v1/channels/{id}/chats, with a viewer's message.
    Platform,
    /// POST /open/v1/chats/send, with the streamer's token.
    Open,
}

/// The options.
#[derive(Debug, Parser)]
#[command(name = "stagedoor-load", version, about = ABOUT, after_help = MANUAL, max_term_width = 120)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Cli {
    /// A load of another kind.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// A file with the first line of `stagedoor dev --json`; `-` reads standard input.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["spawn", "peer"], conflicts_with = "spawn")]
    pub(crate) world: Option<PathBuf>,

    /// Another server than Stagedoor with the same function, as bench/README.md describes: http://host:port.
    /// Its sessions need no set-up and are in their channel from the start.
    #[arg(long, value_name = "URL", conflicts_with_all = ["world", "spawn", "via"], value_parser = peer)]
    pub(crate) peer: Option<Origin>,

    /// The process id of the server in --world or --peer, for measuring its memory and CPU.
    #[arg(long, conflicts_with = "spawn", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,

    /// Starts this program as `dev --no-sandbox --json --no-quota` on a free port with a temporary folder,
    /// restarts it after the set-up, and stops it at the end.
    #[arg(long, value_name = "STAGEDOOR")]
    pub(crate) spawn: Option<PathBuf>,

    /// The database of --spawn: postgres://user:password@host/database. Default: SQLite. Better set by
    /// STAGEDOOR_DATABASE_URL, which the server reads itself, and which keeps the password out of the list of
    /// processes.
    #[arg(long, value_name = "URL", conflicts_with_all = ["world", "pid", "peer"])]
    pub(crate) database_url: Option<String>,

    /// Number of sessions.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) sessions: u32,

    /// Number of streamers, over whose channels the sessions are spread.
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) channels: u32,

    /// Number of event types that each session subscribes to: chat, then donations, then subscriptions.
    #[arg(long, value_name = "0..3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=3))]
    pub(crate) subscriptions: u8,

    /// Channels that each session subscribes to, its own first. Each event is published only to one of them.
    #[arg(long, value_name = "1..10", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=10))]
    pub(crate) channels_each: u8,

    /// Fetches all session URLs before the first session is opened, so that both are measured separately.
    #[arg(long)]
    pub(crate) urls_first: bool,

    /// Maximum number of concurrent handshakes, and of concurrent subscribe calls.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    pub(crate) connect_concurrency: u16,

    /// Threads that hold sockets. One is enough unless it is the bottleneck; see `client CPU` in the report.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,

    /// Seconds without load except pings, while CPU is measured.
    #[arg(long, value_name = "SECS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub(crate) idle: u32,

    /// Messages published per second, or `max` for as many as the server accepts. Each is delivered to every
    /// session of its channel.
    #[arg(long, value_name = "EVENTS_PER_S", value_parser = rate)]
    rate: Option<Rate>,

    /// Messages to publish after the warm-up. Without --rate, as fast as the server accepts them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) publish: Option<u64>,

    /// Number of publishers, each with one call in flight.
    #[arg(long, value_name = "K", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    pub(crate) publishers: u16,

    /// The call that publishes.
    #[arg(long, value_enum, default_value = "platform")]
    pub(crate) via: Via,

    /// Messages of one call. More than 1 are sent to POST /platform/v1/events, one on each line.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) batch: u16,

    /// Maximum seconds of publishing.
    #[arg(long, value_name = "SECS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) duration: u32,

    /// Seconds of publishing before the measurement.
    #[arg(long, value_name = "SECS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=3_600))]
    pub(crate) warm_up: u32,

    /// Maximum number of outstanding deliveries without a rate.
    #[arg(long, value_name = "DELIVERIES", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: u64,

    /// Seconds to wait after all sessions have left, before the last reading of memory.
    #[arg(long, value_name = "SECS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=3_600))]
    pub(crate) after_closing: u32,

    /// Seconds after which the run is aborted.
    #[arg(long, value_name = "SECS", default_value_t = 1_800, value_parser = clap::value_parser!(u32).range(1..=172_800))]
    pub(crate) give_up: u32,

    /// Prints the report as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Prints no progress on stderr.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Loads of other kinds.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One REST call, as fast as the server answers.
    Rest(rest::RestOptions),
    /// Claims, and the delivery of their webhooks.
    Webhooks(webhooks::WebhookOptions),
    /// The worlds of a sandbox: the time and the memory that they take.
    Worlds(worlds::WorldsOptions),
}

/// `--rate`
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    PerSecond(f64),
    Max,
}

/// Maximum rate of one process, in messages a second.
const RATE_MAX: f64 = 1_000_000.0;

fn peer(url: &str) -> Result<Origin, String> {
    let (origin, rest) = Origin::split(url)?;
    if matches!(rest, "" | "/") { Ok(origin) } else { Err(format!("{rest} is more than a server")) }
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    let rate = text.parse().ok().filter(|rate| (0.001..=RATE_MAX).contains(rate));
    rate.map(Rate::PerSecond).ok_or_else(|| format!("a number from 0.001 to {RATE_MAX}, or max"))
}

impl Cli {
    /// Checks rules about several options.
    ///
    /// # Errors
    /// A sentence that names the options.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.channels > self.sessions {
            return Err("--channels: more than --sessions, so some channels would have no session".to_owned());
        }
        if self.pace().is_some() && self.subscriptions == 0 {
            return Err("--rate and --publish need --subscriptions of at least 1".to_owned());
        }
        if u32::from(self.channels_each) > self.channels {
            return Err("--channels-each: more than there are --channels".to_owned());
        }
        if self.channels_each > 1 && (self.pace().is_some() || self.peer.is_some()) {
            return Err(
                "--channels-each: only for sessions of Stagedoor that nothing is published to".to_owned()
            );
        }
        if self.batch > 1 && self.via == Via::Open {
            return Err("--batch: only the platform API takes several messages in one call".to_owned());
        }
        Ok(())
    }

    /// The pace of publishing, if any.
    pub(crate) fn pace(&self) -> Option<Pace> {
        match (self.rate, self.publish) {
            (Some(Rate::PerSecond(rate)), _) => Some(Pace::PerSecond(rate)),
            (Some(Rate::Max), _) | (None, Some(_)) => Some(Pace::Window(self.window)),
            (None, None) => None,
        }
    }

    /// Maximum number of open files of this process: a socket for each session, two connections for each
    /// opener, a connection for each publisher, and a reserve.
    pub(crate) fn files_needed(&self) -> u64 {
        const OTHERS: u64 = 64;
        u64::from(self.sessions)
            + 2 * u64::from(self.connect_concurrency)
            + u64::from(self.publishers)
            + OTHERS
    }

    /// The requested load, in one line.
    pub(crate) fn summary(&self) -> String {
        let Self { sessions, channels, subscriptions, channels_each, .. } = self;
        if self.peer.is_some() {
            return format!("{sessions} sessions on {channels} channels of a peer");
        }
        let applications = applications(*sessions);
        let subscriptions = u32::from(*subscriptions) * u32::from(*channels_each);
        format!(
            "{sessions} sessions of {applications} applications on {channels} channels, {subscriptions} subscriptions each"
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &str) -> Result<Cli, String> {
        let words = std::iter::once("stagedoor-load").chain(arguments.split_whitespace());
        let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        cli.check().map(|()| cli)
    }

    #[test]
    fn the_options_fit_together_and_the_manual_has_two_examples() {
        Cli::command().debug_assert();
        let manual = Cli::command().render_long_help().to_string();
        assert_eq!(manual.matches("target/release/stagedoor-load --").count(), 2);
    }

    #[test]
    fn invalid_options_are_refused_by_name() {
        for (arguments, named) in [
            ("", "--world"),
            ("--world w --spawn s", "--spawn"),
            ("--spawn s --pid 5", "--pid"),
            ("--world w --pid 0", "--pid"),
            ("--world w --database-url postgres://h/d", "--database-url"),
            ("--world w --sessions 0", "--sessions"),
            ("--world w --sessions 10 --channels 11", "--channels"),
            ("--world w --subscriptions 4", "--subscriptions"),
            ("--world w --subscriptions 0 --rate 5", "--subscriptions"),
            ("--world w --subscriptions 0 --publish 5", "--subscriptions"),
            ("--world w --rate 0", "--rate"),
            ("--world w --rate NaN", "--rate"),
            ("--world w --rate inf", "--rate"),
            ("--world w --publish 0", "--publish"),
            ("--world w --publishers 0", "--publishers"),
            ("--world w --threads 0", "--threads"),
            ("--world w --duration 0", "--duration"),
            ("--world w --via smoke", "--via"),
            ("--world w --peer http://127.0.0.1:1", "--peer"),
            ("--peer http://127.0.0.1:1/x", "--peer"),
            ("--peer http://127.0.0.1:1 --via open", "--via"),
            ("--peer http://127.0.0.1:1 --channels 2 --channels-each 2", "--channels-each"),
            ("--world w --channels-each 2", "--channels-each"),
            ("--world w --channels 2 --channels-each 2 --rate 5", "--channels-each"),
            ("--world w --channels 11 --channels-each 11", "--channels-each"),
            ("--world w --rate 5 --via open --batch 2", "--batch"),
            ("--world w --rate 5 --batch 0", "--batch"),
        ] {
            let problem = parse(arguments).err().unwrap_or_else(|| panic!("{arguments} was taken"));
            assert!(problem.contains(named), "{arguments}: {problem}");
        }
    }

    #[test]
    fn the_pace_follows_from_rate_and_publish() {
        let pace = |arguments: &str| parse(&format!("--world w {arguments}")).unwrap().pace();
        assert_eq!(pace(""), None);
        assert_eq!(pace("--rate 12.5"), Some(Pace::PerSecond(12.5)));
        assert_eq!(pace("--rate 5 --publish 10"), Some(Pace::PerSecond(5.0)));
        assert_eq!(pace("--publish 10"), Some(Pace::Window(20_000)));
        assert_eq!(pace("--rate max --window 7"), Some(Pace::Window(7)));
    }

    #[test]
    fn every_session_needs_a_file() {
        let files = |sessions| parse(&format!("--world w --sessions {sessions}")).unwrap().files_needed();
        assert_eq!(files(10_000) - files(1_000), 9_000);
        assert!(files(1) > 64 * 2 + 8);
    }
}
