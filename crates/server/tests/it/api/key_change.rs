//! The operator key and the service key are changed while the service runs, on each node in its turn.

use domain::seal::ServiceKey;
use domain::secret::{BrowserToken, OperatorKey};
use domain::{ChannelId, ClientId, Scope};
use serde_json::json;
use server::{Environment, Node, Settings};
use service::seals::{SealedKind, SealsSeen};
use service::service_key::KeyChange;
use store::Target;
use store::testing::postgres;
use testkit::{Api, EmptyDatabase, Request, World, both, settings_on};

const NEXT_OPERATOR_KEY: &str = "the next operator key of this service";

/// A node with a service key, and maybe one that opens too.
async fn node(target: &Target, key: &str, other: Option<&str>) -> Node {
    start(target, key, other).await.expect("it starts")
}

async fn start(target: &Target, key: &str, other: Option<&str>) -> Result<Node, String> {
    let own = ServiceKey::of_text(key);
    let service_key = match other {
        Some(other) => own.beside(&ServiceKey::of_text(other)),
        None => own,
    };
    let settings = Settings {
        service_key,
        other_operator_key: OperatorKey::presented(NEXT_OPERATOR_KEY),
        ..settings_on(target)
    };
    Node::start(settings, Environment::system()).await
}

/// The browser in which the second step is begun.
fn browser() -> BrowserToken {
    BrowserToken::generate([7; 32])
}

/// What is sealed for one streamer and one application.
#[derive(Debug, PartialEq)]
struct Secrets {
    stream_key: String,
    webhook: String,
    two_factor: String,
}

/// Opens every secret with the keys of a node; `None` where no key opens it.
async fn secrets(node: &Node, token: &str, channel: &ChannelId, client: &ClientId) -> Option<Secrets> {
    let api = Api::new(node.base_url(), World::OPERATOR_KEY);
    let answer = api.stream_key(token).await;
    if answer.status != 200 {
        return None;
    }
    let webhook = node.service().signing_webhook_secret(client).await.expect("the store answers")?;
    let two_factor =
        node.service().unconfirmed_two_factor(channel, &browser()).await.expect("the store answers")?;
    Some(Secrets {
        stream_key: answer.content()["streamKey"].as_str().expect("a key").to_owned(),
        webhook: webhook.expose().to_owned(),
        two_factor: two_factor.expose().to_string(),
    })
}

/// Looks at every secret once.
async fn renew(node: &Node) -> [u64; 2] {
    let mut sum = [0, 0];
    for kind in SealedKind::ALL {
        let seen = node.service().renew_seals(kind, "").await.expect("the store answers");
        let SealsSeen { renewed, lost, next } = seen;
        assert_eq!(next, None);
        sum = [sum[0] + renewed, sum[1] + lost];
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn both_keys_are_valid_until_every_secret_is_sealed_again() {
    both(EmptyDatabase, |target| async move {
        let first = node(&target, "the first", None).await;
        let api = Api::new(first.base_url(), World::OPERATOR_KEY);
        let app = api.application("bot").create().await;
        let person = api.person("someone").create().await;
        let token = api.sign_in(&app, &person).await.access;
        let organization = json!({ "organizationName": "Games", "verified": true });
        api.operator(Request::put("/platform/v1/organizations/games").json(&organization)).await.content();
        let publisher = api.application("publisher").scopes(&[Scope::Drops]).with("organizationId", "games");
        publisher.create().await;
        let webhook = Request::put("/platform/v1/applications/publisher/webhook").json(&json!({}));
        api.operator(webhook).await.content();
        let (channel, client) =
            (ChannelId::stored(person.channel_id.clone()), ClientId::stored("publisher".to_owned()));
        first.service().begin_two_factor(&channel, &browser()).await.expect("a secret");
        let made = secrets(&first, &token, &channel, &client).await.expect("sealed with the first key");
        first.stop().await;

        // Every node learns the next key before one seals with it.
        let prepared = node(&target, "the first", Some("the next")).await;
        assert_eq!(secrets(&prepared, &token, &channel, &client).await.as_ref(), Some(&made));
        assert_eq!(renew(&prepared).await, [0, 0]);
        assert_eq!(prepared.service().finish_key_change().await.ok(), Some(KeyChange::NotBegun));
        for key in [World::OPERATOR_KEY, NEXT_OPERATOR_KEY] {
            Api::new(prepared.base_url(), key).operator(Request::get("/platform/v1/keys")).await.content();
        }
        let wrong = Api::new(prepared.base_url(), "another key, which is long enough");
        wrong.operator(Request::get("/platform/v1/keys")).await.assert_refused(401, "INVALID_TOKEN");
        prepared.stop().await;

        // The node begins to seal again when it starts, so of both only one finds a secret.
        let changed = node(&target, "the next", Some("the first")).await;
        assert_eq!(secrets(&changed, &token, &channel, &client).await.as_ref(), Some(&made));
        let [renewed, lost] = renew(&changed).await;
        assert!(renewed <= 3 && lost == 0, "{renewed} {lost}");
        testkit::patiently("no secret needs the first key", async {
            while renew(&changed).await != [0, 0] {}
        })
        .await;
        let change = changed.service().finish_key_change().await.expect("the store answers");
        assert!(matches!(change, KeyChange::Done | KeyChange::Elsewhere), "{change:?}");
        changed.stop().await;

        let last = node(&target, "the next", None).await;
        assert_eq!(secrets(&last, &token, &channel, &client).await.as_ref(), Some(&made));
        last.stop().await;
        let late = start(&target, "the first", None).await.err().expect("it is refused");
        assert!(late.contains("the service key is not the one of this store"), "{late}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_with_the_keys_in_another_order_serve_side_by_side() {
    // A SQLite file has one node.
    let database = postgres().await;
    let target = database.target();
    // A node of an operator key has its own as the first one, in each step of a rotation.
    let before = node(&target, "the first", Some("the next")).await;
    let after = node(&target, "the next", Some("the first")).await;
    let api = |node: &Node, key| Api::new(node.base_url(), key);
    let [old, new] = [api(&before, World::OPERATOR_KEY), api(&after, World::OPERATOR_KEY)];
    for node in [&before, &after] {
        for key in [World::OPERATOR_KEY, NEXT_OPERATOR_KEY] {
            api(node, key).operator(Request::get("/platform/v1/keys")).await.content();
        }
    }
    let app = old.application("bot").create().await;
    let person = new.person("someone").create().await;
    for (maker, reader) in [(&old, &new), (&new, &old), (&old, &new)] {
        // A token, a stream key and a cursor of one node are good on the other.
        let token = maker.sign_in(&app, &person).await.access;
        let made = maker.stream_key(&token).await.content();
        assert_eq!(reader.stream_key(&token).await.content(), made);
        let page = maker.operator(Request::get("/platform/v1/sessions?size=1")).await.content();
        assert!(page["data"].is_array(), "{page}");
        let mut socket = reader.open_user_session(&token).await;
        reader.subscribe(&token, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        socket.close().await;
    }
    after.stop().await;
    before.stop().await;
    database.remove().await;
}
