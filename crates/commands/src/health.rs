//! `stagedoor health`: the health of a node, for the health checks of containers, which have no `curl`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::Args;
use http::{HeaderMap, Method};

use crate::client::Server;
use crate::failure::CommandFailure;

/// The end of the help of `stagedoor health`.
pub const HELP: &str = "\
Examples:
  stagedoor health                                     whether the node on this machine takes new work
  stagedoor health --live                              whether its process answers: restart it if it does not
  stagedoor health --server https://api.example.com

Exit codes: 0 it does, 1 the node answered that it does not, 2 wrong use, 3 no node was reached.";

/// `stagedoor health`
#[derive(Clone, Debug, Args)]
pub struct HealthOptions {
    /// Asks whether the process answers, instead of whether the node takes new work.
    #[arg(long)]
    live: bool,

    /// The base URL of the node. Default: --listen on this machine.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_SERVER")]
    server: Option<String>,

    /// The node's --listen address.
    #[arg(long, value_name = "ADDR", env = "STAGEDOOR_LISTEN", default_value = "127.0.0.1:8080")]
    listen: String,
}

/// Runs the command, and returns its output.
///
/// # Errors
/// [`CommandFailure`].
pub async fn run(options: &HealthOptions) -> Result<String, CommandFailure> {
    let url = options.server.clone().unwrap_or_else(|| url_on_this_machine(&options.listen));
    let server = Server::parse(&url).map_err(CommandFailure::Usage)?;
    let (path, word) = if options.live { ("/health/live", "live") } else { ("/health/ready", "ready") };
    server.call(Method::GET, path, HeaderMap::new(), None, Duration::ZERO).await?;
    Ok(format!("{} is {word}\n", server.base()))
}

/// The URL by which a program on the same machine reaches a listener. A listener on all addresses is reached
/// over loopback.
fn url_on_this_machine(listen: &str) -> String {
    let Ok(address) = listen.parse::<SocketAddr>() else {
        let port = listen.rsplit(':').next().unwrap_or(listen);
        return format!("http://127.0.0.1:{port}");
    };
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_reached_on_its_own_machine() {
        for (listen, url) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:8080", "http://[::1]:8080"),
            ("10.0.0.11:8080", "http://10.0.0.11:8080"),
            ("localhost:9000", "http://127.0.0.1:9000"),
            ("9000", "http://127.0.0.1:9000"),
        ] {
            assert_eq!(url_on_this_machine(listen), url, "{listen}");
        }
    }
}
