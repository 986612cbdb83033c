//! A node and the database are killed while messages, follows, watching and subscriptions change at full
//! speed over two nodes. Everything that was answered with 200 is there afterwards, and once.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bus::testing::NatsServer;
use serde_json::json;
use store::testing::PostgresServer;
use testkit::{Api, Connection, Request, Socket, Wire, World, patiently};
use tokio::process::Child;

use super::bus::until;
use super::crash::{opened_store, start_node};
use super::kills::{listen, name, stored};
use super::outbox::count;
use crate::cli::process::{listening_address, stagedoor};

/// Shortest time of load before, between and after the kills.
const LOAD: Duration = Duration::from_millis(700);
/// Minimum number of answers to each caller in each of these times.
const ANSWERS: usize = 2;
/// Number of followers. A fast machine answers all of them early.
const FOLLOWERS: usize = 600;
/// The channel of the messages, follows and watching.
const BUSY: usize = 0;
/// The channel of the subscriptions, which has no events, so its session stays open.
const QUIET: usize = 1;

/// The messages of changes of subscriptions.
const KINDS: [&str; 2] = ["subscribed", "unsubscribed"];

/// Two nodes at once, and when it is enough.
#[derive(Clone)]
struct Calls {
    nodes: [SocketAddr; 2],
    is_enough: Arc<AtomicBool>,
    /// The answers to [`chat`](Self::chat), [`follow`](Self::follow) and [`watch`](Self::watch).
    answered: Arc<[AtomicUsize; 3]>,
}

impl Calls {
    fn go_on(&self) -> bool {
        !self.is_enough.load(SeqCst)
    }

    /// Lets the callers go on for a while.
    async fn load(&self) {
        let before: Vec<_> = self.answered.iter().map(|answered| answered.load(SeqCst)).collect();
        tokio::time::sleep(LOAD).await;
        until("each caller gets answers", || async {
            let mut pairs = self.answered.iter().zip(&before);
            pairs.all(|(answered, before)| answered.load(SeqCst) >= FOLLOWERS.min(before + ANSWERS))
        })
        .await;
    }

    /// Repeats a request, at one node after the other, until it is answered with 200. Gives the number of
    /// answers before, after each of which the change may stand.
    async fn until_answered(&self, first: usize, request: Request) -> usize {
        patiently("a call succeeds in the end", async {
            for attempt in first.. {
                let connection = Connection::try_open(self.nodes[attempt % 2]).await;
                if let Some(mut connection) = connection
                    && let Some(answer) = connection.try_send(&request).await
                {
                    match answer.status {
                        200 => return attempt - first,
                        429 | 500 | 503 => {}
                        other => panic!("{other}: {}", answer.text()),
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            unreachable!("the attempts have no end")
        })
        .await
    }

    /// Chat messages of the streamer, each with a key.
    async fn chat(self) -> BTreeSet<String> {
        let (mut answered, name) = (BTreeSet::new(), name(BUSY));
        for n in 0.. {
            if !self.go_on() {
                break;
            }
            let text = format!("message {n}");
            let body = json!({ "senderChannelId": name, "message": text });
            let request = operator(Request::post(format!("/platform/v1/channels/{name}/chats")));
            self.until_answered(n, request.header("Idempotency-Key", &text).json(&body)).await;
            answered.insert(text);
            self.answered[0].fetch_add(1, SeqCst);
        }
        answered
    }

    /// Followers of the streamer, who stay.
    async fn follow(self, followers: Vec<String>) -> BTreeSet<String> {
        let (mut answered, name) = (BTreeSet::new(), name(BUSY));
        for (n, follower) in followers.into_iter().enumerate() {
            if !self.go_on() {
                break;
            }
            let path = format!("/platform/v1/channels/{name}/followers/{follower}");
            self.until_answered(n, operator(Request::put(path)).json(&json!({}))).await;
            answered.insert(follower);
            self.answered[1].fetch_add(1, SeqCst);
        }
        answered
    }

    /// Minutes of one viewer, each reported with a key.
    async fn watch(self, viewer: String) -> i64 {
        let mut minutes = 0;
        while self.go_on() {
            let body = json!({ "channelId": name(BUSY), "viewerChannelIds": [viewer], "minutes": 1 });
            let request = operator(Request::post("/platform/v1/drops/watching"));
            let key = format!("minute {minutes}");
            self.until_answered(minutes as usize, request.header("Idempotency-Key", key).json(&body)).await;
            minutes += 1;
            self.answered[2].fetch_add(1, SeqCst);
        }
        minutes
    }

    /// A session subscribes and unsubscribes. It receives a message of each change once, and in order. A call
    /// that is repeated may have been two changes.
    async fn subscribe(self, token: String, mut socket: Socket) -> bool {
        let (mut is_subscribed, mut repeats, mut n) = (false, 0, 0);
        while self.go_on() {
            is_subscribed = !is_subscribed;
            let call = if is_subscribed { "subscribe" } else { "unsubscribe" };
            let path = format!("/open/v1/sessions/events/{call}/chat?sessionKey={}", socket.session_key());
            repeats += self.until_answered(n, Request::post(path).bearer(&token)).await;
            let [expected, before] = if is_subscribed { KINDS } else { [KINDS[1], KINDS[0]] };
            loop {
                let kind = socket.event("SYSTEM").await["type"].clone();
                if kind == expected {
                    break;
                }
                assert!(kind == before && repeats > 0, "{kind} in place of {expected}");
                repeats -= 1;
            }
            n += 1;
        }
        is_subscribed
    }
}

fn operator(request: Request) -> Request {
    request.bearer(World::OPERATOR_KEY)
}

/// A node in a process of its own.
async fn victim(
    postgres: &PostgresServer,
    nats: &NatsServer,
    folder: &std::path::Path,
) -> (Child, SocketAddr) {
    let log = folder.join("log");
    let mut command = stagedoor(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("STAGEDOOR_DATABASE_URL", postgres.url())
        .env("STAGEDOOR_BUS_URL", nats.url())
        .env("STAGEDOOR_OPERATOR_KEY", World::OPERATOR_KEY)
        .env("STAGEDOOR_SERVICE_KEY", World::SERVICE_KEY)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).expect("a file"));
    let process = command.spawn().expect("the program starts");
    (process, listening_address(&log).await)
}

/// A campaign for which each minute on the busy channel counts.
async fn begin_campaign(api: &Api) {
    let category = json!({ "categoryType": "GAME", "categoryValue": "바다" });
    api.put_category("sea", &category).await.content();
    let organization = json!({ "organizationName": "Games", "verified": true });
    api.operator(Request::put("/platform/v1/organizations/games").json(&organization)).await.content();
    let rewards = json!([{ "rewardId": "crown", "rewardName": "왕관", "watchMinutes": 30 }]);
    let campaign = json!({
        "campaignName": "항해", "organizationId": "games", "categoryId": "sea", "rewards": rewards,
    });
    api.put_campaign("voyage", &campaign).await.content();
    api.put_live(&name(BUSY), &json!({ "categoryId": "sea" })).await.content();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_acknowledged_survives_the_kills_of_a_node_and_of_the_database_and_is_there_once() {
    let mut postgres = PostgresServer::create().await;
    postgres.start(&[]);
    let nats = NatsServer::start().await;
    let store = opened_store(&postgres).await;
    let wire = Wire::of_url(&postgres.url(), &format!("127.0.0.1:{}", postgres.port())).await;
    let (survivor, api) = start_node(&postgres, &wire, &nats).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (mut process, other) = victim(&postgres, &nats, folder.path()).await;

    let app = api.application("bot").create().await;
    let mut tokens = Vec::new();
    for channel in [BUSY, QUIET] {
        let person = api.person(&name(channel)).create().await;
        tokens.push(api.sign_in(&app, &person).await.access);
    }
    let channel = |id: &str| json!({ "kind": "channel", "channelId": id, "channelName": id });
    let fans: Vec<String> = (0..FOLLOWERS).map(|n| format!("fan-{n}")).collect();
    let lines: Vec<_> = fans.iter().map(|fan| channel(fan).to_string()).collect();
    api.operator(Request::post("/platform/v1/events").body(lines.join("\n"))).await.content();
    begin_campaign(&api).await;
    let mut listener = api.open_client_session(&app).await;
    api.subscribe(&tokens[BUSY], "chat", listener.session_key()).await.content();
    listener.system("subscribed").await;
    let listener = listen(listener);
    let changing = api.open_user_session(&tokens[QUIET]).await;
    let changing_key = changing.session_key().to_owned();

    let calls =
        Calls { nodes: [survivor.address(), other], is_enough: Arc::default(), answered: Arc::default() };
    let chat = tokio::spawn(calls.clone().chat());
    let follow = tokio::spawn(calls.clone().follow(fans.clone()));
    let watch = tokio::spawn(calls.clone().watch(fans[0].clone()));
    let subscribe = tokio::spawn(calls.clone().subscribe(tokens[QUIET].clone(), changing));
    calls.load().await;
    process.kill().await.expect("it is killed");
    calls.load().await;
    postgres.stop("immediate").await;
    postgres.start(&[]);
    calls.load().await;
    calls.is_enough.store(true, SeqCst);

    let (messages, followers) = (chat.await.expect("answers"), follow.await.expect("answers"));
    let (minutes, is_subscribed) = (watch.await.expect("answers"), subscribe.await.expect("answers"));
    assert!(messages.len() > 5 && followers.len() > 5 && minutes > 5, "there was load");
    assert_eq!(stored(&store, BUSY).await, messages);
    let rows = "SELECT COUNT(*) FROM chat_messages";
    assert_eq!(count(&store, rows).await, Some(messages.len() as i64), "no message is there twice");
    let counts = [
        ("SELECT COUNT(*) FROM followers", followers.len() as i64),
        ("SELECT CAST(SUM(follower_count) AS BIGINT) FROM channels", followers.len() as i64),
        ("SELECT CAST(SUM(minutes) AS BIGINT) FROM watched_minutes", minutes),
    ];
    for (sql, expected) in counts {
        assert_eq!(count(&store, sql).await, Some(expected), "{sql}");
    }
    let listed = api.operator(Request::get(format!("/platform/v1/sessions/{changing_key}"))).await.content();
    let subscriptions = listed["subscribedEvents"].as_array().map(Vec::len);
    assert_eq!(subscriptions, Some(usize::from(is_subscribed)), "{listed}");

    let open_batches = "SELECT COUNT(*) FROM event_outbox WHERE taken_over_at IS NULL";
    until("nothing is left in the outbox", || async { count(&store, open_batches).await == Some(0) }).await;
    tokio::time::sleep(service::lost_events::LOST_EVENTS_KNOWN_WITHIN).await;
    api.say(&name(BUSY), &name(BUSY), "end").await.content();
    let (received, survived) = patiently("the last word", listener).await.expect("a listener goes on");
    assert!(received.is_subset(&messages) && (!survived || received == messages), "{received:?}");
    survivor.stop().await;
    store.close().await;
    postgres.stop("immediate").await;
}
