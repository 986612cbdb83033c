//! Bad input to every endpoint: no answer is a 500 or leaves the envelope, and each names the fault. Values
//! that only one endpoint refuses are in the file of that endpoint.

use serde_json::{Value, json};
use testkit::{Connection, Request, Setup, World, both};

use crate::api::endpoints::{ENDPOINTS, Endpoint, Mode, session_key};
use crate::fixture::{Fixture, wrong};

const JSON: &str = "UTF-8로 된 64 KiB 이하의 올바른 JSON이어야 합니다.";
const OBJECT: &str = "JSON 객체여야 합니다.";
const BODY_BYTES_MAX: usize = 64 * 1024;

fn reading() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().filter(|endpoint| endpoint.reads_body)
}

/// Bodies that are not JSON objects, with the expected messages.
fn broken_bodies() -> Vec<(Vec<u8>, &'static str)> {
    let deep =
        |open: &str, close: &str| format!("{}{}", open.repeat(30_000), close.repeat(30_000)).into_bytes();
    let mut bodies: Vec<(Vec<u8>, &'static str)> = vec![
        (deep("[", "]"), JSON),
        (format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000)).into_bytes(), JSON),
        (b"{\"message\":\"\xff\"}".to_vec(), JSON),
        (b"{\"message\":\"\xc0\xaf\"}".to_vec(), JSON),
        (b"{\"message\":\"\xed\xa0\x80\"}".to_vec(), JSON),
        (b"\xef\xbb\xbf{}".to_vec(), JSON),
        (b"\xff\xfe{\0}\0".to_vec(), JSON),
        (vec![b' '; BODY_BYTES_MAX], JSON),
        (vec![0; 100], JSON),
    ];
    for text in [
        "",
        " ",
        "{",
        "}",
        "{}}",
        "{} {}",
        "{'a':1}",
        "{a:1}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":01}",
        "{\"a\":NaN}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\u{1}\"}",
        r#"{"a":"\ud800"}"#,
        r#"{"message":"\ud83d"}"#,
        r#"{"a":"\udc4b\ud83d"}"#,
        r#"{"a":"\u12"}"#,
        r#"{"a":"\x"}"#,
        "{\"a\":1e999}",
        "message=x&code=y",
        "<xml/>",
        "undefined",
        "//\n{}",
    ] {
        bodies.push((text.into(), JSON));
    }
    for text in ["null", "true", "0", "-1.5e3", "\"\"", "\"{}\"", "[]", "[{}]", r#"[{"message":"x"}]"#] {
        bodies.push((text.into(), OBJECT));
    }
    bodies
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_a_json_object_is_named_in_the_refusal() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for endpoint in reading() {
            for (body, rule) in broken_bodies() {
                let request = endpoint.proven(&fixture, &endpoint.target("x")).body(body.clone());
                let answer = world.send(request).await;
                let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
                assert_eq!(
                    (answer.status, answer.message()),
                    (400, wrong("body", rule)),
                    "{} {shown}",
                    endpoint.path
                );
            }
        }
    })
    .await;
}

/// The good body, extended to this length with an unknown field.
fn grown(endpoint: &Endpoint, fixture: &Fixture, bytes: usize) -> String {
    let mut body = endpoint.body(fixture);
    body["padding"] = json!("");
    let rest = bytes - body.to_string().len();
    body["padding"] = json!("x".repeat(rest));
    body.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_64_kib_at_most() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for endpoint in reading() {
            let request = |bytes| {
                let body = grown(endpoint, &fixture, bytes);
                assert_eq!(body.len(), bytes);
                endpoint.proven(&fixture, &endpoint.target("x")).body(body)
            };
            let answer = world.send(request(BODY_BYTES_MAX + 1)).await;
            assert_eq!((answer.status, answer.message()), (400, wrong("body", JSON)), "{}", endpoint.path);
            endpoint.prepare(&world, &fixture).await;
            world.send(request(BODY_BYTES_MAX)).await.content();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_body_has_the_same_limit() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let send = async |chunks: Vec<String>| {
            let mut connection = Connection::open(world.address()).await;
            let token = &tokens.access;
            let head = format!(
                "POST /open/v1/chats/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
            );
            connection.write(head.as_bytes()).await;
            for chunk in chunks {
                connection.write(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes()).await;
            }
            connection.write(b"0\r\n\r\n").await;
            connection.read_response(false).await.expect("an answer")
        };
        send(vec!["{\"message\":".to_owned(), "\"x\"}".to_owned()]).await.content();
        let padding = " ".repeat(1024);
        let many = |kib: usize| vec![padding.clone(); kib].into_iter().chain(["{\"message\":\"x\"}".to_owned()]);
        send(many(63).collect()).await.content();
        send(many(64).collect()).await.assert_refused(400, &wrong("body", JSON));
    })
    .await;
}

/// A value of every other JSON type.
fn other_types(good: &Value) -> Vec<Value> {
    let all = [json!("text"), json!(7), json!(true), json!([]), json!({}), json!([[]]), json!(1.5)];
    all.into_iter().filter(|value| std::mem::discriminant(value) != std::mem::discriminant(good)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_with_a_wrong_type_or_a_nul_is_named_in_the_refusal() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for endpoint in reading() {
            let good = endpoint.body(&fixture);
            for (field, value) in good.as_object().expect("an object") {
                let mut wrongs = other_types(value);
                if value.is_string() {
                    wrongs.push(json!("a\u{0}b"));
                }
                for wrong_value in wrongs {
                    let mut body = good.clone();
                    body[field] = wrong_value.clone();
                    let request = endpoint.proven(&fixture, &endpoint.target("x")).json(&body);
                    let answer = world.send(request).await;
                    assert_eq!(answer.status, 400, "{} {field} = {wrong_value}", endpoint.path);
                    let begin = format!("잘못된 값을 입력했습니다. {field}: ");
                    assert!(answer.message().starts_with(&begin), "{field}: {}", answer.message());
                }
            }
        }
    })
    .await;
}

/// Fields that may be missing.
const OPTIONAL: [&str; 8] = [
    "redirectUris",
    "scopes",
    "chatAvailableCondition",
    "chatAvailableGroup",
    "minFollowerMinute",
    "allowSubscriberInFollowerMode",
    "chatSlowModeSec",
    "chatEmojiMode",
];
/// Endpoints with alternative fields; `notices`, `drops_campaigns` and `webhook_listener` test them.
const EITHER_OR: [&str; 3] = [
    "/open/v1/chats/notice",
    "/platform/v1/drops/watching",
    "/open/v1/drops/webhook/listener/attempts/{messageId}",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_null_field_is_named_in_the_refusal() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for endpoint in reading().filter(|endpoint| !EITHER_OR.contains(&endpoint.path)) {
            let good = endpoint.body(&fixture);
            let fields = good.as_object().expect("an object").keys();
            for field in fields.filter(|field| !OPTIONAL.contains(&field.as_str())) {
                let mut null = good.clone();
                null[field] = Value::Null;
                let mut missing = good.clone();
                missing.as_object_mut().expect("an object").remove(field);
                let mut miscased = missing.clone();
                miscased[field.to_uppercase()] = good[field].clone();
                for body in [null, missing, miscased] {
                    let request = endpoint.proven(&fixture, &endpoint.target("x")).json(&body);
                    let answer = world.send(request).await;
                    assert_eq!(
                        (answer.status, answer.message()),
                        (400, wrong(field, "필수 값입니다.")),
                        "{} {body}",
                        endpoint.path
                    );
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_field_does_no_harm() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for endpoint in reading() {
            let good = endpoint.body(&fixture).to_string();
            for body in [
                good.replacen('{', "{\"x\":1,\"x\":2,", 1),
                format!("{},{}", &good[..good.len() - 1], &good[1..]),
            ] {
                let request = endpoint.proven(&fixture, &endpoint.target("x")).body(body);
                endpoint.prepare(&world, &fixture).await;
                let answer = world.send(request).await;
                assert!(matches!(answer.status, 200 | 400 | 401), "{}: {}", endpoint.path, answer.text());
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_not_percent_encoded_utf8_is_named_in_the_refusal() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let (_socket, key) = session_key(&world, &fixture).await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| takes_query(endpoint)) {
            let target = endpoint.target(&key);
            let joint = if target.contains('?') { '&' } else { '?' };
            for broken in [
                "x=%",
                "x=%4",
                "x=%zz",
                "x=%z0",
                "x=%0z",
                "x=%ff",
                "x=%c0%af",
                "x=%ed%a0%80",
                "%ff=x",
                "x=%00",
                "x=%0",
            ] {
                let request = endpoint.proven(&fixture, &format!("{target}{joint}{broken}"));
                let answer = world.send(request).await;
                let rule = if broken == "x=%00" {
                    "NUL 문자(U+0000)가 있으면 안 됩니다."
                } else {
                    "퍼센트 인코딩된 UTF-8이어야 합니다."
                };
                let expected = wrong("query", rule);
                assert_eq!((answer.status, answer.message()), (400, expected), "{target} {broken}");
            }
            for odd in ["&&&", "=", "==", "x", "x=1&x=1", "%20=%20", "a+b=c+d", "x[]=1", "x.y=1"] {
                world.send(endpoint.proven(&fixture, &format!("{target}{joint}{odd}"))).await.content();
            }
        }
    })
    .await;
}

/// Whether the endpoint reads any parameter. Other endpoints ignore the query.
fn takes_query(endpoint: &Endpoint) -> bool {
    !endpoint.query.is_empty() || matches!(endpoint.path, "/open/v1/sessions" | "/open/v1/sessions/client")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unexpected_query_does_no_harm() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let (_socket, key) = session_key(&world, &fixture).await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| !takes_query(endpoint)) {
            for query in ["%ff", "x=%zz", "message=x", "clientId=x&clientId=y"] {
                if endpoint.path != "/auth/v1/token" {
                    endpoint.prepare(&world, &fixture).await;
                    let request = endpoint.proven(&fixture, &format!("{}?{query}", endpoint.target(&key)));
                    world.send(endpoint.with_body(&fixture, request)).await.content();
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_content_type_is_read_as_json() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for endpoint in reading().filter(|endpoint| endpoint.path != "/auth/v1/token") {
            for content_type in
                ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=euc-kr", "x"]
            {
                let request =
                    endpoint.proven(&fixture, &endpoint.target("x")).header("Content-Type", content_type);
                endpoint.prepare(&world, &fixture).await;
                world.send(request.body(endpoint.body(&fixture).to_string())).await.content();
            }
            let bare = endpoint.proven(&fixture, &endpoint.target("x"));
            endpoint.prepare(&world, &fixture).await;
            world.send(bare.body(endpoint.body(&fixture).to_string())).await.content();
        }
        // A GET with a JSON content type, and even with a body, is fine.
        let (_socket, key) = session_key(&world, &fixture).await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.method == "GET") {
            for body in ["", "{}", "{"] {
                let request = endpoint.proven(&fixture, &endpoint.target(&key));
                world.send(request.header("Content-Type", "application/json").body(body)).await.content();
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_grant_names_its_missing_field() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let required = "필수 값입니다.";
        let grants = "authorization_code, refresh_token 중 하나여야 합니다.";
        for (body, field, rule) in [
            (json!({}), "grantType", required),
            (json!({ "grantType": "" }), "grantType", grants),
            (json!({ "grantType": "password" }), "grantType", grants),
            (json!({ "grantType": "AUTHORIZATION_CODE" }), "grantType", grants),
            (json!({ "grantType": "authorization_code " }), "grantType", grants),
            (json!({ "grantType": "authorization_code" }), "code", required),
            (json!({ "grantType": "authorization_code", "code": "x" }), "state", required),
            (json!({ "grantType": "authorization_code", "state": "x" }), "code", required),
            (
                json!({ "grantType": "authorization_code", "code": 1, "state": "x" }),
                "code",
                "문자열이어야 합니다.",
            ),
            (
                json!({ "grantType": "authorization_code", "code": "x", "state": "a\0" }),
                "state",
                "NUL 문자(U+0000)가 있으면 안 됩니다.",
            ),
            (json!({ "grantType": "refresh_token" }), "refreshToken", required),
            (json!({ "grantType": "refresh_token", "code": "x", "state": "x" }), "refreshToken", required),
        ] {
            let mut body = body;
            body["clientId"] = json!(app.client_id);
            body["clientSecret"] = json!(app.client_secret);
            world.token(body).await.assert_refused(400, &wrong(field, rule));
        }
    })
    .await;
}

/// Arbitrary input to every endpoint: each answer is in the envelope, and none is a 500.
#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_in_the_envelope_and_no_500() {
    both(Setup::default(), |world: World| async move {
        let fixture = Fixture::set_up(&world).await;
        let texts = [
            "",
            " ",
            "\u{0}",
            "'; DROP TABLE channels; --",
            "%s%n",
            "\u{202e}",
            "👋",
            "𝕏",
            "{{7*7}}",
            "../../etc/passwd",
        ];
        let mut values: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
        values.extend([
            json!(i64::MIN),
            json!(u64::MAX),
            json!(-0.0),
            json!(1e308),
            json!([[[]]]),
            json!({ "a": {} }),
        ]);
        values.push(json!("x".repeat(10_000)));
        values.push(json!("한".repeat(10_000)));
        values.push(Value::Array(vec![json!("x"); 1_000]));
        for endpoint in reading() {
            let good = endpoint.body(&fixture);
            for field in good.as_object().expect("an object").keys() {
                for value in &values {
                    let mut body = good.clone();
                    body[field] = value.clone();
                    let request = endpoint.proven(&fixture, &endpoint.target("x")).json(&body);
                    let answer = world.send(request).await;
                    assert!(answer.status < 500, "{} {field}: {}", endpoint.path, answer.text());
                    if answer.status == 200 { drop(answer.content()) } else { drop(answer.message()) }
                }
            }
        }
        for endpoint in
            ENDPOINTS.iter().filter(|endpoint| takes_query(endpoint) && endpoint.mode != Mode::Body)
        {
            for name in [
                "channelIds",
                "sessionKey",
                "size",
                "page",
                "page.from",
                "page.size",
                "claimId",
                "campaignId",
                "fulfillmentState",
            ] {
                for text in texts.iter().copied().chain(["%00", "-1", "9223372036854775808", "1,2,3"]) {
                    let query = format!("{name}={}", testkit::encode(text));
                    let request: Request = endpoint.proven(&fixture, &format!("{}?{query}", endpoint.path()));
                    let answer = world.send(request).await;
                    assert!(answer.status < 500, "{} {query}: {}", endpoint.path, answer.text());
                    if answer.status == 200 { drop(answer.content()) } else { drop(answer.message()) }
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_redirect_address_is_registered_once() {
    both(Setup::default(), |world| async move {
        let uri = "https://a.example/callback";
        let app = world.application("twice").redirect_uris(&[uri, uri]).create().await;
        let streamer = world.person("haneul").create().await;
        world.sign_in(&app, &streamer).await;
    })
    .await;
}
