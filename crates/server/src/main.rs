//! `stagedoor`: see `stagedoor --help`.

use std::process::ExitCode;

use clap::Parser;
use server::cli::{Cli, Command};
use server::listen::WebhookCommand;
use server::{Node, Settings, Surroundings, dev};
use tikv_jemallocator::Jemalloc;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The system's allocator keeps what many closed sessions leave behind (docs/decisions/0011).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime did not start: {error}")),
    };
    match runtime.block_on(run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(&problem),
    }
}

async fn run(cli: Cli) -> Result<(), String> {
    match cli.command {
        Command::CheckConfig(options) => {
            let settings = options.settings()?;
            println!("{settings:#?}");
            println!("The configuration is good.");
            Ok(())
        }
        Command::Drops(command) => {
            print!("{}", server::drops::run(&command).await?);
            Ok(())
        }
        Command::Webhook(WebhookCommand::Listen(options)) => {
            let mut stop = Signals::listen()?;
            server::listen::run(&options, stop.next()).await
        }
        Command::Serve(options) => {
            server::init_telemetry(&options.common.log)?;
            serve(options.settings()?).await
        }
        Command::Dev(options) => {
            server::init_telemetry(&options.common.log)?;
            sandbox(&options).await
        }
    }
}

async fn serve(settings: Settings) -> Result<(), String> {
    let mut stop = Signals::listen()?;
    let Some(node) = unless_stopped(&mut stop, Node::start(settings, Surroundings::system())).await? else {
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

async fn sandbox(options: &server::cli::DevOptions) -> Result<(), String> {
    let mut stop = Signals::listen()?;
    let (settings, folder) = options.settings()?;
    let Some(node) = unless_stopped(&mut stop, Node::start(settings, Surroundings::system())).await? else {
        return Ok(());
    };
    if let Some(world) = unless_stopped(&mut stop, dev::settle(&node, folder.path())).await? {
        if options.json {
            println!("{}", world.json());
        } else {
            println!("{}", world.text());
        }
        stop.next().await;
    }
    node.stop().await;
    Ok(())
}

/// What `start` gives; nothing when a signal to stop comes first.
async fn unless_stopped<T>(
    stop: &mut Signals,
    start: impl Future<Output = Result<T, String>>,
) -> Result<Option<T>, String> {
    tokio::select! {
        biased;
        _ = stop.next() => Ok(None),
        started = start => started.map(Some),
    }
}

/// The signals to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| format!("signals cannot be listened to: {error}"));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Waits for one of them, of those that came since the process listens.
    async fn next(&mut self) {
        let signal = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!("stopping: {signal}");
    }
}

fn fail(problem: &str) -> ExitCode {
    eprintln!("stagedoor: {problem}");
    ExitCode::FAILURE
}
