//! `stagedoor serve`: no seed, and none of the sandbox's ways to sign in.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use testkit::{Api, Browser, Request, Tokens, encode, patiently, query_value};
use tokio::process::{Child, Command};

use crate::cli::process::{Sandbox, run, stagedoor};

/// The operator key of the served services.
pub const KEY: &str = "an-operator-key-of-more-than-32-characters";

/// A running `serve` and its address.
pub async fn serve(mut command: Command, folder: &tempfile::TempDir) -> (Child, String) {
    let log = folder.path().join("log");
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
    let child = command.spawn().expect("the program starts");
    let address = patiently("the log says where it serves", async {
        loop {
            let output = std::fs::read_to_string(&log).expect("the log");
            if let Some((_, rest)) = output.split_once("stagedoor serves address=")
                && let Some((address, _)) = rest.split_once('\n')
            {
                return format!("http://{}", address.trim());
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    (child, address)
}

/// `stagedoor serve` with a store in a folder.
pub fn command(folder: &tempfile::TempDir) -> Command {
    let data = folder.path().join("data");
    stagedoor(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().expect("a path")])
}

/// Stops a running `serve`.
pub async fn stop(mut child: Child) {
    let id = child.id().expect("it runs").to_string();
    Command::new("kill").args(["-TERM", &id]).status().await.expect("kill is there");
    let output = patiently("the program ends", child.wait()).await.expect("a status");
    assert_eq!(output.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_service_is_empty_and_keeps_its_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut first = command(&folder);
    first.env("STAGEDOOR_OPERATOR_KEY", KEY);
    let (child, base_url) = serve(first, &folder).await;
    let api = Api::new(&base_url, KEY);
    let app = api.application("bot").create().await;
    assert_eq!(
        api.channels(&app, "channelIds=streamer-haneul").await.content()["data"],
        serde_json::json!([])
    );
    let person = api.person("someone").create().await;
    let tokens = api.sign_in(&app, &person).await;
    let url = api.user_session_url(&tokens.access).await.content()["url"].clone();
    assert!(url.as_str().expect("a text").starts_with(&base_url), "{url}");

    // The page lists no people, and a login without password does not sign in.
    let mut browser = Browser::new(api.address());
    let target = format!("/account-interlock?clientId=bot&redirectUri={}&state=s", encode(&app.redirect_uri));
    let page = browser.open(&target).await;
    let mut form = page.form("login");
    assert_eq!(page.forms.len(), 1);
    form.fields.push(("person".to_owned(), person.login.clone()));
    browser.submit(&form).await.form("login");
    stop(child).await;

    // Without an operator key the platform API is off. All other endpoints work. The operator key was the
    // service key.
    let mut second = command(&folder);
    second.env("STAGEDOOR_SERVICE_KEY", KEY);
    second.args(["--session-base", "https://node1.api.example.com"]);
    let (child, base_url) = serve(second, &folder).await;
    let api = Api::new(&base_url, KEY);
    let put = Request::put("/platform/v1/channels/x").body(r#"{"channelName":"x"}"#);
    api.operator(put).await.assert_refused(401, "INVALID_TOKEN");
    api.me(&tokens.access).await.content();
    let url = api.user_session_url(&tokens.access).await.content()["url"].clone();
    let url = url.as_str().expect("a text");
    let token = query_value(url, "auth").expect("a token");
    assert_eq!(url, format!("https://node1.api.example.com?auth={token}"));
    let next = Tokens::of(&api.refresh(&app, &tokens.refresh).await.content());
    api.me(&next.access).await.content();
    stop(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_and_files_of_the_data_are_for_their_user_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let shell = r#"umask 022 && exec "$0" "$@""#;
    let data = folder.path().join("a/b");
    let program = env!("CARGO_BIN_EXE_stagedoor");
    let mut command = Command::new("sh");
    command.args(["-c", shell, program, "serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
    command.env("STAGEDOOR_OPERATOR_KEY", KEY).kill_on_drop(true);
    let (child, _) = serve(command, &folder).await;
    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&folder.path().join("a")), mode(&data)), (0o700, 0o700));
    for entry in std::fs::read_dir(&data).expect("a folder") {
        let path = entry.expect("a file").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    stop(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_and_serve_refuse_the_folder_of_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, _) = serve(command(&folder), &folder).await;
    stop(child).await;
    let served = folder.path().join("data");
    let files = || {
        let entries = std::fs::read_dir(&served).expect("the folder");
        entries.map(|entry| entry.expect("a file").file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    let data = served.to_str().expect("a path");
    let output = run(stagedoor(&["dev", "--listen", "127.0.0.1:0", "--data", data])).await;
    assert_eq!(output.status.code(), Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("holds a store of `stagedoor serve`"), "{}", output.stderr);
    assert!(output.stderr.contains("--data"), "{}", output.stderr);
    assert_eq!(files(), before, "nothing was written");

    let seeded = folder.path().join("sandbox");
    let data = seeded.to_str().expect("a path");
    let sandbox = Sandbox::start(folder.path(), &["--data", data]).await;
    sandbox.signal("TERM").await;
    sandbox.end().await;
    let output = run(stagedoor(&["serve", "--listen", "127.0.0.1:0", "--data", data])).await;
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("the store was made by `stagedoor dev`"), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_has_no_sandbox_api() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = command(&folder);
    command.env("STAGEDOOR_OPERATOR_KEY", KEY);
    let (child, base_url) = serve(command, &folder).await;
    let api = Api::new(&base_url, KEY);
    has_no_sandbox_api(&api).await;
    stop(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_for_load_tests_has_no_sandbox_api() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &["--no-sandbox"]).await;
    has_no_sandbox_api(&sandbox.api).await;
    sandbox.signal("TERM").await;
    sandbox.end().await;
}

async fn has_no_sandbox_api(api: &Api) {
    for path in ["clock", "trigger/chat", "faults", "worlds", "log", "expect", "explain", "environment", ""] {
        let path = format!("/sandbox/v1/{path}");
        for request in [Request::get(&path), Request::post(&path), Request::delete(&path)] {
            assert_eq!(api.operator(request).await.status, 404, "{path}");
        }
    }
    let landing = api.send(Request::get("/")).await;
    assert!(landing.status == 200 && !landing.text().contains("/sandbox/"), "the console is served");
    for path in ["/sandbox/console", "/sandbox/console/live", "/sandbox/console/script.js"] {
        api.send(Request::get(path)).await.assert_refused(404, "NOT_FOUND");
    }
    let document = api.send(Request::get("/openapi.json")).await.json();
    let mut paths = document["paths"].as_object().expect("an object").keys();
    assert!(paths.all(|path| !path.starts_with("/sandbox/")), "the document has the sandbox API");
}
