//! The developer center (`/developers`): applications, organizations, and who may see and change them.

use std::time::Duration;

use domain::limits::DAY_MS;
use serde_json::{Value, json};
use testkit::{Application, Browser, Form, Page, Person, Request, Setup, World, both};

use super::{assert_guarded, assert_not_done, submit_surely};

pub(super) const HOSTILE: &str = "\u{202E}<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";

async fn signed_in(world: &World, person: &Person) -> Browser {
    let mut browser = world.browser();
    let form = browser.open("/sign-in").await.form("login");
    let form = form.fill("login", &person.login).fill("password", &person.password);
    browser.submit(&form).await.location();
    browser
}

/// The form that goes to this address.
#[track_caller]
pub(super) fn form(page: &Page, action: &str) -> Form {
    let form = page.forms.iter().find(|form| form.action == action);
    form.unwrap_or_else(|| panic!("no form to {action}: {}", page.response.text())).clone()
}

/// The form that goes to this address and has this button, which is pressed.
#[track_caller]
pub(super) fn pressed(page: &Page, action: &str, name: &str, value: &str) -> Form {
    let button = (name.to_owned(), value.to_owned());
    let form = page.forms.iter().find(|form| form.action == action && form.buttons.contains(&button));
    form.unwrap_or_else(|| panic!("no {name}={value} to {action}")).clone().press(name, value)
}

/// Sets the text of a field, also of a textarea.
pub(super) fn with(mut form: Form, name: &str, value: &str) -> Form {
    form.fields.retain(|(key, _)| key != name);
    form.fields.push((name.to_owned(), value.to_owned()));
    form
}

/// The value of the read-only field with this id.
#[track_caller]
fn shown(page: &Page, id: &str) -> String {
    let html = page.response.text();
    let tag = html.split('<').find(|tag| tag.starts_with(&format!("input id=\"{id}\"")));
    let tag = tag.unwrap_or_else(|| panic!("no {id}: {html}"));
    tag.split("value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a value").to_owned()
}

/// Registers an application of the person, or of an organization.
pub(super) async fn register(browser: &mut Browser, name: &str, organization: &str) -> Application {
    let page = browser.open("/developers/register").await;
    assert_guarded(&page);
    let form = form(&page, "/developers/register");
    let form = with(form, "name", name);
    let form = with(form, "redirectUris", "http://127.0.0.1:9/callback\n\n https://a.example/callback ");
    let form = with(form, "organizationId", organization);
    let page = browser.submit(&form).await;
    assert_eq!(page.response.status, 200, "{}", page.response.text());
    assert_eq!(page.response.text().matches("class=\"secret\"").count(), 1, "the client id is no secret");
    let again = browser.submit(&form).await;
    assert_eq!(shown(&again, "client-id"), shown(&page, "client-id"), "a form takes effect once");
    assert_eq!(shown(&again, "client-secret"), shown(&page, "client-secret"));
    Application {
        client_id: shown(&page, "client-id"),
        client_secret: shown(&page, "client-secret"),
        redirect_uri: "http://127.0.0.1:9/callback".to_owned(),
    }
}

pub(super) fn address(app: &Application, end: &str) -> String {
    format!("/developers/applications/{}{end}", app.client_id)
}

/// Chooses these scopes, by their keys.
pub(super) async fn choose(browser: &mut Browser, app: &Application, keys: &[&str]) -> Page {
    let path = address(app, "/scopes");
    let mut form = form(&browser.open(&path).await, &path);
    form.fields.retain(|(name, _)| name != "scopes");
    form.fields.extend(keys.iter().map(|key| ("scopes".to_owned(), (*key).to_owned())));
    let page = browser.submit(&form).await;
    // Taking scopes away asks first.
    match page.response.status {
        200 => browser.submit(&page.form("sure")).await,
        _ => page,
    }
}

pub(super) async fn content(world: &World, path: &str) -> Value {
    world.operator(Request::get(path)).await.content()
}

pub(super) async fn status(browser: &mut Browser, path: &str) -> u16 {
    browser.send(Request::get(path).header("Accept", "text/html")).await.response.status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_registers_an_application_and_works_with_it_at_once() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let viewer = world.person("byeol").create().await;
        assert_eq!(world.browser().open("/developers").await.location(), "/sign-in?next=%2Fdevelopers");
        let mut browser = signed_in(&world, &developer).await;
        let empty = browser.open("/developers").await;
        assert_guarded(&empty);
        assert!(empty.response.text().contains("등록한 앱이 없습니다."));
        let app = register(&mut browser, "새 봇", "").await;
        assert_eq!(
            choose(&mut browser, &app, &["user-read", "chat-read"]).await.location(),
            address(&app, "/scopes")
        );

        for path in ["/developers", &address(&app, ""), &address(&app, "/usage")] {
            let page = browser.open(path).await;
            assert!(page.response.text().contains("아직 없음"), "nobody has used it: {path}");
        }
        let tokens = world.sign_in(&app, &viewer).await;
        world.me(&tokens.access).await.content();
        let registered = content(&world, &format!("/platform/v1/applications/{}", app.client_id)).await;
        assert_eq!(registered["ownerChannelId"], "dev");
        assert_eq!(
            registered["redirectUris"],
            json!(["http://127.0.0.1:9/callback", "https://a.example/callback"])
        );
        let list = browser.open("/developers").await;
        assert!(list.response.text().contains("새 봇") && list.response.text().contains("사용 중"));
        for end in ["", "/settings", "/scopes", "/secrets", "/manage"] {
            let page = browser.open(&address(&app, end)).await;
            assert_guarded(&page);
            assert!(!page.response.text().contains(&app.client_secret), "{end}");
            assert_eq!(page.response.text().matches("aria-current=\"page\"").count(), 2, "{end}");
        }
        // A scope that is taken away ends at once, for those who allowed it, too.
        choose(&mut browser, &app, &["chat-read"]).await;
        world.me(&tokens.access).await.assert_refused(403, "FORBIDDEN");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_fields_are_said_where_they_are_and_change_nothing() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let blank = form(&browser.open("/developers/register").await, "/developers/register");
        for (name, value, field, said) in [
            ("name", " ", "name", "1자 이상"),
            (
                "redirectUris",
                "https://fine.example/#\nhttps://b.example/\nhttp://bot.example/",
                "redirectUris",
                "‘https://fine.example/#’: 프래그먼트(#)를 넣을 수 없습니다.\n‘http://bot.example/’: https://로 시작해야",
            ),
            ("homepageUrl", "http://bot.example", "homepageUrl", "https 주소"),
            ("organizationId", "games", "organizationId", "존재하는 조직"),
            ("organizationId", "../", "organizationId", "영문자"),
        ] {
            let page = browser.submit(&with(with(blank.clone(), "name", "봇"), name, value)).await;
            assert_eq!(page.response.status, 422, "{name}");
            let error = page.response.text().split(&format!("id=\"f-{field}-error\"")).nth(1);
            let error = error.and_then(|rest| rest.split("</p>").next());
            assert!(error.is_some_and(|error| error.contains(said)), "{field}: {error:?}");
        }
        let many: Vec<_> = (0..21).map(|n| format!("https://a.example/{n}")).collect();
        let page = browser.submit(&with(with(blank, "name", "봇"), "redirectUris", &many.join("\n"))).await;
        assert_eq!(page.response.status, 422);
        assert_eq!(content(&world, "/platform/v1/applications").await["data"], json!([]));

        let app = register(&mut browser, "봇", "").await;
        let path = address(&app, "/settings");
        let settings = form(&browser.open(&path).await, &path);
        let settings = with(settings, "redirectUris", "https://b.example/callback");
        let wrong = browser.submit(&with(settings.clone(), "termsUrl", "javascript:alert(1)")).await;
        assert_eq!(wrong.response.status, 422);
        let settings = with(with(settings, "termsUrl", "https://b.example/terms"), "profile", "observed");
        assert_eq!(browser.submit(&with(settings, "name", "다른 봇")).await.location(), path);
        let registered = content(&world, &format!("/platform/v1/applications/{}", app.client_id)).await;
        assert_eq!((&registered["name"], &registered["profile"]), (&json!("다른 봇"), &json!("observed")));
        assert_eq!(registered["redirectUris"], json!(["https://b.example/callback"]));
        assert_eq!(registered["termsUrl"], "https://b.example/terms");
    })
    .await;
}

/// The body of a form with a file.
fn multipart(csrf: &str, file: &[u8]) -> Vec<u8> {
    let part =
        |head: &str| format!("--part\r\nContent-Disposition: form-data; name=\"{head}\r\n\r\n").into_bytes();
    let mut body = part("csrf\"");
    body.extend_from_slice(csrf.as_bytes());
    body.extend_from_slice(b"\r\n");
    body.extend(part("logo\"; filename=\"../x.png\"\r\nContent-Type: text/html"));
    body.extend_from_slice(file);
    body.extend_from_slice(b"\r\n--part--\r\n");
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logo_is_uploaded_as_a_file() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        let (path, settings) = (address(&app, "/logo"), address(&app, "/settings"));
        let logo = form(&browser.open(&settings).await, &path);
        let csrf = logo.field("csrf").expect("a proof").to_owned();
        let upload = |csrf: &str, file: &[u8]| {
            let request = Request::post(&path).header("Content-Type", "multipart/form-data; boundary=part");
            request.body(multipart(csrf, file))
        };
        let png = b"\x89PNG\r\n\x1a\nrest";
        assert_eq!(browser.send(upload("x", png)).await.response.status, 400);
        for file in [&b"<svg onload=alert(1)>"[..], b"", &[0; 40 * 1024]] {
            let page = browser.send(upload(&csrf, file)).await;
            assert_eq!(page.response.status, 422);
            assert!(page.response.text().contains("PNG, JPEG, WebP 그림이어야 합니다."));
        }
        assert_eq!(browser.send(upload(&csrf, &[0; 70 * 1024])).await.response.status, 413);
        assert_eq!(browser.send(upload(&csrf, png)).await.location(), settings);
        let page = browser.open(&settings).await;
        assert!(page.response.text().contains(&format!("/pictures/applications/{}?v=", app.client_id)));
        let picture = world.send(Request::get(format!("/pictures/applications/{}", app.client_id))).await;
        assert_eq!((picture.header("content-type"), &picture.body[..]), (Some("image/png"), &png[..]));
        let remove = pressed(&page, &path, "remove", "yes");
        assert_eq!(browser.submit(&remove).await.location(), settings);
        assert!(!browser.open(&settings).await.response.text().contains("/pictures/applications/"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaked_secret_is_replaced_with_an_overlap_and_revoked() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        let path = address(&app, "/secrets");
        let page = browser.open(&path).await;
        let last = &app.client_secret[app.client_secret.len() - 4..];
        assert!(page.response.text().contains(&format!("…{last}")));
        let make = form(&page, &path);
        let made = browser.submit(&make).await;
        let secret = shown(&made, "made-secret");
        assert_eq!(shown(&browser.submit(&make).await, "made-secret"), secret, "a form takes effect once");
        assert!(!browser.open(&path).await.response.text().contains(&secret));
        let second = Application { client_secret: secret, ..app.clone() };

        let list = browser.open(&path).await.response.text().to_owned();
        let row =
            list.split("<tr>").find(|row| row.contains(&format!("<code>…{last}</code>"))).expect("a row");
        let first =
            row.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link").to_owned();
        let page = browser.open(&first).await;
        assert_guarded(&page);
        let replace = form(&page, &first).press("expires", "hour");
        assert_eq!(browser.submit(&replace).await.location(), path);
        world.channels(&app, "channelIds=dev").await.content();
        world.advance(Duration::from_secs(3_601));
        world.channels(&app, "channelIds=dev").await.assert_refused(401, "INVALID_CLIENT");
        world.channels(&second, "channelIds=dev").await.content();

        let mut browser = signed_in(&world, &developer).await;
        let page = browser.open(&path).await.response.text().to_owned();
        let one = page.split("href=\"").find(|part| part.starts_with(&format!("{path}/"))).expect("a link");
        let one = one.split('"').next().expect("an address").to_owned();
        let page = browser.open(&one).await;
        assert!(page.response.text().contains("하나뿐인 시크릿"));
        let revoke = page.forms.iter().rfind(|form| form.action == one).expect("a form").clone();
        assert_eq!(browser.submit(&revoke.press("expires", "now")).await.location(), path);
        world.channels(&second, "channelIds=dev").await.assert_refused(401, "INVALID_CLIENT");
        assert_eq!(status(&mut browser, &one).await, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_leak_all_tokens_and_all_secrets_are_ended_on_one_page() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        let (secrets, leak) = (address(&app, "/secrets"), address(&app, "/leak"));
        assert_eq!(browser.open(&secrets).await.link("유출 대응"), leak);
        let tokens = world.sign_in(&app, &developer).await;
        let page = browser.open(&leak).await;
        assert_guarded(&page);
        assert!(page.response.text().contains("지금 토큰이 있는 사람: 1, 연결된 세션: 0."));
        assert_eq!(browser.submit(&pressed(&page, &leak, "end", "tokens")).await.location(), secrets);
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        let again = world.sign_in(&app, &developer).await;
        assert_eq!(world.me(&again.access).await.status, 403, "it is valid, and has no scope");
        browser.submit(&pressed(&page, &leak, "end", "secrets")).await.location();
        world.channels(&app, "channelIds=dev").await.assert_refused(401, "INVALID_CLIENT");
        assert_eq!(world.me(&again.access).await.status, 403);
        let page = browser.open(&leak).await;
        assert!(page.forms.iter().filter(|form| form.action == leak).count() == 1, "there is no secret left");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_disabled_deleted_and_restored_by_its_owner() {
    // The sockets close after some real time.
    both(Setup { system_clock: true, ..Setup::default() }, |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        let operator = format!("/platform/v1/applications/{}", app.client_id);
        let (manage, disabled) = (address(&app, "/manage"), address(&app, "/disabled"));
        let switch = form(&browser.open(&manage).await, &disabled).press("state", "disabled");
        browser.submit(&switch).await.location();
        world.channels(&app, "channelIds=dev").await.assert_refused(401, "INVALID_CLIENT");
        assert_eq!(content(&world, &operator).await["disabledBy"], json!(["owner"]));
        // The owner does not undo what the operator did.
        world.operator(Request::put(format!("{operator}/disabled"))).await.content();
        let page = browser.open(&manage).await;
        assert!(page.response.text().contains("운영자만 다시 켤 수 있습니다."));
        browser.submit(&form(&page, &disabled).press("state", "enabled")).await.location();
        world.channels(&app, "channelIds=dev").await.assert_refused(401, "INVALID_CLIENT");
        world.operator(Request::delete(format!("{operator}/disabled"))).await.content();
        world.channels(&app, "channelIds=dev").await.content();

        let deleted = address(&app, "/deleted");
        let delete =
            |page: &Page, name: &str| with(form(page, &deleted), "name", name).press("delete", "yes");
        let page = browser.open(&manage).await;
        let wrong = browser.submit(&delete(&page, "보트")).await;
        assert_eq!(wrong.response.status, 422);
        assert!(wrong.response.text().contains("애플리케이션의 이름과 다릅니다."));
        let socket = world.open_client_session(&app).await;
        assert_eq!(browser.submit(&delete(&page, "봇")).await.location(), "/developers");
        socket.closed().await;
        world.channels(&app, "channelIds=dev").await.assert_refused(401, "INVALID_CLIENT");
        let list = browser.open("/developers").await;
        assert!(
            list.response.text().contains("삭제됨") && list.response.text().contains("복구할 수 있습니다.")
        );
        for end in ["/settings", "/scopes", "/secrets"] {
            assert_eq!(status(&mut browser, &address(&app, end)).await, 404, "{end}");
        }
        let restore = form(&browser.open(&manage).await, &deleted).press("restore", "yes");
        browser.submit(&restore).await.location();
        world.channels(&app, "channelIds=dev").await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_application_counts_its_days_down() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let app = register(&mut signed_in(&world, &developer).await, "봇", "").await;
        world.advance(Duration::from_millis(60 * DAY_MS.unsigned_abs()));
        let mut browser = signed_in(&world, &developer).await;
        for path in ["/developers", &address(&app, "")] {
            assert!(browser.open(path).await.response.text().contains("30일 뒤 삭제"), "{path}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_and_organizations_of_others_do_not_exist() {
    both(Setup::default(), |world| async move {
        let (developer, other) = (world.person("dev").create().await, world.person("byeol").create().await);
        let mut owner = signed_in(&world, &developer).await;
        let app = register(&mut owner, "봇", "").await;
        let make = form(&owner.open("/developers/new-organization").await, "/developers/new-organization");
        let organization =
            owner.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();

        let mut stranger = signed_in(&world, &other).await;
        let secrets = owner.open(&address(&app, "/secrets")).await.response.text().to_owned();
        let secret = secrets.split("href=\"").find(|part| part.contains("/secrets/")).expect("a link");
        let secret = secret.split('"').next().expect("an address");
        let pages = ["", "/settings", "/scopes", "/secrets", "/manage"].map(|end| address(&app, end));
        for path in pages.iter().map(String::as_str).chain([secret, organization.as_str()]) {
            assert_eq!(status(&mut stranger, path).await, 404, "{path}");
            assert_eq!(status(&mut owner, path).await, 200, "{path}");
        }
        let mut forms = Vec::new();
        for path in pages.iter().map(String::as_str).chain([
            secret,
            organization.as_str(),
            "/developers/register",
            "/developers/new-organization",
        ]) {
            forms.extend(
                owner
                    .open(path)
                    .await
                    .forms
                    .into_iter()
                    .filter(|form| form.method == "post" && form.action != "/sign-out"),
            );
        }
        assert!(forms.len() >= 13, "{}", forms.len());
        let before = content(&world, &format!("/platform/v1/applications/{}", app.client_id)).await;
        for form in forms {
            // The proof belongs to the browser and to the address.
            for (mut browser, form) in [
                (stranger.clone(), form.clone()),
                (world.browser(), form.clone()),
                (owner.clone(), form.clone().without("csrf")),
                (
                    owner.clone(),
                    Form { action: "/developers/applications/other/settings".to_owned(), ..form.clone() },
                ),
            ] {
                assert_not_done(&browser.submit(&form).await, &form.action);
            }
        }
        let after = content(&world, &format!("/platform/v1/applications/{}", app.client_id)).await;
        assert_eq!(before, after);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_in_an_organization_is_a_role_over_its_applications() {
    both(Setup::default(), |world| async move {
        let (admin, member) = (world.person("dev").create().await, world.person("byeol").create().await);
        let mut owner = signed_in(&world, &admin).await;
        let make = form(&owner.open("/developers/new-organization").await, "/developers/new-organization");
        let path = owner.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();
        let id = path.rsplit('/').next().expect("an id").to_owned();
        let app = register(&mut owner, "게임 봇", &id).await;

        let invite =
            with(form(&owner.open(&path).await, &format!("{path}/invitations")), "login", &member.login);
        owner.submit(&with(invite.clone(), "role", "viewer")).await.location();
        // The page says the same about an unknown login.
        let unknown = owner.submit(&with(with(invite, "login", "unknown-login"), "role", "viewer")).await;
        assert_eq!(unknown.location(), path);
        let mut browser = signed_in(&world, &member).await;
        assert_eq!(status(&mut browser, &path).await, 404, "an invitation gives no right");
        let accept = form(&browser.open("/developers").await, &format!("{path}/invitation"));
        assert_eq!(browser.submit(&accept.press("answer", "accept")).await.location(), path);
        assert!(!browser.open("/developers").await.response.text().contains("받은 초대"));

        let codes = async |browser: &mut Browser| {
            let mut codes = Vec::new();
            for end in ["", "/settings", "/secrets", "/manage"] {
                codes.push(status(browser, &address(&app, end)).await);
            }
            codes
        };
        assert_eq!(codes(&mut browser).await, [200, 404, 404, 404]);
        let change = form(&owner.open(&path).await, &format!("{path}/members/{}", member.channel_id));
        submit_surely(&mut owner, &with(change.clone(), "role", "developer")).await.location();
        assert_eq!(codes(&mut browser).await, [200; 4]);
        let page = browser.open(&address(&app, "/manage")).await;
        assert!(page.forms.iter().all(|form| form.action != address(&app, "/deleted")));
        assert!(browser.open(&path).await.forms.iter().all(|form| !form.action.ends_with("/invitations")));

        // The last admin stays.
        let me = format!("{path}/members/{}", admin.channel_id);
        let me = pressed(&owner.open(&path).await, &me, "remove", "yes");
        let leave = owner.submit(&me).await;
        assert_eq!(leave.response.status, 422);
        assert!(leave.response.text().contains("관리자가 한 명은 남아야 합니다."));
        submit_surely(&mut owner, &with(change, "role", "admin")).await.location();
        assert_eq!(owner.submit(&me).await.location(), "/developers");
        assert_eq!(status(&mut owner, &address(&app, "")).await, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_and_drops_are_asked_for_and_decided() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "드롭스 앱", "").await;
        let make = form(&browser.open("/developers/new-organization").await, "/developers/new-organization");
        let path = browser.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();
        let id = path.rsplit('/').next().expect("an id").to_owned();
        let apply = form(&browser.open(&path).await, &format!("{path}/verification"));
        assert_eq!(browser.submit(&with(apply.clone(), "message", " ")).await.response.status, 422);
        browser.submit(&with(apply, "message", HOSTILE)).await.location();
        let page = browser.open(&path).await;
        assert!(page.response.text().contains("심사 중") && !page.response.text().contains("<script>"));
        assert!(page.forms.iter().all(|form| form.action != path), "the name is fixed");
        let request = async |kind: &str| {
            let pending = content(&world, "/platform/v1/review-requests").await;
            let request = pending["data"].as_array().expect("a list").iter().find(|one| one["kind"] == kind);
            request.map(|one| one["requestId"].as_str().expect("a text").to_owned())
        };
        // Withdrawn and asked for again.
        let pending = request("organization").await.expect("a request");
        browser.submit(&form(&page, &format!("{path}/requests/{pending}"))).await.location();
        assert_eq!(request("organization").await, None);
        let apply = form(&browser.open(&path).await, &format!("{path}/verification"));
        browser.submit(&with(apply, "message", "게임 회사입니다.")).await.location();
        let approve = async |kind: &str| {
            let id = request(kind).await.expect("a request");
            let body = json!({ "decision": "approve", "note": HOSTILE });
            world
                .operator(Request::put(format!("/platform/v1/review-requests/{id}")).json(&body))
                .await
                .content();
        };
        approve("organization").await;
        let page = browser.open(&path).await.response.text().to_owned();
        assert!(page.contains("인증된 조직") && page.contains("승인됨") && !page.contains("<script>"));

        let scopes = address(&app, "/scopes");
        let page = browser.open(&scopes).await;
        assert!(page.response.text().contains("먼저 앱을 인증된 조직으로 옮겨 주세요."));
        let owner = with(
            form(&browser.open(&address(&app, "/manage")).await, &address(&app, "/owner")),
            "organizationId",
            &id,
        );
        submit_surely(&mut browser, &owner).await.location();
        let drops = form(&browser.open(&scopes).await, &address(&app, "/drops"));
        browser.submit(&with(drops, "message", "보상을 지급합니다.")).await.location();
        approve("drops").await;
        world.reward_claims(&app, "").await.content();
        // Choosing scopes keeps drops, and another owner loses it.
        choose(&mut browser, &app, &["user-read"]).await;
        world.reward_claims(&app, "").await.content();
        let owner = form(&browser.open(&address(&app, "/manage")).await, &address(&app, "/owner"));
        submit_surely(&mut browser, &with(owner, "organizationId", "/me")).await.location();
        let registered = content(&world, &format!("/platform/v1/applications/{}", app.client_id)).await;
        assert_eq!(
            (&registered["ownerChannelId"], &registered["scopes"]),
            (&json!("dev"), &json!(["유저 정보 조회"]))
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_reviews_scopes_where_configured() {
    both(Setup { reviews_scopes: true, ..Setup::default() }, |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        let path = address(&app, "/scopes");
        assert_eq!(choose(&mut browser, &app, &["user-read"]).await.response.status, 422, "without a reason");
        let mut chosen = with(form(&browser.open(&path).await, &path), "message", "이름을 보여 줍니다.");
        chosen.fields.retain(|(name, _)| name != "scopes");
        let chosen = with(chosen, "scopes", "user-read");
        assert_eq!(browser.submit(&chosen).await.location(), path);
        let operator = format!("/platform/v1/applications/{}", app.client_id);
        assert_eq!(content(&world, &operator).await["scopes"], json!([]));
        let pending = content(&world, "/platform/v1/review-requests").await;
        assert_eq!(pending["data"][0]["scopes"], json!(["유저 정보 조회"]));
        let id = pending["data"][0]["requestId"].as_str().expect("a text").to_owned();
        let body = json!({ "decision": "approve" });
        world
            .operator(Request::put(format!("/platform/v1/review-requests/{id}")).json(&body))
            .await
            .content();
        assert_eq!(content(&world, &operator).await["scopes"], json!(["유저 정보 조회"]));
        assert_eq!(choose(&mut browser, &app, &[]).await.location(), path);
        assert_eq!(content(&world, &operator).await["scopes"], json!([]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_text_in_both_languages() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let channel = json!({ "channelName": HOSTILE });
        world.operator(Request::put("/platform/v1/channels/dev").json(&channel)).await.content();
        let mut browser = signed_in(&world, &developer).await;
        let make = form(&browser.open("/developers/new-organization").await, "/developers/new-organization");
        let path = browser.submit(&with(make, "organizationName", HOSTILE)).await.location().to_owned();
        let app = register(&mut browser, HOSTILE, path.rsplit('/').next().expect("an id")).await;
        let invite = with(form(&browser.open(&path).await, &format!("{path}/invitations")), "login", HOSTILE);
        browser.submit(&with(invite, "role", "admin")).await.location();
        let pages = ["", "/settings", "/scopes", "/secrets", "/manage"].map(|end| address(&app, end));
        for path in
            pages.iter().map(String::as_str).chain(["/developers", "/developers/register", path.as_str()])
        {
            for lang in ["ko", "en"] {
                let page = browser.open(&format!("{path}?lang={lang}")).await;
                let html = page.response.text();
                assert_eq!(page.response.status, 200, "{path}");
                assert!(!html.contains("<script>") && !html.contains("<img src=x"), "{path}");
            }
        }
    })
    .await;
}
