//! The conventions of every endpoint (`docs/spec/rest.md`): the envelope, authentication, the order of
//! checks, methods, request ids.

use domain::{Language, Scope};
use testkit::{Connection, Request, Response, Setup, World, both};

use crate::api::endpoints::{ENDPOINTS, Endpoint, Mode, session_key};
use crate::fixture::{Fixture, UNKNOWN_TOKEN};

#[tokio::test(flavor = "multi_thread")]
async fn a_good_request_succeeds_in_the_envelope_with_a_request_id() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let (_socket, key) = session_key(&world, &fixture).await;
        let mut ids = std::collections::HashSet::new();
        for endpoint in ENDPOINTS.iter() {
            endpoint.prepare(&world, &fixture).await;
            let answer = world.send(endpoint.good(&fixture, &key)).await;
            answer.content();
            let id = answer.header("x-request-id").expect("a request id").to_owned();
            assert_eq!(id.len(), 20, "{id}");
            assert!(ids.insert(id), "a request id came twice");
            assert_eq!(answer.header("cache-control"), Some("no-store"), "{endpoint:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credentials_or_those_of_another_mode_are_unauthorized() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.mode != Mode::Body) {
            let request = || Request::new(endpoint.method, endpoint.target("x"));
            let mut tries = vec![
                request(),
                request().header("Authorization", fixture.tokens.access.clone()),
                request().header("Authorization", format!("Basic {}", fixture.tokens.access)),
                request().header("Authorization", "Bearer "),
                request().header("Authorization", "Bearer"),
                request().header("Authorization", ""),
                request().header("Client-Id", &fixture.app.client_id),
                request().header("Client-Secret", &fixture.app.client_secret),
                request().client("", ""),
                request().client(&fixture.app.client_id, ""),
            ];
            tries.push(match endpoint.mode {
                mode if mode.is_client() => request().bearer(&fixture.tokens.access),
                _ => request().client(&fixture.app.client_id, &fixture.app.client_secret),
            });
            for request in tries {
                let answer = world.send(request.clone()).await;
                assert_eq!(answer.text(), r#"{"code":401,"message":"UNAUTHORIZED"}"#, "{request:?}");
                assert_eq!(answer.status, 401);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_invalid_without_details() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let other = world.application("other").create().await;
        let revoked = world.sign_in(&fixture.app, &fixture.viewer).await;
        world.revoke(&fixture.app, &revoked.access).await.content();
        let long = "x".repeat(513);
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.mode != Mode::Body) {
            let request = || Request::new(endpoint.method, endpoint.target("x"));
            let app = &fixture.app;
            let tries = match endpoint.mode {
                mode if mode.is_client() => vec![
                    request().client(&app.client_id, UNKNOWN_TOKEN),
                    request().client(&app.client_id, &other.client_secret),
                    request().client(&app.client_id, &fixture.tokens.access),
                    request().client("missing", &app.client_secret),
                    request().client("' OR 1=1 --", &app.client_secret),
                    request().client(&long, &app.client_secret),
                    request().client(&app.client_id, &long),
                ],
                _ => vec![
                    request().bearer(UNKNOWN_TOKEN),
                    request().bearer(&fixture.tokens.refresh),
                    request().bearer(&revoked.access),
                    request().bearer(&app.client_secret),
                    request().bearer("' OR 1=1 --"),
                    request().bearer(&long),
                ],
            };
            let message = if endpoint.mode.is_client() { "INVALID_CLIENT" } else { "INVALID_TOKEN" };
            for request in tries {
                let answer = world.send(request.clone()).await;
                let expected = format!(r#"{{"code":401,"message":"{message}"}}"#);
                assert_eq!((answer.status, answer.text()), (401, expected.as_str()), "{request:?}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoints_mode_selects_among_two_kinds_of_credentials() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let (_socket, key) = session_key(&world, &fixture).await;
        for endpoint in ENDPOINTS.iter() {
            for is_good in [false, true] {
                // The refresh token of the fixture works only once.
                if is_good && endpoint.path == "/auth/v1/token" {
                    continue;
                }
                endpoint.prepare(&world, &fixture).await;
                let request = endpoint.good(&fixture, &key);
                let request = match (endpoint.mode.is_client(), is_good) {
                    (true, false) => request.bearer(UNKNOWN_TOKEN),
                    (true, true) => request.bearer(&fixture.tokens.access),
                    (false, false) => request.client("missing", UNKNOWN_TOKEN),
                    (false, true) => request.client(&fixture.app.client_id, &fixture.app.client_secret),
                };
                world.send(request).await.content();
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_come_in_the_order_401_429_403_400_404() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let app = world.application("reader").scopes(&[Scope::UserRead]).create().await;
        let reader = world.sign_in(&app, &streamer).await;
        let writer = world.application("writer").scopes(&[Scope::ChatWrite]).create().await;
        let writer = world.sign_in(&writer, &streamer).await;
        let send = |token: Option<&str>, body: &str| {
            let request = Request::post("/open/v1/chats/send").body(body);
            token.into_iter().fold(request, |request, token| request.bearer(token))
        };
        let broken = "{";
        world.send(send(None, broken)).await.assert_refused(401, "UNAUTHORIZED");
        world.send(send(Some(UNKNOWN_TOKEN), broken)).await.assert_refused(401, "INVALID_TOKEN");
        world.send(send(Some(&reader.access), broken)).await.assert_refused(403, "FORBIDDEN");
        for _ in 0..19 {
            assert_eq!(world.send(send(Some(&writer.access), broken)).await.status, 400);
        }
        // Twenty messages in thirty seconds use the quota up, over all applications: 429 comes before 403 and
        // 400.
        world.send(send(Some(&reader.access), broken)).await.assert_refused(429, "TOO_MANY_REQUESTS");
        world.send(send(Some(&writer.access), broken)).await.assert_refused(429, "TOO_MANY_REQUESTS");
        world.send(send(Some(UNKNOWN_TOKEN), broken)).await.assert_refused(401, "INVALID_TOKEN");

        let target = |query: &str| format!("/open/v1/sessions/events/subscribe/chat?{query}");
        let chat = world.application("chat").scopes(&[Scope::ChatRead]).create().await;
        let chat = world.sign_in(&chat, &streamer).await;
        let call = |token: &str, query: &str| world.send(Request::post(target(query)).bearer(token));
        call(&reader.access, "").await.assert_refused(403, "FORBIDDEN");
        assert_eq!(call(&chat.access, "").await.status, 400);
        assert_eq!(call(&chat.access, "sessionKey=missing&x=%ff").await.status, 400);
        call(&chat.access, "sessionKey=missing").await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_path_is_not_found_and_a_wrong_method_lists_the_allowed_ones() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for path in [
            "/open",
            "/open/v1",
            "/open/v1/",
            "/open/v1/users/me/",
            "/open/v1/users//me",
            "/open/v1/Users/me",
            "/open/v2/users/me",
            "/open/v1/users/me%00",
            "/open/v1/users/%6de",
            "/open/v1/users/me;x=1",
            "/open/v1/../v1/users/me",
            "/open/v1/sessions/events/subscribe/chats",
            "/open/v1/sessions/events/subscribe/",
            "/platform/v1/channels/",
            "/platform/v1/channels/a/b/c",
            "/account-interlock/",
            "/%ff",
        ] {
            for method in ["GET", "POST", "DELETE"] {
                let answer = world.send(Request::new(method, path).bearer(&fixture.tokens.access)).await;
                assert_eq!(answer.text(), r#"{"code":404,"message":"NOT_FOUND"}"#, "{method} {path}");
                assert!(answer.header("x-request-id").is_some());
            }
        }
        for endpoint in ENDPOINTS.iter() {
            let same_path = ENDPOINTS.iter().filter(|other| other.path == endpoint.path);
            let mut right: Vec<_> = same_path.map(|other| other.method).collect();
            if right.contains(&"GET") {
                right.push("HEAD");
            }
            right.sort_unstable();
            for method in
                ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD", "PROPFIND", "get"]
            {
                if right.contains(&method) {
                    continue;
                }
                let answer = world.send(Request::new(method, endpoint.path())).await;
                assert_eq!(answer.status, 405, "{method} {}", endpoint.path);
                if method != "HEAD" {
                    assert_eq!(answer.text(), r#"{"code":405,"message":"METHOD_NOT_ALLOWED"}"#);
                }
                let mut allowed: Vec<_> = answer.header("allow").expect("Allow").split(',').collect();
                allowed.sort_unstable();
                assert_eq!(allowed, right, "{}", endpoint.path);
                assert!(answer.header("x-request-id").is_some());
            }
        }
        let answer = world.send(Request::new("DELETE", "/account-interlock")).await;
        answer.assert_refused(405, "METHOD_NOT_ALLOWED");
        assert_eq!(answer.header("allow"), Some("GET,HEAD,POST"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_is_a_get_without_its_body() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let (_socket, key) = session_key(&world, &fixture).await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.method == "GET") {
            let head = Endpoint { method: "HEAD", ..*endpoint };
            let answer = world.send(head.good(&fixture, &key)).await;
            assert_eq!((answer.status, answer.body.len()), (200, 0), "{}", endpoint.path);
            assert_eq!(answer.header("content-type"), Some("application/json"));
            let answer = world.send(Request::new("HEAD", endpoint.target(&key))).await;
            assert_eq!((answer.status, answer.body.len()), (401, 0), "{}", endpoint.path);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_stays_open_after_every_kind_of_answer() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let (_socket, key) = session_key(&world, &fixture).await;
        let mut connection = Connection::open(world.address()).await;
        for endpoint in ENDPOINTS.iter() {
            endpoint.prepare(&world, &fixture).await;
            connection.send(&endpoint.good(&fixture, &key)).await.content();
            connection.send(&Request::new("DELETE", endpoint.path())).await.message();
        }
    })
    .await;
}

/// The refused body stays unread. The answer must still arrive.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_arrives_without_reading_the_body() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        for size in [1, 64 * 1024, 64 * 1024 + 1, 1024 * 1024, 8 * 1024 * 1024] {
            for path in ["/open/v1/chats/send", "/open/v1/users/me", "/nowhere"] {
                let answer = world.send(Request::post(path).body(vec![b'x'; size])).await;
                assert!((400..500).contains(&answer.status), "{size} {path}");
                answer.message();
            }
            let answer = world.send(Request::post("/auth/v1/token").body(vec![b'x'; size])).await;
            assert_eq!(answer.status, 400, "{size}");
            answer.message();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_may_be_pipelined() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let token = &tokens.access;
        let request =
            format!("GET /open/v1/users/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
        let mut connection = Connection::open(world.address()).await;
        connection.write(request.repeat(50).as_bytes()).await;
        for _ in 0..50 {
            connection.read_response(false).await.expect("an answer").content();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_korean_or_english_as_configured() {
    for (language, begin) in [
        (Language::Korean, "잘못된 값을 입력했습니다. message: 필수 값입니다."),
        (Language::English, "A wrong value was entered. message: is required."),
    ] {
        both(Setup { language, ..Setup::default() }, move |world| async move {
            let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
            let request = Request::post("/open/v1/chats/send").bearer(&tokens.access).body("{}");
            world.send(request).await.assert_refused(400, begin);
            let code = world.exchange(&app, UNKNOWN_TOKEN, "s").await.message();
            assert!(code.starts_with(begin.split(" message").next().expect("a sentence")), "{code}");
            // Codes of the specification are the same in every language.
            world.me(UNKNOWN_TOKEN).await.assert_refused(401, "INVALID_TOKEN");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn header_names_and_the_bearer_scheme_are_read_in_any_case() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let value = format!("{scheme} {}", tokens.access);
            let request = Request::get("/open/v1/users/me").header("aUTHORIZATION", value);
            world.send(request).await.content();
        }
        let request = Request::get("/open/v1/channels?channelIds=haneul")
            .header("client-id", &app.client_id)
            .header("CLIENT-SECRET", &app.client_secret);
        world.send(request).await.content();
    })
    .await;
}

/// Bytes that are not HTTP are refused or end the connection. Other callers are not affected.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_not_http_are_refused_and_other_callers_are_served() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let long_header = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(100_000));
        let long_target = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(100_000));
        for bytes in [
            &b"\x16\x03\x01\x02\x00\x01\x00"[..],
            b"hello\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
            b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /auth/v1/token HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            b"POST /auth/v1/token HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            b"POST /auth/v1/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            long_header.as_bytes(),
            long_target.as_bytes(),
        ] {
            let mut connection = Connection::open(world.address()).await;
            connection.write(bytes).await;
            connection.finish_writing().await;
            let answer = connection.read_response(false).await;
            let status = answer.map(|answer: Response| answer.status);
            assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?}");
        }
        world.me(&tokens.access).await.content();
    })
    .await;
}

/// An incomplete request has no effect.
#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_request_changes_nothing() {
    both(Setup::default(), |world: World| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let token = &tokens.access;
        let head =
            format!("POST /open/v1/chats/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n");
        for half in [
            head.clone(),
            format!("{head}Content-Length: 100\r\n\r\n"),
            format!("{head}Content-Length: 100\r\n\r\n{{\"message\":\"half\"}}"),
        ] {
            let mut connection = Connection::open(world.address()).await;
            connection.write(half.as_bytes()).await;
            drop(connection);
        }
        world.send_chat(&tokens.access, "whole").await.content();
        assert_eq!(socket.event("CHAT").await["content"], "whole");
    })
    .await;
}
