//! Passwords, hashed with Argon2id. Hashing is slow on purpose, so it runs on blocking threads, few hashes
//! at a time.

use std::sync::Arc;

use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use domain::password::Password;

use crate::identity::password_queue::{Asker, Busy, PasswordQueue, Permit};
use crate::{Clock, Entropy, Purpose};

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
    cost: PasswordCost,
    queue: Arc<PasswordQueue>,
    /// A check of an unknown login uses this hash, so that it takes as long as a check of a known login.
    unknown_login_hash: String,
}

impl Passwords {
    pub(crate) fn new(entropy: Entropy, clock: Clock, cost: PasswordCost) -> Self {
        let unknown_login_hash = hash(&entropy, cost, b"no login has this password");
        Self { entropy, cost, queue: PasswordQueue::new(clock), unknown_login_hash }
    }

    /// The hash of a password.
    ///
    /// # Errors
    /// [`Busy`], never for the operator.
    pub(crate) async fn hash(&self, password: Password, asker: Asker<'_>) -> Result<String, Busy> {
        let permit = self.queue.turn(asker).await?;
        let (entropy, cost) = (self.entropy.clone(), self.cost);
        let hash = run_blocking(permit, move || hash(&entropy, cost, password.as_bytes())).await;
        Ok(hash.unwrap_or_default())
    }

    /// Whether `stored` is a hash of `password`. Without `stored` the check takes as long and fails.
    ///
    /// # Errors
    /// [`Busy`], never for the operator.
    pub(crate) async fn verify(
        &self,
        password: Password,
        stored: Option<String>,
        asker: Asker<'_>,
    ) -> Result<bool, Busy> {
        let permit = self.queue.turn(asker).await?;
        let exists = stored.is_some();
        let stored = stored.unwrap_or_else(|| self.unknown_login_hash.clone());
        Ok(run_blocking(permit, move || verify(&password, &stored)).await.unwrap_or(false) && exists)
    }
}

/// Runs work on a blocking thread. The work cannot be stopped, so it keeps the permit until its end, even if
/// its caller leaves.
async fn run_blocking<T: Send + 'static>(
    permit: Permit,
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
    use super::*;

    fn typed(text: &str) -> Password {
        Password::typed(text).expect("it has a length")
    }

    #[tokio::test]
    async fn work_keeps_its_permit_when_its_caller_leaves() {
        let queue = PasswordQueue::new(Clock::system());
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (start, started) = tokio::sync::oneshot::channel();
        let caller = tokio::spawn({
            let queue = queue.clone();
            async move {
                let work = move || {
                    let _ = start.send(());
                    let _ = released.recv();
                };
                let permit = queue.turn(Asker::Operator).await.expect("the operator has a turn");
                run_blocking(permit, work).await
            }
        });
        started.await.expect("the work starts");
        caller.abort();
        assert!(caller.await.is_err());
        assert_eq!(queue.running(), 1);
        drop(release);
        while queue.running() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn only_the_right_password_matches() {
        let passwords = Passwords::new(Entropy::seeded(1), Clock::system(), PasswordCost::default());
        let stored = passwords.hash(typed("correct horse"), Asker::Operator).await.expect("a turn");
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        let verify = async |password: &str, stored: Option<&str>| {
            passwords.verify(typed(password), stored.map(str::to_owned), Asker::Operator).await
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
}
