//! `POST /sandbox/v1/scenario-check`: what is wrong with the steps of a scenario, found without running them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{Answer, Content, Problem};
use super::body::{self, JsonBody};
use super::clock;
use super::expect;
use super::faults;
use super::trigger;

/// Steps of a scenario.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckedSteps {
    /// The steps, each with what its call would get.
    steps: Vec<CheckedStep>,
}

/// A step, as its call would get it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum CheckedStep {
    /// A kind, and its fields.
    Trigger { kind: String, fields: Map<String, Value> },
    /// A change of the clock, and what has to happen during it.
    Clock { change: Map<String, Value>, happens: Vec<String> },
    /// A fault rule.
    Fault(Map<String, Value>),
    /// An expectation.
    Expect(Map<String, Value>),
}

/// The mistakes.
#[derive(Serialize, JsonSchema)]
pub(super) struct Mistakes {
    /// In the order of the steps. Empty if nothing is wrong.
    data: Vec<Mistake>,
}

/// A mistake in a step.
#[derive(Serialize, JsonSchema)]
pub(super) struct Mistake {
    /// The number of the step, from 0.
    step: usize,
    /// The field and its rule.
    message: String,
}

/// `POST /sandbox/v1/scenario-check`.
pub(super) async fn check(JsonBody(given): JsonBody<CheckedSteps>) -> Answer<Mistakes> {
    let mistake = |(step, given): (usize, CheckedStep)| {
        let problem = given.check().err()?;
        Some(Mistake { step, message: problem.message().to_owned() })
    };
    Ok(Content(Mistakes { data: given.steps.into_iter().enumerate().filter_map(mistake).collect() }))
}

impl CheckedStep {
    /// The checks of the calls themselves.
    fn check(self) -> Result<(), Problem> {
        match self {
            Self::Trigger { kind, fields } => {
                // A field without a value gets it from a step before.
                let open = fields.iter().filter(|(_, value)| value.is_null());
                let open: Vec<String> = open.map(|(name, _)| format!("{name}: ")).collect();
                let checked = trigger::kind(&kind)?.read(fields).map(drop);
                let is_open = |problem: &Problem| open.iter().any(|name| problem.message().starts_with(name));
                checked.or_else(|problem| if is_open(&problem) { Ok(()) } else { Err(problem) })
            }
            Self::Clock { change, happens } => {
                happens.iter().try_for_each(|name| clock::check_happening("happens", name))?;
                clock::check(&body::of(change)?)
            }
            Self::Fault(rule) => faults::check(body::of(rule)?),
            Self::Expect(expected) => expect::checked(body::of(expected)?).map(drop),
        }
    }
}
