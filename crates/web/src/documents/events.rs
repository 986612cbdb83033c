//! The pages of the realtime events and of the webhook.

use std::sync::LazyLock;

use askama::Template;
use domain::channel::UserRoleCode;
use domain::chat::{Badge, DonationType};
use domain::delivery::signature;
use domain::drops::{FulfillmentState, RewardClaim};
use domain::event::{ChatEvent, DonationEvent, Event, EventKind, EventType, SubscriptionEvent};
use domain::secret::WebhookSecret;
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::{
    CampaignId, ChannelId, ClaimId, DeliveryId, Profile, RewardId, SessionKey, Timestamp, system_message,
    webhook::{self, MessageKind},
};
use serde::Serialize;
use serde_json::Value;

use super::blocks::block;
use super::figures::fill;
use super::frame::Navigation;
use super::guides::GUIDES;
use super::json::asyncapi;
use super::marked::marked;
use super::place::DocsPlace;
use super::reference::{FieldTable, ProgramText};
use super::rows::rows;
use super::samples::pretty;
use super::texts::{DocsTexts, texts};
use crate::pages::{Lang, Shell, filters, scope_label};
use crate::router;

static ASYNCAPI: LazyLock<Value> = LazyLock::new(asyncapi);

/// The time of the samples.
const AT_MS: i64 = 1_784_385_132_345;
/// The secret of the samples.
const SECRET: &str = "0123456789abcdef0123456789abcdef";
const CLIENTS: &str = include_str!("../../../../docs/clients.md");
const WEBHOOKS: &str = include_str!("../../../../docs/webhooks.md");

/// The page of the events.
#[derive(Template)]
#[template(path = "pages/docs/events.html")]
pub struct EventsPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The navigation.
    pub nav: Navigation,
    /// The words.
    pub t: &'static DocsTexts,
    /// A sentence about the page.
    pub about: &'static str,
    /// The messages about the session: name, meaning, sample.
    pub system: Vec<(&'static str, &'static str, String)>,
    /// The events of channels.
    pub events: Vec<EventView>,
    /// Programs that listen.
    pub programs: Vec<ProgramText>,
}

/// One kind of event.
pub struct EventView {
    /// Its name, which is also its anchor.
    pub name: &'static str,
    /// What happened.
    pub summary: &'static str,
    /// The operation that subscribes to it: id and path.
    pub subscribe: (&'static str, &'static str),
    /// Key and name of the scope.
    pub scope: (&'static str, &'static str),
    /// The fields.
    pub payload: FieldTable,
    /// A sample in the documented profile.
    pub documented: String,
    /// A sample in the observed profile, if it differs.
    pub observed: Option<String>,
}

/// The page of the webhook.
#[derive(Template)]
#[template(path = "pages/docs/webhook.html")]
pub struct WebhookPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The navigation.
    pub nav: Navigation,
    /// The words.
    pub t: &'static DocsTexts,
    /// A sentence about the page.
    pub about: &'static str,
    /// The headers.
    pub headers: FieldTable,
    /// The fields of the body.
    pub body: FieldTable,
    /// A message as it arrives.
    pub message: String,
    /// Programs that verify the signature.
    pub programs: Vec<ProgramText>,
    /// How often it is sent, as HTML.
    pub attempts: String,
}

impl EventsPage<'_> {
    fn title(&self) -> &'static str {
        DocsPlace::Events.title(self.shell.lang)
    }

    fn sessions_title(&self) -> &'static str {
        guide_title("sessions", self.shell.lang)
    }

    fn sample_id(&self, event: &str, profile: &str) -> String {
        format!("{event}-{profile}")
    }

    fn marked(&self, text: &str) -> String {
        marked(text)
    }
}

impl WebhookPage<'_> {
    fn title(&self) -> &'static str {
        DocsPlace::Webhook.title(self.shell.lang)
    }

    fn verifying_lead(&self) -> String {
        fill(self.t.verifying_lead, self.shell.lang)
    }

    fn drops_title(&self) -> &'static str {
        guide_title("drops", self.shell.lang)
    }

    fn marked(&self, text: &str) -> String {
        marked(text)
    }
}

fn guide_title(slug: &str, lang: Lang) -> &'static str {
    GUIDES.iter().find(|guide| guide.slug == slug).map_or("", |guide| guide.title(lang))
}

/// Programs that listen to chat. The tests of the clients run them as they stand here.
pub fn listening_programs() -> Vec<ProgramText> {
    vec![
        ProgramText::javascript(block(CLIENTS, "with: socket.io-client-4", "js")),
        ProgramText::python(block(CLIENTS, "with: python-socketio-5", "python")),
    ]
}

/// Programs that verify the signature of a webhook. The tests of webhooks run them as they stand here.
pub fn verifying_programs() -> Vec<ProgramText> {
    let java = block(WEBHOOKS, "\nJava,", "java").to_owned();
    vec![
        ProgramText::javascript(block(WEBHOOKS, "\nJavaScript", "js")),
        ProgramText::python(block(WEBHOOKS, "\nPython:", "python")),
        ProgramText { language: "java", name: "Java", text: java },
    ]
}

/// The events of channels.
pub fn event_views(lang: Lang) -> Vec<EventView> {
    EventType::ALL.map(|event| event_view(event, lang)).into()
}

fn event_view(event: EventType, lang: Lang) -> EventView {
    let (subscribe, summary) = match event {
        EventType::Chat => (
            "subscribeChat",
            lang.pick("구독한 채널의 채팅 메시지.", "A chat message on a subscribed channel."),
        ),
        EventType::Donation => (
            "subscribeDonation",
            lang.pick("구독한 채널이 받은 후원.", "A donation to a subscribed channel."),
        ),
        EventType::Subscription => (
            "subscribeSubscription",
            lang.pick("구독한 채널의 유료 구독.", "A paid subscription to a subscribed channel."),
        ),
    };
    let operations = router::operations();
    let path = operations.iter().find(|each| each.summary.id == subscribe).map_or("", |each| each.path);
    let sample = sample_event(event);
    let shown = |profile| json(&sample.payload(profile));
    let (documented, observed) = (shown(Profile::Documented), shown(Profile::Observed));
    EventView {
        name: event.name(),
        summary,
        subscribe: (subscribe, path),
        scope: (event.scope().key(), scope_label(event.scope(), lang)),
        payload: message_table(event.name(), "payload", lang),
        observed: (observed != documented).then_some(observed),
        documented,
    }
}

/// The fields of a message of the AsyncAPI document.
fn message_table(name: &str, part: &str, lang: Lang) -> FieldTable {
    let messages = ASYNCAPI["components"]["messages"].as_object().into_iter().flatten();
    let message = messages.map(|(_, message)| message).find(|message| message["name"] == name);
    let rows = message.map(|message| rows(&ASYNCAPI, &message[part], lang)).unwrap_or_default();
    let t = texts(lang);
    FieldTable { heading: if part == "headers" { t.headers } else { t.payload }, rows, is_answer: true }
}

fn json(payload: &impl Serialize) -> String {
    pretty(&serde_json::to_string(payload).unwrap_or_default())
}

fn channel(id: &str) -> ChannelId {
    ChannelId::stored(id.to_owned())
}

fn sample_event(event: EventType) -> Event {
    let kind = match event {
        EventType::Chat => EventKind::Chat(ChatEvent {
            sender_channel_id: channel("viewer-byeol"),
            nickname: "별이".to_owned(),
            badges: vec![Badge { image_url: "https://images.example/badges/chat-manager.png".to_owned() }],
            verified_mark: false,
            user_role_code: UserRoleCode::StreamingChatManager,
            chat_channel_id: "CHAT_CHANNEL_ID".to_owned(),
            content: "어서 오세요 {:star:}".to_owned(),
            emojis: [("{:star:}".to_owned(), "https://images.example/emojis/star.png".to_owned())].into(),
            message_time: Timestamp::from_millis(AT_MS),
        }),
        EventType::Donation => EventKind::Donation(DonationEvent {
            donation_type: DonationType::Chat,
            donator: Some((channel("viewer-dal"), "달님".to_owned())),
            pay_amount: "10000".to_owned(),
            donation_text: "항해를 응원합니다!".to_owned(),
            emojis: Default::default(),
        }),
        EventType::Subscription => EventKind::Subscription(SubscriptionEvent {
            subscriber_channel_id: channel("viewer-mina"),
            subscriber_nickname: "Mina".to_owned(),
            tier_no: 1,
            tier_name: "팬".to_owned(),
            month: 3,
        }),
    };
    Event { channel_id: channel("streamer-haneul"), sent_at: Timestamp::from_millis(AT_MS), kind }
}

/// The messages about a session: type, meaning, sample.
pub fn system_samples(lang: Lang) -> Vec<(&'static str, &'static str, String)> {
    let [connected, subscribed, unsubscribed, revoked] = texts(lang).system_types;
    let change = |kind| {
        let subscription =
            Subscription { event_type: EventType::Chat, channel_id: channel("streamer-haneul") };
        json(&system_message::change(&SessionChange { version: 1, kind, subscription }))
    };
    let key = SessionKey::stored("SESSION_KEY".to_owned());
    vec![
        ("connected", connected, json(&system_message::connected(&key))),
        ("subscribed", subscribed, change(ChangeKind::Subscribed)),
        ("unsubscribed", unsubscribed, change(ChangeKind::Unsubscribed)),
        ("revoked", revoked, change(ChangeKind::Revoked)),
    ]
}

/// Headers and body of the webhook.
pub fn webhook_tables(lang: Lang) -> [FieldTable; 2] {
    ["headers", "payload"].map(|part| message_table(webhook::DROP_REWARD_CLAIM, part, lang))
}

/// How often a message is sent, as HTML.
pub fn attempts(lang: Lang) -> String {
    marked(&fill(texts(lang).attempts_text, lang))
}

/// A message to a webhook as it arrives. Its signature is that of [`SECRET`].
pub fn webhook_message() -> String {
    let at = Timestamp::from_millis(AT_MS);
    let claim = RewardClaim {
        claim_id: ClaimId::stored("019f75a4-56f1-7aa2-9c10-2f5d3f7f1c11".to_owned()),
        campaign_id: CampaignId::stored("first-voyage".to_owned()),
        reward_id: RewardId::stored("compass".to_owned()),
        category_id: "star-voyage".to_owned(),
        category_name: "스타 보이지".to_owned(),
        channel_id: channel("viewer-byeol"),
        state: FulfillmentState::Claimed,
        claimed_at: at,
        updated_at: at,
    };
    let id = DeliveryId::stored("019f75a4-5739-7128-b08a-e1ac19733c3e".to_owned());
    let body = webhook::body(MessageKind::Claim, &id, at, &webhook::data(&claim)).unwrap_or_default();
    let Ok(secret) = WebhookSecret::given(SECRET) else { return body };
    let signed = signature(&secret, &id, at, body.as_bytes());
    let headers = webhook::headers(webhook::HEADER_PREFIX, MessageKind::Claim, &id, at, signed, 1);
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    format!("POST /webhook HTTP/1.1\nContent-Type: application/json\n{lines}\n{body}")
}
