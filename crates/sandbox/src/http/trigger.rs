//! `POST /sandbox/v1/trigger/{kind}`: lets something happen, through the operation of the service that
//! production uses. `GET /sandbox/v1/trigger` lists the kinds.

mod access;
mod channels;
mod events;
mod expire;
mod field;
mod fields;
mod input;
mod storm;
mod webhooks;

use std::pin::Pin;

use axum::extract::State;
use domain::audit::Actor;
use domain::operator_key::OperatorRole;
use http::{StatusCode, Uri};
use serde::Serialize;
use serde_json::{Map, Value};
use service::Purpose;

use super::answer::{Answer, Content, Problem};
use super::body::JsonBody;
use crate::log::{NewRecord, RecordKind};
use crate::sandbox::{Parts, Sandbox};
use fields::GivenFields;
use input::{Input, Outcome};

pub(super) use field::{Field, FieldType};

/// A kind of trigger.
#[derive(Serialize)]
pub(super) struct Kind {
    /// The name in the path.
    pub name: &'static str,
    /// What happens.
    pub summary: &'static str,
    /// The fields.
    #[serde(flatten, serialize_with = "field::maps")]
    pub fields: &'static [Field],
    /// Reads what the types of the fields do not say, as `run` does.
    #[serde(skip)]
    check: fn(&GivenFields) -> Result<(), Problem>,
    #[serde(skip)]
    run: fn(Input) -> Running,
}

type Running = Pin<Box<dyn Future<Output = Result<Outcome, Problem>> + Send>>;

/// A sender, follower or viewer without a default of its own.
const FROM: Field = Field::text("from", "who does it; default: the last person");
const TO: Field = Field::text("to", "the channel; default: that of the first person");
const CHANNEL: Field = Field::text("channel", "the channel; default: that of the first person");
const VIEWER: Field = Field::text("viewer", "who watches; default: the last person");
const USER: Field = Field::text("user", "the user; default: the first person");
const CLIENT: Field = Field::text("client", "the application; default: the oldest one");
const CLIENT_OF_CLAIMS: Field =
    Field::text("client", "the application; default: the first that may use drops");
const MESSAGE: Field = Field::text("message", "the text");
const EMOJIS: Field =
    Field::object("emojis", "emojis in the text, as in {\"smile\":\"https://e.example/smile.png\"}");
const SESSION: Field = Field::text("session", "the key of one session; or user, or client");
const SESSIONS_OF_USER: Field =
    Field::text("user", "the sessions of this user; default without session and client: the first person");
const SESSIONS_OF_CLIENT: Field = Field::text("client", "the sessions of this application");
const WAIT_SESSION: Field =
    Field::span("wait", "how long to wait for a session, in real time, as in 5s; default: not at all");
const WAIT_SUBSCRIBED: Field =
    Field::span("wait", "how long to wait for a subscribed session, in real time; default: none is needed");

/// The kinds.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "chat",
        summary: "a viewer posts a chat message",
        fields: &[
            CHANNEL,
            FROM,
            MESSAGE,
            EMOJIS,
            Field::list("badges", "the addresses of the sender's badges; default: those of the role"),
            WAIT_SUBSCRIBED,
        ],
        check: |fields| events::read_chat(fields).map(drop),
        run: |input| Box::pin(events::chat(input)),
    },
    Kind {
        name: "donation",
        summary: "a viewer donates to a channel",
        fields: &[
            TO,
            FROM,
            Field::flag("anonymous", "true: the donor has no name"),
            Field::text("amount", "won; default: 1000"),
            MESSAGE,
            Field::text("type", "CHAT or VIDEO; default: CHAT"),
            EMOJIS,
            WAIT_SUBSCRIBED,
        ],
        check: |fields| events::read_donation(fields).map(drop),
        run: |input| Box::pin(events::donation(input)),
    },
    Kind {
        name: "subscription",
        summary: "a viewer subscribes to a channel",
        fields: &[
            TO,
            FROM,
            Field::number("tier", "1 or 2; default: 1"),
            Field::text("tierName", "the brand name; default: that of the tier"),
            Field::number("month", "months subscribed; default: 1"),
            Field::text("since", "the first day, as an RFC 3339 time; default: now"),
            WAIT_SUBSCRIBED,
        ],
        check: |fields| events::read_subscription(fields).map(drop),
        run: |input| Box::pin(events::subscription(input)),
    },
    Kind {
        name: "follow",
        summary: "a viewer follows a channel",
        fields: &[CHANNEL, FROM],
        check: |_| Ok(()),
        run: |input| Box::pin(channels::follow(input)),
    },
    Kind {
        name: "unfollow",
        summary: "a viewer stops following a channel",
        fields: &[CHANNEL, FROM],
        check: |_| Ok(()),
        run: |input| Box::pin(channels::unfollow(input)),
    },
    Kind {
        name: "restrict",
        summary: "a channel restricts another one in its chat",
        fields: &[
            CHANNEL,
            Field::text("target", "who is restricted; default: the last person"),
            Field::flag("temporary", "true: for a minute"),
        ],
        check: |_| Ok(()),
        run: |input| Box::pin(channels::restrict(input)),
    },
    Kind {
        name: "chat-settings",
        summary: "a channel changes the settings of its chat",
        fields: &[
            CHANNEL,
            Field::number(
                "slowMode",
                "seconds between two messages of a viewer: 0 (off), 3, 5, 10, 30, 60, 120 or 300",
            ),
            Field::text("group", "who may speak: ALL, FOLLOWER, MANAGER or SUBSCRIBER"),
            Field::number("followerMinutes", "minutes that a follower must have followed for"),
            Field::flag("subscribersExempt", "true: subscribers need not follow"),
            Field::flag("emojiMode", "true: emojis only"),
            Field::text("condition", "NONE or REAL_NAME"),
        ],
        check: |fields| channels::read_chat_settings(fields).map(drop),
        run: |input| Box::pin(channels::chat_settings(input)),
    },
    Kind {
        name: "live",
        summary: "a channel goes on air, or changes its live",
        fields: &[
            CHANNEL,
            Field::text("title", "default: that of the broadcast setting"),
            Field::text("category", "the id of a category; default: that of the broadcast setting"),
            Field::number("viewers", "number of viewers; default: 0"),
            Field::list("tags", "default: those of the broadcast setting"),
            Field::flag("adult", "true: for adults"),
            Field::text("thumbnail", "the address of its picture"),
        ],
        check: |fields| channels::read_live(fields).map(drop),
        run: |input| Box::pin(channels::live(input)),
    },
    Kind {
        name: "live-end",
        summary: "a channel goes off air",
        fields: &[CHANNEL],
        check: |_| Ok(()),
        run: |input| Box::pin(channels::live_end(input)),
    },
    Kind {
        name: "watch",
        summary: "a viewer watches a live, which counts for drops",
        fields: &[CHANNEL, VIEWER, Field::number("minutes", "default: 1")],
        check: |fields| channels::read_watch(fields).map(drop),
        run: |input| Box::pin(channels::watch(input)),
    },
    Kind {
        name: "claim",
        summary: "a viewer claims a reward",
        fields: &[
            Field::text(
                "campaign",
                "the id of the campaign; default: the first with a reward that the viewer can claim",
            ),
            Field::text("reward", "the id of the reward; default: the first that the viewer can claim"),
            Field::text("claim", "the id of the claim; default: a new one"),
            VIEWER,
            Field::text("tamper", "its message has a wrong signature, timestamp or body"),
            Field::flag("duplicate", "true: its message is sent twice"),
            Field::text("late", "its message is sent this much later, as in 3s"),
            Field::text("cut", "before: its message is not sent; after: the receiver's answer is lost"),
        ],
        check: |fields| channels::read_claim(fields).and(webhooks::read_message(fields)).map(drop),
        run: |input| Box::pin(webhooks::claim(input)),
    },
    Kind {
        name: "webhook",
        summary: "the webhook of an application gets an address, and is enabled",
        fields: &[
            CLIENT_OF_CLAIMS,
            Field::text("url", "the address of the receiver; default: that of the webhook"),
        ],
        check: |fields| webhooks::read_webhook(fields).map(drop),
        run: |input| Box::pin(webhooks::webhook(input)),
    },
    Kind {
        name: "dead-letter",
        summary: "a viewer claims a reward, and its message fails until it is a dead letter; moves the clock",
        fields: &[
            Field::text("campaign", "as with claim"),
            Field::text("reward", "as with claim"),
            Field::text("claim", "as with claim"),
            VIEWER,
        ],
        check: |fields| channels::read_claim(fields).map(drop),
        run: |input| Box::pin(webhooks::dead_letter(input)),
    },
    Kind {
        name: "disable-webhook",
        summary: "the messages to a webhook fail for five days, and it is disabled; moves the clock",
        fields: &[CLIENT_OF_CLAIMS, VIEWER],
        check: |_| Ok(()),
        run: |input| Box::pin(webhooks::disable_webhook(input)),
    },
    Kind {
        name: "revoke-consent",
        summary: "a user withdraws the consent to an application",
        fields: &[CLIENT, USER],
        check: |_| Ok(()),
        run: |input| Box::pin(access::revoke_consent(input)),
    },
    Kind {
        name: "remove-scope",
        summary: "an application loses a scope",
        fields: &[
            CLIENT,
            Field::text("scope", "the key or name of the scope, as in chat-read; default: its first one"),
        ],
        check: |fields| access::read_remove_scope(fields).map(drop),
        run: |input| Box::pin(access::remove_scope(input)),
    },
    Kind {
        name: "expire",
        summary: "codes, tokens or session URLs end now; the clock stays",
        fields: &[
            Field::text("what", "code, access-token, refresh-token or session-url; default: access-token"),
            Field::text("user", "those of this user; default without client and token: the first person"),
            Field::text("client", "those of this application"),
            Field::text("token", "the one: a code, a token, or a session URL"),
        ],
        check: |fields| expire::read_expire(fields).map(drop),
        run: |input| Box::pin(expire::expire(input)),
    },
    Kind {
        name: "close-session",
        summary: "sessions end",
        fields: &[
            SESSION,
            SESSIONS_OF_USER,
            SESSIONS_OF_CLIENT,
            Field::text("reason", "a close reason, as in slow_consumer; default: evicted"),
            WAIT_SESSION,
        ],
        check: |fields| access::read_close_session(fields).map(drop),
        run: |input| Box::pin(access::close_session(input)),
    },
    Kind {
        name: "cut-connection",
        summary: "the connections of sessions are lost without a close frame",
        fields: &[
            SESSION,
            SESSIONS_OF_USER,
            SESSIONS_OF_CLIENT,
            Field::flag("silent", "true: they stay half open, and nothing passes them any more"),
            WAIT_SESSION,
        ],
        check: |_| Ok(()),
        run: |input| Box::pin(access::cut_connection(input)),
    },
    Kind {
        name: "restart",
        summary: "the service restarts: sessions end with server_shutdown, and no call is answered for a while",
        fields: &[Field::span("for", "how long it is away, in real time, up to 10m; default: 2s")],
        check: |fields| access::read_restart(fields).map(drop),
        run: |input| Box::pin(access::restart(input)),
    },
    Kind {
        name: "exhaust-quota",
        summary: "the calls of a user through an application use up their quota",
        fields: &[
            CLIENT,
            USER,
            Field::span(
                "for",
                "how long, on the sandbox's clock, as in 10s; default: until the next one is free",
            ),
        ],
        check: |fields| access::read_exhaust_quota(fields).map(drop),
        run: |input| Box::pin(access::exhaust_quota(input)),
    },
    Kind {
        name: "storm",
        summary: "many events for a while; answers at the end, with the percentiles of their latencies",
        fields: &[
            CHANNEL,
            Field::text("from", "who does it; default: any of the other people"),
            Field::number("rate", "events a second, 1 to 1000; default: 10"),
            Field::span("duration", "in real time, up to 10m; default: 10s"),
            Field::object("mix", "the weights; default: {\"chat\":8,\"donation\":1,\"subscription\":1}"),
            Field::number("seed", "the same seed gives the same events in the same order; default: 1"),
        ],
        check: |fields| storm::read_storm(fields).map(drop),
        run: |input| Box::pin(storm::storm(input)),
    },
];

/// The names of the kinds.
pub(super) fn names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name).collect()
}

/// The kinds with their fields as text, for the help of the command line.
pub(super) fn help() -> String {
    let kind = |kind: &Kind| {
        let field = |Field { name, about, .. }: &Field| format!("\n      --{name:<12} {about}");
        format!("  {}: {}{}\n", kind.name, kind.summary, kind.fields.iter().map(field).collect::<String>())
    };
    format!("Kinds:\n{}", KINDS.iter().map(kind).collect::<String>())
}

/// `GET /sandbox/v1/trigger`: the kinds and their fields.
pub(super) async fn list() -> Content<&'static [Kind]> {
    Content(KINDS)
}

/// `POST /sandbox/v1/trigger/{kind}`.
pub(super) async fn run(
    State(sandbox): State<Sandbox>,
    uri: Uri,
    JsonBody(fields): JsonBody<Map<String, Value>>,
) -> Answer<Outcome> {
    let kind = kind(uri.path().rsplit('/').next().unwrap_or_default())?;
    let fields = kind.read(fields)?;
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let Parts { service, gateway, .. } = sandbox.parts().ok_or_else(starting)?.clone();
    let acting = service.acting_as(Actor::Command("trigger"), Some(OperatorRole::Admin), String::new());
    let input = Input { sandbox: sandbox.clone(), service: acting, gateway, fields };
    let mut happened = (kind.run)(input).await?;
    let mut record = happened.clone();
    record.insert("trigger".to_owned(), Value::from(kind.name));
    // The id has another name too.
    record.remove("eventId");
    let at = sandbox.clock().now();
    sandbox.log().add(NewRecord { at, kind: RecordKind::Trigger, fields: record });
    let made_id =
        || format!("trigger-{:016x}", u64::from_be_bytes(service.entropy().bytes(Purpose::Trigger)));
    happened.entry("eventId").or_insert_with(|| made_id().into());
    Ok(Content(happened))
}

/// The kind of this name.
pub(super) fn kind(name: &str) -> Result<&'static Kind, Problem> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let message = format!("kind: {name} is unknown. The kinds are: {}", names().join(", "));
        Problem::new(StatusCode::NOT_FOUND, message)
    })
}

impl Kind {
    /// The given fields, each as its type and its kind say.
    pub(super) fn read(&self, given: Map<String, Value>) -> Result<GivenFields, Problem> {
        let read = |(name, value): (String, Value)| {
            let known =
                self.fields.iter().find(|field| field.name == name).ok_or_else(|| self.unknown(&name))?;
            let value = known.takes.read(value).map_err(|rule| Problem::invalid(&name, rule))?;
            Ok((name, value))
        };
        let fields = GivenFields(given.into_iter().map(read).collect::<Result<_, Problem>>()?);
        (self.check)(&fields)?;
        Ok(fields)
    }

    fn unknown(&self, field: &str) -> Problem {
        let known = self.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
        Problem::invalid(field, format!("{} has no such field. Its fields are: {known}", self.name))
    }
}
