//! The queue of the password checks: whose turn is next.
//!
//! The callers with the fewest recent tries come first: of an address block, and within it of an account. So
//! a caller that repeats tries, right, wrong or refused, waits behind everybody who does not. A full share is
//! not for who came first, either: a caller with fewer recent tries takes the place of one with more.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::client_address::AddressBlock;
use tokio::sync::oneshot;

use crate::Clock;

/// Maximum number of checks that run at the same time. Each takes 19 MiB and a core for some tens of
/// milliseconds.
const RUNNING_MAX: usize = 2;
/// Maximum number of waiting checks from known places, and of those from unknown places. Common machines
/// finish all of them within [`WAIT_MAX`].
const WAITING_MAX: usize = 32;
/// Maximum number of waiting checks of an address block.
const BLOCK_WAITING_MAX: usize = 4;
/// Maximum number of waiting checks of an account from one address block. Checks from elsewhere do not count:
/// a stranger must not take the places of the owner.
const ACCOUNT_WAITING_MAX: usize = 2;
/// Maximum wait of a check for its turn.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Recent tries are forgotten after this time, at the latest after twice this time.
const RECENT: Duration = Duration::from_secs(600);
/// Maximum number of recent callers of each half of the memory.
const RECENT_MAX: usize = 16_384;

/// A password was not checked, because too many checks run and wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl Busy {
    /// When the caller may retry, in seconds.
    pub(crate) const RETRY_AFTER_S: u32 = 2;
}

/// Who asks for a check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker<'a> {
    /// The operator. Its checks wait as long as it takes.
    Operator,
    /// A person.
    Person {
        /// The login; empty for a new account.
        login: &'a str,
        /// The address.
        block: Option<AddressBlock>,
        /// Whether the person was signed in from there before, or is.
        is_known: bool,
    },
}

/// The hashes under which a caller is counted. The order of the fields is that of the turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keys {
    /// The address block, and the larger network that it is part of.
    blocks: [u64; 2],
    /// The account at this address block.
    account: u64,
}

/// How many recent tries a caller has: of its address block, and of its account there.
type Rank = (u32, u32);

/// Those who wait in one line: the operator, known places or unknown places. The lines take turns.
#[derive(Debug, Default)]
struct Line(Vec<Waiter>);

#[derive(Debug)]
struct Waiter {
    keys: Keys,
    /// Without it, the waiter was displaced.
    turn: oneshot::Sender<Permit>,
}

/// The checks that run and wait.
#[derive(Debug)]
pub(super) struct PasswordQueue {
    clock: Clock,
    hasher: RandomState,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    lines: [Line; 3],
    /// The line whose turn is next.
    next_line: usize,
    recent: RecentTries,
}

/// The number of recent tries of each caller, in a newer and an older half. When the newer half is full or
/// old, it replaces the older half.
#[derive(Debug, Default)]
struct RecentTries {
    newer: HashMap<u64, u32>,
    older: HashMap<u64, u32>,
    since: Duration,
}

/// The right to run one check. Dropping it gives the turn to the next caller.
#[derive(Debug)]
pub(super) struct Permit(Arc<PasswordQueue>);

impl PasswordQueue {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self { clock, hasher: RandomState::new(), state: Mutex::default() })
    }

    /// Waits for the turn of a caller.
    ///
    /// # Errors
    /// [`Busy`] when its share of the queue is full, or another caller takes its place, or its turn does not
    /// come within [`WAIT_MAX`].
    pub(super) async fn turn(self: &Arc<Self>, asker: Asker<'_>) -> Result<Permit, Busy> {
        let waiting = match self.enter(asker)? {
            Ok(permit) => return Ok(permit),
            Err(waiting) => waiting,
        };
        if matches!(asker, Asker::Operator) {
            return waiting.await.map_err(|_| Busy);
        }
        tokio::select! {
            permit = waiting => permit.map_err(|_| Busy),
            () = self.clock.sleep(WAIT_MAX) => Err(Busy),
        }
    }

    /// A permit, if one is free. Otherwise a place in the line.
    fn enter(self: &Arc<Self>, asker: Asker<'_>) -> Result<Result<Permit, oneshot::Receiver<Permit>>, Busy> {
        let (line, keys) = self.place(asker);
        let now = self.clock.monotonic();
        let mut state = self.state();
        state.recent.add(keys, now);
        if state.running < RUNNING_MAX {
            state.running += 1;
            return Ok(Ok(Permit(self.clone())));
        }
        let State { lines, recent, .. } = &mut *state;
        let line = &mut lines[line];
        line.0.retain(|waiter| !waiter.turn.is_closed());
        if !matches!(asker, Asker::Operator) {
            line.make_room(keys, |keys| recent.rank(keys))?;
        }
        let (turn, waiting) = oneshot::channel();
        line.0.push(Waiter { keys, turn });
        Ok(Err(waiting))
    }

    /// The line of a caller, and the keys of its counts.
    fn place(&self, asker: Asker<'_>) -> (usize, Keys) {
        match asker {
            Asker::Operator => (0, Keys { blocks: [0; 2], account: 0 }),
            Asker::Person { login, block, is_known } => {
                let network = block.map(AddressBlock::network);
                let blocks = [self.hasher.hash_one(("block", block)), self.hasher.hash_one(network)];
                let account = self.hasher.hash_one((login, block));
                (1 + usize::from(is_known), Keys { blocks, account })
            }
        }
    }

    /// Gives turns while permits are free.
    fn give_turns(self: &Arc<Self>) {
        loop {
            let next = self.state().next();
            let Some(turn) = next else { return };
            // If the caller has left meanwhile, dropping its permit gives the turn to the next one.
            drop(turn.send(Permit(self.clone())));
        }
    }

    #[cfg(test)]
    pub(super) fn running(&self) -> usize {
        self.state().running
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.give_turns();
    }
}

impl State {
    /// Takes the next caller out of its line, if a permit is free.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        if self.running >= RUNNING_MAX {
            return None;
        }
        for _ in 0..self.lines.len() {
            let (line, recent) = (&mut self.lines[self.next_line], &self.recent);
            self.next_line = (self.next_line + 1) % 3;
            line.0.retain(|waiter| !waiter.turn.is_closed());
            // Of several with the same rank, the first one has waited longest.
            let first = line.0.iter().enumerate().min_by_key(|(_, waiter)| recent.rank(waiter.keys));
            if let Some(at) = first.map(|(at, _)| at) {
                self.running += 1;
                return Some(line.0.remove(at).turn);
            }
        }
        None
    }
}

impl Line {
    /// Makes room for a caller within the shares of its account, of its address block and of all. In a full
    /// share the caller displaces the last one with more recent tries.
    fn make_room(&mut self, keys: Keys, rank: impl Fn(Keys) -> Rank) -> Result<(), Busy> {
        if self.0.iter().filter(|waiter| waiter.keys == keys).count() >= ACCOUNT_WAITING_MAX {
            return Err(Busy);
        }
        let of_block = |waiter: &Waiter| waiter.keys.blocks == keys.blocks;
        if self.0.iter().filter(|waiter| of_block(waiter)).count() >= BLOCK_WAITING_MAX {
            return self.displace(keys, of_block, rank);
        }
        if self.0.len() >= WAITING_MAX {
            return self.displace(keys, |_| true, rank);
        }
        Ok(())
    }

    fn displace(
        &mut self,
        keys: Keys,
        of_share: impl Fn(&Waiter) -> bool,
        rank: impl Fn(Keys) -> Rank,
    ) -> Result<(), Busy> {
        let of_share = self.0.iter().enumerate().filter(|(_, waiter)| of_share(waiter));
        let last = of_share.max_by_key(|(_, waiter)| rank(waiter.keys)).map(|(at, waiter)| (at, waiter.keys));
        match last {
            // Dropping the displaced waiter tells it.
            Some((at, last)) if rank(last) > rank(keys) => drop(self.0.remove(at)),
            _ => return Err(Busy),
        }
        Ok(())
    }
}

impl RecentTries {
    fn add(&mut self, Keys { blocks: [block, network], account }: Keys, now: Duration) {
        if self.newer.len() >= RECENT_MAX || now.saturating_sub(self.since) >= RECENT {
            self.older = std::mem::take(&mut self.newer);
            self.since = now;
        }
        for key in [block, network, account] {
            *self.newer.entry(key).or_default() += 1;
        }
    }

    fn count(&self, key: u64) -> u32 {
        let [newer, older] = [&self.newer, &self.older].map(|half| half.get(&key).copied().unwrap_or(0));
        newer.saturating_add(older)
    }

    fn rank(&self, Keys { blocks: [block, network], account }: Keys) -> Rank {
        (self.count(block).max(self.count(network)), self.count(account))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use domain::Timestamp;

    use super::*;

    fn person(login: &str, address: [u8; 4], is_known: bool) -> Asker<'_> {
        Asker::Person { login, block: Some(IpAddr::from(address).into()), is_known }
    }

    type Entered = Result<Result<Permit, oneshot::Receiver<Permit>>, Busy>;

    fn waits(entered: Entered) -> oneshot::Receiver<Permit> {
        entered.expect("a place").expect_err("no permit is free")
    }

    /// A queue whose permits are taken by the operator.
    fn full() -> (Arc<PasswordQueue>, [Permit; RUNNING_MAX]) {
        let queue = PasswordQueue::new(Clock::manual(Timestamp::from_millis(0)).0);
        let permits = [(); RUNNING_MAX].map(|()| queue.enter(Asker::Operator).expect("a place"));
        let permits = permits.map(|permit| permit.expect("a permit is free"));
        (queue, permits)
    }

    #[test]
    fn an_account_has_two_places_and_an_address_four() {
        let (queue, _permits) = full();
        let enter = |login, last| queue.enter(person(login, [192, 0, 2, last], false));
        let _first = [("a", 1), ("a", 1), ("b", 1), ("c", 1)].map(|(login, last)| waits(enter(login, last)));
        assert!(enter("a", 1).is_err());
        // In the full share the account with the most tries gives way.
        let _displacing = waits(enter("d", 1));
        assert_eq!(queue.state().lines[1].0.len(), BLOCK_WAITING_MAX);
        // The owner of an account has places elsewhere, also where the account is known.
        let _elsewhere = [waits(enter("a", 2)), waits(queue.enter(person("a", [192, 0, 2, 1], true)))];
    }

    #[test]
    fn a_caller_who_left_has_no_place() {
        let (queue, _permits) = full();
        let enter = || queue.enter(person("a", [192, 0, 2, 1], false));
        let places = [waits(enter()), waits(enter())];
        assert!(enter().is_err());
        drop(places);
        let _place = waits(enter());
    }

    #[tokio::test]
    async fn the_callers_with_the_fewest_recent_tries_come_first() {
        let (queue, [permit, _other]) = full();
        let enter = |login, last| waits(queue.enter(person(login, [192, 0, 2, last], true)));
        let mut of_one = [enter("a", 1), enter("a", 1), enter("b", 1), enter("c", 1)];
        let mut other = enter("e", 2);
        // The address with the fewest tries first, then its accounts with the fewest.
        drop(permit);
        drop(other.try_recv().expect("an address with one try"));
        drop(of_one[2].try_recv().expect("an account with one try"));
        let mut again = enter("b", 1);
        drop(of_one[3].try_recv().expect("the other account with one try"));
        // Of several with as many tries, who came first.
        drop(of_one[0].try_recv().expect("who came first"));
        drop(of_one[1].try_recv().expect("who came second"));
        assert!(again.try_recv().is_ok());
    }

    #[tokio::test]
    async fn two_hundred_who_repeat_their_tries_do_not_keep_out_one_who_does_not() {
        let (queue, [permit, _other]) = full();
        let mut permit = Some(permit);
        let enter = |login: &str, last| queue.enter(person(login, [198, 51, 100, last], true));
        // Each attacker has had a check, and all of them want another one.
        for last in 0..200 {
            let mut waiting = waits(enter("attacker", last));
            drop(permit.take());
            permit = Some(waiting.try_recv().expect("a turn"));
        }
        let attackers: Vec<_> = (0..200).map(|last| enter("attacker", last)).collect();
        let mut attackers: Vec<_> =
            attackers.into_iter().flatten().map(|turn| turn.expect_err("full")).collect();
        assert_eq!(attackers.len(), WAITING_MAX);
        // New people displace attackers, and come first.
        let mut people: Vec<_> =
            (0..8).map(|last| waits(queue.enter(person("person", [203, 0, 113, last], true)))).collect();
        let is_displaced = |turn: &mut oneshot::Receiver<Permit>| {
            matches!(turn.try_recv(), Err(oneshot::error::TryRecvError::Closed))
        };
        assert_eq!(
            attackers.iter_mut().filter_map(|turn| is_displaced(turn).then_some(())).count(),
            people.len()
        );
        for turn in &mut people {
            drop(permit.take());
            permit = Some(turn.try_recv().expect("the turn of a person"));
        }
        // A refused try counts: who repeats it falls behind.
        let _full: Vec<_> = (0..200).map(|last| enter("attacker", last)).collect();
        assert!(enter("attacker", 1).is_err());
        let rank = |last| {
            let (_, keys) = queue.place(person("attacker", [198, 51, 100, last], true));
            queue.state().recent.rank(keys)
        };
        assert!(rank(1) > rank(2) && rank(2) > rank(200));
        assert!(enter("attacker", 200).is_ok());
    }

    #[tokio::test]
    async fn the_lines_take_turns() {
        let (queue, permits) = full();
        let [first, _other] = permits;
        let mut unknown = [1, 2].map(|last| waits(queue.enter(person("a", [192, 0, 2, last], false))));
        let mut known = [3, 4].map(|last| waits(queue.enter(person("a", [192, 0, 2, last], true))));
        let mut operator = waits(queue.enter(Asker::Operator));
        drop(first);
        let mut order = String::new();
        for _ in 0..5 {
            let lines = [&mut unknown[..], &mut known[..], std::slice::from_mut(&mut operator)];
            for (line, name) in lines.into_iter().zip(["u", "k", "o"]) {
                if let Some(permit) = line.iter_mut().find_map(|turn| turn.try_recv().ok()) {
                    order.push_str(name);
                    drop(permit);
                    break;
                }
            }
        }
        assert_eq!(order.len(), 5, "{order}");
        assert!(order[..3].contains('u') && order[..3].contains('k') && order[..3].contains('o'), "{order}");
    }

    #[tokio::test]
    async fn nobody_waits_longer_than_the_limit() {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(0));
        let queue = PasswordQueue::new(clock);
        let permits = [queue.turn(Asker::Operator).await, queue.turn(Asker::Operator).await];
        let late = tokio::spawn({
            let queue = queue.clone();
            async move { queue.turn(person("a", [192, 0, 2, 1], false)).await.map(drop) }
        });
        while queue.state().lines[1].0.is_empty() {
            tokio::task::yield_now().await;
        }
        hand.advance(WAIT_MAX);
        assert_eq!(late.await.expect("it ends"), Err(Busy));
        drop(permits);
        assert!(queue.turn(person("a", [192, 0, 2, 1], false)).await.is_ok());
    }

    #[test]
    fn recent_tries_are_forgotten() {
        let mut recent = RecentTries::default();
        let keys = |n: u64| Keys { blocks: [n, n + 1], account: n + 2 };
        recent.add(keys(0), Duration::ZERO);
        assert_eq!(recent.rank(keys(0)), (1, 1));
        recent.add(keys(10), RECENT);
        assert_eq!((recent.rank(keys(0)), recent.rank(keys(10))), ((1, 1), (1, 1)));
        recent.add(keys(10), RECENT * 2);
        assert_eq!((recent.rank(keys(0)), recent.rank(keys(10))), ((0, 0), (2, 2)));
        for n in 0..RECENT_MAX as u64 * 2 {
            recent.add(keys(100 + n * 3), RECENT * 2);
        }
        assert!(recent.newer.len() <= RECENT_MAX + 2 && recent.older.len() <= RECENT_MAX + 2);
    }
}
