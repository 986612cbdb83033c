//! The page that catches redirects.

use testkit::{Browser, Connection, Page, Request};

use crate::cli::process::Sandbox;

const PAGE: &str = "/sandbox/catch";

/// The path and the query of a URL.
fn target(sandbox: &Sandbox, url: &str) -> String {
    let base = sandbox.world["baseUrl"].as_str().expect("a text");
    url.strip_prefix(base).unwrap_or(url).to_owned()
}

/// Signs a person in, from the first page to the redirect, which is opened.
async fn caught(sandbox: &Sandbox, browser: &mut Browser, begin: &str) -> Page {
    let person = sandbox.user(0, "demo").0;
    let page = browser.open(begin).await;
    let form = page.form("login").fill("login", &person.login).fill("password", &person.password);
    let mut page = browser.submit(&form).await;
    while page.response.status == 303 && !page.location().contains(PAGE) {
        page = browser.open(&target(sandbox, page.location())).await;
    }
    if page.response.status == 200 {
        page = browser.submit(&page.form("decision").press("decision", "allow")).await;
    }
    browser.open(&target(sandbox, page.location())).await
}

fn access_token(page: &Page) -> String {
    let text = page.response.text().replace("&quot;", "\"");
    let (_, rest) = text.split_once("\"accessToken\": \"").expect("a token");
    rest.split_once('"').expect("its end").0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_begun_caught_and_exchanged_without_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let mut browser = Browser::new(sandbox.api.address());
    let base = sandbox.world["baseUrl"].as_str().expect("a text");
    // Under another name of the same machine the cookie would be lost.
    let mut connection = Connection::open(sandbox.api.address()).await;
    connection.write(format!("GET {PAGE} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await;
    let elsewhere = connection.read_response(false).await.expect("an answer");
    assert_eq!(elsewhere.header("location"), Some(format!("{base}{PAGE}").as_str()));
    let start = browser.open(PAGE).await;
    let policy = start.response.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let begun = browser.submit(&start.form("clientId")).await;
    assert!(begun.location().starts_with("/account-interlock?clientId=demo&"), "{}", begun.location());

    let page = caught(&sandbox, &mut browser, begun.location()).await;
    assert!(
        page.response.text().contains("The state is the one that this page sent."),
        "{}",
        page.response.text()
    );
    let exchanged = browser.submit(&page.form("code")).await;
    let text = exchanged.response.text();
    assert!(text.contains(&format!("curl {base}/auth/v1/token")), "{text}");
    sandbox.api.me(&access_token(&exchanged)).await.content();
    assert!(browser.cookie("stagedoor_catch").is_none_or(str::is_empty));
    // A code works once.
    let again = browser.submit(&page.form("code")).await;
    assert!(again.response.text().contains("The code was refused"), "{}", again.response.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_state_is_named_and_not_exchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let mut browser = Browser::new(sandbox.api.address());
    let page = browser.open(&format!("{PAGE}?code=abc&state=%3Cb%3E")).await;
    assert!(page.response.text().contains("cannot be checked"), "{}", page.response.text());
    assert!(page.response.text().contains("&lt;b&gt;") && !page.response.text().contains("<b>"));
    page.form("code");
    browser.plant("stagedoor_catch", "1234.demo");
    let page = browser.open(&format!("{PAGE}?code=abc&state=5678")).await;
    assert!(page.response.text().contains("must refuse"), "{}", page.response.text());
    assert!(page.forms.is_empty());
    let page = browser.open(&format!("{PAGE}?error=access_denied&state=1234")).await;
    assert!(page.response.text().contains("access_denied"), "{}", page.response.text());

    for (path, origin, body, status, part) in [
        ("exchange", None, "state=1", 400, "code: "),
        ("exchange", None, "code=1", 400, "state: "),
        ("exchange", Some("https://evil.example"), "code=1&state=1", 403, "Origin"),
        ("start", None, "clientId=nothing", 400, "clientId: "),
        ("start", Some("null"), "", 403, "Origin"),
    ] {
        let mut request = Request::post(format!("{PAGE}/{path}"))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body.to_owned());
        if let Some(origin) = origin {
            request = request.header("Origin", origin);
        }
        let answer = sandbox.api.send(request).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.text());
        assert!(answer.text().contains(part), "{path} {body}: {}", answer.text());
    }
}
