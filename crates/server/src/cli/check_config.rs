//! `stagedoor check-config`: the options of `serve`, their values, and where each value is from.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args};
use commands::{CommandFailure, secret_file};
use domain::retention::{RETENTION_TABLE, Retention};
use serde_json::{Value, json};

use super::serve::ServeOptions;

/// The end of the help of `stagedoor check-config`.
pub(super) const HELP: &str = "\
Examples:
  stagedoor check-config --data /var/lib/stagedoor --base-url https://api.example.com
  STAGEDOOR_OPERATOR_KEY_FILE=/etc/stagedoor/keys/operator-key stagedoor check-config --json

A variable that begins with STAGEDOOR_ and that no command reads is a mistake too: its name is misspelt, and the option
keeps its default.

Exit codes: 0 the configuration is good, 2 it is not.";

/// What begins the name of each variable.
const VARIABLES: &str = "STAGEDOOR_";
/// What is shown of a secret.
const SECRET: &str = "set";

/// `stagedoor check-config`
#[derive(Debug, Args)]
pub struct CheckConfigOptions {
    /// The options of `serve`.
    #[command(flatten)]
    pub serve: ServeOptions,

    /// Prints one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Where the value of an option is from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// Nothing gave a value.
    None,
    Default,
    /// A variable.
    Environment(String),
    /// A file that a variable or another option names.
    File(String),
    CommandLine,
}

impl Source {
    /// Its kind, and the variable or the file.
    fn words(&self) -> (Option<&'static str>, Option<&str>) {
        match self {
            Self::None => (None, None),
            Self::Default => (Some("default"), None),
            Self::Environment(variable) => (Some("environment"), Some(variable)),
            Self::File(path) => (Some("file"), Some(path)),
            Self::CommandLine => (Some("command line"), None),
        }
    }
}

/// One option.
#[derive(Debug)]
struct Shown {
    name: String,
    group: String,
    variable: String,
    value: Option<String>,
    source: Source,
}

/// Prints the configuration of `serve`, and checks it. `matches` are those of the command, `program` has all
/// commands.
///
/// # Errors
/// [`CommandFailure::Usage`] with the sentence of `serve`, or with one about the surroundings.
pub fn check_config(
    options: &CheckConfigOptions,
    matches: &ArgMatches,
    program: &clap::Command,
) -> Result<(), CommandFailure> {
    let shown = shown(matches);
    let unread = unread(program);
    let checked = options.serve.telemetry().and_then(|_| options.serve.settings());
    let checked = checked.and_then(|settings| options.serve.check_folders(&settings));
    let retention = options.serve.common.retention();
    let problem = checked.err().or_else(|| misspelt(&unread));
    match options.json {
        true => commands::out_line!("{:#}", as_json(&shown, &retention, &unread, problem.as_deref())),
        false => commands::out_text!("{}{}", as_text(&shown), retention_text(&retention)),
    }
    match problem {
        Some(problem) => Err(CommandFailure::Usage(problem)),
        None if options.json => Ok(()),
        None => {
            commands::out_line!("The configuration is good.");
            Ok(())
        }
    }
}

/// The options of `serve`, in the order of its help.
fn shown(matches: &ArgMatches) -> Vec<Shown> {
    let command = ServeOptions::augment_args(clap::Command::new("serve"));
    let all: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let mut groups: Vec<&str> = Vec::new();
    for group in all.iter().filter_map(|arg| arg.get_help_heading()) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let of_group = |group| all.iter().filter(move |arg| arg.get_help_heading() == Some(group));
    groups.into_iter().flat_map(of_group).filter_map(|arg| one(arg, matches)).collect()
}

fn one(arg: &Arg, matches: &ArgMatches) -> Option<Shown> {
    let name = arg.get_long()?;
    let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (value, source) = match raw(arg.get_id().as_str(), matches) {
        // An option whose value is never shown may be given by a file.
        None if is_secret(arg) => match secret_path(arg, &variable, matches) {
            Some(path) => (Some(SECRET.to_owned()), Source::File(path)),
            None => (None, Source::None),
        },
        None => (None, Source::None),
        Some(value) => {
            let source = match matches.value_source(arg.get_id().as_str()) {
                Some(ValueSource::EnvVariable) => Source::Environment(variable.clone()),
                Some(ValueSource::CommandLine) => Source::CommandLine,
                _ => Source::Default,
            };
            (Some(if is_secret(arg) { SECRET.to_owned() } else { value }), source)
        }
    };
    let group = arg.get_help_heading().unwrap_or_default().to_owned();
    Some(Shown { name: format!("--{name}"), group, variable, value, source })
}

/// Whether the value of an option is never shown.
fn is_secret(arg: &Arg) -> bool {
    arg.is_hide_env_values_set()
}

/// The value as it was given.
fn raw(id: &str, matches: &ArgMatches) -> Option<String> {
    let values = matches.try_get_raw(id).ok()??;
    let texts: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
    Some(texts.join(","))
}

/// The file of a secret: that of an option of its own, or that of the variable.
fn secret_path(arg: &Arg, variable: &str, matches: &ArgMatches) -> Option<String> {
    let of_option = raw(&format!("{}_file", arg.get_id()), matches);
    of_option.or_else(|| Some(secret_file(variable)?.to_string_lossy().into_owned()))
}

/// The variables of the environment that look like one of ours, and that no command reads.
fn unread(program: &clap::Command) -> Vec<String> {
    let mut read = BTreeSet::new();
    add_variables(program, &mut read);
    let is_read = |name: &str| read.contains(name) || read.contains(name.trim_end_matches("_FILE"));
    let mut names: Vec<_> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with(VARIABLES) && !is_read(name))
        .collect();
    names.sort_unstable();
    names
}

/// Adds the variables of a command, and of those below it.
fn add_variables(command: &clap::Command, read: &mut BTreeSet<String>) {
    let named = command.get_arguments().filter_map(Arg::get_env);
    read.extend(named.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|below| add_variables(below, read));
}

/// The sentence about variables that nothing reads.
fn misspelt(unread: &[String]) -> Option<String> {
    let names = unread.join(", ");
    match unread {
        [] => None,
        [_] => Some(format!(
            "{names} is set, and no command reads such a variable: correct its name, or unset it"
        )),
        _ => Some(format!(
            "{names} are set, and no command reads such variables: correct their names, or unset them"
        )),
    }
}

/// How long each kind of rows is kept.
fn retention_text(retention: &Retention) -> String {
    let width = RETENTION_TABLE.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let mut text = "Retention (--retain):\n".to_owned();
    for rule in &RETENTION_TABLE {
        let _ = writeln!(text, "  {:width$}  {} days", rule.name, retention.days(rule.of));
    }
    text
}

fn as_json(shown: &[Shown], retention: &Retention, unread: &[String], problem: Option<&str>) -> Value {
    let options = shown.iter().map(|each| {
        let (source, from) = each.source.words();
        json!({ "option": each.name, "group": each.group, "variable": each.variable, "value": each.value,
            "source": source, "from": from })
    });
    let days = RETENTION_TABLE.iter().map(|rule| (rule.name.to_owned(), json!(retention.days(rule.of))));
    let days = Value::Object(days.collect());
    json!({ "ok": problem.is_none(), "problem": problem, "options": options.collect::<Vec<_>>(),
        "retentionDays": days, "unreadVariables": unread })
}

fn as_text(shown: &[Shown]) -> String {
    let width = shown.iter().map(|each| each.name.len()).max().unwrap_or_default();
    let (mut text, mut group) = (String::new(), "");
    for each in shown {
        if each.group != group {
            group = &each.group;
            let _ = writeln!(text, "{group}:");
        }
        let value = each.value.as_deref().unwrap_or("not set");
        let source = match each.source.words() {
            (None, _) => String::new(),
            (Some(kind), None) => format!("  ({kind})"),
            (Some(kind), Some(from)) => format!("  ({kind} {from})"),
        };
        let _ = writeln!(text, "  {:width$}  {value}{source}", each.name);
    }
    text
}
