//! Explains an id or a word: what it is, what the record says of it, and what to do next.

mod mentions;
mod receivers;
mod thing;
mod tokens;
mod words;

use std::sync::Arc;

use domain::session::SessionDetails;
use domain::{ChannelId, ClientId, DeliveryId, SessionKey, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use service::deliveries::{Delivery, DeliveryDetails, DeliveryQuery};
use service::{Error, Service};

use crate::log::{Record, RecordKind};
use crate::sandbox::Sandbox;
use receivers::Receiver;
use thing::Thing;
use words::Meaning;

/// Maximum number of applications whose webhooks are searched, and of messages of each.
const SEARCHED_MAX: i64 = 100;

/// What is known of an id or a word.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explanation {
    /// What was asked for.
    what: String,
    /// What kind of thing it is.
    kind: String,
    /// What it is, as a sentence.
    summary: String,
    /// What is known of it, by name.
    facts: Map<String, Value>,
    /// For an event: the newest sessions, and whether it was sent to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<Receiver>,
    /// What to do next.
    next: Vec<String>,
    /// The latest records that mention it, oldest first.
    #[schemars(with = "Vec<Value>")]
    records: Vec<Arc<Record>>,
}

/// Explains an id or a word; `None` if nothing is known of it.
///
/// # Errors
/// The store fails.
pub(crate) async fn explain(
    sandbox: &Sandbox,
    service: &Service,
    what: &str,
) -> Result<Option<Explanation>, Error> {
    let meanings = words::meanings(what);
    let word = what.split(';').next().unwrap_or_default().trim();
    let records = mentions::of(sandbox.log(), word);
    let thing = match word_thing(&meanings) {
        Some(thing) => Some(thing),
        None => match stored_thing(service, what).await? {
            Some(thing) => Some(thing),
            None => recorded_thing(&records, what),
        },
    };
    let Some(Thing { kind, summary, facts, mut next }) = thing else { return Ok(None) };
    let caused = records.iter().find_map(|record| Some((mentions::caused_event(record)?, record)));
    let is_event = matches!(kind, "request" | "message" | "record");
    let sessions = match caused.filter(|_| is_event) {
        Some((event, cause)) => {
            let sent = mentions::sent(sandbox.log(), &event, cause.mark);
            receivers::of(service, &event, cause.at, sent.as_deref()).await?
        }
        None => Vec::new(),
    };
    next.extend(remedies_of(&records).into_iter().filter(|_| meanings.is_empty()));
    next.dedup();
    let facts = match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    };
    let (what, kind) = (what.to_owned(), kind.to_owned());
    Ok(Some(Explanation { what, kind, summary, facts, sessions, next, records }))
}

/// A word of the documentation. One word may have several meanings.
fn word_thing(meanings: &[Meaning]) -> Option<Thing> {
    let first = meanings.first()?;
    let sentence = |meaning: &Meaning| format!("{}: {}", meaning.kind, meaning.meaning);
    let summary = match meanings {
        [one] => one.meaning.clone(),
        several => several.iter().map(sentence).collect::<Vec<_>>().join(" / "),
    };
    let next = meanings.iter().filter_map(|meaning| meaning.next.clone()).collect();
    Some(Thing { kind: first.kind, summary, facts: json!({}), next })
}

/// A thing that the service stores.
async fn stored_thing(service: &Service, what: &str) -> Result<Option<Thing>, Error> {
    if let Some(session) = found(service.session_details(&SessionKey::stored(what.to_owned())).await)? {
        return Ok(Some(session_thing(&session)));
    }
    if let Ok(id) = ClientId::parse("what", what)
        && let Some(thing) = application_thing(service, &id).await?
    {
        return Ok(Some(thing));
    }
    if let Ok(id) = ChannelId::parse("what", what)
        && let Some(channel) = found(service.channel_details(&id).await)?
    {
        let facts = json!({
            "channelId": channel.channel_id, "channelName": channel.name, "login": channel.login,
            "followerCount": channel.follower_count, "barredAt": channel.barred_at.map(Timestamp::rfc3339),
        });
        let summary = format!("A channel and its person, {}", channel.name);
        return Ok(Some(Thing { kind: "channel", summary, facts, next: Vec::new() }));
    }
    if let Some(token) = tokens::token_thing(service, what).await? {
        return Ok(Some(token));
    }
    delivery_thing(service, what).await
}

/// What does not exist is no failure.
fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.refusal().status() == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn session_thing(session: &SessionDetails) -> Thing {
    let reason = session.close_reason.as_deref();
    let (summary, next) = match reason {
        Some(reason) => {
            (format!("A session that has ended: {reason}"), words::remedy("close reason", reason))
        }
        None if session.subscribed_events.is_empty() => (
            "A connected session without a subscription. It receives no event".to_owned(),
            Some(
                "Subscribe with its key: POST /open/v1/sessions/events/subscribe/chat?sessionKey=…"
                    .to_owned(),
            ),
        ),
        None => ("A connected session. It receives the events of its subscriptions".to_owned(), None),
    };
    let facts = json!({
        "clientId": session.owner.client_id(),
        "channelId": session.owner.channel_id(),
        "connectedAt": session.connected_at.rfc3339(),
        "disconnectedAt": session.disconnected_at.map(Timestamp::rfc3339),
        "closeReason": reason,
        "subscribedEvents": session.subscribed_events,
    });
    Thing { kind: "session", summary, facts, next: next.into_iter().collect() }
}

async fn application_thing(service: &Service, id: &ClientId) -> Result<Option<Thing>, Error> {
    let Some(details) = found(service.application_details(id).await)? else { return Ok(None) };
    let life = details.life;
    let (state, next) = match (life.deleted_at, life.disabled_at) {
        (Some(_), _) => {
            ("deleted", Some("The operator can restore it for 30 days after it was deleted for disuse"))
        }
        (_, Some(_)) => {
            ("disabled", Some("The operator can enable it: DELETE /platform/v1/applications/…/disabled"))
        }
        _ => ("in use", None),
    };
    let scopes: Vec<&str> = life.application.scopes.iter().map(domain::Scope::name).collect();
    let facts = json!({
        "clientId": id, "name": life.application.name, "redirectUris": details.redirect_uris, "scopes": scopes,
        "lastUsedAt": life.last_used_at.rfc3339(), "disabledAt": life.disabled_at.map(Timestamp::rfc3339),
        "deletedAt": life.deleted_at.map(Timestamp::rfc3339),
    });
    let summary = format!("An application, {state}");
    Ok(Some(Thing {
        kind: "application",
        summary,
        facts,
        next: next.map(str::to_owned).into_iter().collect(),
    }))
}

/// A message to a webhook, by its id or by the id of its claim.
async fn delivery_thing(service: &Service, what: &str) -> Result<Option<Thing>, Error> {
    for life in service.applications(None, SEARCHED_MAX, None).await?.applications {
        let id = &life.application.client_id;
        let message = DeliveryId::stored(what.to_owned());
        if let Some(details) = found(service.webhook_delivery(id, &message).await)? {
            return Ok(Some(message_thing("delivery", id, &details)));
        }
        let listed = service.webhook_deliveries(id, DeliveryQuery::default(), SEARCHED_MAX, None).await;
        let of_claim = found(listed)?
            .and_then(|page| page.deliveries.into_iter().find(|delivery| is_about(delivery, what)));
        if let Some(delivery) = of_claim
            && let Some(details) = found(service.webhook_delivery(id, &delivery.message_id).await)?
        {
            return Ok(Some(message_thing("claim", id, &details)));
        }
    }
    Ok(None)
}

fn is_about(delivery: &Delivery, claim: &str) -> bool {
    delivery.claim_id.as_ref().is_some_and(|id| id.as_str() == claim)
}

fn message_thing(kind: &'static str, client_id: &ClientId, details: &DeliveryDetails) -> Thing {
    let DeliveryDetails { delivery, attempts } = details;
    let state = delivery.state.name();
    let last = attempts.first().map(|attempt| match (attempt.status, attempt.failure) {
        (Some(status), _) => format!("the answer {status}"),
        (None, Some(failure)) => format!("no answer, {}", failure.name()),
        (None, None) => "no answer".to_owned(),
    });
    let result = last.as_ref().map_or(String::new(), |last| format!(". The last attempt: {last}"));
    let begin =
        if kind == "claim" { "A claim. Its message to the webhook" } else { "A message to a webhook. It" };
    let summary = format!("{begin} is {state} after {} attempts{result}", delivery.attempts);
    let next = match state {
        "DELIVERED" => None,
        "DEAD" => Some("Send it again: POST /platform/v1/applications/…/webhook/deliveries/…/resend"),
        _ => Some("It is sent when it is due: `stagedoor clock advance` leads there"),
    };
    let facts = json!({
        "messageId": delivery.message_id, "claimId": delivery.claim_id, "clientId": client_id, "state": state,
        "attempts": delivery.attempts, "dueAt": delivery.due_at.rfc3339(),
        "createdAt": delivery.created_at.rfc3339(), "lastResult": last,
    });
    Thing { kind, summary, facts, next: next.map(str::to_owned).into_iter().collect() }
}

/// A thing that only the log knows.
fn recorded_thing(records: &[Arc<Record>], what: &str) -> Option<Thing> {
    let record = records.first()?;
    let field = mentions::field(record, what)?;
    if field == "requestId" {
        let text = |name: &str| record.fields.get(name).map(plain).unwrap_or_default();
        let request = format!("{} {}", text("method"), text("path"));
        let summary = format!("A request: {request}, answered with {}", text("status"));
        let names = ["status", "reason", "clientId", "user", "durationMs", "fault"];
        let facts =
            names.iter().filter_map(|name| Some(((*name).to_owned(), record.fields.get(*name)?.clone())));
        let facts = Value::Object(facts.collect());
        return Some(Thing { kind: "request", summary, facts, next: Vec::new() });
    }
    let (kind, what) = match field.as_str() {
        "messageId" => ("message", "A chat message"),
        "claimId" => ("claim", "A claim"),
        _ => ("record", "Only the log knows it"),
    };
    let count = records.len();
    let times = if count == 1 { "a record mentions".to_owned() } else { format!("{count} records mention") };
    let summary = format!("{what}: {times} it, as {field}");
    Some(Thing { kind, summary, facts: json!({}), next: Vec::new() })
}

/// What to do about the reasons of refused requests.
fn remedies_of(records: &[Arc<Record>]) -> Vec<String> {
    let requests = records.iter().filter(|record| record.kind == RecordKind::Request);
    let reasons = requests.filter_map(|record| record.fields.get("reason").and_then(Value::as_str));
    let mut remedies: Vec<String> = reasons
        .filter_map(|reason| {
            let word = reason.split(';').next().unwrap_or_default();
            words::remedy("reason", word).map(|remedy| format!("{word}: {remedy}"))
        })
        .collect();
    remedies.sort();
    remedies.dedup();
    remedies
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
