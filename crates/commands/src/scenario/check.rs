//! What is wrong with a scenario, found before its first step: unknown names, and what the sandbox says of
//! the calls that the steps would make.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::Timestamp;
use domain::span::{SPAN_RULE, parse_span};
use http::Method;
use serde_json::{Map, Value, json};
use serde_saphyr::Spanned;

use super::file::{ScenarioFile, StepAction};
use super::runner::{clock_change, expectation, fault_rule};
use super::values::{Values, plain};
use crate::failure::CommandFailure;
use crate::target::Target;

/// Finds line and column of a field in a text.
pub type Position = fn(&str, &str) -> Option<(u64, u64)>;

/// Number of steps that one call checks.
const STEPS_AT_ONCE: usize = 50;

/// The methods of the service.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const REQUEST_RULE: &str = "request: must be a method and a path, as in GET /open/v1/users/me";
const STATUS_RULE: &str = "status: must be a number from 100 to 599, none or any";

/// A mistake: the path of the field, and what is wrong.
type Mistake = (String, String);

/// The mistakes of a scenario, one in a line, with their places.
///
/// # Errors
/// The file has mistakes, or the sandbox was not reached.
pub async fn check(
    target: &Target,
    (source, text): (&str, &str),
    file: &ScenarioFile,
    values: &Values,
    position: Position,
) -> Result<(), CommandFailure> {
    let mut walk = Walk::default();
    let mut values = values.clone();
    values.set_now(Timestamp::from_millis(0));
    values.set("run", json!(0));
    walk.steps(&file.steps, "steps", &values);
    let Walk { calls, mut mistakes, .. } = walk;
    for calls in calls.chunks(STEPS_AT_ONCE) {
        let steps: Vec<&Value> = calls.iter().map(|(_, call)| call).collect();
        let path = "/sandbox/v1/scenario-check";
        let body = json!({ "steps": steps });
        let found = target.call(Method::POST, path, Some(&body), Duration::ZERO).await?;
        for mistake in found["data"].as_array().into_iter().flatten() {
            let step = mistake["step"].as_u64().and_then(|step| usize::try_from(step).ok());
            let Some((path, _)) = step.and_then(|step| calls.get(step)) else { continue };
            let message = plain(&mistake["message"]);
            let (field, rule) = message.split_once(": ").unwrap_or(("", &message));
            mistakes.push((format!("{path}.{field}"), format!("{field}: {rule}")));
        }
    }
    let mut placed: Vec<_> = mistakes.into_iter().map(|(path, what)| (position(text, &path), what)).collect();
    placed.sort();
    let line = |(place, what): (Option<(u64, u64)>, String)| {
        let place = place.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
        format!("{source}{place}: {what}")
    };
    let lines: Vec<String> = placed.into_iter().map(line).collect();
    if lines.is_empty() { Ok(()) } else { Err(CommandFailure::Usage(lines.join("\n"))) }
}

/// A walk through the steps, in the order in which they run.
#[derive(Default)]
struct Walk {
    /// The names that steps so far have saved.
    saved: BTreeSet<String>,
    /// What steps would send, with the path of the step.
    calls: Vec<(String, Value)>,
    mistakes: Vec<Mistake>,
}

impl Walk {
    fn steps(&mut self, steps: &[Spanned<StepAction>], path: &str, values: &Values) {
        for (number, step) in steps.iter().enumerate() {
            self.step(&step.value, &format!("{path}[{number}]"), values);
        }
    }

    fn step(&mut self, action: &StepAction, path: &str, values: &Values) {
        match action {
            StepAction::Say(text) => {
                self.filled(&text.as_str().into(), &format!("{path}.say"), values);
            }
            StepAction::RemoveFaults => {}
            StepAction::Wait(span) => {
                self.rule(parse_span(span).is_some(), &format!("{path}.wait"), &format!("wait: {SPAN_RULE}"));
            }
            StepAction::Trigger(step) => {
                let path = format!("{path}.trigger");
                let fields = step.fields.iter().map(|(name, value)| {
                    let filled = self.filled(value, &format!("{path}.{name}"), values);
                    (name.clone(), filled.unwrap_or_default())
                });
                let fields: Map<String, Value> = fields.collect();
                self.names(&step.answers, &format!("{path}.answers"), values);
                self.calls.push((path, json!({ "trigger": { "kind": step.kind, "fields": fields } })));
                self.saved.extend(step.save.keys().cloned());
            }
            StepAction::Clock(step) => {
                let path = format!("{path}.clock");
                if let Some(change) = self.filled(&clock_change(step), &path, values) {
                    let call = json!({ "clock": { "change": change, "happens": step.happens } });
                    self.calls.push((path, call));
                }
            }
            StepAction::Fault(step) => self.call("fault", fault_rule(step), path, values),
            StepAction::Expect(step) => {
                let is_one = step.times.is_none() || step.at_most.is_none();
                let expect = format!("{path}.expect");
                self.rule(is_one, &expect, "expect: must have times or atMost, not both");
                let has_end = step.at_most.is_none() || step.within.is_some();
                self.rule(has_end, &expect, "expect: must have within with atMost");
                self.call("expect", expectation(step), path, values);
            }
            StepAction::Token(step) => {
                for (name, text) in [("user", &step.user), ("client", &step.client)] {
                    let value = text.as_deref().map_or(Value::Null, Value::from);
                    self.filled(&value, &format!("{path}.token.{name}"), values);
                }
                self.saved.insert(step.name.clone());
            }
            StepAction::Call(step) => {
                let path = format!("{path}.call");
                let request = self.filled(&step.request.as_str().into(), &format!("{path}.request"), values);
                let request = request.as_ref().map_or_else(|| step.request.clone(), plain);
                self.rule(is_request(&request), &format!("{path}.request"), REQUEST_RULE);
                let status = step.status.as_ref().map_or_else(|| "any".to_owned(), plain);
                self.rule(is_status(&status), &format!("{path}.status"), STATUS_RULE);
                if let Some(body) = &step.body {
                    self.filled(body, &format!("{path}.body"), values);
                }
                self.names(&step.answers, &format!("{path}.answers"), values);
                self.caller(step.caller.as_deref(), &path, values);
                self.saved.extend(step.save.keys().cloned());
            }
            StepAction::Repeat(step) => {
                self.rule(step.times > 0, &format!("{path}.repeat.times"), "times: must be at least 1");
                let mut values = values.clone();
                values.set("n", json!(1));
                // What a turn saves is known in the next one, but not in the first.
                self.steps(&step.steps, &format!("{path}.repeat.steps"), &values);
            }
            StepAction::IfConnected(steps) => self.steps(steps, &format!("{path}.if-connected"), values),
        }
    }

    /// A rule that the form of a step does not have.
    fn rule(&mut self, is_kept: bool, path: &str, rule: &str) {
        if !is_kept {
            self.mistakes.push((path.to_owned(), rule.to_owned()));
        }
    }

    fn caller(&mut self, caller: Option<&str>, path: &str, values: &Values) {
        let Some(caller) = caller else { return };
        let is_known =
            caller == "operator" || self.saved.contains(root(caller)) || values.get(caller).is_some();
        if !is_known {
            self.mistakes.push((format!("{path}.as"), format!("as: no step before has the name {caller}")));
        }
    }

    /// The call of a step, if all of it is known already.
    fn call(&mut self, kind: &str, call: Value, path: &str, values: &Values) {
        let path = format!("{path}.{kind}");
        if let Some(filled) = self.filled(&call, &path, values) {
            self.calls.push((path, json!({ kind: filled })));
        }
    }

    fn names<'v>(
        &mut self,
        fields: impl IntoIterator<Item = (&'v String, &'v Value)>,
        path: &str,
        values: &Values,
    ) {
        for (name, value) in fields {
            self.filled(value, &format!("{path}.{name}"), values);
        }
    }

    /// The value with its names replaced; `None` if a step saves one of them. An unknown name is a mistake.
    fn filled(&mut self, value: &Value, path: &str, values: &Values) -> Option<Value> {
        match value {
            Value::Object(fields) => {
                let filled: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| (name, self.filled(value, &format!("{path}.{name}"), values)))
                    .collect();
                filled
                    .into_iter()
                    .map(|(name, value)| Some((name.clone(), value?)))
                    .collect::<Option<_>>()
                    .map(Value::Object)
            }
            Value::Array(items) => {
                let filled: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(at, value)| self.filled(value, &format!("{path}[{at}]"), values))
                    .collect();
                filled.into_iter().collect::<Option<_>>().map(Value::Array)
            }
            Value::String(text) if names(text).any(|name| self.saved.contains(root(name))) => None,
            value => match values.fill(value) {
                Ok(filled) => Some(filled),
                Err(why) => {
                    self.mistakes.push((path.to_owned(), why));
                    None
                }
            },
        }
    }
}

/// Whether a text is a method and a path. A part that a step before names may be anything.
fn is_request(text: &str) -> bool {
    let Some((method, path)) = text.split_once(' ') else { return false };
    (METHODS.contains(&method) || method.starts_with("${"))
        && (path.starts_with('/') || path.starts_with("${"))
}

fn is_status(text: &str) -> bool {
    matches!(text, "none" | "any") || text.parse().is_ok_and(|status: u16| (100..=599).contains(&status))
}

/// The first part of a name.
fn root(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The names in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    #[test]
    fn unknown_names_are_found_and_saved_ones_are_known() {
        let text = "scenario: a\nvalues: { who: nuri }\nsteps:\n\
                    - token: { user: \"${who}\", as: bot }\n\
                    - call: { request: \"GET /a/${bot.channelId}\", as: bot, save: { id: x } }\n\
                    - trigger: { kind: chat, message: \"${id} ${whoo}\" }\n\
                    - repeat: { times: 2, steps: [ { trigger: { kind: chat, message: \"${n} ${run} ${now+1d}\" } } ] }\n\
                    - call: { request: GET /a, as: bott }\n\
                    - clock: { to: \"${later}\" }\n- say: \"hello ${who} ${whoo}\"\n- say: \"${id}\"\n";
        let file = parse("a.yaml", text).expect("a scenario");
        let mut values = Values::default();
        file.values.iter().for_each(|(name, value)| values.set(name, value.clone()));
        values.set("run", json!(0));
        values.set_now(Timestamp::from_millis(0));
        let mut walk = Walk::default();
        walk.steps(&file.steps, "steps", &values);
        // The message holds a saved name, so that it is checked when it runs.
        let paths: Vec<_> = walk.mistakes.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["steps[4].call.as", "steps[5].clock.to", "steps[6].say"]);
        assert_eq!(walk.calls.len(), 2);
        assert_eq!(walk.calls[1].0, "steps[3].repeat.steps[0].trigger");
    }

    #[test]
    fn every_mistake_of_a_step_is_found() {
        let text = "scenario: a\nsteps:\n- wait: 5\n- expect: { atMost: 0 }\n\
                    - expect: { atMost: 1, times: 1, within: 1s }\n- call: { request: /open/v1/lives }\n\
                    - call: { request: FETCH /x, status: 20 }\n- call: { request: \"GET ${path}\" }\n\
                    - call: { request: GET /x, status: none }\n- repeat: { times: 0, steps: [ wait: soon ] }\n";
        let file = parse("a.yaml", text).expect("a scenario");
        let mut walk = Walk { saved: BTreeSet::from(["path".to_owned()]), ..Walk::default() };
        walk.steps(&file.steps, "steps", &Values::default());
        let paths: Vec<_> = walk.mistakes.iter().map(|(path, _)| path.as_str()).collect();
        let expected = [
            "steps[0].wait",
            "steps[1].expect",
            "steps[2].expect",
            "steps[3].call.request",
            "steps[4].call.request",
            "steps[4].call.status",
            "steps[7].repeat.times",
            "steps[7].repeat.steps[0].wait",
        ];
        assert_eq!(paths, expected);
    }
}
