//! Engine.IO session ids. All requests of a polling client carry the same one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use service::{Entropy, Purpose};

use crate::config::SID_BYTES;

/// Characters of a session id: base64url of its bytes.
const SID_CHARS: usize = SID_BYTES / 3 * 4;

/// 120 random bits. The id identifies a session; the URL token in the same query proves that the client may
/// use it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sid([u8; SID_CHARS]);

impl Sid {
    pub(crate) fn generate(entropy: &Entropy) -> Self {
        let mut text = [b'A'; SID_CHARS];
        // The array has the length of the encoded text, so the encoding cannot fail.
        let _ = URL_SAFE_NO_PAD.encode_slice(entropy.bytes::<SID_BYTES>(Purpose::Sid), &mut text);
        Self(text)
    }

    /// The id that a client presented; `None` when it cannot be an id of this server.
    pub(crate) fn presented(text: &str) -> Option<Self> {
        let is_base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let bytes: [u8; SID_CHARS] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(is_base64url).then_some(Self(bytes))
    }

    pub(crate) fn as_str(&self) -> &str {
        // The bytes are base64url, which is ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl std::fmt::Debug for Sid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_parse_from_their_text() {
        let entropy = Entropy::seeded(1);
        let (one, two) = (Sid::generate(&entropy), Sid::generate(&entropy));
        assert!(one != two && one.as_str().len() == 20);
        assert!(Sid::presented(one.as_str()) == Some(one));
        for wrong in ["", "x", &"가".repeat(7), &one.as_str().replace(&one.as_str()[..1], "?")] {
            assert!(Sid::presented(wrong).is_none(), "{wrong}");
        }
    }
}
