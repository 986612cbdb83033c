//! Who this client is, and which servers it trusts: the address, and the files that belong to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use tls_files::{BadFile, Check, PairFiles, client_config, read_roots, system_roots};

use crate::address::Address;
use crate::credentials::{BadCredentials, Credentials};

/// The address of NATS and its files. The files are read for each connection, so that they can be replaced at
/// any time. `Debug` hides the login.
#[derive(Clone, Debug)]
pub struct Access {
    /// The address.
    pub address: Address,
    /// The file of the authorities that issue the servers' certificates; if not given, those of the system.
    /// If it is given, TLS is always spoken.
    pub authorities: Option<PathBuf>,
    /// A client certificate and its key. If it is given, TLS is always spoken.
    pub certificate: Option<PairFiles>,
    /// A file with the seed of an nkey, or with a JWT and a seed.
    pub credentials: Option<PathBuf>,
}

/// A file of an [`Access`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadAccess {
    /// The file of the authorities.
    #[error("the authorities of NATS: {0}")]
    Authorities(BadFile),
    /// The client certificate or its key.
    #[error("the client certificate for NATS: {0}")]
    Certificate(BadFile),
    /// The certificate and the key are no pair, or there are no authorities.
    #[error("the client certificate for NATS and its key do not fit: {0}")]
    Pair(rustls::Error),
    /// The seed or the JWT.
    #[error("the credentials for NATS: {0}")]
    Credentials(#[from] BadCredentials),
}

impl From<Address> for Access {
    fn from(address: Address) -> Self {
        Self { address, authorities: None, certificate: None, credentials: None }
    }
}

impl Access {
    /// Reads every file.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn check(&self) -> Result<(), BadAccess> {
        if self.demands_tls() {
            self.tls()?;
        }
        self.credentials()?;
        Ok(())
    }

    /// Whether TLS is spoken with servers that do not demand it.
    pub(crate) fn demands_tls(&self) -> bool {
        self.address.tls || self.authorities.is_some() || self.certificate.is_some()
    }

    pub(crate) fn tls(&self) -> Result<Arc<ClientConfig>, BadAccess> {
        let roots = match &self.authorities {
            Some(path) => read_roots(path).map_err(BadAccess::Authorities)?,
            None => system_roots(),
        };
        let own = self.certificate.as_ref().map(PairFiles::read).transpose();
        let own = own.map_err(BadAccess::Certificate)?;
        let config = client_config(Check::AuthorityAndName(Arc::new(roots)), own).map_err(BadAccess::Pair)?;
        Ok(Arc::new(config))
    }

    pub(crate) fn credentials(&self) -> Result<Option<Credentials>, BadCredentials> {
        self.credentials.as_deref().map(Path::new).map(Credentials::read).transpose()
    }
}
