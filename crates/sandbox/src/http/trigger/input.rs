//! The fields of a trigger, with their defaults.

use domain::application::Application;
use domain::chat::Emojis;
use domain::event::EventType;
use domain::{ChannelId, ClientId, Language, Refusal};
use gateway::Gateway;
use serde_json::{Map, Value};
use service::{Service, SessionFilter};

use crate::http::answer::Problem;
use crate::http::names;
use crate::sandbox::Sandbox;

/// Number of sessions that one query reads.
const PAGE_ROWS: i64 = 100;

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

    /// An object, or the text of one.
    pub(super) fn object(&self, field: &str) -> Result<Option<Map<String, Value>>, Problem> {
        let wrong = || Problem::invalid(field, "must be an object, or a text that is one as JSON");
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object.clone())),
            Some(Value::String(text)) => serde_json::from_str(text).map(Some).map_err(|_| wrong()),
            Some(_) => Err(wrong()),
        }
    }

    /// Emoji identifiers, each with the address of its picture; none if the field is left out.
    pub(super) fn emojis(&self, field: &str) -> Result<Emojis, Problem> {
        let emojis = self.object(field)?.unwrap_or_default().into_iter();
        let emoji = |(id, url)| match url {
            Value::String(url) => Ok((id, url)),
            _ => Err(Problem::invalid(&format!("{field}.{id}"), "must be a text")),
        };
        emojis.map(emoji).collect()
    }

    /// A list of texts, or one text with commas between them.
    pub(super) fn list(&self, field: &str) -> Result<Option<Vec<String>>, Problem> {
        let wrong = || Problem::invalid(field, "must be a list of texts, or a text with commas between them");
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(Some(Vec::new())),
            Some(Value::String(text)) => Ok(Some(text.split(',').map(str::to_owned).collect())),
            Some(Value::Array(values)) => {
                let texts = values.iter().map(|value| value.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<_>>>().map(Some).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
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

    /// The people besides the owner of `channel`.
    pub(super) async fn people_besides(&self, channel: &ChannelId) -> Result<Vec<ChannelId>, Problem> {
        let people = self.service.people(PAGE_ROWS).await?.into_iter().map(|person| person.channel_id);
        Ok(people.filter(|person| person != channel).collect())
    }

    /// An application; without the field the first one.
    pub(super) async fn application(&self, field: &str) -> Result<Application, Problem> {
        match self.text(field)? {
            Some(name) => names::application(&self.service, field, &name).await,
            None => names::first_application(&self.service, field).await,
        }
    }

    /// The channel of a field that has no default.
    pub(super) async fn given_streamer(&self, field: &str) -> Result<Option<ChannelId>, Problem> {
        match self.text(field)? {
            Some(name) => names::channel(&self.service, field, &name).await.map(Some),
            None => Ok(None),
        }
    }

    /// The application of a field that has no default.
    pub(super) async fn given_application(&self, field: &str) -> Result<Option<ClientId>, Problem> {
        match self.text(field)? {
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

/// The refusal of an operation. A field is named as the trigger spells it: each pair of `names` is the
/// operation's name and the trigger's.
pub(super) fn spelled(error: service::Error, names: &[(&str, &str)]) -> Problem {
    let Refusal::Invalid(invalid) = error.refusal() else { return error.into() };
    let spelled = names.iter().find(|(name, _)| *name == invalid.field).map(|(_, spelled)| *spelled);
    let message = invalid.message(Language::English);
    let rule = message.split_once(&format!("{}: ", invalid.field)).map(|(_, rule)| rule);
    Problem::invalid(spelled.unwrap_or(invalid.field), rule.unwrap_or(&message))
}

/// An outcome of named values.
pub(super) fn outcome(values: Value) -> Outcome {
    match values {
        Value::Object(outcome) => outcome,
        _ => Outcome::new(),
    }
}
