//! The console: who gets in, what its forms do, and what it shows of texts that anybody can set.

use serde_json::{Value, json};
use testkit::{Browser, Connection, Page, Request, Response};

use crate::cli::process::{Sandbox, run, stagedoor};

const FORM: &str = "application/x-www-form-urlencoded";
const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'";

/// A browser that has opened the console.
async fn browser(sandbox: &Sandbox) -> (Browser, Page) {
    let mut browser = Browser::new(sandbox.api.address());
    browser.accept_language = Some("en".to_owned());
    assert_eq!(browser.open(&sandbox.console_link().await).await.location(), "/");
    let page = browser.open("/").await;
    assert_eq!(page.response.status, 200, "{}", page.response.text());
    (browser, page)
}

fn origin(sandbox: &Sandbox) -> String {
    format!("http://{}", sandbox.api.address())
}

/// Sends a form that stands for a call of the API.
async fn act(sandbox: &Sandbox, browser: &mut Browser, call: &str, fields: &str) -> Response {
    let target = format!("/sandbox/console/act?call={}", call.replace(' ', "+"));
    let request = Request::post(target).header("Content-Type", FORM).header("Origin", origin(sandbox));
    browser.send(request.body(fields)).await.response
}

async fn clock(sandbox: &Sandbox) -> Value {
    sandbox.api.operator(Request::get("/sandbox/v1/clock")).await.content()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_works_once_gives_a_cookie_that_only_own_pages_can_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let link = sandbox.console_link().await;
    let mut browser = Browser::new(sandbox.api.address());
    browser.accept_language = Some("en".to_owned());
    let opened = browser.open(&link).await;
    let cookie = opened.response.header("set-cookie").expect("a cookie").to_owned();
    assert_eq!(browser.open(&link).await.location(), "/", "who has the cookie is led on");
    // The port alone, a used address and a made-up one open nothing, also on this machine.
    for path in ["/", &link, "/sandbox/console/open?token=00", "/sandbox/console/open"] {
        let stranger = Browser::new(sandbox.api.address()).open(path).await.response;
        assert_eq!((stranger.status, stranger.header("set-cookie")), (401, None), "{path}");
    }
    let form =
        |path: &str| Request::post(path).header("Content-Type", FORM).header("Origin", origin(&sandbox));
    for path in ["/sandbox/try", "/sandbox/catch/exchange", "/sandbox/catch/start"] {
        let refused = sandbox.api.send(form(path).body("method=GET&target=/open/v1/lives")).await;
        assert_eq!(refused.status, 401, "{path}");
    }
    let page = browser.open("/").await;
    assert!(
        cookie.contains("HttpOnly; SameSite=Strict") && cookie.starts_with("stagedoor_console_"),
        "{cookie}"
    );
    let policy = page.response.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    let key = sandbox.world["operatorKey"].as_str().expect("a key");
    assert!(!page.response.text().contains(key) && !cookie.contains(key), "the key stays with the operator");

    let clock = || Request::get("/sandbox/v1/clock");
    assert_eq!(browser.send(clock()).await.response.status, 200);
    let elsewhere = [
        ("Origin", "http://evil.example"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ];
    for (name, value) in elsewhere {
        assert_eq!(browser.send(clock().header(name, value)).await.response.status, 403, "{name}: {value}");
        let live = Request::get("/sandbox/console/live").header(name, value);
        assert_eq!(browser.send(live).await.response.status, 403, "{name}: {value}");
    }
    let freeze = |target: &str| Request::post(target).header("Content-Type", FORM).body("mode=frozen");
    let forms = "/sandbox/console/act?call=POST+/sandbox/v1/clock";
    for target in [forms, "/sandbox/v1/clock"] {
        assert_eq!(browser.send(freeze(target)).await.response.status, 403, "without an origin: {target}");
        let stranger = freeze(target).header("Origin", "http://127.0.0.1:1");
        assert_eq!(browser.send(stranger).await.response.status, 403, "another port: {target}");
        let without_cookie = sandbox.api.send(freeze(target).header("Origin", origin(&sandbox))).await;
        assert_eq!(without_cookie.status, 401, "without a cookie: {target}");
    }
    assert_eq!(self::clock(&sandbox).await["mode"], "real");
    assert_eq!(act(&sandbox, &mut browser, "POST /sandbox/v1/clock", "mode=frozen").await.status, 200);
    assert_eq!(self::clock(&sandbox).await["mode"], "frozen");
    // No request of the console is recorded.
    let records = sandbox.api.operator(Request::get("/sandbox/v1/log?kind=request")).await.content();
    assert_eq!(records["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_key_opens_the_console_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let mut browser = Browser::new(sandbox.api.address());
    let proxied = || Request::get("/").header("X-Forwarded-For", "192.0.2.1");
    let asked = browser.send(proxied()).await;
    assert_eq!((asked.response.status, asked.response.header("set-cookie")), (401, None));
    let form = asked.form("key");
    let secret = sandbox.application("demo").client_secret;
    assert!(!asked.response.text().contains(&secret));
    for wrong in ["", "wrong", &secret] {
        let answer = browser.submit(&form.clone().fill("key", wrong)).await;
        assert_eq!((answer.response.status, answer.response.header("set-cookie")), (401, None));
    }
    let key = sandbox.world["operatorKey"].as_str().expect("a key");
    assert_eq!(browser.submit(&form.fill("key", key)).await.location(), "/");
    let page = browser.send(proxied()).await.response;
    assert_eq!(page.status, 200);
    assert!(page.text().contains(&secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_call_the_api_and_the_page_says_what_came_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let mut socket = sandbox.api.open_user_session(&tokens.access).await;
    let session = socket.session_key().to_owned();
    sandbox.api.subscribe(&tokens.access, "donation", &session).await.content();
    socket.system("subscribed").await;
    let (mut browser, page) = browser(&sandbox).await;
    assert!(page.response.text().contains(&session), "the page shows the session");
    let form =
        page.forms.iter().find(|form| form.action.ends_with("/trigger/donation")).expect("a form").clone();
    let request = Request::post(&form.action).header("Content-Type", FORM).header("Origin", origin(&sandbox));
    let answer = browser.send(request.body(form.fill("amount", "5000").body())).await.response;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("Sessions that it was delivered to: 1"), "{}", answer.text());
    assert_eq!(socket.event("DONATION").await["payAmount"], "5000");

    let fault =
        "_choice=status&do.status:number@status=429&do.delay@delay=2s&match.path=/open/v1/*&times:number=1";
    assert_eq!(act(&sandbox, &mut browser, "POST /sandbox/v1/faults", fault).await.status, 200);
    let rules = sandbox.api.operator(Request::get("/sandbox/v1/faults")).await.content();
    let rule = &rules["data"][0];
    assert_eq!((&rule["do"]["status"], &rule["times"]), (&json!(429), &json!(1)));
    assert_eq!(rule["match"], json!({ "path": "/open/v1/*" }));
    for (call, fields, status, message) in [
        ("POST /sandbox/v1/clock", "advance=soon", 400, "advance: must be a duration"),
        ("POST /sandbox/v1/trigger/chat", "channel=nobody", 400, "channel: no channel is called nobody"),
        ("GET /sandbox/v1/state", "", 400, "call: must be POST or DELETE"),
        ("POST /platform/v1/channels", "", 400, "call: must be POST or DELETE"),
        ("DELETE /sandbox/v1/faults/none", "", 404, "no fault rule has the id none"),
    ] {
        let answer = act(&sandbox, &mut browser, call, fields).await;
        assert_eq!(answer.status, status, "{call}");
        assert!(answer.text().contains(message), "{call}: {}", answer.text());
    }
    // A sign-in leads to the consent of the application, as this person.
    let sign_in = Request::post("/sandbox/console/sign-in").header("Content-Type", FORM);
    let sign_in = sign_in.header("Origin", origin(&sandbox)).body("user=viewer-mina&client=demo");
    let target = browser.send(sign_in).await.location().to_owned();
    let consent = browser.open(&target).await;
    assert!(consent.response.text().contains("Mina") && consent.response.text().contains("decision"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_world_is_reset_copied_and_imported_by_forms() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (mut browser, _) = browser(&sandbox).await;
    let chat = act(&sandbox, &mut browser, "POST /sandbox/v1/trigger/follow", "channel=sol&from=mina").await;
    assert_eq!(chat.status, 200);
    let reset = act(&sandbox, &mut browser, "POST /sandbox/v1/worlds/main/reset", "").await;
    assert_eq!((reset.status, reset.header("location")), (303, Some("/#worlds")));
    let page = browser.open("/").await.response;
    assert!(page.status == 200 && !page.text().contains("k-trigger"), "the record begins again");
    // A page that was open before asks for records after a mark that the new record does not have yet.
    act(&sandbox, &mut browser, "POST /sandbox/v1/trigger/follow", "channel=sol&from=mina").await;
    let cookie = browser.open("/").await.response.header("set-cookie").map(str::to_owned);
    assert_eq!(cookie, None, "the cookie stays valid");

    let file = "people:\n  - { channelId: mina, channelName: Mina }\n";
    let fields = format!("name=small&_body={}", form_encoded(file));
    let imported = act(&sandbox, &mut browser, "POST /sandbox/v1/worlds/import", &fields).await;
    assert!(imported.status == 200 && imported.text().contains("small"), "{}", imported.text());
    let copied = act(&sandbox, &mut browser, "POST /sandbox/v1/worlds", "name=copy&from=small").await;
    assert_eq!(copied.status, 200, "{}", copied.text());
    for (call, fields, message) in [
        ("POST /sandbox/v1/worlds/import", "_body=people%3A+none", "body: line 1, column 9: must be a list"),
        ("POST /sandbox/v1/worlds/import", "name=small&_body=%7B%7D", "name: there is a world small already"),
        ("POST /sandbox/v1/worlds", "from=nothing", "from: there is no snapshot and no world nothing"),
    ] {
        let answer = act(&sandbox, &mut browser, call, fields).await;
        assert!(answer.status >= 400 && answer.text().contains(message), "{fields}: {}", answer.text());
    }
    let page = browser.open("/").await.response;
    let text = page.text();
    assert!(text.contains("/sandbox/v1/worlds/copy/export?as=yaml") && text.contains("world small</option>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_anybody_are_only_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let channel = json!({ "channelName": HOSTILE, "login": "hostile", "password": "a password" });
    sandbox.api.operator(Request::put("/platform/v1/channels/hostile").json(&channel)).await.content();
    let application = json!({ "name": "<script>alert(2)</script>", "redirectUris": ["http://127.0.0.1/<b>"], "scopes": [] });
    let put = Request::put("/platform/v1/applications/hostile").json(&application);
    let _ = sandbox.api.operator(put).await;
    let (mut browser, _) = browser(&sandbox).await;
    let fields = format!("channel=hostile&message={}&_title={0}", form_encoded(HOSTILE));
    let answer = act(&sandbox, &mut browser, "POST /sandbox/v1/trigger/chat", &fields).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let filter =
        browser.open(&format!("/?channel={0}&kind={0}&where={0}", form_encoded(HOSTILE))).await.response;
    for page in [answer.text(), filter.text(), browser.open("/").await.response.text()] {
        assert!(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"), "the text is shown");
        assert_eq!(page.matches("<script").count(), 1, "only the console's own script");
        assert!(!page.contains("<img") && !page.contains("onerror=alert(1)>'\""));
    }
    let live = browser.send(Request::get("/sandbox/console/live?kind=nothing")).await.response;
    assert_eq!(live.status, 400, "a wrong filter is refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_is_sent_live() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let mut browser = Browser::new(sandbox.api.address());
    let opened = browser.open(&sandbox.console_link().await).await;
    let cookie =
        opened.response.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a cookie");
    let mut connection = Connection::open(sandbox.api.address()).await;
    let live = Request::get("/sandbox/console/live?lang=en&kind=trigger&after=0").header("Cookie", cookie);
    connection.begin(&live).await;
    let first = String::from_utf8(connection.until(b"options-sessions").await).expect("a text");
    assert!(first.contains("text/event-stream") && first.contains("people-list"), "{first}");
    let trigger =
        Request::post("/sandbox/v1/trigger/follow").json(&json!({ "channel": "sol", "from": "mina" }));
    sandbox.api.operator(trigger).await.content();
    let rows = String::from_utf8(connection.until(b"viewer-mina").await).expect("a text");
    assert!(rows.contains("event: rows") && rows.contains("k-trigger"), "{rows}");
    // A rule is not recorded, but the page that added it shows it.
    let fault = "_choice=cut&do.cut@cut=after";
    assert_eq!(act(&sandbox, &mut browser, "POST /sandbox/v1/faults", fault).await.status, 200);
    connection.until(b"cut after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_language_is_the_chosen_one_and_files_are_kept_by_their_hash() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (mut browser, page) = browser(&sandbox).await;
    let is_korean = |page: &Page| page.response.text().contains("<html lang=\"ko\">");
    assert!(!is_korean(&page));
    let href = page.link("한국어").replace("&amp;", "&").replace("&#38;", "&");
    assert!(is_korean(&browser.open(&href).await) && is_korean(&browser.open("/").await));

    let text = page.response.text();
    let script =
        text.split("<script src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a script");
    let file = sandbox.api.send(Request::get(script)).await;
    assert_eq!(file.header("cache-control"), Some("public, max-age=31536000, immutable"));
    let tag = file.header("etag").expect("a tag").to_owned();
    let again =
        sandbox.api.send(Request::get("/sandbox/console/script.js").header("If-None-Match", tag)).await;
    assert_eq!((again.status, again.header("cache-control")), (304, Some("no-cache")));
    assert_eq!(sandbox.api.send(Request::post("/")).await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_has_everything_with_its_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let state = || async { sandbox.api.operator(Request::get("/sandbox/v1/state")).await.content() };
    let before = state().await;
    assert_eq!(before["people"].as_array().map(Vec::len), Some(8));
    assert_eq!(before["applications"][0]["clientSecret"], json!(sandbox.application("demo").client_secret));
    assert_eq!(before["lives"][0]["channelId"], "streamer-haneul");
    assert_eq!((&before["sessions"], &before["webhooks"]), (&json!([]), &json!([])));
    let (person, tokens) = sandbox.user(0, "demo");
    let socket = sandbox.api.open_user_session(&tokens.access).await;
    sandbox.api.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
    let session = state().await["sessions"][0].clone();
    assert_eq!(session["sessionKey"], socket.session_key());
    let subscribed = json!([{ "eventType": "CHAT", "channelId": person.channel_id }]);
    assert_eq!(session["subscribedEvents"], subscribed);
    assert_eq!(sandbox.api.send(Request::get("/sandbox/v1/state")).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_scenarios_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let file = folder.path().join("two.yaml");
    let steps = "steps:\n  - trigger: { kind: chat }\n  - trigger: { kind: chat, channel: nobody }\n";
    std::fs::write(&file, format!("scenario: two\nabout: Two steps.\n{steps}")).expect("a file");
    let base = sandbox.world["baseUrl"].as_str().expect("a URL");
    let mut command = stagedoor(&["scenario", "run", "--server", base, file.to_str().expect("a path")]);
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a key"));
    assert_eq!(run(command).await.status.code(), Some(1));
    let runs = sandbox.api.operator(Request::get("/sandbox/v1/runs")).await.content();
    let found = &runs["data"][0];
    assert_eq!(
        (&found["name"], &found["passed"], &found["steps"]),
        (&json!("two"), &json!(false), &json!(2))
    );
    let (_, page) = browser(&sandbox).await;
    assert!(page.response.text().contains("no channel is called nobody"), "the page has the failure");
    let wrong = Request::post("/sandbox/v1/runs").json(&json!({ "name": "x".repeat(2_001) }));
    assert_eq!(sandbox.api.operator(wrong).await.status, 400);
}

fn form_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
