//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::http::Origin;
use crate::plan::applications;
use crate::publish::Pace;
use crate::rest;
use crate::webhooks;

const ABOUT: &str =
    "Opens many realtime sessions to a running Stagedoor and measures what they cost and what they get.";

const MANUAL: &str = "\
WHAT IT DOES
  It makes the people and applications that it needs through the platform API, signs the streamers in and lets them
  consent as a browser would, fetches a session URL for each session, connects it (Engine.IO 3 over websocket), subscribes
  it, and then waits (--idle), publishes (--rate or --publish), or both. It reports how fast sessions connect, how fast
  and how late events arrive, what publish calls take, and what the server pays for it in memory and CPU.

  Each message carries a number. Whatever is missing, doubled, out of order, on the wrong channel or badly written is a
  violation and is reported, as are failed calls and lost sessions.

LIMITS
  An application may have 10 sessions, so 10,000 sessions need 1,000 applications, and every pair of application and
  streamer needs a consent: the set-up takes a while. The server must run without rate limits (--no-quota).
  A process may have `ulimit -n` open files: this program needs one for each session and some more, and so does the
  server. Beyond 20,000 sessions they come from several addresses of 127.0.1.0/24, as ports would run out.

WHAT THE FIGURES MEAN
  Memory is that of the server in user space, once before the first session and once after; the kernel's socket buffers
  are not in it. A server of --spawn is started anew after the set-up, or the sessions would fill what the hashing of
  passwords left free in its heap and seem to cost nothing. With --world that is what happens: use it for the rest.
  Latency is from the publish call to the receipt. With --rate, a call that is late because the one before it took long
  counts from when it was due.
  CPU is user and system time of the server, in steps of 10 ms. With --peer a session is connected when it is in the root
  namespace, and the order of messages is not looked at across publishers; everything else is the same load.

EXIT STATUS
  0 all went well; 1 the load could not be run; 2 it ran, but calls failed, sessions were lost or promises were broken.

EXAMPLES
  What 10,000 idle sessions with three subscriptions each cost, on a server of its own:

    cargo build --release && ulimit -n 11000
    target/release/stagedoor-load --spawn target/release/stagedoor --sessions 10000 --subscriptions 3 --idle 60

  One hot channel with 1,000 sessions at 200 messages, so 200,000 deliveries, a second, on a server that runs already:

    target/release/stagedoor dev --json --no-quota > world.json &
    target/release/stagedoor-load --world world.json --pid $! --sessions 1000 --rate 200 --duration 30 --json";

/// Whose name the messages are published in, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Via {
    /// POST /platform/v1/channels/{id}/chats, as a viewer's message.
    Platform,
    /// POST /open/v1/chats/send, by the streamer's token.
    Open,
}

/// The options.
#[derive(Debug, Parser)]
#[command(name = "stagedoor-load", version, about = ABOUT, after_help = MANUAL, max_term_width = 120)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Cli {
    /// Another load than sessions.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// A file whose first line is that of `stagedoor dev --json`; `-` reads standard input.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["spawn", "peer"], conflicts_with = "spawn")]
    pub(crate) world: Option<PathBuf>,

    /// A server that is no Stagedoor and does the same job for whoever asks, as bench/README.md describes:
    /// http://host:port. Its sessions need no set-up and are in their channel from the start.
    #[arg(long, value_name = "URL", conflicts_with_all = ["world", "spawn", "via"], value_parser = peer)]
    pub(crate) peer: Option<Origin>,

    /// The process id of the server in --world or --peer, to measure its memory and CPU.
    #[arg(long, conflicts_with = "spawn", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,

    /// Starts this program as `dev --json --no-quota` on a free port with a temporary folder, starts it anew
    /// after the set-up, and stops it at the end.
    #[arg(long, value_name = "STAGEDOOR")]
    pub(crate) spawn: Option<PathBuf>,

    /// The database of --spawn: postgres://user:password@host/database. Default: its own SQLite. Better given
    /// as STAGEDOOR_DATABASE_URL, which the server reads itself and no list of processes shows.
    #[arg(long, value_name = "URL", conflicts_with_all = ["world", "pid", "peer"])]
    pub(crate) database_url: Option<String>,

    /// Sessions to open.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) sessions: u32,

    /// Streamers whose channels the sessions are spread over.
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) channels: u32,

    /// Kinds of events that each session subscribes to: chat, then donations, then subscriptions.
    #[arg(long, value_name = "0..3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=3))]
    pub(crate) subscriptions: u8,

    /// Channels that each session subscribes to, its own first; events are published only where it is one.
    #[arg(long, value_name = "1..10", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=10))]
    pub(crate) channels_each: u8,

    /// Fetches all session URLs before the first session is opened, so that the two can be told apart.
    #[arg(long)]
    pub(crate) urls_first: bool,

    /// Sessions being opened at once, and subscribe calls under way at once.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    pub(crate) connect_concurrency: u16,

    /// Threads that hold sockets. One is enough unless it is the bottleneck; see `client CPU` in the report.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,

    /// Seconds to do nothing but ping, while CPU is measured.
    #[arg(long, value_name = "SECS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=86_400))]
    pub(crate) idle: u32,

    /// Messages to publish a second, or `max` for as many as the server takes. Each is delivered to every
    /// session of its channel.
    #[arg(long, value_name = "EVENTS_PER_S", value_parser = rate)]
    rate: Option<Rate>,

    /// Messages to publish, after the warm-up; without --rate as fast as the server takes them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) publish: Option<u64>,

    /// Publishers, each with one call under way.
    #[arg(long, value_name = "K", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    pub(crate) publishers: u16,

    /// Which call publishes.
    #[arg(long, value_enum, default_value = "platform")]
    pub(crate) via: Via,

    /// Messages of one call: more than 1 go to POST /platform/v1/events, a line each.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) batch: u16,

    /// Seconds to publish, at most.
    #[arg(long, value_name = "SECS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) duration: u32,

    /// Seconds of publishing that come before and do not count.
    #[arg(long, value_name = "SECS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=3_600))]
    pub(crate) warm_up: u32,

    /// Deliveries that may be outstanding when there is no rate to keep.
    #[arg(long, value_name = "DELIVERIES", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: u64,

    /// Seconds to wait after all sessions are left, before memory is read for the last time.
    #[arg(long, value_name = "SECS", default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=3_600))]
    pub(crate) after_closing: u32,

    /// Seconds after which everything is given up, whatever is under way.
    #[arg(long, value_name = "SECS", default_value_t = 1_800, value_parser = clap::value_parser!(u32).range(1..=172_800))]
    pub(crate) give_up: u32,

    /// Prints the report as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Says nothing on stderr while it runs.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Loads of other kinds.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One REST call, as fast as the server answers.
    Rest(rest::RestOptions),
    /// Claims, and the webhooks that hear of them.
    Webhooks(webhooks::WebhookOptions),
}

/// `--rate`
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    PerSecond(f64),
    Max,
}

/// Messages a second that one process can be asked for.
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
    /// What no single option can tell.
    ///
    /// # Errors
    /// A sentence that names the options.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.channels > self.sessions {
            return Err("--channels: more than --sessions, so some would have nobody to hear them".to_owned());
        }
        if self.pace().is_some() && self.subscriptions == 0 {
            return Err(
                "--rate and --publish need --subscriptions of at least 1, or nobody hears them".to_owned()
            );
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

    /// How to publish, if at all.
    pub(crate) fn pace(&self) -> Option<Pace> {
        match (self.rate, self.publish) {
            (Some(Rate::PerSecond(rate)), _) => Some(Pace::PerSecond(rate)),
            (Some(Rate::Max), _) | (None, Some(_)) => Some(Pace::Window(self.window)),
            (None, None) => None,
        }
    }

    /// Files that this process needs at once: a socket for each session, two connections for each opener at
    /// the worst, a connection for each publisher, and what a process has anyway.
    pub(crate) fn files_needed(&self) -> u64 {
        const OTHERS: u64 = 64;
        u64::from(self.sessions)
            + 2 * u64::from(self.connect_concurrency)
            + u64::from(self.publishers)
            + OTHERS
    }

    /// What was asked for, in one line.
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
    fn what_makes_no_sense_is_refused_with_the_option_s_name() {
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
