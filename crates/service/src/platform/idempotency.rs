//! Requests that may be repeated: the first one with a key has the effect, the others get its answer
//! (platform API, `Idempotency-Key`).

use domain::secret::SecretHash;
use domain::{Invalid, Rule, Timestamp};
use store::Tx;
use store::queries::idempotency::KeyClaim;

use crate::Error;

/// Bytes of an `Idempotency-Key`.
pub const KEY_BYTES_MAX: usize = 255;
/// How long a key is remembered, in milliseconds: 7 days.
pub const KEY_LIFETIME_MS: i64 = 7 * domain::limits::DAY_MS;

/// A failure of the service: a row that it wrote itself.
pub(crate) const UNREADABLE_ANSWER: &str = "the answer kept under an idempotency key cannot be read";

/// A key, with the request that it stands for.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    /// The operation: method and path.
    pub operation: String,
    /// The key as the caller sent it.
    pub key: String,
    /// The hash of the request's body.
    pub request: SecretHash,
}

impl IdempotencyKey {
    /// Reads the header's value.
    ///
    /// # Errors
    /// `Invalid` when it is empty or longer than 255 bytes.
    pub fn parse(operation: String, key: &str, body: &str) -> Result<Self, Invalid> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX || key.contains('\0') {
            return Err(Invalid::new("Idempotency-Key", Rule::Chars { min: 1, max: KEY_BYTES_MAX }));
        }
        Ok(Self { operation, key: key.to_owned(), request: SecretHash::of(body) })
    }
}

/// Inside the transaction that claimed a key: what it answers from now on, when only the effect could tell.
///
/// # Errors
/// The store's.
pub(crate) async fn answer(tx: &mut Tx, key: Option<&IdempotencyKey>, answer: &str) -> Result<(), Error> {
    let Some(IdempotencyKey { operation, key, .. }) = key else { return Ok(()) };
    Ok(tx.answer_idempotency_key(operation, key, answer).await?)
}

/// Inside a transaction: `None` when the effect is still to happen, else the answer that the first request got.
///
/// # Errors
/// `Invalid` when the key was used for another request.
pub(crate) async fn claim(
    tx: &mut Tx,
    key: Option<&IdempotencyKey>,
    answer: &str,
    now: Timestamp,
) -> Result<Option<String>, Error> {
    let Some(IdempotencyKey { operation, key, request }) = key else { return Ok(None) };
    match tx.claim_idempotency_key(operation, key, request, answer, now).await? {
        KeyClaim::Ours => Ok(None),
        KeyClaim::Earlier { request: first, answer } if first.matches(request) => Ok(Some(answer)),
        KeyClaim::Earlier { .. } => Err(Invalid::new("Idempotency-Key", Rule::Taken).into()),
    }
}
