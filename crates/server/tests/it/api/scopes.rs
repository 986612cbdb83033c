//! The seventeen scopes (`docs/spec/authorization.md#scopes`): their names, the endpoints that need them, and
//! the effect of removing one from an application.

use domain::event::EventType;
use domain::{Scope, ScopeSet};
use serde_json::json;
use testkit::{Request, Setup, both};

use crate::api::endpoints::{ENDPOINTS, Endpoint, Mode, session_key};
use crate::fixture::Fixture;

/// The names and order of the specification.
const NAMES: [&str; 17] = [
    "유저 정보 조회",
    "채널 관리자 조회",
    "채널 팔로워 조회",
    "채널 구독자 조회",
    "방송 스트림키 조회",
    "방송 설정 조회",
    "방송 설정 변경",
    "채팅 메시지 조회",
    "채팅 메시지 쓰기",
    "채팅 공지 쓰기",
    "채팅 설정 조회",
    "채팅 설정 변경",
    "후원 조회",
    "구독 조회",
    "활동제한 쓰기",
    "활동제한 조회",
    "드롭스",
];

#[test]
fn the_scopes_are_those_of_the_specification() {
    assert_eq!(Scope::ALL.map(Scope::name), NAMES);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_may_request_every_scope_and_a_token_lists_those_of_its_user() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let app = world.application("all").with("scopes", json!(NAMES)).create().await;
        let shown = world.operator(Request::get("/platform/v1/applications/all")).await.content();
        assert_eq!(shown["scopes"], json!(NAMES));
        let tokens = world.sign_in(&app, &streamer).await;
        let refreshed = world.refresh(&app, &tokens.refresh).await.content();
        assert_eq!(refreshed["scope"], NAMES[..16].join(" "), "드롭스 is the application's own");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_endpoint_needs_its_own_scope_and_no_other() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let needed = |endpoint: &Endpoint| match endpoint.mode {
            Mode::User(scope) => scope,
            _ => None,
        };
        let mut scopes: Vec<_> = ENDPOINTS.iter().filter_map(needed).collect();
        scopes.sort_by_key(|scope| *scope as u8);
        scopes.dedup();
        for scope in scopes {
            let all_but: Vec<_> = ScopeSet::of_users().iter().filter(|other| *other != scope).collect();
            for (name, held, works) in
                [("own", vec![scope], true), ("others", all_but, false), ("none", vec![], false)]
            {
                let app = world.application(&format!("{name}-{}", scope as u8)).scopes(&held).create().await;
                let tokens = world.sign_in(&app, &fixture.streamer).await;
                let (streamer, viewer) = (fixture.streamer.clone(), fixture.viewer.clone());
                let cast = Fixture {
                    app,
                    tokens,
                    streamer,
                    viewer,
                    publisher: fixture.publisher.clone(),
                    webhook_owner: fixture.webhook_owner.clone(),
                    secret_id: fixture.secret_id.clone(),
                    review_request_id: fixture.review_request_id.clone(),
                };
                let (socket, key) = session_key(&world, &cast).await;
                for endpoint in ENDPOINTS.iter().filter(|endpoint| needed(endpoint) == Some(scope)) {
                    endpoint.prepare(&world, &cast).await;
                    let answer = world.send(endpoint.good(&cast, &key)).await;
                    if works {
                        answer.content();
                    } else {
                        assert_eq!(answer.text(), r#"{"code":403,"message":"FORBIDDEN"}"#, "{endpoint:?}");
                        assert_eq!(answer.status, 403);
                    }
                }
                // Calls that need no scope work without one.
                world.user_sessions(&cast.tokens.access, "").await.content();
                socket.close().await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drops_endpoint_needs_the_drops_scope_and_no_other() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let user_scopes: Vec<_> = ScopeSet::of_users().iter().collect();
        let mut found = 0;
        for (held, works) in [(&[Scope::Drops][..], true), (&user_scopes, false), (&[], false)] {
            world.application("publisher").scopes(held).with("organizationId", "publisher").replace().await;
            for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.mode == Mode::Drops) {
                // Without the right to call these endpoints, the caller may not prepare for them either.
                if works {
                    endpoint.prepare(&world, &fixture).await;
                    world.send(endpoint.good(&fixture, "")).await.content();
                    found += 1;
                } else {
                    let answer = world.send(endpoint.good(&fixture, "")).await;
                    answer.assert_refused(403, "드롭스 scope가 필요합니다.");
                }
            }
        }
        assert_eq!(found, 5, "query and update; a listener's three");
    })
    .await;
}

/// The events that can be subscribed to, with their scopes.
fn events() -> impl Iterator<Item = (String, Scope)> {
    EventType::ALL.into_iter().map(|event| (event.name().to_lowercase(), event.scope()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_an_application_loses_ends_at_once_also_on_its_sockets() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        for (event, _) in events() {
            world.subscribe(&tokens.access, &event, socket.session_key()).await.content();
            socket.system("subscribed").await;
        }
        let mut left: Vec<_> = ScopeSet::of_users().iter().collect();
        for (event, lost) in events() {
            left.retain(|scope| *scope != lost);
            world.application("bot").scopes(&left).replace().await;
            let revoked = socket.system("revoked").await;
            assert_eq!(revoked, json!({ "eventType": event.to_uppercase(), "channelId": "haneul" }));
            let again = world.subscribe(&tokens.access, &event, socket.session_key()).await;
            again.assert_refused(403, "FORBIDDEN");
            world.happen("haneul", "chats", &json!({ "senderChannelId": "byeol", "message": "안녕" })).await;
            if event == "chat" {
                socket.ping().await;
            }
        }
        left.retain(|scope| *scope != Scope::UserRead);
        world.me(&tokens.access).await.content();
        world.application("bot").scopes(&left).replace().await;
        world.me(&tokens.access).await.assert_refused(403, "FORBIDDEN");
        // The token stays valid. A scope that is added again needs a new consent.
        world.user_sessions(&tokens.access, "").await.content();
        world.application("bot").replace().await;
        world.me(&tokens.access).await.assert_refused(403, "FORBIDDEN");
        socket.ping().await;
    })
    .await;
}
