//! Runs the steps of a scenario, over the sandbox API.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::Timestamp;
use domain::span::parse_span;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Map, Value, json};
use service::Clock;

use super::file::{CallStep, ClockStep, ExpectStep, FaultStep, Since, StepAction, TokenStep, TriggerStep};
use super::plan::{PlannedStep, words};
use super::values::{Values, fulfils, plain};
use crate::client::Failure;
use crate::failure::CommandFailure;
use crate::logs;
use crate::recording::latest_mark;
use crate::target::Target;

/// How long a move of the clock may take besides the usual deadline. It runs everything that becomes due.
const MOVE_PATIENCE: Duration = Duration::from_secs(600);

/// The state of a run.
pub struct Runner<'a> {
    target: &'a Target,
    clock: Clock,
    values: Values,
    /// The mark before the first step.
    start: u64,
    /// The mark before the last step that did something.
    last: u64,
    /// The fault rules that the scenario has added.
    rules: Vec<String>,
    /// How the clock ran before the first step.
    pace: Value,
    /// Whether a session was connected before the first step.
    is_connected: bool,
}

/// Why a step failed.
#[derive(Debug, Default)]
pub struct StepFailure {
    /// The reason.
    pub message: String,
    /// The records that come nearest to what was expected.
    pub nearest: Vec<String>,
    /// Whether the sandbox was not reached.
    pub is_unreachable: bool,
}

impl From<String> for StepFailure {
    fn from(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

impl From<CommandFailure> for StepFailure {
    fn from(failure: CommandFailure) -> Self {
        let is_unreachable = matches!(failure, CommandFailure::Unreachable(_));
        Self { message: failure.to_string(), nearest: Vec::new(), is_unreachable }
    }
}

impl<'a> Runner<'a> {
    /// Notes the state of the sandbox before the first step.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn begin(target: &'a Target, values: Values) -> Result<Self, CommandFailure> {
        let pace = target.call(Method::GET, "/sandbox/v1/clock", None, Duration::ZERO).await?;
        let start = latest_mark(target, 0).await?;
        let connected = "/platform/v1/sessions?connected=true&size=1";
        let sessions = target.call(Method::GET, connected, None, Duration::ZERO).await?;
        let is_connected = sessions["data"].as_array().is_some_and(|sessions| !sessions.is_empty());
        let (clock, rules, mut values) = (Clock::system(), Vec::new(), values);
        let now = pace["now"].as_str().and_then(Timestamp::parse_rfc3339).unwrap_or(clock.now());
        // The clock moves forward only, so no earlier run in this world has the same number.
        values.set("run", json!(now.as_millis()));
        Ok(Self { target, clock, values, start, last: start, rules, pace, is_connected })
    }

    /// Whether a step is left out, because no session was connected.
    pub fn leaves_out(&self, step: &PlannedStep<'_>) -> bool {
        step.needs_session && !self.is_connected
    }

    /// A step in words, with the values that are known.
    pub fn words(&self, step: &PlannedStep<'_>) -> String {
        match step.action {
            StepAction::Say(text) => self.values.text(text).unwrap_or_else(|_| text.clone()),
            action => self.values.shown(&words(action)),
        }
    }

    /// Runs a step. Returns what is worth saying.
    ///
    /// # Errors
    /// [`StepFailure`].
    pub async fn run(&mut self, step: &PlannedStep<'_>) -> Result<String, StepFailure> {
        if let Some((number, _)) = step.turn {
            self.values.set("n", json!(number));
        }
        let needs_time = match step.action {
            StepAction::Say(text) => text.contains("${now"),
            action => !matches!(action, StepAction::Wait(_)),
        };
        if needs_time {
            let clock = self.target.call(Method::GET, "/sandbox/v1/clock", None, Duration::ZERO).await?;
            if let Some(now) = clock["now"].as_str().and_then(Timestamp::parse_rfc3339) {
                self.values.set_now(now);
            }
        }
        if !matches!(step.action, StepAction::Say(_) | StepAction::Wait(_) | StepAction::Expect(_)) {
            self.last = latest_mark(self.target, self.last).await?;
        }
        match step.action {
            StepAction::Trigger(step) => self.trigger(step).await,
            StepAction::Clock(step) => self.move_clock(step).await,
            StepAction::Fault(step) => self.add_fault(step).await,
            StepAction::RemoveFaults => self.remove_faults().await,
            StepAction::Token(step) => self.token(step).await,
            StepAction::Call(step) => self.call(step).await,
            StepAction::Expect(step) => self.expect(step).await,
            StepAction::Wait(span) => {
                self.clock.sleep(parse_span(span).unwrap_or_default()).await;
                Ok(String::new())
            }
            StepAction::Say(text) => Ok(self.values.text(text).map(|_| String::new())?),
            StepAction::Repeat(_) | StepAction::IfConnected(_) => Ok(String::new()),
        }
    }

    async fn post(&self, path: &str, body: &Value, patience: Duration) -> Result<Value, CommandFailure> {
        self.target.call(Method::POST, path, Some(body), patience).await
    }

    async fn trigger(&mut self, step: &TriggerStep) -> Result<String, StepFailure> {
        let fields = Value::Object(self.values.fill_fields(&step.fields)?);
        let path = format!("/sandbox/v1/trigger/{}", step.kind);
        let answer = self.post(&path, &fields, Duration::from_secs(60)).await?;
        self.keep(&answer, &step.answers, &step.save)?;
        Ok(answer["delivered"].as_u64().map(|sessions| format!("delivered {sessions}")).unwrap_or_default())
    }

    async fn move_clock(&mut self, step: &ClockStep) -> Result<String, StepFailure> {
        let change = self.values.fill(&clock_change(step))?;
        let moved = self.post("/sandbox/v1/clock", &change, MOVE_PATIENCE).await?;
        let mut counts = BTreeMap::<&str, u32>::new();
        for one in moved["happened"].as_array().into_iter().flatten() {
            *counts.entry(one["what"].as_str().unwrap_or_default()).or_default() += 1;
        }
        let happened = counts.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>();
        match step.happens.iter().find(|what| !counts.contains_key(what.as_str())) {
            Some(missing) => Err(StepFailure {
                message: format!("{missing} did not happen by {}", plain(&moved["now"])),
                nearest: happened,
                is_unreachable: false,
            }),
            None => Ok(happened.join(", ")),
        }
    }

    async fn add_fault(&mut self, step: &FaultStep) -> Result<String, StepFailure> {
        let rule = self.values.fill(&fault_rule(step))?;
        let added = self.post("/sandbox/v1/faults", &rule, Duration::ZERO).await?;
        let id = plain(&added["id"]);
        self.rules.push(id.clone());
        Ok(format!("rule {id}"))
    }

    async fn remove_faults(&mut self) -> Result<String, StepFailure> {
        let mut hits = Vec::new();
        let kept = self.target.call(Method::GET, "/sandbox/v1/faults", None, Duration::ZERO).await?;
        for rule in kept["data"].as_array().into_iter().flatten() {
            let id = plain(&rule["id"]);
            if self.rules.contains(&id) {
                let path = format!("/sandbox/v1/faults/{id}");
                self.target.call(Method::DELETE, &path, None, Duration::ZERO).await?;
                hits.push(format!("{id} hit {} times", rule["hits"]));
            }
        }
        self.rules.clear();
        Ok(hits.join(", "))
    }

    async fn token(&mut self, step: &TokenStep) -> Result<String, StepFailure> {
        let mut fields = Map::new();
        for (name, text) in [("user", &step.user), ("client", &step.client)] {
            if let Some(text) = text {
                fields.insert(name.to_owned(), self.values.text(text)?.into());
            }
        }
        let issued = self.post("/sandbox/v1/tokens", &Value::Object(fields), Duration::ZERO).await?;
        let about = format!("{} for {}", plain(&issued["channelId"]), plain(&issued["clientId"]));
        self.values.set(&step.name, issued);
        Ok(about)
    }

    async fn call(&mut self, step: &CallStep) -> Result<String, StepFailure> {
        let request = self.values.text(&step.request)?;
        let (method, path) = request.split_once(' ').unwrap_or(("GET", &request));
        let method = method.parse::<Method>().map_err(|_| format!("{method} is no method"))?;
        let body = step.body.as_ref().map(|body| self.values.fill(body)).transpose()?;
        let attempted = match step.caller.as_deref() {
            Some("operator") => self.target.attempt(method, path, body.as_ref(), Duration::ZERO).await,
            caller => {
                let headers = self.credentials(caller)?;
                self.target.server().call(method, path, headers, body.as_ref(), Duration::ZERO).await
            }
        };
        let (status, answer, message) = match attempted {
            Ok(answer) => ("success".to_owned(), answer, "it succeeded".to_owned()),
            Err(Failure::Refused { status, message, content, .. }) => {
                (status.to_string(), content, format!("it was answered with {status} {message}"))
            }
            Err(Failure::Unreachable(why)) => ("none".to_owned(), Value::Null, why),
        };
        let expected = step.status.as_ref().map_or_else(|| "success".to_owned(), plain);
        let is_success = status == "success" && (200..=299).any(|code: u16| code.to_string() == expected);
        if expected != status && expected != "any" && !is_success {
            return Err(format!("expected {expected}, but {message}").into());
        }
        self.keep(&answer, &step.answers, &step.save)?;
        Ok(if status == "success" { String::new() } else { message })
    }

    fn credentials(&self, caller: Option<&str>) -> Result<HeaderMap, String> {
        let Some(caller) = caller else { return Ok(HeaderMap::new()) };
        let issued = self.values.get(caller);
        let token = issued.and_then(|issued| issued["accessToken"].as_str().or_else(|| issued.as_str()));
        let token = token.ok_or_else(|| format!("as: no token step has the name {caller}"))?;
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let value = value.map_err(|_| format!("as: {caller} is no token"))?;
        Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    async fn expect(&mut self, step: &ExpectStep) -> Result<String, StepFailure> {
        let after = match step.since {
            Since::Step => self.last,
            Since::Start => self.start,
        };
        let mut body = self.values.fill(&expectation(step))?;
        body["after"] = json!(after);
        let patience = step.within.as_deref().and_then(parse_span).unwrap_or_default();
        let most = step.at_most;
        let attempted = self.target.attempt(Method::POST, "/sandbox/v1/expect", Some(&body), patience).await;
        match attempted {
            Ok(found) if most.is_some() => Err(StepFailure {
                message: "it happened too often".to_owned(),
                nearest: found["data"].as_array().into_iter().flatten().map(logs::line).collect(),
                is_unreachable: false,
            }),
            Ok(_) => Ok(String::new()),
            Err(Failure::Refused { content, .. }) if most.is_some() && content.get("nearest").is_some() => {
                Ok(String::new())
            }
            Err(Failure::Refused { message, content, .. }) if content.get("nearest").is_some() => {
                Err(StepFailure { message, nearest: nearest(&content), is_unreachable: false })
            }
            Err(failure) => Err(self.target.explained(failure).into()),
        }
    }

    /// Checks the conditions on an answer, and names its parts.
    fn keep(
        &mut self,
        answer: &Value,
        conditions: &BTreeMap<String, Value>,
        save: &BTreeMap<String, String>,
    ) -> Result<(), StepFailure> {
        let part = |path: &str| match path {
            "." => Some(answer),
            path => path.split('.').try_fold(answer, |value, name| child(value, name)),
        };
        for (field, condition) in conditions {
            let (found, condition) = (part(field).unwrap_or(&Value::Null), self.values.fill(condition)?);
            if !fulfils(found, &condition) {
                let message = format!("{field} is {}, not {}", plain(found), plain(&condition));
                return Err(StepFailure {
                    message,
                    nearest: vec![answer.to_string()],
                    is_unreachable: false,
                });
            }
        }
        for (name, field) in save {
            let found = part(field).ok_or_else(|| format!("save: the answer has no {field}: {answer}"))?;
            self.values.set(name, found.clone());
        }
        Ok(())
    }

    /// Removes the fault rules of the scenario, and lets the clock run as before. The time stays, because a
    /// clock moves forward only.
    ///
    /// # Errors
    /// [`StepFailure`].
    pub async fn restore(&mut self) -> Result<(), StepFailure> {
        self.remove_faults().await?;
        let now = self.target.call(Method::GET, "/sandbox/v1/clock", None, Duration::ZERO).await?;
        let same = |name: &str| now[name] == self.pace[name];
        if !same("mode") || !same("rate") {
            let mut change = json!({ "mode": self.pace["mode"] });
            if self.pace["mode"] == "scaled" {
                change["rate"] = self.pace["rate"].clone();
            }
            self.post("/sandbox/v1/clock", &change, Duration::ZERO).await?;
        }
        Ok(())
    }
}

/// The call of a step that moves the clock, without its names replaced.
pub(super) fn clock_change(step: &ClockStep) -> Value {
    let ClockStep { advance, to, until, mode, rate, .. } = step;
    let mut change = Map::new();
    for (name, text) in [("advance", advance), ("to", to), ("until", until), ("mode", mode)] {
        change.extend(text.as_deref().map(|text| (name.to_owned(), text.into())));
    }
    change.extend(rate.map(|rate| ("rate".to_owned(), json!(rate))));
    Value::Object(change)
}

/// The fault rule of a step.
pub(super) fn fault_rule(step: &FaultStep) -> Value {
    let FaultStep { matching, nth, probability, times, seed, effect } = step;
    let mut rule = json!({ "match": matching, "do": effect });
    for (name, value) in [("nth", nth), ("probability", probability), ("times", times), ("seed", seed)] {
        if let Some(value) = value {
            rule[name] = value.clone();
        }
    }
    rule
}

/// The call of a step that expects something, but for the records that count.
pub(super) fn expectation(step: &ExpectStep) -> Value {
    let ExpectStep { kind, conditions, within, times, at_most, .. } = step;
    // One more than what may happen.
    let times = at_most.map_or(times.unwrap_or(1), |most| most + 1);
    let mut body = json!({ "where": conditions, "times": times });
    for (name, text) in [("kind", kind), ("within", within)] {
        if let Some(text) = text {
            body[name] = json!(text);
        }
    }
    body
}

/// A field of an object, or an item of a list by its number.
fn child<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match name.parse::<usize>() {
        Ok(number) if value.is_array() => value.get(number),
        _ => value.get(name),
    }
}

/// The nearest misses, in a line each.
fn nearest(content: &Value) -> Vec<String> {
    let misses = content["nearest"].as_array().into_iter().flatten();
    let line = |miss: &Value| {
        let failed = miss["failed"].as_array().into_iter().flatten().map(plain).collect::<Vec<_>>();
        format!("{}  differs in {}", logs::line(&miss["record"]).trim(), failed.join(", "))
    };
    misses.map(line).collect()
}
