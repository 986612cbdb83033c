//! How a client checks its server.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::files::Pair;

/// What a client checks of its server's certificate.
#[derive(Clone, Debug)]
pub enum Check {
    /// Nothing. That protects from passive listeners, not from a man in the middle.
    Nothing,
    /// That one of the authorities has issued it.
    Authority(Arc<RootCertStore>),
    /// That one of the authorities has issued it, for the host that is connected to.
    AuthorityAndName(Arc<RootCertStore>),
}

/// TLS 1.2 and 1.3 of a client, with its own certificate if it has one.
///
/// # Errors
/// There is no authority, or the key is not the certificate's.
pub fn client_config(check: Check, own: Option<Pair>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match check {
        Check::AuthorityAndName(roots) => builder.with_root_certificates(roots),
        Check::Nothing => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Lenient::Unchecked(provider)))
        }
        Check::Authority(roots) => {
            let strict = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            let strict = strict.map_err(|error| Error::General(error.to_string()))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Lenient::AnyName(strict)))
        }
    };
    match own {
        None => Ok(builder.with_no_client_auth()),
        Some(Pair { chain, key }) => builder.with_client_auth_cert(chain, key),
    }
}

/// Checks less than a client of the web does.
#[derive(Debug)]
enum Lenient {
    /// Accepts every certificate.
    Unchecked(Arc<CryptoProvider>),
    /// Accepts a certificate for any name, if a trusted authority has issued it.
    AnyName(Arc<WebPkiServerVerifier>),
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Self::AnyName(strict) = self else { return Ok(ServerCertVerified::assertion()) };
        // The strict check looks at the name last.
        match strict.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    // A signature proves nothing when the certificate is not checked.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Unchecked(_) => Ok(HandshakeSignatureValid::assertion()),
            Self::AnyName(strict) => strict.verify_tls12_signature(message, certificate, signature),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Self::Unchecked(_) => Ok(HandshakeSignatureValid::assertion()),
            Self::AnyName(strict) => strict.verify_tls13_signature(message, certificate, signature),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Self::Unchecked(provider) => provider.signature_verification_algorithms.supported_schemes(),
            Self::AnyName(strict) => strict.supported_verify_schemes(),
        }
    }
}
