//! The page that catches redirects.

use serde_json::{Value, json};
use testkit::{Browser, Connection, Page, Request};

use crate::cli::process::{Sandbox, stagedoor_in};

const PAGE: &str = "/sandbox/catch";

/// The path and the query of a URL.
fn target(sandbox: &Sandbox, url: &str) -> String {
    let base = sandbox.world["baseUrl"].as_str().expect("a text");
    url.strip_prefix(base).unwrap_or(url).to_owned()
}

/// A browser with English as its language, which has opened the console.
async fn browser(sandbox: &Sandbox) -> Browser {
    let mut browser = Browser::new(sandbox.api.address());
    browser.accept_language = Some("en".to_owned());
    browser.open(&sandbox.console_link().await).await;
    browser
}

/// The redirect addresses of an application.
async fn addresses(sandbox: &Sandbox, client_id: &str) -> Value {
    let request = Request::get(format!("/platform/v1/applications/{client_id}"));
    sandbox.api.operator(request).await.content()["redirectUris"].clone()
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
    let text = page.response.text().replace("&#34;", "\"");
    let (_, rest) = text.split_once("\"accessToken\": \"").expect("a token");
    rest.split_once('"').expect("its end").0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_begun_caught_and_exchanged_without_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let mut browser = browser(&sandbox).await;
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
    let mut browser = browser(&sandbox).await;
    let page = browser.open(&format!("{PAGE}?code=abc&state=%3Cb%3E")).await;
    assert!(page.response.text().contains("cannot be checked"), "{}", page.response.text());
    assert!(page.response.text().contains("&#60;b&#62;") && !page.response.text().contains("<b>"));
    page.form("code");
    browser.plant("stagedoor_catch", "1234.demo");
    let page = browser.open(&format!("{PAGE}?code=abc&state=5678")).await;
    assert!(page.response.text().contains("must refuse"), "{}", page.response.text());
    assert!(page.forms.is_empty());
    browser.accept_language = Some("ko".to_owned());
    let korean = browser.open(&format!("{PAGE}?code=abc&state=5678")).await;
    let text = korean.response.text();
    assert!(text.contains("<html lang=\"ko\">") && text.contains("거절해야 합니다"), "{text}");
    browser.accept_language = Some("en".to_owned());
    let page = browser.open(&format!("{PAGE}?error=access_denied&state=1234")).await;
    assert!(page.response.text().contains("access_denied"), "{}", page.response.text());

    let cookie = sandbox.console_cookie().await;
    for (path, origin, body, status, part) in [
        ("exchange", None, "state=1", 400, "code: "),
        ("exchange", None, "code=1", 400, "state: "),
        ("exchange", Some("https://evil.example"), "code=1&state=1", 403, "Origin"),
        ("start", None, "clientId=nothing", 400, "clientId: "),
        ("start", Some("null"), "", 403, "Origin"),
    ] {
        let mut request = Request::post(format!("{PAGE}/{path}"))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Accept-Language", "en")
            .header("Cookie", &cookie)
            .body(body.to_owned());
        if let Some(origin) = origin {
            request = request.header("Origin", origin);
        }
        let answer = sandbox.api.send(request).await;
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.text());
        assert!(answer.text().contains(part), "{path} {body}: {}", answer.text());
    }
}

/// A form of a browser without the console's cookie.
fn form(path: &str, body: &str) -> Request {
    Request::post(format!("{PAGE}/{path}"))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Accept-Language", "en")
        .body(body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_without_the_cookie_gets_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let before = addresses(&sandbox, "demo").await;
    for (path, body) in [("exchange", "code=1&state=1"), ("start", "")] {
        let answer = sandbox.api.send(form(path, body)).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.text().contains("stagedoor open"), "{}", answer.text());
        assert!(!answer.text().contains(&sandbox.application("demo").client_secret));
    }
    assert_eq!(addresses(&sandbox, "demo").await, before);
    let cookie = sandbox.console_cookie().await;
    let answer = sandbox.api.send(form("exchange", "code=1&state=1").header("Cookie", cookie)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seeded_applications_have_the_page_and_it_knows_whose_a_code_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let base = sandbox.world["baseUrl"].as_str().expect("a text");
    let page = format!("{base}{PAGE}");
    let state = sandbox.api.operator(Request::get("/sandbox/v1/state")).await.content();
    for client_id in ["demo", "drops"] {
        let known = addresses(&sandbox, client_id).await;
        assert!(known.as_array().is_some_and(|known| known.contains(&json!(page))), "{known}");
    }
    // A program gets an address that it can listen at.
    let tokens = Request::post("/sandbox/v1/tokens").json(&json!({}));
    let tokens = sandbox.api.operator(tokens).await.content();
    assert_eq!(tokens["redirectUri"], "http://127.0.0.1:9999/callback");
    // The link of the second application was not begun on the page.
    let link = state["applications"][1]["signInUrl"].as_str().expect("a link");
    assert!(link.contains("sandbox%2Fcatch"), "{link}");
    let mut browser = browser(&sandbox).await;
    let page = caught(&sandbox, &mut browser, &target(&sandbox, link)).await;
    assert_eq!(page.form("code").body().split('&').next_back(), Some("clientId=drops"));
    let exchanged = browser.submit(&page.form("code")).await;
    sandbox.api.me(&access_token(&exchanged)).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_follows_a_world_to_its_port() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let kept = ["--data", data.to_str().expect("UTF-8")];
    let first = Sandbox::start(folder.path(), &kept).await;
    let forked = Request::post("/sandbox/v1/worlds").json(&json!({ "from": "main" }));
    let forked = first.api.operator(forked).await.content();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let fork = testkit::Api::new(&text(&forked["baseUrl"]), &text(&forked["operatorKey"]));
    let of_fork = fork.operator(Request::get("/platform/v1/applications/demo")).await.content();
    let expected = |base: &Value| json!(format!("{}{PAGE}", text(base)));
    let has = |list: &Value, uri: &Value| list.as_array().is_some_and(|list| list.contains(uri));
    assert!(has(&of_fork["redirectUris"], &expected(&forked["baseUrl"])), "{of_fork}");
    assert!(!has(&of_fork["redirectUris"], &expected(&first.world["baseUrl"])), "{of_fork}");
    first.signal("TERM").await;
    assert!(first.end().await.0.success());
    let again = Sandbox::start(folder.path(), &kept).await;
    assert!(has(&addresses(&again, "demo").await, &expected(&again.world["baseUrl"])));
    assert_eq!(addresses(&again, "demo").await.as_array().map(Vec::len), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_world_file_says_whether_its_applications_have_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("world.yaml");
    let applications = "applications:\n  - clientId: own\n    redirectUris: ['http://localhost:3000/callback']\n  \
                        - { clientId: page, catchRedirects: true }\n  - { clientId: none }\n";
    let people = "people:\n  - { channelId: mina, channelName: Mina }\n";
    std::fs::write(&path, format!("{people}{applications}")).expect("a file");
    let mut dev = stagedoor_in(folder.path(), &["dev", "--json", "--listen", "127.0.0.1:0", "--world"]);
    dev.arg(&path).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let sandbox = Sandbox::of(dev, folder.path().join("log")).await;
    let page = format!("{}{PAGE}", sandbox.world["baseUrl"].as_str().expect("a text"));
    assert_eq!(addresses(&sandbox, "own").await, json!(["http://localhost:3000/callback"]));
    assert_eq!(addresses(&sandbox, "page").await, json!([page]));
    assert_eq!(addresses(&sandbox, "none").await, json!([]));
    // An application with the page alone has tokens too.
    sandbox.api.me(&sandbox.user(0, "page").1.access).await.content();
    let file = sandbox.api.operator(Request::get("/sandbox/v1/worlds/main/export?as=json")).await.content();
    let item =
        file["applications"].as_array().and_then(|all| all.iter().find(|one| one["clientId"] == "page"));
    assert_eq!(
        item.map(|item| (&item["catchRedirects"], &item["redirectUris"])),
        Some((&json!(true), &Value::Null))
    );
}
