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
    /// Nothing. Only listeners on the way are kept out, nobody who can change what is sent.
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
        Check::Nothing => builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider))),
        Check::Authority(roots) => {
            let strict = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
            let strict = strict.map_err(|error| Error::General(error.to_string()))?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName(strict)))
        }
    };
    match own {
        None => Ok(builder.with_no_client_auth()),
        Some(Pair { chain, key }) => builder.with_client_auth_cert(chain, key),
    }
}

/// Accepts every certificate.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    // A signature proves nothing with a key that anybody may have.
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts a certificate for any name, if a trusted authority has issued it.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The strict check looks at the name last.
        match self.0.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
