//! Two nodes behind a load balancer are restarted one after the other, under load: no call fails.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use testkit::{Api, Connection, Request, ReservedPort, Response, Setup, World, over_a_wire, patiently};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::fixture::Fixture;

/// Number of concurrent callers.
const CALLERS: usize = 8;
/// How long a node announces its stop before it stops.
const DRAIN_DELAY: Duration = Duration::from_secs(1);
/// Interval of the balancer's readiness checks.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// A load balancer over two nodes.
trait Balancer: Send + Sync + 'static {
    /// `None` when the call failed.
    fn call(self: Arc<Self>, request: Request) -> impl Future<Output = Option<Response>> + Send;
}

/// A TCP balancer: alternates between the nodes, and uses the other node if a connection is refused.
struct Plain {
    address: SocketAddr,
}

impl Plain {
    async fn start(nodes: [SocketAddr; 2]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            for turn in 0.. {
                let Ok((mut client, _)) = listener.accept().await else { return };
                tokio::spawn(async move {
                    for node in [nodes[turn % 2], nodes[(turn + 1) % 2]] {
                        if let Ok(mut server) = TcpStream::connect(node).await {
                            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { address }
    }
}

impl Balancer for Plain {
    async fn call(self: Arc<Self>, request: Request) -> Option<Response> {
        Connection::open(self.address).await.try_send(&request).await
    }
}

/// An HTTP balancer: keeps connections open, reuses them, and checks the readiness of the nodes.
struct Pooled {
    nodes: [Upstream; 2],
    turn: AtomicUsize,
}

struct Upstream {
    address: SocketAddr,
    ready: AtomicBool,
    idle: Mutex<Vec<Connection>>,
}

impl Pooled {
    fn start(nodes: [SocketAddr; 2]) -> Arc<Self> {
        let upstream = |address| Upstream { address, ready: AtomicBool::new(true), idle: Mutex::default() };
        let pool = Arc::new(Self { nodes: nodes.map(upstream), turn: AtomicUsize::new(0) });
        for at in 0..2 {
            let pool = Arc::downgrade(&pool);
            tokio::spawn(async move {
                while let Some(pool) = pool.upgrade() {
                    let node = &pool.nodes[at];
                    let asked = Request::get("/health/ready");
                    let answer = match Connection::try_open(node.address).await {
                        Some(mut connection) => connection.try_send(&asked).await,
                        None => None,
                    };
                    node.ready.store(answer.is_some_and(|answer| answer.status == 200), Ordering::SeqCst);
                    drop(pool);
                    tokio::time::sleep(ASKED_EVERY).await;
                }
            });
        }
        pool
    }

    fn next(&self) -> &Upstream {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (one, other) = (&self.nodes[turn % 2], &self.nodes[(turn + 1) % 2]);
        if one.ready.load(Ordering::SeqCst) { one } else { other }
    }
}

impl Balancer for Pooled {
    async fn call(self: Arc<Self>, request: Request) -> Option<Response> {
        let node = self.next();
        let kept = {
            let mut idle = node.idle.lock().expect("the lock is not poisoned");
            idle.retain(Connection::is_idle);
            idle.pop()
        };
        let mut connection = match kept {
            Some(connection) => connection,
            None => Connection::try_open(node.address).await?,
        };
        let answer = connection.try_send(&request).await?;
        if answer.header("connection") != Some("close") {
            node.idle.lock().expect("the lock is not poisoned").push(connection);
        }
        Some(answer)
    }
}

fn calls(fixture: &Fixture, caller: usize, n: usize) -> Request {
    match n % 4 {
        0 => Request::get("/open/v1/users/me").bearer(&fixture.tokens.access),
        1 => Request::get("/open/v1/sessions").bearer(&fixture.tokens.access),
        2 => {
            let body = json!({ "channelName": format!("caller {caller}") });
            Request::put(format!("/platform/v1/channels/caller-{caller}"))
                .bearer(World::OPERATOR_KEY)
                .json(&body)
        }
        _ => {
            let body = json!({ "senderChannelId": "byeol", "message": format!("{caller}-{n}") });
            let request = Request::post("/platform/v1/channels/haneul/chats").bearer(World::OPERATOR_KEY);
            request.header("Idempotency-Key", format!("{caller}-{n}")).json(&body)
        }
    }
}

/// Makes calls until it is stopped. Returns the number of answers.
async fn load(balancer: Arc<impl Balancer>, fixture: Arc<Fixture>, enough: Arc<AtomicBool>) -> usize {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (balancer, fixture, enough) = (balancer.clone(), fixture.clone(), enough.clone());
        callers.spawn(async move {
            let mut answered = 0;
            while !enough.load(Ordering::Relaxed) {
                let request = calls(&fixture, caller, answered);
                let name = format!("call {answered} of {caller}: {} {}", request.method(), request.target());
                let answer = balancer.clone().call(request).await;
                let answer = answer.unwrap_or_else(|| panic!("{name} was not answered"));
                assert_eq!(answer.status, 200, "{name}: {}", answer.text());
                answered += 1;
            }
            answered
        });
    }
    let mut answered = 0;
    while let Some(caller) = callers.join_next().await {
        answered += caller.expect("no call fails");
    }
    answered
}

async fn until_ready(address: SocketAddr) {
    let api = Api::new(&format!("http://{address}"), World::OPERATOR_KEY);
    patiently("the node is ready", async {
        while api.send(Request::get("/health/ready")).await.status != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Restarts both nodes under load, behind a balancer for their addresses.
async fn restarts<B: Balancer, Fut>(balancer: impl FnOnce([SocketAddr; 2]) -> Fut + Send + 'static)
where
    Fut: Future<Output = Arc<B>> + Send,
{
    let setup = Setup { system_clock: true, drain_delay: DRAIN_DELAY, ..Setup::default() };
    over_a_wire(setup, |world, _| async move {
        let fixture = Arc::new(Fixture::set_up(&world).await);
        let port = ReservedPort::take();
        let addresses = [world.address(), port.address()];
        let (node, _) = world.another_node_with(|settings| settings.listen = addresses[1]).await;
        let enough = Arc::new(AtomicBool::new(false));
        let balancer = balancer(addresses).await;
        let load = tokio::spawn(load(balancer, fixture, enough.clone()));
        tokio::time::sleep(Duration::from_millis(300)).await;

        world.stop().await;
        world.restart().await;
        until_ready(addresses[0]).await;
        // The balancer must have checked the readiness.
        tokio::time::sleep(ASKED_EVERY * 3).await;
        node.stop().await;
        let (node, _) = world.another_node_with(|settings| settings.listen = addresses[1]).await;
        until_ready(addresses[1]).await;
        tokio::time::sleep(ASKED_EVERY * 3).await;

        enough.store(true, Ordering::Relaxed);
        let answered = load.await.expect("no call fails");
        assert!(answered > 100, "{answered} calls are no load");
        node.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_with_a_connection_for_each_call() {
    restarts(|nodes| async move { Arc::new(Plain::start(nodes).await) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_with_pooled_connections_and_readiness_checks() {
    restarts(|nodes| async move { Pooled::start(nodes) }).await;
}
