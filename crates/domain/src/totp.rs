//! One-time codes of the second step of a sign-in (RFC 6238), as every authenticator app makes them:
//! HMAC-SHA1, steps of 30 seconds, six digits. And the recovery codes beside them.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use subtle::ConstantTimeEq;

use crate::application::percent_encode;
use crate::limits::{TOTP_DRIFT_STEPS, TOTP_STEP_MS};
use crate::secret::SecretHash;
use crate::{ChannelId, Timestamp};

/// Length of a secret in bytes, as RFC 4226 recommends it.
pub const TOTP_SECRET_BYTES: usize = 20;
/// Digits of a code.
pub const TOTP_DIGITS: usize = 6;
/// Random bytes of a recovery code: 80 bits.
pub const RECOVERY_CODE_BYTES: usize = 10;
/// Characters of a group of a recovery code.
const RECOVERY_GROUP_CHARS: usize = 4;

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The secret that an authenticator app shares with the service. The store holds it sealed. It does not
/// print.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret(Vec<u8>);

impl TotpSecret {
    /// A secret of random bytes.
    pub fn generate(random: [u8; TOTP_SECRET_BYTES]) -> Self {
        Self(random.to_vec())
    }

    /// The secret in base32.
    pub fn expose(&self) -> String {
        base32(&self.0)
    }

    /// A secret in base32; `None` for anything else.
    pub fn from_base32(text: &str) -> Option<Self> {
        unbase32(text).filter(|bytes| bytes.len() == TOTP_SECRET_BYTES).map(Self)
    }

    /// The address by which an authenticator app adds the account.
    pub fn otpauth_uri(&self, issuer: &str, login: &str) -> String {
        let mut uri = "otpauth://totp/".to_owned();
        percent_encode(issuer, &mut uri);
        uri.push(':');
        percent_encode(login, &mut uri);
        uri.push_str("?secret=");
        uri.push_str(&self.expose());
        uri.push_str("&issuer=");
        percent_encode(issuer, &mut uri);
        uri.push_str("&algorithm=SHA1&digits=6&period=30");
        uri
    }

    /// The code of a step, as an authenticator app shows it.
    pub fn code(&self, step: i64) -> String {
        let mut mac = Hmac::<Sha1>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        mac.update(&step.to_be_bytes());
        let mac = mac.finalize().into_bytes();
        let at = usize::from(mac[mac.len() - 1] & 0x0f);
        let number = mac[at..at + 4].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        format!("{:06}", (number & 0x7fff_ffff) % 1_000_000)
    }

    /// The step whose code this is, among the steps that an app's clock may be at; `None` for a wrong code.
    /// The store decides whether the step was used.
    pub fn step_of(&self, code: &str, now: Timestamp) -> Option<i64> {
        let digits: String = code.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        let current = now.as_millis().div_euclid(TOTP_STEP_MS);
        let mut found = None;
        for step in current - TOTP_DRIFT_STEPS..=current + TOTP_DRIFT_STEPS {
            // Each step is compared, so that the time does not depend on the code.
            if bool::from(self.code(step).as_bytes().ct_eq(digits.as_bytes())) {
                found = Some(step);
            }
        }
        found
    }
}

impl fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TotpSecret")
    }
}

/// Signs in once in place of a code, for a person whose device is lost. The store holds its hash. It does not
/// print.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl RecoveryCode {
    /// A code of random bytes: `abcd-efgh-ijkl-mnop`.
    pub fn generate(random: [u8; RECOVERY_CODE_BYTES]) -> Self {
        let text = base32(&random).to_lowercase();
        let groups: Vec<_> = (0..text.len())
            .step_by(RECOVERY_GROUP_CHARS)
            .map(|at| &text[at..at + RECOVERY_GROUP_CHARS])
            .collect();
        Self(groups.join("-"))
    }

    /// A typed code, in any case and with any spaces and hyphens; `None` for what cannot be one.
    pub fn typed(text: &str) -> Option<Self> {
        let plain: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && *c != '-')
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let bytes: [u8; RECOVERY_CODE_BYTES] = unbase32(&plain)?.try_into().ok()?;
        Some(Self::generate(bytes))
    }

    /// The form in the store. The account is part of it, so equal codes of two accounts differ.
    pub fn hash(&self, channel: &ChannelId) -> SecretHash {
        SecretHash::of(&format!("recovery code {channel} {}", self.0))
    }

    /// The code, for the one page that shows it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode")
    }
}

/// Base32 without padding (RFC 4648). `bytes` are a multiple of 5.
fn base32(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5);
    for chunk in bytes.chunks(5) {
        let bits =
            chunk.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte)) << (8 * (5 - chunk.len()));
        for place in 0..(chunk.len() * 8).div_ceil(5) {
            let five = usize::try_from(bits >> (35 - 5 * place) & 31).unwrap_or(0);
            text.push(char::from(BASE32[five]));
        }
    }
    text
}

fn unbase32(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let five = BASE32.iter().position(|one| *one == letter)?;
        bits = bits << 5 | u32::try_from(five).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rfc() -> TotpSecret {
        TotpSecret::generate(*b"12345678901234567890")
    }

    #[test]
    fn the_codes_are_those_of_the_rfc() {
        // RFC 6238, appendix B, the last six of eight digits.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let now = Timestamp::from_millis(seconds * 1_000);
            assert_eq!(rfc().step_of(code, now), Some(seconds / 30), "{seconds}");
            assert_eq!(rfc().code(seconds / 30), code);
        }
    }

    #[test]
    fn a_code_is_taken_one_step_early_or_late() {
        let code = rfc().code(100);
        let at = |step: i64| Timestamp::from_millis(step * 30_000);
        for (step, expected) in [(98, None), (99, Some(100)), (100, Some(100)), (101, Some(100)), (102, None)]
        {
            assert_eq!(rfc().step_of(&code, at(step)), expected, "{step}");
        }
        let spaced = format!(" {} {}", &code[..3], &code[3..]);
        assert_eq!(rfc().step_of(&spaced, at(100)), Some(100));
        for wrong in ["", "0", "12345", "1234567", "abcdef", "١٢٣٤٥٦"] {
            assert_eq!(rfc().step_of(wrong, at(100)), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_secret_is_base32_and_does_not_print() {
        let text = rfc().expose();
        assert_eq!(text, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(TotpSecret::from_base32(&text), Some(rfc()));
        for wrong in ["", "GEZD", "gezdgnbvgy3tqojqgezdgnbvgy3tqojq", "1EZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"] {
            assert_eq!(TotpSecret::from_base32(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{:?}", rfc()), "TotpSecret");
        assert_eq!(
            rfc().otpauth_uri("Sky TV", "haneul"),
            "otpauth://totp/Sky%20TV:haneul?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Sky%20TV&algorithm=SHA1&digits=6&period=30"
        );
    }

    #[test]
    fn a_recovery_code_is_read_as_people_type_it() {
        let code = RecoveryCode::generate([7; 10]);
        let channel = ChannelId::stored("a".into());
        assert_eq!(code.expose(), "a4dq-obyh-a4dq-obyh");
        for typed in ["a4dq-obyh-a4dq-obyh", "A4DQ OBYH A4DQ OBYH", "a4dqobyha4dqobyh "] {
            assert_eq!(RecoveryCode::typed(typed), Some(code.clone()), "{typed}");
        }
        for wrong in ["", "a4dq", "a4dq-obyh-a4dq-oby1", "a4dq-obyh-a4dq-obyh-a4dq", "287082"] {
            assert_eq!(RecoveryCode::typed(wrong), None, "{wrong}");
        }
        let other = ChannelId::stored("b".into());
        assert!(!code.hash(&channel).matches(&code.hash(&other)));
        assert_eq!(format!("{code:?}"), "RecoveryCode");
    }
}
