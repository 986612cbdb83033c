//! The log of `serve` as JSON.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use testkit::{Api, Request, patiently};

use crate::cli::process::{run, stagedoor};
use crate::cli::serving::{KEY, command, stop};

/// The lines of a log, each a JSON object.
fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).expect("the log");
    // The last line may be on its way.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            for key in ["timestamp", "level", "target"] {
                assert!(value[key].is_string(), "{line}");
            }
            value
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_is_one_object_with_the_request_id_and_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut command = command(&folder);
    command.args(["--log-format", "json", "--log", "debug"]).env("STAGEDOOR_OPERATOR_KEY", KEY);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
    let child = command.spawn().expect("the program starts");
    let address = patiently("the log says where it serves", async {
        loop {
            let found = lines(&log).into_iter().find(|line| line["fields"]["message"] == "stagedoor serves");
            if let Some(line) = found {
                return line["fields"]["address"].as_str().expect("an address").to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let api = Api::new(&format!("http://{address}"), KEY);
    let app = api.application("bot").create().await;
    let person = api.person("someone").create().await;
    let tokens = api.sign_in(&app, &person).await;
    // A path with what breaks a careless line, and a query with a secret.
    let target = "/open/v1/%22quoted%22?token=hunter2-in-a-query";
    let answer = api.send(Request::get(target).bearer(&tokens.access)).await;
    let id = answer.header("x-request-id").expect("an id").to_owned();
    api.operator(Request::get("/platform/v1/channels/nobody")).await.message();
    stop(child).await;

    let lines = lines(&log);
    let own: Vec<_> = lines.iter().filter(|line| line["span"]["id"] == id.as_str()).collect();
    let [line] = own[..] else { panic!("one line of the request: {own:?}") };
    assert_eq!((&line["fields"]["status"], &line["span"]["name"]), (&404.into(), &"request".into()));
    assert_eq!(line["span"]["path"], "/open/v1/%22quoted%22");
    let text = std::fs::read_to_string(&log).expect("the log");
    for secret in [KEY, &tokens.access, &tokens.refresh, &app.client_secret, &person.password, "hunter2"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_has_its_request_whatever_is_exported() {
    let exported = [&[][..], &["--trace-sample", "0"], &["--trace-sample", "1"]];
    for format in ["text", "json"] {
        for (place, sample) in exported.into_iter().enumerate() {
            let folder = tempfile::tempdir().expect("a folder");
            let mut command = command(&folder);
            command.args(["--log-format", format, "--log", "debug"]).env("STAGEDOOR_OPERATOR_KEY", KEY);
            if place > 0 {
                // No collector is there, which costs a request nothing.
                command.args(["--otlp-endpoint", "http://127.0.0.1:9"]).args(sample);
            }
            let log = folder.path().join("log");
            command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).expect("a file"));
            let child = command.spawn().expect("the program starts");
            let text = || std::fs::read_to_string(&log).expect("the log");
            let address = patiently("the log says where it serves", async {
                loop {
                    let text = text();
                    let line = text.lines().find(|line| line.contains("stagedoor serves"));
                    if let Some((_, rest)) = line.and_then(|line| line.split_once("127.0.0.1:")) {
                        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
                        return format!("127.0.0.1:{port}");
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            })
            .await;
            let api = Api::new(&format!("http://{address}"), KEY);
            let mut ids = Vec::new();
            for traced in [false, true, false] {
                let mut request = Request::get("/open/v1/nothing");
                if traced {
                    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
                    request = request.header("traceparent", parent);
                }
                let answer = api.send(request).await;
                ids.push(answer.header("x-request-id").expect("an id").to_owned());
            }
            stop(child).await;
            let text = text();
            for id in ids {
                let own = match format {
                    "text" => {
                        format!("request{{id={id} client=127.0.0.1 method=GET path=\"/open/v1/nothing\"")
                    }
                    _ => format!("\"id\":\"{id}\""),
                };
                let line = text.lines().find(|line| line.contains(&own));
                let line = line.unwrap_or_else(|| panic!("{format} {sample:?}: no line has {own}: {text}"));
                assert!(line.contains("answered") && line.contains("/open/v1/nothing"), "{line}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_failed_start_is_a_line_too() {
    let arguments = ["serve", "--log-format", "json", "--base-url", "api.example.com"];
    let output = run(stagedoor(&arguments)).await;
    assert_eq!(output.status.code(), Some(2));
    let line: Value = serde_json::from_str(output.stderr.trim_end()).expect("one line of JSON");
    let message = line["fields"]["message"].as_str().expect("a text");
    assert!(message.starts_with("--base-url must be scheme and host"), "{message}");
    assert_eq!(line["level"], "ERROR");
}
