//! Pictures that applications upload: small, and of kinds that run nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::limits::LOGO_BYTES_MAX;
use crate::{Invalid, Rule};

/// The pattern of a picture's address in a schema. It cannot check the bytes.
pub const PICTURE_PATTERN: &str = r"^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/]+={0,2}$";

/// The kinds of pictures, with the bytes that each begins with.
const KINDS: [(&str, &[u8]); 3] =
    [("image/png", b"\x89PNG\r\n\x1a\n"), ("image/jpeg", b"\xff\xd8\xff"), ("image/webp", b"RIFF")];
/// Number of bytes of a hash that name a version.
const VERSION_BYTES: usize = 8;

/// A picture: PNG, JPEG or WebP, of at most [`LOGO_BYTES_MAX`] bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    media_type: &'static str,
    base64: String,
}

impl Picture {
    /// Parses a `data:` address with Base64, as in `data:image/png;base64,…`.
    ///
    /// # Errors
    /// `Invalid` naming `field`.
    pub fn parse(field: &'static str, address: &str) -> Result<Self, Invalid> {
        let picture = || {
            let (media_type, base64) = address.strip_prefix("data:")?.split_once(";base64,")?;
            Self::stored(media_type, base64).filter(|picture| picture.is_of_its_kind())
        };
        picture().ok_or(Invalid::new(field, Rule::Picture))
    }

    /// The picture of a file.
    ///
    /// # Errors
    /// `Invalid` naming `field`.
    pub fn of_bytes(field: &'static str, bytes: &[u8]) -> Result<Self, Invalid> {
        let kind = KINDS.iter().find(|(_, start)| bytes.starts_with(start));
        let picture = kind.and_then(|(media_type, _)| Self::stored(media_type, &STANDARD.encode(bytes)));
        picture.filter(Self::is_of_its_kind).ok_or(Invalid::new(field, Rule::Picture))
    }

    /// A picture that was stored; `None` for an unknown kind.
    pub fn stored(media_type: &str, base64: &str) -> Option<Self> {
        let (media_type, _) = KINDS.iter().find(|(known, _)| *known == media_type)?;
        Some(Self { media_type, base64: base64.to_owned() })
    }

    fn is_of_its_kind(&self) -> bool {
        let begins = |bytes: &[u8]| {
            let known =
                KINDS.iter().any(|(kind, start)| *kind == self.media_type && bytes.starts_with(start));
            known && (self.media_type != "image/webp" || bytes.get(8..12) == Some(b"WEBP"))
        };
        // Base64 is a third longer.
        self.base64.len() <= LOGO_BYTES_MAX.div_ceil(3) * 4
            && self.bytes().is_some_and(|bytes| bytes.len() <= LOGO_BYTES_MAX && begins(&bytes))
    }

    /// The value of `Content-Type`.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// The bytes in Base64, as the store holds them.
    pub fn base64(&self) -> &str {
        &self.base64
    }

    /// The bytes.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.base64).ok()
    }

    /// A name of these bytes.
    pub fn version(&self) -> String {
        let hash = Sha256::digest(self.base64.as_bytes());
        hash.iter().take(VERSION_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Only kind and size, because the bytes fill a screen.
impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({}, {} bytes of Base64)", self.media_type, self.base64.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(media_type: &str, bytes: &[u8]) -> String {
        format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
    }

    #[test]
    fn a_picture_is_of_the_kind_that_it_names() {
        let png = b"\x89PNG\r\n\x1a\nrest";
        for (address, is_picture) in [
            (address("image/png", png), true),
            (address("image/jpeg", b"\xff\xd8\xff\xe0"), true),
            (address("image/webp", b"RIFF\0\0\0\0WEBPVP8 "), true),
            (address("image/webp", b"RIFF\0\0\0\0WAVE"), false),
            (address("image/jpeg", png), false),
            (address("image/svg+xml", b"<svg/>"), false),
            (address("text/html", b"<script>"), false),
            (address("image/png", b""), false),
            ("data:image/png,rest".to_owned(), false),
            ("data:image/png;base64,%".to_owned(), false),
            ("https://a.example/logo.png".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(Picture::parse("logo", &address).is_ok(), is_picture, "{address}");
        }
    }

    #[test]
    fn the_bytes_of_a_file_say_their_kind() {
        for (bytes, kind) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg/>", None),
            (b"", None),
        ] {
            let picture = Picture::of_bytes("logo", bytes);
            assert_eq!(picture.as_ref().ok().map(Picture::media_type), kind, "{bytes:?}");
        }
        let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
        large.resize(LOGO_BYTES_MAX + 1, 0);
        assert_eq!(Picture::of_bytes("logo", &large), Err(Invalid::new("logo", Rule::Picture)));
    }

    #[test]
    fn a_picture_has_a_largest_size() {
        let of_size = |size: usize| {
            let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
            bytes.resize(size, 0);
            Picture::parse("logo", &address("image/png", &bytes))
        };
        assert!(of_size(LOGO_BYTES_MAX).is_ok());
        assert_eq!(of_size(LOGO_BYTES_MAX + 1), Err(Invalid::new("logo", Rule::Picture)));
        let (one, two) = (of_size(20).unwrap(), of_size(21).unwrap());
        assert_ne!(one.version(), two.version());
        assert_eq!(one.version(), of_size(20).unwrap().version());
        assert_eq!(Picture::stored(one.media_type(), one.base64()), Some(one));
        assert_eq!(Picture::stored("text/html", ""), None);
    }
}
