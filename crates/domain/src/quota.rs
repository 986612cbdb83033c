//! Request quotas as token buckets (`docs/spec/limits.md#quotas`).
//!
//! A bucket is one number: the time at which it will be full again (the generic cell rate algorithm). It
//! costs eight bytes and needs no timer. A bucket whose time has passed can be dropped.

/// A number of requests in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Requests allowed in one period, also all at once.
    pub limit: u32,
    /// The period, in seconds.
    pub period_s: u32,
}

/// A caller's quota after a request: the values of the `RateLimit-*` headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaStatus {
    /// `RateLimit-Limit`: requests in a period.
    pub limit: u32,
    /// `RateLimit-Remaining`: requests that would be allowed right now.
    pub remaining: u32,
    /// `RateLimit-Reset`: seconds until the bucket is full, rounded up.
    pub reset_s: u32,
    /// `Retry-After` in seconds (at least 1), if this request was refused.
    pub retry_after_s: Option<u32>,
}

/// How much of each quota an application and its users have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaShare {
    /// Quotas do not hold for it.
    Unlimited,
    /// This part of each quota, in percent: 1 to 100.
    Percent(u8),
}

impl QuotaShare {
    /// The whole quotas.
    pub const FULL: Self = Self::Percent(100);

    /// This part of the quotas; `None` for a percentage outside of 1 to 100.
    pub fn percent(percent: i64) -> Option<Self> {
        u8::try_from(percent).ok().filter(|percent| (1..=100).contains(percent)).map(Self::Percent)
    }

    /// Whether quotas hold.
    pub const fn is_limited(self) -> bool {
        matches!(self, Self::Percent(_))
    }

    /// Whether the quotas are smaller than those of others.
    pub fn is_lowered(self) -> bool {
        self.is_limited() && self != Self::FULL
    }

    /// What is left of a quota, at least one request; `None` where quotas do not hold.
    pub fn of(self, quota: Quota) -> Option<Quota> {
        match self {
            Self::Unlimited => None,
            Self::Percent(percent) => {
                let limit = u64::from(quota.limit) * u64::from(percent) / 100;
                Some(Quota { limit: u32::try_from(limit).unwrap_or(quota.limit).max(1), ..quota })
            }
        }
    }
}

/// The quota that is used up, for the reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaName {
    /// Client-mode calls of an application.
    Client,
    /// User-mode calls of an application for a user.
    User,
    /// Token calls of an application.
    Token,
    /// Failed authentication.
    Failures,
    /// Session URLs of a caller.
    SessionUrls,
    /// Chat messages of a user.
    ChatSend,
    /// Registrations of a network address, its requests for links to a new password, and its sign-ins that
    /// begin at a provider.
    Accounts,
    /// Requests and forms of a person for one page of the studio.
    Studio,
    /// Checks of passwords, right or wrong.
    Passwords,
    /// Requests for pages, and forms, of a person, or of a network address where nobody is signed in.
    Pages,
    /// Searches of a network address in the documentation.
    Search,
    /// Requests of a network address without a known caller.
    Address,
}

impl QuotaName {
    /// Every quota.
    pub const ALL: [Self; 12] = [
        Self::Client,
        Self::User,
        Self::Token,
        Self::Failures,
        Self::SessionUrls,
        Self::ChatSend,
        Self::Accounts,
        Self::Studio,
        Self::Passwords,
        Self::Pages,
        Self::Search,
        Self::Address,
    ];

    /// The value of `name` in a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::User => "user",
            Self::Token => "token",
            Self::Failures => "failures",
            Self::SessionUrls => "session-urls",
            Self::ChatSend => "chat-send",
            Self::Accounts => "accounts",
            Self::Studio => "studio",
            Self::Passwords => "passwords",
            Self::Pages => "pages",
            Self::Search => "search",
            Self::Address => "address",
        }
    }
}

impl Quota {
    /// `limit` requests in `period_s` seconds.
    pub const fn new(limit: u32, period_s: u32) -> Self {
        Self { limit, period_s }
    }

    /// `limit` requests a minute.
    pub const fn per_minute(limit: u32) -> Self {
        Self::new(limit, 60)
    }

    /// The status of a caller without any request so far.
    pub const fn untouched(self) -> QuotaStatus {
        QuotaStatus { limit: self.limit, remaining: self.limit, reset_s: 0, retry_after_s: None }
    }

    /// Takes one request out of the bucket, if there is one. `full_at_us` is the bucket; both times are
    /// microseconds of one monotonic clock.
    pub fn take(self, full_at_us: &mut u64, now_us: u64) -> QuotaStatus {
        let (step, burst) = self.step_and_burst();
        let after = (*full_at_us).max(now_us) + step;
        let ahead = after - now_us;
        if ahead > burst {
            return self.status(ahead - step, Some(ahead - burst));
        }
        *full_at_us = after;
        self.status(ahead, None)
    }

    /// Gives back one request.
    pub fn give_back(self, full_at_us: &mut u64) {
        *full_at_us = full_at_us.saturating_sub(self.step_and_burst().0);
    }

    /// Empties the bucket, and keeps it empty for `span_us`, at least until one request is free again.
    /// Returns the time until then.
    pub fn exhaust(self, full_at_us: &mut u64, span_us: u64, now_us: u64) -> u64 {
        let (step, burst) = self.step_and_burst();
        let least = now_us.saturating_add(span_us.max(step)).saturating_add(burst - step);
        *full_at_us = (*full_at_us).max(least);
        (*full_at_us + step).saturating_sub(now_us + burst)
    }

    /// Takes one request out of the bucket even if there is none, and returns its delay: the time until there
    /// is one, at most `delay_max_us`. A request with the maximum delay adds nothing to the delay of later
    /// requests.
    pub fn pace(self, full_at_us: &mut u64, delay_max_us: u64, now_us: u64) -> u64 {
        let (step, burst) = self.step_and_burst();
        *full_at_us = ((*full_at_us).max(now_us) + step).min(now_us + burst + delay_max_us);
        (*full_at_us - now_us).saturating_sub(burst)
    }

    /// The status of the caller. Takes nothing.
    pub fn peek(self, full_at_us: u64, now_us: u64) -> QuotaStatus {
        let (step, burst) = self.step_and_burst();
        let ahead = full_at_us.saturating_sub(now_us);
        self.status(ahead, (ahead + step > burst).then(|| ahead + step - burst))
    }

    /// The cost of one request and the capacity of a bucket, in microseconds.
    fn step_and_burst(self) -> (u64, u64) {
        let step = u64::from(self.period_s) * 1_000_000 / u64::from(self.limit.max(1));
        (step, step * u64::from(self.limit))
    }

    fn status(self, ahead_us: u64, over_us: Option<u64>) -> QuotaStatus {
        let (step, burst) = self.step_and_burst();
        let seconds_up = |us: u64| u32::try_from(us.div_ceil(1_000_000)).unwrap_or(u32::MAX);
        QuotaStatus {
            limit: self.limit,
            remaining: u32::try_from(burst.saturating_sub(ahead_us) / step).unwrap_or(self.limit),
            reset_s: seconds_up(ahead_us),
            retry_after_s: over_us.map(|us| seconds_up(us).max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_bucket_lets_its_limit_through_then_refuses_then_refills() {
        let quota = Quota::new(20, 30);
        let mut bucket = 0;
        let now = 100 * SECOND;
        for taken in 1..=20 {
            let status = quota.take(&mut bucket, now);
            assert_eq!((status.remaining, status.retry_after_s), (20 - taken, None));
        }
        let refused = quota.take(&mut bucket, now);
        assert_eq!(refused, QuotaStatus { limit: 20, remaining: 0, reset_s: 30, retry_after_s: Some(2) });
        assert_eq!(quota.take(&mut bucket, now + SECOND).retry_after_s, Some(1));
        assert_eq!(quota.take(&mut bucket, now + 3 * SECOND / 2).retry_after_s, None);
        assert_eq!(quota.take(&mut bucket, now + 600 * SECOND).remaining, 19);
    }

    #[test]
    fn a_request_given_back_can_be_taken_again() {
        let quota = Quota::per_minute(2);
        let mut bucket = 0;
        assert_eq!(quota.take(&mut bucket, SECOND).remaining, 1);
        quota.give_back(&mut bucket);
        assert_eq!(quota.peek(bucket, SECOND), quota.untouched());
        // The bucket never holds more than its capacity.
        quota.give_back(&mut bucket);
        assert_eq!(quota.take(&mut bucket, SECOND).remaining, 1);
    }

    #[test]
    fn pacing_delays_more_and_more_and_refuses_nothing() {
        let (quota, mut bucket) = (Quota::per_minute(2), 0);
        let mut delay = |now_s: u64| quota.pace(&mut bucket, 70 * SECOND, now_s * SECOND) / SECOND;
        assert_eq!([delay(1), delay(1)], [0, 0]);
        assert_eq!([delay(1), delay(1), delay(1), delay(1)], [30, 60, 70, 70]);
        // The maximum delay added nothing: 70 s later the bucket is as empty as at the start.
        assert_eq!(delay(71), 30);
        assert_eq!(delay(1_000), 0);
    }

    #[test]
    fn an_exhausted_bucket_stays_empty_for_a_while() {
        let (quota, mut bucket) = (Quota::per_minute(60), 0);
        let now = 100 * SECOND;
        assert_eq!(quota.exhaust(&mut bucket, 0, now), SECOND);
        assert_eq!(quota.take(&mut bucket, now).retry_after_s, Some(1));
        assert_eq!(quota.exhaust(&mut bucket, 10 * SECOND, now), 10 * SECOND);
        // A shorter span does not fill it.
        assert_eq!(quota.exhaust(&mut bucket, 5 * SECOND, now), 10 * SECOND);
        assert_eq!(quota.take(&mut bucket, now + 9 * SECOND).retry_after_s, Some(1));
        let taken = quota.take(&mut bucket, now + 10 * SECOND);
        assert_eq!((taken.retry_after_s, taken.remaining), (None, 0));
    }

    #[test]
    fn a_share_is_a_part_of_a_quota_and_never_nothing() {
        let quota = Quota::new(20, 30);
        for (percent, limit) in [(100, 20), (50, 10), (12, 2), (1, 1)] {
            let share = QuotaShare::percent(percent).expect("a share");
            assert_eq!(share.of(quota), Some(Quota::new(limit, 30)), "{percent}");
            assert!(share.is_limited() && share.is_lowered() == (percent < 100));
        }
        assert_eq!(QuotaShare::Unlimited.of(quota), None);
        for percent in [-1, 0, 101, 256 + 50] {
            assert_eq!(QuotaShare::percent(percent), None, "{percent}");
        }
    }

    #[test]
    fn peeking_takes_nothing() {
        let quota = Quota::per_minute(1);
        let mut bucket = 0;
        assert_eq!(quota.peek(bucket, SECOND).retry_after_s, None);
        quota.take(&mut bucket, SECOND);
        assert_eq!(quota.peek(bucket, SECOND).retry_after_s, Some(60));
        assert_eq!(quota.peek(bucket, 61 * SECOND).retry_after_s, None);
    }
}
