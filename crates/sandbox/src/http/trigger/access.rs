//! What ends the access of an application: withdrawn consents, removed scopes, closed sessions, lost
//! connections.

use domain::application::RedirectUri;
use domain::limits::USER_QUOTA;
use domain::{Scope, SessionKey};
use gateway::CloseReason;
use serde_json::json;
use service::SessionFilter;
use service::applications::{ApplicationRecord, NewLogo};
use service::quotas::Counted;

use super::input::{Input, Outcome, outcome};
use crate::http::answer::Problem;
use crate::http::close_reason::close_reason;

/// Maximum number of sessions that one call ends.
const SESSIONS_MAX: i64 = 100;

/// A user withdraws the consent to an application.
pub(super) async fn revoke_consent(input: Input) -> Result<Outcome, Problem> {
    let application = input.application("client").await?;
    let user = input.streamer("user").await?;
    input.service.withdraw_consent(&application.client_id, &user).await?;
    Ok(outcome(json!({ "clientId": application.client_id, "channelId": user })))
}

/// An application loses a scope, and so do its consents and tokens.
pub(super) async fn remove_scope(input: Input) -> Result<Outcome, Problem> {
    let application = input.application("client").await?;
    let names: Vec<&str> = application.scopes.iter().map(domain::Scope::name).collect();
    let wanted = input.text("scope")?.or_else(|| names.first().map(ToString::to_string)).unwrap_or_default();
    if !names.contains(&wanted.as_str()) {
        let rule = format!("must be a scope of {}: {}", application.client_id, names.join(", "));
        return Err(Problem::invalid("scope", rule));
    }
    let kept: Vec<Scope> = application.scopes.iter().filter(|scope| scope.name() != wanted).collect();
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
        quota: application.quota,
        presentation: application.presentation,
        logo: NewLogo::Kept,
    };
    let client_id = record.client_id.clone();
    input.service.put_application(record).await?;
    let kept: Vec<&str> = kept.iter().map(|scope| scope.name()).collect();
    Ok(outcome(json!({ "clientId": client_id, "removed": wanted, "scopes": kept })))
}

/// Sessions end with a close reason. By default the operator ends them, as in production.
pub(super) async fn close_session(input: Input) -> Result<Outcome, Problem> {
    let reason = input.text("reason")?.map(|reason| close_reason("reason", &reason)).transpose()?;
    let reason = reason.unwrap_or(CloseReason::Evicted);
    let mut closed = Vec::new();
    for key in sessions(&input).await? {
        let is_closed = match reason {
            CloseReason::Evicted => input.service.evict_session(&key).await.map(|_| true)?,
            reason => input.gateway.end_session(&key, reason).await,
        };
        closed.extend(is_closed.then_some(key));
    }
    Ok(outcome(json!({ "sessionKeys": closed, "reason": reason.as_str() })))
}

/// The connections of sessions are lost without a close frame, or pass no more bytes.
pub(super) async fn cut_connection(input: Input) -> Result<Outcome, Problem> {
    let silent = input.flag("silent")?;
    let mut cut = Vec::new();
    for key in sessions(&input).await? {
        let is_cut = if silent {
            input.sandbox.sockets().on_silenced(&key, "trigger cut-connection");
            input.gateway.silence_session(&key).await
        } else {
            input.gateway.cut_session(&key).await
        };
        cut.extend(is_cut.then_some(key));
    }
    Ok(outcome(json!({ "sessionKeys": cut, "silent": silent })))
}

/// The sessions of a call: one by its key, or the connected ones of a user, an application or
/// both.
async fn sessions(input: &Input) -> Result<Vec<SessionKey>, Problem> {
    if let Some(key) = input.text("session")? {
        let key = SessionKey::stored(key);
        input.service.session_details(&key).await?;
        return Ok(vec![key]);
    }
    let (client_id, channel_id) = input.application_and_user().await?;
    let filter = SessionFilter { client_id, channel_id, connected: Some(true) };
    let page = input.service.list_sessions(filter, SESSIONS_MAX, None).await?;
    Ok(page.sessions.into_iter().map(|session| session.session_key).collect())
}

/// The quota of a user's calls through an application is used up. The next call is refused.
pub(super) async fn exhaust_quota(input: Input) -> Result<Outcome, Problem> {
    let application = input.application("client").await?;
    if !application.quota {
        return Err(Problem::invalid("client", format!("{} has no quotas", application.client_id)));
    }
    let user = input.streamer("user").await?;
    let (quotas, now) = (input.service.quotas(), input.service.clock().elapsed());
    let caller = (application.client_id.as_str(), user.as_str());
    // Each turn takes one request, so the bucket is empty after as many turns as the quota has requests.
    let retry_after_s = loop {
        match quotas.take(Counted::User, caller, USER_QUOTA, now) {
            None => return Err(Problem::invalid("client", "the sandbox runs with --no-quota")),
            Some(status) => {
                if let Some(seconds) = status.retry_after_s {
                    break seconds;
                }
            }
        }
    };
    Ok(outcome(json!({ "clientId": application.client_id, "channelId": user, "retryAfter": retry_after_s })))
}
