//! The hosts that clients have built in, and the local authority of their certificate.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

/// The port that an address without a port has.
const HTTPS_PORT: u16 = 443;

/// The fixed hosts of a sandbox with TLS.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FixedHosts {
    /// The certificate of the local authority, in PEM. A client must trust it.
    pub authority: String,
    /// The hosts. A client must reach the sandbox by their names.
    pub hosts: Vec<FixedHost>,
}

/// A host that clients have built in.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FixedHost {
    /// The name.
    pub host: String,
    /// The address that the name shall have on the machine of the sandbox.
    pub address: IpAddr,
    /// The base URL, with the port of the sandbox if it is not 443.
    pub url: String,
}

impl FixedHosts {
    /// The hosts of a sandbox that listens on a port.
    pub fn new(authority: String, port: u16, hosts: impl Iterator<Item = (String, IpAddr)>) -> Self {
        let hosts = hosts.map(|(host, address)| {
            let url =
                if port == HTTPS_PORT { format!("https://{host}") } else { format!("https://{host}:{port}") };
            FixedHost { host, address, url }
        });
        Self { authority, hosts: hosts.collect() }
    }
}
