//! What ends the access of an application: withdrawn consents, removed scopes, closed sessions, lost
//! connections.

use std::collections::HashSet;
use std::time::Duration;

use domain::application::RedirectUri;
use domain::limits::USER_QUOTA;
use domain::{Refusal, Scope, SessionKey};
use gateway::CloseReason;
use serde_json::json;
use service::SessionFilter;
use service::applications::{ApplicationRecord, NewLogo};
use service::quotas::Counted;

use super::fields::GivenFields;
use super::input::{Input, Outcome, outcome};
use crate::http::answer::Problem;
use crate::http::close_reason::close_reason;

/// Maximum time for which a quota is used up.
const EXHAUSTED_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the service is away at a restart.
const AWAY: Duration = Duration::from_secs(2);
/// Maximum of that time.
const AWAY_MAX: Duration = Duration::from_secs(600);
/// Maximum number of sessions that one call ends.
const SESSIONS_MAX: i64 = 100;

/// A user withdraws the consent to an application.
pub(super) async fn revoke_consent(input: Input) -> Result<Outcome, Problem> {
    let application = input.application("client").await?;
    let user = input.streamer("user").await?;
    let client_id = &application.client_id;
    if input.service.consented_scopes(client_id, &user).await?.is_none() {
        return Err(Problem::unmet("user", format!("{user} has given no consent to {client_id}")));
    }
    input.service.withdraw_consent(client_id, &user).await?;
    Ok(outcome(json!({ "clientId": application.client_id, "channelId": user })))
}

/// The scope that is removed, if one is named.
pub(super) fn read_remove_scope(fields: &GivenFields) -> Result<Option<Scope>, Problem> {
    let Some(text) = fields.text("scope") else { return Ok(None) };
    let keys = || Scope::ALL.map(Scope::key).join(", ");
    let unknown = || Problem::invalid("scope", format!("must be one of {}, or the name of one", keys()));
    Scope::from_name_or_key(&text).map(Some).ok_or_else(unknown)
}

/// An application loses a scope, and so do its consents and tokens.
pub(super) async fn remove_scope(input: Input) -> Result<Outcome, Problem> {
    let wanted = read_remove_scope(&input)?;
    let application = input.application("client").await?;
    let wanted = wanted.or_else(|| application.scopes.iter().next());
    let wanted = wanted.filter(|scope| application.scopes.contains(*scope)).ok_or_else(|| {
        let names = application.scopes.iter().map(|scope| format!("{} ({})", scope.key(), scope.name()));
        let names = names.collect::<Vec<_>>().join(", ");
        Problem::invalid("scope", format!("must be a scope of {}: {names}", application.client_id))
    })?;
    let kept: Vec<Scope> = application.scopes.iter().filter(|scope| *scope != wanted).collect();
    let details = input.service.application_details(&application.client_id).await?;
    let uris = details.redirect_uris.iter().map(|uri| RedirectUri::parse(uri));
    let record = ApplicationRecord {
        client_id: application.client_id.clone(),
        name: application.name,
        organization_id: application.organization.map(|organization| organization.organization_id),
        owner: application.owner,
        redirect_uris: uris.collect::<Result<_, _>>().map_err(service::Error::from)?,
        scopes: kept.iter().copied().collect(),
        profile: application.profile,
        quota: application.quota.is_limited(),
        presentation: application.presentation,
        logo: NewLogo::Kept,
    };
    let client_id = record.client_id.clone();
    input.service.put_application(record).await?;
    let kept: Vec<&str> = kept.iter().map(|scope| scope.name()).collect();
    Ok(outcome(json!({ "clientId": client_id, "removed": wanted.name(), "scopes": kept })))
}

/// How sessions end.
#[derive(Clone, Copy)]
enum Ending {
    /// With a close frame.
    Close(CloseReason),
    /// Without one.
    Cut,
    /// They stay half open.
    Silence,
}

/// The close reason.
pub(super) fn read_close_session(fields: &GivenFields) -> Result<CloseReason, Problem> {
    let reason = fields.text("reason").map(|reason| close_reason("reason", &reason)).transpose()?;
    Ok(reason.unwrap_or(CloseReason::Evicted))
}

/// Sessions end with a close reason. By default the operator ends them, as in production.
pub(super) async fn close_session(input: Input) -> Result<Outcome, Problem> {
    let reason = read_close_session(&input)?;
    let closed = end_sessions(&input, Ending::Close(reason)).await?;
    Ok(outcome(json!({ "sessionKeys": closed, "reason": reason.as_str() })))
}

/// The connections of sessions are lost without a close frame, or pass no more bytes.
pub(super) async fn cut_connection(input: Input) -> Result<Outcome, Problem> {
    let silent = input.flag("silent");
    let cut = end_sessions(&input, if silent { Ending::Silence } else { Ending::Cut }).await?;
    Ok(outcome(json!({ "sessionKeys": cut, "silent": silent })))
}

/// Ends the sessions of a call, and returns those that ended. Waits for one, if the call says so. None is a
/// refusal.
async fn end_sessions(input: &Input, ending: Ending) -> Result<Vec<SessionKey>, Problem> {
    let mut waiting = input.waiting();
    loop {
        let mut ended = Vec::new();
        for key in sessions(input).await? {
            let has_ended = end_session(input, &key, ending).await?;
            ended.extend(has_ended.then_some(key));
        }
        if !ended.is_empty() {
            return Ok(ended);
        }
        if !waiting.goes_on().await {
            let named = ["session", "user", "client"].into_iter().find(|field| input.text(field).is_some());
            let what = if named == Some("session") { "is no" } else { "has no" };
            let connected = input.connected_sessions().await?;
            return Err(Problem::unmet(
                named.unwrap_or("user"),
                format!("{what} connected session. {connected}"),
            ));
        }
    }
}

/// Whether a session was connected, and ends.
async fn end_session(input: &Input, key: &SessionKey, ending: Ending) -> Result<bool, Problem> {
    Ok(match ending {
        Ending::Close(CloseReason::Evicted) => input.service.evict_session(key).await.map(|_| true)?,
        Ending::Close(reason) => input.gateway.end_session(key, reason).await,
        Ending::Cut => input.gateway.cut_session(key).await,
        Ending::Silence => {
            input.sandbox.sockets().on_silenced(key, "trigger cut-connection");
            input.gateway.silence_session(key).await
        }
    })
}

/// The sessions of a call: one by its key, or the connected ones of a user, an application or
/// both.
async fn sessions(input: &Input) -> Result<Vec<SessionKey>, Problem> {
    if let Some(key) = input.text("session") {
        let key = SessionKey::stored(key);
        let is_connected = match input.service.session_details(&key).await {
            Ok(details) => details.disconnected_at.is_none(),
            Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => false,
            Err(error) => return Err(error.into()),
        };
        return Ok(is_connected.then_some(key).into_iter().collect());
    }
    let (client_id, channel_id) = input.application_and_user().await?;
    let filter = SessionFilter { client_id, channel_id, connected: Some(true) };
    let page = input.service.list_sessions(filter, SESSIONS_MAX, None).await?;
    Ok(page.sessions.into_iter().map(|session| session.session_key).collect())
}

/// How long the service is away.
pub(super) fn read_restart(fields: &GivenFields) -> Result<Duration, Problem> {
    Ok(fields.span_within("for", AWAY_MAX, "must be at most 10m")?.unwrap_or(AWAY))
}

/// The service restarts, as clients see it: every session ends, and no call is answered for a while.
pub(super) async fn restart(input: Input) -> Result<Outcome, Problem> {
    let away = read_restart(&input)?;
    input.sandbox.faults().go_away(input.sandbox.monotonic() + away);
    // A session that was just ended may be listed, and ended, once more.
    let mut closed = HashSet::new();
    loop {
        let filter = SessionFilter { connected: Some(true), ..SessionFilter::default() };
        let page = input.service.list_sessions(filter, SESSIONS_MAX, None).await?;
        let mut is_over = true;
        for session in page.sessions {
            if input.gateway.end_session(&session.session_key, CloseReason::ServerShutdown).await {
                closed.insert(session.session_key);
                is_over = false;
            }
        }
        if is_over {
            break;
        }
    }
    input.service.clock().sleep(away).await;
    let away_ms = u64::try_from(away.as_millis()).unwrap_or(u64::MAX);
    Ok(outcome(json!({ "closedSessions": closed.len(), "awayMs": away_ms })))
}

/// How long a quota is used up.
pub(super) fn read_exhaust_quota(fields: &GivenFields) -> Result<Duration, Problem> {
    Ok(fields.span_within("for", EXHAUSTED_MAX, "must be at most 24h")?.unwrap_or_default())
}

/// The quota of a user's calls through an application is used up for a while. The next call is refused.
pub(super) async fn exhaust_quota(input: Input) -> Result<Outcome, Problem> {
    let span = read_exhaust_quota(&input)?;
    let application = input.application("client").await?;
    let Some(quota) = application.quota.of(USER_QUOTA) else {
        return Err(Problem::invalid("client", format!("{} has no quotas", application.client_id)));
    };
    let user = input.streamer("user").await?;
    let (quotas, clock) = (input.service.quotas(), input.service.clock());
    let (now, elapsed) = (clock.now(), clock.elapsed());
    let caller = (application.client_id.as_str(), user.as_str());
    let left = quotas.exhaust(Counted::User, caller, quota, span, elapsed);
    let left = left.ok_or_else(|| Problem::invalid("client", "the sandbox runs with --no-quota"))?;
    let left_ms = i64::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(i64::MAX);
    Ok(outcome(json!({
        "clientId": application.client_id,
        "channelId": user,
        "until": now.plus_ms(left_ms).rfc3339(),
        "retryAfter": left.as_micros().div_ceil(1_000_000),
    })))
}
