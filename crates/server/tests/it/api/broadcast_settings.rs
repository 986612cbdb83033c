//! Broadcast settings (`docs/spec/lives.md#broadcast-setting`): only the given fields change.

use serde_json::{Value, json};
use testkit::{Request, Setup, World, both};

use crate::fixture::{Fixture, wrong};

/// A fixture with two categories: `talk` (ETC) and `star` (GAME).
async fn set(world: &World) -> Fixture {
    let fixture = Fixture::set_up(world).await;
    for (id, kind, value) in [("talk", "ETC", "토크"), ("star", "GAME", "스타")] {
        let body = json!({ "categoryType": kind, "categoryValue": value });
        world.put_category(id, &body).await.content();
    }
    fixture
}

async fn setting(world: &World, fixture: &Fixture) -> Value {
    world.live_setting(&fixture.tokens.access).await.content()
}

async fn patch(world: &World, fixture: &Fixture, body: Value) {
    let answer = world.patch_live_setting(&fixture.tokens.access, &body).await;
    assert_eq!(answer.content(), Value::Null, "{body}");
}

fn talk(world: &World) -> Value {
    json!({ "categoryType": "ETC", "categoryId": "talk", "categoryValue": "토크", "posterImageUrl": world.picture("category") })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_setting_has_the_channels_name_and_nothing_else() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world).await;
        let answer = world.live_setting(&fixture.tokens.access).await;
        let empty =
            r#"{"code":200,"message":null,"content":{"defaultLiveTitle":"하늘 🚀","category":null,"tags":[]}}"#;
        assert_eq!(answer.text(), empty);
        patch(&world, &fixture, json!({})).await;
        assert_eq!(world.live_setting(&fixture.tokens.access).await.text(), empty);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_given_fields_change() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world).await;
        let mut expected = json!({ "defaultLiveTitle": "하늘 🚀", "category": null, "tags": [] });
        for (body, field, value) in [
            (json!({ "defaultLiveTitle": " 제목 👋 " }), "defaultLiveTitle", json!(" 제목 👋 ")),
            (json!({ "categoryId": "talk" }), "category", talk(&world)),
            (json!({ "tags": ["하나", "둘", "하나"] }), "tags", json!(["하나", "둘"])),
            (json!({ "unknown": 1, "tags": null, "categoryId": null }), "tags", json!(["하나", "둘"])),
            (json!({ "categoryType": "ETC" }), "category", talk(&world)),
            (json!({ "categoryType": "ETC", "categoryId": "talk" }), "category", talk(&world)),
            (json!({ "categoryId": "" }), "category", json!(null)),
            (json!({ "categoryType": "GAME", "categoryId": "" }), "category", json!(null)),
            (json!({ "tags": [] }), "tags", json!([])),
            (json!({ "defaultLiveTitle": "x" }), "defaultLiveTitle", json!("x")),
        ] {
            patch(&world, &fixture, body.clone()).await;
            expected[field] = value;
            assert_eq!(setting(&world, &fixture).await, expected, "{body}");
        }
        let all = json!({
            "defaultLiveTitle": "가".repeat(100), "categoryType": "ETC", "categoryId": "talk",
            "tags": (0..20).map(|n| format!("{}{n:02}", "태".repeat(18))).collect::<Vec<_>>(),
        });
        patch(&world, &fixture, all.clone()).await;
        world.stop().await;
        world.restart().await;
        let kept = setting(&world, &fixture).await;
        assert_eq!((&kept["defaultLiveTitle"], &kept["tags"]), (&all["defaultLiveTitle"], &all["tags"]));
        assert_eq!(kept["category"], talk(&world));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_value_is_named_and_changes_nothing() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world).await;
        let good = json!({ "defaultLiveTitle": "제목", "categoryId": "talk", "tags": ["하나"] });
        patch(&world, &fixture, good.clone()).await;
        let before = setting(&world, &fixture).await;
        let title = "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
        let title = wrong("defaultLiveTitle", title);
        let tag = "20자 이하의 문자와 숫자로만 이루어져야 하며, 공백과 특수문자는 쓸 수 없습니다.";
        let tag = wrong("tags", tag);
        let list = wrong("tags", "문자열 목록이어야 합니다.");
        let items = wrong("tags", "0개 이상 20개 이하여야 합니다.");
        let known = wrong("categoryId", "존재하는 카테고리여야 합니다.");
        let types = wrong("categoryType", "GAME, SPORTS, ETC 중 하나여야 합니다.");
        let own = wrong("categoryType", "ETC 중 하나여야 합니다.");
        let text = |field| wrong(field, "문자열이어야 합니다.");
        let nul = |field| wrong(field, "NUL 문자(U+0000)가 있으면 안 됩니다.");
        let many: Vec<_> = (0..21).map(|n| format!("t{n}")).collect();
        for (body, message) in [
            (json!({ "defaultLiveTitle": "" }), &title),
            (json!({ "defaultLiveTitle": " \t\u{3000}" }), &title),
            (json!({ "defaultLiveTitle": "가".repeat(101) }), &title),
            (json!({ "defaultLiveTitle": "a\u{0}" }), &nul("defaultLiveTitle")),
            (json!({ "defaultLiveTitle": 5 }), &text("defaultLiveTitle")),
            (json!({ "tags": ["two words"] }), &tag),
            (json!({ "tags": ["#tag"] }), &tag),
            (json!({ "tags": ["ok", "👨‍👩‍👧‍👦"] }), &tag),
            (json!({ "tags": [""] }), &tag),
            (json!({ "tags": ["태".repeat(21)] }), &tag),
            (json!({ "tags": many }), &items),
            (json!({ "tags": "하나" }), &list),
            (json!({ "tags": [1] }), &list),
            (json!({ "tags": [null] }), &list),
            (json!({ "tags": ["a\u{0}"] }), &nul("tags")),
            (json!({ "categoryId": "none" }), &known),
            (json!({ "categoryId": "Talk" }), &known),
            (json!({ "categoryId": "없는 것" }), &known),
            (json!({ "categoryId": " " }), &known),
            (json!({ "categoryId": 7 }), &text("categoryId")),
            (json!({ "categoryType": "etc", "categoryId": "talk" }), &types),
            (json!({ "categoryType": "", "categoryId": "talk" }), &types),
            (json!({ "categoryType": ["ETC"] }), &text("categoryType")),
            (
                json!({ "categoryType": "GAME", "categoryId": "talk" }),
                &wrong("categoryType", "ETC 중 하나여야 합니다."),
            ),
            (json!({ "categoryType": "GAME" }), &own),
        ] {
            // The valid fields of the same request do not change either.
            let mut whole = json!({ "defaultLiveTitle": "다른 제목" });
            whole.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
            let answer = world.patch_live_setting(&fixture.tokens.access, &whole).await;
            answer.assert_refused(400, message);
        }
        let lone = Request::patch("/open/v1/lives/setting").bearer(&fixture.tokens.access);
        let lone = lone.body(r#"{"defaultLiveTitle":"\ud800"}"#);
        assert_eq!(world.send(lone).await.status, 400);
        assert_eq!(setting(&world, &fixture).await, before);
        // Decomposed Hangul has two or three times as many code points.
        patch(&world, &fixture, json!({ "tags": ["\u{1112}\u{1161}\u{11ab}", "तमिल"] })).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_category_type_alone_must_match_the_category() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world).await;
        let patch_type = async |kind: &str| {
            world.patch_live_setting(&fixture.tokens.access, &json!({ "categoryType": kind })).await
        };
        let together = wrong("categoryType", "categoryId와 함께 지정해야 합니다.");
        patch_type("ETC").await.assert_refused(400, &together);
        patch(&world, &fixture, json!({ "categoryId": "talk" })).await;
        let before = setting(&world, &fixture).await;
        patch_type("ETC").await.content();
        patch_type("GAME").await.assert_refused(400, &wrong("categoryType", "ETC 중 하나여야 합니다."));
        assert_eq!(setting(&world, &fixture).await, before);
        patch(&world, &fixture, json!({ "categoryId": "star" })).await;
        patch_type("ETC").await.assert_refused(400, &wrong("categoryType", "GAME 중 하나여야 합니다."));
        patch_type("GAME").await.content();
        patch(&world, &fixture, json!({ "categoryId": "" })).await;
        patch_type("GAME").await.assert_refused(400, &together);
    })
    .await;
}

/// A channel can write back every value that it reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_channel_without_a_title_uses_its_name() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world).await;
        assert_eq!(setting(&world, &fixture).await["defaultLiveTitle"], "하늘 🚀");
        patch(&world, &fixture, json!({ "tags": ["하나"] })).await;
        let found = setting(&world, &fixture).await;
        assert_eq!(found["defaultLiveTitle"], "하늘 🚀", "also when it set something else");
        patch(&world, &fixture, json!({ "defaultLiveTitle": found["defaultLiveTitle"] })).await;
        world.person("haneul").name("바다").create().await;
        assert_eq!(setting(&world, &fixture).await["defaultLiveTitle"], "하늘 🚀", "it was set");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_different_settings_are_all_kept() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world).await;
        for round in 0..8 {
            let changes = [
                json!({ "defaultLiveTitle": format!("제목 {round}") }),
                json!({ "categoryId": if round % 2 == 0 { "talk" } else { "star" } }),
                json!({ "tags": [format!("t{round}")] }),
            ];
            let sent: Vec<_> = changes
                .into_iter()
                .map(|body| {
                    let (world, token) = (world.clone(), fixture.tokens.access.clone());
                    tokio::spawn(async move { world.patch_live_setting(&token, &body).await.content() })
                })
                .collect();
            for answer in sent {
                answer.await.expect("an answer");
            }
            let now = setting(&world, &fixture).await;
            assert_eq!(now["defaultLiveTitle"], format!("제목 {round}"));
            assert_eq!(now["category"]["categoryId"], if round % 2 == 0 { "talk" } else { "star" });
            assert_eq!(now["tags"], json!([format!("t{round}")]));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_begins_with_the_setting_and_changes_with_it() {
    both(Setup::default(), |world| async move {
        let fixture = set(&world).await;
        let live = async || world.lives(&fixture.app, "").await.content()["data"][0].clone();
        let shown =
            |live: &Value| (live["liveTitle"].clone(), live["liveCategory"].clone(), live["tags"].clone());
        world.put_live("haneul", &json!({})).await.content();
        assert_eq!(shown(&live().await), (json!("하늘 🚀"), Value::Null, json!([])), "the channel's name");
        world.end_live("haneul").await.content();

        patch(&world, &fixture, json!({ "defaultLiveTitle": "하나", "categoryId": "talk", "tags": ["가"] }))
            .await;
        world.put_live("haneul", &json!({ "concurrentUserCount": 5 })).await.content();
        assert_eq!(shown(&live().await), (json!("하나"), json!("talk"), json!(["가"])));
        patch(&world, &fixture, json!({ "defaultLiveTitle": "둘" })).await;
        assert_eq!(shown(&live().await), (json!("둘"), json!("talk"), json!(["가"])));
        patch(&world, &fixture, json!({ "categoryId": "", "tags": [] })).await;
        assert_eq!(shown(&live().await), (json!("둘"), Value::Null, json!([])));
        assert_eq!(live().await["concurrentUserCount"], 5);

        // A field in a report replaces the setting until the next change.
        let report = json!({ "liveTitle": "셋", "categoryId": "star", "tags": ["나", "다"] });
        world.put_live("haneul", &report).await.content();
        assert_eq!(shown(&live().await), (json!("셋"), json!("star"), json!(["나", "다"])));
        assert_eq!(setting(&world, &fixture).await["defaultLiveTitle"], "둘");
        patch(&world, &fixture, json!({ "tags": ["라"] })).await;
        assert_eq!(shown(&live().await), (json!("셋"), json!("star"), json!(["라"])));
    })
    .await;
}
