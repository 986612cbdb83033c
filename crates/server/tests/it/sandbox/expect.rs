//! Expectations on the log.

use serde_json::{Value, json};
use testkit::{Request, Response};

use crate::cli::process::{Sandbox, run, stagedoor};

async fn expect(sandbox: &Sandbox, body: Value) -> Response {
    sandbox.api.operator(Request::post("/sandbox/v1/expect").json(&body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expectation_waits_for_records_and_names_the_nearest_misses() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let chat = |message: &str| {
        let conditions = json!({ "path": "/open/v1/chats/send", "message": message, "status": ">=200" });
        json!({ "kind": "request", "where": conditions })
    };
    sandbox.api.send_chat(&tokens.access, "hello").await.content();
    let met = expect(&sandbox, chat("~^hel")).await.content();
    assert_eq!(met["data"][0]["body"]["message"], "hello");

    let missed = expect(&sandbox, chat("bye")).await;
    let answer = missed.json();
    assert_eq!(missed.status, 400, "{answer}");
    let nearest = &answer["content"]["nearest"][0];
    assert_eq!(
        (&nearest["failed"], &nearest["record"]["body"]["message"]),
        (&json!(["message"]), &json!("hello"))
    );

    let mut later = chat("~later");
    later["within"] = json!("10s");
    later["times"] = json!(2);
    later["after"] = met["mark"].clone();
    let (met, ()) = tokio::join!(expect(&sandbox, later), async {
        for message in ["later", "still later"] {
            sandbox.api.send_chat(&tokens.access, message).await.content();
        }
    });
    assert_eq!(met.content()["data"].as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_so_many_records_are_expected_for_all_of_the_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    let chats = |bounds: Value| {
        let mut body =
            json!({ "kind": "request", "where": { "path": "/open/v1/chats/send" }, "within": "50ms" });
        body.as_object_mut().expect("an object").extend(bounds.as_object().expect("an object").clone());
        body
    };
    let none = expect(&sandbox, chats(json!({ "atMost": 0 }))).await.content();
    assert_eq!(none["data"], json!([]));
    for message in ["one", "two"] {
        sandbox.api.send_chat(&tokens.access, message).await.content();
    }
    for (bounds, status) in [
        (json!({ "atMost": 1 }), 400),
        (json!({ "atMost": 2 }), 200),
        (json!({ "atMost": 2, "times": 2 }), 200),
        (json!({ "atMost": 4, "times": 3 }), 400),
    ] {
        let answer = expect(&sandbox, chats(bounds.clone())).await;
        assert_eq!(answer.status, status, "{bounds}: {}", answer.text());
    }
    // Too many are known at once, not after the time.
    let many = expect(&sandbox, chats(json!({ "atMost": 1, "within": "10m" }))).await;
    assert!(many.text().contains("at most 1"), "{}", many.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_expectation_is_refused_by_its_field() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    for (body, field) in [
        (json!({ "kind": "requests" }), "kind"),
        (json!({ "where": { "path": "~(" } }), "path"),
        (json!({ "where": [] }), "where"),
        (json!({ "within": "1 second" }), "within"),
        (json!({ "times": 0 }), "times"),
        (json!({ "times": 2, "atMost": 1, "kind": "event" }), "atMost"),
        (json!({ "until": "5s" }), "until"),
    ] {
        let answer = expect(&sandbox, body.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, 400, "{body}: {message}");
        assert!(message.starts_with(&format!("{field}: ")), "{body}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_tells_by_its_exit_code_whether_it_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let (_, tokens) = sandbox.user(0, "demo");
    sandbox.api.send_chat(&tokens.access, "hello <there>").await.content();
    let junit = folder.path().join("report.xml");
    let command = |arguments: &[&str]| {
        let mut command = stagedoor(&[&["expect"][..], arguments].concat());
        command.arg("--junit").arg(&junit);
        command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a URL"));
        command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a key"));
        command
    };
    let report = || std::fs::read_to_string(&junit).expect("a report");
    let request = "POST /open/v1/chats/send";

    let met = run(command(&[request, "--where", "message~=^hel", "--within", "5s"])).await;
    assert_eq!(met.status.code(), Some(0), "{}", met.stderr);
    assert!(met.stdout.contains("200 POST /open/v1/chats/send"), "{}", met.stdout);
    assert!(report().contains("tests=\"1\" failures=\"0\""), "{}", report());
    let met = run(command(&["/open/v1/*", "--json"])).await;
    let found: Value = serde_json::from_str(&met.stdout).expect("JSON");
    assert_eq!(found["data"][0]["path"], "/open/v1/chats/send");

    let missed = run(command(&[request, "--where", "message=bye", "--times", "2"])).await;
    assert_eq!((missed.status.code(), missed.stdout.as_str()), (Some(1), ""));
    for part in ["POST /open/v1/chats/send message=bye", "found 0", "differs in message", "hello <there>"] {
        assert!(missed.stderr.contains(part), "{part}: {}", missed.stderr);
    }
    let once = run(command(&[request, "--times", "2"])).await;
    assert!(once.stderr.contains("found 1") && once.stderr.contains("hello <there>"), "{}", once.stderr);
    let misspelt = run(command(&["--kind", "request", "--where", "mesage=halo"])).await;
    assert!(misspelt.stderr.contains("No kept record has a field mesage"), "{}", misspelt.stderr);
    let missed = run(command(&[request, "--where", "message=bye", "--times", "2"])).await;
    assert_eq!(missed.status.code(), Some(1));
    assert!(report().contains("failures=\"1\"") && report().contains("hello &lt;there&gt;"), "{}", report());
    let mark = found["mark"].to_string();
    let missed = run(command(&[request, "--after", &mark, "--json"])).await;
    let content: Value = serde_json::from_str(&missed.stdout).expect("JSON");
    assert_eq!((missed.status.code(), &content["nearest"]), (Some(1), &json!([])));

    for arguments in [
        &["POST open/v1"][..],
        &["--where", "message~=("],
        &["--within", "soon"],
        &["--times", "0"],
        &["--where", "x"],
        &[],
    ] {
        let wrong = run(command(arguments)).await;
        assert_eq!(wrong.status.code(), Some(2), "{arguments:?}: {}", wrong.stderr);
    }
    let mut nowhere = command(&[request]);
    nowhere.env("STAGEDOOR_SERVER", "http://127.0.0.1:1");
    assert_eq!(run(nowhere).await.status.code(), Some(3));
}
