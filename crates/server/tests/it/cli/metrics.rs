//! `GET /metrics`: the metrics of a node, and `docs/metrics.md`, which is generated from the same list.
//! `UPDATE_DOCS=1 cargo test -p server --test it metrics` renews that page.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use server::metrics::families::SECTIONS;
use server::metrics::text::{Family, Kind};
use server::{Environment, Node, Settings};
use testkit::{Api, EmptyDatabase, Engine, Request, Setup, World, both, patiently};
use upstream::ProviderSettings;
use upstream::testing::TestProvider;

use crate::fixture::{Fixture, UNKNOWN_TOKEN};

/// Names and values of a sample's labels, in their order.
type Labels = Vec<(String, String)>;

/// Name (with the suffix of a histogram's), labels, value.
type Sample = (String, Labels, f64);

/// A parsed family.
#[derive(Debug)]
struct Parsed {
    help: String,
    kind: String,
    samples: Vec<Sample>,
}

/// A strict parser of the text format, version 0.0.4: each family once, with its help, its type and then all
/// of its samples; no sample twice; complete histograms.
fn parse(text: &str) -> BTreeMap<String, Parsed> {
    let mut families: BTreeMap<String, Parsed> = BTreeMap::new();
    let mut current: Option<String> = None;
    let mut lines = text.strip_suffix('\n').expect("the last line ends").split('\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a help text");
            assert!(is_name(name, true), "{line}");
            let kind =
                lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("a type after a help");
            let (typed, kind) = kind.split_once(' ').expect("a type");
            assert_eq!(typed, name);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = Parsed { help: help.to_owned(), kind: kind.to_owned(), samples: Vec::new() };
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} comes twice");
            current = Some(name.to_owned());
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = current.as_ref().expect("a sample belongs to a family");
        let suffix =
            name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let parsed = families.get_mut(family).expect("it was begun");
        let suffixes: &[&str] =
            if parsed.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line}");
        let again = parsed.samples.iter().any(|(other, others, _)| *other == name && *others == labels);
        assert!(!again, "{line} comes twice");
        parsed.samples.push((name, labels, value));
    }
    families.values().filter(|family| family.kind == "histogram").for_each(check_histogram);
    families
}

fn is_name(name: &str, colons: bool) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
    name.chars().all(fits) && name.starts_with(|c: char| !c.is_ascii_digit())
}

fn sample(line: &str) -> Sample {
    let name_end = line.find(['{', ' ']).expect("a value");
    let (name, mut rest) = line.split_at(name_end);
    assert!(is_name(name, true), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect("a label");
            assert!(is_name(label, false) && !label.starts_with("__"), "{line}");
            let (mut value, mut chars) = (String::new(), after.char_indices());
            rest = loop {
                match chars.next().expect("a closing quote") {
                    (at, '"') => break &after[at + 1..],
                    (_, '\\') => value.push(match chars.next().expect("an escaped character").1 {
                        'n' => '\n',
                        plain @ ('\\' | '"') => plain,
                        other => panic!("{line}: \\{other}"),
                    }),
                    (_, plain) => value.push(plain),
                }
            };
            assert!(labels.iter().all(|(other, _)| other != label), "{line}");
            labels.push((label.to_owned(), value));
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').expect("a closing brace");
    }
    let value = rest.strip_prefix(' ').expect("one space before the value");
    assert!(!value.contains(' '), "{line}");
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// Checks for each set of labels that the buckets grow to `+Inf`, and that the last bucket equals the count.
fn check_histogram(family: &Parsed) {
    type Series = (Vec<(f64, f64)>, Option<f64>, Option<f64>);
    let mut series: BTreeMap<Labels, Series> = BTreeMap::new();
    for (name, labels, value) in &family.samples {
        let mut labels = labels.clone();
        let bound = labels.pop_if(|(name, _)| name == "le").map(|(_, bound)| bound.parse().expect("a bound"));
        let (buckets, sum, count) = series.entry(labels).or_default();
        match bound {
            Some(bound) => buckets.push((bound, *value)),
            None if name.ends_with("_sum") => *sum = Some(*value),
            None => *count = Some(*value),
        }
    }
    for (labels, (buckets, sum, count)) in series {
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{labels:?}");
        let last = buckets.last().expect("a bucket");
        assert_eq!((last.0, Some(last.1)), (f64::INFINITY, count), "{labels:?}");
        assert!(sum.is_some_and(|sum| sum >= 0.0), "{labels:?}");
    }
}

async fn metrics(api: &Api) -> BTreeMap<String, Parsed> {
    let answer = api.operator(Request::get("/metrics")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    parse(answer.text())
}

/// The sum of a family's samples that have these labels.
fn value(families: &BTreeMap<String, Parsed>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = &families[name.trim_end_matches("_count")];
    let fits = |sample: &&Sample| {
        let has = |(name, value): &(&str, &str)| sample.1.iter().any(|(n, v)| n == name && v == value);
        sample.0 == name && labels.iter().all(has)
    };
    let found: Vec<f64> = family.samples.iter().filter(fits).map(|(.., value)| *value).collect();
    assert!(!found.is_empty(), "{name} {labels:?}");
    found.iter().sum()
}

fn all() -> impl Iterator<Item = &'static Family> {
    SECTIONS.iter().flat_map(|section| section.families).copied()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_has_exactly_the_documented_families() {
    let provider = TestProvider::start().await;
    let upstreams: &'static [ProviderSettings] = vec![provider.settings("sky", "")].leak();
    both(Setup { upstreams, ..Setup::default() }, |world| async move {
        let families = metrics(&world).await;
        let listed: BTreeSet<&str> = all().map(|family| family.name).collect();
        // A process may have no limit on descriptors.
        let mut found: BTreeSet<&str> =
            families.keys().map(String::as_str).chain(["process_max_fds"]).collect();
        if world.engine() == Engine::Postgres {
            found.extend(["stagedoor_store_disk_free_bytes", "stagedoor_store_disk_size_bytes"]);
        }
        assert_eq!(found, listed);
        for family in all() {
            let Some(parsed) = families.get(family.name) else { continue };
            assert_eq!((parsed.kind.as_str(), parsed.help.as_str()), (family.kind.name(), family.help));
            assert!(!parsed.samples.is_empty(), "{} has no sample", family.name);
            for (name, labels, value) in &parsed.samples {
                let mut names: Vec<&str> = labels.iter().map(|(name, _)| name.as_str()).collect();
                names.retain(|name| *name != "le");
                assert_eq!(names, family.labels, "{name}");
                assert!(value.is_finite() && *value >= 0.0, "{name} {value}");
            }
        }
    })
    .await;
}

#[test]
fn names_follow_the_conventions() {
    for family in all() {
        let Family { name, kind, labels, help, .. } = family;
        let counter = *kind == Kind::Counter;
        assert_eq!(name.ends_with("_total"), counter, "{name}");
        assert!(name.starts_with("stagedoor_") || name.starts_with("process_"), "{name}");
        assert!(*kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        assert!(is_name(name, false) && labels.iter().all(|label| is_name(label, false) && *label != "le"));
        assert!(help.ends_with('.') && !help.contains('|'), "{name}: {help}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_counted_in_its_metric() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let before = metrics(&world).await;
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        for text in ["one", "two"] {
            world.send_chat(&tokens.access, text).await.content();
            socket.event("CHAT").await;
        }
        for path in ["/open/v1/channels?channelIds=haneul", "/open/v1/channels?channelIds=byeol"] {
            world.send(Request::get(path).client(&app.client_id, &app.client_secret)).await.content();
        }
        world.send(Request::get("/open/v1/users/me").bearer(UNKNOWN_TOKEN)).await.message();
        world.send(Request::get("/metrics").bearer(UNKNOWN_TOKEN)).await.message();
        let wrong = Request::get("/open/v1/lives").client(&app.client_id, UNKNOWN_TOKEN);
        world.send(wrong).await.assert_refused(401, "INVALID_CLIENT");
        world.send(Request::get("/haneul/secret")).await.assert_refused(404, "NOT_FOUND");
        world.send(Request::delete("/open/v1/users/me")).await.assert_refused(405, "METHOD_NOT_ALLOWED");
        testkit::Socket::connect(&format!("http://{}?auth=bad", world.address()))
            .await
            .expect_err("a bad token");
        let open = metrics(&world).await;
        socket.close().await;
        let after = patiently("the end is counted", async {
            loop {
                let now = metrics(&world).await;
                if value(&now, "stagedoor_sessions_closed_total", &[]) > 0.0 {
                    break now;
                }
            }
        })
        .await;

        let channels = [("route", "/open/v1/channels"), ("method", "GET")];
        let me = [("route", "/open/v1/users/me"), ("method", "GET")];
        let unmatched = [("route", "unmatched"), ("method", "any"), ("status", "4xx")];
        for (name, labels, grown) in [
            ("stagedoor_sessions", &[("transport", "websocket")][..], 1.0),
            ("stagedoor_sessions", &[("transport", "polling")], 0.0),
            ("stagedoor_sessions_opened_total", &[], 1.0),
            ("stagedoor_handshakes_refused_total", &[], 1.0),
            ("stagedoor_events_encoded_total", &[], 2.0),
            ("stagedoor_deliveries_total", &[], 2.0),
            ("stagedoor_http_requests_total", &[channels[0], channels[1], ("status", "2xx")], 2.0),
            ("stagedoor_http_requests_total", &[channels[0], channels[1], ("status", "4xx")], 0.0),
            ("stagedoor_http_request_duration_seconds_count", &channels, 2.0),
            ("stagedoor_http_slow_requests_total", &channels, 0.0),
            ("stagedoor_http_requests_total", &[me[0], me[1], ("status", "4xx")], 1.0),
            ("stagedoor_http_requests_total", &unmatched, 2.0),
            ("stagedoor_http_requests_total", &[("route", "/metrics")], 2.0),
            ("stagedoor_refusals_total", &[("kind", "invalid_token")], 2.0),
            ("stagedoor_operator_refused_total", &[], 1.0),
            ("stagedoor_client_secret_failures_total", &[], 1.0),
            ("stagedoor_sign_in_failures_total", &[("outcome", "wrong")], 0.0),
            ("stagedoor_refusals_total", &[("kind", "not_found")], 1.0),
            ("stagedoor_refusals_total", &[("kind", "method_not_allowed")], 1.0),
            ("stagedoor_refusals_total", &[("kind", "internal")], 0.0),
        ] {
            let grew = value(&open, name, labels) - value(&before, name, labels);
            assert_eq!(grew, grown, "{name} {labels:?}");
        }
        assert_eq!(value(&open, "stagedoor_http_objective_seconds", &channels), 0.5);
        assert_eq!(value(&open, "stagedoor_objective_ratio", &[("objective", "answered")]), 0.999);
        // Four writes: a session URL, a session, a subscription, and two messages.
        let written = "stagedoor_store_writes_committed_total";
        assert!(value(&open, written, &[]) - value(&before, written, &[]) >= 5.0);
        let looked = |now: &BTreeMap<_, _>| {
            ["hits", "misses"]
                .map(|kind| format!("stagedoor_credential_cache_{kind}_total"))
                .iter()
                .map(|name| value(now, name, &[]))
                .sum::<f64>()
        };
        assert!(looked(&open) - looked(&before) >= 7.0);
        assert_eq!(value(&after, "stagedoor_sessions", &[]), 0.0);
        assert_eq!(value(&after, "stagedoor_sessions_closed_total", &[("reason", "client_goodbye")]), 1.0);
        // Every reason has a sample from the start.
        let reasons = |now: &BTreeMap<String, Parsed>| now["stagedoor_sessions_closed_total"].samples.len();
        assert_eq!(reasons(&before), gateway::CloseReason::ALL.len());
        assert_eq!(value(&before, "stagedoor_sessions_closed_total", &[]), 0.0);
        assert_eq!(value(&after, "process_start_time_seconds", &[]), World::START_MS as f64 / 1e3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_is_measured_and_the_last_backup_is_known() {
    both(Setup::default(), |world| async move {
        world.record_backup(domain::Timestamp::from_millis(1_764_118_800_000)).await;
        let now = metrics(&world).await;
        assert!(value(&now, "stagedoor_store_size_bytes", &[]) > 100_000.0);
        assert_eq!(value(&now, "stagedoor_last_backup_timestamp_seconds", &[]), 1_764_118_800.0);
        let on_sqlite = world.engine() == Engine::Sqlite;
        let [free, size] = ["free", "size"].map(|what| format!("stagedoor_store_disk_{what}_bytes"));
        assert_eq!((now.contains_key(&free), now.contains_key(&size)), (on_sqlite, on_sqlite));
        assert!(!on_sqlite || value(&now, &free, &[]) < value(&now, &size, &[]));
        let (_, labels, _) = &now["stagedoor_build_info"].samples[0];
        let commit = labels.iter().find(|(name, _)| name == "commit").expect("a commit");
        assert!(!commit.1.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_label_names_an_application_a_user_a_session_or_a_secret() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let socket = world.open_user_session(&fixture.tokens.access).await;
        let key = socket.session_key();
        world.subscribe(&fixture.tokens.access, "chat", key).await.content();
        world.operator(Request::get(format!("/platform/v1/sessions/{key}"))).await.content();
        world.operator(Request::get("/platform/v1/applications/bot")).await.content();
        world.send(Request::get("/haneul?auth=secret")).await.message();
        let families = metrics(&world).await;
        let labels: BTreeSet<&str> = families
            .values()
            .flat_map(|family| &family.samples)
            .flat_map(|(_, labels, _)| labels.iter().map(|(_, value)| value.as_str()))
            .collect();
        let secrets = [
            &fixture.tokens.access,
            &fixture.tokens.refresh,
            &fixture.app.client_secret,
            &fixture.app.client_id,
            key,
        ];
        for name in secrets.into_iter().chain([World::OPERATOR_KEY, "haneul", "byeol", "bot"]) {
            assert!(!labels.iter().any(|label| label.split('/').any(|part| part == name)), "{name}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_need_the_operator_key_and_the_platform_listener() {
    both(Setup::default(), |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        for (request, message) in [
            (Request::get("/metrics"), "UNAUTHORIZED"),
            (Request::get("/metrics").client(&app.client_id, &app.client_secret), "UNAUTHORIZED"),
            (Request::get("/metrics").bearer(&tokens.access), "INVALID_TOKEN"),
        ] {
            world.send(request).await.assert_refused(401, message);
        }
        world.operator(Request::post("/metrics")).await.assert_refused(405, "METHOD_NOT_ALLOWED");
    })
    .await;
    both(EmptyDatabase, |target| async move {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let settings =
            Settings { listen: free, platform_listen: Some(free), ..testkit::settings_on(&target) };
        let node = Node::start(settings, Environment::system()).await.expect("it starts");
        let open = Api::new(node.base_url(), World::OPERATOR_KEY);
        let platform = Api::new(&node.platform_url(), World::OPERATOR_KEY);
        open.operator(Request::get("/metrics")).await.assert_refused(404, "NOT_FOUND");
        let families = metrics(&platform).await;
        // Refusals on both listeners are counted together.
        assert_eq!(value(&families, "stagedoor_refusals_total", &[("kind", "not_found")]), 1.0);
        node.stop().await;
    })
    .await;
}

/// The page, generated from the list of families.
fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         `GET /metrics` with the operator's key, on the listener of the platform API: all metrics of a node, in the text format\n\
         of Prometheus. [operating.md](operating.md#metrics) explains how to collect them. Counters begin at 0 when a node starts.\n\
         No label contains a secret or the id of an application, user or session.\n\n\
         This page is generated from the list in `crates/server/src/metrics/families.rs`:\n\
         `UPDATE_DOCS=1 cargo test -p server --test it metrics`.\n",
    );
    for section in SECTIONS {
        let _ = write!(page, "\n## {}\n\n", section.title);
        page.push_str("| Name | Type | Labels | Meaning | Alert on |\n|---|---|---|---|---|\n");
        for Family { name, kind, labels, help, alert } in section.families.iter().copied() {
            let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
            let dash = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
            let (labels, alert) = (dash(&labels), dash(alert));
            let _ = writeln!(page, "| `{name}` | {} | {labels} | {help} | {alert} |", kind.name());
        }
    }
    page
}

#[test]
fn the_documentation_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).expect("it can be written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/metrics.md");
    assert!(written == page(), "docs/metrics.md is stale: renew it as it says");
    // The names on the page, as a reader sees them.
    let names: Vec<&str> =
        written.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(names, all().map(|family| family.name).collect::<Vec<_>>());
}
