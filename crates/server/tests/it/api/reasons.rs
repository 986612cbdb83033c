//! The header `Stagedoor-Reason`, the language of messages, and the log line of a refusal. `docs/errors.md`
//! explains each reason.

use serde_json::json;
use testkit::{Request, Response, Setup, Socket, World, both, patiently};

use crate::cli::process::Sandbox;
use crate::fixture::{Fixture, UNKNOWN_TOKEN, WebhookOwner};

const ME: &str = "/open/v1/users/me";
const CHANNELS: &str = "/open/v1/channels?channelIds=haneul";
const APPLICATION: &str = "/platform/v1/applications/bot";

fn reason(answer: &Response) -> &str {
    answer
        .header("stagedoor-reason")
        .unwrap_or_else(|| panic!("no reason: {} {}", answer.status, answer.text()))
}

async fn check(world: &World, request: Request, status: u16, expected: &str) {
    let name = format!("{} {}", request.method(), request.target());
    let answer = world.send(request).await;
    assert_eq!((answer.status, reason(&answer)), (status, expected), "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_credentials_has_the_reason() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let (access, refresh) = (tokens.access.as_str(), tokens.refresh.as_str());
        let (id, secret) = (app.client_id.as_str(), app.client_secret.as_str());
        let bare = || Request::get(ME);
        for (request, expected) in [
            (bare(), "credential-missing; want=access-token"),
            (bare().header("Authorization", access), "credential-malformed; want=access-token"),
            (bare().client(id, secret), "credential-wrong-kind; want=access-token"),
            (bare().bearer(&"x".repeat(600)), "credential-malformed; want=access-token"),
            (bare().bearer(refresh), "credential-wrong-kind; want=access-token"),
            (bare().bearer(UNKNOWN_TOKEN), "token-unknown"),
            (Request::get(CHANNELS), "credential-missing; want=client-id-and-secret"),
            (Request::get(CHANNELS).bearer(access), "credential-wrong-kind; want=client-id-and-secret"),
            (
                Request::get(CHANNELS).header("Client-Id", id),
                "credential-malformed; want=client-id-and-secret",
            ),
            (Request::get(CHANNELS).client(id, "wrong"), "secret-wrong"),
            (Request::get(CHANNELS).client("missing", secret), "secret-wrong"),
            (Request::get(APPLICATION), "credential-missing; want=operator-key"),
            (Request::get(APPLICATION).bearer("wrong"), "operator-key-wrong"),
            (Request::get(APPLICATION).bearer(access), "credential-wrong-kind; want=operator-key"),
            (Request::get(APPLICATION).client(id, secret), "credential-wrong-kind; want=operator-key"),
        ] {
            check(&world, request, 401, expected).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_a_token_has_the_reason() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let stranger = world.application("stranger").create().await;
        assert_eq!(reason(&world.refresh(&stranger, &tokens.refresh).await), "token-unknown");
        let second = world.refresh(&app, &tokens.refresh).await.content();
        let second = second["accessToken"].as_str().expect("a text").to_owned();
        assert_eq!(reason(&world.refresh(&app, &tokens.refresh).await), "token-used");
        world.advance(std::time::Duration::from_secs(11));
        assert_eq!(reason(&world.refresh(&app, &tokens.refresh).await), "token-reused");
        assert_eq!(reason(&world.me(&second).await), "token-revoked");
        let fresh = world.sign_in(&app, &streamer).await;
        world.advance(std::time::Duration::from_secs(24 * 60 * 60));
        assert_eq!(reason(&world.me(&fresh.access).await), "token-expired");

        let code = world.consent(&app, &streamer, "state").await;
        assert_eq!(reason(&world.exchange(&stranger, &code, "state").await), "code-unknown");
        assert_eq!(reason(&world.exchange(&app, &code, "other").await), "state-differs");
        world.exchange(&app, &code, "state").await.content();
        assert_eq!(reason(&world.exchange(&app, &code, "state").await), "code-used");
        world.advance(std::time::Duration::from_secs(11));
        assert_eq!(reason(&world.exchange(&app, &code, "state").await), "code-reused");
        let code = world.consent(&app, &streamer, "state").await;
        world.advance(std::time::Duration::from_secs(600));
        let late = world.exchange(&app, &code, "state").await;
        let unknown = world.exchange(&app, "unknown", "state").await;
        assert_eq!((reason(&late), reason(&unknown)), ("code-expired", "code-unknown"));
        assert_eq!(late.text(), unknown.text(), "one message for all of them");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_names_the_missing_resource_or_rule() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let access = tokens.access.as_str();
        let operator = |request: Request| request.bearer(World::OPERATOR_KEY);
        let narrow = world.application("narrow").scopes(&[domain::Scope::UserRead]).create().await;
        let narrow = world.sign_in(&narrow, &streamer).await;
        let key =
            |key: &str| Request::post(format!("/open/v1/sessions/events/subscribe/chat?sessionKey={key}"));
        for (request, status, expected) in [
            (Request::get("/open/v1/user/me"), 404, "not-found; what=path"),
            (Request::get("/open/v1/users/me/"), 404, "not-found; what=path"),
            (Request::post(ME), 405, "method-not-allowed"),
            (key("unknown").bearer(access), 404, "not-found; what=session"),
            (operator(Request::get("/platform/v1/applications/missing")), 404, "not-found; what=application"),
            (operator(Request::get("/platform/v1/drops/campaigns/none")), 404, "not-found; what=campaign"),
            (
                operator(Request::delete("/platform/v1/channels/missing/followers/haneul")),
                404,
                "not-found; what=channel",
            ),
            (operator(Request::get(format!("{APPLICATION}/webhook"))), 404, "not-found; what=webhook"),
            (
                operator(Request::post(format!("{}/secrets/none/activate", WebhookOwner::WEBHOOK))),
                404,
                "not-found; what=webhook-secret",
            ),
            (
                operator(Request::get(format!("{}/deliveries/none", WebhookOwner::WEBHOOK))),
                404,
                "not-found; what=delivery",
            ),
            (
                Request::post("/open/v1/chats/send").bearer(&narrow.access).json(&json!({ "message": "hi" })),
                403,
                "scope-missing; scope=chat-write",
            ),
            (
                Request::get("/open/v1/drops/reward-claims").client(&app.client_id, &app.client_secret),
                403,
                "scope-missing; scope=drops",
            ),
            (
                Request::get("/open/v1/channels/followers?size=51").bearer(access),
                400,
                "invalid; field=size; rule=integer",
            ),
            (
                Request::get("/account-interlock?clientId=bot"),
                400,
                "invalid; field=redirectUri; rule=required",
            ),
            (
                Request::get("/account-interlock?clientId=missing&redirectUri=http%3A%2F%2Fa&state=s"),
                400,
                "client-unknown",
            ),
            (
                Request::get("/account-interlock?clientId=bot&redirectUri=http%3A%2F%2Fa&state=s"),
                400,
                "redirect-unregistered",
            ),
        ] {
            check(&world, request, status, expected).await;
        }
        // A session of another caller looks like a missing one, headers included.
        let stranger = world.application("stranger").create().await;
        let _socket = world.open_client_session(&stranger).await;
        let listed = world.client_sessions(&stranger, "").await.content();
        let foreign = listed["data"][0]["sessionKey"].as_str().expect("a text").to_owned();
        let strip = |answer: Response| {
            let ids =
                |name: &str| name.eq_ignore_ascii_case("x-request-id") || name.eq_ignore_ascii_case("date");
            let headers: Vec<_> = answer.headers.iter().filter(|(name, _)| !ids(name)).cloned().collect();
            (answer.status, headers, answer.body.clone())
        };
        let there = strip(world.send(key(&foreign).bearer(access)).await);
        assert_eq!(there, strip(world.send(key("unknown").bearer(access)).await));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_have_names_and_handshakes_have_reasons() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut last = world.send_chat(&tokens.access, "hi").await;
        for _ in 0..20 {
            last = world.send_chat(&tokens.access, "hi").await;
        }
        assert_eq!((last.status, reason(&last)), (429, "quota; name=chat-send"));
        assert!(last.number("retry-after") > 0 && last.header("ratelimit-limit").is_some());

        let url = world.user_session_url(&tokens.access).await.content()["url"].as_str().unwrap().to_owned();
        let late = world.user_session_url(&tokens.access).await.content()["url"].as_str().unwrap().to_owned();
        let (base, _) = url.split_once("auth=").expect("a token");
        let refused = async |url: &str| Socket::connect(url).await.map(drop).expect_err("refused");
        let _socket = Socket::connect(&url).await.expect("it is good");
        assert_eq!(reason(&refused(&url).await), "session-url-used");
        assert_eq!(reason(&refused(&format!("{base}auth={UNKNOWN_TOKEN}")).await), "session-url-unknown");
        assert_eq!(reason(&refused(&format!("{base}auth=")).await), "credential-missing; want=session-url");
        world.advance(std::time::Duration::from_secs(30));
        let expired = refused(&late).await;
        expired.assert_refused(401, "UNAUTHORIZED");
        assert_eq!(reason(&expired), "session-url-expired");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_in_the_callers_language() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let list = || Request::get("/open/v1/channels/followers?size=51").bearer(&tokens.access);
        let english = "A wrong value was entered. size: must be an integer from 1 to 50.";
        let korean = "잘못된 값을 입력했습니다. size: 1 이상 50 이하의 정수여야 합니다.";
        for (accepted, message) in [
            ("en", english),
            ("ko;q=0.5, en-US;q=0.8", english),
            ("ko", korean),
            ("ja", korean),
            ("", korean),
        ] {
            let answer = world.send(list().header("Accept-Language", accepted)).await;
            answer.assert_refused(400, message);
            assert_eq!(answer.header("vary"), Some("Accept-Language"));
        }
        world.send(list()).await.assert_refused(400, korean);
        // Handshakes too, besides their CORS headers.
        let handshake = Request::get("/socket.io/?EIO=9&transport=polling").header("Accept-Language", "en");
        let answer = world.send(handshake).await;
        assert_eq!((answer.status, reason(&answer)), (400, "invalid; field=EIO; rule=one-of"));
        assert!(answer.text().contains("A wrong value was entered."), "{}", answer.text());
        // Also the lines of a bulk call.
        let lines = "{\"kind\":\"nope\"}\n{}\n{\"kind\":\"chat\"}";
        let bulk = Request::post("/platform/v1/events").bearer(World::OPERATOR_KEY).body(lines);
        let refused = world.send(bulk.header("Accept-Language", "en")).await.content()["refused"].clone();
        let message = |line: usize| refused[line]["message"].as_str().expect("a text").to_owned();
        assert!(message(0).contains("kind: must be one of channel, category, chat,"), "{}", message(0));
        assert_eq!(message(1), "A wrong value was entered. kind: is required.");
        assert_eq!(message(2), "A wrong value was entered. channelId: is required.");
        assert_eq!(refused[2]["reason"], "invalid; field=channelId; rule=required");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_forms_and_snake_case_names_the_right_fields() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let english = |request: Request| request.header("Accept-Language", "en");
        let form = |path: &str| {
            let form = "grant_type=authorization_code&client_id=bot&client_secret=s&code=c&state=s";
            Request::post(path).header("Content-Type", "application/x-www-form-urlencoded").body(form)
        };
        let message = |fields: &str| {
            format!("A wrong value was entered. body: must be a JSON object, not a form. Its fields: {fields}.")
        };
        let answer = world.send(english(form("/auth/v1/token"))).await;
        let grants = "clientId, clientSecret, grantType, code, state / grantType, refreshToken";
        answer.assert_refused(400, &message(grants));
        assert_eq!(reason(&answer), "invalid; field=body; rule=not-a-form");
        let answer = world.send(english(form("/auth/v1/token/revoke"))).await;
        answer.assert_refused(400, &message("clientId, clientSecret, token, tokenTypeHint"));

        let snake = json!({
            "grant_type": "authorization_code", "client_id": app.client_id, "client_secret": app.client_secret,
        });
        let answer = world.send(english(Request::post("/auth/v1/token").json(&snake))).await;
        let text = "A wrong value was entered. clientId: is required. There is client_id: did you mean clientId?";
        answer.assert_refused(400, text);
        assert_eq!(reason(&answer), "invalid; field=clientId; rule=misspelled");
        let query = Request::get("/open/v1/categories/search?Query=x").client(&app.client_id, &app.client_secret);
        world.send(english(query)).await.assert_refused(400, "A wrong value was entered. query: is required.");
        let page = Request::get("/account-interlock?client_id=bot");
        assert_eq!(reason(&world.send(page).await), "invalid; field=clientId; rule=required");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_logs_a_line_for_each_refused_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let answer = sandbox.api.me(UNKNOWN_TOKEN).await;
    let id = answer.header("x-request-id").expect("an id").to_owned();
    let auth = "/socket.io/?EIO=3&transport=websocket&auth=secret-of-a-client";
    let refused = sandbox.api.send(Request::get(auth)).await;
    assert_eq!(reason(&refused), "not-websocket");
    let line = patiently("the line", async {
        loop {
            let log = std::fs::read_to_string(sandbox.log_path()).expect("a log");
            assert!(!log.contains(UNKNOWN_TOKEN) && !log.contains("secret-of-a-client"), "{log}");
            let handshake = log.lines().any(|line| line.contains("not-websocket"));
            if let Some(line) = log.lines().find(|line| line.contains(&id) && handshake) {
                return line.to_owned();
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    for part in ["GET", ME, "401", "token-unknown", "refused"] {
        assert!(line.contains(part), "no {part}: {line}");
    }
    assert!(sandbox.list("users").len() > 1);
}
