//! Campaigns, reported watching, and the claims that it allows (the platform API's drops).

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both};

use crate::cli::process::{CommandOutput, Sandbox, run, stagedoor};
use crate::fixture::{Fixture, wrong};

/// The initial time of the world's clock.
const NOW: &str = "2026-07-18T14:32:12.345Z";
const SECOND_LATER: &str = "2026-07-18T14:32:13.345Z";

/// A campaign of the category `sea`: `sword` at once, `crown` after 30 minutes.
fn campaign() -> Value {
    json!({
        "campaignName": "새 항해", "organizationId": "publisher", "categoryId": "sea",
        "rewards": [
            { "rewardId": "crown", "rewardName": "왕관", "watchMinutes": 30 },
            { "rewardId": "sword", "rewardName": "검" },
        ],
    })
}

/// The fixture, and the category `sea` without a campaign.
async fn fixture(world: &World) -> Fixture {
    let fixture = Fixture::set_up(world).await;
    world.category("sea", "바다").await;
    fixture
}

/// The fixture, with the campaign `new`, modified by `change`, and `haneul` on air in its category.
async fn set(world: &World, change: impl FnOnce(&mut Value)) -> Fixture {
    let fixture = fixture(world).await;
    let mut campaign = campaign();
    change(&mut campaign);
    world.put_campaign("new", &campaign).await.content();
    air(world, "haneul", "sea").await;
    fixture
}

async fn air(world: &World, channel: &str, category: &str) {
    let target = format!("/platform/v1/channels/{channel}/live");
    let body = json!({ "categoryId": category });
    world.operator(Request::put(target).json(&body)).await.content();
}

async fn off_air(world: &World, channel: &str) {
    world.operator(Request::delete(format!("/platform/v1/channels/{channel}/live"))).await.content();
}

fn watching(viewers: &[&str], minutes: i64) -> Value {
    json!({ "channelId": "haneul", "viewerChannelIds": viewers, "minutes": minutes })
}

async fn watch(world: &World, body: &Value) -> Response {
    world.operator(Request::post("/platform/v1/drops/watching").json(body)).await
}

/// Reports that `byeol` watched `haneul`, and returns the minutes that count for `new`.
async fn watched(world: &World, minutes: i64) -> Option<i64> {
    let content = watch(world, &watching(&["byeol"], minutes)).await.content();
    let counted = content["data"].as_array().expect("a list");
    counted.iter().find(|each| each["campaignId"] == "new").and_then(|each| each["minutes"].as_i64())
}

async fn progress(world: &World, campaign: &str, viewer: &str) -> Response {
    let target = format!("/platform/v1/drops/campaigns/{campaign}/progress/{viewer}");
    world.operator(Request::get(target)).await
}

async fn claim(world: &World, reward: &str) -> Response {
    world.claim(&json!({ "campaignId": "new", "rewardId": reward, "channelId": "byeol" })).await
}

/// Sends any number of lines in bulk.
async fn bulk(world: &World, lines: &[Value]) -> Value {
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    world.operator(Request::post("/platform/v1/events").body(lines.join("\n"))).await.content()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_is_returned_as_it_was_put() {
    both(Setup::default(), |world| async move {
        fixture(&world).await;
        let mut body = campaign();
        body["startDate"] = json!("2026-07-18T23:32:12.345+09:00");
        body["endDate"] = json!("2026-08-01T00:00:00Z");
        body["channelIds"] = json!(["haneul", "byeol", "haneul"]);
        world.put_campaign("new", &body).await.content();
        let show = async || world.operator(Request::get("/platform/v1/drops/campaigns/new")).await;
        assert_eq!(
            show().await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"campaignId":"new","campaignName":"새 항해","#,
                r#""organizationId":"publisher","categoryId":"sea","#,
                r#""startDate":"2026-07-18T14:32:12.345Z","endDate":"2026-08-01T00:00:00.000Z","#,
                r#""channelIds":["byeol","haneul"],"rewards":["#,
                r#"{"rewardId":"sword","rewardName":"검","watchMinutes":0},"#,
                r#"{"rewardId":"crown","rewardName":"왕관","watchMinutes":30}]}}"#
            )
        );
        world.put_campaign("new", &campaign()).await.content();
        let shown = show().await.content();
        for open in ["startDate", "endDate", "channelIds"] {
            assert_eq!(shown[open], Value::Null, "{open} is replaced too");
        }
        let nothing = world.operator(Request::get("/platform/v1/drops/campaigns/nothing")).await;
        nothing.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_dates_channels_and_minutes_are_named() {
    both(Setup::default(), |world| async move {
        fixture(&world).await;
        let (date, list) = ("RFC 3339 형식의 날짜여야 합니다.", "문자열 목록이어야 합니다.");
        let (items, after) = ("1개 이상 500개 이하여야 합니다.", "startDate보다 나중이어야 합니다.");
        let minutes = "0 이상 525600 이하의 정수여야 합니다.";
        let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        let channels = |count: usize| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>();
        let reward =
            |minutes: Value| json!([{ "rewardId": "crown", "rewardName": "왕관", "watchMinutes": minutes }]);
        for (field, value, named, rule) in [
            ("startDate", json!("tomorrow"), "startDate", date),
            ("endDate", json!("2026-08-01"), "endDate", date),
            ("endDate", json!(5), "endDate", "문자열이어야 합니다."),
            ("endDate", json!("2020-01-01T00:00:00Z"), "endDate", after),
            ("endDate", json!(NOW), "endDate", after),
            ("channelIds", json!([]), "channelIds", items),
            ("channelIds", json!(channels(501)), "channelIds", items),
            ("channelIds", json!("haneul"), "channelIds", list),
            ("channelIds", json!(["haneul", 1]), "channelIds", list),
            ("channelIds", json!(["한글"]), "channelIds", id),
            ("channelIds", json!(["haneul", "missing"]), "channelIds", "존재하는 채널이어야 합니다."),
            ("rewards", reward(json!(-1)), "watchMinutes", minutes),
            ("rewards", reward(json!(525_601)), "watchMinutes", minutes),
            ("rewards", reward(json!("30")), "watchMinutes", minutes),
            ("rewards", reward(json!(1.5)), "watchMinutes", minutes),
        ] {
            let mut body = campaign();
            body["startDate"] = json!(NOW);
            body[field] = value.clone();
            let answer = world.put_campaign("new", &body).await;
            assert_eq!((answer.status, answer.message()), (400, wrong(named, rule)), "{field} = {value}");
        }
        let nothing = world.operator(Request::get("/platform/v1/drops/campaigns/new")).await;
        nothing.assert_refused(404, "NOT_FOUND");
        let mut most = campaign();
        most["rewards"] = reward(json!(525_600));
        world.put_campaign("new", &most).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minutes_count_while_category_dates_and_channel_allow_it() {
    both(Setup::default(), |world| async move {
        set(&world, |campaign| {
            campaign["startDate"] = json!(SECOND_LATER);
            campaign["endDate"] = json!("2026-07-18T14:32:14.345Z");
            campaign["channelIds"] = json!(["haneul"]);
        })
        .await;
        world.category("talk", "토크").await;
        assert_eq!(watched(&world, 1).await, None, "before it begins");
        world.advance(Duration::from_secs(1));
        assert_eq!(watched(&world, 1).await, Some(1), "it begins");
        air(&world, "haneul", "talk").await;
        assert_eq!(watched(&world, 1).await, None, "another category");
        air(&world, "haneul", "").await;
        assert_eq!(watched(&world, 1).await, None, "no category");
        air(&world, "haneul", "sea").await;
        assert_eq!(watched(&world, 1).await, Some(2));
        off_air(&world, "haneul").await;
        assert_eq!(watched(&world, 1).await, None, "off air");
        air(&world, "haneul", "sea").await;
        air(&world, "byeol", "sea").await;
        let elsewhere = json!({ "channelId": "byeol", "viewerChannelId": "haneul", "minutes": 5 });
        let counted = watch(&world, &elsewhere).await.content()["data"].clone();
        assert_eq!(counted, json!([]), "a channel that does not take part");
        world.advance(Duration::from_millis(999));
        assert_eq!(watched(&world, 1).await, Some(3), "its last millisecond");
        world.advance(Duration::from_millis(1));
        assert_eq!(watched(&world, 1).await, None, "over");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_answered_with_the_counted_minutes_or_the_reason() {
    both(Setup::default(), |world| async move {
        set(&world, |_| ()).await;
        world.put_campaign("also", &campaign()).await.content();
        world.person("sol").create().await;
        let answer = watch(&world, &watching(&["sol", "byeol", "sol"], 7)).await;
        assert_eq!(
            answer.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"onAir":true,"categoryId":"sea","data":["#,
                r#"{"campaignId":"also","viewerChannelId":"byeol","minutes":7},"#,
                r#"{"campaignId":"also","viewerChannelId":"sol","minutes":7},"#,
                r#"{"campaignId":"new","viewerChannelId":"byeol","minutes":7},"#,
                r#"{"campaignId":"new","viewerChannelId":"sol","minutes":7}]}}"#
            )
        );
        off_air(&world, "haneul").await;
        assert_eq!(
            watch(&world, &watching(&["sol"], 7)).await.content(),
            json!({ "onAir": false, "categoryId": null, "data": [] })
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_report_are_named() {
    both(Setup::default(), |world| async move {
        set(&world, |_| ()).await;
        let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        let (known, required) = ("존재하는 채널이어야 합니다.", "필수 값입니다.");
        let minutes = "1 이상 1440 이하의 정수여야 합니다.";
        let either = "이 값과 viewerChannelIds 중 하나만 지정해야 합니다.";
        let items = "1개 이상 100개 이하여야 합니다.";
        let many = |count: usize| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>();
        for (field, value, named, rule) in [
            ("channelId", Value::Null, "channelId", required),
            ("channelId", json!("한글"), "channelId", id),
            ("channelId", json!("missing"), "channelId", known),
            ("viewerChannelId", json!("byeol"), "viewerChannelId", either),
            ("viewerChannelIds", Value::Null, "viewerChannelId", either),
            ("viewerChannelIds", json!([]), "viewerChannelIds", items),
            ("viewerChannelIds", json!(many(101)), "viewerChannelIds", items),
            ("viewerChannelIds", json!(["a b"]), "viewerChannelIds", id),
            ("viewerChannelIds", json!(["byeol", "missing"]), "viewerChannelIds", known),
            ("viewerChannelIds", json!("byeol"), "viewerChannelIds", "문자열 목록이어야 합니다."),
            ("minutes", Value::Null, "minutes", required),
            ("minutes", json!(0), "minutes", minutes),
            ("minutes", json!(1_441), "minutes", minutes),
            ("minutes", json!("1"), "minutes", minutes),
        ] {
            let mut body = watching(&["byeol"], 1);
            body[field] = value.clone();
            let answer = watch(&world, &body).await;
            assert_eq!((answer.status, answer.message()), (400, wrong(named, rule)), "{field} = {value}");
        }
        let unknown = json!({ "channelId": "haneul", "viewerChannelId": "missing", "minutes": 1 });
        watch(&world, &unknown).await.assert_refused(400, &wrong("viewerChannelId", known));
        assert_eq!(watched(&world, 1_440).await, Some(1_440), "nothing of all this counted");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reward_can_be_claimed_when_the_progress_reaches_its_minutes() {
    both(Setup::default(), |world| async move {
        set(&world, |_| ()).await;
        let short = |left: i64| format!("시청 시간이 부족한 보상입니다. ({left}분 남음)");
        claim(&world, "crown").await.assert_refused(403, &short(30));
        watched(&world, 29).await;
        claim(&world, "crown").await.assert_refused(403, &short(1));
        let before = progress(&world, "new", "byeol").await;
        assert_eq!(
            before.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"campaignId":"new","channelId":"byeol","minutes":29,"#,
                r#""rewards":[{"rewardId":"sword","rewardName":"검","watchMinutes":0,"minutesLeft":0,"#,
                r#""reached":true,"claimed":false,"claimId":null},"#,
                r#"{"rewardId":"crown","rewardName":"왕관","watchMinutes":30,"minutesLeft":1,"reached":false,"#,
                r#""claimed":false,"claimId":null}]}}"#
            )
        );
        claim(&world, "sword").await.content();
        watched(&world, 2).await;
        let id = claim(&world, "crown").await.content()["claimId"].clone();
        claim(&world, "crown").await.assert_refused(400, &wrong("rewardId", "이 채널이 이미 받은 보상입니다."));
        let crown = progress(&world, "new", "byeol").await.content()["rewards"][1].clone();
        assert_eq!(
            crown,
            json!({ "rewardId": "crown", "rewardName": "왕관", "watchMinutes": 30, "minutesLeft": 0,
                "reached": true, "claimed": true, "claimId": id })
        );
        let fresh = progress(&world, "new", "haneul").await.content();
        assert_eq!((&fresh["minutes"], &fresh["rewards"][0]["claimed"]), (&json!(0), &json!(false)));
        for (campaign, viewer) in [("nothing", "byeol"), ("new", "missing")] {
            progress(&world, campaign, viewer).await.assert_refused(404, "NOT_FOUND");
        }
        assert_eq!(progress(&world, "new", "%ED%95%9C").await.status, 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_outside_the_dates_is_refused_with_the_date() {
    both(Setup::default(), |world| async move {
        set(&world, |campaign| {
            campaign["startDate"] = json!(SECOND_LATER);
            campaign["endDate"] = json!("2026-07-18T14:32:14.345Z");
        })
        .await;
        let early = format!("아직 시작하지 않은 캠페인입니다. (시작: {SECOND_LATER})");
        claim(&world, "sword").await.assert_refused(403, &early);
        let line = json!({ "kind": "claim", "campaignId": "new", "rewardId": "sword", "channelId": "byeol" });
        let refused =
            json!([{ "line": 1, "code": 403, "message": early, "reason": "claim-rule; rule=not-begun" }]);
        assert_eq!(bulk(&world, std::slice::from_ref(&line)).await["refused"], refused);
        world.advance(Duration::from_secs(1));
        claim(&world, "sword").await.content();
        world.advance(Duration::from_secs(1));
        let late = "종료된 캠페인입니다. (종료: 2026-07-18T14:32:14.345Z)";
        claim(&world, "crown").await.assert_refused(403, late);
        // The campaign is extended, so claims are possible again.
        world.put_campaign("new", &campaign()).await.content();
        watched(&world, 30).await;
        claim(&world, "crown").await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_with_a_key_counts_once_and_repeats_its_first_answer() {
    both(Setup::default(), |world| async move {
        set(&world, |_| ()).await;
        let body = watching(&["byeol"], 10);
        let request = || {
            let request = Request::post("/platform/v1/drops/watching").header("Idempotency-Key", "key");
            request.json(&watching(&["byeol"], 10))
        };
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let (world, request) = (world.clone(), request());
                tokio::spawn(async move { world.operator(request).await })
            })
            .collect();
        let mut answers = Vec::new();
        for call in calls {
            answers.push(call.await.expect("every call is answered"));
        }
        let first = answers[0].text();
        assert!(answers.iter().all(|answer| answer.text() == first), "{answers:?}");
        watch(&world, &body).await.content();
        assert_eq!(world.operator(request()).await.text(), first, "as the first time");
        assert_eq!(watched(&world, 1).await, Some(21));
        let other = Request::post("/platform/v1/drops/watching").header("Idempotency-Key", "key");
        let other = world.operator(other.json(&watching(&["byeol"], 11))).await;
        other.assert_refused(400, &wrong("Idempotency-Key", "이미 사용 중입니다."));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_can_be_reported_in_bulk() {
    both(Setup::default(), |world| async move {
        set(&world, |_| ()).await;
        let line = |minutes: i64, key: &str| {
            json!({ "kind": "watching", "channelId": "haneul", "viewerChannelId": "byeol", "minutes": minutes,
                "idempotencyKey": key })
        };
        let answer = bulk(
            &world,
            &[
                line(10, "1"),
                line(20, "2"),
                line(10, "1"),
                line(0, "3"),
                json!({ "kind": "claim", "campaignId": "new", "rewardId": "crown", "channelId": "byeol" }),
            ],
        )
        .await;
        assert_eq!((&answer["accepted"], &answer["refusedCount"]), (&json!(4), &json!(1)), "{answer}");
        assert_eq!(answer["refused"][0]["line"], 4);
        assert_eq!(progress(&world, "new", "byeol").await.content()["minutes"], 30);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_concurrent_report_is_lost() {
    both(Setup::default(), |world| async move {
        set(&world, |_| ()).await;
        let viewers: Vec<_> = (0..10).map(|n| format!("viewer-{n}")).collect();
        for viewer in &viewers {
            world.person(viewer).create().await;
        }
        let calls: Vec<_> = (0..60)
            .map(|n| {
                let (world, mut viewers) = (world.clone(), viewers.clone());
                viewers.rotate_left(n % 10);
                if n % 2 == 0 {
                    viewers.reverse();
                }
                tokio::spawn(async move {
                    if n % 3 == 0 {
                        let lines = viewers.iter().map(|viewer| {
                            json!({ "kind": "watching", "channelId": "haneul", "viewerChannelId": viewer,
                                "minutes": 1 })
                        });
                        let answer = bulk(&world, &lines.collect::<Vec<_>>()).await;
                        assert_eq!(answer["accepted"], 10, "{answer}");
                    } else {
                        let viewers: Vec<_> = viewers.iter().map(String::as_str).collect();
                        watch(&world, &watching(&viewers, 1)).await.content();
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.expect("every call is answered");
        }
        for viewer in &viewers {
            assert_eq!(progress(&world, "new", viewer).await.content()["minutes"], 60, "{viewer}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_claim_succeeds_in_a_race_with_watching_and_campaign_changes() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world, |_| ()).await;
        let calls: Vec<_> = (0..90)
            .map(|n| {
                let world = world.clone();
                tokio::spawn(async move {
                    match n % 3 {
                        0 => {
                            let mut changed = campaign();
                            changed["rewards"][0]["watchMinutes"] = json!(n % 7);
                            changed["endDate"] = if n % 2 == 0 { Value::Null } else { json!(SECOND_LATER) };
                            world.put_campaign("new", &changed).await.content();
                            200
                        }
                        1 => watched(&world, 1).await.map_or(500, |_| 200),
                        _ => claim(&world, "crown").await.status,
                    }
                })
            })
            .collect();
        let mut statuses = Vec::new();
        for call in calls {
            statuses.push(call.await.expect("every call is answered"));
        }
        assert!(statuses.iter().all(|status| [200, 400, 403].contains(status)), "{statuses:?}");
        watched(&world, 30).await;
        let last = claim(&world, "crown").await.status;
        assert!(last == 200 || last == 400, "{last}");
        let claims = world.reward_claims(&fixture.publisher.app, "campaignId=new").await.content();
        assert_eq!(claims["data"].as_array().expect("a list").len(), 1);
    })
    .await;
}

/// Runs `stagedoor drops` against a sandbox.
async fn drops(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let mut command = stagedoor(&["drops"]);
    command.args(arguments).args(["--server", sandbox.world["platformUrl"].as_str().expect("a text")]);
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a text"));
    run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drops_command_watches_and_claims_in_a_sandbox() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start(folder.path(), &["--language", "en"]).await;
    let watch = |minutes: &'static str| {
        ["watch", "--channel", "streamer-haneul", "--viewer", "viewer-nuri", "--minutes", minutes]
    };
    let reward = ["claim", "--campaign", "first-voyage", "--reward", "lighthouse", "--viewer", "viewer-nuri"];

    let output = drops(&sandbox, &watch("20")).await;
    assert!(output.status.success(), "{}", output.stderr);
    for part in ["watched streamer-haneul for 20 min", "first-voyage: 20 min", "10 of 30 min left"] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    let early = drops(&sandbox, &reward).await;
    assert!(!early.status.success() && early.stdout.is_empty());
    assert!(early.stderr.contains("(10 min left)"), "{}", early.stderr);

    let output = drops(&sandbox, &watch("10")).await;
    let command =
        output.stdout.lines().find(|line| line.contains("--reward lighthouse")).expect("the next step");
    let arguments: Vec<_> = command.split_whitespace().skip(2).collect();
    assert_eq!(arguments, reward, "the command that is answer is the one that works");
    let output = drops(&sandbox, &arguments).await;
    assert!(
        output.status.success() && output.stdout.contains("CLAIMED"),
        "{} {}",
        output.stdout,
        output.stderr
    );
    let claims = sandbox.api.reward_claims(&sandbox.application("drops"), "channelId=viewer-nuri").await;
    assert_eq!(claims.content()["data"][0]["rewardId"], "lighthouse");
    let output = drops(&sandbox, &watch("1")).await;
    assert!(output.stdout.contains("lighthouse (새벽 등대): claimed"), "{}", output.stdout);

    for (arguments, part) in [
        (["watch", "--channel", "streamer-bada", "--viewer", "viewer-nuri", "--minutes", "1"], "not on air"),
        (["watch", "--channel", "missing", "--viewer", "viewer-nuri", "--minutes", "1"], "channelId"),
        (["watch", "--channel", "streamer-haneul", "--viewer", "a b", "--minutes", "1"], "viewerChannelId"),
        (["watch", "--channel", "streamer-haneul", "--viewer", "x", "--minutes", "1441"], "1..=1440"),
    ] {
        let output = drops(&sandbox, &arguments).await;
        assert!(!output.status.success() && output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    sandbox.signal("TERM").await;
    sandbox.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_access_to_the_platform_api_prints_the_remedy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sandbox = Sandbox::start(folder.path(), &["--platform-listen", "127.0.0.1:0"]).await;
    let base = sandbox.world["baseUrl"].as_str().expect("a text").to_owned();
    let platform = sandbox.world["platformUrl"].as_str().expect("a text").to_owned();
    let ask = async |server: &str, key: Option<&str>| {
        let mut command = stagedoor(&["drops", "claim", "--campaign", "c", "--reward", "r", "--viewer", "v"]);
        command.args(["--server", server]);
        if let Some(key) = key {
            command.env("STAGEDOOR_OPERATOR_KEY", key);
        }
        let output = run(command).await;
        assert!(!output.status.success());
        output.stderr
    };
    let wrong_key = "k".repeat(40);
    for (server, key, part) in [
        (platform.as_str(), None, "stagedoor dev` prints it"),
        (&platform, Some(wrong_key.as_str()), "the operator key is wrong for"),
        (&base, Some(&wrong_key), "--platform-listen"),
        ("http://127.0.0.1:1", Some(&wrong_key), "Start `stagedoor dev`"),
        ("127.0.0.1:8080", Some(&wrong_key), "as in http://127.0.0.1:8080"),
    ] {
        let output = ask(server, key).await;
        assert!(output.contains(part) && !output.contains(&wrong_key), "{part}: {output}");
    }
    sandbox.signal("TERM").await;
    sandbox.end().await;
}
