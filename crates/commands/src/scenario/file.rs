//! The file of a scenario: YAML, with the place of every mistake.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

/// Maximum length of a file, in bytes.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

/// A scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// Its name.
    pub scenario: String,
    /// What it shows.
    #[serde(default)]
    pub about: String,
    /// Names for `${…}`, with their values.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// The steps, in order.
    pub steps: Vec<Spanned<StepAction>>,
}

/// What a step does.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepAction {
    /// Prints a heading.
    Say(String),
    /// Lets something happen.
    Trigger(TriggerStep),
    /// Moves the clock, or lets it run in another mode.
    Clock(ClockStep),
    /// Adds a fault rule.
    Fault(FaultStep),
    /// Removes the fault rules that the scenario has added.
    RemoveFaults,
    /// Signs a user in to an application.
    Token(TokenStep),
    /// Makes a call.
    Call(CallStep),
    /// Waits until something has happened.
    Expect(ExpectStep),
    /// Waits, in real time.
    Wait(String),
    /// Repeats steps.
    Repeat(RepeatStep),
    /// Runs steps only if a session was connected when the scenario began.
    IfConnected(Vec<Spanned<StepAction>>),
}

/// A trigger: its kind, and its fields beside it.
#[derive(Debug, Deserialize)]
pub struct TriggerStep {
    /// The kind.
    pub kind: String,
    /// Conditions on the answer.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
    /// Names for parts of the answer.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A change of the clock.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockStep {
    /// A duration.
    pub advance: Option<String>,
    /// A time.
    pub to: Option<String>,
    /// Something that becomes due.
    pub until: Option<String>,
    /// `real`, `frozen` or `scaled`.
    pub mode: Option<String>,
    /// With `scaled`.
    pub rate: Option<f64>,
    /// What has to happen during the move.
    #[serde(default)]
    pub happens: Vec<String>,
}

/// A fault rule, as the sandbox API takes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultStep {
    /// What it means.
    #[serde(default, rename = "match")]
    pub matching: Map<String, Value>,
    /// Begins with this one.
    pub nth: Option<Value>,
    /// The affected share.
    pub probability: Option<Value>,
    /// Maximum number of times.
    pub times: Option<Value>,
    /// The seed of the decisions.
    pub seed: Option<Value>,
    /// What happens.
    #[serde(rename = "do")]
    pub effect: Map<String, Value>,
}

/// A sign-in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenStep {
    /// The user.
    pub user: Option<String>,
    /// The application.
    pub client: Option<String>,
    /// The name under which later steps use the token.
    #[serde(rename = "as")]
    pub name: String,
}

/// A call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallStep {
    /// Method and path.
    pub request: String,
    /// Whose call it is: a token's name, or `operator`.
    #[serde(rename = "as")]
    pub caller: Option<String>,
    /// The JSON body.
    pub body: Option<Value>,
    /// The expected status: a number, `none` for no answer, or `any`. Default: a success.
    pub status: Option<Value>,
    /// Conditions on the content of the answer.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
    /// Names for parts of the answer.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
}

/// An expectation on the log.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectStep {
    /// The kind of the records.
    pub kind: Option<String>,
    /// The conditions.
    #[serde(default, rename = "where")]
    pub conditions: Map<String, Value>,
    /// How long to wait, in real time.
    pub within: Option<String>,
    /// Minimum number of records. Default: 1.
    pub times: Option<u64>,
    /// Instead: maximum number of records.
    #[serde(rename = "atMost")]
    pub at_most: Option<u64>,
    /// From where on records count.
    #[serde(default)]
    pub since: Since,
}

/// From where on records count.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Since {
    /// The last step that did something.
    #[default]
    Step,
    /// The beginning of the scenario.
    Start,
}

/// Repeated steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepeatStep {
    /// How often.
    pub times: u32,
    /// The steps. `${n}` is the number of the turn.
    pub steps: Vec<Spanned<StepAction>>,
}

/// Parses a file. The mistake names the file, the line and the column.
pub fn parse(source: &str, text: &str) -> Result<ScenarioFile, String> {
    if text.len() > FILE_BYTES_MAX {
        return Err(format!("{source}: must be at most {FILE_BYTES_MAX} bytes"));
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().map(|at| format!(":{}:{}", at.line(), at.column()));
        let message = error.without_snippet().to_string();
        format!("{source}{}: {message}", place.unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_named_with_its_place() {
        for (text, place, word) in [
            ("scenario: a\nsteps: []\nstep: []\n", "a.yaml:3:1", "step"),
            ("scenario: a\nsteps:\n  - clock: { advanse: 1d }\n", "a.yaml:3:14", "advanse"),
            ("scenario: a\nsteps:\n  - clok: { advance: 1d }\n", "a.yaml:3:5", "clok"),
            ("scenario: a\nsteps:\n  - expect: { kind: [] }\n", "a.yaml:3:21", ""),
            ("scenario: a\n", "a.yaml:1:1", "steps"),
            ("scenario: [\n", "a.yaml:", ""),
        ] {
            let message = parse("a.yaml", text).expect_err("a mistake");
            assert!(message.starts_with(place) && message.contains(word), "{text}: {message}");
        }
    }

    #[test]
    fn steps_have_their_lines() {
        let text = "scenario: a\nsteps:\n  - remove-faults\n  - trigger: { kind: chat, message: hi }\n  \
                    - repeat:\n      times: 2\n      steps:\n        - say: hello\n";
        let file = parse("a.yaml", text).expect("a scenario");
        let lines: Vec<_> = file.steps.iter().map(|step| step.referenced.line()).collect();
        assert_eq!(lines, [3, 4, 5]);
        let StepAction::Trigger(trigger) = &file.steps[1].value else { panic!("a trigger") };
        assert_eq!((trigger.kind.as_str(), &trigger.fields["message"]), ("chat", &Value::from("hi")));
        let StepAction::Repeat(repeat) = &file.steps[2].value else { panic!("a repetition") };
        assert_eq!((repeat.times, repeat.steps[0].referenced.line()), (2, 8));
    }
}
