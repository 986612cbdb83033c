//! TLS, and the certificate authorities that are trusted.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use rustls::RootCertStore;

/// The TLS library refused its own defaults.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TlsUnavailable(#[from] rustls::Error);

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

/// TLS for HTTP/1.1 to peers with a certificate of trusted authorities. Cheap to clone.
#[derive(Clone)]
pub struct Tls(TlsConnector);

impl Tls {
    /// TLS with these authorities.
    ///
    /// # Errors
    /// When the TLS library refuses its own defaults.
    pub fn new(roots: RootCertStore) -> Result<Self, TlsUnavailable> {
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// The handshake with a host: a DNS name, or an IP address.
    pub(crate) async fn handshake<S>(&self, host: &str, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = match host.parse::<IpAddr>() {
            Ok(address) => ServerName::IpAddress(address.into()),
            Err(_) => ServerName::try_from(host.to_owned()).map_err(io::Error::other)?,
        };
        self.0.connect(name, stream).await
    }
}
