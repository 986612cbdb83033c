//! Credentials by key: the user proves that it has the seed of its nkey by signing the server's nonce. The
//! user is known by its public key, or by a JWT of its account.

use std::fmt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::BASE32_NOPAD;
use ring::signature::{Ed25519KeyPair, KeyPair};

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// The first byte of a decoded seed: its text begins with `S`. Its last three bits belong to the kind.
pub(crate) const PREFIX_SEED: u8 = 18 << 3;
/// The kind of a user: its public key begins with `U`.
pub(crate) const PREFIX_USER: u8 = 20 << 3;
/// The length of a seed, in bytes.
pub(crate) const SEED_BYTES: usize = 32;
/// The line before the JWT.
const BEGIN_JWT: &str = "BEGIN NATS USER JWT";
/// The line before the seed.
const BEGIN_SEED: &str = "BEGIN USER NKEY SEED";

/// The credentials of a user. `Debug` hides them.
pub(crate) struct Credentials {
    key: Ed25519KeyPair,
    jwt: Option<String>,
}

/// A file without usable credentials. It shows nothing of the content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct BadCredentials {
    path: String,
    why: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// Reads a file: a seed alone, or a JWT and a seed as `nsc` writes them.
    pub(crate) fn read(path: &Path) -> Result<Self, BadCredentials> {
        let bad = |why: String| BadCredentials { path: path.display().to_string(), why };
        let size = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
        if size > FILE_BYTES_MAX {
            return Err(bad(format!("it has {size} bytes, more than {FILE_BYTES_MAX}")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        Self::parse(&text).map_err(|why| bad(why.to_owned()))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let after = |begin: &str| {
            let mut lines = text.lines().skip_while(|line| !line.contains(begin)).skip(1);
            lines.find(|line| !line.trim().is_empty()).map(str::trim)
        };
        let jwt = after(BEGIN_JWT);
        let seed = match (jwt, after(BEGIN_SEED)) {
            (_, Some(seed)) => seed,
            (Some(_), None) => return Err("it has a JWT, but no seed: use the whole file that nsc wrote"),
            // A seed alone may have comments around it.
            (None, None) => text
                .lines()
                .map(str::trim)
                .find(|line| line.starts_with('S'))
                .ok_or("it has neither the seed of an nkey nor a JWT and a seed")?,
        };
        Ok(Self { key: key_of(seed)?, jwt: jwt.map(str::to_owned) })
    }

    /// Adds the proof to the options of `CONNECT`.
    pub(crate) fn prove(&self, nonce: &str, options: &mut serde_json::Value) {
        options["sig"] = URL_SAFE_NO_PAD.encode(self.key.sign(nonce.as_bytes())).into();
        match &self.jwt {
            Some(jwt) => options["jwt"] = jwt.as_str().into(),
            None => options["nkey"] = public_key(self.key.public_key().as_ref()).into(),
        }
    }
}

/// The key of a seed such as `SUAM…`: two bytes of kind, the seed, and a checksum, in base 32.
fn key_of(text: &str) -> Result<Ed25519KeyPair, &'static str> {
    const DAMAGED: &str = "its seed is damaged";
    let bytes = BASE32_NOPAD.decode(text.as_bytes()).map_err(|_| DAMAGED)?;
    let (content, checksum) = bytes.split_last_chunk::<2>().ok_or(DAMAGED)?;
    if crc16(content) != u16::from_le_bytes(*checksum) {
        return Err(DAMAGED);
    }
    let [first, second, seed @ ..] = content else { return Err(DAMAGED) };
    if first & 0xf8 != PREFIX_SEED || seed.len() != SEED_BYTES {
        return Err(DAMAGED);
    }
    if ((first & 7) << 5) | (second >> 3) != PREFIX_USER {
        return Err("its seed is not a user's: it must begin with SU");
    }
    Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| DAMAGED)
}

/// The public key of a user as text.
fn public_key(key: &[u8]) -> String {
    with_checksum([&[PREFIX_USER], key].concat())
}

/// The text of a key: its kind, itself and a checksum, in base 32.
pub(crate) fn with_checksum(mut bytes: Vec<u8>) -> String {
    bytes.extend_from_slice(&crc16(&bytes).to_le_bytes());
    BASE32_NOPAD.encode(&bytes)
}

/// CRC-16 with the polynomial 0x1021, from 0 (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestKey, TestKind};

    #[test]
    fn seeds_are_read_alone_and_beside_a_jwt() {
        let key = TestKey::new(TestKind::User, 7);
        let (seed, public) = (key.seed(), key.public());
        assert!(seed.starts_with("SU") && public.starts_with('U'), "{seed} {public}");
        let alone = Credentials::parse(&format!("# a user\n{seed}\n")).expect("a seed");
        let mut options = serde_json::json!({});
        alone.prove("nonce", &mut options);
        assert_eq!(options["nkey"], public.as_str());
        let both = format!(
            "-----BEGIN NATS USER JWT-----\neyJ0.e30.c2ln\n------END NATS USER JWT------\n\n\
             *** IMPORTANT ***\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let mut options = serde_json::json!({});
        Credentials::parse(&both).expect("both").prove("nonce", &mut options);
        assert_eq!(options["jwt"], "eyJ0.e30.c2ln");
        assert!(options.get("nkey").is_none() && options["sig"].is_string());
    }

    #[test]
    fn damaged_and_foreign_seeds_are_refused_and_never_shown() {
        let key = TestKey::new(TestKind::User, 7);
        let (seed, public) = (key.seed(), key.public());
        for (text, word) in [
            (seed.replacen('U', "V", 1), "damaged"),
            (seed[..20].to_owned(), "damaged"),
            (TestKey::new(TestKind::Account, 7).seed(), "SU"),
            (public, "neither"),
            (String::new(), "neither"),
            ("-----BEGIN NATS USER JWT-----\nx\n".to_owned(), "no seed"),
        ] {
            let why = Credentials::parse(&text).expect_err(word);
            assert!(why.contains(word), "{why}");
        }
    }
}
