//! Realtime sessions (`docs/spec/realtime.md`).

use axum::extract::State;
use domain::limits::{SESSION_LIST_SIZE_DEFAULT, SESSION_LIST_SIZE_MAX};
use domain::refusal::Resource;
use domain::secret::SessionUrlToken;
use domain::session::{SessionListing, SessionOwner, Subscription};
use domain::{Profile, Refusal, SessionKey, Timestamp};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use service::Page;

use crate::Web;
use crate::caller::{Client, SubscribeScope, User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, PageData, Success};
use crate::input::form::page;
use crate::input::values::non_empty_text;
use crate::input::{Form, Params, Query, QueryForm, record, required};
use crate::quota;

/// Where a socket may connect, once, within 30 seconds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionUrl {
    /// The address to connect to.
    url: String,
}

/// `page` and `size` of the session lists.
#[derive(Debug)]
pub struct SessionListQuery(Page);

impl Params for SessionListQuery {
    fn form() -> impl QueryForm<Out = Self> {
        page(SESSION_LIST_SIZE_DEFAULT, SESSION_LIST_SIZE_MAX).map(Self)
    }
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

/// Session (list item).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Names the session in subscribe calls.
    session_key: SessionKey,
    /// When the socket's handshake was.
    connected_date: String,
    /// When it ended; `null` while it is connected, or left out in the observed profile.
    #[schemars(with = "Option<String>")]
    #[serde(skip_serializing_if = "Ended::is_left_out")]
    disconnected_date: Ended,
    /// What it is subscribed to, or was when it ended.
    subscribed_events: Vec<Subscription>,
}

/// When a session ended. One that has not is `null`, or left out in the observed profile
/// (`docs/spec/rest.md#profiles`).
#[derive(Debug)]
enum Ended {
    At(String),
    Null,
    LeftOut,
}

impl Ended {
    fn new(at: Option<Timestamp>, profile: Profile) -> Self {
        match (at, profile) {
            (Some(at), profile) => Self::At(at.for_profile(profile)),
            (None, Profile::Documented) => Self::Null,
            (None, Profile::Observed) => Self::LeftOut,
        }
    }

    fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut)
    }
}

impl Serialize for Ended {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(date) => serializer.serialize_str(date),
            Self::Null | Self::LeftOut => serializer.serialize_none(),
        }
    }
}

pub(crate) const CLIENT_URL: Summary = Summary::new(
    "createClientSession",
    "An address for a socket of the application",
    "세션 생성(클라이언트)",
);

/// `GET /open/v1/sessions/auth/client`, client mode: an address for a session that takes events of every
/// user.
pub async fn client_url(client: Client<quota::SessionUrl>, State(web): State<Web>) -> Answer<SessionUrl> {
    let base = web.service().session_base().await?;
    let Client { application, secret_id, .. } = client;
    let token = web.service().issue_client_session_url(application.client_id, secret_id).await?;
    Ok(session_url(&base, &token))
}

pub(crate) const USER_URL: Summary =
    Summary::new("createUserSession", "An address for a socket of the user", "세션 생성(유저)");

/// `GET /open/v1/sessions/auth`, any user token: an address for a session that takes events of this user
/// only.
pub async fn user_url(
    user: User<scope::Any, quota::SessionUrl>,
    State(web): State<Web>,
) -> Answer<SessionUrl> {
    let base = web.service().session_base().await?;
    let token = web.service().issue_session_url(owner_of(user)).await?;
    Ok(session_url(&base, &token))
}

pub(crate) const CLIENT_LIST: Summary =
    Summary::new("getClientSessions", "The application's sessions", "세션 목록 조회(클라이언트)");

/// `GET /open/v1/sessions/client`, client mode: the application's own sessions, newest first.
pub async fn client_list(
    client: Client,
    State(web): State<Web>,
    Query(query): Query<SessionListQuery>,
) -> Answer<PageData<Session>> {
    let owner = SessionOwner::Client { client_id: client.application.client_id };
    list(&web, owner, query.0, client.profile).await
}

pub(crate) const USER_LIST: Summary =
    Summary::new("getUserSessions", "The user's sessions", "세션 목록 조회(유저)");

/// `GET /open/v1/sessions`, any user token: the sessions of this application and user, newest first.
pub async fn user_list(
    user: User<scope::Any>,
    State(web): State<Web>,
    Query(query): Query<SessionListQuery>,
) -> Answer<PageData<Session>> {
    let profile = user.profile;
    list(&web, owner_of(user), query.0, profile).await
}

pub(crate) const SUBSCRIBE_CHAT: Summary =
    Summary::new("subscribeChat", "Subscribe to chat messages", "채팅 이벤트 구독").refuses(&[404]);
pub(crate) const SUBSCRIBE_DONATION: Summary =
    Summary::new("subscribeDonation", "Subscribe to donations", "후원 이벤트 구독").refuses(&[404]);
pub(crate) const SUBSCRIBE_SUBSCRIPTION: Summary =
    Summary::new("subscribeSubscription", "Subscribe to paid subscriptions", "구독 이벤트 구독")
        .refuses(&[404]);

/// `POST /open/v1/sessions/events/subscribe/{chat|donation|subscription}`, with the scope of the event. The
/// SYSTEM message on the session confirms the subscription. The body is ignored: clients send none, `null` or
/// `""`.
pub async fn subscribe<S: SubscribeScope>(
    user: User<S>,
    State(web): State<Web>,
    Query(query): Query<SessionKeyQuery>,
) -> Answer<()> {
    let session_key = query.session_key.ok_or(Refusal::NotFound(Resource::Session))?;
    web.service().subscribe(&user.caller, &session_key, S::EVENT).await?;
    Ok(NOTHING)
}

pub(crate) const UNSUBSCRIBE_CHAT: Summary =
    Summary::new("unsubscribeChat", "End a subscription to chat messages", "채팅 이벤트 구독 취소")
        .refuses(&[404]);
pub(crate) const UNSUBSCRIBE_DONATION: Summary =
    Summary::new("unsubscribeDonation", "End a subscription to donations", "후원 이벤트 구독 취소")
        .refuses(&[404]);
pub(crate) const UNSUBSCRIBE_SUBSCRIPTION: Summary = Summary::new(
    "unsubscribeSubscription",
    "End a subscription to paid subscriptions",
    "구독 이벤트 구독 취소",
)
.refuses(&[404]);

/// `POST /open/v1/sessions/events/unsubscribe/{chat|donation|subscription}`, with the scope of the subscribe
/// call.
pub async fn unsubscribe<S: SubscribeScope>(
    user: User<S>,
    State(web): State<Web>,
    Query(query): Query<SessionKeyQuery>,
) -> Answer<()> {
    let session_key = query.session_key.ok_or(Refusal::NotFound(Resource::Session))?;
    web.service().unsubscribe(&user.caller, &session_key, S::EVENT).await?;
    Ok(NOTHING)
}

fn owner_of<S, Q>(user: User<S, Q>) -> SessionOwner {
    SessionOwner::User { client_id: user.caller.client_id, channel_id: user.caller.channel_id }
}

fn session_url(base: &str, token: &SessionUrlToken) -> Success<SessionUrl> {
    Success(SessionUrl { url: format!("{base}?auth={}", token.expose()) })
}

async fn list(web: &Web, owner: SessionOwner, page: Page, profile: Profile) -> Answer<PageData<Session>> {
    let listed = web.service().sessions(owner, page, profile == Profile::Observed).await?;
    let item = |session: SessionListing| Session {
        session_key: session.session_key,
        connected_date: session.connected_at.for_profile(profile),
        disconnected_date: Ended::new(session.disconnected_at, profile),
        subscribed_events: session.subscribed_events,
    };
    Ok(Success(PageData::new(listed.sessions.into_iter().map(item).collect(), page, listed.total)))
}
