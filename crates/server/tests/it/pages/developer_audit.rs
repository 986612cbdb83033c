//! Each form of the developer center writes an entry of the audit log in the name of who posted it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::{Browser, Form, Receiver, Request, Setup, World, both, patiently};

use super::attacks::TABLE;
use super::{proven, signed_in};

/// Forms that change nothing: the connection test, and the dead messages while none is dead.
const WITHOUT_ENTRY: [&str; 2] = [
    "/developers/applications/{clientId}/connection",
    "/developers/applications/{clientId}/webhook/deliveries",
];

/// Posts forms one after the other, and notes their paths.
struct Walk {
    world: World,
    posted: BTreeSet<&'static str>,
}

impl Walk {
    async fn entries(&self, actor: &str) -> Vec<Value> {
        let path = format!("/platform/v1/audit-log?size=100&actor={actor}");
        let content = self.world.operator(Request::get(path)).await.content();
        content["data"].as_array().expect("a list").clone()
    }

    /// Posts a form to a path with these ids in place of its braces, and expects one more entry.
    async fn post(
        &mut self,
        (actor, browser): (&str, &mut Browser),
        (path, ids): (&'static str, &[&str]),
        fields: &[(&str, &str)],
        action: &str,
    ) {
        let before = self.entries(actor).await;
        let parts = path.split(['{', '}']).enumerate();
        let filled: String = parts.map(|(at, part)| if at % 2 == 1 { ids[at / 2] } else { part }).collect();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let form = Form {
            action: filled.clone(),
            method: "post".to_owned(),
            fields: fields.iter().map(owned).collect(),
            buttons: Vec::new(),
        };
        let mut page = browser.submit(&proven(browser, form)).await;
        if page.forms.iter().any(|form| form.field("sure").is_some()) {
            page = browser.submit(&page.form("sure")).await;
        }
        let html = page.response.text();
        assert!([200, 303].contains(&page.response.status), "{filled}: {html}");
        let after = self.entries(actor).await;
        // The subject has its name of today, so an entry is known by its id.
        let known: BTreeSet<_> = before.iter().map(|entry| entry["entryId"].to_string()).collect();
        let new: Vec<_> =
            after.iter().filter(|entry| !known.contains(&entry["entryId"].to_string())).collect();
        assert_eq!(new.len(), 1, "{filled}: {new:?} {html}");
        assert_eq!(new[0]["action"], action, "{filled}");
        assert_eq!(new[0]["actor"]["kind"], "person");
        self.posted.insert(path);
    }

    async fn first(&self, path: &str, id: &str) -> String {
        let content = self.world.operator(Request::get(path)).await.content();
        content["data"][0][id].as_str().unwrap_or_else(|| panic!("{path}: {content}")).to_owned()
    }
}

const APP: &str = "/developers/applications/{clientId}";
const ORGANIZATION: &str = "/developers/organizations/{organizationId}";

#[tokio::test(flavor = "multi_thread")]
async fn each_form_of_the_developer_center_writes_an_entry() {
    both(Setup::default(), |world| async move {
        let (dev, mina) = (world.person("dev").create().await, world.person("mina").create().await);
        let (mut owner, mut other) = (signed_in(&world, &dev).await, signed_in(&world, &mina).await);
        let mut walk = Walk { world, posted: BTreeSet::new() };
        of_organizations(&mut walk, &mut owner, &mut other, &mina.login).await;
        of_applications(&mut walk, &mut owner).await;
        of_webhooks(&mut walk, &mut owner).await;
        fate(&mut walk, &mut owner, &mut other, &mina.login).await;
        let forms =
            TABLE.iter().filter(|(method, path, _)| *method == "POST" && path.starts_with("/developers"));
        let forms: BTreeSet<_> = forms.map(|(_, path, _)| *path).collect();
        walk.posted.extend(WITHOUT_ENTRY);
        assert_eq!(walk.posted, forms);
    })
    .await;
}

/// Ends with the verified organization `games`, in which `mina` is a developer.
async fn of_organizations(walk: &mut Walk, owner: &mut Browser, other: &mut Browser, login: &str) {
    let name = [("organizationName", "게임즈")];
    walk.post(("dev", owner), ("/developers/new-organization", &[]), &name, "organization.put").await;
    let made = walk.first("/platform/v1/organizations", "organizationId").await;
    walk.post(
        ("dev", owner),
        (ORGANIZATION, &[&made]),
        &[("organizationName", "새 이름")],
        "organization.put",
    )
    .await;
    let asked = "/developers/organizations/{organizationId}/verification";
    walk.post(("dev", owner), (asked, &[&made]), &[("message", "부탁합니다.")], "review.add").await;
    let request = walk.first("/platform/v1/review-requests", "requestId").await;
    let withdrawn = "/developers/organizations/{organizationId}/requests/{requestId}";
    walk.post(("dev", owner), (withdrawn, &[&made, &request]), &[], "review.withdraw").await;

    let invited = "/developers/organizations/{organizationId}/invitations";
    let invitation = [("login", login), ("role", "developer")];
    let answered = "/developers/organizations/{organizationId}/invitation";
    walk.post(("dev", owner), (invited, &[&made]), &invitation, "member.invite").await;
    walk.post(("mina", other), (answered, &[&made]), &[("answer", "decline")], "member.decline").await;
    walk.post(("dev", owner), (invited, &[&made]), &invitation, "member.invite").await;
    walk.post(("mina", other), ("/developers/invitations", &[]), &[], "member.decline").await;
    walk.post(("dev", owner), (invited, &[&made]), &invitation, "member.invite").await;
    walk.post(("mina", other), (answered, &[&made]), &[("answer", "accept")], "member.join").await;
    let member = "/developers/organizations/{organizationId}/members/{channelId}";
    walk.post(("dev", owner), (member, &[&made, "mina"]), &[("role", "viewer")], "member.put").await;
    walk.post(("dev", owner), (member, &[&made, "mina"]), &[("remove", "yes")], "member.delete").await;

    let games = "/platform/v1/organizations/games";
    let body = json!({ "organizationName": "인증된 곳", "verified": true });
    walk.world.operator(Request::put(games).json(&body)).await.content();
    for (person, role) in [("dev", "admin"), ("mina", "developer")] {
        let member = Request::put(format!("{games}/members/{person}")).json(&json!({ "role": role }));
        walk.world.operator(member).await.content();
    }
}

async fn app_id(walk: &Walk) -> String {
    let content = walk.world.operator(Request::get("/platform/v1/applications")).await.content();
    content["data"][0]["clientId"].as_str().expect("an id").to_owned()
}

async fn of_applications(walk: &mut Walk, owner: &mut Browser) {
    let new = [
        ("name", "봇"),
        ("redirectUris", "http://127.0.0.1:9/callback"),
        ("homepageUrl", ""),
        ("organizationId", "games"),
    ];
    walk.post(("dev", owner), ("/developers/register", &[]), &new, "application.put").await;
    let id = app_id(walk).await;
    let settings = "/developers/applications/{clientId}/settings";
    let changed = [("name", "새 봇"), ("redirectUris", "http://127.0.0.1:8/other"), ("profile", "")];
    walk.post(("dev", owner), (settings, &[&id]), &changed, "application.put").await;
    let details = walk.entries("dev").await.swap_remove(0)["details"].take();
    let expected = json!({ "name": "새 봇", "changed": ["name"],
        "addedRedirectUris": ["http://127.0.0.1:8/other"],
        "removedRedirectUris": ["http://127.0.0.1:9/callback"] });
    assert_eq!(details, expected);
    let logo = "/developers/applications/{clientId}/logo";
    walk.post(("dev", owner), (logo, &[&id]), &[("remove", "yes")], "application.put").await;
    let scopes = "/developers/applications/{clientId}/scopes";
    walk.post(("dev", owner), (scopes, &[&id]), &[("scopes", "user-read")], "application.scopes").await;
    let drops = "/developers/applications/{clientId}/drops";
    walk.post(("dev", owner), (drops, &[&id]), &[("message", "부탁합니다.")], "review.add").await;
    let request = walk.first("/platform/v1/review-requests?state=pending", "requestId").await;
    let withdrawn = "/developers/applications/{clientId}/requests/{requestId}";
    walk.post(("dev", owner), (withdrawn, &[&id, &request]), &[], "review.withdraw").await;
    // Only with this permission a webhook takes a test message.
    walk.post(("dev", owner), (drops, &[&id]), &[("message", "부탁합니다.")], "review.add").await;
    let request = walk.first("/platform/v1/review-requests?state=pending", "requestId").await;
    let approve = Request::put(format!("/platform/v1/review-requests/{request}"));
    walk.world.operator(approve.json(&json!({ "decision": "approve" }))).await.content();
    let secrets = "/developers/applications/{clientId}/secrets";
    walk.post(("dev", owner), (secrets, &[&id]), &[("make", "yes")], "secret.add").await;
    let secret = walk.first(&format!("/platform/v1/applications/{id}/secrets"), "secretId").await;
    let one = "/developers/applications/{clientId}/secrets/{secretId}";
    walk.post(("dev", owner), (one, &[&id, &secret]), &[("expires", "now")], "secret.delete").await;

    let key = Request::post(format!("/platform/v1/applications/{id}/secrets"));
    let key = walk.world.operator(key).await.content();
    let app = testkit::Application {
        client_id: id.clone(),
        client_secret: key["clientSecret"].as_str().expect("a secret").to_owned(),
        redirect_uri: "http://127.0.0.1:9/callback".to_owned(),
    };
    let socket = walk.world.open_client_session(&app).await;
    let session = "/developers/applications/{clientId}/sessions/{sessionKey}";
    walk.post(("dev", owner), (session, &[&id, socket.session_key()]), &[], "session.end").await;
    let leak = "/developers/applications/{clientId}/leak";
    walk.post(("dev", owner), (leak, &[&id]), &[("end", "tokens")], "tokens.end").await;
}

async fn of_webhooks(walk: &mut Walk, owner: &mut Browser) {
    let id = app_id(walk).await;
    let receiver = Receiver::start().await;
    let url = receiver.url("/hook");
    let webhook = "/developers/applications/{clientId}/webhook";
    walk.post(("dev", owner), (webhook, &[&id]), &[("url", &url)], "webhook.put").await;
    let secrets = "/developers/applications/{clientId}/webhook/secrets";
    walk.post(("dev", owner), (secrets, &[&id]), &[], "webhook-secret.add").await;
    let path = format!("/platform/v1/applications/{id}/webhook/secrets");
    let content = walk.world.operator(Request::get(path)).await.content();
    let mut listed = content["data"].as_array().expect("a list").iter();
    let secret = listed.find(|secret| secret["state"] == "PENDING").expect("a new one");
    let secret = secret["secretId"].as_str().expect("an id").to_owned();
    let one = "/developers/applications/{clientId}/webhook/secrets/{secretId}";
    walk.post(("dev", owner), (one, &[&id, &secret]), &[("action", "activate")], "webhook-secret.activate")
        .await;
    let test = "/developers/applications/{clientId}/webhook/test";
    walk.post(("dev", owner), (test, &[&id]), &[], "webhook.test").await;
    let tests = format!("/developers/applications/{id}/webhook/deliveries?show=tests");
    let message = patiently("the message is listed", async {
        loop {
            let html = owner.open(&tests).await.response.text().to_owned();
            let link = html.split("/webhook/deliveries/").nth(1).and_then(|rest| rest.split('"').next());
            if let Some(link) = link {
                break link.to_owned();
            }
        }
    })
    .await;
    let delivery = "/developers/applications/{clientId}/webhook/deliveries/{messageId}";
    walk.post(("dev", owner), (delivery, &[&id, &message]), &[], "webhook.resend").await;
    let removal = "/developers/applications/{clientId}/webhook/removal";
    walk.post(("dev", owner), (removal, &[&id]), &[], "webhook.delete").await;
}

async fn fate(walk: &mut Walk, owner: &mut Browser, other: &mut Browser, login: &str) {
    let id = app_id(walk).await;
    let owner_of = "/developers/applications/{clientId}/owner";
    walk.post(("dev", owner), (owner_of, &[&id]), &[("organizationId", "/me")], "application.hand-over")
        .await;
    let disabled = "/developers/applications/{clientId}/disabled";
    walk.post(("dev", owner), (disabled, &[&id]), &[("state", "disabled")], "application.disable").await;
    walk.post(("dev", owner), (disabled, &[&id]), &[("state", "enabled")], "application.enable").await;
    let deleted = "/developers/applications/{clientId}/deleted";
    walk.post(("dev", owner), (deleted, &[&id]), &[("name", "새 봇")], "application.delete").await;
    walk.post(("dev", owner), (deleted, &[&id]), &[("restore", "yes")], "application.restore").await;
    let offer = "/developers/applications/{clientId}/offer";
    let answered = "/developers/offers/{clientId}";
    walk.post(("dev", owner), (offer, &[&id]), &[("login", login)], "application.offer").await;
    walk.post(("mina", other), (answered, &[&id]), &[("answer", "decline")], "application.offer-decline")
        .await;
    walk.post(("dev", owner), (offer, &[&id]), &[("login", login)], "application.offer").await;
    walk.post(("mina", other), (answered, &[&id]), &[("answer", "accept")], "application.hand-over").await;
    let status = owner.send(Request::get(APP.replace("{clientId}", &id))).await.response.status;
    assert_eq!(status, 404, "it is another person's now");
}
