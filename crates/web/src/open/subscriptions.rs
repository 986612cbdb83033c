//! The calls that subscribe a session to events, and end that (`docs/spec/realtime.md#subscriptions`). Each
//! event is a type that implements [`SubscribedEvent`].

use axum::extract::State;
use domain::event::EventType;
use domain::refusal::Resource;
use domain::{Refusal, Scope, SessionKey};

use crate::Web;
use crate::caller::{NeedsScope, User};
use crate::contract::Summary;
use crate::contract::routes::{DescribedRoute, post};
use crate::envelope::{Answer, NOTHING};
use crate::input::values::non_empty_text;
use crate::input::{Form, Params, Query, QueryForm, record, required};

/// A kind of event as a type, so that a handler's signature says which scope the call needs.
pub trait SubscribedEvent: Send + 'static {
    /// The kind of event.
    const EVENT: EventType;
    /// The path of its [`subscribe`], and what the documents say about the call.
    const SUBSCRIBE: (&'static str, Summary);
    /// The path of its [`unsubscribe`], and what the documents say about the call.
    const UNSUBSCRIBE: (&'static str, Summary);
}

impl<E: SubscribedEvent> NeedsScope for E {
    const SCOPE: Option<Scope> = Some(E::EVENT.scope());
}

const fn summary(id: &'static str, english: &'static str, korean: &'static str) -> Summary {
    Summary::new(id, english, korean).refuses(&[404])
}

/// CHAT.
#[derive(Debug)]
pub enum Chat {}

impl SubscribedEvent for Chat {
    const EVENT: EventType = EventType::Chat;
    const SUBSCRIBE: (&'static str, Summary) = (
        "/open/v1/sessions/events/subscribe/chat",
        summary("subscribeChat", "Subscribe to chat messages", "채팅 이벤트 구독"),
    );
    const UNSUBSCRIBE: (&'static str, Summary) = (
        "/open/v1/sessions/events/unsubscribe/chat",
        summary("unsubscribeChat", "End a subscription to chat messages", "채팅 이벤트 구독 취소"),
    );
}

/// DONATION.
#[derive(Debug)]
pub enum Donation {}

impl SubscribedEvent for Donation {
    const EVENT: EventType = EventType::Donation;
    const SUBSCRIBE: (&'static str, Summary) = (
        "/open/v1/sessions/events/subscribe/donation",
        summary("subscribeDonation", "Subscribe to donations", "후원 이벤트 구독"),
    );
    const UNSUBSCRIBE: (&'static str, Summary) = (
        "/open/v1/sessions/events/unsubscribe/donation",
        summary("unsubscribeDonation", "End a subscription to donations", "후원 이벤트 구독 취소"),
    );
}

/// SUBSCRIPTION.
#[derive(Debug)]
pub enum PaidSubscription {}

impl SubscribedEvent for PaidSubscription {
    const EVENT: EventType = EventType::Subscription;
    const SUBSCRIBE: (&'static str, Summary) = (
        "/open/v1/sessions/events/subscribe/subscription",
        summary("subscribeSubscription", "Subscribe to paid subscriptions", "구독 이벤트 구독"),
    );
    const UNSUBSCRIBE: (&'static str, Summary) = (
        "/open/v1/sessions/events/unsubscribe/subscription",
        summary(
            "unsubscribeSubscription",
            "End a subscription to paid subscriptions",
            "구독 이벤트 구독 취소",
        ),
    );
}

/// The subscribe call of each event.
pub(crate) fn subscribe_routes() -> [DescribedRoute; EventType::ALL.len()] {
    [subscribe_route::<Chat>(), subscribe_route::<Donation>(), subscribe_route::<PaidSubscription>()]
}

/// The unsubscribe call of each event.
pub(crate) fn unsubscribe_routes() -> [DescribedRoute; EventType::ALL.len()] {
    [unsubscribe_route::<Chat>(), unsubscribe_route::<Donation>(), unsubscribe_route::<PaidSubscription>()]
}

fn subscribe_route<E: SubscribedEvent>() -> DescribedRoute {
    let (path, summary) = E::SUBSCRIBE;
    (path, post(subscribe::<E>, summary))
}

fn unsubscribe_route<E: SubscribedEvent>() -> DescribedRoute {
    let (path, summary) = E::UNSUBSCRIBE;
    (path, post(unsubscribe::<E>, summary))
}

/// The session of a call.
#[derive(Debug)]
pub struct SessionKeyQuery {
    /// `None` for a text that cannot be a key. It is answered like an unknown key.
    session_key: Option<SessionKey>,
}

impl Params for SessionKeyQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let key = non_empty_text().about("From the SYSTEM `connected` message of the session.");
        let possible = |key: String| SessionKey::parse("sessionKey", &key).ok();
        record!(Self { session_key: required("sessionKey", key).map(possible) })
    }
}

/// `POST /open/v1/sessions/events/subscribe/{chat|donation|subscription}`, with the scope of the event. The
/// SYSTEM message on the session confirms the subscription. The body is ignored: clients send none, `null` or
/// `""`.
async fn subscribe<E: SubscribedEvent>(
    user: User<E>,
    State(web): State<Web>,
    Query(query): Query<SessionKeyQuery>,
) -> Answer<()> {
    let session_key = query.session_key.ok_or(Refusal::NotFound(Resource::Session))?;
    web.service().subscribe(&user.caller, &session_key, E::EVENT).await?;
    Ok(NOTHING)
}

/// `POST /open/v1/sessions/events/unsubscribe/{chat|donation|subscription}`, with the scope of the subscribe
/// call.
async fn unsubscribe<E: SubscribedEvent>(
    user: User<E>,
    State(web): State<Web>,
    Query(query): Query<SessionKeyQuery>,
) -> Answer<()> {
    let session_key = query.session_key.ok_or(Refusal::NotFound(Resource::Session))?;
    web.service().unsubscribe(&user.caller, &session_key, E::EVENT).await?;
    Ok(NOTHING)
}
