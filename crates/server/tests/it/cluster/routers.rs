//! `stagedoor doctor --deep` compares the router of each node with the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::Value;
use store::{Options, Store, StoreError, Target, Tx};
use testkit::{Api, Application, Setup, World, over_a_wire};

use crate::cli::process::{run, stagedoor};
use crate::fixture::Fixture;

/// Runs `doctor --deep` with the addresses of these nodes. Returns the exit code and what it said about
/// routers.
async fn doctor(database: &str, nodes: &[&Api]) -> (Option<i32>, Value) {
    let mut command = stagedoor(&["doctor", "--deep", "--json"]);
    command.env("STAGEDOOR_DATABASE_URL", database).env("STAGEDOOR_OPERATOR_KEY", World::OPERATOR_KEY);
    for node in nodes {
        command.args(["--node", &format!("http://{}", node.address())]);
    }
    let output = run(command).await;
    let said: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    (output.status.code(), said["router"].clone())
}

/// Sessions that connect, change their subscriptions and disconnect, until the test stops them.
async fn come_and_go(node: Api, app: Application, token: String, stop: Arc<AtomicBool>) -> usize {
    let mut rounds = 0;
    while !stop.load(Relaxed) {
        let mut socket = node.open_client_session(&app).await;
        for event in ["chat", "donation", "subscription"] {
            node.subscribe(&token, event, socket.session_key()).await.content();
            socket.system("subscribed").await;
        }
        node.unsubscribe(&token, "chat", socket.session_key()).await.content();
        socket.close().await;
        rounds += 1;
    }
    rounds
}

/// Changes the store behind the back of the nodes.
async fn plant(database: &str, changes: Vec<String>) {
    let target = Target::Postgres { url: database.to_owned().into() };
    let store = Store::open(target, Options::default()).await.expect("the store opens");
    for sql in changes {
        let sql: &'static str = Box::leak(sql.into_boxed_str());
        let changed = store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
        assert_eq!(changed, Ok::<_, StoreError>(1), "{sql}");
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_deep_doctor_compares_running_nodes_with_the_store_and_finds_what_was_planted() {
    let setup = Setup { system_clock: true, ..Setup::default() };
    over_a_wire(setup, |world, wire| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        let database = wire.past();
        let mut quiet = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", quiet.session_key()).await.content();
        quiet.system("subscribed").await;
        let other = elsewhere.open_user_session(&tokens.access).await;

        let stop = Arc::new(AtomicBool::new(false));
        let busy = [world.of_a_part(), elsewhere.of_a_part()]
            .map(|node| tokio::spawn(come_and_go(node, app.clone(), tokens.access.clone(), stop.clone())));
        for _ in 0..3 {
            let (code, router) = doctor(&database, &[&world, &elsewhere]).await;
            assert_eq!((code, &router["ok"]), (Some(0), &true.into()), "{router}");
            assert_eq!(router["compared"].as_array().map(Vec::len), Some(2), "{router}");
            assert_eq!(router["notCompared"], serde_json::json!([]));
        }
        let (code, router) = doctor(&database, &[]).await;
        assert_eq!((code, router["notCompared"].as_array().map(Vec::len)), (Some(0), Some(2)), "{router}");
        stop.store(true, Relaxed);
        for rounds in busy {
            assert!(rounds.await.expect("it ends") > 0);
        }

        let (here, there) = (quiet.session_key().to_owned(), other.session_key().to_owned());
        plant(
            &database,
            vec![
                format!("DELETE FROM session_subscriptions WHERE session_key = '{here}'"),
                format!("UPDATE sessions SET disconnected_at = 1 WHERE session_key = '{there}'"),
                format!(
                    "INSERT INTO sessions (session_key, counted_as, client_id, channel_id, node_id, version,
                         connected_at)
                     SELECT '0-ghost', counted_as, client_id, channel_id, node_id, 0, connected_at
                     FROM sessions WHERE session_key = '{here}'"
                ),
            ],
        )
        .await;
        let (code, router) = doctor(&database, &[&world, &elsewhere]).await;
        assert_eq!((code, &router["ok"]), (Some(1), &false.into()));
        let differences = router["differences"].as_array().expect("differences");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut found: Vec<_> =
            differences.iter().map(|each| (text(&each["sessionKey"]), text(&each["kind"]))).collect();
        let mut planted = vec![
            ("0-ghost".to_owned(), "not-routed".to_owned()),
            (here, "subscriptions".to_owned()),
            (there, "not-stored".to_owned()),
        ];
        found.sort();
        planted.sort();
        assert_eq!(found, planted);
        assert!(differences.iter().all(|each| !text(&each["mend"]).is_empty()), "{router}");
        let of_kind = differences.iter().find(|each| each["kind"] == "subscriptions").expect("found above");
        assert_eq!(of_kind["onlyRouted"][0]["eventType"], "CHAT", "{of_kind}");
        node.stop().await;
    })
    .await;
}
