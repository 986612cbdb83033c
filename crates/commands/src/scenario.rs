//! `stagedoor scenario`: runs a timeline of triggers, clock moves, faults and expectations in a sandbox.
//!
//! | Module | What it does |
//! |---|---|
//! | `file` | the form of a scenario's file |
//! | `values` | `${…}` in its texts |
//! | `check` | its mistakes, before it runs |
//! | `plan` | its steps as one list, and in words |
//! | `runner` | runs a step |
//! | `report` | what came of it |
//! | `shipped` | the scenarios that the program contains |

mod check;
mod file;
mod plan;
mod report;
mod runner;
mod shipped;
mod values;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};
use service::Clock;

use crate::failure::CommandFailure;
use crate::junit::report_file;
use crate::target::{Target, TargetOptions};
pub use check::Position;
use file::{FILE_BYTES_MAX, ScenarioFile, StepAction};
use plan::{PlannedStep, plan};
use report::{ScenarioReport, StepOutcome, StepReport};
use runner::Runner;
use values::Values;

/// The actions of `stagedoor scenario`.
#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    /// Runs a scenario in the sandbox that runs, step by step. Stops at the first step that fails.
    ///
    /// At the end the scenario removes its fault rules and lets the clock run as before. The time stays
    /// moved. Exit codes: 0 every step is done, 1 a step failed, 2 the file is wrong, 3 no sandbox was
    /// reached.
    #[command(after_help = "Examples:
  stagedoor scenario run raid
  stagedoor scenario run first-stream --set channel=bada
  stagedoor scenario run my-scenario.yaml --junit report.xml")]
    Run(ScenarioRunOptions),
    /// Lists the scenarios that this program contains.
    List {
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints the file of a scenario that this program contains, as a beginning for an own one.
    Show {
        /// Its name, from `stagedoor scenario list`.
        name: String,
    },
}

/// `stagedoor scenario run`
#[derive(Debug, Args)]
pub struct ScenarioRunOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// The path of a file, or the name of a scenario from `stagedoor scenario list`.
    #[arg(value_name = "FILE|NAME")]
    scenario: String,

    /// Another value for a name of the scenario's `values`.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Writes a report for CI servers, as JUnit XML.
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(report_file))]
    junit: Option<PathBuf>,
}

/// Runs the command until it ends or `stop` is ready. `position` finds a field in a YAML text.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(
    command: &ScenarioCommand,
    stop: impl Future<Output = ()>,
    position: Position,
) -> Result<(), CommandFailure> {
    match command {
        ScenarioCommand::Run(options) => run_one(options, stop, position).await,
        ScenarioCommand::List { json } => {
            crate::out_text!("{}", list(*json)?);
            Ok(())
        }
        ScenarioCommand::Show { name } => {
            crate::out_text!("{}", shipped::text(name).ok_or_else(|| unknown(name))?);
            Ok(())
        }
    }
}

fn unknown(name: &str) -> CommandFailure {
    let names = shipped::SHIPPED.map(|(name, _)| name).join(", ");
    CommandFailure::Usage(format!("{name} is neither a file nor one of {names}"))
}

fn list(as_json: bool) -> Result<String, CommandFailure> {
    let files = shipped::all()?;
    if as_json {
        let entry = |file: &ScenarioFile| json!({ "name": file.scenario, "about": file.about.trim() });
        return Ok(format!("{}\n", Value::from(files.iter().map(entry).collect::<Vec<_>>())));
    }
    let line = |file: &ScenarioFile| format!("{:<18} {}\n", file.scenario, file.about.trim());
    Ok(files.iter().map(line).collect())
}

/// The text of a scenario, and where it comes from.
fn load(name: &str) -> Result<(String, String), CommandFailure> {
    if let Some(text) = shipped::text(name) {
        return Ok((name.to_owned(), text.to_owned()));
    }
    let wrong = |why: String| CommandFailure::Usage(format!("{name}: {why}"));
    match std::fs::metadata(name) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(unknown(name)),
        Err(error) => return Err(wrong(error.to_string())),
        Ok(file) if !file.is_file() => return Err(wrong("it is no file".to_owned())),
        Ok(file) if file.len() > FILE_BYTES_MAX as u64 => {
            return Err(wrong(format!("it must be at most {FILE_BYTES_MAX} bytes")));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(name).map_err(|error| wrong(error.to_string()))?;
    Ok((name.to_owned(), text))
}

/// The values of a file, with those of the command line in their place.
fn values(file: &ScenarioFile, set: &[String]) -> Result<Values, CommandFailure> {
    let mut values = Values::default();
    file.values.iter().for_each(|(name, value)| values.set(name, value.clone()));
    for given in set {
        let wrong = |rule: &str| CommandFailure::Usage(format!("--set {given}: {rule}"));
        let (name, value) = given.split_once('=').ok_or_else(|| wrong("it must be NAME=VALUE"))?;
        if !file.values.contains_key(name) {
            let known = file.values.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(wrong(&format!("the scenario has no such value. Its values are: {known}")));
        }
        values.set(name, value.parse::<i64>().map_or_else(|_| value.into(), Value::from));
    }
    Ok(values)
}

async fn run_one(
    options: &ScenarioRunOptions,
    stop: impl Future<Output = ()>,
    position: Position,
) -> Result<(), CommandFailure> {
    let (source, text) = load(&options.scenario)?;
    let file = file::parse(&source, &text).map_err(CommandFailure::Usage)?;
    let steps = plan(&file).map_err(|why| CommandFailure::Usage(format!("{source}:{why}")))?;
    let values = values(&file, &options.set)?;
    let target = options.target.find().await?;
    check::check(&target, (&source, &text), &file, &values, position).await?;
    let is_quiet = options.target.json;
    if !is_quiet {
        crate::out_line!("{}: {}", file.scenario, file.about.trim());
    }
    let report = follow(&target, &file.scenario, &source, &steps, values, is_quiet, stop).await?;
    tell(&target, &report).await;
    if is_quiet {
        crate::out_line!("{}", report.json());
    }
    if let Some(path) = &options.junit {
        report.junit().save(path)?;
    }
    verdict(&report, is_quiet)
}

/// Reports the result of the run to the sandbox, for its console. A failed report does not fail the run.
async fn tell(target: &Target, report: &ScenarioReport) {
    let run = report.summary();
    let _ = target.call(Method::POST, "/sandbox/v1/runs", Some(&run), Duration::ZERO).await;
}

/// Runs the steps one after the other, and restores the sandbox.
async fn follow(
    target: &Target,
    name: &str,
    source: &str,
    steps: &[PlannedStep<'_>],
    values: Values,
    is_quiet: bool,
    stop: impl Future<Output = ()>,
) -> Result<ScenarioReport, CommandFailure> {
    let clock = Clock::system();
    let mut runner = Runner::begin(target, values).await?;
    let mut reports: Vec<StepReport> = Vec::new();
    tokio::pin!(stop);
    for step in steps {
        let began = clock.monotonic();
        let outcome = match step.action {
            StepAction::Say(_) => {
                runner.run(step).await.map_or_else(StepOutcome::Failed, |_| StepOutcome::Said)
            }
            _ if runner.leaves_out(step) => StepOutcome::LeftOut,
            _ => tokio::select! {
                ran = runner.run(step) => ran.map_or_else(StepOutcome::Failed, StepOutcome::Done),
                () = &mut stop => break,
            },
        };
        let took = clock.monotonic().saturating_sub(began);
        let report =
            StepReport { line: step.line, words: runner.words(step), turn: step.turn, took, outcome };
        if let Some(lines) = report.lines(source).filter(|_| !is_quiet) {
            crate::out_text!("{lines}");
        }
        let failed = matches!(report.outcome, StepOutcome::Failed(_));
        reports.push(report);
        if failed {
            break;
        }
    }
    let unrestored = runner.restore().await.err().map(|failure| failure.message);
    let unreached = steps.len() - reports.len();
    Ok(ScenarioReport {
        name: name.to_owned(),
        source: source.to_owned(),
        steps: reports,
        unreached,
        unrestored,
    })
}

fn verdict(report: &ScenarioReport, is_quiet: bool) -> Result<(), CommandFailure> {
    let ScenarioReport { name, source, .. } = report;
    match (report.failure(), &report.unrestored) {
        (Some((_, failure)), _) if failure.is_unreachable => {
            Err(CommandFailure::Unreachable(failure.message.clone()))
        }
        (Some((step, _)), _) => {
            Err(CommandFailure::Failed(format!("{name} failed at line {} of {source}", step.line)))
        }
        (None, Some(why)) => {
            Err(CommandFailure::Failed(format!("{name}: the sandbox could not be restored: {why}")))
        }
        (None, None) if report.unreached > 0 => {
            Err(CommandFailure::Failed(format!("{name} was stopped; {} steps are left", report.unreached)))
        }
        (None, None) => {
            let said = |step: &&StepReport| matches!(step.outcome, StepOutcome::Said);
            let number = report.steps.len() - report.steps.iter().filter(said).count();
            if !is_quiet {
                crate::out_line!("{name}: {number} steps, everything is as expected");
            }
            Ok(())
        }
    }
}
