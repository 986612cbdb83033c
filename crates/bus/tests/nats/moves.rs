//! The move to another server of a cluster, before the present one stops.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use bus::testing::NatsServer;
use bus::{Bus, NatsBus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::{PATIENCE, channel, connect, donation, is_up, next, options, ready};

/// How many messages are published after the move.
const AFTER: usize = 20;
/// How much later than sent data arrives at the other server.
const ROUTE_DELAY: Duration = Duration::from_millis(50);

/// Two servers that know each other. What one sends to the other arrives some time later.
async fn cluster() -> [NatsServer; 2] {
    // An address of its own, whose ports no other test takes.
    let free = || TcpListener::bind("127.41.0.1:0").expect("a port").local_addr().expect("an address");
    let listens = [free(), free()];
    let routes = [slow_route(listens[0]).await, slow_route(listens[1]).await];
    let configuration = |own: usize| {
        format!(
            "server_name: s{own}\ncluster {{ name: c, listen: \"{}\", advertise: \"{}\", \
             routes: [\"nats-route://{}\"] }}",
            listens[own],
            routes[own],
            routes[1 - own]
        )
    };
    [NatsServer::configured(&configuration(0)).await, NatsServer::configured(&configuration(1)).await]
}

/// An address that forwards connections to this one, each piece of data after [`ROUTE_DELAY`].
async fn slow_route(to: SocketAddr) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            // The server may not listen yet. Then the other one tries again.
            let Ok(far) = TcpStream::connect(to).await else { continue };
            let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
            tokio::spawn(forward(near_read, far_write));
            tokio::spawn(forward(far_read, near_write));
        }
    });
    address
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut piece = vec![0; 1 << 20];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        tokio::time::sleep(ROUTE_DELAY).await;
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

/// Waits until a server has this many clients.
async fn has_clients(server: &NatsServer, count: u64) {
    let counted = async {
        while server.clients().await != count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("the clients move");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_about_to_stop_is_left_before_and_nothing_is_missed() {
    let [mut first, second] = cluster().await;
    // Only the first server is configured. It names the other one.
    let (one, two) = (Arc::new(connect(&first, "one").await), connect(&first, "two").await);
    let mut at_two = two.subscribe();
    is_up(&two).await;
    let held = two.interest(&channel("c"));
    ready(&held).await;
    let stopped = Arc::new(AtomicBool::new(false));
    let publishing = tokio::spawn({
        let (one, stopped) = (one.clone(), stopped.clone());
        async move {
            let mut sent = 0;
            while !stopped.load(SeqCst) {
                assert!(
                    one.publish_all(vec![donation("c", &sent.to_string())]).await.is_empty(),
                    "{sent} is lost"
                );
                sent += 1;
            }
            sent
        }
    });
    for n in 0..AFTER {
        assert_eq!(next(&mut at_two).await, format!("c {n}"));
    }
    first.retire().await;
    has_clients(&first, 0).await;
    has_clients(&second, 3).await;
    // An interest that begins later is one on the new server.
    ready(&two.interest(&channel("later"))).await;
    first.stop().await;
    for n in AFTER..AFTER * 2 {
        assert_eq!(next(&mut at_two).await, format!("c {n}"));
    }
    stopped.store(true, SeqCst);
    let sent = publishing.await.expect("nothing is lost");
    for n in AFTER * 2..sent {
        assert_eq!(next(&mut at_two).await, format!("c {n}"));
    }
    for bus in [&*one, &two] {
        let stats = bus.stats();
        assert_eq!((stats.disconnects, stats.lost, stats.malformed), (0, 0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_between_servers_that_are_no_cluster_is_a_gap() {
    let (first, second) = (NatsServer::start().await, NatsServer::start().await);
    let url = format!("{},{}", first.url(), second.address());
    let bus = NatsBus::connect(options(&url, "one")).await.expect("the first server answers");
    let mut subscriber = bus.subscribe();
    let interest = bus.interest(&channel("c"));
    ready(&interest).await;
    first.retire().await;
    assert_eq!(next(&mut subscriber).await, "gap");
    has_clients(&second, 2).await;
    assert!(bus.publish(donation("c", "after")).await.is_empty());
    assert_eq!(next(&mut subscriber).await, "c after");
    assert_eq!(bus.stats().disconnects, 2);
}
