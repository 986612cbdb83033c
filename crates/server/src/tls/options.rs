//! The options of TLS.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use commands::hosts_file::{self, FixedName, HostsLine};
use commands::trust::{self, TrustFiles};
use http_server::terminator::{PlainHttp, Terminator};
use service::Clock;

use super::authority::Authority;
use super::certificates::Certificates;

/// The heading of these options in the help.
const HEADING: &str = "TLS and fixed hosts";
/// Maximum number of fixed hosts.
const FIXED_HOSTS_MAX: usize = 64;

/// The TLS of `stagedoor dev`
#[derive(Debug, Args)]
pub struct TlsOptions {
    /// Answers HTTPS as well as HTTP on --listen, with a certificate of a local authority. The authority is
    /// made once for each user, and its key never leaves this machine. Overview and --json show what makes a
    /// program trust it.
    #[arg(long, env = "STAGEDOOR_TLS", help_heading = HEADING)]
    tls: bool,

    /// A host that clients have built in, as in `api.example`, and after `=` the address that it shall have
    /// on this machine (default: the loopback address). Repeat it, or separate hosts with commas. Built-in
    /// addresses have port 443: give --listen 127.0.0.1:443, or use `stagedoor run`.
    #[arg(long, value_name = "HOST", env = "STAGEDOOR_HOST", value_delimiter = ',', requires = "tls", help_heading = HEADING)]
    host: Vec<FixedName>,

    /// The folder of the local authority. Default: stagedoor/tls in the user's data folder, which is
    /// $XDG_DATA_HOME or ~/.local/share.
    #[arg(long, value_name = "DIR", env = "STAGEDOOR_TLS_FOLDER", help_heading = HEADING)]
    tls_folder: Option<PathBuf>,

    /// Writes the fixed hosts into the hosts file, and takes them back at the end. After a crash the next
    /// start of `stagedoor dev` takes them back. Mostly needs root.
    #[arg(long, requires = "host", help_heading = HEADING)]
    write_hosts: bool,

    /// The hosts file.
    #[arg(long, value_name = "FILE", env = "STAGEDOOR_HOSTS_FILE", default_value = hosts_file::DEFAULT_PATH, help_heading = HEADING)]
    pub hosts_file: PathBuf,
}

/// The TLS of a node.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// Ends TLS.
    pub terminator: Terminator,
    /// The certificate of the local authority, in PEM.
    pub authority: String,
    /// The files that make programs trust it.
    pub trust: TrustFiles,
    /// The fixed hosts.
    pub lines: Vec<HostsLine>,
    /// Whether the hosts file is written.
    pub write_hosts: bool,
}

impl TlsOptions {
    /// The names of the fixed hosts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.host.iter().map(|fixed| fixed.host.as_str())
    }

    /// The TLS of a sandbox that listens on an address and has further names; `None` without `--tls`. Makes
    /// the authority, if there is none.
    ///
    /// # Errors
    /// A sentence that names the option.
    pub fn settings(&self, listen: IpAddr, further: &[String]) -> Result<Option<TlsSettings>, String> {
        if !self.tls {
            return Ok(None);
        }
        if self.host.len() > FIXED_HOSTS_MAX {
            return Err(format!("--host: at most {FIXED_HOSTS_MAX}"));
        }
        let folder = self.tls_folder.clone().or_else(trust::default_folder);
        let folder = folder.ok_or("--tls-folder: say where to keep the local authority, HOME is not set")?;
        let clock = Clock::system();
        let authority = Authority::open(&folder, clock.now())?;
        let pem = authority.pem();
        let mut names: Vec<_> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        names.extend((!listen.is_unspecified()).then(|| listen.to_string()));
        names.extend(self.names().map(str::to_owned));
        names.extend_from_slice(further);
        names.sort();
        names.dedup();
        let terminator =
            Terminator::new(Arc::new(Certificates::new(authority, names, clock)?), PlainHttp::Served)?;
        let line =
            |fixed: &FixedName| HostsLine::new(&fixed.host, fixed.address.unwrap_or_else(|| reached(listen)));
        let lines = self.host.iter().map(line).collect::<Result<_, _>>()?;
        let trust = TrustFiles::write(&folder, &pem)
            .map_err(|error| format!("--tls-folder {}: {error}", folder.display()))?;
        let write_hosts = self.write_hosts;
        Ok(Some(TlsSettings { terminator, authority: pem, trust, lines, write_hosts }))
    }
}

/// The address by which this machine reaches a listener.
fn reached(listen: IpAddr) -> IpAddr {
    if listen.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { listen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_host_is_a_name_and_maybe_an_address() {
        for (text, expected) in [
            ("api.example", Some(("api.example", None))),
            ("API.Example.", Some(("api.example", None))),
            ("api.example=127.0.0.9", Some(("api.example", Some("127.0.0.9")))),
            ("api.example=::1", Some(("api.example", Some("::1")))),
            ("api_1.example", Some(("api_1.example", None))),
            ("", None),
            (".", None),
            ("api..example", None),
            ("-api.example", None),
            ("api.example:443", None),
            ("https://api.example", None),
            ("api.example=localhost", None),
            ("127.0.0.1", None),
            ("하늘.example", None),
            ("a b", None),
        ] {
            let expected = expected.map(|(host, address): (&str, Option<&str>)| FixedName {
                host: host.to_owned(),
                address: address.map(|address| address.parse().expect("an address")),
            });
            assert_eq!(text.parse::<FixedName>().ok(), expected, "{text}");
        }
        assert!("a".repeat(64).parse::<FixedName>().is_err());
        assert!(["a"; 128].join(".").parse::<FixedName>().is_err());
    }
}
