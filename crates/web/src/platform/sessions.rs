//! Sessions: listed and ended by the operator.

use axum::extract::State;
use domain::limits::{SESSION_LIST_SIZE_DEFAULT, SESSION_LIST_SIZE_MAX};
use domain::session::{SessionDetails, Subscription};
use domain::{ChannelId, ClientId, NodeId, SessionKey, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::SessionFilter;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::values::{cursor, flag, id, integer};
use crate::input::{Params, Query, QueryForm, optional, record, with_default};
use crate::path::PathId;

/// The filter of the session list.
#[derive(Debug)]
pub struct SessionsQuery {
    filter: SessionFilter,
    size: i64,
    next: Option<String>,
}

impl Params for SessionsQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let client = id(ClientId::parse).about("Those of this application.");
        let channel = id(ChannelId::parse).about("Those made with a token of this user.");
        let connected = flag().about("Those that are connected, or those that have ended.");
        record!(Self {
            filter: record!(SessionFilter {
                client_id: optional("clientId", client),
                channel_id: optional("channelId", channel),
                connected: optional("connected", connected),
            }),
            size: with_default("size", integer(1, SESSION_LIST_SIZE_MAX), SESSION_LIST_SIZE_DEFAULT),
            next: optional("next", cursor()),
        })
    }
}

/// A session as the operator sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAnswer {
    /// Its key.
    session_key: SessionKey,
    /// Its application.
    client_id: ClientId,
    /// Its user; `null` where it was made with client authentication.
    channel_id: Option<ChannelId>,
    /// The node that holds it, or held it.
    node_id: NodeId,
    /// `websocket` or `polling`, while it is connected to the node that answers; else `null`.
    transport: Option<&'static str>,
    /// When the socket's handshake was.
    connected_date: String,
    /// When it ended; `null` while it is connected.
    disconnected_date: Option<String>,
    /// Why it ended, as in the table of close reasons; `null` while it is connected.
    close_reason: Option<String>,
    /// What it is subscribed to, or was when it ended.
    subscribed_events: Vec<Subscription>,
}

impl SessionAnswer {
    async fn new(web: &Web, details: SessionDetails) -> Self {
        let is_here = details.disconnected_at.is_none() && details.node_id == *web.service().node();
        let connection = if is_here { web.node().connection(&details.session_key).await } else { None };
        let transport = connection.map(|connection| connection.transport);
        Self {
            client_id: details.owner.client_id().clone(),
            channel_id: details.owner.channel_id().cloned(),
            session_key: details.session_key,
            node_id: details.node_id,
            transport,
            connected_date: details.connected_at.rfc3339(),
            disconnected_date: details.disconnected_at.map(Timestamp::rfc3339),
            close_reason: details.close_reason,
            subscribed_events: details.subscribed_events,
        }
    }
}

pub(crate) const LIST: Summary =
    Summary::new("listSessions", "Sessions of every application, newest first", "세션 목록 조회");

/// `GET /platform/v1/sessions`: sessions of every application, newest first; ended ones for 90 days.
pub async fn list(
    _: Operator,
    State(web): State<Web>,
    Query(query): Query<SessionsQuery>,
) -> Answer<NextData<SessionAnswer>> {
    let SessionsQuery { filter, size, next } = query;
    let page = web.service().list_sessions(filter, size, next.as_deref()).await?;
    let mut sessions = Vec::with_capacity(page.sessions.len());
    for details in page.sessions {
        sessions.push(SessionAnswer::new(&web, details).await);
    }
    Ok(Success(NextData::new(sessions, page.next)))
}

pub(crate) const SHOW: Summary =
    Summary::new("showSession", "One session, with why it ended", "세션 조회").refuses(&[404]);

/// `GET /platform/v1/sessions/{sessionKey}`: one session, with its close reason.
pub async fn show(_: Operator, State(web): State<Web>, PathId(id): PathId) -> Answer<SessionAnswer> {
    let key = SessionKey::parse("sessionKey", &id)?;
    let details = web.service().session_details(&key).await?;
    Ok(Success(SessionAnswer::new(&web, details).await))
}

pub(crate) const EVICT: Summary =
    Summary::new("evictSession", "End a session, on whatever node it is", "세션 강제 종료");

/// `DELETE /platform/v1/sessions/{sessionKey}`: ends a session with the reason `evicted`. The session's node
/// does so at once if it answers this request, else within two seconds.
pub async fn evict(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let key = SessionKey::parse("sessionKey", &id)?;
    operator.service().evict_session(&key).await?;
    Ok(NOTHING)
}
