//! Several nodes on one PostgreSQL database and one NATS server, over wires that a test can cut.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use bus::testing::NatsServer;
use server::{BusSettings, Environment, Node, Settings, StoreSettings};
use service::Clock;
use store::testing::{Fresh, Network, Wire, migrated_postgres};
use tokio::sync::Mutex;

use crate::world::settings;
use crate::{Api, ReservedPort, Setup, World, patiently};

/// Nodes of one service, on the system's clock.
pub struct Cluster {
    /// The nodes.
    pub nodes: Vec<ClusterNode>,
    /// The bus between the nodes.
    pub nats: Mutex<NatsServer>,
}

/// One node of a [`Cluster`], and its own wires.
pub struct ClusterNode {
    /// To NATS.
    pub bus_wire: Wire,
    /// To the database.
    pub database_wire: Wire,
    settings: Settings,
    /// The node has the same address after a restart.
    _port: ReservedPort,
    node: Mutex<Option<Node>>,
    api: Api,
}

/// Runs the body with this many nodes.
///
/// # Panics
/// When the body panics; when `STAGEDOOR_TEST_DATABASE_URL` or `nats-server` is missing.
pub async fn nodes<F, Fut>(count: usize, setup: Setup, body: F)
where
    F: FnOnce(Arc<Cluster>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let fresh = migrated_postgres(Some(Clock::system().now())).await;
    let nats = NatsServer::start().await;
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(ClusterNode::start(setup, &fresh, &nats).await);
    }
    let cluster = Arc::new(Cluster { nodes, nats: Mutex::new(nats) });
    // The body runs in a task, so that everything is stopped after a failed test.
    let outcome = tokio::spawn(Box::pin(body(cluster.clone()))).await;
    for node in &cluster.nodes {
        node.bus_wire.set(Network::Up);
        node.database_wire.set(Network::Up);
    }
    for node in &cluster.nodes {
        node.stop().await;
    }
    fresh.remove().await;
    assert!(outcome.is_ok(), "failed: see the panic above");
}

impl ClusterNode {
    async fn start(setup: Setup, fresh: &Fresh, nats: &NatsServer) -> Self {
        let database_wire = Wire::to(fresh).await;
        let bus_wire = Wire::of_url(&nats.url(), &nats.address().to_string()).await;
        let target = store::Target::Postgres { url: database_wire.url().into() };
        let mut settings = settings(setup, &target);
        settings.store = StoreSettings::Postgres { url: database_wire.url().into() };
        settings.bus = BusSettings::Nats {
            access: bus::Address::parse(&bus_wire.url()).expect("a good address").into(),
            prefix: bus::Prefix::default(),
        };
        let port = ReservedPort::take();
        settings.listen = port.address();
        let node = Node::start(settings.clone(), Environment::system()).await.expect("a node starts");
        let api = Api::new(&format!("http://{}", node.address()), World::OPERATOR_KEY);
        Self { bus_wire, database_wire, settings, _port: port, node: Mutex::new(Some(node)), api }
    }

    /// The address that the node listens on.
    pub fn address(&self) -> SocketAddr {
        self.settings.listen
    }

    /// Stops it as SIGTERM would. Stopping it again does nothing.
    pub async fn stop(&self) {
        if let Some(node) = self.node.lock().await.take() {
            patiently("the node stops", node.stop()).await;
        }
    }

    /// Starts it again, at the same address.
    ///
    /// # Panics
    /// When it runs, or does not start.
    pub async fn restart(&self) {
        let mut node = self.node.lock().await;
        assert!(node.is_none(), "the node still runs");
        let started = Node::start(self.settings.clone(), Environment::system()).await;
        *node = Some(started.expect("the node starts again"));
    }

    /// The counters of its bus.
    ///
    /// # Panics
    /// When it does not run.
    pub async fn bus_stats(&self) -> bus::Stats {
        self.node.lock().await.as_ref().expect("a running node").service().bus_stats()
    }

    /// The counters of its sockets.
    ///
    /// # Panics
    /// When it does not run.
    pub async fn socket_stats(&self) -> gateway::Stats {
        self.node.lock().await.as_ref().expect("a running node").gateway().expect("its sockets").stats()
    }
}

/// A node can be called like its server.
impl Deref for ClusterNode {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}
