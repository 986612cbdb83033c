//! A network connection to a server of the tests that can be cut and repaired.

use std::future::pending;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::engines::Fresh;

/// The state of the network between a store and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Everything gets through.
    Up,
    /// Connections end, and new ones are ended at once.
    Down,
    /// Nothing gets through, and connections stay open.
    Silent,
    /// Everything gets through except the server's answer to a COMMIT. The connection ends instead.
    LosesCommits,
}

/// The text of a client's COMMIT and of the server's confirmation.
const COMMIT: &[u8] = b"COMMIT\0";
/// The size of the buffers, in bytes.
const CARRIED_BYTES: usize = 16 * 1024;

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

    /// The database URL over this wire.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The database URL past this wire.
    pub fn past(&self) -> String {
        self.past.clone()
    }

    /// Cuts or repairs the wire.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

fn is_cut(network: &Network) -> bool {
    matches!(network, Network::Down | Network::Silent)
}

async fn carry(mut client: TcpStream, server: String, mut network: watch::Receiver<Network>) {
    let now = *network.borrow_and_update();
    if !is_cut(&now) {
        // The connections of a server that is down end, too.
        let Ok(server) = TcpStream::connect(server).await else { return };
        let state = network.clone();
        tokio::select! {
            _ = relay(&mut client, server, state) => return,
            _ = network.wait_for(is_cut) => {}
        }
    }
    if *network.borrow() == Network::Silent {
        // Keeps the connection open and unread until the network is back. Then it ends, as a stale connection
        // does.
        let _ = network.wait_for(|network| *network == Network::Up).await;
    }
}

/// Carries bytes both ways until one side ends, or the answer to a COMMIT is lost. Never ends on a cut wire,
/// and carries nothing that was read after the cut.
async fn relay(
    client: &mut TcpStream,
    mut server: TcpStream,
    network: watch::Receiver<Network>,
) -> std::io::Result<()> {
    let (mut up, mut down) = (vec![0; CARRIED_BYTES], vec![0; CARRIED_BYTES]);
    let says_commit = |bytes: &[u8]| bytes.windows(COMMIT.len()).any(|window| window == COMMIT);
    let mut loses_answer = false;
    loop {
        tokio::select! {
            read = client.read(&mut up) => match read? {
                0 => return Ok(()),
                _ if is_cut(&network.borrow()) => pending().await,
                count => {
                    loses_answer |= *network.borrow() == Network::LosesCommits && says_commit(&up[..count]);
                    server.write_all(&up[..count]).await?;
                }
            },
            read = server.read(&mut down) => match read? {
                0 => return Ok(()),
                _ if is_cut(&network.borrow()) => pending().await,
                // The server has committed.
                count if loses_answer && says_commit(&down[..count]) => return Ok(()),
                _ if loses_answer => {}
                count => client.write_all(&down[..count]).await?,
            },
        }
    }
}
