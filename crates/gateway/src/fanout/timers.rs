//! The deadlines of the members of a shard, rounded to ticks.

use std::collections::BTreeMap;

use socketio::Millis;

use super::index::Slot;
use crate::config::TICK;

/// The number of a tick since the clock began.
pub(super) type Tick = u64;

/// Later than every other tick.
pub(super) const NEVER: Tick = u64::MAX;

/// Slots by the tick at which their deadlines are checked. An entry stays when an earlier one replaces it, so
/// the owner compares the tick.
#[derive(Default)]
pub(super) struct Timers(BTreeMap<Tick, Vec<Slot>>);

impl Timers {
    /// The first tick after `now` at which the deadline has expired.
    pub(super) fn tick_of(deadline: Millis, now: Millis) -> Tick {
        deadline.max(now + 1).div_ceil(TICK.as_millis() as Millis)
    }

    pub(super) fn add(&mut self, tick: Tick, slot: Slot) {
        self.0.entry(tick).or_default().push(slot);
    }

    /// Removes the first expired tick, with its slots.
    pub(super) fn pop_expired(&mut self, now: Millis) -> Option<(Tick, Vec<Slot>)> {
        let entry = self.0.first_entry()?;
        let is_expired = *entry.key() * TICK.as_millis() as Millis <= now;
        is_expired.then(|| entry.remove_entry())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_expire_at_the_next_tick_and_in_order() {
        let mut timers = Timers::default();
        for (slot, deadline) in [(1, 2_500), (2, 1_000), (3, 900), (4, 0)] {
            timers.add(Timers::tick_of(deadline, 100), slot);
        }
        assert_eq!(timers.pop_expired(999), None);
        assert_eq!(timers.pop_expired(1_000), Some((1, vec![2, 3, 4])));
        assert_eq!(timers.pop_expired(2_999), None);
        assert_eq!(timers.pop_expired(9_000), Some((3, vec![1])));
        assert_eq!(timers.pop_expired(9_000), None);
    }
}
