//! How many passwords may be tried (`docs/spec/authorization.md#guessing`).
//!
//! A try is charged before its password is looked at, and given back when the password is right: of tries
//! made at once no more are looked at than of tries made one by one. There are two limits:
//!
//! - An address has [`FAILURE_QUOTA`] wrong passwords. One from which the account was signed in to before is
//!   charged for this account alone, so that others behind the same address cannot use its tries up.
//! - An account has as many for strangers. Beyond them each of their tries waits, longer and longer up to
//!   [`ACCOUNT_DELAY_MAX`], and an address has [`SLOWED_QUOTA`]. Nobody is refused for the tries of other
//!   addresses, and who comes from a known one does not wait.

use std::time::Duration;

use domain::Refusal;
use domain::client_address::AddressBlock;
use domain::limits::{ACCOUNT_DELAY_MAX, ACCOUNT_QUOTA, FAILURE_QUOTA, SLOWED_QUOTA};
use service::quotas::Counted;

use crate::quota::{Charged, block};
use crate::{ClientAddress, Web};

/// A try at an account that is being made.
pub(super) struct Guess<'a> {
    web: &'a Web,
    login: &'a str,
    block: Option<AddressBlock>,
    /// Whether the account was signed in to from this address before.
    pub(super) known: bool,
}

/// Takes up to a quarter off the longest delay, so that tries that came together do not want their turn
/// together.
fn spread(delay: Duration, [random]: [u8; 1]) -> Duration {
    if delay < ACCOUNT_DELAY_MAX {
        return delay;
    }
    delay - ACCOUNT_DELAY_MAX / 4 * u32::from(random) / u32::from(u8::MAX)
}

impl<'a> Guess<'a> {
    /// Charges a try, and waits where the account's tries are slowed down.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`] when the address has no try left.
    pub(super) async fn begin(
        web: &'a Web,
        charged: &Charged,
        login: &'a str,
        client: Option<ClientAddress>,
    ) -> Result<Self, Refusal> {
        let block = block(client);
        let known = web.places().know(login, block);
        let guess = Self { web, login, block, known };
        if known {
            charged.take(web, Counted::KnownPlace, (login, block), FAILURE_QUOTA)?;
            return Ok(guess);
        }
        charged.take(web, Counted::SignIns, block, FAILURE_QUOTA)?;
        let (quotas, clock) = (web.service().quotas(), web.service().clock());
        let delay = quotas.pace(Counted::Account, login, ACCOUNT_QUOTA, ACCOUNT_DELAY_MAX, clock.monotonic());
        if !delay.is_zero() {
            let slowed = charged.take(web, Counted::SlowedAccount, (login, block), SLOWED_QUOTA);
            slowed.inspect_err(|_| guess.give_back())?;
            clock.sleep(spread(delay, web.service().entropy().bytes())).await;
        }
        Ok(guess)
    }

    /// The password was right: the try costs nothing, and the address is known from now on.
    pub(super) fn was_right(self) {
        self.give_back();
        self.web.places().remember(self.login, self.block);
    }

    /// The password was not looked at, or was right.
    pub(super) fn give_back(&self) {
        let Self { web, login, block, known } = self;
        let (quotas, now) = (web.service().quotas(), web.service().clock().monotonic());
        if *known {
            quotas.give_back(Counted::KnownPlace, (login, block), FAILURE_QUOTA, now);
        } else {
            quotas.give_back(Counted::SignIns, block, FAILURE_QUOTA, now);
            quotas.give_back(Counted::Account, login, ACCOUNT_QUOTA, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_delay_is_spread() {
        let (six, eight) = (Duration::from_secs(6), Duration::from_secs(8));
        assert_eq!(ACCOUNT_DELAY_MAX, eight);
        assert_eq!([spread(eight, [0]), spread(eight, [u8::MAX]), spread(six, [u8::MAX])], [eight, six, six]);
    }
}
