//! Passwords, as Argon2id. The work is heavy on purpose, so it runs beside the event loop, a few at a time.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Clock, Entropy};

/// Passwords that are worked on at once. Each takes 19 MiB and a core for some tens of milliseconds.
const AT_ONCE: usize = 2;
/// Checks that wait for their turn at once, of those who come from a known place and of all others. Together
/// they are done within [`WAIT_MAX`] on any machine that serves people.
const WAITING_MAX: usize = 32;
/// How long a check waits for its turn.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A password was not looked at, because too many others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl Busy {
    /// When to come back, in seconds.
    pub(crate) const RETRY_AFTER_S: u32 = 2;
}

/// What it costs to guess a password, and so what it costs to check one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordCost {
    /// Memory of one guess, in KiB.
    memory_kib: u32,
    /// How often that memory is gone through.
    passes: u32,
}

impl PasswordCost {
    /// Hardly any: for tests, which sign thousands of people in and guard nobody's secrets.
    pub const LEAST: Self = Self { memory_kib: Params::MIN_M_COST, passes: Params::MIN_T_COST };
}

/// 19 MiB, twice: some tens of milliseconds.
impl Default for PasswordCost {
    fn default() -> Self {
        Self { memory_kib: Params::DEFAULT_M_COST, passes: Params::DEFAULT_T_COST }
    }
}

pub(crate) struct Passwords {
    entropy: Entropy,
    clock: Clock,
    cost: PasswordCost,
    at_once: Arc<Semaphore>,
    /// Places of those who wait: strangers, and those who come from a known place. So that any number of
    /// strangers leaves room for the others.
    waiting: [Semaphore; 2],
    /// What an unknown login is checked against, so that it takes as long as a known one.
    nobody: String,
}

impl Passwords {
    pub(crate) fn new(entropy: Entropy, clock: Clock, cost: PasswordCost) -> Self {
        let nobody = hash(&entropy, cost, "nobody has this password");
        let (at_once, waiting) = (Arc::new(Semaphore::new(AT_ONCE)), [WAITING_MAX; 2].map(Semaphore::new));
        Self { entropy, clock, cost, at_once, waiting, nobody }
    }

    /// The form in the store. The operator sets passwords, so there is no limit to the wait.
    pub(crate) async fn hash(&self, password: String) -> String {
        let (entropy, cost) = (self.entropy.clone(), self.cost);
        let permit = self.at_once.clone().acquire_owned().await.ok();
        beside(permit, move || hash(&entropy, cost, &password)).await.unwrap_or_default()
    }

    /// Whether `password` is the one that `stored` was made of; without `stored` it takes as long and is
    /// wrong. `known` says that the account was signed in to from the same place before.
    ///
    /// # Errors
    /// [`Busy`] when too many wait already, or the turn does not come within [`WAIT_MAX`].
    pub(crate) async fn verify(
        &self,
        password: String,
        stored: Option<String>,
        known: bool,
    ) -> Result<bool, Busy> {
        let permit = self.turn(known).await?;
        let exists = stored.is_some();
        let stored = stored.unwrap_or_else(|| self.nobody.clone());
        Ok(beside(Some(permit), move || verify(&password, &stored)).await.unwrap_or(false) && exists)
    }

    async fn turn(&self, known: bool) -> Result<OwnedSemaphorePermit, Busy> {
        if let Ok(permit) = self.at_once.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _place = self.waiting[usize::from(known)].try_acquire().map_err(|_| Busy)?;
        tokio::select! {
            permit = self.at_once.clone().acquire_owned() => permit.map_err(|_| Busy),
            () = self.clock.sleep(WAIT_MAX) => Err(Busy),
        }
    }
}

/// The permit goes with the work, which cannot be stopped: callers that come and go do not add to it.
async fn beside<T: Send + 'static>(
    permit: Option<OwnedSemaphorePermit>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let work = move || {
        let done = work();
        drop(permit);
        done
    };
    tokio::task::spawn_blocking(work).await.ok()
}

fn hash(entropy: &Entropy, cost: PasswordCost, password: &str) -> String {
    let salt: [u8; 16] = entropy.bytes();
    // The parameters are within their bounds and the salt has its length, so there is nothing to go wrong; an
    // empty hash would match no password.
    let params = Params::new(cost.memory_kib, cost.passes, Params::DEFAULT_P_COST, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map(|hash| hash.to_string())
        .unwrap_or_default()
}

fn verify(password: &str, stored: &str) -> bool {
    PasswordHash::new(stored)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    #[tokio::test]
    async fn callers_that_leave_do_not_let_more_work_in() {
        let passwords = Arc::new(Passwords::new(Entropy::seeded(1), Clock::system(), PasswordCost::LEAST));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (start, started) = tokio::sync::oneshot::channel();
        let caller = tokio::spawn({
            let passwords = passwords.clone();
            async move {
                let work = move || {
                    let _ = start.send(());
                    let _ = released.recv();
                };
                let permit = passwords.turn(false).await.ok();
                beside(permit, work).await
            }
        });
        started.await.expect("the work starts");
        caller.abort();
        assert!(caller.await.is_err());
        assert_eq!(passwords.at_once.available_permits(), AT_ONCE - 1);
        drop(release);
        let all = passwords.at_once.acquire_many(AT_ONCE as u32).await;
        assert!(all.is_ok(), "the permit comes back with the end of the work");
    }

    #[tokio::test]
    async fn only_the_right_password_opens() {
        let passwords = Passwords::new(Entropy::seeded(1), Clock::system(), PasswordCost::default());
        let stored = passwords.hash("correct horse".into()).await;
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        let verify = async |password: &str, stored: Option<&str>| {
            passwords.verify(password.to_owned(), stored.map(str::to_owned), false).await
        };
        assert_eq!(verify("correct horse", Some(&stored)).await, Ok(true));
        assert_eq!(verify("wrong horse", Some(&stored)).await, Ok(false));
        assert_eq!(verify("correct horse", Some("")).await, Ok(false));
        assert_eq!(verify("nobody has this password", None).await, Ok(false));
    }

    #[tokio::test]
    async fn few_wait_for_their_turn_and_none_for_long() {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(0));
        let passwords = Arc::new(Passwords::new(Entropy::seeded(1), clock, PasswordCost::LEAST));
        let at_work = [passwords.turn(false).await, passwords.turn(true).await];
        assert!(at_work.iter().all(Result::is_ok));
        let waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| {
                let passwords = passwords.clone();
                tokio::spawn(async move { passwords.turn(false).await.map(drop) })
            })
            .collect();
        while passwords.waiting[0].available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(passwords.turn(false).await.map(drop), Err(Busy), "one too many waits");
        let known = passwords.clone();
        let known = tokio::spawn(async move { known.turn(true).await.map(drop) });
        while passwords.waiting[1].available_permits() == WAITING_MAX {
            tokio::task::yield_now().await;
        }
        hand.advance(WAIT_MAX);
        for each in waiting.into_iter().chain([known]) {
            assert_eq!(each.await.expect("it ends"), Err(Busy), "its time is over");
        }
        assert_eq!(passwords.waiting.each_ref().map(Semaphore::available_permits), [WAITING_MAX; 2]);
        drop(at_work);
        assert!(passwords.turn(false).await.is_ok());
    }
}
