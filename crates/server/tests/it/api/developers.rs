//! Owners of applications, members of organizations, and requests to the operator, over the platform API.

use domain::Scope;
use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both};

use crate::fixture::wrong;

const GAMES: &str = "/platform/v1/organizations/games";
const REQUESTS: &str = "/platform/v1/review-requests";

async fn put(world: &World, path: &str, body: Value) -> Response {
    world.operator(Request::put(path).json(&body)).await
}

async fn get(world: &World, path: &str) -> Value {
    world.operator(Request::get(path)).await.content()
}

async fn remove(world: &World, path: &str) -> Response {
    world.operator(Request::delete(path)).await
}

/// Organization `games` with the admin `haneul`, and `byeol`, who is no member.
async fn games(world: &World) {
    world.person("haneul").name("하늘").create().await;
    world.person("byeol").name("별이").create().await;
    put(world, GAMES, json!({ "organizationName": "게임즈" })).await.content();
    put(world, &format!("{GAMES}/members/haneul"), json!({ "role": "admin" })).await.content();
}

async fn ask(world: &World, body: Value) -> Response {
    let mut request = json!({ "channelId": "haneul", "message": "부탁드립니다." });
    request.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
    world.operator(Request::post(REQUESTS).json(&request)).await
}

async fn asked(world: &World, body: Value) -> String {
    ask(world, body).await.content()["requestId"].as_str().expect("a text").to_owned()
}

async fn decide(world: &World, id: &str, decision: &str) -> Response {
    put(world, &format!("{REQUESTS}/{id}"), json!({ "decision": decision })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_with_members_keeps_an_admin() {
    both(Setup::default(), |world| async move {
        games(&world).await;
        let member = |id: &str| format!("{GAMES}/members/{id}");
        let members = get(&world, &format!("{GAMES}/members")).await;
        let first = &members["data"][0];
        assert_eq!((&first["channelName"], &first["role"]), (&json!("하늘"), &json!("admin")));

        let last = put(&world, &member("haneul"), json!({ "role": "viewer" })).await;
        last.assert_refused(400, &wrong("role", "조직에 관리자가 한 명은 남아야 합니다."));
        assert_eq!(last.header("stagedoor-reason"), Some("invalid; field=role; rule=last-admin"));
        let last = remove(&world, &member("haneul")).await;
        last.assert_refused(400, &wrong("channelId", "조직에 관리자가 한 명은 남아야 합니다."));
        put(&world, &member("byeol"), json!({ "role": "admin" })).await.content();
        remove(&world, &member("haneul")).await.content();
        remove(&world, &member("haneul")).await.content();
        let members = get(&world, &format!("{GAMES}/members?size=1")).await;
        assert_eq!(
            (&members["data"][0]["channelId"], &members["page"]["next"]),
            (&json!("byeol"), &Value::Null)
        );

        let unknown = put(&world, &member("unknown"), json!({ "role": "viewer" })).await;
        unknown.assert_refused(400, &wrong("channelId", "존재하는 채널이어야 합니다."));
        let role = put(&world, &member("haneul"), json!({ "role": "owner" })).await;
        role.assert_refused(400, &wrong("role", "viewer, developer, admin 중 하나여야 합니다."));
        let missing = "/platform/v1/organizations/missing/members";
        world.operator(Request::get(missing)).await.assert_refused(404, "NOT_FOUND");
        let role = json!({ "role": "admin" });
        put(&world, &format!("{missing}/haneul"), role).await.assert_refused(404, "NOT_FOUND");
        remove(&world, &format!("{missing}/haneul")).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_one_owner_at_most_and_goes_with_its_person() {
    both(Setup::default(), |world| async move {
        games(&world).await;
        let path = "/platform/v1/applications/bot";
        let body = |more: Value| {
            let mut body = json!({ "name": "bot", "redirectUris": [], "scopes": [] });
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            body
        };
        put(&world, path, body(json!({ "ownerChannelId": "haneul" }))).await.content();
        let shown = get(&world, path).await;
        assert_eq!((&shown["ownerChannelId"], &shown["organizationId"]), (&json!("haneul"), &Value::Null));
        let two = body(json!({ "ownerChannelId": "haneul", "organizationId": "games" }));
        let two = put(&world, path, two).await;
        two.assert_refused(400, &wrong("ownerChannelId", "organizationId와 함께 지정할 수 없습니다."));
        let unknown = put(&world, path, body(json!({ "ownerChannelId": "unknown" }))).await;
        unknown.assert_refused(400, &wrong("ownerChannelId", "존재하는 채널이어야 합니다."));
        let listed = get(&world, "/platform/v1/applications?size=1").await;
        assert_eq!(listed["data"][0]["ownerChannelId"], "haneul");

        put(&world, &format!("{path}/disabled"), json!({})).await.content();
        assert_eq!(get(&world, path).await["disabledBy"], json!(["operator"]));
        remove(&world, &format!("{path}/disabled")).await.content();
        assert_eq!(get(&world, path).await["disabledBy"], json!([]));

        remove(&world, "/platform/v1/channels/haneul").await.content();
        world.operator(Request::get(path)).await.assert_refused(404, "NOT_FOUND");
        let members = get(&world, &format!("{GAMES}/members")).await;
        assert_eq!(members["data"], json!([]), "an account takes the last admin away");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_listed_and_decided_once_with_effect_at_once() {
    both(Setup::default(), |world| async move {
        games(&world).await;
        let app = world.application("drops").scopes(&[Scope::UserRead]);
        let app = app.with("organizationId", "games").create().await;
        let early = ask(&world, json!({ "kind": "drops", "clientId": "drops" })).await;
        early.assert_refused(400, &wrong("scopes", "인증된 조직의 애플리케이션이어야 합니다."));
        let verification = json!({ "kind": "organization", "organizationId": "games" });
        let first = asked(&world, verification.clone()).await;
        assert_eq!(asked(&world, verification.clone()).await, first, "it is pending");
        let listed = get(&world, REQUESTS).await;
        let [request] = listed["data"].as_array().expect("a list").as_slice() else { panic!("{listed}") };
        for (field, value) in [
            ("requestId", json!(first)),
            ("kind", json!("organization")),
            ("state", json!("pending")),
            ("organizationId", json!("games")),
            ("organizationName", json!("게임즈")),
            ("clientId", Value::Null),
            ("channelId", json!("haneul")),
            ("channelName", json!("하늘")),
            ("message", json!("부탁드립니다.")),
            ("scopes", json!([])),
            ("decidedBy", Value::Null),
            ("note", Value::Null),
        ] {
            assert_eq!(request[field], value, "{field}");
        }
        let body = json!({ "decision": "approve", "note": "확인했습니다." });
        let path = format!("{REQUESTS}/{first}");
        for _ in 0..2 {
            put(&world, &path, body.clone()).await.content();
        }
        let late = decide(&world, &first, "refuse").await;
        late.assert_refused(400, &wrong("decision", "이미 처리되었거나 취소된 신청입니다."));
        assert_eq!(get(&world, REQUESTS).await["data"], json!([]));
        let approved = get(&world, &format!("{REQUESTS}?state=approved")).await;
        assert_eq!(approved["data"][0]["note"], "확인했습니다.");
        assert_eq!(approved["data"][0]["decidedBy"], "platform-api");
        let verified = get(&world, "/platform/v1/organizations").await;
        assert_eq!(verified["data"][0]["verified"], true);
        let again = ask(&world, verification).await;
        again.assert_refused(400, &wrong("organizationId", "이미 승인되었습니다."));

        world.reward_claims(&app, "").await.assert_refused(403, "드롭스 scope가 필요합니다.");
        let drops = asked(&world, json!({ "kind": "drops", "clientId": "drops" })).await;
        decide(&world, &drops, "approve").await.content();
        world.reward_claims(&app, "").await.content();
        let scopes = json!({ "kind": "scopes", "clientId": "drops", "scopes": ["채팅 메시지 조회"] });
        let scopes = asked(&world, scopes).await;
        decide(&world, &scopes, "refuse").await.content();
        let shown = get(&world, "/platform/v1/applications/drops").await;
        assert_eq!(shown["scopes"], json!(["유저 정보 조회", "드롭스"]));
        decide(&world, "unknown", "approve").await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_asks_for_what_is_not_theirs() {
    both(Setup::default(), |world| async move {
        games(&world).await;
        world.application("bot").create().await;
        let verification = json!({ "kind": "organization", "organizationId": "games" });
        for (member, request) in [
            (None, verification.clone()),
            (Some("developer"), verification.clone()),
            (Some("admin"), json!({ "kind": "organization", "organizationId": "missing" })),
            (Some("admin"), json!({ "kind": "scopes", "clientId": "bot", "scopes": ["유저 정보 조회"] })),
            (Some("admin"), json!({ "kind": "drops", "clientId": "missing" })),
        ] {
            if let Some(role) = member {
                put(&world, &format!("{GAMES}/members/byeol"), json!({ "role": role })).await.content();
            }
            let mut request = request;
            request["channelId"] = json!("byeol");
            ask(&world, request.clone()).await.assert_refused(404, "NOT_FOUND");
        }
        for (body, field) in [
            (json!({ "kind": "organization" }), "organizationId"),
            (json!({ "kind": "drops" }), "clientId"),
            (json!({ "kind": "scopes", "clientId": "bot" }), "scopes"),
        ] {
            ask(&world, body).await.assert_refused(400, &wrong(field, "필수 값입니다."));
        }
        assert_eq!(get(&world, REQUESTS).await["data"], json!([]));
    })
    .await;
}
