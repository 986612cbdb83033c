//! The channel query (`docs/spec/channels.md#channels`, `docs/spec/rest.md#parameters`).

use serde_json::{Value, json};
use testkit::{Request, Setup, World, both};

use crate::fixture::{Fixture, wrong};

async fn ids(world: &World, fixture: &Fixture, query: &str) -> Vec<String> {
    let content = world.channels(&fixture.app, query).await.content();
    let data = content["data"].as_array().expect("data is a list").clone();
    data.iter().map(|channel| channel["channelId"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_has_five_fields_and_an_unknown_one_is_left_out() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world
            .person("sol")
            .with("channelImageUrl", "https://images.example/sol.png")
            .with("verifiedMark", true)
            .create()
            .await;
        assert_eq!(
            world.channels(&fixture.app, "channelIds=sol,missing,haneul").await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"data":["#,
                r#"{"channelId":"sol","channelName":"sol","channelImageUrl":"https://images.example/sol.png","#,
                r#""followerCount":0,"verifiedMark":true},"#,
                r#"{"channelId":"haneul","channelName":"하늘 🚀","channelImageUrl":"PICTURE","#,
                r#""followerCount":0,"verifiedMark":false}]}}"#
            )
            .replace("PICTURE", &world.picture("channel"))
        );
        let none = world.channels(&fixture.app, "channelIds=missing").await;
        assert_eq!(none.content(), json!({ "data": [] }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_have_several_spellings_and_answers_keep_their_order() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for query in [
            "channelIds=byeol,haneul",
            "channelIds=byeol%2Chaneul",
            "channelIds=byeol&channelIds=haneul",
            "channelIds[]=byeol&channelIds[]=haneul",
            "channelIds%5B%5D=byeol&channelIds%5B%5D=haneul",
            "channelIds=byeol,haneul,byeol",
            "channelIds=byeol,,haneul,",
            "other=1&channelIds=byeol,haneul&unknown=%EA%B0%80",
        ] {
            assert_eq!(ids(&world, &fixture, query).await, ["byeol", "haneul"], "{query}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_twenty_distinct_ids_are_accepted() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let some = |count: usize| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",");
        let twenty = format!("channelIds={},{}", some(20), some(20));
        assert_eq!(ids(&world, &fixture, &twenty).await, Vec::<String>::new());
        let message = wrong("channelIds", "1개 이상 20개 이하여야 합니다.");
        for query in [format!("channelIds={}", some(21)), format!("channelIds={}&channelIds[]=x", some(20))] {
            world.channels(&fixture.app, &query).await.assert_refused(400, &message);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_of_ids_is_a_wrong_value() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for query in ["", "channelIds=", "channelIds=,,", "channelids=haneul", "channelIds"] {
            let answer = world.channels(&fixture.app, query).await;
            answer.assert_refused(400, &wrong("channelIds", "필수 값입니다."));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_id_matches_no_channel() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let odd = format!("channelIds=haneul,%EA%B0%80,%27%20OR%201%3D1--,{}", "x".repeat(500));
        assert_eq!(ids(&world, &fixture, &odd).await, ["haneul"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_image_is_replaced_by_the_default() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let person = || world.person("sol");
        person().with("channelImageUrl", "https://images.example/1.png").create().await;
        person().with("channelImageUrl", Value::Null).create().await;
        let content = world.channels(&fixture.app, "channelIds=sol").await.content();
        assert_eq!(content["data"][0]["channelImageUrl"], world.picture("channel"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_pictures_are_served_at_their_urls() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let body = json!({ "categoryType": "ETC", "categoryValue": "talk" });
        world.put_category("talk", &body).await.content();
        let channels = world.channels(&fixture.app, "channelIds=haneul").await.content();
        let categories = world.categories(&fixture.app, "query=talk").await.content();
        let base = format!("http://{}", world.address());
        for address in [&channels["data"][0]["channelImageUrl"], &categories["data"][0]["posterImageUrl"]] {
            let path =
                address.as_str().and_then(|address| address.strip_prefix(&base)).expect("an own address");
            let picture = world.send(Request::get(path)).await;
            assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")));
            assert_eq!(picture.header("cache-control"), Some("public, max-age=86400"));
            assert!(picture.body.starts_with(b"\x89PNG"));
        }
        world.send(Request::get("/pictures/none.png")).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}
