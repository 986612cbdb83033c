//! The end of a session is recorded once, also when the store or a shard fails.

use std::time::Duration;

use socketio::CloseReason;
use store::{StoreError, Tx};
use testkit::{CLOSE, TEXT};

use super::world::{World, eventually, put_application, settle};

/// Maximum number of transactions that record ends of sessions at the same time.
const DISCONNECT_WRITES_MAX: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_one_session_ends_that_session_only() {
    let world = World::new().await;
    let (mut one, one_key) = world.address.session(&world.client_url().await).await;
    let (mut other, _) = world.address.session(&world.client_url().await).await;
    world.gateway.panic_session(&one_key).await;
    one.send("2").await;
    assert_eq!(one.closed().await, (1011, "internal_error".into()));
    world.closed(CloseReason::InternalError, 1).await;
    eventually("its slot is free", async || world.connected().await == 1).await;
    other.ping().await;
    assert_eq!(world.close_reasons().await, ["internal_error"]);
}

/// The last frames of a session that the server ends, in each revision.
#[tokio::test(flavor = "multi_thread")]
async fn a_packet_1_precedes_the_close_frame_only_in_revisions_2_and_3() {
    let packet = || (TEXT, b"1".to_vec());
    let close = || (CLOSE, b"\x03\xe9server_shutdown".to_vec());
    for (revision, expected) in
        [(2, vec![packet(), close()]), (3, vec![packet(), close()]), (4, vec![close()])]
    {
        let world = World::new().await;
        let query = format!("auth={}&EIO={revision}&transport=websocket", world.client_url().await);
        let mut client = world.address.websocket(&query).await.expect("it is let in");
        client.packet().await;
        if revision == 4 {
            client.send("40").await;
        }
        while !client.packet().await.contains("SYSTEM") {}
        let key = world.listed_key().await;
        assert!(world.gateway.end_session(&key, CloseReason::ServerShutdown).await);
        let mut last = Vec::new();
        while let Some(frame) = client.frame().await {
            last.push(frame);
        }
        assert_eq!(last, expected, "revision {revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_a_shard_ends() {
    let world = World::with(|config| config.shards = 1).await;
    let (_client, key) = world.address.session(&world.client_url().await).await;
    assert!(world.gateway.connection(&key).await.is_some());
    world.stop();
    eventually("the shard has ended", async || world.gateway.connection(&key).await.is_none()).await;
    let (mut late, _) = world.address.session(&world.client_url().await).await;
    assert_eq!(late.closed().await, (1011, "internal_error".into()));
    eventually("its slot is free", async || world.connected().await == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_store_delays_neither_the_close_nor_the_drain() {
    let world = World::new().await;
    let (mut one, _) = world.address.session(&world.client_url().await).await;
    let (mut other, _) = world.address.session(&world.client_url().await).await;
    world.store.close().await;
    one.send("41").await;
    assert_eq!(one.closed().await, (1000, "client_goodbye".into()));
    let draining = tokio::spawn({
        let gateway = world.gateway.clone();
        async move { gateway.drain(Duration::from_secs(5)).await }
    });
    assert_eq!(other.closed().await, (1001, "server_shutdown".into()));
    eventually("no session is left", async || world.stats().sessions() == 0).await;
    settle().await;
    assert!(!draining.is_finished(), "it waits for the ends to be recorded");
    world.pass(6).await;
    tokio::time::timeout(testkit::PATIENCE, draining).await.expect("it ends").expect("it works");
    // The attempts are bounded.
    for _ in 0..60 {
        world.manual_clock.advance(Duration::from_secs(10));
        settle().await;
    }
    eventually("they are given up", async || world.gateway.live_sessions() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_of_many_sessions_are_written_in_batches() {
    let world = World::new().await;
    let mut clients = Vec::new();
    for at in 0..6 {
        let application = format!("app-{at}");
        put_application(&world.service, &application, None).await;
        for _ in 0..10 {
            clients.push(world.address.session(&world.client_url_of(&application).await).await);
        }
    }
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let store = world.store.clone();
    let holder = tokio::spawn(async move {
        let hold = store.write(async move |_: &mut Tx| {
            // The transaction ends when the test sends on the channel or drops it.
            let _ = held.recv();
            Ok::<_, StoreError>(())
        });
        hold.await
    });
    let before = world.store.stats().committed;
    world.gateway.end_sessions(CloseReason::PingTimeout).await;
    world.closed(CloseReason::PingTimeout, 60).await;
    settle().await;
    let waiting = world.store.stats().waiting;
    assert!(waiting <= DISCONNECT_WRITES_MAX, "{waiting} writes wait");
    let_go.send(()).expect("it is held");
    holder.await.expect("no panic").expect("it is committed");
    world.empty().await;
    let writes = world.store.stats().committed - before;
    assert!(writes < 30, "{writes} writes for 60 sessions");
    eventually("all of them are over", async || world.gateway.live_sessions() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_changes_end_the_session_after_some_attempts() {
    let world = World::new().await;
    let (mut client, key) = world.address.session(&world.client_url().await).await;
    world.store.close().await;
    let subscription = domain::session::Subscription {
        event_type: domain::event::EventType::Chat,
        channel_id: domain::ChannelId::stored("c".into()),
    };
    let kind = domain::session::ChangeKind::Subscribed;
    let change = domain::session::SessionChange { version: 2, kind, subscription };
    let message =
        bus::Message::SessionChanged { node: world.service.node().clone(), session_key: key, change };
    world.gateway.dispatch(bus::Delivery::Message(message)).await;
    settle().await;
    client.ping().await;
    let mut tries = 0;
    while world.stats().closed(CloseReason::InternalError) == 0 {
        assert!(tries < 100, "it is never given up");
        world.manual_clock.advance(Duration::from_secs(1));
        settle().await;
        tries += 1;
    }
    assert_eq!(client.closed().await, (1011, "internal_error".into()));
}

/// Shards are threads, which cannot be aborted.
#[tokio::test(flavor = "multi_thread")]
async fn shards_end_with_the_gateway_loop() {
    let world = World::new().await;
    // Enough sessions that each of the two shards has some.
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(world.address.session(&world.client_url().await).await);
    }
    for (_, key) in &sessions {
        assert!(world.gateway.connection(key).await.is_some());
    }
    world.running.abort();
    for (_, key) in &sessions {
        eventually("its shard is gone", async || world.gateway.connection(key).await.is_none()).await;
    }
}

/// `stagedoor-load` measures the CPU of delivery by the names of the threads.
#[tokio::test(flavor = "multi_thread")]
async fn shard_threads_are_named() {
    let world = World::new().await;
    let names = || {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).ok();
        threads.filter_map(name).collect::<Vec<_>>()
    };
    for shard in ["shard-0\n", "shard-1\n"] {
        eventually(shard, async || names().iter().any(|name| name == shard)).await;
    }
    drop(world);
}
