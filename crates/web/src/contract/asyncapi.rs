//! The AsyncAPI 3 document: the events on the socket, and the drops webhook.

use domain::event::{EventDescription, EventType};
use domain::limits::{SESSION_URL_LIFETIME_MS, SUBSCRIPTIONS_PER_SESSION_MAX};
use domain::system_message;
use domain::webhook::{self, HEADER_PREFIX, HEADERS, MessageKind};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The whole document.
pub fn document() -> Value {
    let mut generator = super::generator(SchemaSettings::draft07());
    let mut events = vec![system_message::description(&mut generator)];
    events.extend(EventType::ALL.map(|event| event.description(&mut generator)));
    let webhooks = [
        ("dropRewardClaim", MessageKind::Claim, "A reward was claimed. The body is provisional."),
        ("webhookTest", MessageKind::Test, "A developer asked for a test message. It reports nothing."),
    ];
    let webhooks = webhooks.map(|(id, kind, summary)| {
        let schema = json!(webhook::schema(kind, &mut generator));
        (id.to_owned(), webhook_message(kind, summary, schema))
    });
    let mut messages: Map<String, Value> =
        events.iter().map(|event| (event.message_id.to_owned(), socket_message(event))).collect();
    let event_ids: Vec<_> = events.iter().map(|event| event.message_id).collect();
    messages.extend(webhooks);
    json!({
        "asyncapi": "3.1.0",
        "info": {
            "title": "Stagedoor events",
            "version": "1",
            "description": "What the service sends by itself: events on session sockets, and the drops webhook.",
            "contact": super::CONTACT.clone(),
            "license": { "name": "Apache-2.0" },
            "tags": [
                { "name": "Sessions", "description": "Events on the socket of a session." },
                { "name": "Webhooks", "description": "Messages to an address of a game publisher." },
            ],
        },
        "defaultContentType": "application/json",
        "servers": {
            "sessions": {
                "host": "{host}",
                "pathname": "/socket.io/",
                "protocol": "wss",
                "protocolVersion": "Engine.IO 2, 3 and 4",
                "description": session_rules(),
                "variables": { "host": { "description": "Host and port of the `url` that a session call gave." } },
            },
        },
        "channels": {
            "session": {
                "address": "/",
                "title": "A session's socket",
                "description": "Messages come at most once, in order within a session and channel, and never with a \
                    silent gap: a session that cannot keep up is closed.",
                "servers": [{ "$ref": "#/servers/sessions" }],
                "messages": references(&event_ids),
            },
            "dropsWebhook": {
                "address": null,
                "title": "The address that a game publisher registered",
                "description": "An HTTP POST, at least once, with the same id in every attempt. 2xx within 5 s is \
                    success; 410 turns the address off.",
                "messages": references(&["dropRewardClaim", "webhookTest"]),
            },
        },
        "operations": {
            "sendEvents": {
                "action": "send",
                "summary": "Events of a session",
                "description": "What happens to the session, and on the channels that it is subscribed to.",
                "channel": { "$ref": "#/channels/session" },
                "messages": targets("session", &event_ids),
            },
            "sendDropRewardClaim": {
                "action": "send",
                "summary": "A reward was claimed",
                "description": "One message for each claim and webhook, signed, until it is answered with 2xx.",
                "channel": { "$ref": "#/channels/dropsWebhook" },
                "bindings": { "http": { "method": "POST" } },
                "messages": targets("dropsWebhook", &["dropRewardClaim"]),
            },
            "sendWebhookTest": {
                "action": "send",
                "summary": "A test of the webhook",
                "description": "A signed message that reports nothing, when a developer asks for one. Answer it like any other.",
                "channel": { "$ref": "#/channels/dropsWebhook" },
                "bindings": { "http": { "method": "POST" } },
                "messages": targets("dropsWebhook", &["webhookTest"]),
            },
        },
        "components": { "messages": messages, "schemas": generator.take_definitions(true) },
    })
}

fn session_rules() -> String {
    format!(
        "Socket.IO 1.0 to 2.x (Engine.IO 2 and 3); later clients with Engine.IO 4. The address is the `url` of \
         `GET /open/v1/sessions/auth` or `GET /open/v1/sessions/auth/client`: it carries `auth`, works once, and within \
         {} s. The first message is SYSTEM `connected`; its `sessionKey` goes into the subscribe calls, at most {} \
         subscriptions a session. A refused handshake is answered in the envelope of the REST interface, before any upgrade, with the \
         header `Stagedoor-Reason`.",
        SESSION_URL_LIFETIME_MS / 1_000,
        SUBSCRIPTIONS_PER_SESSION_MAX
    )
}

/// The argument of a Socket.IO event is a text that contains JSON. `payload` is that JSON, so that generated
/// programs have a type for it; `x-argument` is the text itself.
fn socket_message(event: &EventDescription) -> Value {
    let EventDescription { name, summary, schema, .. } = event;
    json!({
        "name": name,
        "title": name,
        "summary": summary,
        "contentType": "application/json",
        "description": "The event's one argument is a JSON text: parse it again. `payload` is what is in it.",
        "payload": schema,
        "x-argument": { "type": "string", "contentMediaType": "application/json", "contentSchema": schema },
        "x-event": name,
    })
}

fn webhook_message(kind: MessageKind, summary: &str, schema: Value) -> Value {
    let header = |(name, text): (&str, &str)| {
        (format!("{HEADER_PREFIX}{name}"), json!({ "type": "string", "description": text }))
    };
    let required = HEADERS.iter().filter(|(name, _)| *name != "Retry");
    let required: Vec<_> = required.map(|(name, _)| format!("{HEADER_PREFIX}{name}")).collect();
    let properties: Map<_, _> = HEADERS.into_iter().map(header).collect();
    json!({
        "name": kind.name(),
        "title": kind.name(),
        "summary": summary,
        "contentType": "application/json",
        "headers": { "type": "object", "properties": properties, "required": required },
        "payload": schema,
    })
}

fn references(names: &[&str]) -> Map<String, Value> {
    let reference =
        |name: &&str| ((*name).to_owned(), json!({ "$ref": format!("#/components/messages/{name}") }));
    names.iter().map(reference).collect()
}

fn targets(channel: &str, names: &[&str]) -> Vec<Value> {
    let target = |name: &&str| json!({ "$ref": format!("#/channels/{channel}/messages/{name}") });
    names.iter().map(target).collect()
}
