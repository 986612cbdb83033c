//! Traces and exported lines of the log, at a collector that decodes what arrives.

use std::time::Duration;

use testkit::{Api, CollectedSpan, Collector, Reply, Request, patiently, while_running};

use crate::cli::process::{run, stagedoor};
use crate::cli::serving::{KEY, command, serve, stop};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
const HEADER_SECRET: &str = "hunter2-of-the-collector";

fn request_id(answer: &testkit::Response) -> String {
    answer.header("x-request-id").expect("an id").to_owned()
}

fn own<'a>(trace: &'a [CollectedSpan], request: &str) -> &'a CollectedSpan {
    let is_own =
        |span: &&CollectedSpan| span.attributes.get("stagedoor.request_id").is_some_and(|id| id == request);
    trace.iter().find(is_own).expect("the span of the request")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_a_trace_with_its_parts_and_its_lines() {
    let (folder, collector) = (tempfile::tempdir().expect("a folder"), Collector::start().await);
    let mut traced = command(&folder);
    traced.args([
        "--otlp-endpoint",
        &collector.receiver().url(""),
        "--trace-sample",
        "1",
        "--log",
        "info,web=debug",
    ]);
    traced.env("STAGEDOOR_OPERATOR_KEY", KEY).env("STAGEDOOR_OTLP_HEADERS", format!("x-key={HEADER_SECRET}"));
    let (child, base_url) = serve(traced, &folder).await;
    let api = Api::new(&base_url, KEY);
    let app = api.application("bot").create().await;
    let person = api.person("someone").create().await;
    let tokens = api.sign_in(&app, &person).await;

    let written = api.send_chat(&tokens.access, "안녕").await;
    let request = request_id(&written);
    let trace = collector.trace_of(&request).await;
    let root = own(&trace, &request);
    assert_eq!(
        (root.name.as_str(), root.kind, root.parent.as_deref()),
        ("POST /open/v1/chats/send", 2, None)
    );
    let attribute = |name: &str| root.attributes.get(name).map(String::as_str);
    assert_eq!(attribute("http.route"), Some("/open/v1/chats/send"));
    assert_eq!(attribute("http.response.status_code"), Some("200"));
    assert_eq!(attribute("stagedoor.application_id"), Some("bot"));
    assert_eq!(attribute("client.address"), Some("127.0.0.1"));
    let part = trace.iter().find(|span| span.name == "store write").expect("its transaction");
    assert_eq!((part.parent.as_deref(), part.kind), (Some(root.id.as_str()), 1));
    assert!(part.took_ns <= root.took_ns, "{part:?} {root:?}");

    // A caller's trace goes on, and a caller that does not trace its request decides so too.
    let called = |flags: &str| {
        let header = format!("00-{TRACE}-{SPAN}-{flags}");
        Request::get("/open/v1/users/me").bearer(&tokens.access).header("traceparent", &header)
    };
    let untraced = request_id(&api.send(called("00")).await);
    let request = request_id(&api.send(called("01")).await);
    let trace = collector.trace_of(&request).await;
    let root = own(&trace, &request);
    assert_eq!((root.trace.as_str(), root.parent.as_deref()), (TRACE, Some(SPAN)));

    let refused = request_id(&api.send(Request::get("/open/v1/nothing?token=hunter2")).await);
    let trace = collector.trace_of(&refused).await;
    assert!(!own(&trace, &refused).has_failed, "a refusal is an answer");
    let ids = |span: &CollectedSpan| span.attributes.get("stagedoor.request_id").cloned();
    assert!(!collector.spans().iter().filter_map(ids).any(|id| id == untraced));

    stop(child).await;
    let lines = collector.lines();
    let line = lines.iter().find(|line| line.attributes.get("stagedoor.request_id") == Some(&refused));
    let line = line.expect("the line of the request");
    assert_eq!((line.message.as_str(), line.severity.as_str()), ("answered", "DEBUG"));
    assert_eq!(line.trace.as_deref(), Some(own(&trace, &refused).trace.as_str()));
    assert!(
        lines.iter().any(|line| line.message == "stagedoor serves"),
        "the first lines wait for the exporter"
    );
    assert!(
        lines.iter().any(|line| line.message.starts_with("stopping")),
        "the last lines are sent at the end"
    );
    let all = collector.receiver().received();
    assert!(all.iter().all(|received| received.header("x-key") == HEADER_SECRET));
    for received in &all {
        let body = String::from_utf8_lossy(&received.body);
        for secret in [KEY, &tokens.access, &tokens.refresh, &app.client_secret, &person.password, "hunter2"]
        {
            assert!(!body.contains(secret), "{secret}: {body}");
        }
    }
    let log = std::fs::read_to_string(folder.path().join("log")).expect("the log");
    assert!(!log.contains(HEADER_SECRET));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_shares_a_commit_on_postgresql_has_its_part_too() {
    let (folder, collector) = (tempfile::tempdir().expect("a folder"), Collector::start().await);
    let database = store::testing::migrated_postgres(None).await;
    let endpoint = collector.receiver().url("");
    let mut traced = stagedoor(&["serve", "--listen", "127.0.0.1:0", "--otlp-endpoint", &endpoint]);
    traced.args(["--trace-sample", "1"]);
    traced.env("STAGEDOOR_OPERATOR_KEY", KEY);
    traced.env("STAGEDOOR_DATABASE_URL", database.url().expect("PostgreSQL"));
    let (child, base_url) = serve(traced, &folder).await;
    let api = Api::new(&base_url, KEY);
    let app = api.application("bot").create().await;
    let person = api.person("someone").create().await;
    let tokens = api.sign_in(&app, &person).await;

    let request = request_id(&api.send_chat(&tokens.access, "hello").await);
    let trace = collector.trace_of(&request).await;
    let part = trace.iter().find(|span| span.name == "store write").expect("its transaction");
    assert_eq!(part.parent.as_deref(), Some(own(&trace, &request).id.as_str()));

    stop(child).await;
    database.remove().await;
}

/// The value of a sample of `/metrics`.
async fn sample(api: &Api, sample: &str) -> u64 {
    let text = api.operator(Request::get("/metrics")).await.text().to_owned();
    let line =
        text.lines().find_map(|line| line.strip_prefix(sample)).unwrap_or_else(|| panic!("{sample}: {text}"));
    line.trim().parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_do_not_wait_for_a_collector_that_hangs_and_what_it_refuses_is_counted() {
    let (folder, collector) = (tempfile::tempdir().expect("a folder"), Collector::start().await);
    collector.receiver().usually(Reply::Hang);
    let mut traced = command(&folder);
    traced.args(["--otlp-endpoint", &collector.receiver().url("/otlp"), "--trace-sample", "1"]);
    traced.env("STAGEDOOR_OPERATOR_KEY", KEY);
    let (child, base_url) = serve(traced, &folder).await;
    let api = Api::new(&base_url, KEY);
    patiently("the exporter calls", async {
        while collector.receiver().count() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let many = async {
        for _ in 0..300 {
            api.send(Request::get("/health/live")).await.content();
        }
    };
    assert!(while_running(Duration::from_secs(10), many).await.is_some(), "no request waits");
    assert_eq!(sample(&api, r#"stagedoor_otlp_sent_total{signal="traces"}"#).await, 0);
    // A status of 400 is final.
    collector.receiver().usually(Reply::Status(400));
    patiently("refused records are counted", async {
        while sample(&api, r#"stagedoor_otlp_dropped_total{signal="traces",cause="collector"}"#).await == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert!(
        collector.receiver().received().iter().all(|received| received.line.starts_with("POST /otlp/v1/"))
    );
    // A collector that is back gets what comes then.
    collector.receiver().usually(Reply::Status(200));
    patiently("later records arrive", async {
        while sample(&api, r#"stagedoor_otlp_sent_total{signal="traces"}"#).await == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    stop(child).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_collector_is_refused_without_its_headers() {
    for (arguments, part) in [
        (&["--otlp-endpoint", "collector:4317"][..], "--otlp-endpoint must be an address"),
        (&["--otlp-headers", "x=hunter2"], "--otlp-headers needs --otlp-endpoint"),
        (&["--otlp-endpoint", "http://x", "--otlp-headers", "hunter2"], "--otlp-headers must be"),
        (&["--trace-sample", "2"], "it must be a number from 0 to 1"),
    ] {
        let mut command = stagedoor(&["check-config"]);
        command.args(arguments);
        let output = run(command).await;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stderr.contains(part) && !output.stderr.contains("hunter2"), "{}", output.stderr);
    }
}
