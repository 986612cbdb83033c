//! Passwords, hashed with Argon2id. Hashing is slow on purpose, so it runs on blocking threads, few hashes
//! at a time.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use domain::password::Password;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Clock, Entropy, Purpose};

/// Maximum number of hashes that run at the same time. Each takes 19 MiB and a core for some tens of
/// milliseconds.
const RUNNING_MAX: usize = 2;
/// Maximum number of waiting checks from known places, and of waiting checks from unknown places. Common
/// machines finish all of them within [`WAIT_MAX`].
const WAITING_MAX: usize = 32;
/// Maximum wait of a check for its permit.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A password was not checked, because too many checks run and wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl Busy {
    /// When the caller may retry, in seconds.
    pub(crate) const RETRY_AFTER_S: u32 = 2;
}

/// The cost of one guess of a password, which is also the cost of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordCost {
    /// Memory of one guess, in KiB.
    memory_kib: u32,
    /// The number of passes over that memory.
    passes: u32,
}

impl PasswordCost {
    /// The lowest cost, for tests, which sign in thousands of people and protect no secrets.
    pub const LEAST: Self = Self { memory_kib: Params::MIN_M_COST, passes: Params::MIN_T_COST };
}

/// Maximum memory of one check of a hash that was made elsewhere, in KiB.
const FOREIGN_MEMORY_KIB_MAX: u32 = 64 * 1024;
/// Maximum number of its passes.
const FOREIGN_PASSES_MAX: u32 = 10;

/// Whether a text is a hash of a password that can be checked at a bounded cost: Argon2id, in PHC form.
pub fn is_password_hash(text: &str) -> bool {
    let Ok(hash) = PasswordHash::new(text) else { return false };
    let is_bounded = |params: Params| {
        params.m_cost() <= FOREIGN_MEMORY_KIB_MAX
            && params.t_cost() <= FOREIGN_PASSES_MAX
            && params.p_cost() == Params::DEFAULT_P_COST
    };
    hash.algorithm.as_str() == Algorithm::Argon2id.as_str()
        && hash.hash.is_some()
        && Params::try_from(&hash).is_ok_and(is_bounded)
}

/// 19 MiB and two passes: some tens of milliseconds.
impl Default for PasswordCost {
    fn default() -> Self {
        Self { memory_kib: Params::DEFAULT_M_COST, passes: Params::DEFAULT_T_COST }
    }
}

pub(crate) struct Passwords {
    entropy: Entropy,
    clock: Clock,
    cost: PasswordCost,
    running: Arc<Semaphore>,
    /// The free places in the queue: first for checks from unknown places, then for checks from known
    /// places. So checks from unknown places leave room for the others.
    waiting: [Semaphore; 2],
    /// A check of an unknown login uses this hash, so that it takes as long as a check of a known login.
    unknown_login_hash: String,
}

impl Passwords {
    pub(crate) fn new(entropy: Entropy, clock: Clock, cost: PasswordCost) -> Self {
        let unknown_login_hash = hash(&entropy, cost, b"no login has this password");
        let (running, waiting) =
            (Arc::new(Semaphore::new(RUNNING_MAX)), [WAITING_MAX; 2].map(Semaphore::new));
        Self { entropy, clock, cost, running, waiting, unknown_login_hash }
    }

    /// The hash of a password that the operator sets. The wait has no limit.
    pub(crate) async fn hash(&self, password: Password) -> String {
        let permit = self.running.clone().acquire_owned().await.ok();
        self.hash_with(permit, password).await
    }

    /// The hash of a password from an unauthenticated caller. It waits like a check from an unknown place.
    ///
    /// # Errors
    /// [`Busy`] when too many checks wait, or no permit is free within [`WAIT_MAX`].
    pub(crate) async fn hash_in_turn(&self, password: Password) -> Result<String, Busy> {
        let permit = self.acquire_permit(false).await?;
        Ok(self.hash_with(Some(permit), password).await)
    }

    async fn hash_with(&self, permit: Option<OwnedSemaphorePermit>, password: Password) -> String {
        let (entropy, cost) = (self.entropy.clone(), self.cost);
        run_blocking(permit, move || hash(&entropy, cost, password.as_bytes())).await.unwrap_or_default()
    }

    /// Whether `stored` is a hash of `password`. Without `stored` the check takes as long and fails. With
    /// `known` the account was signed in to from the same place before.
    ///
    /// # Errors
    /// [`Busy`] when too many checks wait, or no permit is free within [`WAIT_MAX`].
    pub(crate) async fn verify(
        &self,
        password: Password,
        stored: Option<String>,
        known: bool,
    ) -> Result<bool, Busy> {
        let permit = self.acquire_permit(known).await?;
        let exists = stored.is_some();
        let stored = stored.unwrap_or_else(|| self.unknown_login_hash.clone());
        Ok(run_blocking(Some(permit), move || verify(&password, &stored)).await.unwrap_or(false) && exists)
    }

    async fn acquire_permit(&self, known: bool) -> Result<OwnedSemaphorePermit, Busy> {
        if let Ok(permit) = self.running.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _place = self.waiting[usize::from(known)].try_acquire().map_err(|_| Busy)?;
        tokio::select! {
            permit = self.running.clone().acquire_owned() => permit.map_err(|_| Busy),
            () = self.clock.sleep(WAIT_MAX) => Err(Busy),
        }
    }
}

/// Runs work on a blocking thread. The work cannot be stopped, so it keeps the permit until its end, even if
/// its caller leaves.
async fn run_blocking<T: Send + 'static>(
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

fn hash(entropy: &Entropy, cost: PasswordCost, password: &[u8]) -> String {
    let salt: [u8; 16] = entropy.bytes(Purpose::Salt);
    // The parameters are within their bounds and the salt has the right length, so hashing cannot fail. An
    // empty hash would match no password.
    let params = Params::new(cost.memory_kib, cost.passes, Params::DEFAULT_P_COST, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_with_salt(password, &salt)
        .map(|hash| hash.to_string())
        .unwrap_or_default()
}

fn verify(password: &Password, stored: &str) -> bool {
    PasswordHash::new(stored)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;

    fn typed(text: &str) -> Password {
        Password::typed(text).expect("it has a length")
    }

    #[tokio::test]
    async fn work_keeps_its_permit_when_its_caller_leaves() {
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
                let permit = passwords.acquire_permit(false).await.ok();
                run_blocking(permit, work).await
            }
        });
        started.await.expect("the work starts");
        caller.abort();
        assert!(caller.await.is_err());
        assert_eq!(passwords.running.available_permits(), RUNNING_MAX - 1);
        drop(release);
        let all = passwords.running.acquire_many(RUNNING_MAX as u32).await;
        assert!(all.is_ok(), "the end of the work releases the permit");
    }

    #[tokio::test]
    async fn only_the_right_password_matches() {
        let passwords = Passwords::new(Entropy::seeded(1), Clock::system(), PasswordCost::default());
        let stored = passwords.hash(typed("correct horse")).await;
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        let verify = async |password: &str, stored: Option<&str>| {
            passwords.verify(typed(password), stored.map(str::to_owned), false).await
        };
        assert_eq!(verify("correct horse", Some(&stored)).await, Ok(true));
        assert_eq!(verify("wrong horse", Some(&stored)).await, Ok(false));
        assert_eq!(verify("correct horse", Some("")).await, Ok(false));
        assert_eq!(verify("no login has this password", None).await, Ok(false));
    }

    #[test]
    fn a_hash_of_elsewhere_is_checked_at_a_bounded_cost() {
        let salt_and_hash = "c29tZXNhbHRzb21lc2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g";
        let of = |start: &str| is_password_hash(&format!("{start}{salt_and_hash}"));
        assert!(of("$argon2id$v=19$m=19456,t=2,p=1$") && of("$argon2id$v=19$m=8,t=1,p=1$"));
        for start in [
            "$argon2id$v=19$m=1048576,t=2,p=1$",
            "$argon2id$v=19$m=19456,t=1000,p=1$",
            "$argon2id$v=19$m=19456,t=2,p=4$",
            "$argon2d$v=19$m=19456,t=2,p=1$",
            "$2b$12$",
            "",
        ] {
            assert!(!of(start), "{start}");
        }
        assert!(!is_password_hash("$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA"));
    }

    #[tokio::test]
    async fn few_checks_wait_and_none_longer_than_the_limit() {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(0));
        let passwords = Arc::new(Passwords::new(Entropy::seeded(1), clock, PasswordCost::LEAST));
        let permits = [passwords.acquire_permit(false).await, passwords.acquire_permit(true).await];
        assert!(permits.iter().all(Result::is_ok));
        let waiting: Vec<_> = (0..WAITING_MAX)
            .map(|_| {
                let passwords = passwords.clone();
                tokio::spawn(async move { passwords.acquire_permit(false).await.map(drop) })
            })
            .collect();
        while passwords.waiting[0].available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(passwords.acquire_permit(false).await.map(drop), Err(Busy), "the queue is full");
        let known = passwords.clone();
        let known = tokio::spawn(async move { known.acquire_permit(true).await.map(drop) });
        while passwords.waiting[1].available_permits() == WAITING_MAX {
            tokio::task::yield_now().await;
        }
        hand.advance(WAIT_MAX);
        for each in waiting.into_iter().chain([known]) {
            assert_eq!(each.await.expect("it ends"), Err(Busy), "the wait reached its limit");
        }
        assert_eq!(passwords.waiting.each_ref().map(Semaphore::available_permits), [WAITING_MAX; 2]);
        drop(permits);
        assert!(passwords.acquire_permit(false).await.is_ok());
    }
}
