//! Encrypts secrets that must be shown again (stream keys, webhook secrets) with a key from the
//! configuration, so that a copy of the database reveals none of them (`docs/spec/authorization.md#at-rest`).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::cursor::CursorKey;

/// Length of the nonce at the beginning of a sealed text, in bytes.
const NONCE_BYTES: usize = 24;

/// The key of the service, the same on every node. Other keys are derived from it here.
#[derive(Clone)]
pub struct ServiceKey([u8; 32]);

impl ServiceKey {
    /// A key of 256 bits.
    pub const fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Derives the key from a text of the configuration. The text must be hard to guess: its entropy is the
    /// key's.
    pub fn of_text(text: &str) -> Self {
        Self(Sha256::digest(format!("stagedoor service key {text}")).into())
    }

    /// The key of cursors.
    pub fn cursors(&self) -> CursorKey {
        CursorKey::new(self.derive("cursors"))
    }

    /// Seals a secret. `subject` names its owner and must be the same when it is opened, so that sealed texts
    /// cannot be exchanged for each other.
    pub fn seal(&self, subject: &str, secret: &str, nonce: [u8; NONCE_BYTES]) -> String {
        let payload = Payload { msg: secret.as_bytes(), aad: subject.as_bytes() };
        // The cipher fails only for texts of 256 GiB.
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload).unwrap_or_default();
        URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat())
    }

    /// Opens a sealed secret; `None` when it was sealed with another key or for another subject, or was
    /// changed.
    pub fn open(&self, subject: &str, sealed: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        let payload = Payload { msg: sealed, aad: subject.as_bytes() };
        String::from_utf8(self.cipher().decrypt(&XNonce::from(nonce), payload).ok()?).ok()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(self.derive("seals")))
    }

    fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut mac =
            <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }
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
}
