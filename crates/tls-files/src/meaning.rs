//! The sentence for a failed handshake.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

/// Maximum number of names of a certificate in a sentence.
const NAMES_MAX: usize = 5;
/// Maximum number of causes of an error that are looked at.
const CAUSES_MAX: usize = 8;

/// What a failed handshake means, and what to do; `None` if TLS is not the cause. The names of a certificate
/// are the peer's texts.
pub fn meaning(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    for _ in 0..CAUSES_MAX {
        let cause = next?;
        if let Some(cause) = cause.downcast_ref::<rustls::Error>() {
            return Some(of(cause));
        }
        // An I/O error does not name its content as its cause.
        let inside = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inside {
            Some(inside) => Some(inside as &(dyn Error + 'static)),
            None => cause.source(),
        };
    }
    None
}

fn of(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => of_certificate(error),
        rustls::Error::InvalidMessage(_) => "the peer does not speak TLS on this port".to_owned(),
        rustls::Error::AlertReceived(alert) => of_alert(*alert),
        other => format!("the TLS handshake failed: {other}"),
    }
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired: renew it".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: compare the clocks of both machines".to_owned()
        }
        CertificateError::NotValidForName => {
            "the server's certificate is not for this host: connect by a name that it has".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "the server's certificate has no name: its subject alternative names must have the host"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<_> = presented.iter().take(NAMES_MAX).map(|name| plain_name(name)).collect();
            format!("the server's certificate is for {}: connect by a name that it has", names.join(", "))
        }
        // Another authority with the name of a trusted one has signed it.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no trusted authority has issued the server's certificate: name the authority's file".to_owned()
        }
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "the server uses the certificate of an authority as its own: let the authority issue one for it"
                .to_owned()
        }
        other => format!("the server's certificate cannot be used: {other}"),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => "the server wants a client certificate".to_owned(),
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::DecryptError => {
            format!(
                "the server refuses this client's certificate ({alert:?}): use one of an authority that it trusts"
            )
        }
        other => format!("the server ended the TLS handshake ({other:?})"),
    }
}

/// The name in `DnsName("a.example")`, or the text as it is.
fn plain_name(presented: &str) -> String {
    presented.split('"').nth(1).unwrap_or(presented).to_owned()
}
