//! Campaigns and claims, reported by the platform (the platform API's drops).

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both};

use crate::fixture::{Fixture, wrong};

fn campaign(rewards: &[&str]) -> Value {
    let reward = |id: &&str| json!({ "rewardId": id, "rewardName": "검" });
    json!({
        "campaignName": "새 항해", "organizationId": "publisher", "categoryId": "star-voyage",
        "rewards": rewards.iter().map(reward).collect::<Vec<_>>(),
    })
}

fn claim(reward: &str, channel: &str) -> Value {
    json!({ "campaignId": "new", "rewardId": reward, "channelId": channel })
}

async fn keyed(world: &World, key: &str, body: &Value) -> Response {
    let request = Request::post("/platform/v1/drops/claims").header("Idempotency-Key", key);
    world.operator(request.json(body)).await
}

/// The number of claims that the publisher sees.
async fn count(world: &World, fixture: &Fixture) -> usize {
    let content = world.reward_claims(&fixture.publisher.app, "page.size=1000").await.content();
    content["data"].as_array().expect("data is a list").len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_returned_with_all_fields() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let put = world.put_campaign("new", &campaign(&["sword"])).await;
        assert_eq!(put.content(), Value::Null);
        let mut body = claim("sword", "byeol");
        body["claimId"] = json!("claim-1");
        assert_eq!(
            world.claim(&body).await.text(),
            concat!(
                r#"{"code":200,"message":null,"content":{"claimId":"claim-1","campaignId":"new","#,
                r#""rewardId":"sword","categoryId":"star-voyage","categoryName":"스타 보이지","channelId":"byeol","#,
                r#""fulfillmentState":"CLAIMED","claimedDate":"2026-07-18T14:32:12.345Z","#,
                r#""updatedDate":"2026-07-18T14:32:12.345Z"}}"#
            )
        );
        let early = world.claim(&claim("sword", "haneul")).await.content();
        world.advance(std::time::Duration::from_millis(1));
        world.person("sol").create().await;
        let late = world.claim(&claim("sword", "sol")).await.content();
        let id = |claim: &Value| claim["claimId"].as_str().expect("a text").to_owned();
        assert!(id(&early).len() == 32 && id(&early) < id(&late), "ids grow with time");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_campaign_are_named() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let reward = |id: Value, name: Value| json!([{ "rewardId": id, "rewardName": name }]);
        let rewards = |count: usize| {
            let reward = |n| json!({ "rewardId": format!("r{n}"), "rewardName": "검" });
            (0..count).map(reward).collect::<Vec<_>>()
        };
        let name = "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
        let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        let (objects, items) = ("JSON 객체의 목록이어야 합니다.", "1개 이상 100개 이하여야 합니다.");
        let required = "필수 값입니다.";
        for (field, value, named, rule) in [
            ("campaignName", json!(" "), "campaignName", name),
            ("campaignName", json!("가".repeat(101)), "campaignName", name),
            ("organizationId", json!("missing"), "organizationId", "존재하는 조직이어야 합니다."),
            ("organizationId", json!("한글"), "organizationId", id),
            ("categoryId", json!("nothing"), "categoryId", "존재하는 카테고리여야 합니다."),
            ("categoryId", json!(""), "categoryId", "존재하는 카테고리여야 합니다."),
            ("rewards", json!([]), "rewards", items),
            ("rewards", json!(rewards(101)), "rewards", items),
            ("rewards", json!({}), "rewards", objects),
            ("rewards", json!(["sword"]), "rewards", objects),
            ("rewards", json!([{}]), "rewardId", required),
            ("rewards", reward(json!("한글"), json!("검")), "rewardId", id),
            ("rewards", reward(json!("x"), Value::Null), "rewardName", required),
            ("rewards", reward(json!("x"), json!("")), "rewardName", name),
            ("rewards", reward(json!("x"), json!("가".repeat(101))), "rewardName", name),
            (
                "rewards",
                campaign(&["x", "y", "x"])["rewards"].clone(),
                "rewardId",
                "한 번만 지정할 수 있습니다.",
            ),
        ] {
            let mut body = campaign(&["sword"]);
            body[field] = value.clone();
            let answer = world.put_campaign("new", &body).await;
            assert_eq!((answer.status, answer.message()), (400, wrong(named, rule)), "{field} = {value}");
        }
        assert_eq!(world.put_campaign("%ED%95%9C", &campaign(&["sword"])).await.status, 400);
        let unknown = wrong("campaignId", "존재하는 캠페인이어야 합니다.");
        world.claim(&claim("sword", "byeol")).await.assert_refused(400, &unknown);
        let mut most = campaign(&[]);
        most["rewards"] = json!(rewards(100));
        most["campaignName"] = json!("가".repeat(100));
        world.put_campaign("new", &most).await.content();
        world.claim(&claim("r99", "byeol")).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_claim_are_named() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.put_campaign("new", &campaign(&["sword", "shield"])).await.content();
        let mut taken = claim("sword", "haneul");
        taken["claimId"] = json!("taken");
        world.claim(&taken).await.content();
        let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
        for (field, value, rule) in [
            ("campaignId", json!("nothing"), "존재하는 캠페인이어야 합니다."),
            ("campaignId", json!("한글"), id),
            ("rewardId", json!("bow"), "캠페인에 있는 보상이어야 합니다."),
            ("rewardId", json!("reward-1"), "캠페인에 있는 보상이어야 합니다."),
            ("rewardId", json!(""), id),
            ("channelId", json!("missing"), "존재하는 채널이어야 합니다."),
            ("channelId", json!("x".repeat(65)), id),
            ("claimId", json!("taken"), "이미 사용 중입니다."),
            ("claimId", json!("a b"), id),
            ("claimId", json!(1), "문자열이어야 합니다."),
        ] {
            let mut body = claim("sword", "byeol");
            body[field] = value.clone();
            let answer = world.claim(&body).await;
            assert_eq!((answer.status, answer.message()), (400, wrong(field, rule)), "{field} = {value}");
        }
        let again = world.claim(&claim("sword", "haneul")).await;
        again.assert_refused(400, &wrong("rewardId", "이 채널이 이미 받은 보상입니다."));
        // Another reward, another channel, or the same reward of another campaign make other claims.
        world.claim(&claim("shield", "haneul")).await.content();
        world.claim(&claim("sword", "byeol")).await.content();
        world.put_campaign("newer", &campaign(&["sword"])).await.content();
        let mut other = claim("sword", "haneul");
        other["campaignId"] = json!("newer");
        world.claim(&other).await.content();
        assert_eq!(count(&world, &fixture).await, 4);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_reward_keeps_its_claims_and_accepts_no_more() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.put_campaign("new", &campaign(&["sword", "shield"])).await.content();
        world.claim(&claim("sword", "haneul")).await.content();
        world.put_campaign("new", &campaign(&["shield"])).await.content();
        let gone = wrong("rewardId", "캠페인에 있는 보상이어야 합니다.");
        world.claim(&claim("sword", "byeol")).await.assert_refused(400, &gone);
        assert_eq!(count(&world, &fixture).await, 1);
        world.put_campaign("new", &campaign(&["sword"])).await.content();
        world.claim(&claim("sword", "byeol")).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_move_with_their_campaign() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.category("talk", "토크").await;
        let organization = json!({ "organizationName": "다른 게임즈", "verified": true });
        world.operator(Request::put("/platform/v1/organizations/other").json(&organization)).await.content();
        let other = world.application("other").scopes(&[domain::Scope::Drops]);
        let other = other.with("organizationId", "other").create().await;
        world.put_campaign("new", &campaign(&["sword"])).await.content();
        world.claim(&claim("sword", "haneul")).await.content();
        let mut moved = campaign(&["sword"]);
        moved["organizationId"] = json!("other");
        moved["categoryId"] = json!("talk");
        world.put_campaign("new", &moved).await.content();
        assert_eq!(count(&world, &fixture).await, 0);
        let found = world.reward_claims(&other, "").await.content();
        assert_eq!(
            (&found["data"][0]["categoryName"], found["data"].as_array().expect("a list").len()),
            (&json!("토크"), 1)
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_returns_the_first_answer_after_later_changes() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.put_campaign("new", &campaign(&["sword"])).await.content();
        let body = claim("sword", "byeol");
        let first = keyed(&world, "key", &body).await;
        let id = first.content()["claimId"].clone();
        world.advance(std::time::Duration::from_secs(5));
        let update = json!({ "claimIds": [id], "fulfillmentState": "FULFILLED" });
        world.update_claims(&fixture.publisher.app, &update).await.content();
        for _ in 0..2 {
            assert_eq!(keyed(&world, "key", &body).await.text(), first.text());
        }
        let claimed = wrong("rewardId", "이 채널이 이미 받은 보상입니다.");
        keyed(&world, "another key", &body).await.assert_refused(400, &claimed);
        let taken = wrong("Idempotency-Key", "이미 사용 중입니다.");
        keyed(&world, "key", &claim("sword", "haneul")).await.assert_refused(400, &taken);
        // The key of a refused request is free for another request.
        keyed(&world, "another key", &claim("sword", "haneul")).await.content();
        assert_eq!(count(&world, &fixture).await, 2);
    })
    .await;
}

/// The answers to concurrent claims.
async fn raced(world: &World, requests: Vec<Request>) -> Vec<Response> {
    let calls: Vec<_> = requests
        .into_iter()
        .map(|request| {
            let world = world.clone();
            tokio::spawn(async move { world.operator(request).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.expect("every call is answered"));
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_hundred_concurrent_claims_succeeds() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        world.put_campaign("new", &campaign(&["sword", "shield"])).await.content();
        let request = |reward| Request::post("/platform/v1/drops/claims").json(&claim(reward, "byeol"));
        let answers = raced(&world, (0..100).map(|_| request("sword")).collect()).await;
        let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!((made.len(), refused.len()), (1, 99));
        for answer in refused {
            answer.assert_refused(400, &wrong("rewardId", "이 채널이 이미 받은 보상입니다."));
        }
        // With one key they are one request: all get the same answer.
        let one_key = |_| request("shield").header("Idempotency-Key", "key");
        let answers = raced(&world, (0..20).map(one_key).collect()).await;
        assert!(answers.iter().all(|answer| answer.text() == answers[0].text()), "{answers:?}");
        answers[0].content();
        assert_eq!(count(&world, &fixture).await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_succeed_while_their_campaign_changes_its_organization() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let organization = json!({ "organizationName": "다른 게임즈", "verified": true });
        world.operator(Request::put("/platform/v1/organizations/other").json(&organization)).await.content();
        world.put_campaign("new", &campaign(&["sword"])).await.content();
        let mut requests = Vec::new();
        for n in 0..30 {
            let viewer = format!("viewer-{n}");
            let body = json!({ "channelName": viewer });
            world
                .operator(Request::put(format!("/platform/v1/channels/{viewer}")).json(&body))
                .await
                .content();
            requests.push(Request::post("/platform/v1/drops/claims").json(&claim("sword", &viewer)));
            let mut moved = campaign(&["sword"]);
            moved["organizationId"] = json!(if n % 2 == 0 { "other" } else { "publisher" });
            requests.push(Request::put("/platform/v1/drops/campaigns/new").json(&moved));
        }
        for answer in raced(&world, requests).await {
            assert_ne!(answer.status, 500, "{}", answer.text());
        }
        world.put_campaign("new", &campaign(&["sword"])).await.content();
        assert_eq!(count(&world, &fixture).await, 30);
    })
    .await;
}
