//! World files: a sandbox begins with one, and writes one.

use serde_json::{Value, json};
use testkit::Request;

use crate::cli::process::{Sandbox, run, stagedoor_in};

/// A world of two people and a bot, whose secrets and tokens are fixed.
const WORLD: &str = "\
people:
  - channelId: mina
    channelName: Mina
    login: mina@example.com
    password: a password
    verifiedMark: true
    broadcastSetting: { defaultLiveTitle: Morning, categoryId: talk, tags: [news] }
    chatSettings: { chatAvailableGroup: FOLLOWER, minFollowerMinute: 0, chatSlowModeSec: 3 }
    live: { concurrentUserCount: 7 }
  - { channelId: byeol, channelName: 별이, realNameVerified: false }
categories:
  - { categoryId: talk, categoryType: ETC, categoryValue: Talk }
organizations:
  - { organizationId: games, organizationName: Games, verified: true }
applications:
  - clientId: bot
    name: My bot
    clientSecret: the-secret-of-my-bot
    redirectUris: ['http://localhost:3000/callback']
    organizationId: games
    profile: observed
    quota: false
    webhook: { url: 'http://127.0.0.1:9/hook', secret: a-webhook-secret-of-32-characters }
follows:
  - { channelId: mina, followerChannelId: byeol, createdDate: '2026-01-01T00:00:00Z' }
subscriptions:
  - { channelId: mina, subscriberChannelId: byeol, tierNo: 2, month: 3, createdDate: '2026-02-01T00:00:00Z' }
managers:
  - { channelId: mina, managerChannelId: byeol, userRole: STREAMING_CHAT_MANAGER }
campaigns:
  - campaignId: spring
    campaignName: Spring
    organizationId: games
    categoryId: talk
    startDate: '2026-03-01T00:00:00Z'
    endDate: '2026-04-01T00:00:00Z'
    rewards: [{ rewardId: flower, rewardName: Flower, watchMinutes: 30 }]
claims:
  - { campaignId: spring, rewardId: flower, channelId: byeol, claimId: claim-1, fulfilled: true }
tokens:
  - channelId: mina
    clientId: bot
    accessToken: the-access-token-of-mina
    refreshToken: the-refresh-token-of-mina
";

async fn start(folder: &tempfile::TempDir, name: &str, options: &[&str]) -> Sandbox {
    let mut dev = stagedoor_in(folder.path(), &["dev", "--json", "--listen", "127.0.0.1:0", "--name", name]);
    dev.args(options).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    Sandbox::of(dev, folder.path().join("log")).await
}

/// Writes a world file, and returns its path.
fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

async fn export(folder: &tempfile::TempDir, name: &str) -> String {
    let exported = run(stagedoor_in(folder.path(), &["world", "export", "--sandbox", name])).await;
    assert!(exported.status.success(), "{}", exported.stderr);
    exported.stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_begins_with_what_the_file_describes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "world.yaml", WORLD);
    let sandbox = start(&folder, "one", &["--world", &path]).await;
    let bot = sandbox.application("My bot");
    assert_eq!(bot.client_secret, "the-secret-of-my-bot");
    let (mina, tokens) = sandbox.user(0, "bot");
    assert_eq!((tokens.access.as_str(), mina.password.as_str()), ("the-access-token-of-mina", "a password"));
    let me = sandbox.api.me(&tokens.access).await.content();
    assert_eq!(me["channelId"], "mina");
    sandbox.api.refresh(&bot, &tokens.refresh).await.content();
    sandbox.api.sign_in(&bot, &mina).await;
    let lives = sandbox.api.lives(&bot, "size=20").await.content();
    assert_eq!(
        (&lives["data"][0]["liveTitle"], &lives["data"][0]["concurrentUserCount"]),
        (&json!("Morning"), &json!(7))
    );
    let get = async |path: &str| sandbox.api.operator(Request::get(path.to_owned())).await.content();
    let claims = Request::get("/open/v1/drops/reward-claims").client(&bot.client_id, &bot.client_secret);
    let claims = sandbox.api.send(claims).await.content();
    assert_eq!(claims["data"][0]["fulfillmentState"], "FULFILLED", "{claims}");
    let webhook = get("/platform/v1/applications/bot/webhook").await;
    assert_eq!(webhook["url"], "http://127.0.0.1:9/hook");
    let secrets = get("/platform/v1/applications/bot/webhook/secrets").await;
    assert_eq!(secrets["data"].as_array().map(Vec::len), Some(1), "{secrets}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_world_loads_into_an_equal_world() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "world.yaml", WORLD);
    for (name, options) in [("one", vec!["--world", &path]), ("default", vec![])] {
        let first = start(&folder, name, &options).await;
        let exported = export(&folder, name).await;
        let again = file(&folder, "again.yaml", &exported);
        let second = start(&folder, "second", &["--world", &again]).await;
        assert_eq!(export(&folder, "second").await, exported);
        assert_eq!(second.world["users"], first.world["users"]);
        assert_eq!(second.world["applications"], first.world["applications"]);
        for sandbox in [first, second] {
            sandbox.signal("TERM").await;
            assert!(sandbox.end().await.0.success());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_in_the_world_is_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = start(&folder, "one", &[]).await;
    let body = json!({ "channelName": "Late", "login": "late", "password": "a password" });
    sandbox.api.operator(Request::put("/platform/v1/channels/late").json(&body)).await.content();
    let follow = json!({ "channel": "late", "from": "haneul" });
    sandbox.api.operator(Request::post("/sandbox/v1/trigger/follow").json(&follow)).await.content();
    let exported =
        sandbox.api.operator(Request::get("/sandbox/v1/worlds/main/export?as=json")).await.content();
    let people = exported["people"].as_array().expect("a list");
    assert_eq!((people.len(), &people[8]["channelId"]), (9, &json!("late")));
    let is_new =
        |entry: &&Value| entry["channelId"] == "late" && entry["followerChannelId"] == "streamer-haneul";
    assert!(exported["follows"].as_array().expect("a list").iter().any(|entry| is_new(&entry)));
    let wrong = sandbox.api.operator(Request::get("/sandbox/v1/worlds/main/export?as=xml")).await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_is_reported_with_its_line_and_column() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, part) in [
        (WORLD.replace("verifiedMark", "verified"), "line 6, column 5: unknown field `verified`"),
        (
            WORLD.replace("http://localhost:3000", "http://example.com"),
            "line 19, column 20: applications[0].redirectUris[0]: ",
        ),
        (
            WORLD.replace("followerChannelId: byeol", "followerChannelId: nobody"),
            "line 25, column 43: follows[0]",
        ),
        (
            WORLD.replace("chatSlowModeSec: 3", "chatSlowModeSec: 4"),
            "people[0].chatSettings.chatSlowModeSec: ",
        ),
        (
            WORLD.replace("concurrentUserCount: 7", "concurrentUserCount: -7"),
            "people[0].live.concurrentUserCount: ",
        ),
    ] {
        let path = file(&folder, "wrong.yaml", &text);
        let refused =
            run(stagedoor_in(folder.path(), &["dev", "--listen", "127.0.0.1:0", "--world", &path])).await;
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(part) && refused.stderr.contains("wrong.yaml"), "{}", refused.stderr);
    }
    let missing = run(stagedoor_in(folder.path(), &["dev", "--world", "/nowhere.yaml"])).await;
    assert!(missing.stderr.contains("--world /nowhere.yaml"), "{}", missing.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_world_keeps_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "world.yaml", WORLD);
    let data = folder.path().join("data");
    let data = data.to_str().expect("UTF-8");
    let first = start(&folder, "one", &["--data", data, "--world", &path]).await;
    first.signal("TERM").await;
    assert!(first.end().await.0.success());
    let again = start(&folder, "one", &["--data", data]).await;
    assert_eq!(again.list("users").len(), 2);
    assert_eq!(again.application("My bot").client_secret, "the-secret-of-my-bot");
    again.signal("TERM").await;
    assert!(again.end().await.0.success());
    let other = file(&folder, "other.yaml", &WORLD.replace("Mina", "Nina"));
    let refused = stagedoor_in(folder.path(), &["dev", "--data", data, "--world", &other]);
    let refused = run(refused).await;
    assert!(refused.stderr.contains("another file"), "{}", refused.stderr);
}
