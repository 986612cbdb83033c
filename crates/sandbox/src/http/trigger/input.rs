//! The fields of a trigger, with their defaults.

use domain::ChannelId;
use domain::application::Application;
use domain::event::EventType;
use serde_json::{Map, Value};
use service::{Service, SessionFilter};

use crate::http::answer::Problem;
use crate::http::names;

/// Number of sessions that one query reads.
const PAGE_ROWS: i64 = 100;

/// What came of a trigger, by name.
pub(super) type Outcome = Map<String, Value>;

/// The fields of one call.
pub(super) struct Input {
    /// The service that the trigger acts on.
    pub service: Service,
    /// The given fields.
    pub fields: Map<String, Value>,
}

impl Input {
    /// A text. A number is a text too.
    pub(super) fn text(&self, field: &str) -> Result<Option<String>, Problem> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(Problem::invalid(field, "must be a text")),
        }
    }

    /// A text that has no default.
    pub(super) fn required(&self, field: &str) -> Result<String, Problem> {
        self.text(field)?.ok_or_else(|| Problem::invalid(field, "must be given"))
    }

    /// A whole number.
    pub(super) fn integer(&self, field: &str) -> Result<Option<i64>, Problem> {
        let number = self.text(field)?.map(|text| text.parse::<i64>());
        number.transpose().map_err(|_| Problem::invalid(field, "must be a whole number"))
    }

    /// `true` or `false`; `false` if it is left out.
    pub(super) fn flag(&self, field: &str) -> Result<bool, Problem> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(Problem::invalid(field, "must be true or false")),
        }
    }

    /// A channel; without the field that of the first person.
    pub(super) async fn streamer(&self, field: &str) -> Result<ChannelId, Problem> {
        match self.text(field)? {
            Some(name) => names::channel(&self.service, field, &name).await,
            None => names::first_person(&self.service, field).await,
        }
    }

    /// A channel; without the field that of the last person besides the owner of `channel`.
    pub(super) async fn viewer(&self, field: &str, channel: &ChannelId) -> Result<ChannelId, Problem> {
        match self.text(field)? {
            Some(name) => names::channel(&self.service, field, &name).await,
            None => names::last_person_besides(&self.service, field, channel).await,
        }
    }

    /// An application; without the field the first one.
    pub(super) async fn application(&self, field: &str) -> Result<Application, Problem> {
        match self.text(field)? {
            Some(name) => names::application(&self.service, field, &name).await,
            None => names::first_application(&self.service, field).await,
        }
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

/// An outcome of named values.
pub(super) fn outcome(values: Value) -> Outcome {
    match values {
        Value::Object(outcome) => outcome,
        _ => Outcome::new(),
    }
}
