//! Ways through several pages: a newcomer who comes from an application, and questions before what others
//! feel.

use serde_json::Value;
use testkit::{Browser, Form, Page, Request, Setup, World, both};

use super::developers::{address, choose, form, register, with};
use super::{assert_guarded, signed_in, submit_surely};
use crate::fixture::Fixture;

/// Fills the registration in, and sends it.
async fn make_account(browser: &mut Browser, page: &Page, login: &str) -> Page {
    let form = page.form("channelName").fill("login", login).fill("channelName", "새 사람");
    browser.submit(&form.fill("password", "wolkenbruchig")).await
}

fn interlock(app: &testkit::Application, state: &str) -> String {
    let redirect = testkit::encode(&app.redirect_uri);
    format!("/account-interlock?clientId={}&redirectUri={redirect}&state={state}", app.client_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_leads_where_the_person_was_going() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        // From an application's sign-in to its consent, also with the longest state.
        for (login, state) in [("neu-1", "s".to_owned()), ("neu-2", "a".repeat(1_024))] {
            let mut browser = world.browser();
            let sign_in = browser.open(&interlock(&app, &state)).await;
            let page = browser.open(&sign_in.link("계정 만들기")).await;
            assert_guarded(&page);
            assert!(page.response.text().contains("앱의 접근을 허용할지 묻습니다."), "where it leads");
            let made = make_account(&mut browser, &page, login).await;
            let consent = browser.open(made.location()).await;
            let answer = browser.submit(&consent.form("decision").press("decision", "allow")).await;
            assert!(answer.location().starts_with(&app.redirect_uri), "{}", answer.location());
            assert!(answer.location().ends_with(&format!("state={state}")));
        }
        // From a page that needs a sign-in, there and back between signing in and registering.
        let mut browser = world.browser();
        let first = browser.open("/developers/register").await;
        let sign_in = browser.open(first.location()).await;
        let page = browser.open(&sign_in.link("계정 만들기")).await;
        let back = page.link("이미 계정이 있습니다");
        assert_eq!(back, "/sign-in?next=%2Fdevelopers%2Fregister");
        let again = browser.open(&browser.clone().open(&back).await.link("계정 만들기")).await;
        // What is wrong in the form does not lose it.
        let wrong = make_account(&mut browser, &again, "x").await;
        assert_eq!(wrong.response.status, 422);
        assert!(!wrong.response.text().contains("앱의 접근을 허용할지 묻습니다."));
        assert_eq!(make_account(&mut browser, &wrong, "neu-3").await.location(), "/developers/register");
        let next = browser.open("/developers/register").await;
        assert!(next.response.text().contains("계정을 만들었습니다."));
        assert_eq!(browser.open("/register?next=/studio").await.location(), "/studio");
        assert_eq!(browser.open("/register").await.location(), "/account");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_never_leads_to_another_host() {
    both(Setup::default(), |world| async move {
        for (n, next) in ["https://evil.example/", "//evil.example", "/\\evil.example", ""].iter().enumerate()
        {
            let mut browser = world.browser();
            let page = browser.open(&format!("/register?next={}", testkit::encode(next))).await;
            assert!(!page.response.text().contains("href=\"/sign-in?next"), "{next}");
            assert_eq!(make_account(&mut browser, &page, &format!("neu-{n}")).await.location(), "/account");
        }
    })
    .await;
}

async fn organization(world: &World) -> (Browser, String) {
    let admin = world.person("dev").create().await;
    let mut browser = signed_in(world, &admin).await;
    let make = form(&browser.open("/developers/new-organization").await, "/developers/new-organization");
    let path = browser.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();
    (browser, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_comes_before_what_others_feel_at_once() {
    both(Setup::default(), |world| async move {
        let viewer = world.person("byeol").create().await;
        let (mut browser, path) = organization(&world).await;
        let app = register(&mut browser, "봇", "").await;
        choose(&mut browser, &app, &["user-read", "chat-read"]).await.location();
        let tokens = world.sign_in(&app, &viewer).await;

        // A scope that is taken away: how many lose it is said, and nothing happens before the answer.
        let scopes = address(&app, "/scopes");
        let mut chosen = form(&browser.open(&scopes).await, &scopes);
        chosen.fields.retain(|(name, _)| name != "scopes");
        chosen.fields.push(("scopes".to_owned(), "chat-read".to_owned()));
        let question = browser.submit(&chosen).await;
        assert_guarded(&question);
        assert!(question.response.text().contains("허용한 사용자 1명이 바로 잃습니다."));
        world.me(&tokens.access).await.content();
        assert_eq!(submit_surely(&mut browser, &chosen).await.location(), scopes);
        world.me(&tokens.access).await.assert_refused(403, "FORBIDDEN");

        // Another owner.
        let id = path.rsplit('/').next().expect("an id").to_owned();
        let manage = browser.open(&address(&app, "/manage")).await;
        let owner = with(form(&manage, &address(&app, "/owner")), "organizationId", &id);
        let question = browser.submit(&owner).await;
        assert!(question.response.text().contains("‘봇’ 앱을 ‘게임즈’(으)로 옮길까요?"));
        let kept = browser.open(&address(&app, "/manage")).await;
        assert!(!kept.response.text().contains("<bdi>게임즈</bdi></a>"));
        assert_eq!(browser.submit(&question.form("sure")).await.location(), address(&app, "/manage"));
        // Who is not asked: a choice that does not exist is wrong at its field.
        let odd = with(owner, "organizationId", "missing");
        assert!([404, 422].contains(&browser.submit(&odd).await.response.status));
    })
    .await;
}

/// A form of more than 64 KiB: this field is too large.
fn swollen(form: &Form, field: &str) -> Form {
    with(form.clone(), field, &"x".repeat(70_000))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_whose_sign_in_ended_comes_back_with_what_was_typed() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let other = world.person("byeol").create().await;
        let register = "/developers/register";
        // Signed out elsewhere, signed out in another tab, and after the cookie of 12 hours.
        for ended in ["elsewhere", "another tab", "expired"] {
            let mut browser = signed_in(&world, &developer).await;
            let page = browser.open(register).await;
            let typed = with(form(&page, register), "name", "내 <봇>");
            let typed = with(typed, "redirectUris", "https://a.example/b");
            match ended {
                "elsewhere" => {
                    let path = "/platform/v1/channels/dev/browser-sessions";
                    world.operator(Request::delete(path)).await.content();
                }
                "another tab" => {
                    browser.submit(&form(&page, "/sign-out")).await.location();
                }
                _ => browser = world.browser(),
            }
            let answer = browser.submit(&typed).await;
            assert_eq!(answer.location(), "/sign-in?next=%2Fdevelopers%2Fregister", "{ended}");
            let sign_in = browser.open(answer.location()).await;
            assert!(sign_in.response.text().contains("로그인이 끝나 있었습니다."), "{ended}");
            // Another person does not see it.
            let mut stranger = browser.clone();
            let login = sign_in.form("login");
            let as_other = login.clone().fill("login", &other.login).fill("password", &other.password);
            stranger.submit(&as_other).await.location();
            assert!(!stranger.open(register).await.response.text().contains("내 &#60;봇&#62;"), "{ended}");

            let again = login.fill("login", &developer.login).fill("password", &developer.password);
            assert_eq!(browser.submit(&again).await.location(), register);
            let back = browser.open(register).await;
            assert_guarded(&back);
            let html = back.response.text();
            assert!(
                html.contains("내 &#60;봇&#62;") && html.contains("https://a.example/b"),
                "{ended}: {html}"
            );
            assert!(html.contains("다시 눌러 주세요"), "{ended}");
            // Nothing was done: the person presses again. It is shown once.
            assert!(!browser.open("/developers").await.response.text().contains("내 &#60;봇&#62;"));
            assert!(!browser.open(register).await.response.text().contains("내 &#60;봇&#62;"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_is_kept_for_an_hour_and_without_secrets() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let page = browser.open("/account/password").await;
        let typed = form(&page, "/account/password").fill("newPassword", "wolkenbruchig");
        let path = "/platform/v1/channels/dev/browser-sessions";
        world.operator(Request::delete(path)).await.content();
        let sign_in = browser.submit(&typed).await.location().to_owned();
        let login = browser.open(&sign_in).await.form("login");
        let login = login.fill("login", &developer.login).fill("password", &developer.password);
        assert_eq!(browser.submit(&login).await.location(), "/account/password");
        assert!(!browser.open("/account/password").await.response.text().contains("wolkenbruchig"));

        let page = browser.open("/developers/register").await;
        let typed = with(form(&page, "/developers/register"), "name", "spät");
        world.operator(Request::delete(path)).await.content();
        browser.submit(&typed).await.location();
        world.advance(std::time::Duration::from_secs(3_600));
        let login = browser.open("/sign-in").await.form("login");
        browser
            .submit(&login.fill("login", &developer.login).fill("password", &developer.password))
            .await
            .location();
        assert!(!browser.open("/developers/register").await.response.text().contains("spät"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_another_sign_in_of_the_same_person_is_shown_again() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let page = browser.open("/developers/register").await;
        let typed = with(form(&page, "/developers/register"), "name", "내 봇");
        // The person signs in again in another tab, which changes the cookie.
        let login = browser.open("/sign-in?again=1").await.form("login");
        browser
            .submit(&login.fill("login", &developer.login).fill("password", &developer.password))
            .await
            .location();
        let again = browser.submit(&typed).await;
        assert_eq!(again.response.status, 400);
        assert_guarded(&again);
        assert!(
            again
                .response
                .header("stagedoor-reason")
                .is_some_and(|reason| reason.starts_with("form-expired"))
        );
        let notice = "마지막 로그인이나 본인 확인보다 먼저 연 화면이라 아무것도 바뀌지 않았습니다.";
        assert!(again.response.text().contains(notice), "{}", again.response.text());
        let form = form(&again, "/developers/register");
        assert_eq!(form.field("name"), Some("내 봇"));
        let form = with(form, "redirectUris", "http://127.0.0.1:9/callback");
        assert_eq!(browser.submit(&form).await.response.status, 200, "the proof is new");
        // A form that was made for another person is not.
        let other = world.person("byeol").create().await;
        let mut stranger = signed_in(&world, &other).await;
        let refused = stranger.submit(&typed).await;
        assert!(refused.response.status == 400 && !refused.response.text().contains("내 봇"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_too_large_says_so_at_its_field() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        let settings = address(&app, "/settings");
        // A field of each kind; a form that has a page of its own, and one that has not.
        for (page, action, field) in [
            (settings.clone(), settings.clone(), "name"),
            (settings.clone(), settings.clone(), "redirectUris"),
            ("/developers/register".to_owned(), "/developers/register".to_owned(), "redirectUris"),
            (address(&app, "/manage"), address(&app, "/offer"), "login"),
            ("/studio/broadcast".to_owned(), "/studio/broadcast".to_owned(), "defaultLiveTitle"),
            ("/account/email".to_owned(), "/account/email".to_owned(), "email"),
        ] {
            let open = browser.open(&page).await;
            let answer = browser.submit(&swollen(&form(&open, &action), field)).await;
            assert_eq!(answer.response.status, 413, "{action}");
            let html = answer.response.text();
            let at_field = html.split(&format!("name=\"{field}\"")).nth(1).expect("the field");
            let at_field = at_field.split("</form>").next().expect("a form");
            assert!(at_field.contains("너무 큽니다."), "{action} {field}: {html}");
            assert!(!html.contains("앱이 보낸 로그인 요청"), "{action}");
            assert!(html.len() < 60_000, "what was too large is not repeated");
        }
        // A logo, as a browser sends it.
        let csrf = form(&browser.open(&settings).await, &address(&app, "/logo"));
        let csrf = csrf.field("csrf").expect("a proof").to_owned();
        let body = format!(
            "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n{csrf}\r\n--x\r\n\
             Content-Disposition: form-data; name=\"logo\"; filename=\"a.png\"\r\n\r\n{}\r\n--x--\r\n",
            "P".repeat(200_000)
        );
        let request = Request::post(address(&app, "/logo"))
            .header("Content-Type", "multipart/form-data; boundary=x")
            .body(body);
        let answer = browser.send(request).await;
        assert_eq!(answer.response.status, 413);
        let html = answer.response.text();
        assert!(
            html.split("name=\"logo\"").nth(1).is_some_and(|after| after.contains("너무 큽니다.")),
            "{html}"
        );
        // Without a sign-in, too.
        let mut stranger = world.browser();
        for (page, field) in [("/register", "channelName"), ("/reset-password", "account")] {
            let open = stranger.open(page).await;
            let answer = stranger.submit(&swollen(&form(&open, page), field)).await;
            assert_eq!(answer.response.status, 413, "{page}");
            assert!(!answer.response.text().contains("앱이 보낸 로그인 요청"), "{page}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_acts_of_developers_are_in_the_log_and_in_the_history_of_their_things() {
    both(Setup::default(), |world| async move {
        let (mut browser, path) = organization(&world).await;
        let id = path.rsplit('/').next().expect("an id").to_owned();
        let app = register(&mut browser, "봇", &id).await;
        choose(&mut browser, &app, &["user-read"]).await.location();
        let secrets = address(&app, "/secrets");
        let made = form(&browser.open(&secrets).await, &secrets);
        assert_eq!(browser.submit(&made).await.response.status, 200);
        let disable = super::developers::pressed(
            &browser.open(&address(&app, "/manage")).await,
            &address(&app, "/disabled"),
            "state",
            "disabled",
        );
        browser.submit(&disable).await.location();
        let log = async |subject: &str| -> Vec<Value> {
            let path = format!("/platform/v1/audit-log?subject={subject}");
            world.operator(Request::get(path)).await.content()["data"].as_array().expect("a list").clone()
        };
        let entries = log(&app.client_id).await;
        let actions: Vec<_> = entries.iter().map(|entry| entry["action"].as_str().expect("a word")).collect();
        assert_eq!(actions, ["application.disable", "secret.add", "application.scopes", "application.put"]);
        for entry in &entries {
            assert_eq!((&entry["actor"]["kind"], &entry["actor"]["id"]), (&"person".into(), &"dev".into()));
            assert_eq!(entry["subject"]["name"], "봇");
            assert!(entry["requestId"].is_string());
        }
        assert_eq!(log(&id).await[0]["action"], "organization.put");
        // Members see it, with their names; operators have none.
        let switch = format!("/platform/v1/applications/{}/disabled", app.client_id);
        world.operator(Request::put(switch)).await.content();
        for page in [address(&app, "/history"), format!("{path}/history")] {
            let history = browser.open(&page).await;
            assert_guarded(&history);
            let html = history.response.text();
            assert!(html.contains("<bdi class=\"strong\">dev</bdi>"), "{page}");
            assert_eq!(html.contains("<bdi class=\"strong\">운영자</bdi>"), page.contains("applications"));
        }
        let other = world.person("byeol").create().await;
        let mut stranger = signed_in(&world, &other).await;
        for page in [address(&app, "/history"), format!("{path}/history")] {
            assert_eq!(super::developers::status(&mut stranger, &page).await, 404);
        }
    })
    .await;
}

/// What was typed is kept by the names of the fields, so a password has a name that says so.
#[test]
fn every_password_field_is_called_a_password() {
    fn templates(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            match entry.is_dir() {
                true => templates(&entry, found),
                false => found.push(std::fs::read_to_string(entry).expect("a template")),
            }
        }
    }
    let mut found = Vec::new();
    templates(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../site/templates")), &mut found);
    let fields = found.iter().flat_map(|template| template.split("ui::field(").skip(1));
    let secret =
        fields.filter(|field| field.split(',').nth(1).is_some_and(|kind| kind.contains("\"password\"")));
    let names: Vec<_> = secret.filter_map(|field| field.split('"').nth(1)).collect();
    assert!(names.len() >= 3, "{names:?}");
    assert!(names.iter().all(|name| name.to_lowercase().contains("password")), "{names:?}");
}
