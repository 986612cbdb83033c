//! The settings of a bot.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{Application, Request};

use crate::cli::process::{CommandOutput, Sandbox, run, stagedoor_in};

async fn sandbox(folder: &Path) -> Sandbox {
    let log = folder.join("log");
    let mut command = stagedoor_in(folder, &["dev", "--json", "--listen", "0"]);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
    Sandbox::of(command, log).await
}

async fn env(folder: &Path, arguments: &[&str]) -> CommandOutput {
    let output = run(stagedoor_in(folder, &[&["env"][..], arguments].concat())).await;
    assert!(output.status.success(), "{arguments:?}: {}", output.stderr);
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_of_a_bot_work_in_each_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let json: Value = serde_json::from_str(
        &env(folder.path(), &["--user", "bada", "--client", "drops", "--format", "json"]).await.stdout,
    )
    .expect("JSON");
    let text = |name: &str| json[format!("STAGEDOOR_{name}")].as_str().expect("a text").to_owned();
    assert_eq!(json["STAGEDOOR_BASE_URL"], sandbox.world["baseUrl"]);
    assert_eq!((text("CLIENT_ID"), text("CHANNEL_ID")), ("drops".to_owned(), "streamer-bada".to_owned()));
    let seeded = sandbox.application("drops");
    assert_eq!((text("CLIENT_SECRET"), text("REDIRECT_URI")), (seeded.client_secret, seeded.redirect_uri));
    let me = sandbox.api.me(&text("ACCESS_TOKEN")).await.content();
    assert_eq!(me["channelId"], "streamer-bada");
    sandbox.api.refresh(&sandbox.application("drops"), &text("REFRESH_TOKEN")).await.content();
    for name in ["AUTH_URL", "TOKEN_URL"] {
        let path = text(name).strip_prefix(&text("BASE_URL")).expect("an address of the sandbox").to_owned();
        assert_eq!(
            sandbox.api.send(Request::get(path)).await.status,
            if name == "AUTH_URL" { 400 } else { 405 }
        );
    }

    let dotenv = env(folder.path(), &["--prefix", "BOT_"]).await.stdout;
    let names: Vec<_> =
        dotenv.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let expected: Vec<_> =
        json.as_object().expect("an object").keys().map(|name| name.replace("STAGEDOOR_", "BOT_")).collect();
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(sorted(names.into_iter().map(str::to_owned).collect()), sorted(expected));
    assert!(dotenv.contains("BOT_CHANNEL_ID=streamer-haneul\n"), "{dotenv}");

    let shell = env(folder.path(), &["--format", "shell"]).await.stdout;
    let script = format!("{shell}\nprintf %s \"$STAGEDOOR_ACCESS_TOKEN\"");
    let read = tokio::process::Command::new("sh").args(["-c", &script]).output().await.expect("a shell");
    let token = String::from_utf8(read.stdout).expect("a text");
    sandbox.api.me(&token).await.content();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_of_ones_own_gets_a_secret_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    let record =
        json!({ "name": "mine", "redirectUris": ["http://localhost:3000/"], "scopes": ["유저 정보 조회"] });
    let put = Request::put("/platform/v1/applications/my-app").json(&record);
    sandbox.api.operator(put).await.content();
    let mut secrets = Vec::new();
    for _ in 0..2 {
        let json = env(folder.path(), &["--client", "mine", "--json"]).await.stdout;
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let text = |name: &str| json[format!("STAGEDOOR_{name}")].as_str().expect("a text").to_owned();
        let app = Application {
            client_id: text("CLIENT_ID"),
            client_secret: text("CLIENT_SECRET"),
            redirect_uri: text("REDIRECT_URI"),
        };
        assert_eq!(app.redirect_uri, "http://localhost:3000/");
        sandbox.api.refresh(&app, &text("REFRESH_TOKEN")).await.content();
        secrets.push(app.client_secret);
    }
    assert_eq!(secrets[0], secrets[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_of_ones_own_does_not_become_the_default() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = sandbox(folder.path()).await;
    // As the developer center registers it: an id that is before all others, and no scopes.
    let put = Request::put("/platform/v1/applications/01a2").json(&json!({ "name": "mine", "scopes": [] }));
    sandbox.api.operator(put).await.content();
    let dotenv = env(folder.path(), &["--user", "haneul"]).await.stdout;
    assert!(dotenv.contains("STAGEDOOR_CLIENT_ID=demo\n"), "{dotenv}");
    let overview = sandbox.api.operator(Request::get("/sandbox/v1/state")).await.content();
    let ids = overview["applications"].as_array().expect("a list").iter().map(|one| one["clientId"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), ["demo", "drops", "01a2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_use_and_a_missing_sandbox_have_their_exit_codes() {
    let folder = tempfile::tempdir().expect("a folder");
    let code = async |arguments: &[&str]| run(stagedoor_in(folder.path(), arguments)).await.status.code();
    assert_eq!(code(&["env"]).await, Some(3));
    assert_eq!(code(&["env", "--format", "yaml"]).await, Some(2));
    assert_eq!(code(&["env", "--prefix", "A-B"]).await, Some(2));
    let _sandbox = sandbox(folder.path()).await;
    assert_eq!(code(&["env", "--user", "nobody"]).await, Some(2));
}
