//! The price of a check of a password, right or wrong.
//!
//! A check is charged to the address of the caller before it runs. At an address where an account was signed
//! in to before, the account has some checks of its own, which others there cannot use up. An account pays
//! for its right passwords, wherever they come from. Wrong ones are not its own, so they cost it nothing.

use domain::Refusal;
use domain::client_address::AddressBlock;
use domain::limits::{KNOWN_PLACE_CHECK_QUOTA, PASSWORD_CHECK_QUOTA};
use domain::password::Password;
use domain::quota::QuotaStatus;

use crate::identity::password_queue::{Asker, Busy};
use crate::quotas::Counted;
use crate::{Error, Service};

/// What a check was charged to.
enum Price {
    /// The checks of the address.
    Address,
    /// The checks that the account has at this address.
    KnownPlace,
}

impl Service {
    /// A handle of the same service for a caller at this address, which pays for the checks of passwords.
    pub fn asked_from(&self, block: Option<AddressBlock>) -> Self {
        Self(self.0.clone(), self.1.clone(), block)
    }

    /// Whether `stored` is a hash of the password of a login. With `is_known` the account was signed in to
    /// from this address before, or is.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`] or [`Refusal::Busy`]. Then the password was not checked.
    pub(crate) async fn verify_password(
        &self,
        (login, is_known): (&str, bool),
        password: Password,
        stored: Option<String>,
    ) -> Result<bool, Error> {
        let price = self.charge_check(login, is_known)?;
        let asker = Asker::Person { login, block: self.2, is_known };
        let verified = self.0.passwords.verify(password, stored, asker).await;
        let is_right = verified.map_err(|busy| self.unchecked(&price, login, busy))?;
        if is_right {
            let now = self.0.clock.elapsed();
            self.quotas().take(Counted::AccountChecks, login, PASSWORD_CHECK_QUOTA, now);
        }
        Ok(is_right)
    }

    /// The hash of a password that a person chose. `login` is that of an account that exists, or empty.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`] or [`Refusal::Busy`].
    pub(crate) async fn hash_password(&self, login: &str, password: Password) -> Result<String, Error> {
        let is_known = !login.is_empty();
        let price = self.charge_check(login, is_known)?;
        let asker = Asker::Person { login, block: self.2, is_known };
        let hashed = self.0.passwords.hash(password, asker).await;
        hashed.map_err(|busy| self.unchecked(&price, login, busy))
    }

    fn charge_check(&self, login: &str, is_known: bool) -> Result<Price, Error> {
        let (quotas, now, block) = (self.quotas(), self.0.clock.elapsed(), self.2);
        let refusal = |status: Option<QuotaStatus>| {
            let retry_after_s = status?.retry_after_s?;
            Some(Refusal::TooManyRequests { quota: Counted::AddressChecks.name(), retry_after_s })
        };
        let of_account = quotas.peek(Counted::AccountChecks, login, PASSWORD_CHECK_QUOTA, now);
        if let Some(refusal) = refusal(of_account) {
            return Err(refusal.into());
        }
        let of_address = quotas.take(Counted::AddressChecks, block, PASSWORD_CHECK_QUOTA, now);
        let Some(refused) = refusal(of_address) else { return Ok(Price::Address) };
        if !is_known {
            return Err(refused.into());
        }
        let of_place = quotas.take(Counted::KnownPlaceChecks, (login, block), KNOWN_PLACE_CHECK_QUOTA, now);
        refusal(of_place).map_or(Ok(Price::KnownPlace), |refusal| Err(refusal.into()))
    }

    /// Gives the price of a check back that did not run.
    fn unchecked(&self, price: &Price, login: &str, _: Busy) -> Error {
        let (quotas, block) = (self.quotas(), self.2);
        match price {
            Price::Address => quotas.give_back(Counted::AddressChecks, block, PASSWORD_CHECK_QUOTA),
            Price::KnownPlace => {
                quotas.give_back(Counted::KnownPlaceChecks, (login, block), KNOWN_PLACE_CHECK_QUOTA);
            }
        }
        Refusal::Busy { retry_after_s: Busy::RETRY_AFTER_S }.into()
    }
}
