//! Reads certificates and keys.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A file that cannot be used. It shows nothing of the content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct BadFile {
    /// The path.
    pub path: String,
    /// What is wrong, and what to do.
    pub why: String,
}

impl BadFile {
    fn new(path: &Path, why: impl fmt::Display) -> Self {
        Self { path: path.display().to_string(), why: why.to_string() }
    }
}

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFiles {
    /// The certificate, and after it those of the authorities between it and the root.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A certificate with its chain, and its key. It has no `Debug`, because the key is a secret.
pub struct Pair {
    /// The certificate, and after it those of the authorities between it and the root.
    pub chain: Vec<CertificateDer<'static>>,
    /// The private key.
    pub key: PrivateKeyDer<'static>,
}

impl PairFiles {
    /// Reads both files.
    ///
    /// # Errors
    /// The file that cannot be used.
    pub fn read(&self) -> Result<Pair, BadFile> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?).map_err(|_| {
            BadFile::new(&self.key, "it has no private key in PEM. A key with a passphrase cannot be read")
        })?;
        Ok(Pair { chain, key })
    }
}

/// The authorities of a file.
///
/// # Errors
/// What is wrong with the file.
pub fn read_roots(path: &Path) -> Result<RootCertStore, BadFile> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let wrong = |error| BadFile::new(path, format!("a certificate in it is damaged: {error}"));
        roots.add(certificate).map_err(wrong)?;
    }
    Ok(roots)
}

/// The certificate authorities that the system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Reads
/// files.
pub fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system_certificates());
    roots
}

/// The certificates of the same authorities.
pub fn system_certificates() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

/// From when to when a certificate is valid, in Unix seconds; `None` if it is damaged.
pub fn validity(certificate: &CertificateDer<'_>) -> Option<(i64, i64)> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let validity = parsed.validity();
    Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// The certificates of a file; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadFile> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(BadFile::new(path, "it has no certificate in PEM")),
        Err(error) => Err(BadFile::new(path, format!("it is not PEM: {error}"))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, BadFile> {
    let problem = |error: std::io::Error| BadFile::new(path, error);
    let size = std::fs::metadata(path).map_err(problem)?.len();
    if size > FILE_BYTES_MAX {
        return Err(BadFile::new(path, format!("it has {size} bytes, more than {FILE_BYTES_MAX}")));
    }
    std::fs::read(path).map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Holder, TestAuthority, far_future};

    #[test]
    fn each_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let pair =
            TestAuthority::new().issue(Holder::Server("a.example"), far_future()).write(folder.path(), "a");
        let good = std::fs::read_to_string(&pair.certificate).expect("a text");
        std::fs::write(path("damaged"), good.replace("\nMII", "\n!MII")).expect("written");
        std::fs::write(path("empty"), "").expect("written");
        for (name, word) in [("nowhere", "No such file"), ("damaged", "not PEM"), ("empty", "no certificate")]
        {
            let problem = read_roots(&path(name)).expect_err(name).to_string();
            assert!(problem.contains(name) && problem.contains(word), "{problem}");
        }
        let read = pair.read().expect("a pair");
        let (begins, ends) = validity(&read.chain[0]).expect("a certificate");
        assert!(begins < ends && ends == far_future().unix_timestamp());
        let without = PairFiles { key: path("empty"), ..pair };
        let problem = without.read().err().expect("no key").to_string();
        assert!(problem.contains("empty") && problem.contains("private key"), "{problem}");
    }
}
