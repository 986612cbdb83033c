//! The forms of the documentation that send a request in a sandbox, and only there.

use testkit::{Browser, Form, Page, Request, Setup, both};
use web::documents::page_addresses;

use crate::cli::process::Sandbox;

const TRY: &str = "/sandbox/try";
const FORM: &str = "application/x-www-form-urlencoded";

/// The form of an operation.
fn form_of(page: &Page, target: &str) -> Form {
    let form = page.forms.iter().find(|form| form.action == TRY && form.field("target") == Some(target));
    form.unwrap_or_else(|| panic!("no form for {target}")).clone()
}

/// Posts a form as a browser does from a page of the sandbox.
async fn send(browser: &mut Browser, origin: &str, body: String) -> (u16, String) {
    let request = Request::post(TRY).header("Content-Type", FORM).header("Origin", origin);
    let answer = browser.send(request.body(body)).await.response;
    (answer.status, answer.text().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_sandbox_sends_a_request_as_a_person_and_sees_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let origin = format!("http://{}", sandbox.api.address());
    let mut browser = Browser::new(sandbox.api.address());
    browser.accept_language = Some("en".to_owned());
    browser.open(&sandbox.console_link().await).await;
    let page = browser.open("/docs/chat").await;
    assert!(page.response.text().contains("<meta name=\"referrer\" content=\"same-origin\">"));
    let form = form_of(&page, "/open/v1/chats/send").fill("user", "streamer-haneul").fill("client", "demo");
    let body = format!("{}&body={}", form.body(), testkit::encode(r#"{"message":"<b>hi</b> & more"}"#));
    let (status, html) = send(&mut browser, &origin, body).await;
    assert!(status == 200 && html.contains("200 OK") && html.contains("messageId"), "{html}");
    assert!(html.contains("x-request-id") && html.contains("ratelimit-remaining"), "{html}");
    let wrong = format!("{}&body={}", form.body(), testkit::encode(r#"{"message":"","<i>":1}"#));
    let (status, html) = send(&mut browser, &origin, wrong).await;
    assert!(
        status == 200 && html.contains("400 Bad Request") && html.contains("invalid; field=message"),
        "{html}"
    );

    let drops = browser.open("/docs/drops").await;
    let form = drops.forms.iter().find(|form| form.field("mode") == Some("client")).expect("a form").clone();
    let form = form.fill("client", "drops").fill("target", "/open/v1/drops/reward-claims?page.size=2");
    let (_, html) = send(&mut browser, &origin, form.fill("method", "GET").body()).await;
    assert!(html.contains("first-voyage"), "{html}");
    let key = sandbox.world["operatorKey"].as_str().expect("a text");
    let page = browser.open("/docs/platform-operation").await;
    let form = form_of(&page, "/platform/v1/keys?size=20");
    let (_, html) = send(&mut browser, &origin, form.clone().fill("key", key).body()).await;
    assert!(html.contains("200 OK"), "{html}");
    let (_, html) = send(&mut browser, &origin, form.fill("key", "wrong").body()).await;
    assert!(html.contains("operator-key-wrong"), "{html}");
    // Words of an example stand for values of the chosen application.
    let body = "method=POST&mode=none&client=demo&target=/auth/v1/token&body=".to_owned()
        + &testkit::encode(
            r#"{"grantType":"refresh_token","clientId":"demo","clientSecret":"CLIENT_SECRET","refreshToken":"REFRESH_TOKEN"}"#,
        );
    let (_, html) = send(&mut browser, &origin, body).await;
    assert!(html.contains("accessToken"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_sent_only_for_a_page_of_the_sandbox_and_only_to_the_api() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let origin = format!("http://{}", sandbox.api.address());
    let mut browser = Browser::new(sandbox.api.address());
    browser.open(&sandbox.console_link().await).await;
    let good = "method=GET&mode=user&user=haneul&client=demo&target=";
    for (target, status) in [
        ("/open/v1/users/me", 200),
        ("/sandbox/v1/state", 400),
        ("/open/v1/../../sandbox/v1/state", 200),
        ("http://127.0.0.1:1/open/v1/users/me", 400),
        ("//evil.example/open/v1/", 400),
        ("/open/v1/users/me%0d%0aX: y", 400),
        ("", 400),
    ] {
        let (answered, html) =
            send(&mut browser, &origin, format!("{good}{}", testkit::encode(target))).await;
        assert_eq!(answered, status, "{target}: {html}");
        assert!(!html.contains("nextCheckMs") && !html.contains("applications"), "{target}: {html}");
    }
    for (fields, message) in [
        ("method=TRACE&mode=none&target=/open/v1/lives", "method"),
        ("method=GET&mode=user&user=%3Cscript%3E&target=/open/v1/users/me", "&#60;script&#62;"),
        ("method=GET&mode=user&client=nobody&target=/open/v1/users/me", "nobody"),
        ("method=GET&mode=operator&key=%0a%01&target=/platform/v1/keys", "key"),
    ] {
        let (status, html) = send(&mut browser, &origin, fields.to_owned()).await;
        assert!(status == 400 && html.contains(message) && !html.contains("<script>"), "{fields}: {html}");
    }
    let good = format!("{good}/open/v1/users/me");
    for (name, value) in
        [("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")]
    {
        let request = Request::post(TRY).header("Content-Type", FORM).header(name, value);
        assert_eq!(browser.send(request.body(good.clone())).await.response.status, 403, "{name}: {value}");
    }
    let without_cookie = Request::post(TRY).header("Content-Type", FORM).body(good);
    assert_eq!(sandbox.api.send(without_cookie).await.status, 401);
    assert_eq!(browser.open(TRY).await.response.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_no_such_form() {
    both(Setup::default(), |world| async move {
        for address in page_addresses() {
            let page = world.send(Request::get(&address)).await;
            assert!(!page.text().contains(TRY), "{address}");
        }
        world.send(Request::post(TRY).body("method=GET")).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}
