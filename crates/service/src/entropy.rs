//! The only source of randomness.
#![allow(clippy::disallowed_methods, reason = "this is the one place that asks the system for randomness")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A source of random bytes: the system, or a seed that makes a sandbox or a test repeatable. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Entropy(Option<Arc<Seeded>>);

macro_rules! purposes {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// What random bytes are for. With a seed each purpose has a stream of its own, so that a draw in the
        /// background does not change what a request draws.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Purpose {
            $($(#[$doc])* $name),+
        }

        impl Purpose {
            /// All purposes, in the order of their streams.
            const ALL: &[Self] = &[$(Self::$name),+];

            /// The name of the stream.
            const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text),+
                }
            }
        }
    };
}

purposes! {
    /// Operator keys and their ids.
    OperatorKey = "operator-key",
    /// The ids of entries of the audit log.
    Audit = "audit",
    /// The id of a node.
    Node = "node",
    /// Which node gets a session.
    NodeChoice = "node-choice",
    /// Access and refresh tokens.
    Token = "token",
    /// Codes of a sign-in.
    Code = "code",
    /// The cookies of browsers.
    Browser = "browser",
    /// Client secrets and their ids.
    ClientSecret = "client-secret",
    /// Webhooks, their secrets and their ids.
    Webhook = "webhook",
    /// Stream keys.
    StreamKey = "stream-key",
    /// The nonces of sealed texts.
    Nonce = "nonce",
    /// The ids of channels that people register.
    Channel = "channel",
    /// Links of password resets.
    Reset = "reset",
    /// Secrets of one-time codes, and recovery codes.
    TwoFactor = "two-factor",
    /// The ids of messages to the mail hook.
    Mail = "mail",
    /// The salts of passwords.
    Salt = "salt",
    /// Session URLs.
    SessionUrl = "session-url",
    /// The keys of sessions.
    Session = "session",
    /// The ids of Engine.IO sessions.
    Sid = "sid",
    /// The ids of donations and paid subscriptions.
    Event = "event",
    /// The ids of claims.
    Claim = "claim",
    /// The aliases of deleted channels.
    Alias = "alias",
    /// The ids of what people register: organizations, applications, requests to the operator.
    Developer = "developer",
    /// The ids of batches of events.
    Batch = "batch",
    /// Jitter of delays and retries.
    Jitter = "jitter",
    /// The random part of the ids of the requests of a connection.
    Connection = "connection",
    /// The ids of requests, with a seed.
    Request = "request",
    /// The ids of requests of the sandbox API.
    SandboxRequest = "sandbox-request",
    /// The ids that a trigger gives events without one.
    Trigger = "trigger",
    /// Sign-ins at a provider, and the logins of their accounts.
    Upstream = "upstream",
    /// The one-time addresses of a sandbox's console.
    ConsoleLink = "console-link",
}

#[derive(Debug)]
struct Seeded {
    seed: u64,
    start: u64,
    /// The number of draws from each stream, in the order of [`Purpose::ALL`].
    drawn: Box<[AtomicU64]>,
}

/// A seed, and how much was drawn from each of its streams. A source with this state goes on where the other
/// one was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeedState {
    /// The seed.
    pub seed: u64,
    /// The number of the start, counted from 0. Each start of a kept world has streams of its own, because
    /// the ids and tokens of the earlier starts exist.
    #[serde(default)]
    pub start: u64,
    /// The number of draws, by the name of the purpose.
    #[serde(default)]
    pub drawn: BTreeMap<String, u64>,
}

/// Random bytes of the system, read in advance for many small draws, because the system call costs more than
/// the bytes. Each thread has its own pool.
struct Pool {
    bytes: [u8; POOL_BYTES],
    left: usize,
}

/// The number of bytes read from the system at once.
const POOL_BYTES: usize = 256;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], left: 0 }) };
}

impl Pool {
    /// Moves bytes out of the pool. The pool keeps no copy of them.
    fn take(&mut self, bytes: &mut [u8]) {
        if self.left < bytes.len() {
            getrandom::fill(&mut self.bytes).expect("the operating system gives randomness");
            self.left = POOL_BYTES;
        }
        let taken = &mut self.bytes[self.left - bytes.len()..self.left];
        bytes.copy_from_slice(taken);
        taken.fill(0);
        self.left -= bytes.len();
    }
}

impl Seeded {
    /// The next draw from the stream of a purpose.
    fn draw(&self, purpose: Purpose) -> [u8; 32] {
        let number = self.drawn[purpose as usize].fetch_add(1, Ordering::Relaxed);
        let mut hash = Sha256::new();
        hash.update(self.seed.to_le_bytes());
        hash.update(self.start.to_le_bytes());
        hash.update(number.to_le_bytes());
        hash.update(purpose.name());
        hash.finalize().into()
    }
}

impl Entropy {
    /// The system's randomness.
    pub fn system() -> Self {
        Self(None)
    }

    /// The same bytes in every run, for sandboxes and tests. A node of `stagedoor serve` does not start with
    /// it.
    pub fn seeded(seed: u64) -> Self {
        Self::resumed(&SeedState { seed, ..SeedState::default() })
    }

    /// A seeded source that goes on after the draws of `state`.
    pub fn resumed(state: &SeedState) -> Self {
        let SeedState { seed, start, drawn } = state;
        let drawn_before = |purpose: &Purpose| drawn.get(purpose.name()).copied().unwrap_or_default();
        let drawn = Purpose::ALL.iter().map(|purpose| AtomicU64::new(drawn_before(purpose))).collect();
        Self(Some(Arc::new(Seeded { seed: *seed, start: *start, drawn })))
    }

    /// The state of a seeded source; `None` for the system's randomness.
    pub fn seed_state(&self) -> Option<SeedState> {
        let Seeded { seed, start, drawn } = &**self.0.as_ref()?;
        let counts = Purpose::ALL.iter().zip(drawn).map(|(purpose, drawn)| {
            let count = drawn.load(Ordering::Relaxed);
            (purpose.name().to_owned(), count)
        });
        let drawn = counts.filter(|(_, count)| *count > 0).collect();
        Some(SeedState { seed: *seed, start: *start, drawn })
    }

    /// Whether the bytes are the same in every run.
    pub fn is_seeded(&self) -> bool {
        self.0.is_some()
    }

    /// `N` random bytes for a purpose, at most 32.
    ///
    /// # Panics
    /// When the operating system gives no random bytes. Without them nothing is safe.
    pub fn bytes<const N: usize>(&self, purpose: Purpose) -> [u8; N] {
        const { assert!(N <= 32) };
        let mut bytes = [0; N];
        match &self.0 {
            None => POOL.with_borrow_mut(|pool| pool.take(&mut bytes)),
            Some(seeded) => bytes.copy_from_slice(&seeded.draw(purpose)[..N]),
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn equal_seeds_give_equal_bytes_and_draws_differ() {
        let (one, two) = (Entropy::seeded(7), Entropy::seeded(7));
        let (first, second) = (one.bytes::<16>(Purpose::Token), one.bytes::<16>(Purpose::Token));
        assert_eq!((first, second), (two.bytes(Purpose::Token), two.bytes(Purpose::Token)));
        assert_ne!(first, second);
        assert_ne!(first, Entropy::seeded(8).bytes(Purpose::Token));
    }

    #[test]
    fn a_draw_for_one_purpose_does_not_change_those_for_another() {
        let (one, two) = (Entropy::seeded(7), Entropy::seeded(7));
        let jitter = one.bytes::<32>(Purpose::Jitter);
        let token = one.bytes::<32>(Purpose::Token);
        assert_eq!(token, two.bytes(Purpose::Token));
        assert_ne!(jitter, token);
    }

    #[test]
    fn a_resumed_source_goes_on_and_another_start_differs() {
        let source = Entropy::seeded(7);
        let first = source.bytes::<32>(Purpose::Token);
        let state = source.seed_state().expect("it has a seed");
        let resumed = Entropy::resumed(&state);
        assert_eq!(resumed.bytes::<32>(Purpose::Token), source.bytes(Purpose::Token));
        let later = Entropy::resumed(&SeedState { seed: 7, start: 1, ..SeedState::default() });
        assert_ne!(later.bytes(Purpose::Token), first);
        assert_eq!(Entropy::system().seed_state(), None);
    }

    #[test]
    fn every_purpose_has_its_place_and_a_name_of_its_own() {
        let names: HashSet<_> = Purpose::ALL.iter().map(|purpose| purpose.name()).collect();
        assert_eq!(names.len(), Purpose::ALL.len());
        assert!(Purpose::ALL.iter().enumerate().all(|(place, purpose)| *purpose as usize == place));
    }

    #[test]
    fn draws_from_the_system_differ_and_leave_no_copy() {
        let drawn: HashSet<[u8; 16]> = (0..1_000).map(|_| Entropy::system().bytes(Purpose::Token)).collect();
        assert_eq!(drawn.len(), 1_000);
        POOL.with_borrow(|pool| assert_eq!(pool.bytes[pool.left..], [0; POOL_BYTES][pool.left..]));
    }
}
