//! The pages of the sign-in (`docs/spec/authorization.md#sign-in`): their protection, and their redirects.

use domain::Scope;
use serde_json::json;
use testkit::{Application, Browser, Form, Page, Request, Setup, World, both, encode, query_value};

use crate::fixture::Fixture;

const COOKIE: &str = "stagedoor_browser";
const HOST_COOKIE: &str = "__Host-stagedoor_browser";
const PATH: &str = "/account-interlock";

fn address(app: &Application, state: &str) -> String {
    address_to(&app.client_id, &app.redirect_uri, state)
}

fn address_to(client_id: &str, redirect_uri: &str, state: &str) -> String {
    format!(
        "{PATH}?clientId={}&redirectUri={}&state={}",
        encode(client_id),
        encode(redirect_uri),
        encode(state)
    )
}

fn sandbox() -> Setup {
    Setup { sandbox: true, ..Setup::default() }
}

/// An HTML error page, never a redirect, that repeats no value of the request.
#[track_caller]
fn assert_error_page(page: &Page, title: &str) {
    assert_eq!(page.response.status, 400, "{}", page.response.text());
    assert_eq!(page.response.header("location"), None);
    assert_eq!(page.response.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.response.text().contains(&format!("<h1>{title}</h1>")), "{}", page.response.text());
    assert_guarded(page, "form-action 'self'");
}

/// The headers that every page has.
#[track_caller]
fn assert_guarded(page: &Page, form_action: &str) {
    let header = |name| page.response.header(name).unwrap_or_default();
    let policy = header("content-security-policy");
    let directives: Vec<_> = policy.split("; ").collect();
    assert_eq!(directives.len(), 6, "{policy}");
    for directive in
        ["default-src 'none'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", form_action]
    {
        assert!(directives.contains(&directive), "{directive} in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    assert_eq!(header("x-frame-options"), "DENY");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_private(page);
}

#[track_caller]
fn assert_private(page: &Page) {
    assert_eq!(page.response.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.response.header("cache-control"), Some("no-store"));
    assert!(page.response.header("x-request-id").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_private_and_cannot_be_framed() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let form_action = "form-action 'self' http://127.0.0.1:9999";
        let mut browser = world.browser();
        let sign_in = browser.open(&address(&app, "s")).await;
        assert_guarded(&sign_in, form_action);
        assert_eq!(sign_in.response.header("content-type"), Some("text/html; charset=utf-8"));
        let form = sign_in.form("login").fill("login", &streamer.login);
        assert_guarded(&browser.submit(&form.clone().fill("password", "wrong")).await, form_action);
        let consent = browser.submit(&form.fill("password", &streamer.password)).await;
        assert_guarded(&consent, form_action);
        for decision in ["allow", "deny"] {
            let redirect = browser.submit(&consent.form("decision").press("decision", decision)).await;
            assert_private(&redirect);
            assert_eq!(redirect.response.status, 303);
            assert_eq!(redirect.response.text(), "");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_no_script_and_load_nothing_from_other_hosts() {
    both(sandbox(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let sign_in = browser.open(&address(&app, "s")).await;
        let consent = world.sign_in_page(&mut browser, &app, &streamer, "s").await;
        for page in [sign_in, consent] {
            let html = page.response.text();
            for forbidden in
                ["<script", "<iframe", "<object", "javascript:", " onclick", " style=\"", "src=\"http"]
            {
                assert!(!html.contains(forbidden), "{forbidden}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_is_http_only_same_site_and_secure_under_https() {
    for (base_url, end) in [(None, "SameSite=Lax"), (Some("https://api.example.com"), "SameSite=Lax; Secure")]
    {
        both(Setup { base_url, ..Setup::default() }, move |world| async move {
            let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
            let mut browser = world.browser();
            // With the prefix `__Host-`, no other host of the domain can set the cookie.
            let name = if base_url.is_some() { HOST_COOKIE } else { COOKIE };
            for page in [
                browser.open(&address(&app, "s")).await,
                world.sign_in_page(&mut browser, &app, &streamer, "s").await,
            ] {
                let cookie = page.response.header("set-cookie").expect("a cookie is set");
                let value = browser_value(cookie);
                assert_eq!(value.len(), 43);
                assert_eq!(cookie, format!("{name}={value}; Path=/; Max-Age=43200; HttpOnly; {end}"));
            }
        })
        .await;
    }
}

fn browser_value(set_cookie: &str) -> &str {
    set_cookie.split([';', '=']).nth(1).expect("a value")
}

#[tokio::test(flavor = "multi_thread")]
async fn allowing_redirects_with_a_code_and_denying_with_an_error() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let state = "한글 &=#+%/?;\"'<>\\ 👋\u{2028}";
        let mut browser = world.browser();
        let consent = world.sign_in_page(&mut browser, &app, &streamer, state).await;

        let denied = browser.submit(&consent.form("decision").press("decision", "deny")).await;
        let expected = format!("{}?error=access_denied&state={}", app.redirect_uri, encode(state));
        assert_eq!(denied.location(), expected);

        let allowed = browser.submit(&consent.form("decision").press("decision", "allow")).await;
        let code = query_value(allowed.location(), "code").expect("a code");
        let expected = format!("{}?code={code}&state={}", app.redirect_uri, encode(state));
        assert_eq!(allowed.location(), expected);
        world.exchange(&app, &code, state).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_address_keeps_the_query_that_it_has() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let uri = "https://bot.example:8443/call%20back?kept=%26&empty=";
        let app = world.application("other").redirect_uris(&[uri, "http://[::1]:9999/"]).create().await;
        let mut browser = world.browser();
        let consent = world.sign_in_page(&mut browser, &app, &streamer, "s").await;
        assert_guarded(&consent, "form-action 'self' https://bot.example:8443");
        let redirect = browser.submit(&consent.form("decision").press("decision", "allow")).await;
        assert!(redirect.location().starts_with(&format!("{uri}&code=")), "{}", redirect.location());
        let second = browser.open(&address_to("other", "http://[::1]:9999/", "s")).await;
        let redirect = browser.submit(&second.form("decision").press("decision", "deny")).await;
        assert_eq!(redirect.location(), "http://[::1]:9999/?error=access_denied&state=s");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_client_and_an_unregistered_address_get_an_error_page_and_never_a_redirect() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        for client_id in ["missing", "BOT", "bot ", "한글", &"x".repeat(500)] {
            let page = browser.open(&address_to(client_id, &app.redirect_uri, "s")).await;
            assert_error_page(&page, "알 수 없는 앱입니다");
        }
        let registered = &app.redirect_uri;
        for uri in [
            format!("{registered}/"),
            format!("{registered}?x=1"),
            format!("{registered}#"),
            registered.replace("callback", "Callback"),
            registered.replace("9999", "9998"),
            registered.replace(":9999", ""),
            registered.replace("127.0.0.1", "localhost"),
            registered.replace("http://", "HTTP://"),
            registered.replace("http://", "https://"),
            registered.replace("callback", "%63allback"),
            format!(" {registered}"),
            "https://evil.example/".to_owned(),
            "//evil.example/".to_owned(),
            "javascript:alert(1)".to_owned(),
        ] {
            let page = browser.open(&address_to("bot", &uri, "s")).await;
            assert_error_page(&page, "돌아갈 주소가 등록되어 있지 않습니다");
            assert!(!page.response.text().contains("evil"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_repeated_and_broken_parameters_get_an_error_page() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let uri = encode(&app.redirect_uri);
        let whole = format!("clientId=bot&redirectUri={uri}&state=s");
        let mut browser = world.browser();
        for query in [
            String::new(),
            format!("redirectUri={uri}&state=s"),
            "clientId=bot&state=s".to_owned(),
            format!("clientId=bot&redirectUri={uri}"),
            format!("clientId=bot&redirectUri={uri}&state="),
            format!("clientId=bot&redirectUri={uri}&STATE=s"),
            format!("{whole}&state=s"),
            format!("{whole}&clientId=bot"),
            format!("{whole}&redirectUri={uri}"),
            format!("{whole}&state=%ff"),
            format!("{whole}&x=%zz"),
            format!("{whole}%00"),
            format!("clientId=bot&redirectUri={uri}&state={}", "s".repeat(1_025)),
        ] {
            let page = browser.open(&format!("{PATH}?{query}")).await;
            assert_error_page(&page, "로그인 요청이 올바르지 않습니다");
        }
        let longest = format!("{PATH}?clientId=bot&redirectUri={uri}&state={}", "s".repeat(1_024));
        browser.open(&longest).await.form("login");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_needs_the_csrf_proof_of_its_browser_and_request() {
    both(sandbox(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let other = world.application("other").create().await;
        let mut browser = world.browser();
        let mine = world.sign_in_page(&mut browser, &app, &streamer, "s").await.form("decision");
        let mine = mine.press("decision", "allow");
        let proof = |form: &Form| form.field("csrf").expect("a proof").to_owned();

        let mut strangers_browser = world.browser();
        let strangers =
            world.sign_in_page(&mut strangers_browser, &app, &streamer, "s").await.form("decision");
        let other_app = browser.open(&address(&other, "s")).await.form("decision");
        let other_state = browser.open(&address(&app, "t")).await.form("decision");

        let forged = [
            mine.clone().without("csrf"),
            mine.clone().fill("csrf", ""),
            mine.clone().fill("csrf", &"A".repeat(43)),
            mine.clone().fill("csrf", &proof(&strangers)),
            mine.clone().fill("csrf", &proof(&other_app)),
            mine.clone().fill("csrf", &proof(&other_state)),
            Form { action: address(&app, "t"), ..mine.clone() },
            Form { action: address(&other, "s"), ..mine.clone() },
        ];
        for form in &forged {
            assert_error_page(&browser.submit(form).await, "화면이 만료되었습니다");
        }
        // The form without its cookies, and with another browser's cookies.
        assert_error_page(&world.browser().submit(&mine).await, "화면이 만료되었습니다");
        assert_error_page(&strangers_browser.submit(&mine).await, "화면이 만료되었습니다");
        // The same for the sign-in form.
        let sign_in = world.browser().open(&address(&app, "s")).await;
        let with_password =
            sign_in.form("login").fill("login", &streamer.login).fill("password", &streamer.password);
        let by_list = sign_in.form("person").press("person", &streamer.login);
        for form in [with_password, by_list] {
            assert_error_page(&world.browser().submit(&form).await, "화면이 만료되었습니다");
        }
        // The refused forms did not invalidate the real one.
        assert_eq!(browser.submit(&mine).await.response.status, 303);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_rotates_the_cookie_so_a_planted_one_is_worthless() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, viewer, .. } = Fixture::set_up(&world).await;
        let planted = world.browser().open(&address(&app, "s")).await;
        let planted = browser_value(planted.response.header("set-cookie").expect("a cookie")).to_owned();

        let mut victim = world.browser();
        victim.plant(COOKIE, &planted);
        world.sign_in_page(&mut victim, &app, &streamer, "s").await;
        assert_ne!(victim.cookie(COOKIE), Some(planted.as_str()));
        let mut attacker = world.browser();
        attacker.plant(COOKIE, &planted);
        attacker.open(&address(&app, "s")).await.form("login");

        // The old cookie also becomes invalid with the next sign-in.
        let before = victim.cookie(COOKIE).expect("a cookie").to_owned();
        let page = victim.open(&format!("{}&switch=1", address(&app, "s"))).await;
        let form = page.form("login").fill("login", &viewer.login).fill("password", &viewer.password);
        victim.submit(&form).await.form("decision");
        attacker.plant(COOKIE, &before);
        attacker.open(&address(&app, "s")).await.form("login");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_login_get_the_same_answer() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let form = browser.open(&address(&app, "s")).await.form("login");
        for (login, password) in [
            (streamer.login.as_str(), "wrong"),
            (streamer.login.as_str(), "PASSWORD OF HANEUL"),
            ("missing", streamer.password.as_str()),
            ("<script>\"'", "x"),
            (&"x".repeat(600), "x"),
            (streamer.login.as_str(), &"x".repeat(600)),
        ] {
            let page = browser.submit(&form.clone().fill("login", login).fill("password", password)).await;
            assert_eq!(page.response.status, 200);
            assert!(page.response.text().contains("아이디 또는 비밀번호가 올바르지 않습니다."), "{login}");
            let shown = page.form("login");
            assert_eq!((shown.field("login"), shown.field("password")), (Some(login), Some("")));
        }
        for (login, password) in [("", "x"), ("x", ""), ("", "")] {
            let page = browser.submit(&form.clone().fill("login", login).fill("password", password)).await;
            assert!(page.response.text().contains("아이디와 비밀번호를 모두 입력해 주세요."), "{login}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_consent_page_names_the_application_its_maker_its_scopes_and_the_person() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let organization = json!({ "organizationName": "모래상자 게임즈", "verified": true });
        let target = "/platform/v1/organizations/games";
        world.operator(Request::put(target).json(&organization)).await.content();
        let app = world
            .application("overlay")
            .with("name", "<b>오버레이</b> & \"친구\"")
            .with("organizationId", "games")
            .scopes(&[Scope::ChatRead, Scope::ChatWrite, Scope::Drops])
            .create()
            .await;
        let page = world.sign_in_page(&mut world.browser(), &app, &streamer, "s").await;
        let html = page.response.text();
        for part in ["하늘 🚀", "모래상자 게임즈", "인증된 기업", "127.0.0.1:9999", "허용", "거부"]
        {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<b>오버레이"), "names are text, not markup");
        assert!(html.contains("오버레이"));
        // 드롭스 belongs to the application itself, so users do not grant it.
        assert!(!html.contains("드롭스"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_can_be_chosen_before_the_consent() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, viewer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let consent = world.sign_in_page(&mut browser, &app, &streamer, "한글&").await;
        let sign_in = browser.open(&consent.link("다른 계정 사용")).await;
        let form = sign_in.form("login").fill("login", &viewer.login).fill("password", &viewer.password);
        let consent = browser.submit(&form).await;
        let redirect = browser.submit(&consent.form("decision").press("decision", "allow")).await;
        let code = query_value(redirect.location(), "code").expect("a code");
        let tokens = testkit::Tokens::of(&world.exchange(&app, &code, "한글&").await.content());
        assert_eq!(world.me(&tokens.access).await.content()["channelId"], "byeol");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_without_a_signed_in_person_shows_the_sign_in_page() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let mut form = browser.open(&address(&app, "s")).await.form("login");
        form.fields = vec![
            ("csrf".to_owned(), form.field("csrf").expect("a proof").to_owned()),
            ("decision".to_owned(), "allow".to_owned()),
        ];
        let page = browser.submit(&form).await;
        assert_eq!(page.response.status, 200);
        page.form("login");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_language_follows_the_link_then_the_browser_then_is_korean() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let plain = address(&app, "s");
        let english = format!("{plain}&lang=en");
        for (languages, target, expected) in [
            (None, &plain, "ko"),
            (Some("en-US,en;q=0.9,ko;q=0.8"), &plain, "en"),
            (Some("fr,ko;q=0.5"), &plain, "ko"),
            (Some("ko"), &english, "en"),
            (Some("\u{7f}garbage;;q=,"), &plain, "ko"),
        ] {
            let mut browser = world.browser();
            browser.accept_language =
                languages.filter(|l| l.is_ascii() && !l.contains('\u{7f}')).map(str::to_owned);
            let page = browser.open(target).await;
            assert!(page.response.text().contains(&format!("<html lang=\"{expected}\">")), "{languages:?}");
        }
        let mut browser = world.browser();
        let page = browser.open(&plain).await;
        let page = browser.open(&page.link("English")).await;
        assert!(page.response.text().contains("<html lang=\"en\">"));
        let page = browser.submit(&page.form("login").fill("login", "x").fill("password", "y")).await;
        assert!(page.response.text().contains("That username or password is not right."));
        let page = browser.open(&page.link("한국어")).await;
        assert!(page.response.text().contains("<html lang=\"ko\">"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_sandbox_lists_people_and_signs_in_without_a_password() {
    both(sandbox(), |world| async move {
        let Fixture { app, viewer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let page = browser.open(&address(&app, "s")).await;
        assert!(page.response.text().contains("하늘 🚀") && page.response.text().contains("별이"));
        let consent = browser.submit(&page.form("person").press("person", &viewer.login)).await;
        assert!(consent.response.text().contains("별이"));
        consent.form("decision");
    })
    .await;
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let page = browser.open(&address(&app, "s")).await;
        assert!(!page.response.text().contains("별이"));
        let mut form = page.form("login");
        form.fields.push(("person".to_owned(), viewer.login.clone()));
        let page = browser.submit(&form).await;
        page.form("login");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_forms_get_an_error_page() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let consent = world.sign_in_page(&mut browser, &app, &streamer, "s").await;
        let form = consent.form("decision");
        let proof = encode(form.field("csrf").expect("a proof"));
        for body in [
            &b""[..],
            b"csrf",
            b"\xff\xfe",
            b"%ff",
            b"{}",
            format!("csrf={proof}&decision=maybe").as_bytes(),
            format!("csrf={proof}&decision=allow&decision=deny").as_bytes(),
            format!("csrf={proof}&csrf={proof}&decision=allow").as_bytes(),
            &[b'x'; 64 * 1024 + 1],
        ] {
            let page = post(&world, &mut browser, &form.action, body).await;
            assert_eq!(page.response.status, 400, "{}", String::from_utf8_lossy(body));
            assert_eq!(page.response.header("location"), None);
            assert!(page.response.text().starts_with("<!DOCTYPE html>"));
        }
    })
    .await;
}

async fn post(_: &World, browser: &mut Browser, action: &str, body: &[u8]) -> Page {
    browser.send(Request::post(action).body(body)).await
}
