//! Attacks on each page and each form: without a proof, with that of another page or browser, with the ids of
//! others, with hostile names and fields, with addresses of other hosts. A new route fails the first test
//! until it is in the table.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Browser, Form, Page, Request, Setup, Socket, World, both};

use self::Reader::{Anybody, Operator, Owner, Person};
use super::developers::{address, form, pressed, register, with};
use super::{assert_guarded, proven, signed_in};
use crate::fixture::Fixture;

/// Who may open a page or post a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Also people who are not signed in.
    Anybody,
    /// Each signed-in person, for what is the person's own. Ids of others change nothing.
    Person,
    /// The person to whom the ids of the path belong. For others they do not exist.
    Owner,
    /// People with an operator role. For others the page does not exist.
    Operator,
}

/// Every route of the pages: method, path, reader.
pub(super) const TABLE: &[(&str, &str, Reader)] = &[
    ("GET", "/", Anybody),
    ("GET", "/sign-in", Anybody),
    ("POST", "/sign-in", Anybody),
    ("POST", "/sign-out", Anybody),
    ("GET", "/sign-in/code", Anybody),
    ("POST", "/sign-in/code", Anybody),
    ("POST", "/sign-in/upstream/{name}", Anybody),
    ("GET", "/sign-in/upstream/{name}/callback", Anybody),
    ("POST", "/sign-in/upstream/{name}/account", Anybody),
    ("GET", "/register", Anybody),
    ("POST", "/register", Anybody),
    ("GET", "/reset-password", Anybody),
    ("POST", "/reset-password", Anybody),
    ("POST", "/account/upstream/{name}/link", Person),
    ("POST", "/account/confirm/{name}", Person),
    ("POST", "/account/email/link", Person),
    ("GET", "/account/email/proof", Anybody),
    ("POST", "/account/email/proof", Anybody),
    ("GET", "/account/after-reset", Person),
    ("POST", "/account/upstream/{name}/unlink", Person),
    ("GET", "/account", Person),
    ("GET", "/account/email", Person),
    ("POST", "/account/email", Person),
    ("GET", "/account/password", Person),
    ("POST", "/account/password", Person),
    ("GET", "/account/delete", Person),
    ("POST", "/account/delete", Person),
    ("GET", "/account/two-factor", Person),
    ("POST", "/account/two-factor/begin", Person),
    ("POST", "/account/two-factor/confirm", Person),
    ("POST", "/account/two-factor/codes", Person),
    ("POST", "/account/two-factor/off", Person),
    ("GET", "/account/apps", Person),
    ("GET", "/account/apps/{clientId}", Owner),
    ("POST", "/account/apps/{clientId}", Person),
    ("GET", "/account/sessions", Person),
    ("POST", "/account/sessions", Person),
    ("POST", "/account/sessions/{sessionId}", Owner),
    ("GET", "/developers", Person),
    ("GET", "/developers/find", Person),
    ("GET", "/developers/register", Person),
    ("POST", "/developers/register", Person),
    ("GET", "/developers/applications/{clientId}", Owner),
    ("GET", "/developers/applications/{clientId}/history", Owner),
    ("GET", "/developers/applications/{clientId}/settings", Owner),
    ("POST", "/developers/applications/{clientId}/settings", Owner),
    ("POST", "/developers/applications/{clientId}/logo", Owner),
    ("GET", "/developers/applications/{clientId}/scopes", Owner),
    ("POST", "/developers/applications/{clientId}/scopes", Owner),
    ("POST", "/developers/applications/{clientId}/drops", Owner),
    ("POST", "/developers/applications/{clientId}/requests/{requestId}", Owner),
    ("GET", "/developers/applications/{clientId}/secrets", Owner),
    ("POST", "/developers/applications/{clientId}/secrets", Owner),
    ("GET", "/developers/applications/{clientId}/secrets/{secretId}", Owner),
    ("POST", "/developers/applications/{clientId}/secrets/{secretId}", Owner),
    ("GET", "/developers/applications/{clientId}/leak", Owner),
    ("POST", "/developers/applications/{clientId}/leak", Owner),
    ("GET", "/developers/applications/{clientId}/usage", Owner),
    ("GET", "/developers/applications/{clientId}/sessions", Owner),
    ("GET", "/developers/applications/{clientId}/sessions/{sessionKey}", Owner),
    ("POST", "/developers/applications/{clientId}/sessions/{sessionKey}", Owner),
    ("GET", "/developers/applications/{clientId}/webhook", Owner),
    ("POST", "/developers/applications/{clientId}/webhook", Owner),
    ("POST", "/developers/applications/{clientId}/webhook/test", Owner),
    ("GET", "/developers/applications/{clientId}/webhook/removal", Owner),
    ("POST", "/developers/applications/{clientId}/webhook/removal", Owner),
    ("POST", "/developers/applications/{clientId}/webhook/secrets", Owner),
    ("POST", "/developers/applications/{clientId}/webhook/secrets/{secretId}", Owner),
    ("GET", "/developers/applications/{clientId}/webhook/deliveries", Owner),
    ("POST", "/developers/applications/{clientId}/webhook/deliveries", Owner),
    ("GET", "/developers/applications/{clientId}/webhook/deliveries/{messageId}", Owner),
    ("POST", "/developers/applications/{clientId}/webhook/deliveries/{messageId}", Owner),
    ("GET", "/developers/applications/{clientId}/connection", Owner),
    ("POST", "/developers/applications/{clientId}/connection", Owner),
    ("GET", "/developers/applications/{clientId}/manage", Owner),
    ("POST", "/developers/applications/{clientId}/disabled", Owner),
    ("POST", "/developers/applications/{clientId}/owner", Owner),
    ("POST", "/developers/applications/{clientId}/offer", Owner),
    ("POST", "/developers/applications/{clientId}/deleted", Owner),
    ("POST", "/developers/offers/{clientId}", Owner),
    ("GET", "/developers/new-organization", Person),
    ("POST", "/developers/new-organization", Person),
    ("GET", "/developers/organizations/{organizationId}", Owner),
    ("GET", "/developers/organizations/{organizationId}/history", Owner),
    ("POST", "/developers/organizations/{organizationId}", Owner),
    ("POST", "/developers/organizations/{organizationId}/verification", Owner),
    ("POST", "/developers/organizations/{organizationId}/requests/{requestId}", Owner),
    ("POST", "/developers/organizations/{organizationId}/invitations", Owner),
    ("POST", "/developers/organizations/{organizationId}/invitation", Owner),
    ("POST", "/developers/organizations/{organizationId}/members/{channelId}", Owner),
    ("POST", "/developers/invitations", Person),
    ("GET", "/operator", Operator),
    ("GET", "/operator/requests", Operator),
    ("GET", "/operator/requests/{requestId}", Operator),
    ("POST", "/operator/requests/{requestId}", Operator),
    ("GET", "/operator/applications", Operator),
    ("GET", "/operator/applications/{clientId}", Operator),
    ("POST", "/operator/applications/{clientId}", Operator),
    ("GET", "/operator/applications/{clientId}/secrets/{secretId}", Operator),
    ("POST", "/operator/applications/{clientId}/secrets/{secretId}", Operator),
    ("GET", "/operator/people", Operator),
    ("GET", "/operator/people/{channelId}", Operator),
    ("POST", "/operator/people/{channelId}", Operator),
    ("POST", "/operator/people/{channelId}/role", Operator),
    ("GET", "/operator/organizations", Operator),
    ("GET", "/operator/organizations/{organizationId}", Operator),
    ("POST", "/operator/organizations/{organizationId}", Operator),
    ("GET", "/operator/webhooks", Operator),
    ("GET", "/operator/webhooks/{clientId}", Operator),
    ("POST", "/operator/webhooks/{clientId}", Operator),
    ("GET", "/operator/keys", Operator),
    ("POST", "/operator/keys", Operator),
    ("GET", "/operator/keys/{keyId}", Operator),
    ("POST", "/operator/keys/{keyId}", Operator),
    ("GET", "/operator/audit", Operator),
    ("GET", "/studio", Person),
    ("GET", "/studio/chat", Person),
    ("POST", "/studio/chat", Person),
    ("GET", "/studio/chat/messages", Person),
    ("GET", "/studio/broadcast", Person),
    ("POST", "/studio/broadcast", Person),
    ("POST", "/studio/broadcast/category", Person),
    ("GET", "/studio/chat-settings", Person),
    ("POST", "/studio/chat-settings", Person),
    ("GET", "/studio/restrictions", Person),
    ("POST", "/studio/restrictions", Person),
    ("POST", "/studio/restrictions/lift", Person),
    ("GET", "/studio/managers", Person),
    ("POST", "/studio/managers", Person),
    ("POST", "/studio/managers/remove", Person),
    ("GET", "/studio/people", Person),
    ("GET", "/studio/followers", Person),
    ("GET", "/studio/subscribers", Person),
    ("GET", "/studio/stream-key", Person),
    ("POST", "/studio/stream-key", Person),
    ("POST", "/studio/stream-key/replace", Person),
    ("GET", "/studio/channels", Person),
    ("GET", "/studio/channels/{channelId}", Owner),
    ("GET", "/studio/channels/{channelId}/chat", Owner),
    ("POST", "/studio/channels/{channelId}/chat", Owner),
    ("GET", "/studio/channels/{channelId}/chat/messages", Owner),
    ("GET", "/studio/channels/{channelId}/broadcast", Owner),
    ("POST", "/studio/channels/{channelId}/broadcast", Owner),
    ("POST", "/studio/channels/{channelId}/broadcast/category", Owner),
    ("GET", "/studio/channels/{channelId}/chat-settings", Owner),
    ("POST", "/studio/channels/{channelId}/chat-settings", Owner),
    ("GET", "/studio/channels/{channelId}/restrictions", Owner),
    ("POST", "/studio/channels/{channelId}/restrictions", Owner),
    ("POST", "/studio/channels/{channelId}/restrictions/lift", Owner),
    ("GET", "/studio/channels/{channelId}/followers", Owner),
    ("GET", "/studio/channels/{channelId}/subscribers", Owner),
];

/// The pages of an application's webhook.
const OF_WEBHOOK: &str = "/developers/applications/{clientId}/webhook";
/// A name that would run a script, if a page took it for HTML.
const NAME: &str = "<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";
/// The same as what a person types.
const TYPED: &str = "<script>alert(3)</script>\"'<img src=y onerror=alert(4)>";
/// Another host, as browsers read it.
const ELSEWHERE: &str = "//evil.example/";

/// A person `haneul` to whom everything belongs, with the role of an operator, and a stranger.
pub(super) struct Scene {
    pub(super) owner: Browser,
    stranger: Browser,
    /// The address of the page where the owner lets an application in.
    pub(super) consent: String,
    /// What stands in place of a placeholder, for paths that begin so. The longest beginning counts.
    ids: Vec<(&'static str, &'static str, String)>,
    /// A session of the owner's application, which stays connected.
    _socket: Socket,
}

fn last_part(location: &str) -> String {
    location.rsplit('/').next().expect("an id").to_owned()
}

async fn put(world: &World, path: &str, body: Value) {
    world.operator(Request::put(path).json(&body)).await.content();
}

impl Scene {
    pub(super) async fn set_up(world: &World, name: &str) -> Self {
        let Fixture { app: bot, streamer, review_request_id, webhook_owner, .. } =
            Fixture::set_up(world).await;
        let redirect = testkit::encode(&bot.redirect_uri);
        let consent = format!("/account-interlock?clientId={}&redirectUri={redirect}&state=s", bot.client_id);
        let member = "/platform/v1/organizations/webhook-owner/members/haneul";
        put(world, member, json!({ "role": "admin" })).await;
        let mut owner = signed_in(world, &streamer).await;
        let friend = world.person("friend").name(&format!("친구 {name}")).create().await;
        let stranger = world.person("stranger").create().await;
        let app = register(&mut owner, &format!("앱 {name}"), "").await;
        let scopes = address(&app, "/scopes");
        let mut ask = with(form(&owner.open(&scopes).await, &scopes), "message", name);
        ask.fields.push(("scopes".to_owned(), "chat-read".to_owned()));
        owner.submit(&ask).await.location();
        let make = form(&owner.open("/developers/new-organization").await, "/developers/new-organization");
        let organization = owner.submit(&with(make, "organizationName", &format!("조직 {name}"))).await;
        let organization = last_part(organization.location());
        let path = format!("/developers/organizations/{organization}");
        let verify = form(&owner.open(&path).await, &format!("{path}/verification"));
        owner.submit(&with(verify, "message", name)).await.location();
        let invite = form(&owner.open(&path).await, &format!("{path}/invitations"));
        owner.submit(&with(with(invite, "login", name), "role", "viewer")).await.location();
        let (mine, theirs) = Self::give_and_take(world, &mut owner, &friend, name).await;
        Self::talk(world, name).await;
        let key = json!({ "name": name, "role": "read" });
        let key = world.operator(Request::post("/platform/v1/keys").json(&key)).await.content();
        put(world, "/platform/v1/channels/haneul/operator-role", json!({ "role": "admin" })).await;

        let requests = world.operator(Request::get("/platform/v1/review-requests")).await.content();
        let request = |key: &str, id: &str| {
            let requests = requests["data"].as_array().expect("a list").iter();
            let mut of = requests.filter(|request| request[key] == id);
            of.next().and_then(|request| request["requestId"].as_str()).expect("a request").to_owned()
        };
        let secrets = owner.open(&address(&app, "/secrets")).await;
        let secret = secrets.response.text().split("/secrets/").nth(1).expect("a secret");
        let secret = secret.split('"').next().expect("an end").to_owned();
        let socket = world.open_client_session(&app).await;
        let session = Self::other_session(world, &mut owner, &streamer).await;
        let ids = vec![
            ("/account/apps", "{clientId}", "bot".to_owned()),
            ("/account/sessions", "{sessionId}", session),
            ("/developers/applications", "{clientId}", app.client_id.clone()),
            ("/developers/applications", "{requestId}", request("clientId", &app.client_id)),
            ("/developers/applications", "{secretId}", secret.clone()),
            ("/operator/applications", "{secretId}", secret),
            ("/developers/applications", "{sessionKey}", socket.session_key().to_owned()),
            (OF_WEBHOOK, "{clientId}", "webhook-owner".to_owned()),
            (OF_WEBHOOK, "{secretId}", webhook_owner.secret_id.clone()),
            (OF_WEBHOOK, "{messageId}", webhook_owner.message_id.clone()),
            ("/developers/offers", "{clientId}", theirs),
            ("/developers/organizations", "{organizationId}", organization.clone()),
            ("/developers/organizations", "{requestId}", request("organizationId", &organization)),
            ("/developers/organizations", "{channelId}", "haneul".to_owned()),
            ("/developers/organizations/{organizationId}/invitation", "{organizationId}", mine),
            ("/operator/webhooks", "{clientId}", "webhook-owner".to_owned()),
            ("/operator", "{clientId}", app.client_id.clone()),
            ("/operator", "{requestId}", review_request_id),
            ("/operator", "{channelId}", "friend".to_owned()),
            ("/operator", "{organizationId}", organization),
            ("/operator", "{keyId}", key["keyId"].as_str().expect("an id").to_owned()),
            ("/studio/channels", "{channelId}", "friend".to_owned()),
            ("/", "{name}", "unknown".to_owned()),
        ];
        Self { owner, stranger: signed_in(world, &stranger).await, consent, ids, _socket: socket }
    }

    /// The friend invites the owner and offers an application. The answer has the ids of both.
    async fn give_and_take(
        world: &World,
        owner: &mut Browser,
        friend: &testkit::Person,
        name: &str,
    ) -> (String, String) {
        let mut friends = signed_in(world, friend).await;
        let make = form(&friends.open("/developers/new-organization").await, "/developers/new-organization");
        let path = friends.submit(&with(make, "organizationName", &format!("모임 {name}"))).await;
        let path = path.location().to_owned();
        let invite = form(&friends.open(&path).await, &format!("{path}/invitations"));
        friends.submit(&with(with(invite, "login", "haneul@login"), "role", "viewer")).await.location();
        let app = register(&mut friends, &format!("선물 {name}"), "").await;
        let offer = form(&friends.open(&address(&app, "/manage")).await, &address(&app, "/offer"));
        friends.submit(&with(offer, "login", "haneul@login")).await.location();
        let page = owner.open("/developers").await;
        pressed(&page, &format!("/developers/offers/{}", app.client_id), "answer", "accept");
        (last_part(&path), app.client_id)
    }

    /// Names and texts of others on the pages of the studio.
    async fn talk(world: &World, name: &str) {
        let named = json!({ "channelName": format!("사람 {name}") });
        put(world, "/platform/v1/channels/byeol", named.clone()).await;
        put(world, "/platform/v1/channels/haneul", named).await;
        world.say("haneul", "byeol", name).await.content();
        world.say("friend", "byeol", name).await.content();
        put(world, "/platform/v1/channels/haneul/followers/byeol", json!({})).await;
        let role = json!({ "userRole": "STREAMING_CHANNEL_MANAGER" });
        put(world, "/platform/v1/channels/haneul/managers/byeol", role.clone()).await;
        put(world, "/platform/v1/channels/friend/managers/haneul", role).await;
        world.category("hostile", name).await;
    }

    /// The id of another sign-in of the owner.
    async fn other_session(world: &World, owner: &mut Browser, streamer: &testkit::Person) -> String {
        signed_in(world, streamer).await;
        let page = owner.open("/account/sessions").await;
        let other = page.forms.iter().find(|form| form.action.starts_with("/account/sessions/"));
        last_part(&other.expect("another sign-in").action)
    }

    /// The path with ids.
    fn address(&self, path: &str) -> String {
        let mut filled = path.to_owned();
        while let Some(at) = filled.find('{') {
            let name = &filled[at..=at + filled[at..].find('}').expect("an end")];
            let fits = self.ids.iter().filter(|(begin, of, _)| *of == name && path.starts_with(begin));
            let (.., id) =
                fits.max_by_key(|(begin, ..)| begin.len()).unwrap_or_else(|| panic!("no {name} of {path}"));
            filled = filled.replacen(name, id, 1);
        }
        filled
    }

    pub(super) fn rows(&self, method: &str) -> impl Iterator<Item = (String, Reader)> {
        let rows = TABLE.iter().filter(move |row| row.0 == method);
        rows.map(|(_, path, reader)| (self.address(path), *reader))
    }
}

/// An empty form of this address, without a proof.
fn empty(path: &str) -> Form {
    Form { action: path.to_owned(), method: "post".to_owned(), ..Form::default() }
}

async fn get(browser: &mut Browser, path: &str) -> Page {
    browser.send(Request::get(path).header("Accept", "text/html")).await
}

fn is_html(page: &Page) -> bool {
    page.response.header("content-type").is_some_and(|kind| kind.starts_with("text/html"))
}

#[test]
fn every_route_is_in_the_table() {
    let known: BTreeSet<_> = TABLE.iter().map(|(method, path, _)| (*path, *method)).collect();
    let routes: BTreeSet<_> = site::paths().into_iter().collect();
    assert_eq!(known.len(), TABLE.len(), "a row is there twice");
    let missing: Vec<_> = routes.difference(&known).collect();
    let gone: Vec<_> = known.difference(&routes).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not in TABLE: {missing:?}; no routes: {gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_framed_by_its_headers_and_is_its_readers_alone() {
    both(Setup { reviews_scopes: true, ..Setup::default() }, |world| async move {
        let mut scene = Scene::set_up(&world, "이름").await;
        let rows: Vec<_> = scene.rows("GET").collect();
        for (path, reader) in &rows {
            let page = get(&mut scene.owner, path).await;
            let first = get(&mut world.browser(), path).await;
            for page in [&page, &first] {
                if is_html(page) {
                    assert_guarded(page);
                }
            }
            if *reader == Anybody {
                assert!(page.response.status < 500, "{path}");
                continue;
            }
            assert_eq!(page.response.status, 200, "{path}");
            assert!(first.location().starts_with("/sign-in?next=%2F"), "{path}");
            let others = get(&mut scene.stranger, path).await;
            let expected = if *reader == Person { 200 } else { 404 };
            assert_eq!(others.response.status, expected, "{path}");
            assert_guarded(&others);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_needs_the_proof_of_its_page_and_browser_and_its_reader() {
    both(Setup { reviews_scopes: true, ..Setup::default() }, |world| async move {
        let mut scene = Scene::set_up(&world, "이름").await;
        let mut signed_out = world.browser();
        signed_out.open("/sign-in").await;
        let rows: Vec<_> = scene.rows("POST").collect();
        for (path, reader) in &rows {
            let form = empty(path);
            let elsewhere = proven(&scene.owner, empty("/elsewhere"));
            for (mut browser, form) in [
                (scene.owner.clone(), form.clone()),
                (scene.owner.clone(), with(form.clone(), "csrf", "x")),
                (scene.owner.clone(), Form { action: path.clone(), ..elsewhere }),
                (scene.owner.clone(), proven(&signed_out, form.clone())),
                (world.browser(), proven(&signed_out, form.clone())),
            ] {
                let refused = browser.submit(&form).await;
                assert_eq!(refused.response.status, 400, "{path}: {}", refused.response.text());
                assert_guarded(&refused);
            }
            if *reader == Anybody {
                continue;
            }
            let first = signed_out.submit(&proven(&signed_out.clone(), form.clone())).await;
            assert_eq!(first.location(), "/sign-in", "{path}");
            if *reader != Person || path.contains("/bot") {
                let form = proven(&scene.stranger, with(form, "answer", "accept"));
                let others = scene.stranger.submit(&form).await;
                let expected = if *reader == Person { 303 } else { 404 };
                assert_eq!(others.response.status, expected, "{path}");
            }
        }
        // Nothing has changed: each page is still there.
        for (path, reader) in scene.rows("GET").collect::<Vec<_>>() {
            let status = get(&mut scene.owner, &path).await.response.status;
            assert!(status == 200 || reader == Anybody, "{path}");
        }
    })
    .await;
}

#[allow(clippy::disallowed_methods, reason = "a stranger measures in real time")]
fn now() -> Instant {
    Instant::now()
}

#[track_caller]
fn assert_harmless(page: &Page, path: &str) {
    let html = page.response.text();
    for raw in ["<script>", "<img src=x", "<img src=y", "href=\"//", "action=\"//", "javascript:"] {
        assert!(!html.contains(raw), "{raw} on {path}: {html}");
    }
    let location = page.response.header("location").unwrap_or("/");
    assert!(location.starts_with('/') && !location.starts_with("//"), "{path} leads to {location}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_fields_are_text_on_every_page_and_no_address_leads_elsewhere() {
    both(Setup { reviews_scopes: true, ..Setup::default() }, |world| async move {
        let mut scene = Scene::set_up(&world, NAME).await;
        let mut shown = 0;
        for (path, _) in scene.rows("GET").collect::<Vec<_>>() {
            for lang in ["ko", "en"] {
                scene.owner.accept_language = Some(lang.to_owned());
                let page = get(&mut scene.owner, &path).await;
                assert_harmless(&page, &path);
                shown += page.response.text().matches("&#60;script&#62;alert(1)").count();
            }
            let hostile = testkit::encode(NAME);
            for parameter in ["q", "id", "next", "sort", "page", "subject", "state", "by", "since", "error"] {
                for value in [hostile.as_str(), &testkit::encode(ELSEWHERE)] {
                    let target = format!("{path}?{parameter}={value}");
                    assert_harmless(&get(&mut scene.owner, &target).await, &target);
                }
            }
            // Each form with hostile values, hidden ones included.
            for form in get(&mut scene.owner, &path).await.forms {
                if form.method != "post" || form.fields.iter().all(|(name, _)| name == "csrf") {
                    continue;
                }
                for value in [TYPED, ELSEWHERE] {
                    let mut form = form.clone();
                    for (_, old) in form.fields.iter_mut().filter(|(name, _)| name != "csrf") {
                        value.clone_into(old);
                    }
                    for area in ["message", "redirectUris"] {
                        form = with(form, area, value);
                    }
                    assert_harmless(&scene.owner.submit(&form).await, &form.action);
                }
            }
        }
        assert!(shown > 40, "the names are on the pages: {shown}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_account_are_answered_alike_and_in_like_time() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let mut fastest = Vec::new();
        let mut answers = Vec::new();
        for login in ["haneul@login", "nobody@login"] {
            let mut browser = world.browser();
            let form = browser.open("/sign-in").await.form("login");
            let form = form.fill("login", login).fill("password", "wrong password");
            let mut times = Vec::new();
            for _ in 0..5 {
                let began = now();
                let page = browser.submit(&form).await;
                times.push(began.elapsed());
                let (_, main) = page.response.text().split_once("<main").expect("a page");
                let csrf = page.form("login").field("csrf").expect("a proof").to_owned();
                answers.push((page.response.status, main.replace(login, "").replace(&csrf, "")));
            }
            fastest.push(times.into_iter().min().expect("some"));
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        let (known, unknown) = (fastest[0].max(Duration::from_millis(1)), fastest[1]);
        assert!(unknown * 4 > known && known * 4 > unknown, "{known:?} and {unknown:?}");
    })
    .await;
}
