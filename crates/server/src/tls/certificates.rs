//! The certificate of a sandbox. It is short-lived, and a new one is made at each start and each day.

use std::sync::{Arc, Mutex, PoisonError};

use domain::Timestamp;
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use service::Clock;

use super::authority::{Authority, CERTIFICATE_LIFETIME_DAYS, DAY_MS};

/// Age at which a certificate is replaced, in milliseconds.
const RENEW_AFTER_MS: i64 = DAY_MS;
const _: () = assert!(RENEW_AFTER_MS < CERTIFICATE_LIFETIME_DAYS * DAY_MS);

/// Makes the certificates of one sandbox, for all its names.
pub(super) struct Certificates {
    authority: Authority,
    names: Vec<String>,
    /// The system's clock. Clients do not follow the clock of a sandbox.
    clock: Clock,
    current: Mutex<Current>,
}

struct Current {
    key: Arc<CertifiedKey>,
    renew_at: Timestamp,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Certificates({})", self.names.join(", "))
    }
}

impl Certificates {
    /// Certificates for these names and addresses.
    ///
    /// # Errors
    /// A sentence for the developer: a name cannot be in a certificate.
    pub fn new(authority: Authority, names: Vec<String>, clock: Clock) -> Result<Self, String> {
        let current = make(&authority, &names, clock.now())?;
        Ok(Self { authority, names, clock, current: Mutex::new(current) })
    }

    fn current(&self) -> Arc<CertifiedKey> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if now >= current.renew_at {
            match make(&self.authority, &self.names, now) {
                Ok(new) => *current = new,
                Err(error) => tracing::debug!(%error, "failed to renew the certificate of the sandbox"),
            }
        }
        current.key.clone()
    }
}

fn make(authority: &Authority, names: &[String], now: Timestamp) -> Result<Current, String> {
    let failed = |error: &dyn std::fmt::Display| format!("failed to make a certificate: {error}");
    let signed = authority.sign(names, now).map_err(|error| failed(&error))?;
    let key = any_ecdsa_type(&signed.key).map_err(|error| failed(&error))?;
    let key = Arc::new(CertifiedKey::new(vec![signed.certificate], key));
    Ok(Current { key, renew_at: now.plus_ms(RENEW_AFTER_MS) })
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_certificate_is_replaced_after_a_day() {
        let root = tempfile::tempdir().expect("a folder");
        let (clock, hand) = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
        let authority = Authority::open(root.path(), clock.now()).expect("an authority");
        let certificates =
            Certificates::new(authority, vec!["localhost".to_owned()], clock).expect("a certificate");
        let first = certificates.current();
        hand.advance(Duration::from_secs(86_399));
        assert_eq!(certificates.current().cert, first.cert);
        hand.advance(Duration::from_secs(1));
        assert_ne!(certificates.current().cert, first.cert);
    }
}
