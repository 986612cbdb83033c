//! What a token is, and why it is refused.

use domain::refusal::TokenFault;
use domain::{Refusal, Timestamp};
use serde_json::json;
use service::{Error, Service};

use super::thing::Thing;
use super::words;

/// An access token, or a refresh token; `None` if the service does not know it.
///
/// # Errors
/// The store fails.
pub(super) async fn token_thing(service: &Service, token: &str) -> Result<Option<Thing>, Error> {
    let holder = match service.authenticate_user(token).await {
        Ok(holder) => holder,
        Err(Error::Refused(Refusal::InvalidToken(fault))) => return Ok(refused(fault)),
        Err(error) => return Err(error),
    };
    let scopes: Vec<&str> = holder.scopes.iter().map(|scope| scope.name()).collect();
    let facts = json!({
        "clientId": holder.client_id, "channelId": holder.channel_id, "scopes": scopes,
        "expiresAt": Timestamp::rfc3339(holder.expires_at),
    });
    let summary = format!("An access token of {} for {}. It is valid", holder.channel_id, holder.client_id);
    Ok(Some(Thing { kind: "token", summary, facts, next: Vec::new() }))
}

/// A token that calls are refused with.
fn refused(fault: TokenFault) -> Option<Thing> {
    let (summary, reason) = match fault {
        TokenFault::Expired => ("An access token that has expired", "token-expired"),
        TokenFault::Revoked => ("A token that was revoked", "token-revoked"),
        TokenFault::WrongKind(_) => {
            ("A refresh token. Only /auth/v1/token takes it", "credential-wrong-kind")
        }
        _ => return None,
    };
    let next = words::remedy("reason", reason).into_iter().collect();
    Some(Thing { kind: "token", summary: summary.to_owned(), facts: json!({}), next })
}
