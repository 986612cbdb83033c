//! How a command reaches the fixed hosts of a sandbox.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use super::forward::{self, Destination};
use super::namespace::{self, Namespace};
use super::options::RoadOption;
use super::proxy;
use crate::failure::CommandFailure;
use crate::hosts_file::{DEFAULT_PATH, HostsLine, WrittenHosts, is_host_name};
use crate::target::Target;
use crate::trust::{TrustFiles, default_folder};

/// The port of the addresses that clients have built in.
const HTTPS_PORT: u16 = 443;
/// Maximum number of roads of one process that lead to addresses of their own.
const ADDRESSES_MAX: u8 = 32;
/// Exit codes of a command that cannot be started, as a shell has them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The fixed hosts of a sandbox, as its API shows them.
#[derive(Deserialize)]
struct FixedHosts {
    authority: String,
    hosts: Vec<FixedHost>,
}

#[derive(Deserialize)]
struct FixedHost {
    host: String,
}

/// Which road a command takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoadChoice {
    /// The road.
    pub road: RoadOption,
    /// The command reaches the sandbox and nothing else.
    pub offline: bool,
}

/// How a command reaches the fixed hosts. Dropping it ends the road.
#[derive(Debug)]
pub(crate) struct Road {
    name: &'static str,
    namespace: Option<Namespace>,
    variables: Vec<(String, String)>,
    destination: Destination,
    _hosts: Option<WrittenHosts>,
    _forwarders: JoinSet<()>,
}

impl Road {
    /// The road to the fixed hosts of a sandbox, and the variables that make programs trust its
    /// certificate. Its files are written into `folder`.
    ///
    /// # Errors
    /// The sandbox does not answer, or this machine does not allow the road.
    pub async fn to(target: &Target, choice: RoadChoice, folder: &Path) -> Result<Self, CommandFailure> {
        let answer = target.call(Method::GET, "/sandbox/v1/hosts", None, Duration::ZERO).await?;
        let tls: Option<FixedHosts> = serde_json::from_value(answer["tls"].clone()).map_err(|error| {
            CommandFailure::Failed(format!("the fixed hosts of the sandbox are odd: {error}"))
        })?;
        let hosts: Vec<String> =
            tls.iter().flat_map(|tls| &tls.hosts).map(|fixed| fixed.host.clone()).collect();
        if let Some(host) = hosts.iter().find(|host| !is_host_name(host)) {
            let why = format!("the sandbox has a fixed host that is no host name: {host:?}");
            return Err(CommandFailure::Failed(why));
        }
        let destination = Destination::of(target.server().base());
        let mut road = match hosts.is_empty() && !choice.offline {
            true => Self::new("direct", None, &destination),
            false => open(choice, &hosts, &destination, folder).await?,
        };
        match &tls {
            Some(tls) => road.variables.extend(trust_variables(folder, &tls.authority)?),
            None => {
                crate::err_line!(
                    "stagedoor run: the sandbox has no fixed hosts (stagedoor dev --tls --host HOST)"
                )
            }
        }
        Ok(road)
    }

    fn new(name: &'static str, namespace: Option<Namespace>, destination: &Destination) -> Self {
        let destination = destination.clone();
        Self {
            name,
            namespace,
            variables: Vec::new(),
            destination,
            _hosts: None,
            _forwarders: JoinSet::new(),
        }
    }

    /// Starts a command that takes the road. The second value serves the sockets of a network of its own.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(&self, mut command: Command) -> Result<(Child, JoinSet<()>), CommandFailure> {
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        command
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("STAGEDOOR_ROAD", self.name);
        let entered = self.namespace.as_ref().map(|namespace| namespace.enter(&mut command)).transpose();
        let entered = entered.map_err(|error| format!("failed to prepare the namespace: {error}"))?;
        let child = command.spawn().map_err(|error| CommandFailure::NotStarted {
            text: format!("{program}: {error}"),
            code: if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE },
        })?;
        let mut forwarders = JoinSet::new();
        let listeners = entered.map(namespace::Entered::listeners).transpose();
        let listeners = listeners.map_err(|error| format!("failed to listen in the namespace: {error}"))?;
        for listener in listeners.into_iter().flatten() {
            let listener = TcpListener::from_std(listener).map_err(|error| error.to_string())?;
            forwarders.spawn(forward::serve(listener, self.destination.clone()));
        }
        Ok((child, forwarders))
    }
}

/// Writes the trust files of an authority, and returns their variables.
fn trust_variables(folder: &Path, authority: &str) -> Result<Vec<(String, String)>, CommandFailure> {
    let files = TrustFiles::write(&folder.join("tls"), authority)
        .map_err(|error| format!("failed to write the trusted authorities: {error}"))?;
    // The truststore for Java is made once, beside the authority of this user.
    let java = default_folder().and_then(|folder| TrustFiles::java_variable_in(&folder, authority));
    let variables = files.variables().into_iter().chain(java);
    Ok(variables.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The first road that this machine allows, or the chosen one.
async fn open(
    choice: RoadChoice,
    hosts: &[String],
    destination: &Destination,
    folder: &Path,
) -> Result<Road, CommandFailure> {
    let wants = |road| match choice.road {
        RoadOption::Auto => true,
        RoadOption::Own => road != RoadOption::HostsFile,
        chosen => chosen == road,
    };
    let mut reasons = Vec::new();
    if choice.offline {
        let ports = [HTTPS_PORT, destination.port];
        return Namespace::new(hosts, Ipv4Addr::LOCALHOST, Some(ports.to_vec()), folder)
            .map(|namespace| Road::new("namespace", Some(namespace), destination))
            .map_err(|why| CommandFailure::Failed(format!("--offline: {why}")));
    }
    if wants(RoadOption::Namespace) || wants(RoadOption::HostsFile) {
        match reserve(destination).await {
            Ok((address, forwarders)) => {
                match Namespace::new(hosts, address, None, folder).map_err(|why| format!("namespace: {why}"))
                {
                    _ if !wants(RoadOption::Namespace) => {}
                    Ok(namespace) => {
                        let road = Road::new("namespace", Some(namespace), destination);
                        return Ok(Road { _forwarders: forwarders, ..road });
                    }
                    Err(why) => reasons.push(why),
                }
                match written(hosts, address) {
                    _ if !wants(RoadOption::HostsFile) => {}
                    Ok(written) => {
                        let road = Road::new("hosts-file", None, destination);
                        return Ok(Road { _hosts: Some(written), _forwarders: forwarders, ..road });
                    }
                    Err(why) => reasons.push(format!("hosts-file: {why}")),
                }
            }
            Err(why) => reasons.push(why),
        }
    }
    if !wants(RoadOption::Proxy) {
        return Err(CommandFailure::Failed(reasons.join("\n")));
    }
    let (address, forwarders) = proxy::start(hosts, destination).await?;
    for why in reasons {
        crate::err_line!("stagedoor run: {why}");
    }
    crate::err_line!(
        "stagedoor run: the fixed hosts are reached through HTTPS_PROXY, which not every program follows"
    );
    let variables = proxy::variables(address).into_iter().map(|(name, value)| (name.to_owned(), value));
    let road = Road::new("proxy", None, destination);
    Ok(Road { variables: variables.collect(), _forwarders: forwarders, ..road })
}

/// A loopback address whose port 443 leads to the sandbox.
async fn reserve(destination: &Destination) -> Result<(Ipv4Addr, JoinSet<()>), String> {
    if let (HTTPS_PORT, Some(address)) = (destination.port, destination.loopback()) {
        return Ok((address, JoinSet::new()));
    }
    // Each road has an address of its own. Only Linux has all of 127.0.0.0/8.
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = (0..ADDRESSES_MAX).map(|road| Ipv4Addr::new(127, 83 + road, high, low));
    let mut failed = None;
    for address in own.chain([Ipv4Addr::LOCALHOST]) {
        match TcpListener::bind(SocketAddr::from((address, HTTPS_PORT))).await {
            Ok(listener) => {
                let mut forwarders = JoinSet::new();
                forwarders.spawn(forward::serve(listener, destination.clone()));
                return Ok((address, forwarders));
            }
            Err(error) => failed = Some(error),
        }
    }
    let why = failed.map(|error| error.to_string()).unwrap_or_default();
    Err(format!(
        "port {HTTPS_PORT} cannot be used: {why}. As root allow it once: sysctl \
         net.ipv4.ip_unprivileged_port_start={HTTPS_PORT}. Or use --offline"
    ))
}

fn written(hosts: &[String], address: Ipv4Addr) -> Result<WrittenHosts, String> {
    WrittenHosts::write(Path::new(DEFAULT_PATH), &HostsLine::all(hosts, address.into())?)
}
