//! Cursors: opaque to callers, and valid only for the list, the caller and the filters of their page
//! (`docs/spec/rest.md#lists`).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{Invalid, Rule};

/// Length of the authentication code at the beginning of a cursor, in bytes.
const PROOF_BYTES: usize = 16;
/// Maximum length of a cursor, in characters.
const CURSOR_CHARS_MAX: usize = 1_024;

/// Creates and checks cursors. Every node of a service has the same key.
#[derive(Clone)]
pub struct CursorKey {
    /// Makes cursors, and opens them.
    key: [u8; 32],
    /// Opens only, while the service key is changed.
    other: Option<[u8; 32]>,
}

impl CursorKey {
    /// A key of 256 bits.
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key, other: None }
    }

    /// The same key, which also opens the cursors of another one.
    #[must_use]
    pub fn beside(self, other: &Self) -> Self {
        Self { other: Some(other.key), ..self }
    }

    /// The cursor for `position` in the list that `context` names: endpoint, caller and filters.
    pub fn seal(&self, context: &str, position: &str) -> String {
        let mut bytes = self.proof(context, position.as_bytes()).to_vec();
        bytes.extend_from_slice(position.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a cursor.
    ///
    /// # Errors
    /// `Invalid` naming `field` if this key did not create the cursor for this context.
    pub fn open(&self, field: &'static str, context: &str, cursor: &str) -> Result<String, Invalid> {
        let wrong = || Invalid::new(field, Rule::Cursor);
        if cursor.len() > CURSOR_CHARS_MAX {
            return Err(wrong());
        }
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
        let (proof, position) = bytes.split_at_checked(PROOF_BYTES).ok_or_else(wrong)?;
        let proves = |key: &[u8; 32]| mac(key, context, position).verify_truncated_left(proof).is_ok();
        if !proves(&self.key) && !self.other.as_ref().is_some_and(proves) {
            return Err(wrong());
        }
        String::from_utf8(position.to_vec()).map_err(|_| wrong())
    }

    fn proof(&self, context: &str, position: &[u8]) -> [u8; PROOF_BYTES] {
        let full = mac(&self.key, context, position).finalize().into_bytes();
        let mut proof = [0; PROOF_BYTES];
        proof.copy_from_slice(&full[..PROOF_BYTES]);
        proof
    }
}

/// The length of the context comes first, so that no byte can move from the context into the position.
fn mac(key: &[u8; 32], context: &str, position: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(&(context.len() as u64).to_be_bytes());
    mac.update(context.as_bytes());
    mac.update(position);
    mac
}

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_valid_in_its_own_context_only() {
        let key = CursorKey::new([1; 32]);
        let cursor = key.seal("lives me", "한글 17");
        let open = |key: &CursorKey, context: &str, cursor: &str| key.open("next", context, cursor).ok();
        assert_eq!(open(&key, "lives me", &cursor).as_deref(), Some("한글 17"));
        assert_eq!(open(&key, "lives you", &cursor), None);
        assert_eq!(open(&key, "lives m", &cursor), None);
        assert_eq!(open(&CursorKey::new([2; 32]), "lives me", &cursor), None);
        for cut in 0..cursor.len() {
            assert_eq!(open(&key, "lives me", &cursor[..cut]), None);
        }
        for at in 0..cursor.len() {
            let mut flipped = cursor.clone().into_bytes();
            flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
            let flipped = String::from_utf8(flipped).expect("ASCII");
            assert_eq!(open(&key, "lives me", &flipped), None, "{at}");
        }
        for text in ["", "!", "=", &"A".repeat(5_000)] {
            assert_eq!(open(&key, "lives me", text), None);
        }
    }
}
