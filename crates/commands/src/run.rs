//! `stagedoor run`: starts a command that reaches a sandbox under the hosts that it has built in.

mod forward;
mod namespace;
mod options;
mod own_sandbox;
mod proxy;
mod signals;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use temporary_folder::TemporaryFolder;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::failure::CommandFailure;
use crate::hosts_file::{DEFAULT_PATH, HostsLine, WrittenHosts, is_host_name};
use crate::target::Target;
use crate::trust::{TrustFiles, default_folder};
use forward::Destination;
use namespace::Namespace;
use options::RoadOption;
use own_sandbox::CommandSandbox;
use signals::Signals;

pub use options::{HELP, RunOptions};

/// The port of the addresses that clients have built in.
const HTTPS_PORT: u16 = 443;
/// Exit codes of a command that cannot be started, as a shell has them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// The exit code of a command that a signal ended is this and the number of the signal.
const SIGNALLED: i32 = 128;

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

/// How the command reaches the fixed hosts. Dropping it ends the road.
struct Road {
    name: &'static str,
    namespace: Option<Namespace>,
    variables: Vec<(&'static str, String)>,
    _hosts: Option<WrittenHosts>,
    _forwarders: JoinSet<()>,
}

/// Runs a command.
///
/// # Errors
/// [`CommandFailure`]: the command was not started, or its exit code is not 0.
pub async fn run(options: &RunOptions) -> Result<(), CommandFailure> {
    let mut signals = Signals::listen()?;
    let folder = TemporaryFolder::create("stagedoor-run-");
    let folder = folder.map_err(|error| format!("failed to create a temporary folder: {error}"))?;
    let (own, target) = match existing(options).await? {
        Some(target) => (None, target),
        None => {
            let own = CommandSandbox::start(options, folder.path()).await?;
            let target = Target::new(&own.base_url, &own.operator_key)?;
            (Some(own), target)
        }
    };
    let ended = with_target(options, &target, folder.path(), &mut signals).await;
    if let Some(own) = own {
        own.stop().await;
    }
    ended
}

/// The sandbox that the options name, or the one that runs. `None` if a new one is to be started.
async fn existing(options: &RunOptions) -> Result<Option<Target>, CommandFailure> {
    let RunOptions { target, host, profile, data, .. } = options;
    let names_one = target.server.is_some() || target.sandbox.is_some() || target.world.is_some();
    let starts_one = !host.is_empty() || profile.is_some() || data.is_some();
    if names_one && starts_one {
        let text = "--host, --profile and --data start a new sandbox: leave them out, or --server, --sandbox and --world";
        return Err(CommandFailure::Usage(text.to_owned()));
    }
    if starts_one {
        return Ok(None);
    }
    match target.find().await {
        Ok(target) => Ok(Some(target)),
        Err(CommandFailure::Unreachable(_)) if !names_one => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn with_target(
    options: &RunOptions,
    target: &Target,
    folder: &Path,
    signals: &mut Signals,
) -> Result<(), CommandFailure> {
    let answer = target.call(Method::GET, "/sandbox/v1/hosts", None, Duration::ZERO).await?;
    let tls: Option<FixedHosts> = serde_json::from_value(answer["tls"].clone()).map_err(|error| {
        CommandFailure::Failed(format!("the fixed hosts of the sandbox are odd: {error}"))
    })?;
    let mut variables = settings(target).await?;
    let hosts: Vec<String> = tls.iter().flat_map(|tls| &tls.hosts).map(|fixed| fixed.host.clone()).collect();
    if let Some(host) = hosts.iter().find(|host| !is_host_name(host)) {
        let why = format!("the sandbox has a fixed host that is no host name: {host:?}");
        return Err(CommandFailure::Failed(why));
    }
    if let Some(tls) = &tls {
        variables.extend(trust_variables(folder, &tls.authority)?);
    }
    let destination = Destination::of(target.server().base());
    let road = match hosts.is_empty() && !options.offline {
        true => Road::direct(),
        false => road(options, &hosts, &destination, folder).await?,
    };
    if hosts.is_empty() && tls.is_none() {
        eprintln!("stagedoor run: the sandbox has no fixed hosts (stagedoor dev --tls --host HOST)");
    }
    variables.extend(road.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let (child, _forwarders) = start(options, &road, &variables, &destination)?;
    let status = signals.pass_on(child).await;
    let status = status.map_err(|error| format!("failed to wait for the command: {error}"))?;
    match exit_code(status) {
        0 => Ok(()),
        code => Err(CommandFailure::Ended(code)),
    }
}

/// The settings of a bot, as `stagedoor env` prints them, and the address of the sandbox for other commands.
async fn settings(target: &Target) -> Result<BTreeMap<String, String>, CommandFailure> {
    let body = serde_json::json!({});
    let answer = target.call(Method::POST, "/sandbox/v1/environment", Some(&body), Duration::ZERO).await?;
    let fields = answer.as_object().into_iter().flatten();
    let named = fields.filter_map(|(name, value)| Some((variable(name), value.as_str()?.to_owned())));
    let mut variables: BTreeMap<_, _> = named.collect();
    variables.insert("STAGEDOOR_SERVER".to_owned(), target.server().base().to_owned());
    variables.insert("STAGEDOOR_OPERATOR_KEY".to_owned(), target.operator_key().to_owned());
    Ok(variables)
}

/// `STAGEDOOR_BASE_URL` for `baseUrl`.
fn variable(field: &str) -> String {
    let mut name = "STAGEDOOR_".to_owned();
    for letter in field.chars() {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
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

impl Road {
    /// A command that needs no road.
    fn direct() -> Self {
        Self::new("direct", None, Vec::new())
    }

    fn new(name: &'static str, namespace: Option<Namespace>, variables: Vec<(&'static str, String)>) -> Self {
        Self { name, namespace, variables, _hosts: None, _forwarders: JoinSet::new() }
    }
}

/// The first road that this machine allows, or the chosen one.
async fn road(
    options: &RunOptions,
    hosts: &[String],
    destination: &Destination,
    folder: &Path,
) -> Result<Road, CommandFailure> {
    let wants = |road| options.road == road || options.road == RoadOption::Auto;
    let mut reasons = Vec::new();
    if options.offline {
        let ports = [HTTPS_PORT, destination.port];
        return Namespace::new(hosts, Ipv4Addr::LOCALHOST, Some(ports.to_vec()), folder)
            .map(|namespace| Road::new("namespace", Some(namespace), Vec::new()))
            .map_err(|why| CommandFailure::Failed(format!("--offline: {why}")));
    }
    if wants(RoadOption::Namespace) || wants(RoadOption::HostsFile) {
        match reserve(destination).await {
            Ok((address, forwarders)) => {
                match Namespace::new(hosts, address, None, folder).map_err(|why| format!("namespace: {why}"))
                {
                    _ if !wants(RoadOption::Namespace) => {}
                    Ok(namespace) => {
                        let road = Road::new("namespace", Some(namespace), Vec::new());
                        return Ok(Road { _forwarders: forwarders, ..road });
                    }
                    Err(why) => reasons.push(why),
                }
                match written(hosts, address) {
                    _ if !wants(RoadOption::HostsFile) => {}
                    Ok(written) => {
                        let road = Road::new("hosts-file", None, Vec::new());
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
        eprintln!("stagedoor run: {why}");
    }
    eprintln!(
        "stagedoor run: the fixed hosts are reached through HTTPS_PROXY, which not every program follows"
    );
    let road = Road::new("proxy", None, proxy::variables(address));
    Ok(Road { _forwarders: forwarders, ..road })
}

/// A loopback address whose port 443 leads to the sandbox.
async fn reserve(destination: &Destination) -> Result<(Ipv4Addr, JoinSet<()>), String> {
    if let (HTTPS_PORT, Some(address)) = (destination.port, destination.loopback()) {
        return Ok((address, JoinSet::new()));
    }
    // Each command has an address of its own. Only Linux has all of 127.0.0.0/8.
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let mut failed = None;
    for address in [Ipv4Addr::new(127, 83, high, low), Ipv4Addr::LOCALHOST] {
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

/// Starts the command, and serves the sockets of its own network, if it has one.
fn start(
    options: &RunOptions,
    road: &Road,
    variables: &BTreeMap<String, String>,
    destination: &Destination,
) -> Result<(Child, JoinSet<()>), CommandFailure> {
    let mut command = Command::new(&options.command[0]);
    command.args(&options.command[1..]).envs(variables).env("STAGEDOOR_ROAD", road.name);
    let entered = road.namespace.as_ref().map(|namespace| namespace.enter(&mut command)).transpose();
    let entered = entered.map_err(|error| format!("failed to prepare the namespace: {error}"))?;
    let program = options.command[0].to_string_lossy();
    let child = command.spawn().map_err(|error| CommandFailure::NotStarted {
        text: format!("{program}: {error}"),
        code: if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE },
    })?;
    let mut forwarders = JoinSet::new();
    let listeners = entered.map(namespace::Entered::listeners).transpose();
    for listener in listeners
        .map_err(|error| format!("failed to listen in the namespace: {error}"))?
        .into_iter()
        .flatten()
    {
        let listener = TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        forwarders.spawn(forward::serve(listener, destination.clone()));
    }
    Ok((child, forwarders))
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_variables() {
        assert_eq!(variable("baseUrl"), "STAGEDOOR_BASE_URL");
        assert_eq!(variable("clientId"), "STAGEDOOR_CLIENT_ID");
    }
}
