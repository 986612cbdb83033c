//! The fields of a trigger, with their defaults.

use std::ops::Deref;
use std::time::Duration;

use domain::application::Application;
use domain::event::EventType;
use domain::{ChannelId, ClientId, Refusal, Rule};
use gateway::Gateway;
use http::StatusCode;
use serde_json::{Map, Value};
use service::{Clock, Service, SessionFilter};
use tokio::sync::watch;

use super::fields::{GivenFields, wrong};
use crate::http::answer::Problem;
use crate::http::names;
use crate::sandbox::Sandbox;

/// Number of sessions that one query reads.
const PAGE_ROWS: i64 = 100;
/// Maximum number of sessions that a refusal shows.
const SHOWN_SESSIONS_MAX: i64 = 10;
/// Maximum wait for a session, in real time.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// What came of a trigger, by name.
pub(super) type Outcome = Map<String, Value>;

/// The fields of one call.
pub(super) struct Input {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// The service that the trigger acts on.
    pub service: Service,
    /// The sockets that the trigger acts on.
    pub gateway: Gateway,
    /// The given fields.
    pub fields: GivenFields,
}

impl Deref for Input {
    type Target = GivenFields;

    fn deref(&self) -> &GivenFields {
        &self.fields
    }
}

impl Input {
    /// A channel; without the field that of the first person.
    pub(super) async fn streamer(&self, field: &str) -> Result<ChannelId, Problem> {
        match self.text(field) {
            Some(name) => names::channel(&self.service, field, &name).await,
            None => names::first_person(&self.service, field).await,
        }
    }

    /// A channel; without the field that of the last person besides the owner of `channel`.
    pub(super) async fn viewer(&self, field: &str, channel: &ChannelId) -> Result<ChannelId, Problem> {
        match self.text(field) {
            Some(name) => names::channel(&self.service, field, &name).await,
            None => names::last_person_besides(&self.service, field, channel).await,
        }
    }

    /// The people besides the owner of `channel`.
    pub(super) async fn people_besides(&self, channel: &ChannelId) -> Result<Vec<ChannelId>, Problem> {
        let people = self.service.people(PAGE_ROWS).await?.into_iter().map(|person| person.channel_id);
        Ok(people.filter(|person| person != channel).collect())
    }

    /// An application; without the field the oldest one.
    pub(super) async fn application(&self, field: &str) -> Result<Application, Problem> {
        match self.text(field) {
            Some(name) => names::application(&self.service, field, &name).await,
            None => names::first_application(&self.service, field).await,
        }
    }

    /// The channel of a field that has no default.
    pub(super) async fn given_streamer(&self, field: &str) -> Result<Option<ChannelId>, Problem> {
        match self.text(field) {
            Some(name) => names::channel(&self.service, field, &name).await.map(Some),
            None => Ok(None),
        }
    }

    /// The application of a field that has no default.
    pub(super) async fn given_application(&self, field: &str) -> Result<Option<ClientId>, Problem> {
        match self.text(field) {
            Some(name) => {
                let application = names::application(&self.service, field, &name).await?;
                Ok(Some(application.client_id))
            }
            None => Ok(None),
        }
    }

    /// The application `client` and the user `user` of a call; the first person if neither is given.
    pub(super) async fn application_and_user(
        &self,
    ) -> Result<(Option<ClientId>, Option<ChannelId>), Problem> {
        let client_id = self.given_application("client").await?;
        let user = match client_id {
            Some(_) => self.given_streamer("user").await?,
            None => Some(self.streamer("user").await?),
        };
        Ok((client_id, user))
    }

    /// The number of connected sessions of this node that are subscribed to an event of a channel. With the
    /// field `wait`, waits until there is one.
    pub(super) async fn heard_by(&self, event: EventType, channel: &ChannelId) -> Result<u64, Problem> {
        let mut waiting = self.waiting();
        loop {
            let count = self.subscribed(event, channel).await?;
            if count > 0 || self.span("wait").is_none() {
                return Ok(count);
            }
            if !waiting.goes_on().await {
                let why = format!("no session is subscribed to {} of {channel}", event.name());
                return Err(Problem::unmet("wait", format!("{why}. {}", self.connected_sessions().await?)));
            }
        }
    }

    /// A wait of the length of the field `wait`, from record to record of the log.
    pub(super) fn waiting(&self) -> Waiting {
        let span = self.span("wait").unwrap_or_default().min(WAIT_MAX);
        let clock = self.service.clock().clone();
        Waiting { changes: self.sandbox.log().changes(), until: clock.monotonic() + span, clock }
    }

    /// A sentence about the connected sessions.
    pub(super) async fn connected_sessions(&self) -> Result<String, Problem> {
        let filter = SessionFilter { connected: Some(true), ..SessionFilter::default() };
        let page = self.service.list_sessions(filter, SHOWN_SESSIONS_MAX, None).await?;
        if page.sessions.is_empty() {
            return Ok("No session is connected".to_owned());
        }
        let shown = page.sessions.iter().map(|session| {
            let user = session.owner.channel_id().map(|user| format!(" of {user}")).unwrap_or_default();
            format!("{}{user} for {}", session.session_key, session.owner.client_id())
        });
        let more = if page.next.is_some() { ", …" } else { "" };
        Ok(format!("Connected are: {}{more}", shown.collect::<Vec<_>>().join(", ")))
    }

    /// The number of connected sessions of this node that are subscribed to an event of a channel.
    pub(super) async fn subscribed(&self, event: EventType, channel: &ChannelId) -> Result<u64, Problem> {
        let (mut count, mut next) = (0, None);
        loop {
            let filter = SessionFilter { connected: Some(true), ..SessionFilter::default() };
            let page = self.service.list_sessions(filter, PAGE_ROWS, next.as_deref()).await?;
            let subscribed = page.sessions.iter().filter(|session| {
                session.node_id == *self.service.node()
                    && session.subscribed_events.iter().any(|subscription| {
                        subscription.event_type == event && subscription.channel_id == *channel
                    })
            });
            count += subscribed.count() as u64;
            next = page.next;
            if next.is_none() {
                return Ok(count);
            }
        }
    }
}

/// A wait for another state of the sandbox.
pub(super) struct Waiting {
    changes: watch::Receiver<u64>,
    /// On the monotonic clock.
    until: Duration,
    clock: Clock,
}

impl Waiting {
    /// Waits for a record that was written since the last wait. `false` when the time is over.
    pub(super) async fn goes_on(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.clock.sleep_until(self.until) => false,
            changed = self.changes.changed() => changed.is_ok(),
        }
    }
}

/// The refusal of an operation, with the names of [`wrong`].
pub(super) fn spelled(error: service::Error, names: &[(&str, &str)]) -> Problem {
    match error.refusal() {
        // The value is right, but for the state of the sandbox.
        Refusal::Invalid(invalid) if invalid.rule == Rule::Claimed => {
            let problem = wrong(&invalid, names);
            Problem::new(StatusCode::CONFLICT, problem.message())
        }
        Refusal::Invalid(invalid) => wrong(&invalid, names),
        _ => error.into(),
    }
}

/// An outcome of named values.
pub(super) fn outcome(values: Value) -> Outcome {
    match values {
        Value::Object(outcome) => outcome,
        _ => Outcome::new(),
    }
}
