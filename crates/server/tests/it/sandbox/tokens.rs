//! Tokens of a sandbox without a browser, by call and by command.

use serde_json::{Value, json};
use testkit::Request;

use crate::cli::process::{Sandbox, run, stagedoor};

const TOKENS: &str = "/sandbox/v1/tokens";

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_a_user_is_enough_for_new_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let call = async |body: Value| sandbox.api.operator(Request::post(TOKENS).json(&body)).await;
    for name in ["streamer-bada", "bada", "바다"] {
        let issued = call(json!({ "user": name, "client": "drops" })).await.content();
        assert_eq!((&issued["channelId"], &issued["clientId"]), (&json!("streamer-bada"), &json!("drops")));
        let me = sandbox.api.me(issued["accessToken"].as_str().expect("a token")).await.content();
        assert_eq!(me["channelId"], "streamer-bada");
        let refresh = issued["refreshToken"].as_str().expect("a token");
        sandbox.api.refresh(&sandbox.application("drops"), refresh).await.content();
    }
    let issued = call(json!({})).await.content();
    assert_eq!(issued["clientId"], "demo");
    for (body, field, candidate) in [
        (json!({ "user": "nobody" }), "user", "viewer-nuri"),
        (json!({ "client": "nothing" }), "client", "demo, drops"),
        (json!({ "usr": "bada" }), "usr", ""),
    ] {
        let answer = call(body.clone()).await;
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert_eq!(answer.status, 400, "{body}: {message}");
        assert!(message.starts_with(&format!("{field}: ")) && message.contains(candidate), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_prints_the_access_token_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let command = |arguments: &[&str]| {
        let mut command = stagedoor(arguments);
        command.env("STAGEDOOR_SERVER", sandbox.world["baseUrl"].as_str().expect("a text"));
        command.env("STAGEDOOR_OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a text"));
        command
    };
    let printed = run(command(&["token", "--user", "haneul", "--client", "demo"])).await;
    assert!(printed.status.success(), "{}", printed.stderr);
    let me = sandbox.api.me(printed.stdout.trim_end()).await.content();
    assert_eq!(me["channelId"], "streamer-haneul");
    let json = run(command(&["token", "--user", "haneul", "--json"])).await;
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["channelId"], "streamer-haneul");
    let unknown = run(command(&["token", "--user", "nobody"])).await;
    assert_eq!((unknown.status.code(), unknown.stdout.as_str()), (Some(2), ""));
    assert!(unknown.stderr.contains("streamer-haneul"), "{}", unknown.stderr);
}
