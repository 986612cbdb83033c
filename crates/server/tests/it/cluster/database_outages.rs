//! Database outages: every call is answered with 500 within 3 s, and never with a wrong answer. When the
//! database is back, every call works again without a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Connection, Network, Request, Response, Setup, Socket, Wire, World, over_a_wire, patiently, while_running,
};

use crate::api::endpoints::{ENDPOINTS, Endpoint, session_key};
use crate::fixture::{Fixture, UNKNOWN_TOKEN};

/// The longest time without an answer.
const LIMIT: Duration = Duration::from_secs(3);

async fn within_limit<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = while_running(LIMIT, future).await;
    done.unwrap_or_else(|| panic!("nothing came within {LIMIT:?}: {what}"))
}

/// Sends all requests at once, and returns their answers.
async fn all_at_once(world: &World, requests: Vec<Request>) -> Vec<(String, Response)> {
    let send = |request: Request| {
        let world = world.clone();
        tokio::spawn(async move {
            let name = format!("{} {}", request.method(), request.target());
            let answer = within_limit(&name, world.send(request)).await;
            (name, answer)
        })
    };
    let mut answers = Vec::new();
    for answer in requests.into_iter().map(send).collect::<Vec<_>>() {
        answers.push(answer.await.expect("every call is answered"));
    }
    answers
}

fn is_internal(answer: &Response) -> bool {
    answer.status == 500 && answer.text() == r#"{"code":500,"message":"INTERNAL_SERVER_ERROR"}"#
}

/// A token may be accepted from the cache for two seconds after its last look-up.
fn may_be_remembered(name: &str) -> bool {
    name.ends_with("/users/me")
}

/// All endpoints but one: the refresh token of the fixture works only once. The endpoint that revokes the
/// others' credentials comes last.
fn repeatable() -> impl Iterator<Item = &'static Endpoint> {
    let withdraws = |endpoint: &&Endpoint| endpoint.path.contains("/consents/");
    let others = ENDPOINTS.iter().filter(move |endpoint| !withdraws(endpoint));
    others.filter(|endpoint| endpoint.path != "/auth/v1/token").chain(ENDPOINTS.iter().filter(withdraws))
}

fn post(message: &str) -> Request {
    let body = json!({ "senderChannelId": "byeol", "message": message });
    Request::post("/platform/v1/channels/haneul/chats").bearer(World::OPERATOR_KEY).json(&body)
}

/// Uses every connection until all of them work: broken connections are dropped on use.
async fn until_found_again(world: &World, fixture: &Fixture) {
    let read = Request::get("/open/v1/sessions").bearer(&fixture.tokens.access);
    let calls = || (0..20).flat_map(|_| [read.clone(), post("x")]).collect();
    patiently("the database is found again", async {
        let mut found = false;
        while !found {
            found = true;
            for (name, answer) in all_at_once(world, calls()).await {
                assert!(answer.status == 200 || is_internal(&answer), "{name}: {}", answer.text());
                found &= answer.status == 200;
            }
        }
    })
    .await;
}

async fn survives(world: World, wire: Arc<Wire>, outage: Network) {
    let fixture = Fixture::set_up(&world).await;
    let (_socket, key) = session_key(&world, &fixture).await;
    let requests: Vec<_> = repeatable().map(|endpoint| endpoint.good(&fixture, &key)).collect();
    let refresh = world.sign_in(&fixture.app, &fixture.viewer).await.refresh;
    let address = world.user_session_url(&fixture.tokens.access).await.content();
    let address = address["url"].as_str().expect("a text").to_owned();
    let page = format!(
        "/account-interlock?clientId=bot&redirectUri={}&state=x",
        testkit::encode(&fixture.app.redirect_uri)
    );

    wire.set(outage);
    let mut tries = requests;
    // Without the database it is unknown whether these credentials are valid.
    tries.push(Request::get("/open/v1/sessions").bearer(UNKNOWN_TOKEN));
    tries.push(Request::get("/open/v1/sessions/client").client("missing", UNKNOWN_TOKEN));
    for _ in 0..2 {
        for (name, answer) in all_at_once(&world, tries.clone()).await {
            let remembered = may_be_remembered(&name) && answer.status == 200;
            assert!(remembered || is_internal(&answer), "{name}: {} {}", answer.status, answer.text());
        }
        let answer = within_limit("a refresh", world.refresh(&fixture.app, &refresh)).await;
        assert!(is_internal(&answer), "{}", answer.text());
        let refused = within_limit("a handshake", Socket::connect(&address)).await.expect_err("a refusal");
        assert!(is_internal(&refused), "{} {}", refused.status, refused.text());
        let answer = within_limit("a page", world.send(Request::get(page.clone()))).await;
        assert_eq!(answer.status, 500);
        // Errors that need no database are still reported.
        let answer = world.send(Request::get("/open/v1/users/me")).await;
        answer.assert_refused(401, "UNAUTHORIZED");
    }

    wire.set(Network::Up);
    until_found_again(&world, &fixture).await;
    world.refresh(&fixture.app, &refresh).await.content();
    Socket::open(&address).await.close().await;
    assert_eq!(world.send(Request::get(page)).await.status, 200);
    for endpoint in repeatable() {
        endpoint.prepare(&world, &fixture).await;
        world.send(endpoint.good(&fixture, &key)).await.content();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_fail_within_3_s_when_the_database_closes_connections_and_recover() {
    over_a_wire(Setup::default(), |world, wire| survives(world, wire, Network::Down)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_fail_within_3_s_when_the_database_is_silent_and_recover() {
    over_a_wire(Setup::hurried(), |world, wire| survives(world, wire, Network::Silent)).await;
}

/// Callers continue to send while the database fails and comes back. Each is answered in time. Every accepted
/// call took effect, and no refused call sent an event.
#[tokio::test(flavor = "multi_thread")]
async fn calls_in_flight_are_answered_in_time_when_the_database_fails() {
    over_a_wire(Setup::default(), |world, wire| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&fixture.tokens.access).await;
        world.subscribe(&fixture.tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        let enough = Arc::new(AtomicBool::new(false));
        let callers = (0..8).map(|caller| {
            let (world, enough) = (world.clone(), enough.clone());
            tokio::spawn(async move {
                let mut accepted = Vec::new();
                for n in (0..).take_while(|_| !enough.load(Ordering::Relaxed)) {
                    let text = format!("{caller}-{n}");
                    let answer = within_limit("a chat message", world.send(post(&text))).await;
                    match answer.status {
                        200 => accepted.push(text),
                        _ => assert!(is_internal(&answer), "{}", answer.text()),
                    }
                }
                accepted
            })
        });
        let callers: Vec<_> = callers.collect();
        let mut received = Vec::new();
        for outage in [Network::Down, Network::Silent] {
            for _ in 0..20 {
                received.push(socket.event("CHAT").await["content"].clone());
            }
            wire.set(outage);
            tokio::time::sleep(Duration::from_millis(300)).await;
            wire.set(Network::Up);
        }
        enough.store(true, Ordering::Relaxed);
        let mut accepted = Vec::new();
        for caller in callers {
            accepted.extend(caller.await.expect("every call is answered"));
        }
        until_found_again(&world, &fixture).await;
        world.send(post("last")).await.content();
        while received.last() != Some(&json!("last")) {
            received.push(socket.event("CHAT").await["content"].clone());
        }
        received.retain(|text| text != "last" && text != "x");
        let mut received: Vec<_> =
            received.iter().map(|text| text.as_str().expect("a text").to_owned()).collect();
        accepted.sort();
        received.sort();
        assert_eq!(received, accepted);
    })
    .await;
}

fn line(n: usize) -> String {
    let message = format!("message {n}");
    let key = format!("key {n}");
    let line = json!({
        "kind": "chat", "channelId": "haneul", "senderChannelId": "byeol", "message": message, "idempotencyKey": key,
    });
    format!("{line}\n")
}

/// The number of accepted lines, and the numbers of the lines refused with 500. No line is refused with
/// another code.
fn tally(answer: &Response) -> (u64, Vec<u64>) {
    let content = answer.content();
    let line = |line: &Value| {
        assert_eq!((&line["code"], &line["message"]), (&json!(500), &json!("INTERNAL_SERVER_ERROR")));
        line["line"].as_u64().expect("a number")
    };
    let lines = content["refused"].as_array().expect("a list").iter().map(line).collect();
    (content["accepted"].as_u64().expect("a number"), lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_call_without_a_database_lists_the_lines_to_send_again() {
    over_a_wire(Setup::hurried(), |world, wire| async move {
        let fixture = Fixture::set_up(&world).await;
        let mut socket = world.open_user_session(&fixture.tokens.access).await;
        world.subscribe(&fixture.tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;

        let mut connection = Connection::open(world.address()).await;
        let body: String = (0..900).map(line).collect();
        let (first, rest) = body.split_at(body.find("\n{\"channelId\":\"haneul\",\"idempotencyKey\":\"key 3\"").expect("it is there") + 1);
        let head = format!(
            "POST /platform/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
            World::OPERATOR_KEY,
            body.len()
        );
        connection.write(head.as_bytes()).await;
        connection.write(first.as_bytes()).await;
        for n in 0..3 {
            assert_eq!(socket.event("CHAT").await["content"], format!("message {n}"));
        }
        wire.set(Network::Silent);
        connection.write(rest.as_bytes()).await;
        let answer = within_limit("a bulk", connection.read_response(false)).await.expect("an answer");
        assert_eq!(tally(&answer), (3, (4..=900).collect()));

        // No line could be processed, so the whole request is answered with 500.
        let again = || Request::post("/platform/v1/events").bearer(World::OPERATOR_KEY).body(body.clone());
        let answer = within_limit("a bulk", world.send(again())).await;
        assert!(is_internal(&answer), "{}", answer.text());

        wire.set(Network::Up);
        until_found_again(&world, &fixture).await;
        assert_eq!(tally(&world.send(again()).await), (900, Vec::new()));
        let mut received = Vec::new();
        while received.len() < 897 {
            let event = socket.event("CHAT").await;
            received.extend(Some(event["content"].clone()).filter(|text| text != "x"));
        }
        assert_eq!(received, (3..900).map(|n| json!(format!("message {n}"))).collect::<Vec<_>>());
        socket.ping().await;
    })
    .await;
}
