//! The local certificate authority. Its key stays in the folder of its user and is never sent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use commands::trust::{AUTHORITY_FILE, pem};
use domain::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;

/// The file of the private key.
const KEY_FILE: &str = "authority.key";
/// Locked while the authority is made, so that two sandboxes that start together make one.
const LOCK_FILE: &str = "lock";
/// Lifetime of the authority's certificate.
const AUTHORITY_LIFETIME_DAYS: i64 = 3_650;
/// Lifetime of a sandbox's certificate.
pub(super) const CERTIFICATE_LIFETIME_DAYS: i64 = 7;
/// Certificates are valid this long before they are made, for clients whose clock is behind.
const CLOCK_SKEW_DAYS: i64 = 1;
/// Milliseconds of a day.
pub(super) const DAY_MS: i64 = 86_400_000;

/// A certificate authority that only configured clients trust.
pub(super) struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(super) struct Signed {
    pub certificate: CertificateDer<'static>,
    pub key: PrivateKeyDer<'static>,
}

impl Authority {
    /// The authority in a folder. The first call makes it.
    ///
    /// # Errors
    /// A sentence for the developer.
    pub fn open(folder: &Path, now: Timestamp) -> Result<Self, String> {
        let problem = |error: io::Error| format!("--tls-folder {}: {error}", folder.display());
        temporary_folder::make_private(folder).map_err(problem)?;
        if fs::metadata(folder).map_err(problem)?.uid() != rustix::process::geteuid().as_raw() {
            return Err(problem(io::Error::other("it belongs to another user")));
        }
        let lock = File::create(folder.join(LOCK_FILE)).map_err(problem)?;
        lock.lock().map_err(problem)?;
        let (key_path, certificate_path) = (folder.join(KEY_FILE), folder.join(AUTHORITY_FILE));
        let damaged = |path: &Path| format!("{} is damaged: delete it for a new authority", path.display());
        let key = match read(&key_path).map_err(problem)? {
            Some(text) => read_key(&text).ok_or_else(|| damaged(&key_path))?,
            None => {
                let key = KeyPair::generate().map_err(|error| format!("failed to make a key: {error}"))?;
                write_secret(&key_path, &pem("PRIVATE KEY", key.serialized_der())).map_err(problem)?;
                // A certificate without its key is of no use.
                remove(&certificate_path).map_err(problem)?;
                key
            }
        };
        fs::set_permissions(&key_path, fs::Permissions::from_mode(0o600)).map_err(problem)?;
        let certificate = match read(&certificate_path).map_err(problem)? {
            Some(text) => CertificateDer::from_pem_slice(&text)
                .ok()
                .filter(|certificate| is_of(certificate, &key))
                .ok_or_else(|| damaged(&certificate_path))?,
            None => {
                let made = authority_params(now).self_signed(&key);
                let made = made.map_err(|error| format!("failed to make a certificate: {error}"))?;
                write_secret(&certificate_path, &pem("CERTIFICATE", made.der())).map_err(problem)?;
                made.der().clone()
            }
        };
        Ok(Self { certificate, issuer: Issuer::new(authority_params(now), key) })
    }

    /// The certificate of the authority, in PEM.
    pub fn pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// A new certificate for these names and addresses, with a new key.
    ///
    /// # Errors
    /// A name cannot be in a certificate.
    pub fn sign(&self, names: &[String], now: Timestamp) -> Result<Signed, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.to_vec())?;
        (params.not_before, params.not_after) = validity(now, CERTIFICATE_LIFETIME_DAYS);
        params.distinguished_name = name_of("Stagedoor sandbox");
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?.der().clone();
        Ok(Signed { certificate, key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() })
    }
}

/// The parameters of every authority. So the issuer needs only the key that was stored.
fn authority_params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    (params.not_before, params.not_after) = validity(now, AUTHORITY_LIFETIME_DAYS);
    params.distinguished_name = name_of("Stagedoor local authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn name_of(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

/// From a day before `now` until `days` after it.
fn validity(now: Timestamp, days: i64) -> (OffsetDateTime, OffsetDateTime) {
    let at = |days: i64| {
        let seconds = now.plus_ms(days * DAY_MS).as_millis() / 1_000;
        OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
    };
    (at(-CLOCK_SKEW_DAYS), at(days))
}

fn read_key(text: &[u8]) -> Option<KeyPair> {
    let key = PrivatePkcs8KeyDer::from_pem_slice(text).ok()?;
    KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256).ok()
}

/// Whether a certificate contains the public key of this key.
fn is_of(certificate: &CertificateDer<'_>, key: &KeyPair) -> bool {
    let public = key.public_key_raw();
    certificate.windows(public.len()).any(|part| part == public)
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file for its user only, and moves it into place.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000)
    }

    #[test]
    fn the_authority_is_made_once_and_its_key_is_for_its_user_only() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("stagedoor/tls");
        let first = Authority::open(&folder, now()).expect("an authority").pem();
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(KEY_FILE))), (0o700, 0o600));
        fs::set_permissions(folder.join(KEY_FILE), fs::Permissions::from_mode(0o644)).expect("its mode");
        let second = Authority::open(&folder, now().plus_ms(DAY_MS)).expect("the same").pem();
        assert_eq!(first, second);
        assert_eq!(mode(&folder.join(KEY_FILE)), 0o600);
    }

    #[test]
    fn a_damaged_authority_is_named_and_a_lost_key_makes_a_new_one() {
        let root = tempfile::tempdir().expect("a folder");
        let first = Authority::open(root.path(), now()).expect("an authority").pem();
        fs::remove_file(root.path().join(KEY_FILE)).expect("removed");
        let second = Authority::open(root.path(), now()).expect("another").pem();
        assert_ne!(first, second);
        for (file, text) in [(AUTHORITY_FILE, first.as_str()), (KEY_FILE, "no key")] {
            fs::write(root.path().join(file), text).expect("written");
            let problem = Authority::open(root.path(), now()).err().expect("a problem");
            assert!(problem.contains(file) && problem.contains("damaged"), "{problem}");
            Authority::open(root.path(), now()).err().expect("still");
            fs::write(root.path().join(AUTHORITY_FILE), &second).expect("written");
        }
    }

    #[test]
    fn a_name_that_no_certificate_can_hold_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        let authority = Authority::open(root.path(), now()).expect("an authority");
        assert!(authority.sign(&["localhost".to_owned(), "::1".to_owned()], now()).is_ok());
        assert!(authority.sign(&["하늘.example".to_owned()], now()).is_err());
    }
}
