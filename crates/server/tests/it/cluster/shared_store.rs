//! Several nodes on one database without a bus between them: the store alone connects them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use service::nodes::Roles;
use store::Tx;
use store::testing::Wire;
use testkit::{
    Api, Network, Request, Response, Setup, Socket, World, both, over_a_wire, patiently, query_value,
};
use tokio::task::JoinSet;

use crate::fixture::Fixture;

const SECOND: Duration = Duration::from_secs(1);
/// Number of cuts of the connections, at most [`CUTS_MAX`], until so many calls were answered.
const CUTS: usize = 12;
const CUTS_MAX: usize = 200;
const ANSWERS: usize = 6;
const WEB: Roles = Roles { web: true, gateway: false, jobs: false };
const GATEWAY: Roles = Roles { web: false, gateway: true, jobs: false };
const JOBS: Roles = Roles { web: false, gateway: false, jobs: true };

/// Runs the body on a world with a database that other nodes can share.
async fn shared<Fut>(setup: Setup, body: impl FnOnce(World, Arc<Wire>) -> Fut)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    over_a_wire(setup, body).await;
}

fn url(answer: &Response) -> String {
    answer.content()["url"].as_str().expect("a text").to_owned()
}

fn connected(list: &Response) -> usize {
    let content = list.content();
    let data = content["data"].as_array().expect("a list");
    data.iter().filter(|session| session["disconnectedDate"].is_null()).count()
}

/// The part of a node with this name.
fn part<'a>(content: &'a Value, name: &str) -> &'a Value {
    let parts = content["parts"].as_array().expect("parts");
    parts.iter().find(|part| part["name"] == name).unwrap_or_else(|| panic!("no {name}: {content}"))
}

async fn health(api: &Api, what: &str) -> Response {
    api.send(Request::get(format!("/health/{what}"))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_one_node_changes_a_session_on_another_without_a_bus() {
    shared(Setup::default(), |world, _| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        let mut socket = elsewhere.open_user_session(&tokens.access).await;
        for _ in 0..3 {
            for (call, expected) in [("subscribe", "subscribed"), ("unsubscribe", "unsubscribed")] {
                let target =
                    format!("/open/v1/sessions/events/{call}/chat?sessionKey={}", socket.session_key());
                world.send(Request::post(target).bearer(&tokens.access)).await.content();
                socket.ping().await;
                let data = found(&world, socket.system(expected)).await;
                assert_eq!(data, json!({ "eventType": "CHAT", "channelId": "haneul" }));
            }
        }
        world.revoke_after_subscribing(&tokens.access, &socket).await;
        found(&world, socket.system("subscribed")).await;
        found(&world, socket.system("revoked")).await;
        world.advance(SECOND);
        socket.ping().await;
        drop(socket);
        node.stop().await;
    })
    .await;
}

/// Advances the clock until the other node has found a change in the store.
async fn found<T>(world: &World, awaited: impl Future<Output = T>) -> T {
    let time_goes_on = async {
        loop {
            world.advance(SECOND / 4);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        found = awaited => found,
        () = time_goes_on => unreachable!("time has no end"),
    }
}

trait Revoke {
    async fn revoke_after_subscribing(&self, token: &str, socket: &Socket);
}

impl Revoke for World {
    async fn revoke_after_subscribing(&self, token: &str, socket: &Socket) {
        self.subscribe(token, "chat", socket.session_key()).await.content();
        self.operator(Request::delete("/platform/v1/consents/bot/haneul")).await.content();
    }
}

/// Each cut hits some commit at some point: before the commit, or after it, when the change is stored and no
/// answer was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_committed_change_is_delivered_once_without_the_answer_to_its_commit() {
    shared(Setup { system_clock: true, ..Setup::default() }, |world, wire| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        let key = socket.session_key().to_owned();
        let (enough, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut callers = JoinSet::new();
        for event in ["chat", "donation", "subscription"] {
            let (world, enough, answered) = (world.clone(), enough.clone(), answered.clone());
            let (token, key) = (tokens.access.clone(), key.clone());
            callers.spawn(async move {
                while !enough.load(Ordering::Relaxed) {
                    if world.subscribe(&token, event, &key).await.status == 200 {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    world.unsubscribe(&token, event, &key).await;
                }
            });
        }
        let received = Arc::new(Mutex::new(Vec::new()));
        let listening = tokio::spawn({
            let received = received.clone();
            async move {
                while let Some((name, payload)) = socket.next_event().await {
                    assert_eq!(name, "SYSTEM");
                    let message: Value = serde_json::from_str(&payload).expect("JSON");
                    let change = (lower(&message["type"]), lower(&message["data"]["eventType"]));
                    received.lock().expect("no panic").push(change);
                }
            }
        });
        for cut in 0..CUTS_MAX {
            // A busy machine answers few calls between two cuts.
            if cut >= CUTS && answered.load(Ordering::Relaxed) >= ANSWERS {
                break;
            }
            tokio::time::sleep(Duration::from_millis(150)).await;
            wire.set(Network::Down);
            tokio::time::sleep(Duration::from_millis(20)).await;
            wire.set(Network::Up);
        }
        enough.store(true, Ordering::Relaxed);
        while callers.join_next().await.is_some() {}
        let (count, log) = log_of(&world, &key).await;
        assert!(count >= ANSWERS, "{count}");
        // A catch-up that failed often during the cuts waits some seconds before the next attempt.
        patiently("every change is delivered", async {
            while received.lock().expect("no panic").len() < count && !listening.is_finished() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        world.stop().await;
        listening.await.expect("the socket is read to its end");
        let received = received.lock().expect("no panic");
        assert_eq!(received.len(), count);
        // The beginning of a long log is missing.
        assert_eq!(received[count - log.len()..], log);
    })
    .await;
}

/// The number of a session's changes, and the last of them, oldest first.
async fn log_of(world: &World, key: &str) -> (usize, Vec<(String, String)>) {
    let store = world.open_store().await;
    let key = key.to_owned();
    let log = store.read(async move |tx: &mut Tx| {
        let sql =
            "SELECT version, kind, event_type FROM session_changes WHERE session_key = $1 ORDER BY version";
        let rows = tx.query(sql, store::params![&key]).await?;
        rows.iter()
            .map(|row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?)))
            .collect()
    });
    let log: Result<Vec<_>, store::StoreError> = log.await;
    store.close().await;
    let log = log.expect("the log is there");
    let count = log.last().map_or(0, |(version, ..)| usize::try_from(*version).expect("a count"));
    (count, log.into_iter().map(|(_, kind, event)| (kind.to_lowercase(), event.to_lowercase())).collect())
}

fn lower(text: &Value) -> String {
    text.as_str().expect("a text").to_lowercase()
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_share_the_work() {
    shared(Setup { roles: WEB, ..Setup::default() }, |world, _| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        // No node takes sessions yet. That is expected, and ends soon.
        let none = world.user_session_url(&tokens.access).await;
        none.assert_refused(429, "TOO_MANY_REQUESTS");
        assert_eq!(none.number("retry-after"), 5);

        let (sockets, gateway) = world.another_node_of(GATEWAY).await;
        let (clearing, jobs) = world.another_node_of(JOBS).await;
        let address = url(&world.user_session_url(&tokens.access).await);
        let token = query_value(&address, "auth").expect("a token");
        assert_eq!(address, format!("http://{}?auth={token}", gateway.address()));
        let mut socket = Socket::open(&address).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.ping().await;
        world.advance(SECOND);
        socket.system("subscribed").await;
        assert_eq!(connected(&world.user_sessions(&tokens.access, "").await), 1);

        let handshake = "/socket.io/?EIO=3&transport=polling&auth=x";
        for (name, api, rest, socket_path) in
            [("web", &*world, 200, 404), ("gateway", &gateway, 404, 401), ("jobs", &jobs, 404, 404)]
        {
            let api = api.of_a_part();
            for what in ["live", "ready"] {
                assert_eq!(health(&api, what).await.content(), Value::Null, "{name} {what}");
            }
            assert_eq!(api.me(&tokens.access).await.status, rest, "{name}");
            assert_eq!(api.client_sessions(&app, "").await.status, rest, "{name}");
            assert_eq!(
                api.send(Request::get("/account-interlock")).await.status,
                if rest == 200 { 400 } else { 404 }
            );
            assert_eq!(api.send(Request::get("/docs")).await.status, rest, "{name}");
            let answer = api.send(Request::get(handshake)).await;
            assert_eq!(answer.status, socket_path, "{name}");
            answer.message();
        }
        drop(socket);
        sockets.stop().await;
        clearing.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_listener_answers_health_checks_to_get_only() {
    both(Setup::default(), |world| async move {
        for what in ["live", "ready"] {
            let answer = health(&world, what).await;
            assert_eq!(answer.text(), r#"{"code":200,"message":null,"content":null}"#);
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            assert_eq!(answer.header("connection"), None);
            let posted = world.send(Request::post(format!("/health/{what}"))).await;
            posted.assert_refused(405, "METHOD_NOT_ALLOWED");
        }
        health(&world, "else").await.assert_refused(404, "NOT_FOUND");
        let answer = world.send(Request::get("/health")).await;
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let content = answer.content();
        assert_eq!(content["status"], "ok", "{content}");
        let part = |name: &str| part(&content, name);
        for name in ["store", "heartbeat", "sweep", "credential_watch", "session_watch", "webhook_look"] {
            assert_eq!(
                (&part(name)["state"], &part(name)["problem"]),
                (&json!("ok"), &Value::Null),
                "{name}"
            );
        }
        let last = part("store")["lastSuccess"].as_str().expect("a time").to_owned();
        assert!(last.as_str() >= content["startedAt"].as_str().expect("a time"), "{content}");
        world.send(Request::post("/health")).await.assert_refused(405, "METHOD_NOT_ALLOWED");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_store_is_live_but_not_ready() {
    shared(Setup::default(), |world, wire| async move {
        wire.set(Network::Down);
        // In small steps, so that every task runs. The total is shorter than the time after which the node is
        // declared dead.
        for _ in 0..9 {
            world.advance(SECOND);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        health(&world, "ready").await.assert_refused(503, "STORE_UNAVAILABLE");
        health(&world, "live").await.content();
        let answer = world.send(Request::get("/health")).await;
        assert_eq!((answer.status, answer.json()["message"].as_str()), (503, Some("STORE_UNAVAILABLE")));
        let content = &answer.json()["content"];
        assert_eq!(
            (&content["status"], &part(content, "store")["state"]),
            (&json!("down"), &json!("failing"))
        );
        wire.set(Network::Up);
        patiently("it is ready again", async {
            while health(&world, "ready").await.status != 200 {
                world.advance(SECOND / 4);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    })
    .await;
}

/// Makes concurrent calls against two nodes in turns.
async fn over_two<T, Fut>(apis: [Api; 2], count: usize, call: impl Fn(Api, usize) -> Fut) -> Vec<T>
where
    T: Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let mut calls: JoinSet<T> = (0..count).map(|n| call(apis[n % 2].clone(), n)).collect();
    let mut answers = Vec::new();
    while let Some(answer) = calls.join_next().await {
        answers.push(answer.expect("every call is answered"));
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_hold_for_concurrent_calls_on_two_nodes() {
    shared(Setup::default(), |world, _| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        let apis = [Api::clone(&world), elsewhere.clone()];
        for round in 0..2 {
            let clients = over_two(apis.clone(), 30, |api, _| {
                let app = app.clone();
                async move { url(&api.client_session_url(&app).await) }
            });
            let users = over_two(apis.clone(), 12, |api, _| {
                let token = tokens.access.clone();
                async move { url(&api.user_session_url(&token).await) }
            });
            let (clients, users) = tokio::join!(clients, users);
            let (clients, users) = tokio::join!(raced(clients, 10), raced(users, 3));
            assert_eq!(connected(&world.client_sessions(&app, "size=50").await), 10, "round {round}");
            assert_eq!(connected(&elsewhere.user_sessions(&tokens.access, "size=50").await), 3);

            let key = clients[0].session_key().to_owned();
            let mut callers = Vec::new();
            for n in 0..20 {
                let person = world.person(&format!("streamer-{n}")).create().await;
                callers.push(world.sign_in(&app, &person).await.access);
            }
            let mut answers = over_two(apis.clone(), 60, |api, n| {
                let (token, key) = (callers[n / 3].clone(), key.clone());
                let event = ["chat", "donation", "subscription"][n % 3];
                async move { api.subscribe(&token, event, &key).await.status }
            })
            .await;
            answers.sort_unstable();
            assert_eq!(answers, [[200; 30], [429; 30]].concat());

            // Half of the clients say goodbye, half disappear. All places are free for the next round.
            for (n, socket) in clients.into_iter().chain(users).enumerate() {
                if n % 2 == 0 { socket.close().await } else { drop(socket) }
            }
            patiently("every place is free", async {
                while connected(&world.client_sessions(&app, "size=50").await)
                    + connected(&world.user_sessions(&tokens.access, "size=50").await)
                    > 0
                {
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
        node.stop().await;
    })
    .await;
}

/// Opens all sessions at once, and expects this many to succeed.
async fn raced(urls: Vec<String>, limit: usize) -> Vec<Socket> {
    let mut tries: JoinSet<_> =
        urls.into_iter().map(|url| async move { Socket::connect(&url).await }).collect();
    let mut open = Vec::new();
    while let Some(attempt) = tries.join_next().await {
        match attempt.expect("every handshake is answered") {
            Ok(socket) => open.push(socket),
            Err(refused) => refused.assert_refused(429, "TOO_MANY_REQUESTS"),
        }
    }
    assert_eq!(open.len(), limit);
    open
}
