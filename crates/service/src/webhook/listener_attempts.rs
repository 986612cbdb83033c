//! The attempts that a sandbox's node has taken for listeners, in memory: those that wait for their time,
//! and those whose result is not reported yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::limits::WEBHOOK_LEASE_MS;
use domain::{DeliveryId, WebhookId};

use crate::webhook::attempt::Attempt;
use crate::webhook::attempt_faults::AttemptFault;

/// How long a message is leased to a listener.
pub(crate) const LEASE: Duration = Duration::from_millis(WEBHOOK_LEASE_MS.unsigned_abs());
/// A listener that has asked or reported within this time is there. A waiting one is seen more often.
const PRESENT_FOR: Duration = Duration::from_secs(2);
/// How long an attempt is known after its lease, so that the record of its end names its rule.
const KEPT_AFTER_LEASE: Duration = Duration::from_secs(60);
/// Maximum number of known attempts.
const KNOWN_MAX: usize = 10_000;

/// An attempt that was taken for a listener.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// The attempt as the listener gets it.
    pub attempt: Attempt,
    /// The rule that changed it, and how.
    pub fault: Option<(String, AttemptFault)>,
    /// When the listener may have it; `None` once it does. The times are those of the monotonic clock.
    pub held_until: Option<Duration>,
    /// When its lease ends.
    pub leased_until: Duration,
    /// Whether it is the second one of [`AttemptFault::Duplicate`].
    pub is_copy: bool,
}

/// The attempts that are known, and the listeners that are there.
#[derive(Debug, Default)]
pub(crate) struct ListenerAttempts(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    taken: Vec<Taken>,
    seen: BTreeMap<WebhookId, Duration>,
}

impl ListenerAttempts {
    /// A listener of this webhook has asked or reported.
    pub fn note_seen(&self, webhook_id: &WebhookId, now: Duration) {
        self.known().seen.insert(webhook_id.clone(), now);
    }

    /// The webhooks whose listeners are there.
    pub fn present(&self, now: Duration) -> Vec<WebhookId> {
        let mut known = self.known();
        known.seen.retain(|_, seen| now < *seen + PRESENT_FOR);
        known.seen.keys().cloned().collect()
    }

    /// Keeps an attempt.
    pub fn keep(&self, taken: Taken, now: Duration) {
        let mut known = self.known();
        known.taken.retain(|taken| now < taken.leased_until + KEPT_AFTER_LEASE);
        if known.taken.len() >= KNOWN_MAX {
            known.taken.remove(0);
        }
        known.taken.push(taken);
    }

    /// Up to `limit` attempts whose time has come, for the listener of this webhook.
    pub fn ready(&self, webhook_id: &WebhookId, limit: i64, now: Duration) -> Vec<Attempt> {
        let mut known = self.known();
        let is_ready = |taken: &&mut Taken| {
            let time_has_come = taken.held_until.is_some_and(|held_until| held_until <= now);
            time_has_come && now < taken.leased_until && taken.attempt.key.webhook_id == *webhook_id
        };
        let ready = known.taken.iter_mut().filter(is_ready).take(usize::try_from(limit).unwrap_or(0));
        let handed_out = ready.map(|taken| {
            taken.held_until = None;
            taken.attempt.clone()
        });
        handed_out.collect()
    }

    /// How long it takes until the next attempt may be handed out.
    pub fn next_ready_in(&self, now: Duration) -> Option<Duration> {
        let known = self.known();
        let held = known.taken.iter().filter(|taken| now < taken.leased_until);
        held.filter_map(|taken| taken.held_until).map(|held_until| held_until.saturating_sub(now)).min()
    }

    /// Whether the listener of this webhook has an attempt, or will get one that is held back.
    pub fn is_busy(&self, webhook_id: &WebhookId, now: Duration) -> bool {
        let known = self.known();
        known
            .taken
            .iter()
            .any(|taken| now < taken.leased_until && taken.attempt.key.webhook_id == *webhook_id)
    }

    /// Ends the attempt of this number that the listener has.
    pub fn end(&self, webhook_id: &WebhookId, message_id: &DeliveryId, number: i64) -> Option<Taken> {
        let mut known = self.known();
        let place = known.taken.iter().position(|taken| {
            let key = &taken.attempt.key;
            let is_it = key.webhook_id == *webhook_id && key.message_id == *message_id;
            is_it && key.number == number && taken.held_until.is_none()
        })?;
        Some(known.taken.remove(place))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
