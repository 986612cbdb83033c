//! Runs what becomes due while the clock is moved: from one due time to the next, through the operations of
//! the service.

use domain::delivery::DeliveryState;
use domain::{ClientId, DeliveryId, Refusal, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use service::due::{DUE_ROWS_MAX, Due, DueKind};
use service::housekeeping::SWEEP_ROWS_MAX;

use crate::log::{NewRecord, RecordKind};
use crate::sandbox::{Parts, Sandbox};
use crate::time_text;

/// Maximum number of happenings that one move returns.
const HAPPENED_MAX: usize = 10_000;
/// Maximum number of batches that one step purges or sweeps. The background jobs do the rest.
const BATCHES_MAX: usize = 1_000;

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
}

impl<'a> Timeline<'a> {
    pub fn new(sandbox: &'a Sandbox, parts: &'a Parts) -> Self {
        Self { sandbox, parts, passed: Passed::default() }
    }

    /// Moves the clock from `now` to `target`.
    pub async fn run(mut self, now: Timestamp, target: Timestamp) -> Result<Passed, service::Error> {
        // The lease of a running attempt would end with the move.
        self.settle_webhooks().await;
        let mut from = now;
        loop {
            let next = self.parts.service.due(&DueKind::ACTIVE, from, target, 1).await?;
            let until = next.first().map_or(target, |due| due.at);
            self.step(from, until).await?;
            from = until;
            if from >= target {
                break;
            }
        }
        self.sweep().await?;
        Ok(self.passed)
    }

    /// Moves the clock to `until`, and runs what becomes due then.
    async fn step(&mut self, from: Timestamp, until: Timestamp) -> Result<(), service::Error> {
        let service = &self.parts.service;
        let ended = service.due(&DueKind::PASSIVE, from, until, DUE_ROWS_MAX).await?;
        let begins = service.due(&DueKind::ACTIVE, from, until, DUE_ROWS_MAX).await?;
        self.sandbox.clock().advance_to(until);
        // Otherwise this node seems dead: it was silent during the move.
        service.heartbeat().await?;
        for due in &ended {
            self.note(due.at, due.kind.name(), ids(due));
        }
        let (messages, applications): (Vec<Due>, Vec<Due>) =
            begins.into_iter().partition(|due| due.kind == DueKind::WebhookAttempt);
        if !applications.is_empty() {
            self.retire_applications(&applications).await?;
        }
        if !messages.is_empty() {
            self.settle_webhooks().await;
            self.note_attempts(&messages).await?;
        }
        Ok(())
    }

    async fn settle_webhooks(&self) {
        if let Some(settler) = &self.parts.settler {
            settler.settle().await;
        }
    }

    /// Warns, deletes and purges applications, and notes what happened to these.
    async fn retire_applications(&mut self, due: &[Due]) -> Result<(), service::Error> {
        let service = &self.parts.service;
        service.inspect_unused_applications().await?;
        for _ in 0..BATCHES_MAX {
            if service.purge_applications().await? == 0 {
                break;
            }
        }
        for due in due {
            if self.application_is_retired(due).await? {
                self.note(due.at, due.kind.name(), ids(due));
            }
        }
        Ok(())
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

    /// Notes the attempts that were made of these messages, and their consequences.
    async fn note_attempts(&mut self, due: &[Due]) -> Result<(), service::Error> {
        let mut clients = Vec::new();
        for due in due {
            let [Some(client_id), Some(message_id)] = &due.ids else { continue };
            let client_id = ClientId::stored(client_id.clone());
            self.note_attempt(due, &client_id, &DeliveryId::stored(message_id.clone())).await?;
            if !clients.contains(&client_id) {
                clients.push(client_id);
            }
        }
        let Some(at) = due.first().map(|due| due.at) else { return Ok(()) };
        for client_id in clients {
            self.note_disabled(at, &client_id).await?;
        }
        Ok(())
    }

    async fn note_attempt(
        &mut self,
        due: &Due,
        client_id: &ClientId,
        message_id: &DeliveryId,
    ) -> Result<(), service::Error> {
        let details = match self.parts.service.webhook_delivery(client_id, message_id).await {
            Ok(details) => details,
            // The webhook was deleted during the attempt.
            Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Some(attempt) = details.attempts.first().filter(|attempt| attempt.began_at >= due.at) else {
            return Ok(());
        };
        let mut fields = ids(due);
        fields.insert("number".to_owned(), attempt.number.into());
        if let Some(status) = attempt.status {
            fields.insert("status".to_owned(), status.into());
        }
        if let Some(failure) = attempt.failure {
            fields.insert("failure".to_owned(), failure.name().into());
        }
        self.note(due.at, due.kind.name(), fields);
        match details.delivery.state {
            DeliveryState::Waiting => {}
            DeliveryState::Delivered => self.note(due.at, "webhook.delivered", ids(due)),
            DeliveryState::Dead => self.note(due.at, "webhook.dead", ids(due)),
        }
        Ok(())
    }

    /// Notes that the webhook of an application was disabled at this time.
    async fn note_disabled(&mut self, at: Timestamp, client_id: &ClientId) -> Result<(), service::Error> {
        let webhook = match self.parts.service.webhook_details(client_id).await {
            Ok(details) => details.webhook,
            Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(disabled) = webhook.disabled.filter(|disabled| disabled.since >= at) {
            let fields = [
                ("clientId", client_id.as_str()),
                ("webhookId", webhook.webhook_id.as_str()),
                ("reason", disabled.reason.name()),
            ];
            let fields = fields.map(|(name, value)| (name.to_owned(), Value::from(value)));
            self.note(at, "webhook.disabled", Map::from_iter(fields));
        }
        Ok(())
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

    fn note(&mut self, at: Timestamp, what: &'static str, ids: Map<String, Value>) {
        let mut fields = ids.clone();
        fields.insert("what".to_owned(), what.into());
        self.sandbox.log().add(NewRecord { at, kind: RecordKind::Due, fields });
        if self.passed.happened.len() < HAPPENED_MAX {
            self.passed.happened.push(Happened { at, what, ids });
        } else {
            self.passed.omitted += 1;
        }
    }
}

/// The ids of what is due, by name.
fn ids(due: &Due) -> Map<String, Value> {
    let named = due.kind.id_names().into_iter().zip(&due.ids);
    named.filter_map(|(name, id)| Some((name.to_owned(), id.as_deref()?.into()))).collect()
}
