//! The certificate that the operator gives, by files that may be replaced while the service runs.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use domain::Timestamp;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use service::Clock;
use tls_files::{Pair, PairFiles, expiry};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The certificate of a listener and its key. A handshake uses the pair that was read last.
pub struct ServedCertificate {
    files: PairFiles,
    current: RwLock<ServedPair>,
    /// The state of the files that was read last, whether the pair was good or not.
    seen: Mutex<Option<FilesState>>,
    failures: AtomicU64,
}

#[derive(Clone)]
struct ServedPair {
    key: Arc<CertifiedKey>,
    expires_at: Timestamp,
}

/// Changes whenever one of the files is replaced or written.
type FilesState = [Option<(u64, u64, i64, i64, u64)>; 2];

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expires = self.expires_at().rfc3339();
        write!(f, "ServedCertificate({}, until {expires})", self.files.certificate.display())
    }
}

impl ServedCertificate {
    /// Reads the pair.
    ///
    /// # Errors
    /// A sentence for the operator that names the file.
    pub fn open(files: PairFiles) -> Result<Self, String> {
        let seen = Mutex::new(Some(state(&files)));
        let current = RwLock::new(read(&files)?);
        Ok(Self { files, current, seen, failures: AtomicU64::new(0) })
    }

    /// When the certificate expires.
    pub fn expires_at(&self) -> Timestamp {
        self.current().expires_at
    }

    /// How often the files could not be used. The former pair stayed then.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// Reads the files again. If they cannot be used, the former pair stays, and the log says why.
    pub fn reload(&self) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(state(&self.files));
        match read(&self.files) {
            Ok(new) => {
                let expires = new.expires_at.rfc3339();
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = new;
                tracing::info!(expires, "read the certificate again");
            }
            Err(error) => {
                self.failures.fetch_add(1, Relaxed);
                tracing::error!(%error, "failed to read the certificate again: the former one stays");
            }
        }
    }

    /// Reads the files again whenever they have changed.
    pub(crate) async fn watch(self: Arc<Self>, clock: Clock) {
        self.warn_if_expired(&clock);
        loop {
            clock.sleep(LOOK_EVERY).await;
            if self.has_changed() {
                self.reload();
                self.warn_if_expired(&clock);
            }
        }
    }

    fn warn_if_expired(&self, clock: &Clock) {
        if self.expires_at() <= clock.now() {
            let expired = self.expires_at().rfc3339();
            tracing::warn!(expired, "the certificate has expired: clients refuse to connect");
        }
    }

    fn has_changed(&self) -> bool {
        let now = state(&self.files);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).as_ref() != Some(&now)
    }

    fn current(&self) -> ServedPair {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn state(files: &PairFiles) -> FilesState {
    let of = |path: &Path| {
        let data = std::fs::metadata(path).ok()?;
        Some((data.dev(), data.ino(), data.mtime(), data.mtime_nsec(), data.len()))
    };
    [of(&files.certificate), of(&files.key)]
}

fn read(files: &PairFiles) -> Result<ServedPair, String> {
    let Pair { chain, key } = files.read().map_err(|bad| format!("--tls-certificate, --tls-key: {bad}"))?;
    let name = files.certificate.display();
    let expires_at = chain.first().and_then(|leaf| expiry(leaf));
    let expires_at = expires_at.ok_or_else(|| format!("--tls-certificate {name}: it is damaged"))?;
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|error| format!("--tls-certificate {name} and --tls-key do not fit: {error}"))?;
    let expires_at = Timestamp::from_millis(expires_at.saturating_mul(1_000));
    Ok(ServedPair { key: Arc::new(key), expires_at })
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current().key)
    }
}
