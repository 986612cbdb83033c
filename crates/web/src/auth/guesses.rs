//! Limits password guessing (`docs/spec/authorization.md#guessing`).
//!
//! An attempt is charged before its password is checked, and refunded if the password is right. So concurrent
//! attempts have the same limit as attempts one after the other. The check itself has a price of its own,
//! which the service charges. There are two limits:
//!
//! - An address has [`FAILURE_QUOTA`] wrong passwords. A known address, from which the account was signed in
//!   to before, is charged for this account alone. So other people behind the address cannot use up its
//!   attempts.
//! - An account has as many wrong passwords from unknown addresses. Further attempts from unknown addresses
//!   are delayed more and more, up to [`ACCOUNT_DELAY_MAX`], and each address has [`SLOWED_QUOTA`]. No
//!   attempt is refused because of other addresses, and attempts from known addresses are not delayed.

use std::time::Duration;

use domain::Refusal;
use domain::client_address::AddressBlock;
use domain::limits::{ACCOUNT_DELAY_MAX, ACCOUNT_QUOTA, FAILURE_QUOTA, SLOWED_QUOTA};
use service::Purpose;
use service::quotas::Counted;

use crate::quota::{Charged, block};
use crate::{ClientAddress, Web};

/// An attempt to sign in to an account.
pub(super) struct Guess<'a> {
    web: &'a Web,
    login: &'a str,
    pub(super) block: Option<AddressBlock>,
    /// Whether the account was signed in to from this address before.
    pub(super) known: bool,
}

/// Subtracts up to a quarter from the maximum delay, so that concurrent attempts do not all continue at the
/// same time.
fn jittered(delay: Duration, [random]: [u8; 1]) -> Duration {
    if delay < ACCOUNT_DELAY_MAX {
        return delay;
    }
    delay - ACCOUNT_DELAY_MAX / 4 * u32::from(random) / u32::from(u8::MAX)
}

impl<'a> Guess<'a> {
    /// Charges an attempt, and delays it if the account's attempts are slowed down.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`] if the address has no attempt left.
    pub(super) async fn begin(
        web: &'a Web,
        charged: &Charged,
        login: &'a str,
        client: Option<ClientAddress>,
    ) -> Result<Self, Refusal> {
        let block = block(client);
        let known = web.known_addresses().contains(login, block);
        let guess = Self { web, login, block, known };
        if known {
            charged.take(web, Counted::KnownPlace, (login, block), FAILURE_QUOTA)?;
            return Ok(guess);
        }
        charged.take(web, Counted::SignIns, block, FAILURE_QUOTA)?;
        let (quotas, clock) = (web.service().quotas(), web.service().clock());
        let delay = quotas.pace(Counted::Account, login, ACCOUNT_QUOTA, ACCOUNT_DELAY_MAX, clock.elapsed());
        if !delay.is_zero() {
            let slowed = charged.take(web, Counted::SlowedAccount, (login, block), SLOWED_QUOTA);
            slowed.inspect_err(|_| guess.refund())?;
            clock.sleep(jittered(delay, web.service().entropy().bytes(Purpose::Jitter))).await;
        }
        Ok(guess)
    }

    /// Refunds the attempt and marks the address as known, because the password was right.
    pub(super) fn succeeded(self) {
        self.refund();
        self.web.known_addresses().insert(self.login, self.block);
    }

    /// Refunds the attempt, because its password was not checked or was right.
    pub(super) fn refund(&self) {
        let Self { web, login, block, known } = self;
        let quotas = web.service().quotas();
        if *known {
            quotas.give_back(Counted::KnownPlace, (login, block), FAILURE_QUOTA);
        } else {
            // In this order, so that one that gets the place at the address is not delayed by this one.
            quotas.give_back(Counted::Account, login, ACCOUNT_QUOTA);
            quotas.give_back(Counted::SignIns, block, FAILURE_QUOTA);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_maximum_delay_is_jittered() {
        let (six, eight) = (Duration::from_secs(6), Duration::from_secs(8));
        assert_eq!(ACCOUNT_DELAY_MAX, eight);
        assert_eq!(
            [jittered(eight, [0]), jittered(eight, [u8::MAX]), jittered(six, [u8::MAX])],
            [eight, six, six]
        );
    }
}
