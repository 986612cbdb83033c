//! One corpus of odd requests to every endpoint, generated from the list of endpoints. Both databases give
//! the same answers, byte for byte. No answer is a 500 or leaves the envelope, and a refused request changes
//! nothing.
//!
//! The expected answers of each kind are in `bad_input`. These tests only compare the two databases.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};
use testkit::{Connection, Request, Response, Setup, Socket, World, both};

use crate::api::endpoints::{ENDPOINTS, Endpoint, Mode};
use crate::fixture::Fixture;
use crate::robustness::odd_values::{
    BODIES, DEPTHS, Extra, JSON_VALUES, LONG_VALUES, OPTIONAL_FIELDS, OPTIONAL_PARAMETERS, PATH_IDS,
    QUERY_VALUES, VOLATILE,
};

/// Replaces texts that differ between worlds.
const MASK: &str = "…";

/// An answer: the name of the request, the status, and the body without values that differ between worlds.
type Answered = (String, u16, String);

/// A world with some data, and a socket that receives the events of the streamer's channel.
struct Scene {
    world: World,
    fixture: Fixture,
    connection: Connection,
    socket: Socket,
}

impl Scene {
    async fn set(world: World) -> Self {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = world.open_client_session(&fixture.app).await;
        for event in ["chat", "donation", "subscription"] {
            world.subscribe(&fixture.tokens.access, event, socket.session_key()).await.content();
            socket.system("subscribed").await;
        }
        let connection = Connection::open(world.address()).await;
        let mut scene = Self { world, fixture, connection, socket };
        for endpoint in ENDPOINTS.iter() {
            scene.send_good(endpoint).await.content();
        }
        scene
    }

    async fn send(&mut self, request: &Request) -> Response {
        let answer = self.connection.send(request).await;
        if answer.header("connection") == Some("close") {
            self.connection = Connection::open(self.world.address()).await;
        }
        answer
    }

    async fn send_good(&mut self, endpoint: &Endpoint) -> Response {
        endpoint.prepare(&self.world, &self.fixture).await;
        let request = endpoint.good(&self.fixture, self.socket.session_key());
        self.send(&request).await
    }

    /// The visible state of the world.
    async fn snapshot(&mut self) -> Vec<Answered> {
        let mut seen = Vec::new();
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.method == "GET") {
            let request = endpoint.good(&self.fixture, self.socket.session_key());
            let answer = self.send(&request).await;
            let target = request.target().replace(self.socket.session_key(), MASK);
            let target = target.replace(&self.fixture.webhook_owner.message_id, MASK);
            seen.push(answered(format!("then {target}"), &answer));
        }
        seen
    }

    /// Waits for all events so far, and returns their number.
    async fn drain_events(&mut self) -> usize {
        self.socket.send("2").await;
        let mut received = 0;
        while self.socket.next_packet().await.expect("the session goes on") != "3" {
            received += 1;
        }
        received
    }
}

/// Checks that an answer is in the envelope and not a 500.
fn answered(name: String, answer: &Response) -> Answered {
    let status = answer.status;
    assert!(status < 500, "{name}: {}", answer.text());
    if status != 200 {
        answer.message();
        return (name, status, answer.text().to_owned());
    }
    (name, status, masked(answer.content()).to_string())
}

fn masked(value: Value) -> Value {
    let mask = |(key, value): (String, Value)| match value {
        Value::String(text) if !text.is_empty() && VOLATILE.contains(&key.as_str()) => (key, MASK.into()),
        // A refused message takes a time on SQLite alone, where it is posted to find the refusal.
        Value::Number(_) if key == "messageTime" => (key, MASK.into()),
        value => (key, masked(value)),
    };
    match value {
        // Operator keys and review requests of one millisecond have a random order, so a page has others in
        // each world. Entries of the audit log name them.
        Value::Object(fields)
            if ["keyId", "entryId", "requestId"].iter().any(|id| fields.contains_key(*id)) =>
        {
            MASK.into()
        }
        Value::Object(fields) => Value::Object(fields.into_iter().map(mask).collect::<Map<_, _>>()),
        Value::Array(items) => {
            let mut items: Vec<_> = items.into_iter().map(masked).collect();
            // Items of the same time are sorted by random ids, which differ between worlds.
            if items
                .iter()
                .any(|item| item.as_object().is_some_and(|item| item.values().any(|id| id == MASK)))
            {
                items.sort_by_key(Value::to_string);
            }
            items.into()
        }
        value => value,
    }
}

/// The additional names of a table's row.
fn extras(table: &[Extra], endpoint: &Endpoint) -> &'static [&'static str] {
    table
        .iter()
        .find(|(method, path, _)| (*method, *path) == (endpoint.method, endpoint.path))
        .map_or(&[], |(.., names)| names)
}

/// The odd requests to an endpoint, each with a name.
fn odd_requests(endpoint: &Endpoint, fixture: &Fixture, session_key: &str) -> Vec<(String, Request)> {
    // The odd requests go to another application, because their effects must not invalidate the tokens of the
    // others.
    let target = endpoint.target(session_key).replace("/applications/bot", "/applications/odd");
    let body = endpoint.body(fixture);
    let mut requests = Vec::new();
    let mut push = |what: String, target: &str, body: Option<Vec<u8>>| {
        let request = endpoint.proven(fixture, target);
        let request = body.into_iter().fold(request, Request::body);
        requests.push((format!("{} {} {what}", endpoint.method, endpoint.path), request));
    };
    if let Value::Object(good) = &body {
        for field in good.keys().map(String::as_str).chain(extras(OPTIONAL_FIELDS, endpoint).iter().copied())
        {
            for value in field_values() {
                if field == "waitSeconds" && value.parse().is_ok_and(|seconds: f64| seconds > 0.0) {
                    // This request would wait for a clock that does not advance.
                    continue;
                }
                push(
                    format!("{field} = {}", shown(value.as_bytes())),
                    &target,
                    Some(with_field(good, field, &value).into()),
                );
            }
        }
        for body in odd_bodies() {
            push(format!("body {}", shown(&body)), &target, Some(body));
        }
    }
    let good_body = || (!body.is_null()).then(|| body.to_string().into_bytes());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let good: Vec<_> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let names =
        good.iter().map(|(name, _)| *name).chain(extras(OPTIONAL_PARAMETERS, endpoint).iter().copied());
    for name in names.collect::<BTreeSet<_>>() {
        let others: String = good
            .iter()
            .filter(|(other, _)| *other != name)
            .map(|(name, value)| format!("&{name}={value}"))
            .collect();
        for value in QUERY_VALUES {
            let value = value.replace("{name}", name);
            push(format!("?{name}={value}"), &format!("{path}?{name}={value}{others}"), good_body());
        }
        let long = "x".repeat(10_000);
        push(format!("?{name}=long"), &format!("{path}?{name}={long}{others}"), good_body());
    }
    for (at, part) in endpoint.path.split('/').enumerate().filter(|(_, part)| part.starts_with('{')) {
        for id in PATH_IDS.iter().copied() {
            let odd = |(n, other)| if n == at { id } else { other };
            let path: Vec<_> = path.split('/').enumerate().map(odd).collect();
            push(format!("{part} = {id}"), &path.join("/"), good_body());
        }
    }
    requests
}

/// A prefix of the bytes, to identify them.
fn shown(bytes: &[u8]) -> String {
    format!("{} ({} bytes)", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]), bytes.len())
}

fn field_values() -> impl Iterator<Item = String> {
    let long = LONG_VALUES.iter().map(|(text, times)| format!("\"{}\"", text.repeat(*times)));
    JSON_VALUES.iter().map(|value| (*value).to_owned()).chain(long)
}

/// The good body, with one field spelled exactly like this.
fn with_field(good: &Map<String, Value>, field: &str, value: &str) -> String {
    let others =
        good.iter().filter(|(name, _)| *name != field).map(|(name, value)| format!(",\"{name}\":{value}"));
    format!("{{\"{field}\":{value}{}}}", others.collect::<String>())
}

fn odd_bodies() -> impl Iterator<Item = Vec<u8>> {
    let deep = |depth: &usize| {
        let depth = *depth;
        [
            format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes(),
            format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).into_bytes(),
        ]
    };
    BODIES.iter().map(|body| body.to_vec()).chain(DEPTHS.iter().flat_map(deep))
}

/// A part of the endpoints with its own world, so that all parts run in parallel. The clock of a world stands
/// still, and each endpoint costs some pings, so a large part would end its session as a flood of packets.
type Part = fn(&Endpoint) -> bool;

/// Sends the corpus of a part, and records the world after each endpoint that writes.
async fn send_corpus(world: World, part: Part) -> Vec<Answered> {
    let mut scene = Scene::set(world).await;
    let mut answers = Vec::new();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| part(endpoint)) {
        for (name, request) in odd_requests(endpoint, &scene.fixture, scene.socket.session_key()) {
            let answer = scene.send(&request).await;
            answers.push(answered(name, &answer));
        }
        // Restores what the next endpoint needs.
        let good = scene.send_good(endpoint).await;
        answers.push(answered(format!("good {}", endpoint.path), &good));
        if endpoint.method != "GET" {
            answers.extend(scene.snapshot().await);
        }
        let received = scene.drain_events().await;
        answers.push((format!("events of {}", endpoint.path), 200, received.to_string()));
    }
    answers
}

/// Sends only the refused requests to another world. That world must look as before, without any event.
async fn resend_refused(world: World, part: Part, refused: &HashSet<String>) {
    let mut scene = Scene::set(world).await;
    let mut good_now = 0;
    for endpoint in ENDPOINTS.iter().filter(|endpoint| part(endpoint)) {
        endpoint.prepare(&scene.world, &scene.fixture).await;
        scene.drain_events().await;
        let mut before = scene.snapshot().await;
        for (name, request) in odd_requests(endpoint, &scene.fixture, scene.socket.session_key()) {
            if refused.contains(&name) && scene.send(&request).await.status == 200 {
                // A request that was refused after an earlier one may be valid without the earlier one.
                good_now += 1;
                before = scene.snapshot().await;
                scene.drain_events().await;
            }
        }
        assert_eq!(scene.drain_events().await, 0, "{}", endpoint.path);
        assert_eq!(scene.snapshot().await, before, "{}", endpoint.path);
    }
    assert!(good_now * 100 < refused.len(), "{good_now} of {}", refused.len());
}

/// Both databases give the same answer to every odd request, and a refused request changes nothing.
async fn compare_databases(part: Part) {
    let recorded: Arc<Mutex<Vec<Vec<Answered>>>> = Arc::default();
    both(Setup::default(), |world| {
        let recorded = recorded.clone();
        async move {
            let answers = send_corpus(world, part).await;
            recorded.lock().expect("no test fails while it holds it").push(answers);
        }
    })
    .await;
    let recorded = recorded.lock().expect("no test fails while it holds it").clone();
    let [sqlite, postgres] = recorded.as_slice() else { panic!("two engines") };
    for (on_sqlite, on_postgres) in sqlite.iter().zip(postgres) {
        assert_eq!(on_sqlite, on_postgres);
    }
    assert_eq!(sqlite.len(), postgres.len());

    let refused = sqlite.iter().filter(|(_, status, _)| *status != 200).map(|(name, ..)| name.clone());
    let refused: Arc<HashSet<String>> = Arc::new(refused.collect());
    assert!(refused.len() > 100, "{} were refused", refused.len());
    both(Setup::default(), |world| {
        let refused = refused.clone();
        async move { resend_refused(world, part, &refused).await }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oddities_of_applications() {
    compare_databases(|endpoint| !matches!(endpoint.mode, Mode::User(_) | Mode::Operator)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oddities_of_users() {
    compare_databases(|endpoint| matches!(endpoint.mode, Mode::User(_))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oddities_of_the_platform_on_channels() {
    compare_databases(|endpoint| endpoint.mode == Mode::Operator && endpoint.path.contains("{channelId}"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oddities_of_the_platform_on_applications() {
    compare_databases(|endpoint| is_elsewhere(endpoint) && endpoint.path.contains("/applications")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oddities_of_the_platform_elsewhere() {
    compare_databases(|endpoint| is_elsewhere(endpoint) && !endpoint.path.contains("/applications")).await;
}

fn is_elsewhere(endpoint: &Endpoint) -> bool {
    endpoint.mode == Mode::Operator && !endpoint.path.contains("{channelId}")
}
