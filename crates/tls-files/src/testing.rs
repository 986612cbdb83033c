//! Authorities that issue certificates, for tests.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use time::OffsetDateTime;

use crate::PairFiles;

/// An authority that only configured programs trust.
pub struct TestAuthority(CertifiedIssuer<'static, KeyPair>);

/// What a certificate is for.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// A server of this DNS name or IP address.
    Server(&'a str),
    /// A client of this name.
    Client(&'a str),
}

/// A certificate and its key, in PEM.
pub struct IssuedPair {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Default for TestAuthority {
    fn default() -> Self {
        Self::new()
    }
}

impl TestAuthority {
    /// A new authority.
    ///
    /// # Panics
    /// When there is no randomness.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "An authority of a test");
        Self(
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate"),
        )
    }

    /// Its certificate, in PEM.
    pub fn pem(&self) -> String {
        pem("CERTIFICATE", self.0.der())
    }

    /// Writes its certificate into a folder.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, self.pem()).expect("a file");
        path
    }

    /// A new certificate that is valid until a time, with a new key.
    ///
    /// # Panics
    /// When the name cannot be in a certificate.
    pub fn issue(&self, holder: Holder<'_>, until: OffsetDateTime) -> IssuedPair {
        let from = CertificateParams::default().not_before;
        self.issue_within(holder, from, until)
    }

    /// A new certificate that is valid from one time until another, with a new key.
    ///
    /// # Panics
    /// When the name cannot be in a certificate.
    pub fn issue_within(
        &self,
        holder: Holder<'_>,
        from: OffsetDateTime,
        until: OffsetDateTime,
    ) -> IssuedPair {
        let (names, common, purpose) = match holder {
            Holder::Server(name) => (vec![name.to_owned()], name, ExtendedKeyUsagePurpose::ServerAuth),
            Holder::Client(name) => (Vec::new(), name, ExtendedKeyUsagePurpose::ClientAuth),
        };
        let mut params = CertificateParams::new(names).expect("a name");
        params.distinguished_name.push(DnType::CommonName, common);
        params.extended_key_usages = vec![purpose];
        (params.not_before, params.not_after) = (from, until);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        IssuedPair {
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", key.serialized_der()),
        }
    }
}

impl IssuedPair {
    /// Writes both files into a folder, each in one step, as a program that renews certificates does.
    ///
    /// # Panics
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> PairFiles {
        let put = |path: PathBuf, text: &str| {
            let new = path.with_extension("new");
            std::fs::write(&new, text).expect("a file");
            std::fs::rename(&new, &path).expect("its place");
            path
        };
        PairFiles {
            certificate: put(folder.join(format!("{name}.pem")), &self.certificate),
            key: put(folder.join(format!("{name}.key")), &self.key),
        }
    }
}

/// A time in the far future.
///
/// # Panics
/// Never: the year exists.
pub fn far_future() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(4_000_000_000).expect("a time")
}

fn pem(kind: &str, der: &[u8]) -> String {
    let lines: Vec<_> = STANDARD.encode(der).into_bytes().chunks(64).map(<[u8]>::to_vec).collect();
    let body =
        lines.into_iter().map(|line| String::from_utf8(line).expect("ASCII")).collect::<Vec<_>>().join("\n");
    format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n")
}
