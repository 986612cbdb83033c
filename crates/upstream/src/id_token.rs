//! The checks of an ID token (OpenID Connect Core, 3.1.3.7).

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::Timestamp;
use domain::limits::RECENT_SIGN_IN_MS;
use openidconnect::core::{CoreIdToken, CoreIdTokenVerifier, CoreJsonWebKeySet};
use openidconnect::{
    AccessToken, AccessTokenHash, ClaimsVerificationError, ClientId, IssuerUrl, Nonce,
    SignatureVerificationError,
};
use serde_json::{Map, Value};

use crate::metadata::{Metadata, algorithms};

/// How far the clocks of the provider and of this node may differ.
pub(crate) const LEEWAY_MS: i64 = 60_000;
/// Maximum length of a subject, in bytes (OpenID Connect Core, 2).
const SUBJECT_BYTES_MAX: usize = 255;
/// Maximum length of a reason in the log, in characters.
const REASON_CHARS_MAX: usize = 200;

/// What an ID token must say.
pub(crate) struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    pub now: Timestamp,
}

/// Why an ID token is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    /// No key has the id that the token names. New keys may help.
    UnknownKey,
    /// The token is wrong.
    Wrong(String),
}

/// The claims of an ID token that passes every check, with its subject.
#[derive(Debug)]
pub(crate) struct CheckedToken {
    pub subject: String,
    pub claims: Map<String, Value>,
}

impl CheckedToken {
    /// Whether the person signed in at the provider within ten minutes. A provider that does not say when
    /// (OpenID Connect Core, 2, `auth_time`) is believed.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        let seconds = self.claims.get("auth_time").and_then(Value::as_i64);
        seconds.is_none_or(|at| now.as_millis() - at.saturating_mul(1_000) <= RECENT_SIGN_IN_MS + LEEWAY_MS)
    }
}

/// Checks an ID token: signature with a key of the provider, issuer, audience, authorized party, time, nonce,
/// and the hash of the access token.
pub(crate) fn check(
    token: &CoreIdToken,
    access_token: &AccessToken,
    metadata: &Metadata,
    keys: &CoreJsonWebKeySet,
    expected: &Expected<'_>,
) -> Result<CheckedToken, TokenRefusal> {
    let wrong = |text: &str| TokenRefusal::Wrong(text.to_owned());
    let issuer = IssuerUrl::new(expected.issuer.to_owned()).map_err(|_| wrong("the issuer is no address"))?;
    let (at, latest) = (system_time(expected.now, -LEEWAY_MS), system_time(expected.now, LEEWAY_MS));
    let client_id = ClientId::new(expected.client_id.to_owned());
    // A verifier of a public client takes no signature with a shared secret.
    let verifier = CoreIdTokenVerifier::new_public_client(client_id, issuer, keys.clone())
        .set_allowed_algs(algorithms(metadata))
        .set_time_fn(move || at.into())
        .set_issue_time_verifier_fn(move |issued| match SystemTime::from(issued) <= latest {
            true => Ok(()),
            false => Err("it was issued in the future".to_owned()),
        });
    let claims = token.claims(&verifier, &Nonce::new(expected.nonce.to_owned())).map_err(refusal)?;
    if claims.issuer().as_str() != expected.issuer {
        return Err(wrong("another issuer"));
    }
    if claims.authorized_party().is_some_and(|party| party.as_str() != expected.client_id) {
        return Err(wrong("another authorized party"));
    }
    if let Some(given) = claims.access_token_hash() {
        let algorithm = token.signing_alg().map_err(|_| wrong("no signature"))?;
        let key = token.signing_key(&verifier).map_err(|_| wrong("no key"))?;
        let own = AccessTokenHash::from_token(access_token, algorithm, key)
            .map_err(|_| wrong("the hash of the access token cannot be checked"))?;
        if own != *given {
            return Err(wrong("another access token"));
        }
    }
    let subject = claims.subject().as_str().to_owned();
    let fits = (1..=SUBJECT_BYTES_MAX).contains(&subject.len()) && !subject.contains(char::is_control);
    if !fits {
        return Err(wrong("the subject is empty, or longer than 255 bytes"));
    }
    let claims = payload(&token.to_string()).ok_or_else(|| wrong("its claims cannot be read"))?;
    Ok(CheckedToken { subject, claims })
}

fn system_time(now: Timestamp, offset_ms: i64) -> SystemTime {
    let ms = u64::try_from(now.plus_ms(offset_ms).as_millis()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}

/// All claims of a token whose signature was checked.
fn payload(token: &str) -> Option<Map<String, Value>> {
    let text = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

fn refusal(error: ClaimsVerificationError) -> TokenRefusal {
    match error {
        ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey) => {
            TokenRefusal::UnknownKey
        }
        ClaimsVerificationError::SignatureVerification(error) => TokenRefusal::Wrong(bounded(&error)),
        error => TokenRefusal::Wrong(bounded(&error)),
    }
}

/// A reason without line ends, of a bounded length. The provider may have written parts of it.
pub(crate) fn bounded(reason: &impl ToString) -> String {
    let text = reason.to_string();
    text.chars().take(REASON_CHARS_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
