//! Signing in and out without an application (`/sign-in`, `/sign-out`).

use testkit::{Form, Request, Setup, both};

use super::assert_guarded;
use crate::fixture::Fixture;

const COOKIE: &str = "stagedoor_browser";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_is_named_on_the_pages_and_signs_out() {
    both(Setup::default(), |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let page = browser.open("/sign-in?next=%2Fdocs%3Flang%3Dko").await;
        assert_guarded(&page);
        let before = browser.cookie(COOKIE).expect("a cookie").to_owned();
        let form = page.form("login").fill("login", &streamer.login).fill("password", &streamer.password);
        assert_eq!(browser.submit(&form).await.location(), "/docs?lang=ko");
        assert_ne!(browser.cookie(COOKIE), Some(before.as_str()), "a planted cookie is worthless");

        let landing = browser.open("/").await;
        assert!(landing.response.text().contains(&format!("<bdi class=\"line\">{}</bdi>", streamer.name)));
        assert_eq!(browser.open("/sign-in?next=/docs").await.location(), "/docs");
        // It is the sign-in of applications, too.
        let query =
            format!("clientId={}&redirectUri={}&state=s", app.client_id, testkit::encode(&app.redirect_uri));
        browser.open(&format!("/account-interlock?{query}")).await.form("decision");

        let signed_in = browser.cookie(COOKIE).expect("a cookie").to_owned();
        let sign_out = landing.forms.iter().find(|form| form.action == "/sign-out").expect("a form");
        assert_eq!(browser.submit(sign_out).await.location(), "/");
        let after = browser.open("/").await;
        assert!(after.response.text().contains("<p class=\"flash\" role=\"status\"><span>로그아웃했습니다."));
        assert!(!after.response.text().contains(&streamer.name));
        assert!(
            !browser.open("/").await.response.text().contains("class=\"flash\""),
            "a notice is shown once"
        );
        browser.plant(COOKIE, &signed_in);
        assert!(!browser.open("/").await.response.text().contains(&streamer.name), "the old cookie is dead");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_never_leads_to_another_host() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        for next in [
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "javascript:alert(1)",
            "/a\r\nSet-Cookie: x=y",
            "",
        ] {
            let mut browser = world.browser();
            let address = format!("/sign-in?next={}", testkit::encode(next));
            let page = browser.open(&address).await;
            let form = page.form("login").fill("login", &streamer.login).fill("password", &streamer.password);
            assert_eq!(browser.submit(&form).await.location(), "/", "{next:?}");
            assert_eq!(browser.open(&address).await.location(), "/", "{next:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_need_the_proof_of_their_browser_and_page() {
    both(Setup { sandbox: true, ..Setup::default() }, |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let page = browser.open("/sign-in").await;
        let sign_in = page.form("login").fill("login", &streamer.login).fill("password", &streamer.password);
        let picked = page.form("person").press("person", &streamer.login);
        let foreign = world.browser().open("/sign-in").await.form("login");
        let foreign = foreign.field("csrf").expect("a proof").to_owned();
        let refused = |form: Form, mut from: testkit::Browser| async move {
            let page = from.submit(&form).await;
            assert_eq!(page.response.status, 400, "{}", page.response.text());
            assert!(page.response.text().contains("화면이 만료되었습니다"));
        };
        for form in [&sign_in, &picked] {
            refused(form.clone().without("csrf"), browser.clone()).await;
            refused(form.clone().fill("csrf", ""), browser.clone()).await;
            refused(form.clone().fill("csrf", &foreign), browser.clone()).await;
            refused(Form { action: "/sign-out".to_owned(), ..form.clone() }, browser.clone()).await;
            refused(form.clone(), world.browser()).await;
        }
        assert_eq!(browser.submit(&picked).await.location(), "/account", "the start page is the console");
        let landing = browser.open("/").await;
        let sign_out = landing.forms.iter().find(|form| form.action == "/sign-out").expect("a form").clone();
        refused(sign_out.clone().without("csrf"), browser.clone()).await;
        refused(sign_out, world.browser()).await;
        assert!(
            browser.open("/").await.response.text().contains(&streamer.name),
            "the person is still signed in"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_are_answered_alike_and_limited_with_those_of_applications() {
    let setup = Setup { quotas: true, ..Setup::default() };
    both(setup, |world| async move {
        let Fixture { app, streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let form = browser.open("/sign-in").await.form("login");
        for (login, password) in [(&*streamer.login, "wrong"), ("missing", "wrong"), (&*streamer.login, "")] {
            let page = browser.submit(&form.clone().fill("login", login).fill("password", password)).await;
            assert_eq!(page.response.status, 200);
            let shown = page.form("login");
            assert_eq!((shown.field("login"), shown.field("password")), (Some(login), Some("")));
        }
        // The streamer signed in from here before, so those tries count apart.
        for _ in 0..9 {
            browser.submit(&form.clone().fill("login", "missing").fill("password", "x")).await;
        }
        let limited = browser.submit(&form.clone().fill("login", "missing").fill("password", "x")).await;
        assert_eq!(limited.response.status, 429);
        assert!(limited.response.header("retry-after").is_some());
        let query = format!("clientId={}&redirectUri={}", app.client_id, testkit::encode(&app.redirect_uri));
        let other = browser.open(&format!("/account-interlock?{query}&state=s")).await;
        let other = other.form("login").fill("login", "missing").fill("password", "x");
        assert_eq!(browser.submit(&other).await.response.status, 429);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_sandbox_lists_people() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let mut browser = world.browser();
        let page = browser.open("/sign-in").await;
        assert!(!page.response.text().contains("name=\"person\""));
        let csrf = page.form("login").field("csrf").expect("a proof").to_owned();
        let body = format!("csrf={}&person={}", testkit::encode(&csrf), streamer.login);
        let form = Request::post("/sign-in").header("Content-Type", "application/x-www-form-urlencoded");
        let answer = browser.send(form.body(body)).await;
        assert_eq!(answer.response.status, 200, "the form is shown again");
    })
    .await;
}
