//! Webhooks that the operator registers, with rotated secrets and listed messages (`docs/webhooks.md`). The
//! tests of the sender cover the deliveries.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Application, Request, Response, Setup, World, both};

use crate::fixture::{Fixture, wrong};

const URL: &str = "https://games.example/hook?key=of-the-receiver";
const WEBHOOK: &str = "/platform/v1/applications/publisher/webhook";

async fn put(world: &World, body: &Value) -> Response {
    world.operator(Request::put(WEBHOOK).json(body)).await
}

async fn get(world: &World, rest: &str) -> Response {
    world.operator(Request::get(format!("{WEBHOOK}{rest}"))).await
}

async fn post(world: &World, rest: &str) -> Response {
    world.operator(Request::post(format!("{WEBHOOK}{rest}"))).await
}

async fn delete(world: &World, rest: &str) -> Response {
    world.operator(Request::delete(format!("{WEBHOOK}{rest}"))).await
}

/// A claim by the streamer, and its message.
async fn claim(world: &World, fixture: &Fixture) -> Value {
    let reward = fixture.publisher.next_reward();
    let body = json!({ "campaignId": "voyage", "rewardId": reward, "channelId": "haneul" });
    world.claim(&body).await.content();
    get(world, "/deliveries?size=1").await.content()["data"][0].clone()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn states(list: &Value) -> Vec<String> {
    list["data"].as_array().expect("data is a list").iter().map(|item| text(&item["state"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_returned_with_all_fields_and_its_secret_once() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        get(&world, "").await.assert_refused(404, "NOT_FOUND");
        let made = put(&world, &json!({ "url": URL })).await;
        let secret = text(&made.content()["secret"]);
        assert_eq!(secret.len(), 43);
        let webhook = |secret: &str| {
            format!(
                concat!(
                    r#"{{"code":200,"message":null,"content":{{"clientId":"publisher","url":"{url}","enabled":true,"#,
                    r#""disabledReason":null,"disabledDate":null,"failingSince":null,"receivesClaims":true,"#,
                    r#""createdDate":"2026-07-18T14:32:12.345Z","updatedDate":"2026-07-18T14:32:12.345Z","#,
                    r#""notices":[]{secret}}}}}"#
                ),
                url = URL,
                secret = secret
            )
        };
        assert_eq!(made.text(), webhook(&format!(r#","secret":"{secret}""#)));
        assert_eq!(get(&world, "").await.text(), webhook(""));
        assert_eq!(put(&world, &json!({ "url": URL })).await.text(), webhook(""), "the secret stays");

        let off = put(&world, &json!({ "url": null, "enabled": false })).await.content();
        assert_eq!((&off["url"], &off["enabled"]), (&Value::Null, &json!(false)));
        assert_eq!(off["disabledReason"], "OPERATOR");
        assert_eq!(off["disabledDate"], "2026-07-18T14:32:12.345Z");
        delete(&world, "").await.content();
        get(&world, "").await.assert_refused(404, "NOT_FOUND");
        delete(&world, "").await.content();
        let next = put(&world, &json!({ "url": URL })).await.content();
        assert_ne!(text(&next["secret"]), secret);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_webhook_are_named_and_change_nothing() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        for (body, field) in [
            (json!({ "url": "http://games.example/" }), "url"),
            (json!({ "url": "https://10.1.2.3/" }), "url"),
            (json!({ "url": "https://169.254.169.254/" }), "url"),
            (json!({ "url": "https://user@games.example/" }), "url"),
            (json!({ "url": "https://games.example/#top" }), "url"),
            (json!({ "url": "" }), "url"),
            (json!({ "url": format!("https://games.example/{}", "x".repeat(2_048)) }), "url"),
            (json!({ "url": 5 }), "url"),
            (json!({ "url": [URL] }), "url"),
            (json!({ "url": URL, "enabled": "true" }), "enabled"),
        ] {
            let answer = put(&world, &body).await;
            assert_eq!(answer.status, 400, "{body}");
            assert!(answer.message().contains(&format!(" {field}: ")), "{}", answer.message());
        }
        get(&world, "").await.assert_refused(404, "NOT_FOUND");
        for (client, status) in [("missing", 404), ("no%20id", 400)] {
            let target = format!("/platform/v1/applications/{client}/webhook");
            for request in [
                Request::put(&target).json(&json!({ "url": URL })),
                Request::get(&target),
                Request::delete(&target),
                Request::post(format!("{target}/secrets")),
                Request::get(format!("{target}/secrets")),
                Request::post(format!("{target}/secrets/x/activate")),
                Request::delete(format!("{target}/secrets/x")),
                Request::get(format!("{target}/deliveries")),
                Request::get(format!("{target}/deliveries/x")),
                Request::post(format!("{target}/deliveries/x/resend")),
                Request::post(format!("{target}/resend"))
                    .json(&json!({ "from": "2026-07-01T00:00:00Z", "to": "2026-07-02T00:00:00Z" })),
            ] {
                let name = format!("{} {}", request.method(), request.target());
                assert_eq!(world.operator(request).await.status, status, "{name}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_can_be_verified_during_a_rotation() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let first = text(&put(&world, &json!({ "url": URL })).await.content()["secret"]);
        let added = post(&world, "/secrets").await.content();
        assert_eq!(
            (&added["state"], &added["signsFrom"]),
            (&json!("PENDING"), &json!("2026-07-19T14:32:12.345Z"))
        );
        let (second, id) = (text(&added["secret"]), text(&added["secretId"]));
        assert!(second.len() == 43 && second != first);
        let answer = post(&world, "/secrets").await;
        let pending = wrong("secret", "대기 중인 시크릿이 이미 있습니다. 먼저 활성화하거나 삭제해 주세요.");
        assert_eq!((answer.status, answer.message()), (400, pending));

        let listed = get(&world, "/secrets").await;
        assert_eq!(states(&listed.content()), ["SIGNING", "PENDING"]);
        assert!(!listed.text().contains(&first) && !listed.text().contains(&second));
        assert_eq!(listed.content()["data"][0]["endsDate"], "2026-07-20T14:32:12.345Z");
        let old = text(&listed.content()["data"][0]["secretId"]);
        let answer = delete(&world, &format!("/secrets/{old}")).await;
        let signs = wrong("secretId", "서명에 쓰이고 있는 시크릿입니다. 먼저 다른 시크릿을 활성화해 주세요.");
        assert_eq!((answer.status, answer.message()), (400, signs));

        let activated = post(&world, &format!("/secrets/{id}/activate")).await.content();
        assert_eq!(states(&activated), ["RETIRING", "SIGNING"]);
        assert_eq!(activated["data"][1]["secretId"], id.as_str());
        assert_eq!(delete(&world, &format!("/secrets/{old}")).await.content(), Value::Null);
        assert_eq!(states(&get(&world, "/secrets").await.content()), ["SIGNING"]);
        post(&world, "/secrets/unknown/activate").await.assert_refused(404, "NOT_FOUND");
        delete(&world, "/secrets/unknown").await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_may_choose_a_long_enough_secret() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        put(&world, &json!({ "url": URL })).await.content();
        let bring = async |secret: Value| {
            let body = json!({ "secret": secret });
            world.operator(Request::post(format!("{WEBHOOK}/secrets")).json(&body)).await
        };
        for bad in
            [json!(""), json!("x".repeat(31)), json!("x".repeat(257)), json!("가".repeat(40)), json!(5)]
        {
            let answer = bring(bad.clone()).await;
            assert_eq!(answer.status, 400, "{bad}");
            assert!(answer.message().contains(" secret: "), "{}", answer.message());
        }
        let ours = "a-secret-of-the-publisher-0123456789";
        assert_eq!(bring(json!(ours)).await.content()["secret"], ours);
        let keyed = |body: Value| {
            let request = Request::post(format!("{WEBHOOK}/secrets")).header("Idempotency-Key", "k");
            world.operator(request.json(&body))
        };
        let pending = text(&get(&world, "/secrets").await.content()["data"][1]["secretId"]);
        delete(&world, &format!("/secrets/{pending}")).await.content();
        let first = keyed(json!({})).await.content();
        assert_eq!(keyed(json!({ "secret": null })).await.content(), first);
        assert_eq!(keyed(json!({ "secret": ours })).await.status, 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_listed_returned_and_sent_again() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        // The webhook has no listener, so its messages stay waiting.
        put(&world, &json!({})).await.content();
        let first = claim(&world, &fixture).await;
        let expected: Vec<_> = [
            "messageId",
            "claimId",
            "state",
            "inFlight",
            "nextAttemptDate",
            "attemptCount",
            "createdDate",
            "updatedDate",
        ]
        .into();
        let mut keys: Vec<_> = first.as_object().expect("an object").keys().map(String::as_str).collect();
        keys.sort_by_key(|key| expected.iter().position(|name| name == key));
        assert_eq!(keys, expected);
        assert_eq!((&first["state"], &first["attemptCount"]), (&json!("WAITING"), &json!(0)));
        assert_eq!(first["nextAttemptDate"], "2026-07-18T14:32:12.345Z");
        let id = text(&first["messageId"]);
        assert_eq!(id.len(), 36);

        world.advance(Duration::from_secs(1));
        put(&world, &json!({ "enabled": false })).await.content();
        let dead = claim(&world, &fixture).await;
        assert_eq!((&dead["state"], &dead["nextAttemptDate"]), (&json!("DEAD"), &Value::Null));
        let list = async |query: &str| states(&get(&world, &format!("/deliveries?{query}")).await.content());
        assert_eq!(list("").await, ["DEAD", "WAITING"]);
        assert_eq!(list("state=DEAD").await, ["DEAD"]);
        assert_eq!(list("state=DELIVERED").await, [] as [&str; 0]);
        assert_eq!(list("from=2026-07-18T14:32:13Z").await, ["DEAD"]);
        assert_eq!(list("to=2026-07-18T23:32:13%2B09:00").await, ["WAITING"]);
        let page = get(&world, "/deliveries?size=1").await.content();
        let next = text(&page["page"]["next"]);
        let page = get(&world, &format!("/deliveries?size=1&cursor={next}")).await.content();
        assert_eq!(
            (page["data"][0]["messageId"].as_str(), &page["page"]["next"]),
            (Some(&*id), &Value::Null)
        );

        let shown = get(&world, &format!("/deliveries/{id}")).await.content();
        assert_eq!((&shown["messageId"], &shown["attempts"]), (&json!(id), &json!([])));
        let dead_id = text(&dead["messageId"]);
        let resent = post(&world, &format!("/deliveries/{dead_id}/resend")).await.content();
        assert_eq!(resent["state"], "WAITING");
        put(&world, &json!({ "enabled": false })).await.content();
        claim(&world, &fixture).await;
        let window = json!({ "from": "2026-07-18T14:32:13Z", "to": "2026-07-18T15:00:00Z" });
        let resend = Request::post(format!("{WEBHOOK}/resend")).json(&window);
        for count in [1, 0] {
            let answer = world.operator(resend.clone()).await.content();
            assert_eq!(answer, json!({ "resentCount": count, "complete": true }));
        }
        assert_eq!(list("state=WAITING").await.len(), 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_message_query_are_named() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        put(&world, &json!({})).await.content();
        for (query, field) in [
            ("state=LOST", "state"),
            ("state=DEAD&state=DEAD", "state"),
            ("from=yesterday", "from"),
            ("to=2026-07-18", "to"),
            ("size=0", "size"),
            ("size=101", "size"),
            ("cursor=nonsense", "cursor"),
        ] {
            let answer = get(&world, &format!("/deliveries?{query}")).await;
            assert_eq!(answer.status, 400, "{query}");
            assert!(answer.message().contains(&format!(" {field}: ")), "{}", answer.message());
        }
        let (from, to) = ("2026-07-18T00:00:00Z", "2026-07-19T00:00:00Z");
        for (body, field) in [
            (json!({ "to": to }), "from"),
            (json!({ "from": from }), "to"),
            (json!({ "from": from, "to": "x" }), "to"),
            (json!({ "from": 5, "to": to }), "from"),
            (json!({ "from": from, "to": to, "state": "LOST" }), "state"),
        ] {
            let answer = world.operator(Request::post(format!("{WEBHOOK}/resend")).json(&body)).await;
            assert_eq!(answer.status, 400, "{body}");
            assert!(answer.message().contains(&format!(" {field}: ")), "{}", answer.message());
        }
        for unknown in ["x", "00000000-0000-7000-8000-000000000000"] {
            get(&world, &format!("/deliveries/{unknown}")).await.assert_refused(404, "NOT_FOUND");
            post(&world, &format!("/deliveries/{unknown}/resend")).await.assert_refused(404, "NOT_FOUND");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_concurrent_registrations_returns_the_secret() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let puts: Vec<_> = (0..20)
            .map(|n| {
                let world = world.clone();
                let body = json!({ "url": format!("https://games.example/{n}"), "enabled": n % 2 == 0 });
                tokio::spawn(async move { put(&world, &body).await.content() })
            })
            .collect();
        let (mut secrets, mut urls) = (0, Vec::new());
        for put in puts {
            let content = put.await.expect("it is answered");
            secrets += usize::from(content.get("secret").is_some());
            urls.push(content["url"].clone());
        }
        assert_eq!(secrets, 1);
        assert!(urls.contains(&get(&world, "").await.content()["url"]));
        assert_eq!(states(&get(&world, "/secrets").await.content()), ["SIGNING"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_applications_messages_are_not_found() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        put(&world, &json!({})).await.content();
        let foreign = &fixture.webhook_owner.message_id;
        get(&world, &format!("/deliveries/{foreign}")).await.assert_refused(404, "NOT_FOUND");
        post(&world, &format!("/deliveries/{foreign}/resend")).await.assert_refused(404, "NOT_FOUND");
        let secret = &fixture.webhook_owner.secret_id;
        post(&world, &format!("/secrets/{secret}/activate")).await.assert_refused(404, "NOT_FOUND");
        let Application { client_id, client_secret, .. } = &fixture.publisher.app;
        let request = Request::get(WEBHOOK).client(client_id, client_secret);
        world.send(request).await.assert_refused(401, "UNAUTHORIZED");
    })
    .await;
}
