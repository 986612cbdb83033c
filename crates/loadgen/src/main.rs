//! `stagedoor-load`: see `stagedoor-load --help`.
//!
//! It is an ordinary client and shares no code with the server, so it detects faults in the wire formats.
//! Sockets live on their own threads (`sockets`, `session`). Everything else, including the publishers, runs
//! on the main thread (`run`). The threads share only a table of counters (`shared`).

mod cli;
mod clock;
mod crowd;
mod forms;
mod http;
mod ledger;
mod packet;
mod plan;
mod prepared_run;
mod process;
mod publish;
mod publish_calls;
mod report;
mod rest;
mod run;
mod server;
mod session;
mod setup;
mod shared;
mod sockets;
mod stats;
mod webhooks;
mod world;
mod worlds;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use tokio::task::LocalSet;

/// Exit code: the load could not run.
const FAILED: u8 = 1;
/// Exit code: the load ran, and had errors.
const NOT_CLEAN: u8 = 2;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            let is_requested = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if is_requested { ExitCode::SUCCESS } else { ExitCode::from(FAILED) };
        }
    };
    let other = match &cli.command {
        Some(cli::Command::Rest(options)) => Some(on_this_thread(rest::run(options))),
        Some(cli::Command::Worlds(options)) => Some(on_this_thread(worlds::run(options))),
        Some(cli::Command::Webhooks(options)) => Some(on_this_thread(webhooks::run(options))),
        None => None,
    };
    if let Some(report) = other {
        return match report {
            Ok(report) => {
                print!("{report}");
                ExitCode::SUCCESS
            }
            Err(problem) => failed(&problem),
        };
    }
    let report = cli.check().and_then(|()| on_this_thread(run::run(&cli)));
    match report {
        Ok(report) => {
            let json = || serde_json::to_string(&report).unwrap_or_default() + "\n";
            print!("{}", if cli.json { json() } else { report.text() });
            match report.connect {
                Some(_) if report.is_clean() => ExitCode::SUCCESS,
                Some(_) => ExitCode::from(NOT_CLEAN),
                None => ExitCode::from(FAILED),
            }
        }
        Err(problem) => failed(&problem),
    }
}

fn failed(problem: &str) -> ExitCode {
    eprintln!("stagedoor-load: {problem}");
    ExitCode::from(FAILED)
}

fn on_this_thread<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime did not start: {error}"))?;
    LocalSet::new().block_on(&runtime, work)
}
