//! Keys of operators, accounts and users, and the JWTs that they sign, for tests.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::credentials::{PREFIX_SEED, PREFIX_USER, SEED_BYTES, with_checksum};

/// Whose key it is.
#[derive(Clone, Copy, Debug)]
pub enum TestKind {
    /// It signs accounts.
    Operator,
    /// It signs users.
    Account,
    /// It signs in.
    User,
}

/// A key with a seed of one repeated byte.
pub struct TestKey {
    kind: TestKind,
    seed: [u8; SEED_BYTES],
    pair: Ed25519KeyPair,
}

impl TestKey {
    /// A key.
    ///
    /// # Panics
    /// Never: every 32 bytes are a seed.
    pub fn new(kind: TestKind, byte: u8) -> Self {
        let seed = [byte; SEED_BYTES];
        Self { kind, seed, pair: Ed25519KeyPair::from_seed_unchecked(&seed).expect("a seed") }
    }

    fn prefix(&self) -> u8 {
        match self.kind {
            TestKind::Operator => 14 << 3,
            TestKind::Account => 0,
            TestKind::User => PREFIX_USER,
        }
    }

    /// The text of the seed.
    pub fn seed(&self) -> String {
        let prefix = self.prefix();
        with_checksum([&[PREFIX_SEED | (prefix >> 5), (prefix & 31) << 3], self.seed.as_slice()].concat())
    }

    /// The text of the public key.
    pub fn public(&self) -> String {
        with_checksum([&[self.prefix()], self.pair.public_key().as_ref()].concat())
    }

    /// A JWT about a key, signed by this one.
    pub fn sign(&self, about: &Self, what: Value) -> String {
        let claims = json!({
            "jti": "test", "iat": 1_700_000_000, "name": "test", "iss": self.public(), "sub": about.public(),
            "nats": what,
        });
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(json!({ "typ": "JWT", "alg": "ed25519-nkey" })), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.pair.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}
