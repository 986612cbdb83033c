//! The certificate that the operator gives, by files that may be replaced while the service runs.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use domain::Timestamp;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use service::Clock;
use tls_files::{Pair, PairFiles, validity};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The certificate of a listener and its key. A handshake uses the pair that was read last.
pub struct ServedCertificate {
    files: PairFiles,
    current: RwLock<ServedPair>,
    /// The state of the files that was read last, whether the pair was good or not.
    seen: Mutex<Option<FilesState>>,
    /// When the pair of the files becomes valid, if it was not when it was read.
    valid_later: Mutex<Option<Timestamp>>,
    failures: AtomicU64,
}

#[derive(Clone)]
struct ServedPair {
    key: Arc<CertifiedKey>,
    valid_from: Timestamp,
    expires_at: Timestamp,
}

impl ServedPair {
    /// Why no client accepts the certificate now; `None` if it is valid.
    fn problem(&self, now: Timestamp) -> Option<String> {
        if self.expires_at <= now {
            return Some(format!("it has expired at {}: renew it", self.expires_at.rfc3339()));
        }
        let from = self.valid_from.rfc3339();
        (now < self.valid_from).then(|| format!("it is not valid before {from}: compare the clocks"))
    }
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
        Ok(Self { files, current, seen, valid_later: Mutex::default(), failures: AtomicU64::new(0) })
    }

    /// When the certificate expires.
    pub fn expires_at(&self) -> Timestamp {
        self.current().expires_at
    }

    /// How often the files could not be used. The former pair stayed then.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// Reads the files again. If they cannot be used, or hold an expired or not yet valid certificate in the
    /// place of a valid one, the former pair stays, and the log says why.
    pub fn reload(&self, now: Timestamp) {
        *lock(&self.seen) = Some(state(&self.files));
        *lock(&self.valid_later) = None;
        let read = read(&self.files).and_then(|new| match new.problem(now) {
            Some(problem) if self.current().problem(now).is_none() => {
                *lock(&self.valid_later) = Some(new.valid_from).filter(|from| *from > now);
                Err(format!("--tls-certificate {}: {problem}", self.files.certificate.display()))
            }
            _ => Ok(new),
        });
        match read {
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
        self.warn_if_unusable(&clock);
        loop {
            clock.sleep(LOOK_EVERY).await;
            let has_become_valid = lock(&self.valid_later).is_some_and(|from| from <= clock.now());
            if has_become_valid || self.has_changed() {
                self.reload(clock.now());
                self.warn_if_unusable(&clock);
            }
        }
    }

    fn warn_if_unusable(&self, clock: &Clock) {
        if let Some(problem) = self.current().problem(clock.now()) {
            tracing::warn!(problem, "clients refuse to connect because of the certificate");
        }
    }

    fn has_changed(&self) -> bool {
        let now = state(&self.files);
        lock(&self.seen).as_ref() != Some(&now)
    }

    fn current(&self) -> ServedPair {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    let valid = chain.first().and_then(|leaf| validity(leaf));
    let (from, until) = valid.ok_or_else(|| format!("--tls-certificate {name}: it is damaged"))?;
    let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|error| format!("--tls-certificate {name} and --tls-key do not fit: {error}"))?;
    let at = |seconds: i64| Timestamp::from_millis(seconds.saturating_mul(1_000));
    Ok(ServedPair { key: Arc::new(key), valid_from: at(from), expires_at: at(until) })
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current().key)
    }
}

#[cfg(test)]
mod tests {
    use tls_files::testing::{Holder, TestAuthority};

    use super::*;

    const DAY_S: i64 = 86_400;

    /// A certificate that is valid from and until these days after a fixed one.
    fn write(authority: &TestAuthority, folder: &Path, from: i64, until: i64) -> PairFiles {
        let at = |days: i64| time::OffsetDateTime::from_unix_timestamp(days * DAY_S).expect("a time");
        authority.issue_within(Holder::Server("localhost"), at(from), at(until)).write(folder, "own")
    }

    fn day(days: i64) -> Timestamp {
        Timestamp::from_millis(days * DAY_S * 1_000)
    }

    #[test]
    fn a_valid_certificate_is_replaced_by_a_valid_one_only() {
        let (folder, authority) = (tempfile::tempdir().expect("a folder"), TestAuthority::new());
        let files = write(&authority, folder.path(), 10, 100);
        let served = ServedCertificate::open(files).expect("a certificate");
        for (from, until, now, expected, failures) in [
            (10, 40, 50, 100, 1),
            (60, 200, 50, 100, 2),
            // The same pair, when it has become valid.
            (60, 200, 60, 200, 2),
            (10, 20, 70, 200, 3),
            (10, 150, 70, 150, 3),
            // Of two that no client accepts, the new one is used.
            (10, 30, 160, 30, 3),
            (300, 400, 160, 400, 3),
        ] {
            write(&authority, folder.path(), from, until);
            served.reload(day(now));
            let found = (served.expires_at(), served.failures());
            assert_eq!(found, (day(expected), failures), "from {from} until {until}, on {now}");
        }
    }

    #[tokio::test]
    async fn a_certificate_that_becomes_valid_is_read_without_another_change() {
        let (folder, authority) = (tempfile::tempdir().expect("a folder"), TestAuthority::new());
        let files = write(&authority, folder.path(), 10, 100);
        let served = Arc::new(ServedCertificate::open(files).expect("a certificate"));
        let (clock, hand) = Clock::manual(day(50));
        let watching = tokio::spawn(served.clone().watch(clock));
        write(&authority, folder.path(), 51, 200);
        let advanced = async |by: Duration| {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            hand.advance(by);
        };
        while served.failures() == 0 {
            advanced(LOOK_EVERY).await;
        }
        assert_eq!(served.expires_at(), day(100));
        advanced(Duration::from_secs(DAY_S.unsigned_abs())).await;
        while served.expires_at() != day(200) {
            advanced(LOOK_EVERY).await;
        }
        assert_eq!(served.failures(), 1);
        watching.abort();
    }
}
