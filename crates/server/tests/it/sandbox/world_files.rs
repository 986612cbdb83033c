//! World files: a sandbox begins with one, and writes one.

use serde_json::{Value, json};
use testkit::Request;

use crate::cli::process::{Sandbox, run, stagedoor_in};

/// A world of two people and a bot, whose secrets and tokens are fixed.
const WORLD: &str = r#"people:
  - channelId: mina
    channelName: Mina
    login: mina@example.com
    email: mina@example.com
    emailProven: true
    password: a password
    verifiedMark: true
    broadcastSetting: { defaultLiveTitle: Morning, categoryId: talk, tags: [news] }
    chatSettings: { chatAvailableGroup: FOLLOWER, minFollowerMinute: 0, chatSlowModeSec: 3 }
    live: { concurrentUserCount: 7, openDate: '2026-03-01T00:00:00Z', liveId: 41 }
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
    webhook:
      url: http://127.0.0.1:9/hook
      secret: a-webhook-secret-of-32-characters
      messages:
        - messageId: 01900000-0000-7000-8000-000000000002
          claimId: claim-2
          data: '{"claimId":"claim-2"}'
          state: WAITING
          dueDate: '2099-01-01T00:00:00Z'
          attempts: 2
          failures: 1
          createdDate: '2026-03-05T00:00:00Z'
          changedDate: '2026-03-05T00:00:00Z'
          results:
            - { number: 2, beganDate: '2026-03-05T00:01:00Z', durationMs: 12, status: 500, excerpt: oh }
            - { number: 1, beganDate: '2026-03-05T00:00:00Z', failure: timeout }
        - messageId: 01900000-0000-7000-8000-000000000001
          claimId: claim-1
          data: '{"claimId":"claim-1"}'
          state: DEAD
          dueDate: '2026-03-06T00:00:00Z'
          createdDate: '2026-03-04T00:00:00Z'
          changedDate: '2026-03-05T04:00:00Z'
  - { clientId: lowered, clientSecret: the-secret-of-the-lowered, quotaPercent: 30 }
follows:
  - { channelId: mina, followerChannelId: byeol, createdDate: '2026-01-01T00:00:00Z' }
subscriptions:
  - { channelId: mina, subscriberChannelId: byeol, tierNo: 2, tierName: Gold, month: 3, createdDate: '2026-02-01T00:00:00Z' }
managers:
  - { channelId: mina, managerChannelId: byeol, userRole: STREAMING_CHAT_MANAGER, createdDate: '2026-02-02T00:00:00Z' }
restrictions:
  - { channelId: byeol, restrictedChannelId: mina, createdDate: '2026-02-03T00:00:00Z' }
  - { channelId: byeol, restrictedChannelId: mina, endDate: '2099-01-01T00:00:00Z' }
messages:
  - { channelId: mina, senderChannelId: byeol, content: 안녕, messageTime: '2026-02-04T00:00:00.001Z' }
  - channelId: mina
    senderChannelId: byeol
    content: a {:heart:}
    emojis: { heart: 'https://images.example/heart.png' }
    messageTime: '2026-02-04T00:00:00.002Z'
    hiddenDate: '2026-02-04T00:00:09Z'
campaigns:
  - campaignId: spring
    campaignName: Spring
    organizationId: games
    categoryId: talk
    startDate: '2026-03-01T00:00:00Z'
    endDate: '2026-04-01T00:00:00Z'
    rewards: [{ rewardId: flower, rewardName: Flower, watchMinutes: 30 }]
claims:
  - { campaignId: spring, rewardId: flower, channelId: byeol, claimId: claim-1, fulfilled: true, claimedDate: '2026-03-04T00:00:00Z', updatedDate: '2026-03-04T01:00:00Z' }
watched:
  - { campaignId: spring, channelId: byeol, minutes: 31 }
tokens:
  - channelId: mina
    clientId: bot
    accessToken: the-access-token-of-mina
    refreshToken: the-refresh-token-of-mina
"#;

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
    let in_file = [
        "tierName: Gold",
        "liveId: 41",
        "2026-03-01",
        "안녕",
        "heart.png",
        "claim-2",
        "2099",
        "31",
        "emailProven: true",
        "quotaPercent: 30",
    ];
    for (name, options) in [("one", vec!["--world", &path]), ("default", vec![])] {
        let first = start(&folder, name, &options).await;
        let exported = export(&folder, name).await;
        let left_out = in_file.iter().find(|part| name == "one" && !exported.contains(**part));
        assert_eq!(left_out, None, "{exported}");
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
async fn a_world_with_a_history_is_exported_and_imported_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = start(&folder, "one", &["--clock", "2027-01-01T00:00:00Z", "--seed", "7"]).await;
    let call = async |request: Request, body: Value| {
        sandbox.api.operator(request.json(&body)).await.content();
    };
    let webhook = Request::put("/platform/v1/applications/drops/webhook");
    call(webhook, json!({ "url": "http://127.0.0.1:9/hook" })).await;
    let person = json!({ "channelName": "Late", "login": "late", "password": "a password" });
    call(Request::put("/platform/v1/channels/late"), person).await;
    let (haneul, tokens) = sandbox.user(0, "demo");
    for (kind, body) in [
        ("claim", json!({ "viewer": "nuri", "campaign": "first-voyage", "reward": "sail" })),
        ("chat", json!({ "channel": "haneul", "from": "nuri", "message": "hello" })),
        ("chat", json!({ "channel": "haneul", "from": "nuri", "message": "again" })),
        ("live", json!({ "channel": "bada" })),
    ] {
        call(Request::post(format!("/sandbox/v1/trigger/{kind}")), body).await;
        call(Request::post("/sandbox/v1/clock"), json!({ "advance": "20s" })).await;
    }
    let target = json!({ "targetChannelId": "viewer-mina" });
    let restrict = Request::post("/open/v1/restrict-channels").bearer(&tokens.access).json(&target);
    sandbox.api.send(restrict).await.content();
    let for_a_minute = json!({ "targetChannelId": "viewer-nuri", "chatChannelId": "chat-streamer-haneul" });
    let temporary = Request::post("/open/v1/temporary-restrict-channels").bearer(&tokens.access);
    sandbox.api.send(temporary.json(&for_a_minute)).await.content();

    // Its tokens end. The import issues no others in their place.
    call(Request::post("/sandbox/v1/trigger/expire"), json!({ "what": "access-token", "user": "bada" }))
        .await;

    let export = async |world: &str| {
        let path = format!("/sandbox/v1/worlds/{world}/export?as=yaml");
        sandbox.api.operator(Request::get(path)).await.text().to_owned()
    };
    let exported = export("main").await;
    for part in ["$argon2id$", "hello", "hiddenDate", "endDate", "state: WAITING", "failure: ", "clock: "] {
        assert!(exported.contains(part), "{part}\n{exported}");
    }
    let import = Request::post("/sandbox/v1/worlds/import?name=copy").body(exported.clone().into_bytes());
    let copy = sandbox.api.operator(import).await.content();
    assert_eq!(export("copy").await, exported);
    let text = |name: &str| copy[name].as_str().expect("a text").to_owned();
    let api = testkit::Api::new(&text("baseUrl"), &text("operatorKey"));
    let list = "/platform/v1/applications/drops/webhook/deliveries";
    let deliveries = sandbox.api.operator(Request::get(list)).await.content();
    assert_eq!(api.operator(Request::get(list)).await.content(), deliveries);
    let late = testkit::Person { password: "a password".to_owned(), login: "late".to_owned(), ..haneul };
    api.sign_in(&sandbox.application("demo"), &late).await;
    let refused = Request::post("/sandbox/v1/trigger/chat");
    let refused = refused.json(&json!({ "channel": "haneul", "from": "nuri", "message": "I may not" }));
    assert_ne!(api.operator(refused).await.status, 200, "the restriction goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_is_reported_with_its_line_and_column() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, part) in [
        (WORLD.replace("verifiedMark", "verified"), "line 8, column 5: unknown field `verified`"),
        (
            WORLD.replace("http://localhost:3000", "http://example.com"),
            "line 21, column 20: applications[0].redirectUris[0]: ",
        ),
        (
            WORLD.replace("followerChannelId: byeol", "followerChannelId: nobody"),
            "line 50, column 43: follows[0]",
        ),
        (WORLD.replace("quotaPercent: 30", "quotaPercent: 130"), "applications[1].quotaPercent: "),
        (WORLD.replace("    email: mina@example.com\n", ""), "people[0].emailProven: "),
        (WORLD.replace("failure: timeout", "fault: timeout"), "line 40, column 63: unknown field `fault`"),
        (WORLD.replace("01900000-0000-7000-8000-000000000001", "1"), "webhook.messages[1].messageId: "),
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
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
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
