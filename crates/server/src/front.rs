//! The listeners of a node. In a sandbox they outlive the service behind them: while a world is reset, its
//! connections stay open and their requests wait.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gateway::Gateway;
use http_server::connections::Connections;
use http_server::listener::{self, Door, Edges, Phase};
use http_server::unix_socket::{BoundListener, SocketFile};
use service::Clock;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::Settings;
use crate::reserved::Reserved;

/// How often a sandbox that is replaced looks whether its requests have ended. A request that waits for
/// something, and one that replaces its own world, do not end.
const SHUT_PAUSE: Duration = Duration::from_millis(2);
/// Maximum number of these pauses.
const SHUT_PAUSES_MAX: u32 = 10;

/// The handlers of both listeners.
pub(crate) struct BothEdges {
    /// Those of `--listen`.
    pub open: Edges,
    /// Those of `--platform-listen`.
    pub platform: Edges,
}

/// One listener.
struct Listener {
    address: SocketAddr,
    /// Until it listens.
    reserved: Option<Reserved>,
    /// Taken when the listener opens.
    bound: Option<TcpListener>,
    /// Replaces the handlers; `None` on a node whose handlers never change.
    door: Option<watch::Sender<Option<Arc<Edges>>>>,
}

/// The listeners of a node, and their connections.
pub(crate) struct Front {
    open: Listener,
    /// Only of a node whose platform API has its own listener.
    platform: Option<Listener>,
    /// The path of a Unix socket that serves what `--listen` serves, without TLS.
    socket_path: Option<PathBuf>,
    /// The file of that socket, from when it listens on.
    socket: Option<SocketFile>,
    /// Taken when the socket opens.
    bound_socket: Option<UnixListener>,
    connections: Option<Arc<Connections>>,
    phase: watch::Sender<Phase>,
    running: JoinSet<()>,
}

impl Front {
    /// Reserves the addresses of the settings.
    ///
    /// # Errors
    /// A sentence for the operator: an address is in use.
    pub fn reserve(settings: &Settings) -> Result<Self, String> {
        let open = Listener::reserve("--listen", settings.listen)?;
        let platform = settings.platform_listen;
        let platform = platform.map(|listen| Listener::reserve("--platform-listen", listen)).transpose()?;
        let (phase, _) = watch::channel(Phase::Serving);
        Ok(Self {
            open,
            platform,
            socket_path: settings.listen_socket.clone(),
            socket: None,
            bound_socket: None,
            connections: None,
            phase,
            running: JoinSet::new(),
        })
    }

    /// Lets connections wait for the handlers. Before, the system refuses them.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn listen(&mut self) -> Result<(), String> {
        let mut listeners = [Some(&mut self.open), self.platform.as_mut()].into_iter().flatten();
        listeners.try_for_each(Listener::listen)?;
        if let Some(path) = self.socket_path.take() {
            let (file, bound) = SocketFile::listen(&path)?;
            (self.socket, self.bound_socket) = (Some(file), Some(bound));
        }
        Ok(())
    }

    /// The address of `--listen`.
    pub fn address(&self) -> SocketAddr {
        self.open.address
    }

    /// The address of `--platform-listen`.
    pub fn platform_address(&self) -> Option<SocketAddr> {
        self.platform.as_ref().map(|listener| listener.address)
    }

    /// Serves with these handlers. In a sandbox later ones replace them.
    pub fn open(
        &mut self,
        edges: BothEdges,
        gateway: Option<Gateway>,
        clock: Clock,
        sockets_max: usize,
        grace: Duration,
    ) {
        let connections =
            self.connections.get_or_insert_with(|| Connections::new(None, clock, sockets_max)).clone();
        connections.count_sockets_of(gateway);
        let BothEdges { open, platform } = edges;
        let on_socket = Edges { tls: None, ..open.clone() };
        let listeners = [(Some(&mut self.open), open), (self.platform.as_mut(), platform)];
        let entered = listeners.into_iter().filter_map(|(listener, edges)| listener?.enter(edges));
        let entered = entered.map(|(bound, edges)| (BoundListener::Tcp(bound), edges));
        let socket = self.bound_socket.take().map(|bound| (BoundListener::Unix(bound), on_socket));
        for (bound, edges) in entered.chain(socket) {
            let (connections, phase) = (connections.clone(), self.phase.subscribe());
            self.running.spawn(listener::serve(bound, connections, edges, phase, grace));
        }
    }

    /// Lets the requests of a sandbox wait for the next handlers. Those that run are given a moment to end.
    pub async fn shut(&self) {
        let listeners = [Some(&self.open), self.platform.as_ref()].into_iter().flatten();
        let doors = listeners.filter_map(|listener| listener.door.as_ref());
        let former: Vec<_> = doors.filter_map(|door| door.send_replace(None)).collect();
        if let Some(connections) = &self.connections {
            connections.count_sockets_of(None);
        }
        // Each running request shares the handlers.
        let is_running = || former.iter().any(|edges| Arc::strong_count(edges) > 1);
        for _ in 0..SHUT_PAUSES_MAX {
            if !is_running() {
                return;
            }
            tokio::time::sleep(SHUT_PAUSE).await;
        }
    }

    /// Sets the phase of the listeners.
    pub fn set_phase(&self, phase: Phase) {
        let _ = self.phase.send_replace(phase);
    }

    /// Closes the listeners at once. Their connections end with their running requests.
    pub async fn close(mut self) {
        self.running.shutdown().await;
    }

    /// Waits until the listeners have ended, in [`Phase::Closing`].
    pub async fn ended(&mut self) {
        while self.running.join_next().await.is_some() {}
    }
}

impl Listener {
    fn reserve(option: &'static str, listen: SocketAddr) -> Result<Self, String> {
        let reserved = Reserved::new(option, listen)?;
        Ok(Self { address: reserved.address, reserved: Some(reserved), bound: None, door: None })
    }

    fn listen(&mut self) -> Result<(), String> {
        if let Some(reserved) = self.reserved.take() {
            self.bound = Some(reserved.listen()?);
        }
        Ok(())
    }

    /// Passes the handlers to the connections. The first time it returns what the listener begins with.
    fn enter(&mut self, edges: Edges) -> Option<(TcpListener, Edges)> {
        if edges.sandbox.is_none() {
            return Some((self.bound.take()?, edges));
        }
        let door = self.door.get_or_insert_with(|| watch::channel(None).0);
        door.send_replace(Some(Arc::new(edges.clone())));
        let door = Some(Door(door.subscribe()));
        Some((self.bound.take()?, Edges { door, ..edges }))
    }
}
