//! The platform API (`/platform/v1`), which reports events.

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both};

use crate::fixture::{Fixture, UNKNOWN_TOKEN, wrong};

const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;

#[tokio::test(flavor = "multi_thread")]
async fn only_the_operator_key_opens_the_platform_api() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let request = || Request::put("/platform/v1/channels/x").json(&json!({ "channelName": "x" }));
        world.send(request()).await.assert_refused(401, "UNAUTHORIZED");
        let client = request().client(&app.client_id, &app.client_secret);
        world.send(client).await.assert_refused(401, "UNAUTHORIZED");
        for key in [&tokens.access, &app.client_secret, UNKNOWN_TOKEN, "' OR 1=1 --", &"x".repeat(600)] {
            world.send(request().bearer(key)).await.assert_refused(401, "INVALID_TOKEN");
        }
        assert_eq!(world.operator(request()).await.text(), NOTHING);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_posted_chat_message_is_returned() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let body = json!({ "senderChannelId": "byeol", "message": "안녕" });
        let answer = world.happen("haneul", "chats", &body).await;
        let content = answer.content();
        let id = content["messageId"].as_str().expect("a text");
        let time = world.now_ms();
        assert_eq!(
            answer.text(),
            format!(
                r#"{{"code":200,"message":null,"content":{{"messageId":"{id}","messageTime":{time},"chatChannelId":"chat-haneul"}}}}"#
            )
        );
        let donation = json!({ "donationType": "CHAT", "payAmount": "0" });
        assert_eq!(world.happen("haneul", "donations", &donation).await.text(), NOTHING);
        let paid = json!({ "subscriberChannelId": "byeol", "tierNo": 1, "tierName": "팬", "month": 0 });
        assert_eq!(world.happen("haneul", "subscriptions", &paid).await.text(), NOTHING);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_anonymous_donor_has_no_channel() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "donation", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let donation =
            json!({ "donationType": "CHAT", "payAmount": "999999999999", "donatorChannelId": null });
        world.happen("haneul", "donations", &donation).await.content();
        let event = socket.event("DONATION").await;
        assert_eq!((&event["donatorChannelId"], &event["payAmount"]), (&json!(""), &json!("999999999999")));
        assert_eq!(
            (&event["donatorNickname"], &event["donationText"]),
            (&json!("익명의 후원자"), &json!(""))
        );
    })
    .await;
}

/// One accepted event of each kind.
fn events() -> [(&'static str, Value); 3] {
    [
        ("chats", json!({ "senderChannelId": "byeol", "message": "안녕", "emojis": {} })),
        (
            "donations",
            json!({
                "donatorChannelId": "byeol", "donationType": "CHAT", "payAmount": "1000", "donationText": "힘내요",
                "emojis": {},
            }),
        ),
        (
            "subscriptions",
            json!({ "subscriberChannelId": "byeol", "tierNo": 1, "tierName": "팬", "month": 3 }),
        ),
    ]
}

/// Wrong values of fields, with the rule in the answer.
fn wrong_values() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let text = "문자열이어야 합니다.";
    let nul = "NUL 문자(U+0000)가 있으면 안 됩니다.";
    let required = "필수 값입니다.";
    let id = "영문자, 숫자, '-', '_', '.'로 된 1자 이상 64자 이하의 ID여야 합니다.";
    let chars = "1자 이상 100자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.";
    let amount = "원 단위 금액을 나타내는 숫자 문자열이어야 합니다.";
    let known = "존재하는 채널이어야 합니다.";
    let object = "JSON 객체여야 합니다.";
    let address = "http 또는 https 주소여야 합니다.";
    let many: Value = (0..101)
        .map(|n| (n.to_string(), json!("https://e.example/")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut rows = vec![
        ("chats", "message", Value::Null, required),
        ("chats", "message", json!(7), text),
        ("chats", "message", json!(["x"]), text),
        ("chats", "message", json!("a\0b"), nul),
        ("chats", "message", json!(""), chars),
        ("chats", "message", json!(" \n"), chars),
        ("chats", "message", json!("가".repeat(101)), chars),
        ("chats", "emojis", json!("x"), object),
        ("chats", "emojis", json!([]), object),
        ("chats", "emojis", json!({ "a": 1 }), object),
        ("chats", "emojis", json!({ "a": "javascript:alert(1)" }), address),
        ("chats", "emojis", json!({ "a": "https://e.example/ \u{7}" }), address),
        ("chats", "emojis", json!({ "": "https://e.example/" }), chars),
        ("chats", "emojis", json!({ "a\0": "https://e.example/" }), chars),
        ("chats", "emojis", many, "0개 이상 100개 이하여야 합니다."),
        ("donations", "donationType", Value::Null, required),
        ("donations", "donationType", json!("chat"), "CHAT, VIDEO 중 하나여야 합니다."),
        ("donations", "donationType", json!(true), text),
        ("donations", "payAmount", Value::Null, required),
        ("donations", "payAmount", json!(1000), text),
        ("donations", "payAmount", json!(""), amount),
        ("donations", "payAmount", json!("007"), amount),
        ("donations", "payAmount", json!("-1"), amount),
        ("donations", "payAmount", json!("1.5"), amount),
        ("donations", "payAmount", json!("１００"), amount),
        ("donations", "payAmount", json!("1000000000000"), amount),
        ("donations", "donationText", json!({}), text),
        ("donations", "donationText", json!("\0"), nul),
        (
            "donations",
            "donationText",
            json!("가".repeat(501)),
            "0자 이상 500자 이하여야 하며, 공백만 있거나 NUL 문자가 있으면 안 됩니다.",
        ),
        ("subscriptions", "tierName", Value::Null, required),
        ("subscriptions", "tierName", json!(1), text),
        ("subscriptions", "tierName", json!(" "), chars),
        ("subscriptions", "tierName", json!("가".repeat(101)), chars),
    ];
    for (field, range) in
        [("tierNo", "1 이상 2 이하의 정수여야 합니다."), ("month", "0 이상 1200 이하의 정수여야 합니다.")]
    {
        rows.push(("subscriptions", field, Value::Null, required));
        for value in
            [json!(-1), json!(1201), json!("1"), json!(1.5), json!(true), json!(1e300), json!(u64::MAX)]
        {
            rows.push(("subscriptions", field, value, range));
        }
    }
    for (kind, field) in [
        ("chats", "senderChannelId"),
        ("donations", "donatorChannelId"),
        ("subscriptions", "subscriberChannelId"),
    ] {
        rows.push((kind, field, json!(1), text));
        rows.push((kind, field, json!(""), id));
        rows.push((kind, field, json!("한글"), id));
        rows.push((kind, field, json!("x".repeat(65)), id));
        rows.push((kind, field, json!(".."), id));
        rows.push((kind, field, json!("missing"), known));
        if kind != "donations" {
            rows.push((kind, field, Value::Null, required));
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_value_is_named_with_its_rule() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        for (kind, field, value, rule) in wrong_values() {
            let (_, mut body) = events().into_iter().find(|(name, _)| *name == kind).expect("a kind");
            body[field] = value.clone();
            let answer = world.happen("haneul", kind, &body).await;
            assert_eq!(
                (answer.status, answer.message()),
                (400, wrong(field, rule)),
                "{kind}.{field} = {value}"
            );
            if value.is_null() {
                body.as_object_mut().expect("an object").remove(field);
                world.happen("haneul", kind, &body).await.assert_refused(400, &wrong(field, rule));
            }
        }
        for (kind, body) in events() {
            world.happen("haneul", kind, &body).await.content();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_does_not_exist_is_not_found_after_the_body_was_checked() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        for (kind, body) in events() {
            world.happen("missing", kind, &body).await.assert_refused(404, "NOT_FOUND");
            assert_eq!(world.happen("missing", kind, &json!({})).await.status, 400);
            assert_eq!(world.happen("%ED%95%9C", kind, &body).await.status, 400);
        }
        let secret = "/platform/v1/applications/missing/secrets";
        world.operator(Request::post(secret)).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

async fn keyed(world: &World, kind: &str, key: &str, body: &Value) -> Response {
    let target = format!("/platform/v1/channels/haneul/{kind}");
    world.operator(Request::post(target).header("Idempotency-Key", key).json(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_returns_the_first_answer_and_takes_effect_once() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        for (event, (kind, body)) in ["chat", "donation", "subscription"].into_iter().zip(events()) {
            world.subscribe(&tokens.access, event, socket.session_key()).await.content();
            socket.system("subscribed").await;
            let first = keyed(&world, kind, "key", &body).await;
            first.content();
            socket.event(&event.to_uppercase()).await;
            world.advance(std::time::Duration::from_secs(1));
            for _ in 0..3 {
                assert_eq!(keyed(&world, kind, "key", &body).await.text(), first.text());
            }
            let mut other = body.clone();
            other["x"] = json!("another body");
            let message = wrong("Idempotency-Key", "이미 사용 중입니다.");
            keyed(&world, kind, "key", &other).await.assert_refused(400, &message);
            keyed(&world, kind, "another key", &body).await.content();
            socket.event(&event.to_uppercase()).await;
        }
        socket.ping().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_returns_the_same_secret() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let make = async |key: &'static str| {
            let target = format!("/platform/v1/applications/{}/secrets", app.client_id);
            let made = world.operator(Request::post(target).header("Idempotency-Key", key)).await.content();
            made["clientSecret"].as_str().expect("a secret").to_owned()
        };
        let first = make("one").await;
        assert_eq!(make("one").await, first);
        assert_ne!(make("two").await, first);
        let list = Request::get("/open/v1/sessions/client").client(&app.client_id, &first);
        world.send(list).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_idempotency_key_is_a_wrong_value() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let (kind, body) = events()[0].clone();
        for key in ["".to_owned(), "x".repeat(256), "한글".to_owned()] {
            assert_eq!(keyed(&world, kind, &key, &body).await.status, 400, "{key}");
        }
        keyed(&world, kind, &"x".repeat(255), &body).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_repetitions_take_effect_once_with_one_answer() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let calls = (0..20).map(|_| {
            let world = world.clone();
            tokio::spawn(async move { keyed(&world, "chats", "key", &events()[0].1).await.text().to_owned() })
        });
        let mut answers = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            answers.push(call.await.expect("every call is answered"));
        }
        assert!(answers[0].contains("messageId"), "{}", answers[0]);
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_channels_applications_and_organizations_are_named() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let channel = json!({ "channelName": "x" });
        let application = json!({ "name": "x", "redirectUris": [], "scopes": [] });
        let organization = json!({ "organizationName": "x", "verified": true });
        let long = "x".repeat(101);
        for (path, body, field, value) in [
            ("channels/c", &channel, "channelName", Value::Null),
            ("channels/c", &channel, "channelName", json!(1)),
            ("channels/c", &channel, "channelName", json!(" ")),
            ("channels/c", &channel, "channelName", json!(long)),
            ("channels/c", &channel, "channelImageUrl", json!("ftp://x")),
            ("channels/c", &channel, "channelImageUrl", json!("")),
            ("channels/c", &channel, "channelImageUrl", json!(1)),
            ("channels/c", &channel, "verifiedMark", json!("true")),
            ("channels/c", &channel, "realNameVerified", json!(1)),
            ("channels/c", &channel, "login", json!("alone")),
            ("channels/c", &channel, "password", json!("alone")),
            ("applications/a", &application, "name", Value::Null),
            ("applications/a", &application, "name", json!("")),
            ("applications/a", &application, "redirectUris", json!("https://a.example/")),
            ("applications/a", &application, "redirectUris", json!([1])),
            ("applications/a", &application, "redirectUris", json!(["http://a.example/"])),
            ("applications/a", &application, "redirectUris", json!(["https://a.example/#x"])),
            ("applications/a", &application, "redirectUris", json!(vec!["https://a.example/"; 21])),
            ("applications/a", &application, "scopes", json!(["채팅"])),
            ("applications/a", &application, "scopes", json!({})),
            ("applications/a", &application, "organizationId", json!("missing")),
            ("applications/a", &application, "organizationId", json!("")),
            ("applications/a", &application, "profile", json!("other")),
            ("applications/a", &application, "homepageUrl", json!("http://a.example/")),
            ("applications/a", &application, "termsUrl", json!("javascript:alert(1)")),
            ("applications/a", &application, "privacyUrl", json!("https://user@a.example/")),
            ("applications/a", &application, "logo", json!("https://a.example/logo.png")),
            ("applications/a", &application, "logo", json!("data:image/svg+xml;base64,PHN2Zy8+")),
            ("organizations/o", &organization, "organizationName", Value::Null),
            ("organizations/o", &organization, "organizationName", json!(long)),
            ("organizations/o", &organization, "verified", json!("yes")),
        ] {
            let mut body = body.clone();
            body[field] = value.clone();
            let answer = world.operator(Request::put(format!("/platform/v1/{path}")).json(&body)).await;
            assert_eq!(answer.status, 400, "{path} {field} = {value}: {}", answer.text());
            let begin = format!("잘못된 값을 입력했습니다. {field}: ");
            assert!(answer.message().starts_with(&begin), "{value}: {}", answer.message());
        }
        for id in ["%ED%95%9C", "x%20y", &"x".repeat(65), "%2e%2e", "a%00b", "%ff"] {
            for (noun, body) in
                [("channels", &channel), ("applications", &application), ("organizations", &organization)]
            {
                let answer =
                    world.operator(Request::put(format!("/platform/v1/{noun}/{id}")).json(body)).await;
                assert!(matches!(answer.status, 400 | 404), "{noun}/{id}: {}", answer.text());
                answer.message();
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_belongs_to_one_person() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let body = json!({ "channelName": "x", "login": streamer.login, "password": "p" });
        let put = |id: &str| Request::put(format!("/platform/v1/channels/{id}")).json(&body);
        world.operator(put("other")).await.assert_refused(400, &wrong("login", "이미 사용 중입니다."));
        world.operator(put("haneul")).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_secret_is_returned_once() {
    both(Setup::default(), |world| async move {
        let request = || {
            let body = json!({ "name": "봇", "redirectUris": null, "scopes": ["드롭스", "유저 정보 조회"] });
            Request::put("/platform/v1/applications/new").json(&body)
        };
        let content = world.operator(request()).await.content();
        let secret = content["clientSecret"].as_str().expect("a text");
        assert_eq!(content, json!({ "clientId": "new", "clientSecret": secret }));
        assert_eq!(world.operator(request()).await.content(), json!({ "clientId": "new" }));
    })
    .await;
}
