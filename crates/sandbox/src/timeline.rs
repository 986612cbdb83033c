//! Runs what becomes due while the clock is moved: from one due time to the next, through the operations of
//! the service.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use domain::delivery::{Next, Outcome};
use domain::limits::{MINUTE_MS, NODE_HEARTBEAT_MS};
use domain::{ClientId, Refusal, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use service::attempt_faults::SentAttempt;
use service::due::{Due, DueKind};
use service::housekeeping::SWEEP_ROWS_MAX;

use crate::log::{NewRecord, RecordKind};
use crate::made_attempts::Collecting;
use crate::sandbox::{Parts, Sandbox};
use crate::time_text;

/// Maximum number of happenings that one move returns.
const HAPPENED_MAX: usize = 10_000;
/// Maximum number of batches that one step purges or sweeps. The background jobs do the rest.
const BATCHES_MAX: usize = 1_000;
/// What becomes due within this time is run together, in milliseconds. The background jobs look as often.
const TOGETHER_MS: i64 = 500;
/// So many messages that become due within [`CROWD_MS`] are run together.
const CROWD: usize = 20;
/// See [`CROWD`].
const CROWD_MS: i64 = MINUTE_MS;
/// How long the record of a listener's attempt may take, in real time, and the pause between two looks.
const RECORDED_WITHIN: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Number of things of each kind that are read to plan a step: a crowd and one more.
const PLANNED: usize = CROWD + 1;

/// Something that happened while the clock moved, or will happen.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Happened {
    /// When it became due.
    #[serde(serialize_with = "time_text::rfc3339")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// What became due, as in `webhook.attempt`.
    pub what: &'static str,
    /// The ids of what became due, by name.
    #[serde(flatten)]
    pub ids: Map<String, Value>,
}

impl From<&Due> for Happened {
    fn from(due: &Due) -> Self {
        Self { at: due.at, what: due.kind.name(), ids: ids(due) }
    }
}

/// What happened in a move of the clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    /// In the order of the due times.
    pub happened: Vec<Happened>,
    /// The number of further happenings that are not listed.
    pub omitted: u64,
}

/// A running move of the clock.
pub(crate) struct Timeline<'a> {
    sandbox: &'a Sandbox,
    parts: &'a Parts,
    passed: Passed,
    /// When the last heartbeat was written.
    beat_at: Timestamp,
}

impl<'a> Timeline<'a> {
    pub fn new(sandbox: &'a Sandbox, parts: &'a Parts) -> Self {
        Self { sandbox, parts, passed: Passed::default(), beat_at: Timestamp::default() }
    }

    /// Moves the clock from `now` to `target`.
    pub async fn run(mut self, now: Timestamp, target: Timestamp) -> Result<Passed, service::Error> {
        // The lease of a running attempt would end with the move.
        self.settle_webhooks().await?;
        let made = self.sandbox.made_attempts().collect();
        let mut from = now;
        loop {
            let (begins, next_end) = self.parts.service.plan(from, target, PLANNED as i64).await?;
            let until = step_end(&begins).unwrap_or(target);
            let mut happened = Vec::new();
            if next_end.is_some_and(|at| at <= until) {
                happened = self.ended(from, until).await?;
            }
            let begins = self.begins(begins, from, until).await?;
            self.step(&made, until, begins, happened).await?;
            from = until;
            if from >= target {
                break;
            }
        }
        self.sweep().await?;
        Ok(self.passed)
    }

    /// The lifetimes that end in a step.
    async fn ended(&mut self, from: Timestamp, until: Timestamp) -> Result<Vec<Happened>, service::Error> {
        let kept = HAPPENED_MAX.saturating_sub(self.passed.happened.len());
        let (ended, count) = self.parts.service.all_due(&DueKind::PASSIVE, from, until, kept).await?;
        self.passed.omitted += count - ended.len() as u64;
        Ok(ended.iter().map(Happened::from).collect())
    }

    /// What begins in a step. `planned` has the earliest [`PLANNED`] of each kind.
    async fn begins(
        &self,
        mut planned: Vec<Due>,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Due>, service::Error> {
        planned.retain(|due| due.at <= until);
        if planned.len() < PLANNED {
            return Ok(planned);
        }
        Ok(self.parts.service.all_due(&DueKind::ACTIVE, from, until, usize::MAX).await?.0)
    }

    /// Moves the clock to `until`, and runs what begins until then. `happened` has what ends.
    async fn step(
        &mut self,
        made: &Collecting<'_>,
        until: Timestamp,
        begins: Vec<Due>,
        mut happened: Vec<Happened>,
    ) -> Result<(), service::Error> {
        self.sandbox.clock().advance_to(until);
        self.beat(until).await?;
        let (messages, applications): (Vec<Due>, Vec<Due>) =
            begins.into_iter().partition(|due| due.kind == DueKind::WebhookAttempt);
        if !applications.is_empty() {
            happened.extend(self.retire_applications(&applications).await?);
        }
        if !messages.is_empty() {
            self.settle_webhooks().await?;
            self.wait_for_records(made, &messages).await;
            happened.extend(self.attempts(made.take(), &messages, until).await?);
        }
        // Stable: what follows from an attempt stays behind it.
        happened.sort_by_key(|one| one.at);
        happened.into_iter().for_each(|one| self.note(one));
        Ok(())
    }

    /// Writes a heartbeat if the last one is old. Otherwise this node seems dead: it was silent during the
    /// move.
    async fn beat(&mut self, now: Timestamp) -> Result<(), service::Error> {
        if now >= self.beat_at.plus_ms(NODE_HEARTBEAT_MS) {
            self.parts.service.heartbeat().await?;
            self.beat_at = now;
        }
        Ok(())
    }

    /// Waits until the attempts that are due have been made, also by listeners.
    async fn settle_webhooks(&self) -> Result<(), service::Error> {
        if let Some(settler) = &self.parts.settler {
            settler.settle().await;
        }
        self.parts.service.settle_listeners().await
    }

    /// Waits until the results of these messages are recorded, which a call of a listener does beside the
    /// move. Without a listener there will be none.
    async fn wait_for_records(&self, made: &Collecting<'_>, messages: &[Due]) {
        let clock = self.parts.service.clock();
        let until = clock.monotonic() + RECORDED_WITHIN;
        let ids = || messages.iter().filter_map(|due| due.ids[1].as_deref());
        while !made.has_all(ids()) && clock.monotonic() < until {
            clock.sleep(LOOK_EVERY).await;
        }
    }

    /// Warns, deletes and purges applications. Returns what happened to these.
    async fn retire_applications(&self, due: &[Due]) -> Result<Vec<Happened>, service::Error> {
        let service = &self.parts.service;
        service.inspect_unused_applications().await?;
        for _ in 0..BATCHES_MAX {
            if service.purge_applications().await? == 0 {
                break;
            }
        }
        let mut happened = Vec::new();
        for due in due {
            if self.application_is_retired(due).await? {
                happened.push(Happened::from(due));
            }
        }
        Ok(happened)
    }

    /// Whether the application is in the state that was due. It is not if it was in use until now, for
    /// example by a session.
    async fn application_is_retired(&self, due: &Due) -> Result<bool, service::Error> {
        let [Some(client_id), _] = &due.ids else { return Ok(false) };
        let client_id = ClientId::stored(client_id.clone());
        match self.parts.service.application_details(&client_id).await {
            Ok(details) => Ok(match due.kind.notice() {
                Some(notice) => details.life.notices.iter().any(|given| given.kind == notice),
                None => due.kind == DueKind::ApplicationDeleted && details.life.deleted_at.is_some(),
            }),
            Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => {
                Ok(due.kind == DueKind::ApplicationPurged)
            }
            Err(error) => Err(error),
        }
    }

    /// The attempts that were made, and their consequences. `due` has the due times of most of them.
    async fn attempts(
        &self,
        made: Vec<SentAttempt>,
        due: &[Due],
        now: Timestamp,
    ) -> Result<Vec<Happened>, service::Error> {
        let due_at: HashMap<&str, Timestamp> =
            due.iter().filter_map(|due| Some((due.ids[1].as_deref()?, due.at))).collect();
        let (mut happened, mut failed) = (Vec::new(), BTreeMap::new());
        for attempt in made {
            let at = due_at.get(attempt.key.message_id.as_str()).copied().unwrap_or(now);
            happened.extend(attempt_and_consequence(at, &attempt));
            if attempt.next != Some(Next::Done) {
                failed.insert(attempt.client_id.as_str().to_owned(), (attempt.client_id, at));
            }
        }
        for (client_id, at) in failed.into_values() {
            happened.extend(self.disabled(at, &client_id).await?);
        }
        Ok(happened)
    }

    /// That the webhook of an application was disabled at this time, if it was.
    async fn disabled(
        &self,
        at: Timestamp,
        client_id: &ClientId,
    ) -> Result<Option<Happened>, service::Error> {
        let webhook = match self.parts.service.webhook_details(client_id).await {
            Ok(details) => details.webhook,
            Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(webhook.disabled.filter(|disabled| disabled.since >= at).map(|disabled| {
            let fields = [
                ("clientId", client_id.as_str()),
                ("webhookId", webhook.webhook_id.as_str()),
                ("reason", disabled.reason.name()),
            ];
            let fields = fields.map(|(name, value)| (name.to_owned(), Value::from(value)));
            Happened { at, what: "webhook.disabled", ids: Map::from_iter(fields) }
        }))
    }

    /// Deletes what is over. What is over is not visible, so that one sweep after all steps is enough.
    async fn sweep(&self) -> Result<(), service::Error> {
        for _ in 0..BATCHES_MAX {
            if self.parts.service.sweep().await? < SWEEP_ROWS_MAX.unsigned_abs() {
                break;
            }
        }
        Ok(())
    }

    fn note(&mut self, happened: Happened) {
        let mut fields = happened.ids.clone();
        fields.insert("what".to_owned(), happened.what.into());
        self.sandbox.log().add(NewRecord { at: happened.at, kind: RecordKind::Due, fields });
        if self.passed.happened.len() < HAPPENED_MAX {
            self.passed.happened.push(happened);
        } else {
            self.passed.omitted += 1;
        }
    }
}

/// The end of the step in which the first of these is run; `None` if nothing is due. What is due within
/// [`TOGETHER_MS`] is run together. So is a crowd of messages within [`CROWD_MS`]: otherwise each of
/// thousands, whose retries are spread, would be a step of its own. Everything is run at the last due time,
/// so nothing is early.
fn step_end(due: &[Due]) -> Option<Timestamp> {
    let first = due.first()?;
    let is_crowd = |due: &&Due| due.kind == DueKind::WebhookAttempt && due.at <= first.at.plus_ms(CROWD_MS);
    let crowd = due.iter().take_while(is_crowd).take(CROWD);
    if crowd.clone().count() == CROWD {
        return crowd.last().map(|due| due.at);
    }
    let together = due.iter().take_while(|due| due.at <= first.at.plus_ms(TOGETHER_MS));
    together.last().map(|due| due.at)
}

/// An attempt, and what it meant for its message.
fn attempt_and_consequence(at: Timestamp, attempt: &SentAttempt) -> Vec<Happened> {
    let ids = [("clientId", attempt.client_id.as_str()), ("messageId", attempt.key.message_id.as_str())];
    let ids = Map::from_iter(ids.map(|(name, id)| (name.to_owned(), Value::from(id))));
    let mut fields = ids.clone();
    fields.insert("number".to_owned(), attempt.key.number.into());
    match attempt.outcome {
        Outcome::Answered { status, .. } => fields.insert("status".to_owned(), status.into()),
        Outcome::Failed(failure) => fields.insert("failure".to_owned(), failure.name().into()),
    };
    let mut happened = vec![Happened { at, what: DueKind::WebhookAttempt.name(), ids: fields }];
    let consequence = match attempt.next {
        Some(Next::Done) => Some("webhook.delivered"),
        Some(Next::Dead | Next::Gone) => Some("webhook.dead"),
        Some(Next::Again(_)) | None => None,
    };
    happened.extend(consequence.map(|what| Happened { at, what, ids }));
    happened
}

/// The ids of what is due, by name.
fn ids(due: &Due) -> Map<String, Value> {
    let named = due.kind.id_names().into_iter().zip(&due.ids);
    named.filter_map(|(name, id)| Some((name.to_owned(), id.as_deref()?.into()))).collect()
}
