//! The log of a sandbox: what it records, and how it is read.

use serde_json::{Value, json};
use testkit::{Connection, Request};

use crate::cli::process::{Sandbox, run, stagedoor};

const LOG: &str = "/sandbox/v1/log";

async fn log(sandbox: &Sandbox, query: &str) -> Value {
    sandbox.api.operator(Request::get(format!("{LOG}?{query}"))).await.content()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_recorded_with_its_caller_and_its_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (person, tokens) = sandbox.user(0, "demo");
    let mark = log(&sandbox, "").await["mark"].as_u64().expect("a mark");
    let sent = sandbox.api.send_chat(&tokens.access, "hello there").await;
    let found = log(&sandbox, &format!("after={mark}&kind=request&path=/open/v1/chats/send")).await;
    let [record] = found["data"].as_array().expect("a list").as_slice() else { panic!("{found}") };
    assert_eq!(record["requestId"], *sent.header("x-request-id").expect("an id"));
    assert_eq!(
        (&record["method"], &record["status"], &record["clientId"], &record["user"]),
        (&json!("POST"), &json!(200), &json!("demo"), &json!(person.channel_id))
    );
    assert_eq!(record["body"], json!({ "message": "hello there" }));
    assert_eq!(record["answer"], sent.json());
    assert!(record["durationMs"].is_number());

    let refused = sandbox.api.send_chat("unknown-token", &"x".repeat(9_000)).await;
    assert_eq!(refused.status, 401);
    let found = log(&sandbox, &format!("after={mark}&status=401")).await;
    let record = &found["data"][0];
    assert_eq!(record["reason"], *refused.header("stagedoor-reason").expect("a reason"));
    assert_eq!(
        (&record["clientId"], &record["user"], &record["body"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    // The API's own requests are not recorded.
    assert_eq!(log(&sandbox, "path=~^/sandbox").await["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_holds_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let app = sandbox.application("demo");
    let (person, _) = sandbox.user(0, "demo");
    let code = sandbox.api.consent(&app, &person, "a-state").await;
    let issued = sandbox.api.exchange(&app, &code, "a-state").await.content();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (access, refresh) = (text(&issued["accessToken"]), text(&issued["refreshToken"]));
    let key = text(&sandbox.api.stream_key(&access).await.content()["streamKey"]);
    let url = text(&sandbox.api.user_session_url(&access).await.content()["url"]);
    let (_, auth) = url.split_once("auth=").expect("a session URL");
    let auth = auth.split('&').next().expect("a text").to_owned();
    let _socket = sandbox.api.open_user_session(&access).await;
    sandbox.api.refresh(&app, &refresh).await.content();
    let records = log(&sandbox, "").await.to_string();
    let secrets = [&code, &access, &refresh, &key, &auth, &app.client_secret, &person.password];
    for secret in secrets.into_iter().filter(|secret| secret.len() > 4) {
        assert!(!records.contains(secret.as_str()), "{secret} in {records}");
    }
    let token = log(&sandbox, "path=/auth/v1/token&body.grantType=authorization_code").await;
    let shown = text(&token["data"][0]["answer"]["content"]["accessToken"]);
    assert_eq!(shown, format!("***{}", &access[access.len() - 4..]));
    let upgrade = log(&sandbox, "status=101").await;
    assert!(text(&upgrade["data"][0]["query"]["auth"]).starts_with("***"), "{upgrade}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_read_in_parts_awaited_and_streamed() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let mark = log(&sandbox, "").await["mark"].as_u64().expect("a mark");
    for message in ["one", "two", "three"] {
        sandbox.api.send_chat(&tokens.access, message).await.content();
    }
    let first = log(&sandbox, &format!("after={mark}&kind=request&limit=2")).await;
    let rest = log(&sandbox, &format!("after={}&kind=request", first["mark"])).await;
    let messages = |part: &Value| {
        let records = part["data"].as_array().expect("a list").iter();
        records.map(|record| record["body"]["message"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((messages(&first), messages(&rest)), (vec![json!("one"), json!("two")], vec![json!("three")]));

    let query = format!("after={}&within=10s&message=awaited", rest["mark"]);
    let (awaited, _) = tokio::join!(log(&sandbox, &query), sandbox.api.send_chat(&tokens.access, "awaited"));
    assert_eq!(messages(&awaited), ["awaited"]);

    for (accept, prefix) in [("application/x-ndjson", "{"), ("text/event-stream", "data: {")] {
        let mut stream = Connection::open(sandbox.api.address()).await;
        let key = sandbox.world["operatorKey"].as_str().expect("a key");
        let request = Request::get(format!("{LOG}?after={mark}&message=three")).bearer(key);
        stream.begin(&request.header("accept", accept)).await;
        let read = stream.until(b"three").await;
        let read = String::from_utf8(read).expect("a text");
        assert!(read.contains(accept) && read.contains(&format!("\n{prefix}")), "{read}");
    }
    for (query, field) in [
        ("kind=requests", "kind"),
        ("limit=0", "limit"),
        ("after=x", "after"),
        ("path=~(", "path"),
        ("within=1", "within"),
    ] {
        let answer = sandbox.api.operator(Request::get(format!("{LOG}?{query}"))).await;
        assert_eq!(answer.status, 400, "{query}");
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert!(message.starts_with(&format!("{field}: ")), "{query}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_a_line_for_each_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    sandbox.api.send_chat(&tokens.access, "hello").await.content();
    let mut command = stagedoor(&["logs", "--kind", "request", "--where", "body.message~=^hel"]);
    command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a URL"));
    command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a key"));
    let shown = run(command).await;
    assert!(shown.status.success(), "{}", shown.stderr);
    assert_eq!(shown.stdout.lines().count(), 1, "{}", shown.stdout);
    assert!(shown.stdout.contains("200 POST /open/v1/chats/send"), "{}", shown.stdout);
}
