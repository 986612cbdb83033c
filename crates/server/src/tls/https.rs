//! The TLS options of `serve`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use http_server::terminator::{PlainHttp, Terminator};
use tls_files::PairFiles;

use super::served::ServedCertificate;

/// The heading of these options in the help.
const HEADING: &str = "TLS";

/// The TLS of `stagedoor serve`
#[derive(Debug, Args)]
pub struct HttpsOptions {
    /// Speaks HTTPS on --listen and --platform-listen, with the certificate of this file (PEM), and after it
    /// those of the authorities between it and the root. A changed file is read within seconds, and at
    /// SIGHUP. If it cannot be used, the former certificate stays, and the log says why.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_TLS_CERTIFICATE", requires = "tls_key", help_heading = HEADING)]
    tls_certificate: Option<PathBuf>,

    /// The private key of --tls-certificate (PEM, without a passphrase).
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_TLS_KEY", requires = "tls_certificate", help_heading = HEADING)]
    tls_key: Option<PathBuf>,
}

/// HTTPS with the operator's certificate.
#[derive(Clone, Debug)]
pub struct HttpsSettings {
    /// Ends TLS.
    pub terminator: Terminator,
    /// The certificate.
    pub certificate: Arc<ServedCertificate>,
}

impl HttpsOptions {
    /// Reads the certificate; `None` if there is none.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub fn settings(&self) -> Result<Option<HttpsSettings>, String> {
        let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) else { return Ok(None) };
        HttpsSettings::open(PairFiles { certificate: certificate.clone(), key: key.clone() }).map(Some)
    }
}

impl HttpsSettings {
    /// HTTPS with the certificate of these files.
    ///
    /// # Errors
    /// A sentence for the operator that names the file.
    pub fn open(files: PairFiles) -> Result<Self, String> {
        let certificate = Arc::new(ServedCertificate::open(files)?);
        let terminator = Terminator::new(certificate.clone(), PlainHttp::Refused)?;
        Ok(Self { terminator, certificate })
    }
}
