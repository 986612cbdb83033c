//! The program: it reads the command line and runs a command. A part of the library, so that the compiler
//! makes the code of the commands once, and not for the binary again.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::cli::{
    Cli, Command, DEV_LOG, DevOptions, ServeOptions, UpstreamCommand, check_config, check_upstream,
    completions, examine_store, run_backup, run_migrate, run_restore, write_manual,
};
use crate::dev::Start;
use crate::tls::ServedCertificate;
use crate::{Environment, Node, Settings};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use commands::CommandFailure;
use commands::hosts_file::{self, WrittenHosts};
use commands::state_file::{self, Claim, NotClaimed};
use commands::webhook_listen::WebhookCommand;
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, setrlimit};
use service::{Clock, Entropy, Purpose};
use telemetry::{LogFormat, RunningTelemetry, Sources};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs the program `stagedoor` with the arguments of the process.
pub fn main() -> ExitCode {
    let matches = Cli::parser().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli, &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandFailure::Ended(code)) => ExitCode::from(code),
        Err(failure) => {
            commands::err_line!("stagedoor: {failure}");
            failure.exit_code()
        }
    }
}

fn run(cli: Cli, matches: &ArgMatches) -> Result<(), CommandFailure> {
    match cli.command {
        Command::CheckConfig(options) => {
            let (_, own) = matches.subcommand().unwrap_or(("", matches));
            check_config(&options, own, &Cli::command())
        }
        Command::Clock(options) => print_result(commands::clock::run(&options)),
        Command::Logs(options) => runtime()?.block_on(commands::logs::run(&options)),
        Command::Trigger(options) => print_result(commands::trigger::run(&options)),
        Command::Token(options) => print_result(commands::token::run(&options)),
        Command::Code(options) => print_result(commands::code::run(&options)),
        Command::Run(options) => runtime()?.block_on(commands::run::run(&options)),
        Command::Env(options) => print_result(commands::env::run(&options)),
        Command::Listen(options) => runtime()?.block_on(async {
            let mut stop = Signals::listen()?;
            commands::session_listen::run(&options, stop.next()).await
        }),
        Command::Mark(options) => print_result(commands::mark::run(&options)),
        Command::Expect(options) => print_result(commands::expect::run(&options)),
        Command::Open(options) => print_result(commands::open::run(&options)),
        Command::Explain(options) => print_result(commands::explain::run(&options)),
        Command::Doctor(options) => runtime()?.block_on(async {
            let mut stop = Signals::listen()?;
            match options.deep {
                true => examine_store(&options).await,
                false => commands::doctor::run(&options.bot, stop.next()).await,
            }
        }),
        Command::Scenario(command) => runtime()?.block_on(async {
            let mut stop = Signals::listen()?;
            commands::scenario::run(&command, stop.next(), sandbox::position).await
        }),
        Command::Fault(options) => print_result(commands::fault::run(&options)),
        Command::World(options) => print_result(commands::world::run(&options, sandbox::WorldFile::schema)),
        Command::Drops(command) => print_result(commands::drops::run(&command)),
        Command::Webhook(WebhookCommand::Listen(options)) => runtime()?.block_on(async {
            let mut stop = Signals::listen()?;
            commands::webhook_listen::run(&options, stop.next()).await
        }),
        Command::Upstream(UpstreamCommand::Check(options)) => runtime()?.block_on(check_upstream(&options)),
        Command::Backup(options) => runtime()?.block_on(run_backup(&options)),
        Command::Restore(options) => runtime()?.block_on(run_restore(&options)),
        Command::Migrate(options) => runtime()?.block_on(run_migrate(&options)),
        Command::Health(options) => print_result(commands::health::run(&options)),
        Command::Completions(options) => {
            commands::out_text!("{}", completions(&options, Cli::command()));
            Ok(())
        }
        Command::Manual(options) => write_manual(&options, Cli::command()),
        Command::Serve(options) => {
            let telemetry = options.telemetry().map_err(CommandFailure::Usage)?;
            let format = telemetry.format();
            let telemetry = telemetry.start(sources())?;
            run_serve(&options, telemetry).map_err(|failure| logged(failure, format))
        }
        Command::Dev(options) => {
            let telemetry = options.common.telemetry(DEV_LOG, None).map_err(CommandFailure::Usage)?;
            let format = telemetry.format();
            telemetry.start(sources())?;
            runtime()?.block_on(sandbox(&options)).map_err(|failure| logged(failure, format))
        }
    }
}

/// Prints what a command gives.
fn print_result<T: Display, E: Into<CommandFailure>>(
    command: impl Future<Output = Result<T, E>>,
) -> Result<(), CommandFailure> {
    commands::out_text!("{}", runtime()?.block_on(command).map_err(Into::into)?);
    Ok(())
}

/// The runtime, with tokio's default number of threads: one for each core.
fn runtime() -> Result<Runtime, String> {
    Runtime::new().map_err(|error| format!("failed to start the runtime: {error}"))
}

fn run_serve(options: &ServeOptions, mut telemetry: RunningTelemetry) -> Result<(), CommandFailure> {
    let settings = options.settings().map_err(CommandFailure::Usage)?;
    forbid_core_dumps();
    let served = runtime()?.block_on(async {
        telemetry.export();
        let environment = Environment { exported: telemetry.figures(), ..Environment::system() };
        let served = serve(settings, environment).await;
        telemetry.stop().await;
        served
    });
    served.map_err(CommandFailure::from)
}

/// The sources of time and randomness of the log and of traces.
fn sources() -> Sources {
    let (clock, entropy) = (Clock::system(), Entropy::system());
    let monotonic = clock.clone();
    Sources {
        now: Arc::new(move || clock.now()),
        monotonic: Arc::new(move || monotonic.monotonic()),
        random: Arc::new(move || u64::from_ne_bytes(entropy.bytes(Purpose::Jitter))),
    }
}

/// Logs why a server ended, where every line of stderr has to be JSON.
fn logged(failure: CommandFailure, format: LogFormat) -> CommandFailure {
    match format {
        LogFormat::Text => failure,
        LogFormat::Json => {
            tracing::error!("{failure}");
            CommandFailure::Ended(failure.code())
        }
    }
}

/// Disables core dumps, because a core dump of this process would contain its keys.
fn forbid_core_dumps() {
    if let Err(error) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }) {
        tracing::warn!(%error, "failed to disable core dumps: a core dump would contain the keys");
    }
}

async fn serve(settings: Settings, environment: Environment) -> Result<(), String> {
    let mut stop = Signals::listen()?;
    if let Some(https) = &settings.https {
        tokio::spawn(reload_at_hangup(signal_of(SignalKind::hangup())?, https.certificate.clone()));
    }
    let Some(node) = or_stopped(&mut stop, Node::start(settings, environment)).await? else {
        return Ok(());
    };
    if node.settings().platform_listen.is_some() {
        tracing::info!(url = node.platform_url(), "the platform API has a listener of its own");
    }
    tracing::info!(address = %node.address(), "stagedoor serves");
    stop.next().await;
    node.stop().await;
    Ok(())
}

/// Reads the certificate again at each SIGHUP.
async fn reload_at_hangup(mut hangup: Signal, certificate: Arc<ServedCertificate>) {
    let clock = Clock::system();
    while hangup.recv().await.is_some() {
        certificate.reload(clock.now());
    }
}

async fn sandbox(options: &DevOptions) -> Result<(), CommandFailure> {
    // The signals are handled before the temporary folder exists, so a signal cannot leave the folder behind.
    let mut stop = Signals::listen()?;
    // Files of the sandbox, such as copies of its databases, are for its user alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let mut claim = match state_file::claim(&state_file::folder(), options.name.as_deref()) {
        Ok(claim) => Some(claim),
        Err(NotClaimed::Taken(why)) => return Err(why.into()),
        Err(NotClaimed::Folder(error)) => {
            tracing::warn!(%error, "failed to write the state file: commands need --server and the operator key");
            None
        }
    };
    let opening = options.opening().map_err(CommandFailure::Usage)?;
    let tls = opening.settings().tls.as_ref().filter(|tls| tls.write_hosts);
    let lines = tls.map(|tls| tls.lines.clone());
    let Some((worlds, world)) = or_stopped(&mut stop, opening.start()).await? else {
        return Ok(());
    };
    if let Some(exposure) = world.exposure() {
        tracing::warn!("{exposure}");
    }
    take_back_stale_hosts(&options.tls.hosts_file);
    // Dropped, and so taken back, at every end but a kill.
    let _hosts = lines.map(|lines| WrittenHosts::write(&options.tls.hosts_file, &lines)).transpose()?;
    if let Some(claim) = &mut claim {
        world.announce(claim);
    }
    if options.json {
        commands::out_line!("{}", world.json());
        tracing::info!(url = world.base_url(), "stagedoor serves");
    } else {
        let given = options.name.as_deref().unwrap_or(state_file::DEFAULT_NAME);
        let name = claim.as_ref().map_or(given, Claim::name);
        let console = worlds.console_url().await;
        let start = Start { name, kept: options.kept(), has_api: !options.no_sandbox, console };
        commands::out_text!("{}", world.text(&start));
    }
    stop.next().await;
    worlds.stop().await;
    Ok(())
}

/// Takes back the lines of a sandbox that was killed.
fn take_back_stale_hosts(path: &Path) {
    match hosts_file::take_back_stale(path) {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!(path = %path.display(), "took back the hosts of a sandbox that was killed")
        }
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "failed to take back the hosts of a sandbox that was killed");
        }
    }
}

/// The result of `start`; `None` if a signal to stop comes first.
async fn or_stopped<T, E>(
    stop: &mut Signals,
    start: impl Future<Output = Result<T, E>>,
) -> Result<Option<T>, E> {
    tokio::select! {
        biased;
        _ = stop.next() => Ok(None),
        started = start => started.map(Some),
    }
}

fn signal_of(kind: SignalKind) -> Result<Signal, String> {
    signal(kind).map_err(|error| format!("failed to listen for signals: {error}"))
}

/// The signals to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, String> {
        let [terminate, interrupt] = [SignalKind::terminate(), SignalKind::interrupt()].map(signal_of);
        Ok(Self { terminate: terminate?, interrupt: interrupt? })
    }

    /// Waits for the next signal since the process began to listen for signals.
    async fn next(&mut self) {
        let signal = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!("stopping: {signal}");
    }
}
