//! What happens while the clock of a sandbox is moved.

use serde_json::{Value, json};
use testkit::{Receiver, Reply, Request};

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

/// Registers a receiver as the webhook of `drops`.
async fn register(sandbox: &Sandbox, receiver: &Receiver) {
    let webhook = Request::put("/platform/v1/applications/drops/webhook");
    sandbox.api.operator(webhook.json(&json!({ "url": receiver.url("/hook") }))).await.content();
}

/// Claims a reward of a campaign of its own.
async fn claim(sandbox: &Sandbox, campaign: &str) {
    let drops = sandbox.api.operator(Request::get("/platform/v1/applications/drops")).await.content();
    let new = json!({
        "campaignName": campaign, "organizationId": drops["organizationId"], "categoryId": "star-voyage",
        "rewards": [{ "rewardId": "lamp", "rewardName": "lamp" }],
    });
    sandbox.api.put_campaign(campaign, &new).await.content();
    let (person, _) = sandbox.user(0, "demo");
    let claim = json!({ "campaignId": campaign, "rewardId": "lamp", "channelId": person.channel_id });
    sandbox.api.claim(&claim).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_goes_through_its_retries_to_the_dead_letter_in_one_move() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (frozen(&folder).await, Receiver::start().await);
    receiver.usually(Reply::Status(500));
    register(&sandbox, &receiver).await;
    claim(&sandbox, "lighthouse").await;
    receiver.next().await;
    let real = service::Clock::system();
    // The retries take 27.6 hours, and up to a tenth more.
    let happened = moved(&sandbox, json!({ "advance": "31h" })).await;
    let took = real.monotonic();
    assert_eq!(receiver.count(), 8);
    let retried = json!({ "what": "webhook.attempt", "status": 500, "clientId": "drops" });
    assert_eq!(count(&happened, &retried), 7, "{happened:?}");
    assert_eq!(count(&happened, &json!({ "what": "webhook.dead" })), 1, "{happened:?}");
    assert_in_order(&happened);
    assert!(took < std::time::Duration::from_secs(10), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_days_of_failures_disable_a_webhook() {
    let folder = tempfile::tempdir().expect("a folder");
    let (sandbox, receiver) = (frozen(&folder).await, Receiver::start().await);
    receiver.usually(Reply::Status(500));
    register(&sandbox, &receiver).await;
    let mut happened = Vec::new();
    // The retries of the last message end on the sixth day.
    for (day, span) in ["24h", "24h", "24h", "24h", "48h"].into_iter().enumerate() {
        claim(&sandbox, &format!("day-{day}")).await;
        happened.extend(moved(&sandbox, json!({ "advance": span })).await);
    }
    let disabled = json!({ "what": "webhook.disabled", "clientId": "drops", "reason": "FAILING" });
    assert_eq!(count(&happened, &disabled), 1, "{happened:?}");
    receiver.usually(Reply::Status(200));
    claim(&sandbox, "later").await;
    let later = moved(&sandbox, json!({ "advance": "2d" })).await;
    assert_eq!(count(&later, &json!({ "what": "webhook.attempt" })), 0, "{later:?}");
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
        assert_eq!(refused.status, 400, "{message}");
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
