//! A sandbox with a seed and a clock that stands still: the same calls give the same answers.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Api, Application, Person, Received, Receiver, Reply, Request, ReservedPort};

use crate::cli::process::{Sandbox, stagedoor_in};

/// Starts a sandbox with these options at an address.
async fn start(folder: &Path, listen: &str, options: &[&str]) -> Sandbox {
    let mut dev = stagedoor_in(folder, &["dev", "--json", "--listen", listen]);
    dev.args(options).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    Sandbox::of(dev, folder.join("log")).await
}

/// A world in which a script of calls runs.
struct Scripted {
    api: Api,
    /// Its description.
    world: Value,
}

impl Scripted {
    fn of(world: &Value) -> Self {
        let text = |name: &str| world[name].as_str().expect("a text").to_owned();
        let mut world = world.clone();
        world.as_object_mut().expect("an object").remove("worldId");
        Self { api: Api::new(&text("baseUrl"), &text("operatorKey")), world }
    }

    fn application(&self, index: usize) -> Application {
        let found = &self.world["applications"][index];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Application {
            client_id: text(&found["clientId"]),
            client_secret: text(&found["clientSecret"]),
            redirect_uri: text(&found["redirectUris"][0]),
        }
    }

    fn person(&self, index: usize) -> Person {
        let user = &self.world["users"][index];
        let text = |name: &str| user[name].as_str().expect("a text").to_owned();
        Person {
            channel_id: text("channelId"),
            name: text("channelName"),
            login: text("login"),
            password: text("password"),
        }
    }

    /// Everything that a script of calls, a socket and a webhook are answered and sent, with the headers. The
    /// address of the world is left out.
    async fn transcript(&self, receiver: &Receiver) -> Vec<String> {
        let (demo, drops) = (self.application(0), self.application(1));
        let (streamer, viewer) = (self.person(0), self.person(7));
        let mut lines = vec![self.world.to_string()];
        let tokens = self.api.sign_in(&demo, &streamer).await;
        lines.push(whole(&self.api.refresh(&demo, &tokens.refresh).await));
        let access = self.world["users"][0]["tokens"]["demo"]["accessToken"].as_str().expect("a token");
        let mut socket = self.api.open_user_session(access).await;
        let key = socket.session_key().to_owned();
        let subscribe = format!("/open/v1/sessions/events/subscribe/chat?sessionKey={key}");
        lines.extend([tokens.access, tokens.refresh, key]);
        for request in [
            Request::post(&subscribe).bearer(access),
            Request::get("/open/v1/users/me").bearer(access),
            Request::get("/open/v1/users/me").bearer("a wrong token"),
            Request::post("/open/v1/chats/send").bearer(access).json(&json!({ "message": "hello" })),
            Request::get("/open/v1/nowhere"),
            Request::post("/open/v1/chats/send").bearer(access).json(&json!({ "message": 5 })),
            Request::get("/open/v1/sessions/auth").bearer(access),
            Request::get("/open/v1/streams/key").bearer(access),
        ] {
            lines.push(whole(&self.api.send(request).await));
        }
        let webhook = json!({ "url": receiver.url("/hook") });
        let put = Request::put("/platform/v1/applications/drops/webhook").json(&webhook);
        lines.push(whole(&self.api.operator(put).await));
        receiver.reply([Reply::Status(500)]);
        let donation = json!({ "to": streamer.channel_id, "from": viewer.channel_id, "amount": 1_000 });
        for (path, body) in [
            ("tokens", json!({ "user": "bada" })),
            ("trigger/donation", donation),
            ("trigger/follow", json!({ "channel": "haneul", "from": "nuri" })),
            ("trigger/claim", json!({ "viewer": "nuri", "campaign": "first-voyage", "reward": "sail" })),
        ] {
            lines.push(self.sandbox(path, &body).await);
        }
        lines.push(sent(&receiver.next().await));
        for (path, body) in [
            ("clock", json!({ "advance": "1h" })),
            ("trigger/chat", json!({ "channel": "haneul", "from": "nuri", "message": "later" })),
        ] {
            lines.push(self.sandbox(path, &body).await);
        }
        lines.push(sent(&receiver.next().await));
        // SYSTEM, two messages of the chat.
        for _ in 0..3 {
            lines.push(socket.next_packet().await.expect("a packet"));
        }
        let deliveries = "/platform/v1/applications/drops/webhook/deliveries";
        let listed = self.api.operator(Request::get(deliveries)).await;
        let id = listed.content()["data"][0]["messageId"].as_str().expect("an id").to_owned();
        lines.push(whole(&listed));
        lines.push(whole(&self.api.operator(Request::get(format!("{deliveries}/{id}"))).await));
        lines.push(whole(&self.api.reward_claims(&drops, "").await));
        lines.push(self.sandbox("clock", &json!({ "advance": "40d" })).await);
        lines.push(whole(&self.api.me(access).await));
        let address = self.world["baseUrl"].as_str().expect("a text").replace("http://", "");
        lines.into_iter().map(|line| line.replace(&address, "ADDRESS")).collect()
    }

    async fn sandbox(&self, path: &str, body: &Value) -> String {
        let request = Request::post(format!("/sandbox/v1/{path}")).json(body);
        let answer = self.api.operator(request).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        whole(&answer)
    }
}

/// A request to a webhook.
fn sent(received: &Received) -> String {
    format!("{} {:?} {}", received.line, received.headers, String::from_utf8_lossy(&received.body))
}

fn whole(answer: &testkit::Response) -> String {
    format!("{} {:?} {}", answer.status, answer.headers, answer.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_calls_give_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--seed", "7", "--clock", "2027-01-01T00:00:00Z"];
    let receiver = Receiver::start().await;
    let port = ReservedPort::take();
    let listen = port.address().to_string();
    let one = start(folder.path(), &listen, &options).await;
    let first = Scripted::of(&one.world).transcript(&receiver).await;
    let new = json!({ "name": "other", "seed": 7, "clock": "2027-01-01T00:00:00Z" });
    let other = one.api.operator(Request::post("/sandbox/v1/worlds").json(&new)).await.content();
    let of_other = Scripted::of(&other).transcript(&receiver).await;
    let first_line = one.first_line.clone();
    one.signal("TERM").await;
    assert!(one.end().await.0.success());
    let two = start(folder.path(), &listen, &options).await;
    assert_eq!(two.first_line, first_line);
    let second = Scripted::of(&two.world).transcript(&receiver).await;
    for (which, transcript) in [("another world", of_other), ("another start", second)] {
        assert_eq!(transcript.len(), first.len());
        for (line, expected) in transcript.iter().zip(&first) {
            assert_eq!(line, expected, "{which}");
        }
    }
    assert!(first[5].contains("Fri, 01 Jan 2027 00:00:00 GMT"), "{}", first[5]);
    two.signal("TERM").await;
    assert!(two.end().await.0.success());
    let different = ["--seed", "8", "--clock", "2027-01-01T00:00:00Z"];
    let three = start(folder.path(), &listen, &different).await;
    assert_ne!(three.first_line, first_line);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_alone_pins_ids_secrets_and_tokens_and_a_kept_world_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let claims = async |sandbox: &Sandbox| {
        let app = sandbox.application("drops");
        let claims = Request::get("/open/v1/drops/reward-claims").client(&app.client_id, &app.client_secret);
        sandbox.api.send(claims).await.content()["data"][0]["claimId"].clone()
    };
    let pinned = |sandbox: &Sandbox| {
        let mut world = sandbox.world.clone();
        for url in ["baseUrl", "authUrl", "platformUrl"] {
            world[url].take();
        }
        world
    };
    let kept = folder.path().join("kept");
    let data = kept.to_str().expect("UTF-8");
    let one = start(folder.path(), "127.0.0.1:0", &["--seed", "7", "--data", data]).await;
    let two = start(folder.path(), "127.0.0.1:0", &["--seed", "7"]).await;
    assert_eq!(pinned(&one), pinned(&two));
    assert_eq!(claims(&one).await, claims(&two).await);
    let clock = one.api.operator(Request::get("/sandbox/v1/clock")).await.content();
    assert_eq!(clock["mode"], "real");
    one.signal("TERM").await;
    assert!(one.end().await.0.success());
    // The tokens of the first start exist, so the second start issues others.
    let again = start(folder.path(), "127.0.0.1:0", &["--seed", "7", "--data", data]).await;
    assert_eq!(again.world["operatorKey"], two.world["operatorKey"]);
    assert_eq!(again.world["applications"], two.world["applications"]);
    assert_ne!(again.world["users"], two.world["users"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_seed_or_clock_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for options in [["--seed", "seven"], ["--seed", "1.5"], ["--clock", "tomorrow"]] {
        let refused = crate::cli::process::run(stagedoor_in(folder.path(), &["dev", options[0], options[1]]));
        let refused = refused.await;
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(options[0]), "{}", refused.stderr);
    }
}
