//! Reserves an address before the node starts, and says what to do about an occupied one.

use std::io;
use std::net::SocketAddr;

use commands::state_file::{self, RunningSandbox};
use tokio::net::{TcpListener, TcpSocket};

/// Maximum number of connections that the system accepts in advance. When all clients reconnect at once, each
/// further connection waits a second for its next try. Linux uses the smaller of this and
/// `net.core.somaxconn`.
const ACCEPT_QUEUE_MAX: u32 = 4_096;

/// An address of this process, which refuses connections until [`Reserved::listen`].
pub(crate) struct Reserved {
    /// The address, with the port that the system picked for port 0.
    pub address: SocketAddr,
    option: &'static str,
    socket: TcpSocket,
}

impl Reserved {
    /// Reserves the address of an option.
    ///
    /// # Errors
    /// A sentence with the remedy.
    pub fn new(option: &'static str, listen: SocketAddr) -> Result<Self, String> {
        let failed = |error| failed(option, listen, &error);
        let socket = if listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(failed)?;
        // With SO_REUSEADDR a restarted node can listen while connections of the old process are closing.
        socket.set_reuseaddr(true).map_err(failed)?;
        socket.bind(listen).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { address, option, socket })
    }

    /// Accepts connections from now on.
    ///
    /// # Errors
    /// As [`Reserved::new`].
    pub fn listen(self) -> Result<TcpListener, String> {
        let Self { address, option, socket } = self;
        socket.listen(ACCEPT_QUEUE_MAX).map_err(|error| failed(option, address, &error))
    }
}

fn failed(option: &str, listen: SocketAddr, error: &io::Error) -> String {
    let begin = format!("cannot listen on {listen}: {error}");
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let holder = holder(state_file::running(&state_file::folder()), listen.port());
            format!("{begin}. {}", remedy(option, listen, holder.as_ref()))
        }
        io::ErrorKind::PermissionDenied => {
            format!("{begin}. Ports below 1024 need a privilege: use `{option} {}`", free(listen))
        }
        _ => begin,
    }
}

/// The sandbox of this user that listens on a port.
fn holder(running: Vec<RunningSandbox>, port: u16) -> Option<RunningSandbox> {
    running.into_iter().find(|sandbox| {
        [&sandbox.base_url, &sandbox.platform_url].into_iter().any(|url| {
            let listens = url.rsplit_once(':').and_then(|(_, given)| given.parse::<u16>().ok());
            listens == Some(port)
        })
    })
}

fn remedy(option: &str, listen: SocketAddr, holder: Option<&RunningSandbox>) -> String {
    let other = format!("`{option} {}` picks a free port", free(listen));
    match holder {
        Some(RunningSandbox { name, pid, .. }) => format!(
            "The sandbox {name} has the address: the commands use it already, and `kill {pid}` ends it. For a \
             second sandbox, {other}, and `--name NAME` tells them apart"
        ),
        None => format!("Another program has the address. {other}"),
    }
}

/// The same address with port 0.
fn free(listen: SocketAddr) -> SocketAddr {
    SocketAddr::new(listen.ip(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_an_address_is_named() {
        let sandbox = |name: &str, port: u16, platform: u16| RunningSandbox {
            name: name.to_owned(),
            pid: 17,
            base_url: format!("http://127.0.0.1:{port}"),
            platform_url: format!("http://127.0.0.1:{platform}"),
            operator_key: String::new(),
        };
        let running = || vec![sandbox("one", 8080, 8080), sandbox("two", 9000, 9001)];
        for (port, name) in [(8080, Some("one")), (9001, Some("two")), (80, None)] {
            assert_eq!(holder(running(), port).map(|sandbox| sandbox.name).as_deref(), name, "{port}");
        }
        let listen = "127.0.0.1:8080".parse().expect("an address");
        let text = remedy("--listen", listen, holder(running(), 8080).as_ref());
        assert!(text.contains("sandbox one") && text.contains("kill 17"), "{text}");
        assert!(text.contains("--listen 127.0.0.1:0"), "{text}");
        let text = remedy("--platform-listen", listen, None);
        assert!(text.contains("Another program") && text.contains("--platform-listen 127.0.0.1:0"), "{text}");
    }
}
