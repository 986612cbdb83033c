//! What ends before its time: codes, tokens and session URLs. The clock stays where it is.

use domain::secret::SecretHash;
use serde_json::{Value, json};
use service::expire::{ExpireFilter, Expiring};

use super::fields::GivenFields;
use super::input::{Input, Outcome, outcome};
use crate::http::answer::Problem;

/// Maximum number of credentials that an answer lists.
const LISTED_MAX: usize = 100;
/// The kinds by name.
const KINDS: [(&str, Expiring); 4] = [
    ("code", Expiring::Code),
    ("access-token", Expiring::AccessToken),
    ("refresh-token", Expiring::RefreshToken),
    ("session-url", Expiring::SessionUrl),
];

/// The kind that ends if none is named.
const DEFAULT_KIND: &str = "access-token";

/// The kind that ends, with its name.
pub(super) fn read_expire(fields: &GivenFields) -> Result<(&'static str, Expiring), Problem> {
    let what = fields.text("what").unwrap_or_else(|| DEFAULT_KIND.to_owned());
    let names = KINDS.map(|(name, _)| name).join(", ");
    let kind = KINDS.into_iter().find(|(name, _)| *name == what);
    kind.ok_or_else(|| Problem::invalid("what", format!("must be one of {names}")))
}

/// Credentials of a kind end: one, or those of a user, an application or both.
pub(super) async fn expire(input: Input) -> Result<Outcome, Problem> {
    let (what, kind) = read_expire(&input)?;
    let filter = filter(&input, kind).await?;
    let given = if filter.hash.is_some() { "token" } else { "what" };
    let expired = input.service.expire(kind, filter).await?;
    if expired.is_empty() {
        let rule = format!("no {what} like this is still valid and unused");
        return Err(Problem::unmet(given, rule));
    }
    let listed = expired
        .iter()
        .take(LISTED_MAX)
        .map(|(client_id, channel_id)| json!({ "clientId": client_id, "channelId": channel_id.as_ref() }));
    Ok(outcome(json!({
        "what": what,
        "expired": expired.len(),
        "data": listed.collect::<Vec<Value>>(),
    })))
}

async fn filter(input: &Input, kind: Expiring) -> Result<ExpireFilter, Problem> {
    let token = input.text("token");
    let (client_id, channel_id) = match token {
        Some(_) => (input.given_application("client").await?, input.given_streamer("user").await?),
        None => input.application_and_user().await?,
    };
    let hash = token.map(|token| match kind {
        Expiring::SessionUrl => SecretHash::of(&secret_of(&token)),
        _ => SecretHash::of(&token),
    });
    Ok(ExpireFilter { hash, client_id, channel_id })
}

/// The secret of a session URL, which stands in its query.
fn secret_of(url: &str) -> String {
    let query = url.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let auth = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "auth");
    auth.map_or_else(|| url.to_owned(), |(_, auth)| auth.into_owned())
}
