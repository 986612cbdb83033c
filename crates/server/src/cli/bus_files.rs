//! The files that a node needs to reach NATS.

use std::path::PathBuf;

use bus::{Access, Address};
use clap::Args;
use tls_files::PairFiles;

use super::common::NODES;

/// The files for NATS.
#[derive(Debug, Args)]
pub struct BusFileOptions {
    /// The authorities that issue the certificates of NATS (PEM). TLS is then demanded. Default for tls://:
    /// the authorities that the system trusts.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_BUS_CA", help_heading = NODES)]
    bus_ca: Option<PathBuf>,

    /// The client certificate for NATS (PEM). TLS is then demanded.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_BUS_CERTIFICATE", requires = "bus_key", help_heading = NODES)]
    bus_certificate: Option<PathBuf>,

    /// The private key of --bus-certificate (PEM, without a passphrase).
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_BUS_KEY", requires = "bus_certificate", help_heading = NODES)]
    bus_key: Option<PathBuf>,

    /// Signs in to NATS by key: the seed of an nkey (SU…), or the .creds file of a user, as nsc writes it.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_BUS_CREDENTIALS", help_heading = NODES)]
    bus_credentials: Option<PathBuf>,
}

impl BusFileOptions {
    /// The address with these files, which are read once to see whether they are good.
    ///
    /// # Errors
    /// A sentence for the operator that names the file.
    pub(super) fn access(&self, address: Address) -> Result<Access, String> {
        let pair = self.bus_certificate.clone().zip(self.bus_key.clone());
        let access = Access {
            address,
            authorities: self.bus_ca.clone(),
            certificate: pair.map(|(certificate, key)| PairFiles { certificate, key }),
            credentials: self.bus_credentials.clone(),
        };
        access.check().map_err(|error| error.to_string())?;
        Ok(access)
    }
}
