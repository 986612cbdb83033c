//! TLS, and the certificate authorities that are trusted.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::CertificateError;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub use rustls::RootCertStore;
pub use tls_files::{system_certificates, system_roots};

/// The TLS library refused its own defaults.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TlsUnavailable(#[from] rustls::Error);

/// What was wrong with a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// The certificate has expired, at this time in Unix seconds.
    Expired(Option<u64>),
    /// The certificate is valid from this time on, in Unix seconds.
    NotYetValid(Option<u64>),
    /// The certificate is for these names. They are the peer's texts.
    OtherName(Vec<String>),
    /// No trusted authority has issued the certificate, or its chain is not complete.
    Untrusted,
    /// The peer answered without TLS.
    NotTls,
    /// Anything else.
    Other,
}

impl TlsProblem {
    pub(crate) fn of(error: &io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        match cause {
            Some(rustls::Error::InvalidCertificate(error)) => Self::of_certificate(error),
            Some(rustls::Error::InvalidMessage(_)) => Self::NotTls,
            _ => Self::Other,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired => Self::Expired(None),
            CertificateError::ExpiredContext { not_after, .. } => Self::Expired(Some(not_after.as_secs())),
            CertificateError::NotValidYet => Self::NotYetValid(None),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Self::NotYetValid(Some(not_before.as_secs()))
            }
            CertificateError::NotValidForName => Self::OtherName(Vec::new()),
            CertificateError::NotValidForNameContext { presented, .. } => {
                Self::OtherName(presented.iter().map(|name| plain_name(name)).collect())
            }
            // Another authority with the name of a trusted one has signed it.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            _ => Self::Other,
        }
    }
}

/// The name in `DnsName("a.example")`, or the text as it is.
fn plain_name(presented: &str) -> String {
    presented.split('"').nth(1).unwrap_or(presented).to_owned()
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
