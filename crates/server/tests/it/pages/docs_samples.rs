//! The examples of the documentation: each is sent to a sandbox, and its answer has the shape that is shown.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::{Receiver, Request};
use tokio::process::Command;
use web::documents::{SampleCall, sample_calls};

use crate::cli::process::Sandbox;

/// The environment variable that renews the shown answers instead of comparing them.
const UPDATE: &str = "UPDATE_DOCS";
const ANSWERS: &str = "../web/src/documents/samples/answers.txt";
/// The sandbox of the examples is always the same.
const PINNED: [&str; 4] = ["--seed", "7", "--clock", "2026-11-25T12:00:00Z"];

/// Words of the examples and what they stand for.
struct Words(Vec<(String, String)>);

impl Words {
    /// A text with its words replaced, the longest first: one word may be a part of another.
    fn replaced(&self, text: &str) -> String {
        let mut words: Vec<_> = self.0.iter().collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        words.into_iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
    }

    fn keep(&mut self, word: &str, value: String) {
        self.0.retain(|(known, _)| known != word);
        self.0.push((word.to_owned(), value));
    }
}

fn request_of(call: &SampleCall, words: &Words) -> Request {
    let mut request = Request::new(call.method, words.replaced(&call.target));
    for (name, value) in &call.headers {
        request = request.header(name, words.replaced(value));
    }
    if call.body.is_empty() { request } else { request.body(words.replaced(call.body)) }
}

/// The types of a JSON value: of an object each key, of a list the first item.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "string".into(),
        Value::Array(items) => items.iter().take(1).map(shape).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_works_and_is_answered_as_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &PINNED).await;
    let (demo, drops) = (sandbox.application("demo"), sandbox.application("drops"));
    let (haneul, tokens) = sandbox.user(0, "demo");
    let (_, others) = sandbox.user(1, "demo");
    let socket = sandbox.api.open_client_session(&demo).await;
    let base = sandbox.world["baseUrl"].as_str().expect("a text").to_owned();
    let mut words = Words(Vec::new());
    for (word, value) in [
        ("ACCESS_TOKEN", tokens.access.clone()),
        ("REFRESH_TOKEN", others.refresh.clone()),
        ("CLIENT_SECRET", demo.client_secret.clone()),
        ("DROPS_SECRET", drops.client_secret.clone()),
        ("OPERATOR_KEY", sandbox.world["operatorKey"].as_str().expect("a text").to_owned()),
        ("CODE", sandbox.api.consent(&demo, &haneul, "STATE").await),
        ("SESSION_KEY", socket.session_key().to_owned()),
    ] {
        words.keep(word, value);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(ANSWERS);
    let update = std::env::var_os(UPDATE).is_some();
    let shown = fs::read_to_string(&file).expect("the answers");
    let shown: HashMap<_, _> = shown.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut answers = String::new();
    for call in sample_calls(&base) {
        let id = call.operation;
        let answer = sandbox.api.send(request_of(&call, &words)).await;
        assert_eq!(answer.status, 200, "{id}: {}", answer.text());
        if answer.header("content-type") != Some("application/json") {
            continue;
        }
        let value = answer.json();
        for (pointer, word) in call.kept {
            let kept = value.pointer(pointer).unwrap_or_else(|| panic!("{id}: no {pointer} in {value}"));
            words.keep(word, kept.as_str().map_or_else(|| kept.to_string(), str::to_owned));
        }
        answers.push_str(&format!("{id}\t{}\n", answer.text().replace(&base, "{base}")));
        if !update {
            let shown =
                shown.get(id).unwrap_or_else(|| panic!("{id} shows no answer; {UPDATE}=1 renews them"));
            let shown: Value = serde_json::from_str(shown).expect("JSON");
            assert_eq!(shape(&shown), shape(&value), "{id} shows another answer; {UPDATE}=1 renews them");
        }
    }
    if update {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(ANSWERS), answers)
            .expect("the answers are written");
    }
}

/// Runs a file, which sends the request of every example to the receiver.
async fn run_all(
    folder: &Path,
    program: &str,
    file: &str,
    text: &str,
    receiver: &Receiver,
    calls: &[SampleCall],
) {
    fs::write(folder.join(file), text).expect("a file");
    let mut command = Command::new(program);
    command.arg(file).current_dir(folder).env("LC_ALL", "C.UTF-8");
    let output = crate::cli::process::run(command).await;
    assert!(output.status.success(), "{program}: {}", output.stderr);
    for call in calls {
        let (id, received) = (call.operation, receiver.next().await);
        assert_eq!(received.line, format!("{} {} HTTP/1.1", call.method, call.target), "{program}: {id}");
        for (name, value) in &call.headers {
            assert_eq!(received.header(name), value, "{program}: {id}");
        }
        match (serde_json::from_str::<Value>(call.body), serde_json::from_slice::<Value>(&received.body)) {
            (Ok(shown), Ok(sent)) => assert_eq!(sent, shown, "{program}: {id}"),
            _ => assert_eq!(received.body, call.body.as_bytes(), "{program}: {id}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_an_example_send_its_request_in_all_three_languages() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let receiver = Receiver::start().await;
    let calls = sample_calls(&receiver.url(""));
    fs::write(folder.join("requests.py"), include_str!("requests.py")).expect("a file");
    let all = |text: &dyn Fn(&SampleCall) -> String| calls.iter().map(text).collect::<Vec<_>>().join("\n");
    let curl = format!("set -e\n{}\n", all(&|call| call.curl.replacen("curl", "curl -sS", 1)));
    run_all(folder, "bash", "calls.sh", &curl, &receiver, &calls).await;
    let javascript = all(&|call| format!("{{\n{}\n}}", call.javascript));
    run_all(folder, "node", "calls.mjs", &javascript, &receiver, &calls).await;
    let python = all(&|call| call.python.clone());
    run_all(folder, "python3", "calls.py", &python, &receiver, &calls).await;
}
