//! Acknowledged writes survive `kill -9`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use store::{Options, Store, Target, Tx};
use testkit::{Api, Application, Connection, Request, Tokens, patiently};
use tokio::sync::Mutex;

use crate::cli::process::Sandbox;

const CLIENTS: usize = 8;
/// Number of acknowledged writes before the process is killed.
const ENOUGH: usize = 300;

/// Sends requests of one client until the connection breaks, and records the acknowledged ones.
async fn hammer(api: Api, request: impl Fn() -> Request, acknowledged: Arc<Acknowledged>) {
    while let Some(content) = attempt(&api, &request()).await {
        acknowledged.keep(content).await;
    }
}

/// `None` if there was no answer.
async fn attempt(api: &Api, request: &Request) -> Option<Value> {
    let mut connection = Connection::try_open(api.address()).await?;
    let answer = connection.try_send(request).await?;
    Some(answer.content())
}

#[derive(Default)]
struct Acknowledged {
    contents: Mutex<Vec<Value>>,
    count: AtomicUsize,
}

impl Acknowledged {
    async fn keep(&self, content: Value) {
        self.contents.lock().await.push(content);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    async fn enough(&self) {
        patiently("writes are acknowledged", async {
            while self.count.load(Ordering::Relaxed) < ENOUGH {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

async fn store_of(data: &Path) -> Store {
    let target = Target::Sqlite { path: data.join("stagedoor.db") };
    Store::open(target, Options::default()).await.expect("the store opens")
}

async fn message_ids(store: &Store) -> Vec<String> {
    let rows = store.read(async move |tx: &mut Tx| {
        let rows = tx.query("SELECT message_id FROM chat_messages", &[]).await?;
        rows.iter().map(|row| row.get::<String>(0)).collect::<Result<Vec<_>, store::StoreError>>()
    });
    rows.await.expect("the messages")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_message_is_there_after_kill_9() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let sandbox =
        Sandbox::start(folder.path(), &["--no-quota", "--data", data.to_str().expect("a path")]).await;
    let acknowledged = Arc::new(Acknowledged::default());
    let clients = (0..CLIENTS).map(|client| {
        let token = sandbox.user(client % 8, "demo").1.access;
        let request =
            move || Request::post("/open/v1/chats/send").bearer(&token).body(r#"{"message":"남는다"}"#);
        tokio::spawn(hammer(sandbox.api.clone(), request, acknowledged.clone()))
    });
    let clients: Vec<_> = clients.collect();
    acknowledged.enough().await;
    sandbox.signal("KILL").await;
    for client in clients {
        client.await.expect("a client ends when its server does");
    }
    sandbox.end().await;

    let store = store_of(&data).await;
    let there = message_ids(&store).await;
    store.close().await;
    let acknowledged = acknowledged.contents.lock().await;
    assert!(acknowledged.len() >= ENOUGH);
    for content in acknowledged.iter() {
        let id = content["messageId"].as_str().expect("an id");
        assert!(there.iter().any(|there| there == id), "{id} was acknowledged and is lost");
    }
    // Further messages were in flight when the process was killed.
    assert!(there.len() <= acknowledged.len() + CLIENTS);
}

/// One client's chain of refreshes, each with the token of the last answer. Returns the last acknowledged
/// pair.
async fn refresh_chain(
    api: Api,
    app: Application,
    mut tokens: Tokens,
    acknowledged: Arc<Acknowledged>,
) -> Tokens {
    let request = |refresh: &str| {
        Request::post("/auth/v1/token").json(&serde_json::json!({
            "grantType": "refresh_token", "clientId": app.client_id, "clientSecret": app.client_secret,
            "refreshToken": refresh,
        }))
    };
    while let Some(content) = attempt(&api, &request(&tokens.refresh)).await {
        tokens = Tokens::of(&content);
        acknowledged.keep(content).await;
    }
    tokens
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_token_works_after_kill_9() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let arguments = ["--no-quota", "--data", data.to_str().expect("a path")];
    let sandbox = Sandbox::start(folder.path(), &arguments).await;
    let app = sandbox.application("demo");
    let acknowledged = Arc::new(Acknowledged::default());
    let chains = (0..CLIENTS).map(|index| {
        let tokens = sandbox.user(index, "demo").1;
        tokio::spawn(refresh_chain(sandbox.api.clone(), app.clone(), tokens, acknowledged.clone()))
    });
    let chains: Vec<_> = chains.collect();
    acknowledged.enough().await;
    sandbox.signal("KILL").await;
    let mut last = Vec::new();
    for chain in chains {
        last.push(chain.await.expect("a chain ends when its server does"));
    }
    sandbox.end().await;

    let sandbox = Sandbox::start(folder.path(), &arguments).await;
    for content in acknowledged.contents.lock().await.iter() {
        sandbox.api.me(&Tokens::of(content).access).await.content();
    }
    // The last refresh token of a chain is either unused, or was used by a request whose answer was lost.
    for tokens in last {
        let answer = sandbox.api.refresh(&app, &tokens.refresh).await;
        if answer.status != 200 {
            answer.assert_refused(401, "INVALID_TOKEN");
        }
    }
}
