//! The life of a sign-in: code, tokens, refresh, and the meaning of a second use
//! (`docs/spec/authorization.md#codes`, `docs/spec/authorization.md#tokens`).

use crate::limits::{ACCESS_TOKEN_LIFETIME_MS, REUSE_GRACE_MS};
use crate::quota::QuotaShare;
use crate::scope::{Scope, ScopeSet};
use crate::{ChannelId, ClientId, Refusal, Timestamp};

/// `tokenType` of every token answer.
pub const TOKEN_TYPE: &str = "Bearer";
/// `expiresIn` of every token answer, in seconds.
pub const EXPIRES_IN_SECONDS: i64 = ACCESS_TOKEN_LIFETIME_MS / 1_000;

/// The caller of an access token: the application, its user, and the scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The application.
    pub client_id: ClientId,
    /// The user, by the user's channel.
    pub channel_id: ChannelId,
    /// The scopes to which the user consented and for which the application still asks.
    pub scopes: ScopeSet,
    /// The profile of the application, if it has one of its own.
    pub profile: Option<crate::Profile>,
    /// How much of the quotas the application has (`docs/spec/limits.md#quotas`).
    pub quota: QuotaShare,
    /// The tokens of one sign-in.
    pub family: TokenFamily,
}

impl Caller {
    /// Checks the scope of an endpoint (`docs/spec/authorization.md#scopes`).
    ///
    /// # Errors
    /// [`Refusal::ScopeMissing`] without it.
    pub fn needs(&self, scope: Scope) -> Result<(), Refusal> {
        if self.scopes.contains(scope) { Ok(()) } else { Err(Refusal::ScopeMissing(scope)) }
    }
}

/// The id shared by all tokens of one code, through every refresh.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenFamily(pub String);

/// The state of a single-use credential (code or refresh token).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleUse {
    /// When it expires.
    pub expires_at: Timestamp,
    /// When it was used, if ever.
    pub used_at: Option<Timestamp>,
}

/// The meaning of presenting a single-use credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presented {
    /// It may be used now.
    Fresh,
    /// It was not used in time.
    Expired,
    /// It was used so recently that this may be a retry of an honest client.
    Used,
    /// It was used longer ago. Another party may have its tokens, so these are revoked too.
    Stolen,
}

impl SingleUse {
    /// Judges a credential presented at `now`.
    pub fn presented(self, now: Timestamp) -> Presented {
        match self.used_at {
            Some(used_at) if now > used_at.plus_ms(REUSE_GRACE_MS) => Presented::Stolen,
            Some(_) => Presented::Used,
            None if now >= self.expires_at => Presented::Expired,
            None => Presented::Fresh,
        }
    }
}

/// Whether the tokens of a sign-in that ended at `began_at` cannot be refreshed any more. `max_ms` is how
/// long they can be; `None` for ever.
pub fn chain_has_ended(began_at: Timestamp, max_ms: Option<i64>, now: Timestamp) -> bool {
    max_ms.is_some_and(|max_ms| now >= began_at.plus_ms(max_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CODE_LIFETIME_MS;

    #[test]
    fn a_chain_of_tokens_ends_a_fixed_time_after_its_sign_in() {
        let began = Timestamp::from_millis(1_000);
        let check = |max_ms, after: i64, has_ended| {
            assert_eq!(chain_has_ended(began, max_ms, began.plus_ms(after)), has_ended, "{max_ms:?} {after}");
        };
        check(None, i64::MAX / 2, false);
        check(Some(500), 499, false);
        check(Some(500), 500, true);
    }

    #[test]
    fn a_single_use_credential_is_fresh_then_used_then_stolen() {
        let made = Timestamp::from_millis(1_000_000);
        let check = |used_after: Option<i64>, presented_after: i64, expected| {
            let credential = SingleUse {
                expires_at: made.plus_ms(CODE_LIFETIME_MS),
                used_at: used_after.map(|ms| made.plus_ms(ms)),
            };
            assert_eq!(
                credential.presented(made.plus_ms(presented_after)),
                expected,
                "{used_after:?} {presented_after}"
            );
        };
        check(None, 0, Presented::Fresh);
        check(None, CODE_LIFETIME_MS - 1, Presented::Fresh);
        check(None, CODE_LIFETIME_MS, Presented::Expired);
        check(Some(0), 0, Presented::Used);
        check(Some(0), 10_000, Presented::Used);
        check(Some(0), 10_001, Presented::Stolen);
        check(Some(0), CODE_LIFETIME_MS * 2, Presented::Stolen);
    }
}
