//! The audit log: who changed what over the platform API.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::audit::AuditAction;
use serde_json::{Value, json};
use testkit::{Request, Response, Setup, World, both, patiently};

use super::endpoints::{ENDPOINTS, Endpoint, Mode};
use crate::fixture::{Fixture, WebhookOwner};

const LOG: &str = "/platform/v1/audit-log";

/// The calls with which the platform reports what happened, and how often. They are not audited.
const REPORTED: [(&str, &str); 12] = [
    ("PUT", "/platform/v1/channels/{channelId}/managers/{managerChannelId}"),
    ("DELETE", "/platform/v1/channels/{channelId}/managers/{managerChannelId}"),
    ("PUT", "/platform/v1/channels/{channelId}/followers/{followerChannelId}"),
    ("DELETE", "/platform/v1/channels/{channelId}/followers/{followerChannelId}"),
    ("POST", "/platform/v1/channels/{channelId}/chats"),
    ("POST", "/platform/v1/channels/{channelId}/donations"),
    ("POST", "/platform/v1/channels/{channelId}/subscriptions"),
    ("PUT", "/platform/v1/channels/{channelId}/live"),
    ("DELETE", "/platform/v1/channels/{channelId}/live"),
    ("POST", "/platform/v1/drops/watching"),
    ("POST", "/platform/v1/drops/claims"),
    ("POST", "/platform/v1/events"),
];

/// The actions of the operator pages and of the developer center alone.
const OF_PAGES: [AuditAction; 12] = [
    AuditAction::OrganizationVerify,
    AuditAction::MemberInvite,
    AuditAction::MemberUninvite,
    AuditAction::MemberDecline,
    AuditAction::MemberJoin,
    AuditAction::ReviewWithdraw,
    AuditAction::ApplicationScopes,
    AuditAction::ApplicationHandOver,
    AuditAction::ApplicationOffer,
    AuditAction::ApplicationOfferTakeBack,
    AuditAction::ApplicationOfferDecline,
    AuditAction::WebhookTest,
];

async fn log(world: &World, query: &str) -> Vec<Value> {
    let content = world.operator(Request::get(format!("{LOG}?{query}"))).await.content();
    content["data"].as_array().expect("a list").clone()
}

async fn put(world: &World, path: &str, body: &Value) -> Response {
    world.operator(Request::put(path).json(body)).await
}

/// What the good requests of the endpoints delete.
struct Doomed {
    session: String,
    key: String,
    secret: String,
}

async fn doom(world: &World, fixture: &Fixture) -> Doomed {
    world.application("unknown").create().await;
    world.person("unknown").create().await;
    let organization = json!({ "organizationName": "곧 없음" });
    put(world, "/platform/v1/organizations/unknown", &organization).await.content();
    let member = json!({ "role": "viewer" });
    put(world, "/platform/v1/organizations/reviewed/members/unknown", &member).await.content();
    let campaign = json!({
        "campaignName": "곧 없음", "organizationId": "publisher", "categoryId": "star-voyage",
        "rewards": [{ "rewardId": "one", "rewardName": "하나" }],
    });
    world.put_campaign("unknown", &campaign).await.content();
    world.sign_in(&fixture.app, &fixture.viewer).await;
    put(world, "/platform/v1/applications/bot/webhook", &json!({})).await.content();
    let secrets = "/platform/v1/applications/bot/secrets";
    world.operator(Request::post(secrets)).await.content();
    let listed = world.operator(Request::get(secrets)).await.content();
    // The session of the test was opened with the first one.
    let ids = listed["data"].as_array().expect("a list").iter();
    let mut ids = ids.map(|secret| secret["secretId"].as_str().expect("an id"));
    let secret = ids.find(|id| *id != fixture.secret_id).expect("another secret").to_owned();
    let key = json!({ "name": "곧 없음", "role": "read" });
    let key = world.operator(Request::post("/platform/v1/keys").json(&key)).await.content();
    let key = key["keyId"].as_str().expect("an id").to_owned();
    let mut browser = world.browser();
    let form = browser.open("/sign-in").await.form("login");
    let form = form.fill("login", &fixture.streamer.login).fill("password", &fixture.streamer.password);
    browser.submit(&form).await.location();
    let page = browser.open("/account/two-factor").await;
    let begin = page.forms.iter().find(|form| form.action.ends_with("/begin")).expect("a form");
    browser.submit(begin).await;
    Doomed { session: String::new(), key, secret }
}

impl Doomed {
    /// A good request that changes something.
    fn request(&self, endpoint: &Endpoint, fixture: &Fixture) -> Request {
        let target = match (endpoint.method, endpoint.path) {
            ("DELETE", "/platform/v1/sessions/{sessionKey}") => {
                endpoint.path.replace("{sessionKey}", &self.session)
            }
            ("DELETE", "/platform/v1/keys/{keyId}") => endpoint.path.replace("{keyId}", &self.key),
            ("DELETE", "/platform/v1/applications/{clientId}/secrets/{secretId}") => {
                format!("/platform/v1/applications/bot/secrets/{}", self.secret)
            }
            ("POST", path) if path.ends_with("/activate") => {
                let pending = fixture.webhook_owner.pending_secret();
                format!("{}/secrets/{pending}/activate", WebhookOwner::WEBHOOK)
            }
            _ => endpoint.target(&self.session),
        };
        let request = endpoint.proven(fixture, &target);
        if endpoint.path == "/platform/v1/applications/{clientId}/webhook/resend" {
            let (from, to) = ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
            return request.json(&json!({ "from": from, "to": to, "state": "WAITING" }));
        }
        endpoint.with_body(fixture, request)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_that_changes_something_is_audited_or_reports_an_event() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut doomed = doom(&world, &fixture).await;
        let socket = world.open_client_session(&fixture.app).await;
        doomed.session = socket.session_key().to_owned();
        let mut seen = BTreeSet::new();
        for endpoint in ENDPOINTS.iter().filter(|one| one.mode == Mode::Operator && one.method != "GET") {
            let name = format!("{} {}", endpoint.method, endpoint.path);
            endpoint.prepare(&world, &fixture).await;
            if endpoint.path.ends_with("/activate") {
                fixture.webhook_owner.add_pending_secret(&world).await;
            }
            let answer = world.send(doomed.request(endpoint, &fixture)).await;
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            let request_id = answer.header("x-request-id").expect("an id");
            let newest = log(&world, "size=20").await;
            let entry = newest.iter().find(|entry| entry["requestId"] == request_id);
            if REPORTED.contains(&(endpoint.method, endpoint.path)) {
                assert_eq!(entry, None, "{name} is audited");
                continue;
            }
            let entry = entry.unwrap_or_else(|| panic!("{name} is not audited"));
            assert_eq!(entry["actor"], json!({ "kind": "configured-key", "id": "configured", "name": null }));
            seen.insert(entry["action"].as_str().expect("a text").to_owned());
        }
        let all = AuditAction::ALL.iter().filter(|action| !OF_PAGES.contains(action));
        assert_eq!(seen, all.map(|action| action.name().to_owned()).collect());
    })
    .await;
}

async fn key(world: &World, name: &str, role: &str) -> (String, String) {
    let body = json!({ "name": name, "role": role });
    let made = world.operator(Request::post("/platform/v1/keys").json(&body)).await.content();
    let text = |field: &str| made[field].as_str().expect("a text").to_owned();
    (text("keyId"), text("operatorKey"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_says_who_did_what_to_what_and_without_secrets() {
    both(Setup::default(), |world| async move {
        world.application("bot").create().await;
        let (key_id, secret) = key(&world, "지원팀", "write").await;
        let disabled = Request::put("/platform/v1/applications/bot/disabled").bearer(&secret);
        let answer = world.send(disabled).await;
        let listed = world.operator(Request::get(LOG)).await;
        assert!(!listed.text().contains(&secret));
        let entry = &listed.content()["data"][0];
        let id = entry["entryId"].as_str().expect("an id");
        assert!(id.starts_with(&format!("{:012x}", world.now_ms())), "{id}");
        let expected = json!({
            "entryId": id,
            "createdDate": entry["createdDate"],
            "actor": { "kind": "operator-key", "id": key_id, "name": "지원팀" },
            "action": "application.disable",
            "subject": { "kind": "application", "id": "bot", "name": entry["subject"]["name"] },
            "details": {},
            "requestId": answer.header("x-request-id"),
        });
        assert_eq!(*entry, expected);
        assert!(entry["subject"]["name"].is_string());
        // A range of times: from `since` on, and before `until`.
        let at = testkit::encode(entry["createdDate"].as_str().expect("a date"));
        assert_eq!(log(&world, &format!("since={at}")).await[0]["entryId"], entry["entryId"]);
        assert!(log(&world, &format!("since={at}&until={at}")).await.is_empty());

        // The name stays when the key is revoked.
        world.operator(Request::delete(format!("/platform/v1/keys/{key_id}"))).await.content();
        let of_key = log(&world, &format!("actor={key_id}")).await;
        assert_eq!(of_key[0]["actor"]["name"], "지원팀");
        let of_subject = log(&world, &format!("subject={key_id}")).await;
        let actions: Vec<_> = of_subject.iter().map(|entry| &entry["action"]).collect();
        assert_eq!(actions, ["key.revoke", "key.add"]);
        assert_eq!(of_subject[1]["details"], json!({ "name": "지원팀", "role": "write" }));

        // What is refused and what changes nothing is not written.
        let before = log(&world, "size=100").await.len();
        let body = json!({ "name": "bot", "organizationId": "missing" });
        assert_eq!(put(&world, "/platform/v1/applications/bot", &body).await.status, 400);
        let missing = Request::delete("/platform/v1/applications/missing");
        assert_eq!(world.operator(missing).await.status, 200);
        assert_eq!(log(&world, "size=100").await.len(), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_read_by_administrators_page_by_page() {
    both(Setup::default(), |world| async move {
        world.application("bot").create().await;
        for role in ["read", "write"] {
            let (_, secret) = key(&world, "support", role).await;
            let refused = world.send(Request::get(LOG).bearer(&secret)).await;
            refused.assert_refused(403, "FORBIDDEN");
            assert_eq!(refused.header("stagedoor-reason"), Some("role-missing; role=admin"));
        }
        let switch = "/platform/v1/applications/bot/disabled";
        for _ in 0..3 {
            world.operator(Request::put(switch)).await.content();
            world.operator(Request::delete(switch)).await.content();
        }
        let mut target = format!("{LOG}?subject=bot&action=application.disable&size=2");
        let mut entries = Vec::new();
        let filtered = target.clone();
        loop {
            let page = world.operator(Request::get(&target)).await.content();
            entries.extend(page["data"].as_array().expect("a list").clone());
            let Some(next) = page["page"]["next"].as_str() else { break };
            target = format!("{filtered}&next={next}");
        }
        assert_eq!(entries.len(), 3);
        assert!(entries.iter().all(|entry| entry["action"] == "application.disable"));
        let ids: Vec<_> = entries.iter().map(|entry| entry["entryId"].as_str().expect("an id")).collect();
        assert!(ids.is_sorted_by(|newer, older| newer > older), "{ids:?}");
        let next = world.operator(Request::get(&filtered)).await.content()["page"]["next"].clone();
        for (query, field) in [
            ("action=application.paint", "action"),
            ("subject=%2F", "subject"),
            ("actor=", "actor"),
            ("size=0", "size"),
            ("since=yesterday", "since"),
            ("until=", "until"),
            (&format!("next={}", next.as_str().expect("a cursor")), "next"),
        ] {
            let refused = world.operator(Request::get(format!("{LOG}?{query}"))).await;
            assert_eq!(refused.status, 400, "{query}");
            assert!(refused.text().contains(field), "{query}: {}", refused.text());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_kept_for_400_days() {
    both(Setup::default(), |world| async move {
        world.application("bot").create().await;
        assert_eq!(log(&world, "subject=bot").await.len(), 1);
        world.advance(Duration::from_secs(400 * 24 * 3_600));
        patiently("the entry is swept", async {
            while !log(&world, "subject=bot").await.is_empty() {
                world.advance(Duration::from_secs(60));
                tokio::task::yield_now().await;
            }
        })
        .await;
    })
    .await;
}
