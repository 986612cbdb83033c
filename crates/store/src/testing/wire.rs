//! A wire to a server of the tests, PostgreSQL or another, that can be cut and mended.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::Fresh;

/// What the network does between a store and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Everything gets through.
    Up,
    /// Connections end, and new ones are ended at once.
    Down,
    /// Nothing gets through and nobody is told.
    Silent,
}

/// A wire that every connection to [`Wire::url`] goes over.
#[derive(Debug)]
pub struct Wire {
    network: watch::Sender<Network>,
    url: String,
    past: String,
}

impl Wire {
    /// A wire to this place on the PostgreSQL server.
    ///
    /// # Panics
    /// When the place is on SQLite.
    pub async fn to(fresh: &Fresh) -> Self {
        let url = fresh.url().expect("a place on PostgreSQL");
        let authority = url.split(['/', '?']).nth(2).expect("a URL names its server");
        let server = authority.rsplit('@').next().unwrap_or_default();
        Self::of_url(&url, server).await
    }

    /// A wire to the server (`host:port`) that a URL names.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn of_url(url: &str, server: &str) -> Self {
        let server = server.to_owned();
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (network, state) = watch::channel(Network::Up);
        let past = url.to_owned();
        let url = url.replacen(&server, &address, 1);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server.clone(), state.clone()));
            }
        });
        Self { network, url, past }
    }

    /// The place's URL, over this wire.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The place's URL past this wire, for who is not to notice.
    pub fn past(&self) -> String {
        self.past.clone()
    }

    /// Cuts or mends it.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

async fn carry(mut client: TcpStream, server: String, mut network: watch::Receiver<Network>) {
    let now = *network.borrow_and_update();
    if now == Network::Up {
        // A server that is down ends its connections too.
        let Ok(mut server) = TcpStream::connect(server).await else { return };
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut client, &mut server) => return,
            _ = network.changed() => {}
        }
    }
    if *network.borrow() == Network::Silent {
        // Held open, unread, until the network is back; then it ends, as a stale connection does.
        let _ = network.wait_for(|network| *network == Network::Up).await;
    }
}
