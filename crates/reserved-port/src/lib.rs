//! A port of loopback that is kept for a server which starts later, or again.
//!
//! Otherwise the system may give the port of a server that does not run to another program.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A free port, usually on loopback. Until this value is dropped, Linux gives the port only to sockets that
/// name it.
#[derive(Debug)]
pub struct ReservedPort {
    _bound: TcpSocket,
    address: SocketAddr,
}

impl ReservedPort {
    /// Reserves a port of `127.0.0.1`.
    ///
    /// # Panics
    /// When no port is free.
    pub fn take() -> Self {
        Self::at(Ipv4Addr::LOCALHOST)
    }

    /// Reserves a port of an address.
    ///
    /// # Panics
    /// When no port is free.
    pub fn at(address: Ipv4Addr) -> Self {
        let bound = TcpSocket::new_v4().expect("a socket");
        // With this option, sockets that do not listen share an address with one that does.
        bound.set_reuseaddr(true).expect("an option of every system");
        bound.bind(SocketAddr::from((address, 0))).expect("a free port");
        let address = bound.local_addr().expect("an address");
        Self { _bound: bound, address }
    }

    /// Where the server will listen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of one of its paths, which begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::ReservedPort;

    /// Several times the number of ports that the system gives.
    const TRIES: usize = 150_000;

    #[tokio::test]
    async fn only_a_server_that_names_the_port_listens_there_again_and_again() {
        let port = ReservedPort::take();
        for _ in 0..2 {
            assert!(TcpStream::connect(port.address()).is_err(), "no server listens");
            let server = TcpListener::bind(port.address()).expect("the port is for this server");
            let _client = TcpStream::connect(port.address()).expect("the server listens");
            server.accept().expect("a client");
        }
    }

    #[tokio::test]
    async fn the_system_gives_the_port_to_no_other_socket() {
        let port = ReservedPort::take();
        for _ in 0..TRIES {
            let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
            assert_ne!(other.local_addr().expect("an address"), port.address());
        }
    }
}
