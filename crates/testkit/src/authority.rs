//! A certificate authority that only configured clients trust, for receivers over TLS.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};

/// A certificate authority with its own key.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new authority.
    ///
    /// # Panics
    /// When there is no randomness.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "An authority of a test");
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Its certificate, as the only trusted one.
    ///
    /// # Panics
    /// When the certificate is invalid.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a certificate of an authority");
        roots
    }

    /// The TLS configuration of a server with a certificate for `name`, a DNS name or an IP address. If the
    /// name begins with `expired.`, the certificate expired in 2001.
    pub(crate) fn server_for(&self, name: &str) -> ServerConfig {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        if name.starts_with("expired.") {
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate: CertificateDer<'static> =
            params.signed_by(&key, &self.0).expect("a certificate").der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key is the certificate's")
    }
}
