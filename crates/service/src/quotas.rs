//! The recent requests of each caller. Each node counts in its own memory. So a caller of `n` nodes gets up
//! to `n` times its quota, and a restart resets the counts. In return a check costs nanoseconds.
//!
//! Each kind of counted request has a table of its own. So requests that anybody can make in any number, such
//! as forms from many addresses, never take the room of others, such as sign-ins.

mod table;

use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use domain::quota::{Quota, QuotaName, QuotaStatus};

use self::table::BucketTable;

/// Maximum number of buckets of the calls of applications for users, and of their messages and session URLs:
/// 2 MiB of each kind.
const USER_BUCKETS_MAX: usize = 131_072;
/// Maximum number of buckets of each other kind: 1 MiB.
const BUCKETS_MAX: usize = 65_536;

/// The requests that a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Client-mode calls of an application.
    Client,
    /// User-mode calls of an application for a user.
    User,
    /// Token calls of an application.
    Token,
    /// Bad codes and refresh tokens of an authenticated application.
    Exchanges,
    /// Wrong client secrets from a network address.
    ClientSecrets,
    /// Wrong passwords from a network address.
    SignIns,
    /// Wrong passwords of an account from unknown addresses.
    Account,
    /// Attempts from a network address to sign in to an account that is slowed down.
    SlowedAccount,
    /// Wrong passwords of an account from a known address.
    KnownPlace,
    /// Wrong passwords of a signed-in person, on the pages of the account.
    Confirmations,
    /// Checks of passwords for a network address, right or wrong.
    AddressChecks,
    /// Checks of passwords of an account at a known address whose [`AddressChecks`](Self::AddressChecks) are
    /// used up.
    KnownPlaceChecks,
    /// Right passwords of an account.
    AccountChecks,
    /// Registrations of a network address.
    Registrations,
    /// Requested password resets of a network address.
    PasswordResets,
    /// Sign-ins of a network address that begin at a provider.
    UpstreamSignIns,
    /// Requests of a person for a page of the studio.
    StudioPages,
    /// Forms of a person on a page of the studio.
    StudioForms,
    /// Requests of a person for pages.
    Pages,
    /// Forms of a person.
    Forms,
    /// Requests for pages of a network address where nobody is signed in.
    VisitorPages,
    /// Forms of a network address where nobody is signed in.
    VisitorForms,
    /// Searches of a network address in the documentation.
    Searches,
    /// Wrong operator keys from a network address.
    OperatorKeys,
    /// Session URLs of a caller.
    SessionUrls,
    /// Chat messages of a user.
    ChatSend,
    /// Calls without authentication from a network address. The last kind.
    Unknown,
}

impl Counted {
    /// The number of kinds.
    const KINDS: usize = Self::Unknown as usize + 1;

    /// The name of the quota, for a refusal.
    pub const fn name(self) -> QuotaName {
        match self {
            Self::Client => QuotaName::Client,
            Self::User => QuotaName::User,
            Self::Token => QuotaName::Token,
            Self::SessionUrls => QuotaName::SessionUrls,
            Self::ChatSend => QuotaName::ChatSend,
            Self::Unknown => QuotaName::Address,
            Self::Registrations | Self::PasswordResets | Self::UpstreamSignIns => QuotaName::Accounts,
            Self::StudioPages | Self::StudioForms => QuotaName::Studio,
            Self::Pages | Self::Forms | Self::VisitorPages | Self::VisitorForms => QuotaName::Pages,
            Self::Searches => QuotaName::Search,
            Self::AddressChecks | Self::KnownPlaceChecks | Self::AccountChecks => QuotaName::Passwords,
            Self::Exchanges
            | Self::ClientSecrets
            | Self::SignIns
            | Self::Account
            | Self::SlowedAccount
            | Self::KnownPlace
            | Self::Confirmations
            | Self::OperatorKeys => QuotaName::Failures,
        }
    }
}

/// The buckets of all callers.
#[derive(Debug)]
pub struct Quotas {
    enforced: bool,
    hasher: RandomState,
    /// A table for each kind.
    tables: [BucketTable; Counted::KINDS],
}

impl Quotas {
    pub(crate) fn new(enforced: bool) -> Self {
        let of_users = [Counted::User, Counted::SessionUrls, Counted::ChatSend].map(|kind| kind as usize);
        let table = |kind| match of_users.contains(&kind) {
            true => BucketTable::new(USER_BUCKETS_MAX),
            false => BucketTable::new(BUCKETS_MAX),
        };
        Self { enforced, hasher: RandomState::new(), tables: std::array::from_fn(table) }
    }

    /// Takes one request of `caller` from its bucket. `None` if quotas are off.
    pub fn take(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        now: Duration,
    ) -> Option<QuotaStatus> {
        self.with(counted, caller, |bucket| quota.take(bucket, micros(now)))
    }

    /// Returns a taken request to the bucket.
    pub fn give_back(&self, counted: Counted, caller: impl Hash, quota: Quota) {
        self.with(counted, caller, |bucket| quota.give_back(bucket));
    }

    /// Takes one request of `caller`, and returns the time that the caller has to wait, at most `delay_max`:
    /// [`Quota::pace`].
    pub fn pace(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        delay_max: Duration,
        now: Duration,
    ) -> Duration {
        let delay = self.with(counted, caller, |bucket| quota.pace(bucket, micros(delay_max), micros(now)));
        Duration::from_micros(delay.unwrap_or_default())
    }

    /// Uses up the quota of `caller` for `span`: [`Quota::exhaust`]. Returns the time until the next request
    /// is free; `None` if quotas are off.
    pub fn exhaust(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        span: Duration,
        now: Duration,
    ) -> Option<Duration> {
        self.with(counted, caller, |bucket| {
            Duration::from_micros(quota.exhaust(bucket, micros(span), micros(now)))
        })
    }

    /// The status of `caller`. Takes no request. `None` if quotas are off.
    pub fn peek(
        &self,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
        now: Duration,
    ) -> Option<QuotaStatus> {
        let bucket = self.enforced.then(|| self.tables[counted as usize].get(self.key(caller)))?;
        Some(bucket.map_or(quota.untouched(), |full_at| quota.peek(full_at, micros(now))))
    }

    /// The status of a caller without a quota: all requests are left. `None` if quotas are off.
    pub fn untouched(&self, quota: Quota) -> Option<QuotaStatus> {
        self.enforced.then(|| quota.untouched())
    }

    /// Calls `act` with the bucket of a caller. Returns `None` if quotas are off.
    fn with<T>(&self, counted: Counted, caller: impl Hash, act: impl FnOnce(&mut u64) -> T) -> Option<T> {
        self.enforced.then(|| self.tables[counted as usize].with(self.key(caller), act))
    }

    /// A 64-bit keyed hash identifies a caller. It takes eight bytes, and a caller cannot cause a collision
    /// on purpose. Zero is no key.
    fn key(&self, caller: impl Hash) -> u64 {
        self.hasher.hash_one(caller).max(1)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Quota = Quota::per_minute(1);

    #[test]
    fn each_caller_has_a_bucket_of_each_kind() {
        let quotas = Quotas::new(true);
        let refused = |counted, caller: &str| {
            quotas
                .take(counted, caller, ONE, Duration::from_secs(1))
                .is_some_and(|s| s.retry_after_s.is_some())
        };
        assert!(!refused(Counted::Client, "a"));
        assert!(refused(Counted::Client, "a"));
        assert!(!refused(Counted::Client, "b"));
        assert!(!refused(Counted::Token, "a"));
    }

    const TEN: Quota = Quota::per_minute(10);
    const NOW: Duration = Duration::from_secs(1);

    fn is_refused(quotas: &Quotas, counted: Counted, caller: impl Hash, quota: Quota) -> bool {
        quotas.take(counted, caller, quota, NOW).is_some_and(|status| status.retry_after_s.is_some())
    }

    #[test]
    fn the_number_of_buckets_is_bounded_and_nobody_is_refused_for_the_number_of_others() {
        let quotas = Quotas::new(true);
        for caller in 0..BUCKETS_MAX * 4 {
            assert!(!is_refused(&quotas, Counted::SignIns, caller, TEN));
        }
        assert_eq!(quotas.tables[Counted::SignIns as usize].buckets(), BUCKETS_MAX);
        assert!(!is_refused(&quotas, Counted::SignIns, "new", TEN));
        assert_eq!(quotas.pace(Counted::Account, "new", ONE, NOW, NOW), Duration::ZERO);
    }

    #[test]
    fn a_caller_who_used_its_quota_up_is_not_forgotten_for_many_who_did_not() {
        let quotas = Quotas::new(true);
        let guessers = 0..200_u64;
        for guesser in guessers.clone() {
            for tried in 0..11 {
                assert_eq!(is_refused(&quotas, Counted::SignIns, ("guesser", guesser), TEN), tried == 10);
            }
        }
        for caller in 0..BUCKETS_MAX * 4 {
            is_refused(&quotas, Counted::SignIns, caller, TEN);
        }
        for guesser in guessers {
            assert!(is_refused(&quotas, Counted::SignIns, ("guesser", guesser), TEN));
        }
    }

    #[test]
    fn forms_from_a_large_network_take_no_room_of_sign_ins() {
        use std::net::{IpAddr, Ipv6Addr};

        use domain::client_address::AddressBlock;

        let quotas = Quotas::new(true);
        let block = |subnet: u32| {
            let [_, high, middle, low] = subnet.to_be_bytes();
            let (high, low) = (u16::from(high), u16::from_be_bytes([middle, low]));
            let address = Ipv6Addr::new(0x2001, 0xdb8, high, low, 0, 0, 0, 1);
            Some(AddressBlock::from(IpAddr::from(address)))
        };
        for form in [Counted::Registrations, Counted::PasswordResets, Counted::VisitorForms] {
            for subnet in 0..70_000 {
                quotas.take(form, block(subnet), Quota::new(10, 3_600), NOW);
            }
        }
        for kind in [Counted::SignIns, Counted::AddressChecks, Counted::ClientSecrets, Counted::OperatorKeys]
        {
            for subnet in [1, 100_000, 1_000_000] {
                let status = quotas.take(kind, block(subnet), TEN, NOW);
                assert_eq!(status.map(|status| status.remaining), Some(9), "{kind:?}");
            }
        }
    }

    #[test]
    fn without_quotas_there_is_no_status() {
        assert_eq!(Quotas::new(false).take(Counted::Client, "a", ONE, Duration::ZERO), None);
    }
}
