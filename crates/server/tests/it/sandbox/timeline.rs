//! What happens while the clock of a sandbox is moved.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Receiver, Reply, Request};

use super::deliveries::deliveries;
use super::webhook::{claim, claim_of, put_campaign, register};
use crate::cli::process::{Sandbox, run, stagedoor_in};

const CLOCK: &str = "/sandbox/v1/clock";

/// Moves the clock of a sandbox, and returns what happened.
async fn moved(sandbox: &Sandbox, body: Value) -> Vec<Value> {
    let moved = sandbox.api.operator(Request::post(CLOCK).json(&body)).await.content();
    moved["happened"].as_array().expect("a list").clone()
}

/// A sandbox whose clock stands still.
async fn frozen(folder: &tempfile::TempDir) -> Sandbox {
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    moved(&sandbox, json!({ "mode": "frozen" })).await;
    sandbox
}

/// The words of what happened.
fn words(happened: &[Value]) -> Vec<&str> {
    happened.iter().map(|one| one["what"].as_str().expect("a word")).collect()
}

/// How often something with these fields happened.
fn count(happened: &[Value], fields: &Value) -> usize {
    let fields = fields.as_object().expect("an object");
    happened.iter().filter(|one| fields.iter().all(|(name, value)| one[name] == *value)).count()
}

fn assert_in_order(happened: &[Value]) {
    let times: Vec<&str> = happened.iter().map(|one| one["at"].as_str().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_expire_when_the_clock_passes_their_lifetimes() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = frozen(&folder).await;
    let (person, tokens) = sandbox.user(0, "demo");
    let demo = sandbox.application("demo");
    assert_eq!(sandbox.api.me(&tokens.access).await.status, 200);
    let happened = moved(&sandbox, json!({ "advance": "1d" })).await;
    let fields =
        json!({ "clientId": "demo", "channelId": person.channel_id, "what": "access-token.expired" });
    assert_eq!(count(&happened, &fields), 1, "{happened:?}");
    assert_in_order(&happened);
    assert_eq!(sandbox.api.me(&tokens.access).await.status, 401);
    let refreshed = sandbox.api.refresh(&demo, &tokens.refresh).await.content();
    let refresh = refreshed["refreshToken"].as_str().expect("a token");
    let happened = moved(&sandbox, json!({ "advance": "31d" })).await;
    assert!(words(&happened).contains(&"refresh-token.expired"), "{happened:?}");
    assert_eq!(sandbox.api.refresh(&demo, refresh).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_application_is_warned_deleted_and_purged_at_its_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = frozen(&folder).await;
    let happened = moved(&sandbox, json!({ "advance": "130d" })).await;
    assert_in_order(&happened);
    let of_demo = happened.iter().filter(|one| one["clientId"] == "demo");
    let life: Vec<&str> = of_demo
        .filter_map(|one| one["what"].as_str().filter(|what| what.starts_with("application.")))
        .collect();
    let expected = [
        "application.unused-60-days",
        "application.unused-80-days",
        "application.unused-89-days",
        "application.deleted",
        "application.purged",
    ];
    assert_eq!(life, expected);
    let demo = sandbox.api.operator(Request::get("/platform/v1/applications/demo")).await;
    assert_eq!(demo.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_application_is_deleted_while_the_clock_runs_fast() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    moved(&sandbox, json!({ "mode": "scaled", "rate": 1_000_000 })).await;
    testkit::patiently("the deletion", async {
        let path = "/platform/v1/applications/demo";
        while sandbox.api.operator(Request::get(path)).await.status == 200 {}
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_socket_lives_on_when_the_clock_moves_by_90_days() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = frozen(&folder).await;
    let (person, tokens) = sandbox.user(0, "demo");
    let mut socket = sandbox.api.open_user_session(&tokens.access).await;
    let key = socket.session_key().to_owned();
    sandbox.api.subscribe(&tokens.access, "chat", &key).await.content();
    socket.system("subscribed").await;
    moved(&sandbox, json!({ "advance": "90d" })).await;
    let (viewer, _) = sandbox.user(1, "demo");
    sandbox.api.say(&person.channel_id, &viewer.channel_id, "still here").await.content();
    assert_eq!(socket.event("CHAT").await["content"], "still here");
}

/// The duration of something in real time.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let since = service::Clock::system();
    let done = work.await;
    (done, since.monotonic())
}

/// A debug build beside other tests takes this many times as long as the program at most.
const DEBUG_FACTOR: u32 = 5;

/// Checks the shortest of some durations, because other tests run at the same time.
fn assert_within(figure: &str, took: &[Duration], promised: Duration) {
    let shortest = took.iter().min().expect("it was measured");
    println!("{figure}: {took:?}");
    assert!(*shortest < promised * DEBUG_FACTOR, "{figure}: {took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_through_its_retries_to_the_dead_letter_in_one_move() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (frozen(&folder).await, Receiver::start().await);
    receiver.usually(Reply::Status(500));
    register(&sandbox, &receiver).await;
    let mut durations = Vec::new();
    for (round, campaign) in (1..).zip(["lighthouse", "harbour", "island"]) {
        claim(&sandbox, campaign).await;
        deliveries(&sandbox, json!({ "number": 1 }), round).await;
        // The retries take 27.6 hours, and up to a tenth more.
        let (happened, took) = timed(moved(&sandbox, json!({ "advance": "31h" }))).await;
        durations.push(took);
        assert_eq!(receiver.count(), 8 * round);
        let retried = json!({ "what": "webhook.attempt", "status": 500, "clientId": "drops" });
        assert_eq!(count(&happened, &retried), 7, "{happened:?}");
        assert_eq!(count(&happened, &json!({ "what": "webhook.dead" })), 1, "{happened:?}");
        assert_in_order(&happened);
        // A single attempt begins exactly when it is due.
        let made = deliveries(&sandbox, json!({ "number": ">=2" }), 7 * round).await;
        let dues = happened.iter().filter(|one| one["what"] == "webhook.attempt");
        for (due, made) in dues.zip(&made[7 * (round - 1)..]) {
            assert_eq!(due["at"], made["at"]);
        }
    }
    assert_within("28 hours of retries", &durations, Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn five_days_of_failures_disable_a_webhook() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (frozen(&folder).await, Receiver::start().await);
    receiver.usually(Reply::Status(500));
    register(&sandbox, &receiver).await;
    let (mut happened, mut took) = (Vec::new(), Duration::ZERO);
    // The retries of the last message end on the sixth day.
    for (day, span) in ["24h", "24h", "24h", "24h", "48h"].into_iter().enumerate() {
        claim(&sandbox, &format!("day-{day}")).await;
        let (moved, of_day) = timed(moved(&sandbox, json!({ "advance": span }))).await;
        happened.extend(moved);
        took += of_day;
    }
    let disabled = json!({ "what": "webhook.disabled", "clientId": "drops", "reason": "FAILING" });
    assert_eq!(count(&happened, &disabled), 1, "{happened:?}");
    receiver.usually(Reply::Status(200));
    claim(&sandbox, "later").await;
    let later = moved(&sandbox, json!({ "advance": "2d" })).await;
    assert_eq!(count(&later, &json!({ "what": "webhook.attempt" })), 0, "{later:?}");
    assert_within("five days of failures", &[took], Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn ninety_days_with_everything_in_them_take_two_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--no-quota"]).await;
    moved(&sandbox, json!({ "mode": "frozen" })).await;
    let receiver = Receiver::start().await;
    receiver.usually(Reply::Status(500));
    register(&sandbox, &receiver).await;
    put_campaign(&sandbox, "lighthouse", 20).await;
    for reward in 0..20 {
        claim_of(&sandbox, "lighthouse", reward, 0).await;
    }
    let demo = sandbox.application("demo");
    for _ in 0..100 {
        sandbox.api.client_session_url(&demo).await.content();
    }
    sandbox
        .api
        .operator(Request::post("/sandbox/v1/trigger/restrict").json(&json!({ "temporary": true })))
        .await
        .content();
    deliveries(&sandbox, json!({ "number": 1 }), 20).await;
    let (happened, took) = timed(moved(&sandbox, json!({ "advance": "91d" }))).await;
    assert_in_order(&happened);
    for (what, at_least) in [
        ("session-url.expired", 100),
        ("access-token.expired", 5),
        ("refresh-token.expired", 5),
        ("restriction.ended", 1),
        ("application.unused-60-days", 1),
        ("application.deleted", 1),
        ("webhook.attempt", 140),
        ("webhook.dead", 20),
    ] {
        let found = count(&happened, &json!({ "what": what }));
        assert!(found >= at_least, "{what}: {found}");
    }
    assert_within("90 days with everything in them", &[took], Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_messages_is_retried_together_and_all_of_it_is_listed() {
    const REWARDS: usize = 100;
    const VIEWERS: usize = 2;
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (frozen(&folder).await, Receiver::start().await);
    receiver.usually(Reply::Status(500));
    register(&sandbox, &receiver).await;
    put_campaign(&sandbox, "lighthouse", REWARDS).await;
    for (reward, viewer) in (0..REWARDS).flat_map(|reward| (0..VIEWERS).map(move |viewer| (reward, viewer))) {
        claim_of(&sandbox, "lighthouse", reward, viewer).await;
    }
    let messages = REWARDS * VIEWERS;
    deliveries(&sandbox, json!({ "number": 1 }), messages).await;
    let (happened, took) = timed(moved(&sandbox, json!({ "advance": "31h" }))).await;
    println!("the retries of {messages} messages: {took:?}");
    assert_eq!(count(&happened, &json!({ "what": "webhook.attempt" })), 7 * messages);
    assert_eq!(count(&happened, &json!({ "what": "webhook.dead" })), messages);
    assert_eq!(receiver.count(), 8 * messages);
    assert_in_order(&happened);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_end_in_a_move_is_listed() {
    const URLS: usize = 1_100;
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--no-quota"]).await;
    moved(&sandbox, json!({ "mode": "frozen" })).await;
    let demo = sandbox.application("demo");
    for _ in 0..URLS {
        sandbox.api.client_session_url(&demo).await.content();
    }
    let happened = moved(&sandbox, json!({ "advance": "1m" })).await;
    assert_eq!(count(&happened, &json!({ "what": "session-url.expired", "clientId": "demo" })), URLS);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_moves_at_once_follow_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = frozen(&folder).await;
    let move_it = async || {
        let advance = Request::post(CLOCK).json(&json!({ "advance": "20h" }));
        sandbox.api.operator(advance).await.content()
    };
    let (one, two) = tokio::join!(move_it(), move_it());
    let now = |answer: &Value| {
        let now = answer["now"].as_str().expect("a time");
        domain::Timestamp::parse_rfc3339(now).expect("RFC 3339").as_millis()
    };
    // The first one may answer after the second one moved the clock.
    let later = now(&one).max(now(&two));
    let shown = sandbox.api.operator(Request::get(CLOCK)).await.content();
    assert_eq!(now(&shown), later);
    let expired = |answer: &Value| {
        let happened = answer["happened"].as_array().expect("a list");
        count(happened, &json!({ "what": "access-token.expired", "clientId": "demo" }))
    };
    let people = sandbox.list("users").len();
    assert_eq!(expired(&one) + expired(&two), people, "each expired once, in one of the moves");
    assert!(expired(&one) == 0 || expired(&two) == 0, "one move ends before the other begins");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_moves_to_the_next_time_of_a_kind() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = frozen(&folder).await;
    let happened = moved(&sandbox, json!({ "until": "access-token.expired" })).await;
    let last = happened.last().expect("something happened");
    assert_eq!(last["what"], "access-token.expired");
    let now = sandbox.api.operator(Request::get(CLOCK)).await.content();
    assert_eq!(last["at"], now["now"]);
    for (word, rule) in [("access.token", "must be one of code.expired, "), ("campaign.started", "ahead")] {
        let refused = sandbox.api.operator(Request::post(CLOCK).json(&json!({ "until": word }))).await;
        let message = refused.json()["message"].as_str().expect("a message").to_owned();
        let status = if rule.contains("ahead") { 409 } else { 400 };
        assert_eq!(refused.status, status, "{message}");
        assert!(message.starts_with("until: ") && message.contains(rule), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_show_what_is_next_and_what_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = |arguments: &[&str]| stagedoor_in(folder.path(), arguments);
    let mut dev = command(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    dev.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let sandbox = Sandbox::of(dev, folder.path().join("log")).await;
    moved(&sandbox, json!({ "mode": "frozen" })).await;
    let next = run(command(&["clock", "next", "--json"])).await;
    let next: Value = serde_json::from_str(&next.stdout).expect("JSON");
    let next = next["next"].as_array().expect("a list");
    assert_in_order(next);
    let first = &next[0];
    let what = first["what"].as_str().expect("a word");
    let advanced = run(command(&["clock", "advance", "--until", what])).await;
    assert!(advanced.status.success(), "{}", advanced.stderr);
    let line = format!("{}  {what}  ", first["at"].as_str().expect("a time"));
    assert!(advanced.stdout.lines().any(|shown| shown.starts_with(&line)), "{}", advanced.stdout);
    let unknown = run(command(&["clock", "advance", "--until", "rain"])).await;
    assert!(!unknown.status.success() && unknown.stderr.contains("code.expired"), "{}", unknown.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_recover_when_the_clock_moves() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = frozen(&folder).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let mut status = 200;
    for _ in 0..CALLS_MAX {
        status = sandbox.api.me(&tokens.access).await.status;
        if status == 429 {
            break;
        }
    }
    assert_eq!(status, 429);
    moved(&sandbox, json!({ "advance": "1m" })).await;
    assert_eq!(sandbox.api.me(&tokens.access).await.status, 200);
}

/// More calls than the quota of any caller for a minute.
const CALLS_MAX: usize = 2_000;
