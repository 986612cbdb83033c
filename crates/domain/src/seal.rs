//! Encrypts secrets that must be shown again (stream keys, webhook secrets) with a key from the
//! configuration, so that a copy of the database reveals none of them (`docs/spec/authorization.md#at-rest`).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::StoreId;
use crate::cursor::CursorKey;

/// Length of the nonce at the beginning of a sealed text, in bytes.
const NONCE_BYTES: usize = 24;

/// The key of the service, the same on every node. Other keys are derived from it here. While the key is
/// changed, another one opens too.
#[derive(Clone)]
pub struct ServiceKey {
    /// Seals, and opens.
    key: [u8; 32],
    /// Opens only.
    other: Option<[u8; 32]>,
    /// Whether the next start has it too.
    is_kept: bool,
}

/// Which key opens a sealed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// The key of the service.
    Own,
    /// The other key.
    Other,
}

/// What becomes of a sealed text while the service key is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It opens with the key of the service.
    Current,
    /// It opened with the other key. This is sealed with the key of the service.
    Renewed(String),
    /// No key opens it.
    Lost,
}

impl ServiceKey {
    /// A key of 256 bits.
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key, other: None, is_kept: true }
    }

    /// A key that ends with the process, because the configuration has none.
    pub const fn unkept(key: [u8; 32]) -> Self {
        Self { key, other: None, is_kept: false }
    }

    /// Whether the next start has the key too.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Derives the key from a text of the configuration. The text must be hard to guess: its entropy is the
    /// key's.
    pub fn of_text(text: &str) -> Self {
        Self::new(Sha256::digest(format!("stagedoor service key {text}")).into())
    }

    /// The same key, which also opens what another one has sealed.
    #[must_use]
    pub fn beside(self, other: &Self) -> Self {
        Self { other: Some(other.key), ..self }
    }

    /// Whether another key opens too.
    pub fn has_other(&self) -> bool {
        self.other.is_some()
    }

    /// The key of cursors.
    pub fn cursors(&self) -> CursorKey {
        let cursors = |key: &[u8; 32]| CursorKey::new(derive(key, "cursors"));
        let own = cursors(&self.key);
        match &self.other {
            Some(other) => own.beside(&cursors(other)),
            None => own,
        }
    }

    /// Seals a secret. `subject` names its owner and must be the same when it is opened, so that sealed texts
    /// cannot be exchanged for each other.
    pub fn seal(&self, subject: &str, secret: &str, nonce: [u8; NONCE_BYTES]) -> String {
        let payload = Payload { msg: secret.as_bytes(), aad: subject.as_bytes() };
        // The cipher fails only for texts of 256 GiB.
        let sealed = cipher(&self.key).encrypt(&XNonce::from(nonce), payload).unwrap_or_default();
        URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat())
    }

    /// Opens a sealed secret; `None` when it was sealed with another key or for another subject, or was
    /// changed.
    pub fn open(&self, subject: &str, sealed: &str) -> Option<String> {
        let opened = open_with(&self.key, subject, sealed);
        opened.or_else(|| self.other.as_ref().and_then(|other| open_with(other, subject, sealed)))
    }

    /// Seals again what the other key has sealed.
    pub fn renew(&self, subject: &str, sealed: &str, nonce: [u8; NONCE_BYTES]) -> Renewal {
        if open_with(&self.key, subject, sealed).is_some() {
            return Renewal::Current;
        }
        match self.open(subject, sealed) {
            Some(secret) => Renewal::Renewed(self.seal(subject, &secret, nonce)),
            None => Renewal::Lost,
        }
    }

    /// The key that opens a sealed text.
    pub fn opener(&self, subject: &str, sealed: &str) -> Option<Opener> {
        let is_own = open_with(&self.key, subject, sealed).is_some();
        let opened = || self.open(subject, sealed).map(|_| Opener::Other);
        if is_own { Some(Opener::Own) } else { opened() }
    }

    /// A value for a store, by which a start with another key is noticed. `by` seals it: the other key where
    /// there is one and the store's secrets are still sealed with it.
    pub fn test(&self, store: &StoreId, by: Opener) -> String {
        let key = match by {
            Opener::Own => self.key,
            Opener::Other => self.other.unwrap_or(self.key),
        };
        // A key seals one value with this nonce, so nothing has to be drawn.
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&Sha256::digest(test_subject(store))[..NONCE_BYTES]);
        Self::new(key).seal(&test_subject(store), store.as_str(), nonce)
    }

    /// The key that has sealed the [`test`](Self::test) of a store; `None` if the secrets of the store are
    /// sealed with another one.
    pub fn opens_test(&self, store: &StoreId, test: &str) -> Option<Opener> {
        self.opener(&test_subject(store), test)
    }
}

fn test_subject(store: &StoreId) -> String {
    format!("service key of the store {store}")
}

fn open_with(key: &[u8; 32], subject: &str, sealed: &str) -> Option<String> {
    let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
    let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
    let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
    let payload = Payload { msg: sealed, aad: subject.as_bytes() };
    String::from_utf8(cipher(key).decrypt(&XNonce::from(nonce), payload).ok()?).ok()
}

fn cipher(key: &[u8; 32]) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(derive(key, "seals")))
}

fn derive(key: &[u8; 32], purpose: &str) -> [u8; 32] {
    let mut mac =
        <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(purpose.as_bytes());
    mac.finalize().into_bytes().into()
}

impl std::fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_secret_opens_for_its_subject_only() {
        let key = ServiceKey::new([1; 32]);
        let sealed = key.seal("stream key of a", "비밀", [7; 24]);
        assert!(!sealed.contains("비밀"));
        assert_eq!(key.open("stream key of a", &sealed).as_deref(), Some("비밀"));
        assert_eq!(key.open("stream key of b", &sealed), None);
        assert_eq!(ServiceKey::new([2; 32]).open("stream key of a", &sealed), None);
        assert_eq!(key.open("stream key of a", &sealed[1..]), None);
        assert_eq!(key.open("stream key of a", ""), None);
    }

    #[test]
    fn the_test_of_a_store_says_which_key_its_secrets_need() {
        let [a, b, c] = [1, 2, 3].map(|byte| ServiceKey::new([byte; 32]));
        let [store, other] = ["one", "two"].map(|id| StoreId::stored(id.to_owned()));
        let (before, after) = (a.clone().beside(&b), b.clone().beside(&a));
        let test = before.test(&store, Opener::Own);
        let openers = |test: &str| [&a, &before, &after, &b, &c].map(|key| key.opens_test(&store, test));
        assert_eq!(openers(&test), [Some(Opener::Own), Some(Opener::Own), Some(Opener::Other), None, None]);
        assert_eq!(a.opens_test(&other, &test), None, "a test is for one store");
        let still = after.test(&store, Opener::Other);
        assert_eq!(openers(&still), openers(&test));
        let next = after.test(&store, Opener::Own);
        assert_eq!(openers(&next), [None, Some(Opener::Other), Some(Opener::Own), Some(Opener::Own), None]);
        assert!(a.is_kept() && after.is_kept() && !ServiceKey::unkept([1; 32]).is_kept());
    }

    #[test]
    fn what_the_other_key_has_sealed_opens_and_is_sealed_again() {
        let (old, new) = (ServiceKey::new([1; 32]), ServiceKey::new([2; 32]));
        let both = new.clone().beside(&old);
        let sealed = old.seal("a", "비밀", [7; 24]);
        assert_eq!(both.open("a", &sealed).as_deref(), Some("비밀"));
        assert_eq!(both.open("b", &sealed), None);
        let Renewal::Renewed(again) = both.renew("a", &sealed, [8; 24]) else { panic!("the other key's") };
        assert_eq!((new.open("a", &again).as_deref(), old.open("a", &again)), (Some("비밀"), None));
        assert_eq!(both.renew("a", &again, [9; 24]), Renewal::Current);
        assert_eq!(both.renew("b", &sealed, [9; 24]), Renewal::Lost);
        assert_eq!(new.renew("a", &sealed, [9; 24]), Renewal::Lost);
        let cursor = old.cursors().seal("list", "17");
        assert_eq!(both.cursors().open("next", "list", &cursor).ok().as_deref(), Some("17"));
        assert!(new.cursors().open("next", "list", &cursor).is_err());
        assert!(old.cursors().open("next", "list", &both.cursors().seal("list", "17")).is_err());
    }
}
