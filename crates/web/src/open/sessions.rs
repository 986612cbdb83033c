//! Realtime sessions: their addresses and lists (`docs/spec/realtime.md`). The calls that subscribe them to
//! events are in [`super::subscriptions`].

use axum::Extension;
use axum::extract::State;
use domain::limits::{SESSION_LIST_SIZE_DEFAULT, SESSION_LIST_SIZE_MAX};
use domain::secret::SessionUrlToken;
use domain::session::{SessionListing, SessionOwner, Subscription};
use domain::{Profile, SessionKey, Timestamp};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use service::Page;

use crate::caller::{Client, User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, PageData, Success};
use crate::input::form::page;
use crate::input::{Form, Params, Query, QueryForm};
use crate::quota;
use crate::{SecureOrigin, Web};

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
pub async fn client_url(
    client: Client<quota::SessionUrl>,
    State(web): State<Web>,
    origin: Option<Extension<SecureOrigin>>,
) -> Answer<SessionUrl> {
    let base = base(&web, origin).await?;
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
    origin: Option<Extension<SecureOrigin>>,
) -> Answer<SessionUrl> {
    let base = base(&web, origin).await?;
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

fn owner_of<S, Q>(user: User<S, Q>) -> SessionOwner {
    SessionOwner::User { client_id: user.caller.client_id, channel_id: user.caller.channel_id }
}

/// The base of a session's address. A client of a sandbox with TLS reaches the origin that it has reached.
async fn base(web: &Web, origin: Option<Extension<SecureOrigin>>) -> Result<String, service::Error> {
    match origin {
        Some(Extension(SecureOrigin(origin))) => Ok(origin),
        None => web.service().session_base().await,
    }
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
