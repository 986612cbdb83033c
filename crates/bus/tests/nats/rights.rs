//! Users of NATS that lack a right that a node needs.

use std::time::Duration;

use bus::testing::NatsServer;
use bus::{Bus, NatsBus};

use super::{PATIENCE, channel, donation, next, options, ready};

/// Reconnections of one connection within two seconds, with pauses that grow to a second. Without them there
/// are hundreds.
const RECONNECTIONS_MAX: u64 = 12;

/// A server with a user for other subjects, and one without the rights to the channel `forbidden`.
async fn server() -> NatsServer {
    let user = |name: &str, rights: &str| {
        format!("{{ user: {name}, password: p, permissions: {{ publish: {rights}, subscribe: {rights} }} }}")
    };
    let other = user("other", "{ allow: [\"other.>\"] }");
    let most = user("most", "{ allow: [\"stagedoor.>\"], deny: [\"stagedoor.event.forbidden\"] }");
    NatsServer::configured(&format!("authorization {{ users: [ {other}, {most} ] }}")).await
}

fn url(server: &NatsServer, user: &str) -> String {
    server.url().replace("nats://", &format!("nats://{user}:p@"))
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_rights_to_the_subjects_is_refused_at_the_start() {
    let server = server().await;
    let refused = NatsBus::connect(options(&url(&server, "other"), "one")).await.expect_err("no rights");
    let error = refused.to_string();
    for words in ["Permissions Violation", "publish", "subscribe to stagedoor.>"] {
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_is_seen_without_events_and_sessions() {
    let rights = |to: &str, less: &str| {
        let other = if to == "publish" { "subscribe" } else { "publish" };
        format!(
            "authorization {{ users: [ {{ user: u, password: p, permissions: {{ {other}: \"stagedoor.>\", {to}: {less} \
             }} }} ] }}"
        )
    };
    let all = rights("publish", "\"stagedoor.>\"");
    // One of the rights, and all of them.
    for (to, fewer) in [
        ("publish", "{ allow: \"stagedoor.>\", deny: \"stagedoor.event.>\" }"),
        ("publish", "{ allow: \"stagedoor.>\", deny: \"stagedoor.node.>\" }"),
        ("publish", "{ deny: \">\" }"),
        ("subscribe", "{ allow: \"stagedoor.>\", deny: \"stagedoor.event.>\" }"),
    ] {
        let mut server = NatsServer::configured(&all).await;
        let bus = NatsBus::connect(options(&url(&server, "u"), "one")).await.expect("it starts");
        let _subscriber = bus.subscribe();
        until("both connections count", || bus.stats().connections == 2).await;
        server.reconfigure(&rights(to, fewer)).await;
        until("the refusal is seen", || bus.is_refused()).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(bus.is_refused(), "it stays seen");
        server.reconfigure(&all).await;
        until("it works again", || !bus.is_refused() && bus.stats().connections == 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_later_makes_pauses_and_is_seen() {
    let server = server().await;
    let bus = NatsBus::connect(options(&url(&server, "most"), "one")).await.expect("it may start");
    let mut subscriber = bus.subscribe();
    ready(&bus.interest(&channel("good"))).await;
    until("both connections count", || bus.stats().connections == 2).await;
    assert!(!bus.is_refused());

    // The receiving connection is refused whenever it subscribes.
    let interest = bus.interest(&channel("forbidden"));
    until("the refusal is seen", || bus.is_refused() && bus.stats().connections == 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let disconnects = bus.stats().disconnects;
    assert!((2..=RECONNECTIONS_MAX).contains(&disconnects), "{disconnects}");
    assert!(bus.is_refused() && !bus.is_receiving() && bus.stats().connections == 1);
    drop(interest);
    until("it works again", || !bus.is_refused() && bus.stats().connections == 2).await;

    // The publishing connection is refused while it has the message to send.
    let before = bus.stats().disconnects;
    let lost = bus.publish(donation("forbidden", "x")).await;
    assert_eq!(lost, [channel("forbidden")]);
    let disconnects = bus.stats().disconnects - before;
    assert!((2..=RECONNECTIONS_MAX).contains(&disconnects), "{disconnects}");
    until("it works again", || !bus.is_refused() && bus.stats().connections == 2).await;
    let good = bus.interest(&channel("good"));
    ready(&good).await;
    assert!(bus.publish(donation("good", "after")).await.is_empty());
    while next(&mut subscriber).await != "good after" {}
}
