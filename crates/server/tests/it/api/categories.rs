//! Categories and the search in them (`docs/spec/lives.md#categories`).

use serde_json::{Value, json};
use testkit::{Application, Request, Setup, World, both, encode};

use crate::fixture::{Fixture, wrong};

async fn put(world: &World, id: &str, value: &str) {
    let body = json!({ "categoryType": "GAME", "categoryValue": value });
    assert_eq!(world.put_category(id, &body).await.content(), Value::Null);
}

/// The ids that a search returns, in their order.
async fn found(world: &World, app: &Application, query: &str) -> Vec<String> {
    ids(&world.categories(app, &format!("query={}", encode(query))).await.content())
}

fn ids(content: &Value) -> Vec<String> {
    let data = content["data"].as_array().expect("data is a list");
    data.iter().map(|category| category["categoryId"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_category_has_four_fields() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        let body = json!({
            "categoryType": "SPORTS", "categoryValue": "축구", "posterImageUrl": "https://images.example/p.png",
        });
        world.put_category("football", &body).await.content();
        put(&world, "footgolf", "축구 골프").await;
        assert_eq!(
            world.categories(&app, "query=%EC%B6%95%EA%B5%AC").await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"data":["#,
                r#"{"categoryType":"SPORTS","categoryId":"football","categoryValue":"축구","#,
                r#""posterImageUrl":"https://images.example/p.png"},"#,
                r#"{"categoryType":"GAME","categoryId":"footgolf","categoryValue":"축구 골프","posterImageUrl":"PICTURE"}]}}"#
            )
            .replace("PICTURE", &world.picture("category"))
        );
        assert_eq!(world.categories(&app, "query=x").await.content(), json!({ "data": [] }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exact_matches_come_first_then_prefixes_then_the_rest_each_by_name_ties_by_id() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        for (id, value) in [
            ("s2", "zz star"),
            ("s1", "a star"),
            ("p2", "starling"),
            ("p1", "Star Z"),
            ("e3", "star"),
            ("e2", "STAR"),
            ("e1", "star"),
            ("p0", "stars and stars"),
            ("n", "st ar"),
            ("s0", "일star"),
        ] {
            put(&world, id, value).await;
        }
        // Names are sorted by code point: capitals before small letters, Hangul after both.
        let all = ["e2", "e1", "e3", "p1", "p2", "p0", "s1", "s2", "s0"];
        for query in ["star", "STAR", "sTaR"] {
            assert_eq!(found(&world, &app, query).await, all, "{query}");
        }
        for size in 1..=all.len() {
            let content = world.categories(&app, &format!("query=star&size={size}")).await.content();
            assert_eq!(ids(&content), all[..size]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_script_is_searched_and_no_character_is_special() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        let family = "👨‍👩‍👧‍👦 가족";
        for (id, value) in [
            ("percent", "100% 게임"),
            ("under", "a_b"),
            ("plain", "100 게임 axb"),
            ("slash", r"a\b"),
            ("quote", "it's"),
            ("decomposed", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
            ("greek", "ΟΔΟΣ"),
            ("cyrillic", "Танки"),
            ("accent", "Cafe\u{301}"),
            ("turkish", "İstanbul"),
            ("caron", "J\u{30c}"),
            ("family", family),
            ("cjk", "東京"),
        ] {
            put(&world, id, value).await;
        }
        for (query, expected) in [
            ("%", vec!["percent"]),
            ("0%", vec!["percent"]),
            ("_", vec!["under"]),
            ("a_b", vec!["under"]),
            ("\\", vec!["slash"]),
            ("'", vec!["quote"]),
            ("*", vec![]),
            ("한글", vec!["decomposed"]),
            ("\u{1112}\u{1161}\u{11ab}", vec!["decomposed"]),
            ("글", vec!["decomposed"]),
            ("οδος", vec!["greek"]),
            ("ΔΟ", vec!["greek"]),
            ("δος", vec!["greek"]),
            ("ТАНК", vec!["cyrillic"]),
            ("café", vec!["accent"]),
            ("CAFÉ", vec!["accent"]),
            ("i\u{307}st", vec!["turkish"]),
            ("ǰ", vec!["caron"]),
            ("👨‍👩‍👧‍👦", vec!["family"]),
            ("👩", vec!["family"]),
            ("京", vec!["cjk"]),
            (" 게임", vec!["plain", "percent"]),
        ] {
            assert_eq!(found(&world, &app, query).await, expected, "{query:?}");
        }
        let content = world.categories(&app, &format!("query={}", encode("가족"))).await.content();
        assert_eq!(content["data"][0]["categoryValue"], family, "a name comes back as it was given");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_has_1_to_100_characters_and_a_size_1_to_50() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        for n in 0..51 {
            put(&world, &format!("c{n:02}"), &format!("가{n:02}")).await;
        }
        let count = async |query: &str| ids(&world.categories(&app, query).await.content()).len();
        assert_eq!(count("query=가").await, 20);
        for size in [1, 50] {
            assert_eq!(count(&format!("query=가&size={size}")).await, size);
        }
        assert_eq!(count(&format!("query={}", "가".repeat(100))).await, 0);
        let chars =
            wrong("query", "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.");
        let required = wrong("query", "필수 값입니다.");
        let once = |field| wrong(field, "한 번만 지정할 수 있습니다.");
        let size = wrong("size", "1 이상 50 이하의 정수여야 합니다.");
        let encoding = wrong("query", "퍼센트 인코딩된 UTF-8이어야 합니다.");
        let nul = wrong("query", "NUL 문자(U+0000)가 있으면 안 됩니다.");
        for (query, message) in [
            (format!("query={}", "가".repeat(101)), &chars),
            ("query=%20".to_owned(), &chars),
            ("query=%E3%80%80%09".to_owned(), &chars),
            ("query=".to_owned(), &required),
            ("size=5".to_owned(), &required),
            ("Query=a".to_owned(), &required),
            ("query=a&query=a".to_owned(), &once("query")),
            ("query=a&size=1&size=1".to_owned(), &once("size")),
            ("query=a&size=0".to_owned(), &size),
            ("query=a&size=51".to_owned(), &size),
            ("query=a&size=".to_owned(), &size),
            ("query=a&size=x".to_owned(), &size),
            ("query=a&size=-1".to_owned(), &size),
            ("query=a&size=1.0".to_owned(), &size),
            ("query=a%00".to_owned(), &nul),
            ("query=%ed%a0%80".to_owned(), &encoding),
        ] {
            world.categories(&app, &query).await.assert_refused(400, message);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_found_by_the_next_search_and_after_a_restart() {
    both(Setup::default(), |world| async move {
        let app = world.application("bot").create().await;
        assert!(found(&world, &app, "이름").await.is_empty());
        put(&world, "x", "첫 이름").await;
        put(&world, "y", "다른 이름").await;
        assert_eq!(found(&world, &app, "이름").await, ["y", "x"]);
        put(&world, "x", "가 새 이름").await;
        assert_eq!(found(&world, &app, "이름").await, ["x", "y"]);
        assert!(found(&world, &app, "첫").await.is_empty());
        let body = json!({ "categoryType": "ETC", "categoryValue": "가 새 이름" });
        for _ in 0..2 {
            world.put_category("x", &body).await.content();
            let content = world.categories(&app, "query=가%20새").await.content();
            assert_eq!(content["data"][0]["categoryType"], "ETC");
        }
        world.stop().await;
        world.restart().await;
        assert_eq!(found(&world, &app, "이름").await, ["x", "y"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_creates_and_replaces_categories() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let types = wrong("categoryType", "GAME, SPORTS, ETC 중 하나여야 합니다.");
        let text = |field| wrong(field, "문자열이어야 합니다.");
        let nul = |field| wrong(field, "NUL 문자(U+0000)가 있으면 안 됩니다.");
        let required = |field| wrong(field, "필수 값입니다.");
        let chars = "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
        let chars = wrong("categoryValue", chars);
        let address = wrong("posterImageUrl", "http 또는 https 주소여야 합니다.");
        for (field, value, message) in [
            ("categoryType", json!("game"), &types),
            ("categoryType", json!(""), &types),
            ("categoryType", json!(1), &text("categoryType")),
            ("categoryType", json!(null), &required("categoryType")),
            ("categoryValue", json!(null), &required("categoryValue")),
            ("categoryValue", json!(""), &chars),
            ("categoryValue", json!(" \u{3000}"), &chars),
            ("categoryValue", json!("가".repeat(101)), &chars),
            ("categoryValue", json!("a\u{0}"), &nul("categoryValue")),
            ("categoryValue", json!(["a"]), &text("categoryValue")),
            ("posterImageUrl", json!("ftp://images.example/p.png"), &address),
            ("posterImageUrl", json!(""), &address),
            ("posterImageUrl", json!(7), &text("posterImageUrl")),
        ] {
            let mut body = json!({ "categoryType": "GAME", "categoryValue": "게임" });
            body[field] = value;
            world.put_category("game", &body).await.assert_refused(400, message);
        }
        let lone = Request::put("/platform/v1/categories/game")
            .body(r#"{"categoryType":"GAME","categoryValue":"\ud800"}"#);
        assert_eq!(world.operator(lone).await.status, 400);
        assert!(found(&world, &app, "게임").await.is_empty(), "what was refused changed nothing");
        let body = json!({ "categoryType": "GAME", "categoryValue": "게임" });
        for id in ["%EA%B0%80", "a%20b", &"x".repeat(65)] {
            assert_eq!(world.put_category(id, &body).await.status, 400, "{id}");
        }
        world.put_category(&"x".repeat(64), &body).await.content();
        let longest =
            json!({ "categoryType": "GAME", "categoryValue": "가".repeat(100), "posterImageUrl": null });
        world.put_category("long", &longest).await.content();
        assert_eq!(found(&world, &app, &"가".repeat(100)).await, ["long"]);
    })
    .await;
}
