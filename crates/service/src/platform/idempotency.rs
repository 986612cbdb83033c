//! Idempotency keys (`Idempotency-Key`, platform API). The first request with a key takes effect. Every
//! later request with the same key gets the answer of the first.

use domain::secret::SecretHash;
use domain::{Invalid, Rule};
use store::queries::idempotency::KeyClaim;

use crate::Error;
use crate::work::Work;

/// Maximum length of an `Idempotency-Key`, in bytes.
pub const KEY_BYTES_MAX: usize = 255;
/// How long a key is remembered, in milliseconds: 7 days.
pub const KEY_LIFETIME_MS: i64 = 7 * domain::limits::DAY_MS;

/// The stored answer is unreadable. The service wrote the answer, so the error is internal.
const UNREADABLE_ANSWER: &str = "the answer kept under an idempotency key cannot be read";

/// A key and the request that it names.
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
    /// `Invalid` when the key is empty or longer than 255 bytes.
    pub fn parse(operation: String, key: &str, body: &str) -> Result<Self, Invalid> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX || key.contains('\0') {
            return Err(Invalid::new("Idempotency-Key", Rule::Chars { min: 1, max: KEY_BYTES_MAX }));
        }
        Ok(Self { operation, key: key.to_owned(), request: SecretHash::of(body) })
    }
}

/// The answer to a request with a key, as the store keeps it. Nodes of an earlier version use the same
/// texts.
pub(crate) trait StoredAnswer: Sized {
    /// The text for the store.
    fn to_text(&self) -> String;

    /// Reads the text. `None` for a text that [`to_text`](Self::to_text) never returns.
    fn from_text(text: &str) -> Option<Self>;
}

/// The empty answer.
impl StoredAnswer for () {
    fn to_text(&self) -> String {
        String::new()
    }

    fn from_text(_: &str) -> Option<Self> {
        Some(())
    }
}

/// Claims a key with its answer, inside a transaction. Returns `None` for the first request with the key:
/// then the caller must carry out the request. For a later request it returns the answer of the first.
///
/// # Errors
/// `Invalid` when the key names another request.
pub(crate) async fn claim<A: StoredAnswer>(
    work: &mut Work<'_>,
    key: Option<&IdempotencyKey>,
    answer: &A,
) -> Result<Option<A>, Error> {
    let Some(key) = key else { return Ok(None) };
    claim_text(work, key, &answer.to_text()).await
}

/// Like [`claim`], for an answer that depends on the effect. The caller must store it with [`answer`] in the
/// same transaction.
///
/// # Errors
/// See [`claim`].
pub(crate) async fn claim_without_answer<A: StoredAnswer>(
    work: &mut Work<'_>,
    key: Option<&IdempotencyKey>,
) -> Result<Option<A>, Error> {
    let Some(key) = key else { return Ok(None) };
    claim_text(work, key, "").await
}

/// Stores the answer of a key that this transaction claimed.
///
/// # Errors
/// The error of the store.
pub(crate) async fn answer<A: StoredAnswer>(
    work: &mut Work<'_>,
    key: Option<&IdempotencyKey>,
    answer: &A,
) -> Result<(), Error> {
    let Some(IdempotencyKey { operation, key, .. }) = key else { return Ok(()) };
    Ok(work.answer_idempotency_key(operation, key, &answer.to_text()).await?)
}

async fn claim_text<A: StoredAnswer>(
    work: &mut Work<'_>,
    key: &IdempotencyKey,
    answer: &str,
) -> Result<Option<A>, Error> {
    let now = work.now();
    let IdempotencyKey { operation, key, request } = key;
    match work.claim_idempotency_key(operation, key, request, answer, now).await? {
        KeyClaim::Ours => Ok(None),
        KeyClaim::Earlier { request: first, answer } if first.matches(request) => {
            A::from_text(&answer).map(Some).ok_or(Error::Internal(UNREADABLE_ANSWER))
        }
        KeyClaim::Earlier { .. } => Err(Invalid::new("Idempotency-Key", Rule::Taken).into()),
    }
}
