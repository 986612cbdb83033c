//! What ids and words are, and the pages that a command opens.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Request, Response, patiently};

use crate::cli::process::{Sandbox, run, stagedoor_in};

async fn sandbox(folder: &Path) -> Sandbox {
    let log = folder.join("log");
    let mut command = stagedoor_in(folder, &["dev", "--json", "--listen", "0"]);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
    Sandbox::of(command, log).await
}

async fn ask(sandbox: &Sandbox, what: &str) -> Response {
    sandbox.api.operator(Request::get(format!("/sandbox/v1/explain?what={what}"))).await
}

async fn explain(sandbox: &Sandbox, what: &str) -> Value {
    ask(sandbox, what).await.content()
}

async fn trigger(sandbox: &Sandbox, kind: &str, fields: Value) -> Value {
    sandbox.api.operator(Request::post(format!("/sandbox/v1/trigger/{kind}")).json(&fields)).await.content()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn words_and_requests_are_explained_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    for (what, kind, summary, next) in [
        ("session-url-used", "reason", "has opened a session", "new URL for each connection"),
        ("INVALID_TOKEN", "message", "token-expired", "right credentials"),
        ("slow_consumer", "close reason", "reads too slowly", "Read faster"),
        ("503", "status", "SERVICE_UNAVAILABLE", "send the same request again"),
    ] {
        let explanation = explain(&sandbox, what).await;
        assert_eq!(explanation["kind"], kind, "{explanation}");
        assert!(text(&explanation["summary"]).contains(summary), "{explanation}");
        assert!(text(&explanation["next"][0]).contains(next), "{explanation}");
    }
    let refused = sandbox.api.me("an-unknown-token").await;
    let id = refused.header("x-request-id").expect("an id");
    let explanation = explain(&sandbox, id).await;
    assert_eq!((&explanation["kind"], &explanation["facts"]["status"]), (&json!("request"), &json!(401)));
    assert!(text(&explanation["summary"]).contains("GET /open/v1/users/me"), "{explanation}");
    assert!(text(&explanation["next"][0]).contains("token-unknown: Sign the user in again"), "{explanation}");
    assert_eq!(explanation["records"][0]["requestId"], id);
    // The reason now has a record.
    assert_eq!(explain(&sandbox, "token-unknown").await["records"][0]["requestId"], id);
    for (what, status) in [("nothing-like-this", 404), ("", 400), ("a%0Ab", 400)] {
        assert_eq!(ask(&sandbox, what).await.status, status, "{what}");
    }
    let wrong = sandbox.api.operator(Request::get("/sandbox/v1/explain?id=x")).await;
    assert_eq!(
        (wrong.status, text(&wrong.json()["message"])),
        (400, "id: is no parameter of this call".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_explained_by_its_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let tokens = sandbox.user(0, "demo").1;
    let valid = explain(&sandbox, &tokens.access).await;
    assert_eq!((&valid["kind"], &valid["facts"]["clientId"]), (&json!("token"), &json!("demo")));
    assert!(text(&valid["summary"]).contains("valid"), "{valid}");
    let refresh = explain(&sandbox, &tokens.refresh).await;
    assert!(text(&refresh["summary"]).contains("refresh token"), "{refresh}");
    trigger(&sandbox, "expire", json!({ "token": tokens.access })).await;
    let expired = explain(&sandbox, &tokens.access).await;
    assert!(text(&expired["summary"]).contains("expired"), "{expired}");
    assert!(text(&expired["next"][0]).contains("efresh"), "{expired}");
    trigger(&sandbox, "revoke-consent", json!({ "client": "demo", "user": "haneul" })).await;
    assert!(text(&explain(&sandbox, &tokens.refresh).await["summary"]).contains("revoked"));
    // No record holds a token.
    let log = sandbox.api.operator(Request::get("/sandbox/v1/log")).await;
    let records = log.text();
    assert!(!records.contains(&tokens.access) && !records.contains(&tokens.refresh));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_tells_which_sessions_it_was_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let mut own = sandbox.api.open_user_session(&sandbox.user(0, "demo").1.access).await;
    sandbox.api.subscribe(&sandbox.user(0, "demo").1.access, "chat", own.session_key()).await.content();
    own.system("subscribed").await;
    let idle = sandbox.api.open_user_session(&sandbox.user(0, "drops").1.access).await;
    let other = sandbox.api.open_user_session(&sandbox.user(1, "demo").1.access).await;
    let said = trigger(&sandbox, "chat", json!({ "channel": "haneul", "message": "hello" })).await;
    let explanation = explain(&sandbox, &text(&said["messageId"])).await;
    assert_eq!(explanation["kind"], "message", "{explanation}");
    let sessions = explanation["sessions"].as_array().expect("a list");
    let of = |key: &str| sessions.iter().find(|session| session["sessionKey"] == key).expect("a session");
    for (key, received, why) in [
        (own.session_key(), true, "has the subscription CHAT of streamer-haneul"),
        (idle.session_key(), false, "subscri"),
        (other.session_key(), false, "a session of streamer-bada"),
    ] {
        let session = of(key);
        assert_eq!(session["received"], received, "{session}");
        assert!(text(&session["why"]).contains(why), "{session}");
    }

    let rule = json!({ "match": { "event": "CHAT" }, "do": { "drop": true } });
    sandbox.api.operator(Request::post("/sandbox/v1/faults").json(&rule)).await.content();
    let said =
        trigger(&sandbox, "chat", json!({ "channel": "haneul", "message": "nobody hears this" })).await;
    patiently("the record of the event", async {
        loop {
            let explanation = explain(&sandbox, &text(&said["messageId"])).await;
            let sessions = explanation["sessions"].as_array().expect("a list").iter();
            let mut own = sessions.filter(|session| session["sessionKey"] == *own.session_key());
            let own = own.next().expect("a session");
            if own["received"] == false {
                return assert!(text(&own["why"]).starts_with("dropped by "), "{own}");
            }
        }
    })
    .await;

    let session = explain(&sandbox, idle.session_key()).await;
    assert_eq!((&session["kind"], &session["facts"]["clientId"]), (&json!("session"), &json!("drops")));
    assert!(text(&session["summary"]).contains("without a subscription"), "{session}");
    trigger(&sandbox, "close-session", json!({ "session": idle.session_key() })).await;
    let session = explain(&sandbox, idle.session_key()).await;
    assert_eq!(session["facts"]["closeReason"], "evicted");
    assert!(text(&session["next"][0]).contains("ask the operator"), "{session}");
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_channels_and_claims_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let application = explain(&sandbox, "demo").await;
    assert_eq!(
        (&application["kind"], &application["facts"]["name"]),
        (&json!("application"), &json!("demo"))
    );
    let channel = explain(&sandbox, "viewer-nuri").await;
    assert_eq!((&channel["kind"], &channel["facts"]["channelName"]), (&json!("channel"), &json!("누리")));
    let webhook = Request::put("/platform/v1/applications/drops/webhook")
        .json(&json!({ "url": "http://127.0.0.1:1/" }));
    sandbox.api.operator(webhook).await.content();
    let claimed = trigger(&sandbox, "claim", json!({ "campaign": "first-voyage", "viewer": "mina" })).await;
    let claim = explain(&sandbox, &text(&claimed["claimId"])).await;
    assert_eq!((&claim["kind"], &claim["facts"]["clientId"]), (&json!("claim"), &json!("drops")), "{claim}");
    let message = explain(&sandbox, &text(&claim["facts"]["messageId"])).await;
    assert_eq!((&message["kind"], &message["facts"]["claimId"]), (&json!("delivery"), &claimed["claimId"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_explain_and_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let command = async |arguments: &[&str]| {
        let mut command = stagedoor_in(folder.path(), arguments);
        // There is no browser.
        command.env("PATH", folder.path());
        run(command).await
    };
    let explained = command(&["explain", "session-url-used"]).await;
    assert!(explained.status.success(), "{}", explained.stderr);
    for part in ["session-url-used (reason)", "What to do:", "Get a new URL"] {
        assert!(explained.stdout.contains(part), "{part}: {}", explained.stdout);
    }
    assert_eq!(command(&["explain", "nothing-like-this"]).await.status.code(), Some(1));
    for (what, kind) in
        [("haneul", "(channel)"), ("1013", "(close code)"), ("CHAT", "(event)"), ("demo", "(application)")]
    {
        let explained = command(&["explain", what]).await;
        assert!(explained.stdout.contains(kind), "{what}: {}{}", explained.stdout, explained.stderr);
    }
    let base = text(&sandbox.world["baseUrl"]);
    let console = command(&["open"]).await.stdout;
    assert!(console.starts_with(&format!("{base}/sandbox/console/open?token=")), "{console}");
    let docs = command(&["open", "docs", "--json"]).await;
    let docs: Value = serde_json::from_str(&docs.stdout).expect("JSON");
    let url = text(&docs["url"]);
    assert!(
        url.starts_with(&format!("{base}/sandbox/console/open?token=")) && url.ends_with("&to=/docs"),
        "{url}"
    );
    assert_eq!(docs["opened"], false);
    let sign_in = command(&["open", "signin", "--client", "drops"]).await.stdout;
    let path = sign_in.trim().strip_prefix(&base).expect("an address of the sandbox");
    let opened = testkit::Browser::new(sandbox.api.address()).open(path).await;
    let path = opened.location().to_owned();
    assert!(path.starts_with("/account-interlock?clientId=drops&"), "{path}");
    let page = sandbox.api.send(Request::get(path)).await;
    assert_eq!(page.status, 200, "{sign_in}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_openapi_document_of_a_sandbox_has_its_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let answer = sandbox.api.send(Request::get("/openapi.json")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let document = answer.json();
    assert!(document["paths"]["/open/v1/users/me"].is_object());
    let clock = &document["paths"]["/sandbox/v1/clock"];
    assert!(clock["get"].is_object() && clock["post"]["requestBody"].is_object(), "{clock}");
    assert_eq!(sandbox.api.send(Request::post("/openapi.json")).await.status, 405);
    let of_service = web::documents::openapi();
    assert!(
        of_service["paths"]
            .as_object()
            .is_some_and(|paths| paths.keys().all(|path| !path.starts_with("/sandbox")))
    );
}
