//! The operator pages (`/operator`): who may see them, who may change what, and what they show.

use serde_json::{Value, json};
use testkit::{Browser, Form, Page, Request, Response, Setup, World, both};

use super::{assert_guarded, assert_not_done};
use crate::fixture::Fixture;

const HOSTILE: &str = "\u{202E}<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";

async fn set_role(world: &World, role: Option<&str>) {
    let path = "/platform/v1/channels/gaon/operator-role";
    let request = match role {
        Some(role) => Request::put(path).json(&json!({ "role": role })),
        None => Request::delete(path),
    };
    world.operator(request).await.content();
}

/// The browser of a person `gaon` with this role.
async fn operator(world: &World, role: &str) -> Browser {
    let person = world.person("gaon").name("가온").create().await;
    set_role(world, Some(role)).await;
    let mut browser = world.browser();
    let form = browser.open("/sign-in").await.form("login");
    let form = form.fill("login", &person.login).fill("password", &person.password);
    browser.submit(&form).await.location();
    browser
}

/// The form on a page with this button.
#[track_caller]
fn act(page: &Page, name: &str) -> Form {
    let button = ("action".to_owned(), name.to_owned());
    let form = page.forms.iter().find(|form| form.buttons.contains(&button));
    let form = form.unwrap_or_else(|| panic!("no button {name}: {}", page.response.text()));
    form.clone().press("action", name)
}

async fn log(world: &World, query: &str) -> Vec<Value> {
    let content = world.operator(Request::get(format!("/platform/v1/audit-log?{query}"))).await.content();
    content["data"].as_array().expect("a list").clone()
}

async fn get(browser: &mut Browser, path: &str) -> Response {
    browser.send(Request::get(path).header("Accept", "text/html")).await.response
}

/// Every page, with the role that it needs.
fn pages(key_id: &str) -> Vec<(String, &'static str)> {
    let read = [
        "/operator",
        "/operator/requests",
        "/operator/requests?state=refused",
        "/operator/applications",
        "/operator/applications?state=disabled",
        "/operator/applications?state=restorable",
        "/operator/applications?q=b",
        "/operator/organizations?q=g",
        "/operator/applications/bot",
        "/operator/people",
        "/operator/people?state=barred",
        "/operator/people?q=%ED%95%98",
        "/operator/people?q=haneul",
        "/operator/people/haneul",
        "/operator/people/gaon",
        "/operator/organizations",
        "/operator/organizations/publisher",
        "/operator/webhooks",
        "/operator/webhooks/webhook-owner",
    ];
    let mut pages: Vec<_> = read.map(|path| (path.to_owned(), "read")).to_vec();
    pages.extend(["/operator/keys", "/operator/audit"].map(|path| (path.to_owned(), "admin")));
    pages.push((format!("/operator/keys/{key_id}"), "admin"));
    pages
}

async fn made_key(world: &World) -> String {
    let body = json!({ "name": "수집기", "role": "read" });
    let made = world.operator(Request::post("/platform/v1/keys").json(&body)).await.content();
    made["keyId"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_is_seen_with_its_role_and_is_missing_for_others() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let key_id = made_key(&world).await;
        let mut browser = operator(&world, "read").await;
        let first = world.browser().open("/operator").await;
        assert_eq!(first.location(), "/sign-in?next=%2Foperator");
        for role in ["read", "write", "admin"] {
            set_role(&world, Some(role)).await;
            for (path, needed) in pages(&key_id) {
                let expected = if needed == "admin" && role != "admin" { 403 } else { 200 };
                let page = get(&mut browser, &path).await;
                assert_eq!(page.status, expected, "{role} {path}");
            }
        }
        for (path, _) in pages(&key_id) {
            assert_guarded(&browser.open(&path).await);
        }
        for missing in [
            "/operator/requests/missing",
            "/operator/applications/missing",
            "/operator/people/missing",
            "/operator/organizations/missing",
            "/operator/webhooks/missing",
            "/operator/keys/missing",
            "/operator/people/%ED%95%9C",
            "/operator/nothing",
        ] {
            assert_eq!(get(&mut browser, missing).await.status, 404, "{missing}");
        }
        // Without a role the pages do not exist, from the next request on.
        assert!(get(&mut browser, "/account").await.text().contains("href=\"/operator\""));
        set_role(&world, None).await;
        assert!(!get(&mut browser, "/account").await.text().contains("/operator"));
        for (path, _) in pages(&key_id) {
            assert_eq!(get(&mut browser, &path).await.status, 404, "{path}");
        }
    })
    .await;
}

/// A form: its page, its address, its button or else its fields, and the role that it needs.
type FormCase = (String, String, Vec<(&'static str, &'static str)>, &'static str);

/// Every form.
fn forms(key_id: &str) -> Vec<FormCase> {
    let acts = |path: &str, names: &[&'static str]| {
        let form = |name: &&'static str| (path.to_owned(), path.to_owned(), vec![("action", *name)], "write");
        names.iter().map(form).collect::<Vec<_>>()
    };
    let mut forms = acts(
        "/operator/applications/spare",
        &["quota-off", "quota-on", "disable", "end-tokens", "enable", "revoke-secrets"],
    );
    forms.extend(acts("/operator/organizations/publisher", &["unverify", "verify", "disable", "enable"]));
    forms.extend(acts("/operator/webhooks/webhook-owner", &["pause", "resume", "resend"]));
    let person = ["reset-password", "remove-two-factor", "sign-out", "bar", "unbar"];
    forms.extend(acts("/operator/people/spare-person", &person));
    let typed = |path: &str, id| {
        (path.to_owned(), path.to_owned(), vec![("action", "delete"), ("confirm", id)], "write")
    };
    forms.push((
        "/operator/people/byeol".to_owned(),
        "/operator/people/byeol/role".to_owned(),
        vec![("role", "read")],
        "admin",
    ));
    forms.push(typed("/operator/people/spare-person", "spare-person"));
    forms.push(typed("/operator/applications/spare", "spare"));
    let keys = "/operator/keys".to_owned();
    forms.push((keys.clone(), keys, vec![("name", "새 키"), ("role", "read")], "admin"));
    let key = format!("/operator/keys/{key_id}");
    forms.push((key.clone(), key, vec![("action", "revoke")], "admin"));
    forms
}

#[tokio::test(flavor = "multi_thread")]
async fn each_form_needs_its_role_and_its_proof() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let key_id = made_key(&world).await;
        let mut browser = operator(&world, "admin").await;
        let mut stranger = world.browser();
        stranger.open("/sign-in").await;
        let other = browser.open("/account/email").await.form("csrf");
        let foreign = other.field("csrf").expect("a proof").to_owned();
        for (path, action, fields, needed) in forms(&key_id) {
            set_role(&world, Some("admin")).await;
            let page = browser.open(&path).await;
            let form = page.forms.iter().find(|form| form.action == action).expect("a form");
            let csrf = ("csrf".to_owned(), form.field("csrf").expect("a proof").to_owned());
            let mut form = Form { fields: vec![csrf], buttons: Vec::new(), ..form.clone() };
            form.fields.extend(fields.iter().map(|(name, value)| (name.to_string(), value.to_string())));
            let before = log(&world, "size=1&actor=gaon").await;
            for (browser, form) in [
                (&browser, form.clone().without("csrf")),
                (&browser, form.clone().fill("csrf", &foreign)),
                (&stranger, form.clone()),
            ] {
                let mut browser = browser.clone();
                assert_not_done(&browser.submit(&form).await, &action);
            }
            let lower: &[_] = if needed == "admin" { &["read", "write"] } else { &["read"] };
            for role in lower {
                set_role(&world, Some(role)).await;
                let refused = browser.submit(&form).await.response;
                assert_eq!(refused.status, 403, "{role} {action} {fields:?}");
            }
            set_role(&world, None).await;
            assert_eq!(browser.submit(&form).await.response.status, 404, "{action} {fields:?}");
            assert_eq!(log(&world, "size=1&actor=gaon").await, before, "{action} {fields:?}");
            set_role(&world, Some(needed)).await;
            let done = browser.submit(&form).await.response;
            assert!(matches!(done.status, 200 | 303), "{action} {fields:?}: {} {}", done.status, done.text());
        }
        set_role(&world, Some("admin")).await;
        let page = browser.open("/operator/applications/bot").await;
        let unknown = act(&page, "disable").fill("action", "paint");
        assert_eq!(browser.submit(&unknown).await.response.status, 400);
        let role = browser.open("/operator/people/byeol").await.form("role").fill("role", "root");
        assert_eq!(browser.submit(&role).await.response.status, 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_changes_takes_effect_and_is_in_the_audit_log() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = operator(&world, "admin").await;
        let page = browser.open("/operator/applications/bot").await;
        let done = browser.submit(&act(&page, "disable")).await;
        assert_eq!(done.location(), "/operator/applications/bot");
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        let after = browser.open("/operator/applications/bot").await;
        assert!(
            after.response.text().contains("처리했습니다.") && after.response.text().contains("사용 중지됨")
        );
        let entries = log(&world, "subject=bot&action=application.disable").await;
        assert_eq!(entries[0]["actor"], json!({ "kind": "person", "id": "gaon", "name": "가온" }));
        assert_eq!(entries[0]["requestId"].as_str(), done.response.header("x-request-id"));
        browser.submit(&act(&after, "enable")).await.location();
        world.me(&tokens.access).await.content();
        let page = browser.open("/operator/applications/bot").await;
        browser.submit(&act(&page, "quota-off")).await.location();
        let shown = world.operator(Request::get("/platform/v1/applications/bot")).await.content();
        assert_eq!(shown["quota"], false);

        // A link to a new password is shown once, and works.
        let page = browser.open("/operator/people/haneul").await;
        let issued = browser.submit(&act(&page, "reset-password")).await;
        assert_eq!(issued.response.status, 200);
        let html = issued.response.text();
        let link = html.split('"').find(|part| part.contains("/reset-password?token=")).expect("a link");
        let target = &link[link.find("/reset-password").expect("a path")..];
        assert_eq!(world.browser().open(target).await.response.status, 200);
        assert!(!browser.open("/operator/people/haneul").await.response.text().contains("?token="));

        // What cannot be taken back has to be typed.
        let page = browser.open("/operator/people/haneul").await;
        let wrong = browser.submit(&act(&page, "delete").fill("confirm", "haneul ")).await;
        assert_eq!(wrong.response.status, 422);
        assert!(wrong.response.text().contains("입력한 값이 다릅니다."));
        world.me(&tokens.access).await.content();
        let gone = browser.submit(&act(&page, "delete").fill("confirm", &streamer.channel_id)).await;
        assert_eq!(gone.location(), "/operator/people");
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");

        let page = browser.open("/operator/audit?subject=haneul").await;
        let html = page.response.text();
        assert!(
            html.contains("채널을 삭제했습니다") && html.contains("비밀번호 재설정 링크를 발급했습니다"),
            "{html}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_revoked() {
    both(Setup::default(), |world| async move {
        let mut browser = operator(&world, "admin").await;
        let form = browser.open("/operator/keys").await.form("name");
        let wrong = browser.submit(&form.clone().fill("name", " ").fill("role", "read")).await;
        assert_eq!(wrong.response.status, 422);
        let made = browser.submit(&form.fill("name", "수집기").fill("role", "read")).await;
        assert_eq!(made.response.status, 200);
        let html = made.response.text();
        let input = html.split("id=\"once\"").nth(1).expect("a key");
        let key =
            input.split("value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a key").to_owned();
        let with_key = || Request::get("/platform/v1/channels").bearer(&key);
        world.send(with_key()).await.content();
        let list = browser.open("/operator/keys").await;
        assert!(!list.response.text().contains(&key));
        let page = browser.open(&list.link("<bdi>수집기</bdi>")).await;
        browser.submit(&act(&page, "revoke")).await.location();
        assert_eq!(world.send(with_key()).await.status, 401);
    })
    .await;
}

/// Each form on the page of a person, also those that come later.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_a_higher_role_cannot_be_changed() {
    both(Setup::default(), |world| async move {
        world.person("byeol").create().await;
        let path = "/platform/v1/channels/byeol/operator-role";
        world.operator(Request::put(path).json(&json!({ "role": "admin" }))).await.content();
        let mut browser = operator(&world, "admin").await;
        let bar = "/platform/v1/channels/byeol/bar";
        let mut pages = vec![browser.open("/operator/people/byeol").await];
        world.operator(Request::put(bar)).await.content();
        pages.push(browser.open("/operator/people/byeol").await);
        set_role(&world, Some("write")).await;
        let page = browser.open("/operator/people/byeol").await;
        assert!(page.forms.iter().all(|form| form.action == "/sign-out"), "{:?}", page.forms);
        let forms = pages.iter().flat_map(|page| &page.forms);
        let forms: Vec<_> = forms.filter(|form| form.action.starts_with("/operator/people/byeol")).collect();
        assert!(forms.len() > 6, "{forms:?}");
        let before = log(&world, "size=1").await;
        for form in forms {
            let pressed = form.buttons.first().cloned();
            let form = pressed.map_or(form.clone(), |(name, value)| form.clone().press(&name, &value));
            let form = if form.field("confirm").is_some() { form.fill("confirm", "byeol") } else { form };
            assert_eq!(browser.submit(&form).await.response.status, 403, "{form:?}");
        }
        assert_eq!(log(&world, "size=1").await, before);
    })
    .await;
}

/// A secret leaked at night: what the page shows, and what it ends.
#[tokio::test(flavor = "multi_thread")]
async fn leaked_credentials_are_ended_on_the_page_of_their_application() {
    both(Setup { system_clock: true, ..Setup::default() }, |world| async move {
        let Fixture { app, tokens, secret_id, .. } = Fixture::set_up(&world).await;
        let owned = json!({ "name": "주인 있는 봇", "redirectUris": [app.redirect_uri], "scopes": [],
            "ownerChannelId": "haneul" });
        let mut browser = operator(&world, "write").await;
        let path = "/operator/applications/bot";
        let socket = world.open_user_session(&tokens.access).await;
        let page = browser.open(path).await;
        let html = page.response.text();
        assert!(html.contains("지금 토큰이 있는 사람: 1, 연결된 세션: 1."), "{html}");
        assert!(html.contains(&format!("{path}/secrets/{secret_id}")), "{html}");
        let ends = format!("…{}", &app.client_secret[app.client_secret.len() - 4..]);
        assert!(html.contains(&ends), "{html}");
        // The session is that of `haneul` at the application `bot`: both have their names there.
        let session =
            html.split("<tr>").find(|row| row.contains("/operator/people/haneul")).expect("a session");
        assert!(session.contains("<bdi>하늘 🚀</bdi>") && session.contains("<bdi>bot</bdi>"), "{session}");
        // Disabled, and enabled again after the tokens were ended: they stay ended.
        browser.submit(&act(&page, "disable")).await.location();
        assert_eq!(browser.submit(&act(&page, "end-tokens")).await.location(), path);
        let page = browser.open(path).await;
        browser.submit(&act(&page, "enable")).await.location();
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        assert_eq!(socket.closed().await.1, "revoked");
        let one = browser.open(&format!("{path}/secrets/{secret_id}")).await;
        assert_guarded(&one);
        world.channels(&app, "channelIds=haneul").await.content();
        assert_eq!(browser.submit(&act(&one, "revoke")).await.location(), path);
        world.channels(&app, "channelIds=haneul").await.assert_refused(401, "INVALID_CLIENT");
        assert_eq!(get(&mut browser, &format!("{path}/secrets/{secret_id}")).await.status, 404);
        world.operator(Request::put("/platform/v1/applications/bot").json(&owned)).await.content();
        let page = browser.open(path).await;
        assert!(page.response.text().contains("href=\"/operator/people/haneul\""), "the owner");
        browser.submit(&act(&page, "revoke-secrets")).await.location();
        let left = world.operator(Request::get("/platform/v1/applications/bot/secrets")).await.content();
        assert_eq!(left["data"], json!([]));
        let deleted = log(&world, "subject=bot&action=secret.delete").await;
        let mut characters = deleted.iter().map(|entry| entry["details"]["lastCharacters"].as_str());
        assert!(characters.any(|last| last.is_some_and(|last| ends.ends_with(last))), "{deleted:?}");
        assert_eq!(log(&world, "subject=bot&action=tokens.end").await.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_text_on_every_page() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let mut browser = operator(&world, "admin").await;
        let put = async |path: &str, body: Value| {
            world.operator(Request::put(path).json(&body)).await.content();
        };
        put("/platform/v1/channels/haneul", json!({ "channelName": HOSTILE })).await;
        put("/platform/v1/channels/gaon", json!({ "channelName": HOSTILE })).await;
        let bot = json!({ "name": HOSTILE, "redirectUris": [], "scopes": [], "organizationId": "publisher" });
        put("/platform/v1/applications/bot", bot).await;
        let owner = json!({ "name": HOSTILE, "scopes": ["드롭스"], "organizationId": "webhook-owner" });
        put("/platform/v1/applications/webhook-owner", owner).await;
        put("/platform/v1/applications/webhook-owner/webhook", json!({ "enabled": false })).await;
        put("/platform/v1/organizations/publisher", json!({ "organizationName": HOSTILE })).await;
        let key = json!({ "name": HOSTILE, "role": "read" });
        let made = world.operator(Request::post("/platform/v1/keys").json(&key)).await.content();
        let mut paths: Vec<_> =
            pages(made["keyId"].as_str().expect("an id")).into_iter().map(|page| page.0).collect();
        let query = testkit::encode(HOSTILE);
        for path in ["applications", "people", "organizations"] {
            paths.push(format!("/operator/{path}?q={query}"));
        }
        paths.push(format!("/operator/audit?subject={query}&actor={query}&action={query}"));
        for path in &paths {
            for lang in ["ko", "en"] {
                browser.accept_language = Some(lang.to_owned());
                let page = browser.open(path).await;
                let html = page.response.text();
                assert_eq!(page.response.status, 200, "{path}");
                assert!(!html.contains("<script>") && !html.contains("<img src=x"), "{path}");
                assert!(
                    !html.contains('\u{202E}') || path.contains("q=") || path.contains("subject="),
                    "{path}"
                );
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_on_page_by_page() {
    both(Setup::default(), |world| async move {
        for n in 0..25 {
            let body = json!({ "name": format!("봇 {n:02}"), "redirectUris": [], "scopes": [] });
            world
                .operator(Request::put(format!("/platform/v1/applications/bot-{n:02}")).json(&body))
                .await
                .content();
            let body = json!({ "channelName": format!("하늘 {n:02}") });
            world
                .operator(Request::put(format!("/platform/v1/channels/sky-{n:02}")).json(&body))
                .await
                .content();
        }
        let mut browser = operator(&world, "admin").await;
        for (path, count) in [
            ("/operator/applications?q=bot-24", 1),
            ("/operator/applications?q=%EB%B4%87+1", 10),
            ("/operator/applications?q=%EB%B4%87", 25),
            ("/operator/applications", 25),
            ("/operator/people?q=%ED%95%98%EB%8A%98", 25),
            ("/operator/audit?action=application.put", 25),
        ] {
            let (mut target, mut found) = (path.to_owned(), 0);
            loop {
                let page = browser.open(&target).await;
                let html = page.response.text();
                found += html.matches("<td class=\"lead-cell\">").count() + html.matches("<li>\n<p>").count();
                if !html.contains("rel=\"next\"") {
                    break;
                }
                target = page.link("다음 →");
            }
            assert!(
                path == target || browser.open(&target).await.link("첫 페이지").starts_with(path),
                "{target}"
            );
            assert_eq!(found, count, "{path}");
        }
        let wrong = get(&mut browser, "/operator/applications?next=nonsense").await;
        assert_eq!(wrong.status, 400);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_found_inside_in_any_case_and_people_by_login_too() {
    both(Setup::default(), |world| async move {
        let put = async |path: &str, body: Value| {
            world.operator(Request::put(path).json(&body)).await.content();
        };
        let bot = json!({ "name": "Haneul Bot", "redirectUris": [], "scopes": [] });
        put("/platform/v1/applications/hb", bot).await;
        put("/platform/v1/organizations/games", json!({ "organizationName": "푸른 Games" })).await;
        world.person("mina").name("Mina 방송").create().await;
        let mut browser = operator(&world, "admin").await;
        for (list, text, found) in [
            ("applications", "hane", "Haneul Bot"),
            ("applications", "BOT", "Haneul Bot"),
            ("applications", "hb", "Haneul Bot"),
            ("organizations", "games", "푸른 Games"),
            ("organizations", "games", "games</code>"),
            ("people", "방송", "Mina 방송"),
            ("people", "mINA", "Mina 방송"),
            ("people", "mina@login", "Mina 방송"),
        ] {
            let path = format!("/operator/{list}?q={}", testkit::encode(text));
            let html = get(&mut browser, &path).await.text().to_owned();
            assert_eq!(html.matches("<td class=\"lead-cell\">").count(), 1, "{list} {text}: {html}");
            assert!(html.contains(found), "{list} {text}");
        }
        // Each page leads to what belongs to the thing.
        let owned = json!({ "name": "Mina Bot", "redirectUris": [], "scopes": [], "ownerChannelId": "mina" });
        put("/platform/v1/applications/mb", owned).await;
        put("/platform/v1/organizations/games/members/mina", json!({ "role": "admin" })).await;
        for (page, leads_to) in [
            ("applications/mb", "people/mina\"><bdi>Mina 방송"),
            ("people/mina", "applications/mb\"><bdi>Mina Bot"),
            ("people/mina", "organizations/games\"><bdi>푸른 Games"),
            ("organizations/games", "people/mina\"><bdi>Mina 방송"),
        ] {
            let html = get(&mut browser, &format!("/operator/{page}")).await.text().to_owned();
            assert!(html.contains(&format!("href=\"/operator/{leads_to}")), "{page}: {html}");
        }
        let wild = get(&mut browser, "/operator/applications?q=%25").await.text().to_owned();
        assert!(!wild.contains("Haneul Bot"), "a text has no wildcards");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_decided_once_with_effect_at_once() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let games = "/platform/v1/organizations/games";
        let put = async |path: String, body: Value| {
            world.operator(Request::put(path).json(&body)).await.content();
        };
        put(games.to_owned(), json!({ "organizationName": "게임즈" })).await;
        put(format!("{games}/members/haneul"), json!({ "role": "admin" })).await;
        let body = json!({
            "channelId": "haneul", "kind": "organization", "organizationId": "games", "message": HOSTILE,
        });
        let asked = world.operator(Request::post("/platform/v1/review-requests").json(&body)).await.content();
        let path = format!("/operator/requests/{}", asked["requestId"].as_str().expect("an id"));
        let mut browser = operator(&world, "write").await;
        let overview = browser.open("/operator").await;
        let overview = overview.response.text();
        assert!(overview.contains("결정할 요청"));
        for shown in ["보관 기간", "채팅 메시지", "<code class=\"mono\">chat-messages</code>", "7일"]
        {
            assert!(overview.contains(shown), "{shown}");
        }
        assert_eq!(browser.open("/operator/requests").await.link("<bdi>게임즈</bdi>"), path);
        let page = browser.open(&path).await;
        let html = page.response.text();
        assert!(!html.contains("<script>") && html.contains("&#60;script&#62;"), "{html}");
        let (mut approve, refuse) = (act(&page, "approve"), act(&page, "refuse"));
        approve.fields.push(("note".to_owned(), "확인했습니다.".to_owned()));
        for form in [approve.clone().without("csrf"), approve.clone().fill("csrf", "x")] {
            assert_eq!(browser.submit(&form).await.response.status, 400);
        }
        set_role(&world, Some("read")).await;
        assert_eq!(browser.submit(&approve).await.response.status, 403);
        set_role(&world, None).await;
        assert_eq!(browser.submit(&approve).await.response.status, 404);
        set_role(&world, Some("write")).await;
        assert_eq!(browser.submit(&approve).await.location(), "/operator/requests");
        let shown = world.operator(Request::get("/platform/v1/organizations")).await.content();
        let shown =
            shown["data"].as_array().expect("a list").iter().find(|one| one["organizationId"] == "games");
        assert_eq!(shown.expect("the organization")["verified"], true);
        assert_eq!(browser.submit(&refuse).await.response.status, 400);
        let decided = browser.open(&path).await;
        assert!(decided.response.text().contains("확인했습니다."), "{}", decided.response.text());
        let list =
            world.operator(Request::get("/platform/v1/review-requests?state=approved")).await.content();
        assert_eq!(list["data"][0]["decidedBy"], "gaon");
        let entries = log(&world, "subject=games&actor=gaon").await;
        assert_eq!(entries[0]["actor"]["kind"], "person");
    })
    .await;
}
