//! TLS to the server, by the `ssl…` parameters of the URL, which mean what they mean to libpq.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustls::RootCertStore;
use tls_files::{Check, PairFiles, client_config, read_roots, system_roots};
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Config, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The value of `sslrootcert` for the authorities that the system trusts.
const SYSTEM: &str = "system";
/// The protocol of a server that is connected to without a question for TLS (`sslnegotiation=direct`).
const PROTOCOL: &[u8] = b"postgresql";

/// The parameters about TLS of a URL.
#[derive(Debug, Default)]
struct Parameters {
    mode: Option<String>,
    roots: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// What is checked of the server's certificate.
#[derive(Clone, Debug)]
enum Trust {
    /// Nothing.
    Anyone,
    /// That an authority of a file has issued it, and whether for the host of the URL too.
    File { path: PathBuf, name: bool },
    /// That an authority of the system has issued it, for the host of the URL.
    System(Arc<RootCertStore>),
}

/// TLS to the server. The files are read for each connection, so that they can be replaced at any time.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    trust: Trust,
    own: Option<PairFiles>,
    /// Whether the connection begins with the handshake.
    direct: bool,
}

/// Takes the parameters about TLS out of a URL, and makes a configuration of the rest.
///
/// # Errors
/// A sentence for the operator that shows nothing secret of the URL.
pub(super) fn configure(url: &str) -> Result<(Config, Option<Tls>), String> {
    let (rest, parameters) = take_parameters(url)?;
    let mut config: Config = rest
        .parse()
        .map_err(|_| "the PostgreSQL URL is not postgres://user:password@host:port/database".to_owned())?;
    let named = parameters.roots.is_some();
    let (mode, check) = match parameters.mode.as_deref().unwrap_or("prefer") {
        "disable" => (SslMode::Disable, None),
        "prefer" => (SslMode::Prefer, Some(None)),
        // A named authority is there to be checked: libpq does the same.
        "require" => (SslMode::Require, Some(named.then_some(false))),
        "verify-ca" => (SslMode::Require, Some(Some(false))),
        "verify-full" => (SslMode::Require, Some(Some(true))),
        _ => return Err("sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned()),
    };
    let is_local = |host: &Host| matches!(host, Host::Unix(_));
    let hosts = config.get_hosts();
    // PostgreSQL has no TLS on a Unix socket, whose bytes do not leave the machine.
    let local = !hosts.is_empty() && hosts.iter().all(is_local);
    config.ssl_mode(if local { SslMode::Disable } else { mode });
    let Some(check) = check.filter(|_| !local) else { return Ok((config, None)) };
    let direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
    let tls = Tls {
        trust: trust(check, parameters.roots)?,
        own: own(parameters.certificate, parameters.key)?,
        direct,
    };
    tls.read()?;
    Ok((config, Some(tls)))
}

/// What is checked: nothing, or an authority and maybe the name.
fn trust(check: Option<bool>, roots: Option<String>) -> Result<Trust, String> {
    match (check, roots) {
        (None, _) => Ok(Trust::Anyone),
        (Some(name), Some(path)) if path != SYSTEM => Ok(Trust::File { path: path.into(), name }),
        (Some(true), _) => Ok(Trust::System(Arc::new(system_roots()))),
        // Public authorities issue certificates to every owner of a domain.
        (Some(false), _) => Err("this sslmode needs sslrootcert, the file of the authority that issued the \
                                 server's certificate. With the system's authorities use sslmode=verify-full"
            .to_owned()),
    }
}

fn own(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<PairFiles>, String> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(PairFiles { certificate, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err("sslcert needs sslkey, the file of its private key".to_owned()),
        (None, Some(_)) => Err("sslkey needs sslcert, the file of its certificate".to_owned()),
    }
}

/// Splits a URL into the parameters about TLS and the rest.
fn take_parameters(url: &str) -> Result<(String, Parameters), String> {
    // A password may contain a question mark.
    let login = url.find('@').map_or(0, |at| at + 1);
    let Some(mark) = url[login..].find('?').map(|at| login + at) else {
        return Ok((url.to_owned(), Parameters::default()));
    };
    let (mut found, mut rest) = (Parameters::default(), Vec::new());
    for part in url[mark + 1..].split('&') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let value = || {
            let decoded = percent_decode_str(value).decode_utf8();
            decoded.map(String::from).map_err(|_| format!("{name} is not UTF-8"))
        };
        match name {
            "sslmode" => found.mode = Some(value()?),
            "sslrootcert" => found.roots = Some(value()?),
            "sslcert" => found.certificate = Some(value()?.into()),
            "sslkey" => found.key = Some(value()?.into()),
            "sslcrl" | "sslcrldir" | "sslpassword" | "sslcertmode" | "sslsni" | "requiressl" => {
                return Err(format!("the URL's parameter {name} is not supported: leave it out"));
            }
            _ => rest.push(part),
        }
    }
    let joint = if rest.is_empty() { "" } else { "?" };
    Ok((format!("{}{joint}{}", &url[..mark], rest.join("&")), found))
}

impl Tls {
    /// Reads the files.
    fn read(&self) -> Result<MakeRustlsConnect, String> {
        let roots =
            |path: &Path| read_roots(path).map(Arc::new).map_err(|problem| format!("sslrootcert {problem}"));
        let check = match &self.trust {
            Trust::Anyone => Check::Nothing,
            Trust::File { path, name: false } => Check::Authority(roots(path)?),
            Trust::File { path, name: true } => Check::AuthorityAndName(roots(path)?),
            Trust::System(roots) => Check::AuthorityAndName(roots.clone()),
        };
        let own = self.own.as_ref().map(PairFiles::read).transpose();
        let own = own.map_err(|problem| format!("sslcert, sslkey {problem}"))?;
        let mut config =
            client_config(check, own).map_err(|error| format!("sslcert and sslkey do not fit: {error}"))?;
        if self.direct {
            config.alpn_protocols = vec![PROTOCOL.to_vec()];
        }
        Ok(MakeRustlsConnect::new(config))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect;
    type Error = std::io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        let mut made = self.read().map_err(std::io::Error::other)?;
        let Ok(connect) = MakeTlsConnect::<Socket>::make_tls_connect(&mut made, host);
        Ok(connect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_about_tls_are_taken_out_of_a_url() {
        let (rest, found) =
            take_parameters("postgres://u:p?x@h/d?a=1&sslmode=verify-full&sslrootcert=%2Fca.pem&b=2")
                .expect("good");
        assert_eq!(rest, "postgres://u:p?x@h/d?a=1&b=2");
        assert_eq!((found.mode.as_deref(), found.roots.as_deref()), (Some("verify-full"), Some("/ca.pem")));
        assert_eq!(take_parameters("postgres://h/d?sslmode=disable").expect("good").0, "postgres://h/d");
        assert_eq!(take_parameters("postgres://h/d").expect("good").0, "postgres://h/d");
    }

    #[test]
    fn a_configuration_that_cannot_work_is_refused_with_its_remedy() {
        for (query, word) in [
            ("sslmode=allow", "verify-full"),
            ("sslmode=verify-ca", "sslrootcert"),
            ("sslmode=verify-ca&sslrootcert=system", "verify-full"),
            ("sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "/nowhere/ca.pem"),
            ("sslmode=require&sslcert=/nowhere/a.pem", "sslkey"),
            ("sslmode=require&sslkey=/nowhere/a.key", "sslcert"),
            ("sslmode=require&sslcert=/nowhere/a.pem&sslkey=/nowhere/a.key", "/nowhere/a.pem"),
            ("sslcrl=/x", "sslcrl"),
        ] {
            let why = configure(&format!("postgres://u:hunter2@h/d?{query}")).expect_err(query);
            assert!(why.contains(word) && !why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn a_unix_socket_has_no_tls() {
        for (url, has_tls) in [
            ("postgres://u@h/d", true),
            ("postgres:///d?host=/run/postgresql", false),
            ("postgres:///d?host=/run/postgresql&sslmode=require", false),
            ("postgres://u@%2Frun%2Fpostgresql/d", false),
            ("postgres://u@h/d?sslmode=disable", false),
        ] {
            assert_eq!(configure(url).expect(url).1.is_some(), has_tls, "{url}");
        }
    }
}
