//! The people who may use the operator pages.

use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both};

use super::endpoints::{ENDPOINTS, Mode};

fn role_of(channel: &str) -> String {
    format!("/platform/v1/channels/{channel}/operator-role")
}

async fn give(world: &World, channel: &str, role: &str) -> Response {
    world.operator(Request::put(role_of(channel)).json(&json!({ "role": role }))).await
}

async fn operators(world: &World) -> Vec<Value> {
    let listed = world.operator(Request::get("/platform/v1/operators")).await.content();
    listed["data"].as_array().expect("a list").clone()
}

async fn key(world: &World, role: &str) -> String {
    let body = json!({ "name": role, "role": role });
    let made = world.operator(Request::post("/platform/v1/keys").json(&body)).await.content();
    made["operatorKey"].as_str().expect("a key").to_owned()
}

/// The calls about a channel that change no account: what the platform reports, and the data of the channel.
const OF_CHANNELS: [(&str, &str); 11] = [
    ("PUT", "/platform/v1/channels/{channelId}/managers/{managerChannelId}"),
    ("DELETE", "/platform/v1/channels/{channelId}/managers/{managerChannelId}"),
    ("PUT", "/platform/v1/channels/{channelId}/followers/{followerChannelId}"),
    ("DELETE", "/platform/v1/channels/{channelId}/followers/{followerChannelId}"),
    ("POST", "/platform/v1/channels/{channelId}/chats"),
    ("POST", "/platform/v1/channels/{channelId}/donations"),
    ("POST", "/platform/v1/channels/{channelId}/subscriptions"),
    ("PUT", "/platform/v1/channels/{channelId}/live"),
    ("DELETE", "/platform/v1/channels/{channelId}/live"),
    ("PUT", "/platform/v1/organizations/{organizationId}/members/{channelId}"),
    ("DELETE", "/platform/v1/organizations/{organizationId}/members/{channelId}"),
];

/// Each call of the router whose path names a channel, also those that come later.
#[tokio::test(flavor = "multi_thread")]
async fn a_lower_role_changes_no_account_of_a_higher_one() {
    both(Setup::default(), |world| async move {
        let admin = world.person("admin").create().await;
        world.application("bot").create().await;
        give(&world, "admin", "admin").await.content();
        let bar = "/platform/v1/channels/admin/bar";
        let secret = key(&world, "write").await;
        let of_channels = ENDPOINTS.iter().filter(|one| {
            one.mode == Mode::Operator && one.method != "GET" && one.path.contains("{channelId}")
        });
        let mut refused = 0;
        for endpoint in of_channels {
            let name = (endpoint.method, endpoint.path);
            if OF_CHANNELS.contains(&name) {
                continue;
            }
            world.operator(Request::put(bar)).await.content();
            let path = endpoint.path.replace("{channelId}", "admin").replace("{clientId}", "bot");
            let request = Request::new(endpoint.method, path);
            let account =
                json!({ "channelName": "바뀜", "login": "mine", "password": "mine-now", "role": "read" });
            let request = if endpoint.reads_body { request.json(&account) } else { request };
            let answer = world.send(request.bearer(&secret)).await;
            assert_eq!(answer.header("stagedoor-reason"), Some("role-missing; role=admin"), "{name:?}");
            refused += 1;
        }
        assert!(refused >= 9, "{refused}");
        let shown = world.operator(Request::get("/platform/v1/channels/admin")).await.content();
        assert_eq!((&shown["operatorRole"], &shown["login"]), (&json!("admin"), &json!(admin.login)));
        assert!(shown["barredDate"].is_string());
        let line = json!({ "kind": "channel", "channelId": "admin", "channelName": "x", "login": "mine",
            "password": "mine-now" });
        let bulk = Request::post("/platform/v1/events").json(&line).bearer(&secret);
        assert_eq!(world.send(bulk).await.content()["refusedCount"], 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_gives_and_takes_roles() {
    both(Setup::default(), |world| async move {
        world.person("gaon").name("가온").create().await;
        let plain = Request::put("/platform/v1/channels/nobody").json(&json!({ "channelName": "아무도" }));
        world.operator(plain).await.content();
        assert_eq!(operators(&world).await, [] as [Value; 0]);
        for role in ["read", "write", "write", "admin"] {
            give(&world, "gaon", role).await.content();
            let listed = operators(&world).await;
            let expected = json!({
                "channelId": "gaon", "channelName": "가온", "login": "gaon@login", "role": role,
                "createdDate": listed[0]["createdDate"],
            });
            assert_eq!(listed, [expected]);
            let shown = world.operator(Request::get("/platform/v1/channels/gaon")).await.content();
            assert_eq!(shown["operatorRole"], role);
        }
        // Nobody signs in to this one, or it does not exist.
        for channel in ["nobody", "missing"] {
            give(&world, channel, "read").await.assert_refused(404, "NOT_FOUND");
        }
        assert_eq!(give(&world, "gaon", "root").await.status, 400);
        for role in ["read", "write"] {
            let secret = key(&world, role).await;
            for request in [
                Request::put(role_of("gaon")).json(&json!({ "role": "read" })),
                Request::delete(role_of("gaon")),
                Request::get("/platform/v1/operators"),
            ] {
                let refused = world.send(request.bearer(&secret)).await;
                assert_eq!(refused.header("stagedoor-reason"), Some("role-missing; role=admin"), "{role}");
            }
        }
        for _ in 0..2 {
            world.operator(Request::delete(role_of("gaon"))).await.content();
            assert_eq!(operators(&world).await, [] as [Value; 0]);
        }
        world.operator(Request::delete(role_of("missing"))).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_takes_over_the_account_of_a_higher_role() {
    both(Setup::default(), |world| async move {
        let admin = world.person("gaon").create().await;
        world.person("byeol").create().await;
        give(&world, "gaon", "admin").await.content();
        let secret = key(&world, "write").await;
        let with_password = json!({ "channelName": "x", "login": "taken", "password": "a long new one" });
        let requests = |channel: &str| {
            let path = |rest: &str| format!("/platform/v1/channels/{channel}{rest}");
            [
                Request::put(path("")).json(&with_password),
                Request::post(path("/password-reset")),
                Request::delete(path("/two-factor")),
                Request::delete(path("/browser-sessions")),
                Request::put(path("/bar")),
                Request::delete(path("")),
            ]
        };
        for request in requests("gaon") {
            let target = request.target().to_owned();
            let refused = world.send(request.bearer(&secret)).await;
            refused.assert_refused(403, "FORBIDDEN");
            assert_eq!(refused.header("stagedoor-reason"), Some("role-missing; role=admin"), "{target}");
        }
        let line = json!({
            "kind": "channel", "channelId": "gaon", "channelName": "x", "login": "taken", "password": "a new one",
        });
        let bulk = Request::post("/platform/v1/events")
            .header("Content-Type", "application/x-ndjson")
            .body(line.to_string());
        let answer = world.send(bulk.bearer(&secret)).await.content();
        assert_eq!((&answer["accepted"], &answer["refusedCount"]), (&json!(0), &json!(1)), "{answer}");
        let mut browser = world.browser();
        let form = browser.open("/sign-in").await.form("login");
        let form = form.fill("login", &admin.login).fill("password", &admin.password);
        browser.submit(&form).await.location();
        // The account of anyone else is changed, and a name without a password too.
        let name = json!({ "channelName": "가온 2" });
        let renamed = Request::put("/platform/v1/channels/gaon").json(&name).bearer(&secret);
        world.send(renamed).await.content();
        for request in requests("byeol") {
            world.send(request.bearer(&secret)).await.content();
        }
    })
    .await;
}
