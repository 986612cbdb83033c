//! Lives and the live list (`docs/spec/lives.md#lives`): most viewers first, with a cursor that neither skips
//! nor repeats a live.

use std::collections::HashSet;
use std::time::Duration;

use domain::Profile;
use serde_json::{Value, json};
use testkit::{Application, Request, Setup, World, both, encode};

use crate::fixture::{Fixture, wrong};

const CURSOR: &str = "같은 목록의 이전 응답에서 받은 값이어야 합니다.";

/// Puts the channels `c00`, `c01`, … on air with these numbers of viewers.
async fn on_air(world: &World, viewers: &[i64]) {
    for (n, count) in viewers.iter().enumerate() {
        let channel = format!("c{n:02}");
        let body = json!({ "channelName": channel });
        world.operator(Request::put(format!("/platform/v1/channels/{channel}")).json(&body)).await.content();
        report(world, &channel, *count).await;
    }
}

async fn report(world: &World, channel: &str, viewers: i64) {
    let answer = world.put_live(channel, &json!({ "concurrentUserCount": viewers })).await;
    assert_eq!(answer.content(), Value::Null);
}

/// The channels of a page with their viewers, and the next cursor.
fn read(content: &Value) -> (Vec<(String, i64)>, Option<String>) {
    assert_eq!(content.as_object().expect("an object").len(), 2);
    let live = |live: &Value| {
        (
            live["channelId"].as_str().expect("a text").to_owned(),
            live["concurrentUserCount"].as_i64().expect("a number"),
        )
    };
    let data = content["data"].as_array().expect("data is a list").iter().map(live).collect();
    (data, content["page"]["next"].as_str().map(str::to_owned))
}

async fn page(
    world: &World,
    app: &Application,
    size: usize,
    next: &str,
) -> (Vec<(String, i64)>, Option<String>) {
    read(&world.lives(app, &format!("size={size}&next={}", encode(next))).await.content())
}

async fn first(world: &World, app: &Application, size: usize) -> (Vec<(String, i64)>, Option<String>) {
    read(&world.lives(app, &format!("size={size}")).await.content())
}

/// All lives of a walk with pages of this size.
async fn walk(world: &World, app: &Application, size: usize) -> Vec<(String, i64)> {
    let (mut lives, mut next) = first(world, app, size).await;
    while let Some(cursor) = next {
        let (more, after) = page(world, app, size, &cursor).await;
        assert!(more.len() == size || after.is_none(), "only the last page is short");
        lives.extend(more);
        next = after;
    }
    lives
}

fn names(lives: &[(String, i64)]) -> Vec<&str> {
    lives.iter().map(|(channel, _)| channel.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_has_thirteen_fields() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let empty = r#"{"code":200,"message":null,"content":{"data":[],"page":{"next":null}}}"#;
        assert_eq!(world.lives(&fixture.app, "").await.text(), empty);
        let category = json!({ "categoryType": "GAME", "categoryValue": "스타" });
        world.put_category("star", &category).await.content();
        let full = json!({
            "liveTitle": "첫 방송 👋", "liveThumbnailImageUrl": "https://images.example/1.png",
            "concurrentUserCount": 7, "adult": true, "categoryId": "star", "tags": ["우주", "항해", "우주"],
        });
        world.put_live("haneul", &full).await.content();
        world.put_live("byeol", &json!({})).await.content();
        assert_eq!(
            world.lives(&fixture.app, "").await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"data":["#,
                r#"{"liveId":1,"liveTitle":"첫 방송 👋","liveThumbnailImageUrl":"https://images.example/1.png","#,
                r#""concurrentUserCount":7,"openDate":"2026-07-18T14:32:12.345Z","adult":true,"#,
                r#""tags":["우주","항해"],"categoryType":"GAME","liveCategory":"star","liveCategoryValue":"스타","#,
                r#""channelId":"haneul","channelName":"하늘 🚀","channelImageUrl":"PICTURE"},"#,
                r#"{"liveId":2,"liveTitle":"별이","liveThumbnailImageUrl":null,"concurrentUserCount":0,"#,
                r#""openDate":"2026-07-18T14:32:12.345Z","adult":false,"tags":[],"categoryType":null,"#,
                r#""liveCategory":null,"liveCategoryValue":null,"channelId":"byeol","channelName":"별이","#,
                r#""channelImageUrl":"PICTURE"}],"page":{"next":null}}}"#
            )
            .replace("PICTURE", &world.picture("channel"))
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_observed_profile_has_its_own_date_format() {
    both(Setup { profile: Profile::Observed, ..Setup::default() }, |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.put_live("haneul", &json!({})).await.content();
        let live = &world.lives(&fixture.app, "").await.content()["data"][0];
        assert_eq!(live["openDate"], "2026-07-18 23:32:12");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_report_changes_the_live_and_one_after_its_end_starts_a_new_live() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let live = async || world.lives(&fixture.app, "").await.content()["data"][0].clone();
        let begun = json!({ "concurrentUserCount": 1, "liveTitle": "하나" });
        world.put_live("haneul", &begun).await.content();
        let before = live().await;
        world.advance(Duration::from_secs(60));
        for (body, field, value) in [
            (json!({ "concurrentUserCount": 2, "liveTitle": "하나" }), "concurrentUserCount", json!(2)),
            (json!({ "concurrentUserCount": 2, "liveTitle": "둘" }), "liveTitle", json!("둘")),
            (json!({ "concurrentUserCount": 2, "liveTitle": "둘", "adult": true }), "adult", json!(true)),
            (json!({ "concurrentUserCount": 2 }), "adult", json!(false)),
        ] {
            for _ in 0..2 {
                world.put_live("haneul", &body).await.content();
                let now = live().await;
                assert_eq!(now[field], value, "{body}");
                assert_eq!((&now["liveId"], &now["openDate"]), (&before["liveId"], &before["openDate"]));
            }
        }
        for _ in 0..2 {
            assert_eq!(world.end_live("haneul").await.content(), Value::Null);
            assert_eq!(live().await, Value::Null);
        }
        world.put_live("haneul", &begun).await.content();
        let after = live().await;
        assert!(after["liveId"].as_i64() > before["liveId"].as_i64());
        assert_eq!(after["openDate"], "2026-07-18T14:33:12.345Z");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_lives_are_checked() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let count = wrong("concurrentUserCount", "0 이상 2147483647 이하의 정수여야 합니다.");
        let title = "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
        let title = wrong("liveTitle", title);
        let address = wrong("liveThumbnailImageUrl", "http 또는 https 주소여야 합니다.");
        let known = wrong("categoryId", "존재하는 카테고리여야 합니다.");
        let adult = wrong("adult", "true 또는 false여야 합니다.");
        let tag = "20자 이하의 문자와 숫자로만 이루어져야 하며, 공백과 특수문자는 쓸 수 없습니다.";
        let tag = wrong("tags", tag);
        for (body, message) in [
            (json!({ "concurrentUserCount": -1 }), &count),
            (json!({ "concurrentUserCount": 2_147_483_648_i64 }), &count),
            (json!({ "concurrentUserCount": 1.5 }), &count),
            (json!({ "concurrentUserCount": "1" }), &count),
            (json!({ "liveTitle": "" }), &title),
            (json!({ "liveTitle": "가".repeat(101) }), &title),
            (json!({ "liveThumbnailImageUrl": "x" }), &address),
            (json!({ "categoryId": "none" }), &known),
            (json!({ "adult": 1 }), &adult),
            (json!({ "tags": ["a b"] }), &tag),
        ] {
            world.put_live("haneul", &body).await.assert_refused(400, message);
        }
        for body in [json!({}), json!({ "liveTitle": "x" })] {
            world.put_live("missing", &body).await.assert_refused(404, "NOT_FOUND");
        }
        world.end_live("missing").await.assert_refused(404, "NOT_FOUND");
        assert_eq!(first(&world, &fixture.app, 20).await, (vec![], None), "what was refused changed nothing");
        report(&world, "haneul", 2_147_483_647).await;
        report(&world, "byeol", 0).await;
        assert_eq!(first(&world, &fixture.app, 20).await.0[0], ("haneul".to_owned(), 2_147_483_647));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lives_are_sorted_by_viewers_then_by_start() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        on_air(&world, &[5, 0, 9, 5, 0, 100]).await;
        let order = ["c05", "c02", "c00", "c03", "c01", "c04"];
        for size in 1..=7 {
            assert_eq!(names(&walk(&world, &app, size).await), order, "{size}");
        }
        report(&world, "c01", 10).await;
        assert_eq!(
            names(&first(&world, &app, 2).await.0),
            ["c05", "c01"],
            "the first page is the present one"
        );
    })
    .await;
}

/// Changes all numbers. After the second page one live ends, one ends and starts again, and one is new. After
/// the third page the server restarts.
async fn turn_over(world: &World, page: usize) {
    for n in (0..12_usize).filter(|n| page <= 2 || *n > 1) {
        let count = if page.is_multiple_of(2) { n } else { 100 - n };
        report(world, &format!("c{n:02}"), i64::try_from(count).expect("small")).await;
    }
    if page == 2 {
        for ended in ["c00", "c01"] {
            world.end_live(ended).await.content();
        }
        report(world, "c01", 50).await;
        world.person("late").create().await;
        report(world, "late", 50).await;
    }
    if page == 3 {
        world.stop().await;
        world.restart().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_returns_each_lasting_live_once_while_the_list_changes() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        let viewers: Vec<i64> = (0..12).map(|n| n % 5).collect();
        on_air(&world, &viewers).await;
        let mut expected = first(&world, &app, 20).await.0;
        // The walk has passed the counts 4, 3 and 2 by its second page. These two lives have counts 0 and 1.
        expected.retain(|(channel, _)| channel != "c00" && channel != "c01");
        let (mut walked, mut next) = first(&world, &app, 2).await;
        for number in 1.. {
            let Some(cursor) = next else { break };
            turn_over(&world, number).await;
            let (more, after) = page(&world, &app, 2, &cursor).await;
            walked.extend(more);
            next = after;
        }
        assert_eq!(walked, expected, "in the order, and with the counts, of the first page");
        assert_eq!(first(&world, &app, 20).await.0.len(), 12);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_walks_return_each_lasting_live_once() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        on_air(&world, &[3; 40]).await;
        let churn = |from: usize, seed: u64| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut random = seed;
                loop {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let channel = format!("c{:02}", from + (random >> 33) as usize % 18);
                    report(&world, &channel, i64::try_from(random >> 40).expect("small") % 7).await;
                    // These lives start and end.
                    if random.is_multiple_of(5) {
                        world.end_live("c38").await.content();
                        report(&world, "c39", 3).await;
                        world.end_live("c39").await.content();
                        report(&world, "c38", 3).await;
                    }
                }
            })
        };
        let churns = [churn(0, 1), churn(18, 2)];
        for round in 0..12 {
            let walked = walk(&world, &app, 1 + round % 7).await;
            assert!(walked.is_sorted_by(|a, b| a.1 >= b.1), "{walked:?}");
            let names = names(&walked);
            let distinct: HashSet<_> = names.iter().copied().collect();
            assert_eq!(distinct.len(), names.len(), "a live came twice: {names:?}");
            for n in 0..36 {
                assert!(distinct.contains(format!("c{n:02}").as_str()), "c{n:02} was lost: {names:?}");
            }
        }
        for churn in churns {
            assert!(!churn.is_finished(), "everything moved all the time");
            churn.abort();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_valid_for_15_minutes_for_its_application_and_any_size() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        let other = world.application("other").create().await;
        on_air(&world, &[3, 2, 1, 0]).await;
        let cursor = first(&world, &app, 1).await.1.expect("a next page");
        assert_eq!(names(&page(&world, &app, 2, &cursor).await.0), ["c01", "c02"]);
        assert_eq!(names(&page(&world, &app, 20, &cursor).await.0), ["c01", "c02", "c03"]);
        let refused = wrong("next", CURSOR);
        let next = async |app: &Application, cursor: &str| {
            world.lives(app, &format!("next={}", encode(cursor))).await
        };
        next(&other, &cursor).await.assert_refused(400, &refused);
        let mut flipped = cursor.clone().into_bytes();
        flipped[3] ^= 1;
        for wrong_cursor in [
            "",
            "x",
            "0",
            &cursor[1..],
            &cursor[..cursor.len() - 1],
            &format!("{cursor}="),
            &format!("{cursor}A"),
            &String::from_utf8_lossy(&flipped),
            "가",
            &"A".repeat(4_000),
        ] {
            next(&app, wrong_cursor).await.assert_refused(400, &refused);
        }
        let twice = format!("next={cursor}&next={cursor}");
        world.lives(&app, &twice).await.assert_refused(400, &wrong("next", "한 번만 지정할 수 있습니다."));

        world.advance(Duration::from_secs(15 * 60));
        let (lives, later) = page(&world, &app, 1, &cursor).await;
        assert_eq!(names(&lives), ["c01"]);
        world.advance(Duration::from_millis(1));
        next(&app, &cursor).await.assert_refused(400, &refused);
        next(&app, &later.expect("a next page")).await.assert_refused(400, &refused);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_1_to_20_lives() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        on_air(&world, &[1; 21]).await;
        assert_eq!(read(&world.lives(&app, "").await.content()).0.len(), 20);
        for size in [1, 20] {
            assert_eq!(first(&world, &app, size).await.0.len(), size);
        }
        let message = wrong("size", "1 이상 20 이하의 정수여야 합니다.");
        for size in ["0", "21", "-1", "", "a", "1.0", "99999999999999999999", "%2B1"] {
            world.lives(&app, &format!("size={size}")).await.assert_refused(400, &message);
        }
        world
            .lives(&app, "size=1&size=1")
            .await
            .assert_refused(400, &wrong("size", "한 번만 지정할 수 있습니다."));
    })
    .await;
}
