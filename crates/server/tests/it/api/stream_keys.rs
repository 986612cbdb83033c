//! The stream key (`docs/spec/lives.md#stream-key`): the streamer's secret.

use serde_json::Value;
use testkit::{Request, Response, Setup, World, both};

use crate::fixture::Fixture;
use store::Tx;

async fn key(world: &World, token: &str) -> String {
    let content = world.stream_key(token).await.content();
    assert_eq!(content.as_object().expect("an object").len(), 1);
    content["streamKey"].as_str().expect("a text").to_owned()
}

async fn reissue(world: &World, channel: &str) -> Response {
    world.operator(Request::post(format!("/platform/v1/channels/{channel}/stream-key"))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_key_is_created_once_and_stays_until_it_is_replaced() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let token = &fixture.tokens.access;
        let first = key(&world, token).await;
        assert_eq!(first.len(), 43, "256 bits");
        assert_eq!(key(&world, token).await, first);
        let viewer = world.sign_in(&fixture.app, &fixture.viewer).await;
        let of_viewer = key(&world, &viewer.access).await;
        assert_ne!(of_viewer, first);
        world.stop().await;
        world.restart().await;
        assert_eq!(key(&world, token).await, first);

        let answer = reissue(&world, "haneul").await;
        assert_eq!(answer.content(), Value::Null, "the key is the streamer's, not the operator's");
        let second = key(&world, token).await;
        assert_ne!(second, first);
        assert_eq!(key(&world, token).await, second);
        assert_eq!(key(&world, &viewer.access).await, of_viewer);
        reissue(&world, "missing").await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_idempotency_key_issues_one_key() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let reissue = |repeat: &str| {
            let request = Request::post("/platform/v1/channels/haneul/stream-key");
            world.operator(request.header("Idempotency-Key", repeat))
        };
        reissue("one").await.content();
        let first = key(&world, &fixture.tokens.access).await;
        reissue("one").await.content();
        assert_eq!(key(&world, &fixture.tokens.access).await, first);
        reissue("two").await.content();
        assert_ne!(key(&world, &fixture.tokens.access).await, first);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_issued_before_the_first_read_is_kept() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        reissue(&world, "haneul").await.content();
        let first = key(&world, &fixture.tokens.access).await;
        assert_eq!(key(&world, &fixture.tokens.access).await, first);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_reads_return_the_same_key() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let asks: Vec<_> = (0..16)
            .map(|_| {
                let (world, token) = (world.clone(), fixture.tokens.access.clone());
                tokio::spawn(async move { key(&world, &token).await })
            })
            .collect();
        let first = key(&world, &fixture.tokens.access).await;
        for ask in asks {
            assert_eq!(ask.await.expect("an answer"), first);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stored_key_is_sealed_for_its_channel() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let viewer = world.sign_in(&fixture.app, &fixture.viewer).await;
        let keys = [key(&world, &fixture.tokens.access).await, key(&world, &viewer.access).await];
        world.stop().await;
        let store = world.open_store().await;
        store
            .write(async move |tx: &mut Tx| {
                for row in tx.query("SELECT sealed_key FROM stream_keys", &[]).await? {
                    let sealed: &str = row.get(0)?;
                    assert!(keys.iter().all(|key| !sealed.contains(key.as_str())));
                }
                // An attacker with access to the database swaps two keys.
                const SWAP: &str = "UPDATE stream_keys SET sealed_key =
                        (SELECT k.sealed_key FROM stream_keys k WHERE k.channel_id = 'byeol')
                        WHERE channel_id = 'haneul'";
                tx.execute(SWAP, &[]).await
            })
            .await
            .map_err(|error: store::StoreError| error)
            .expect("a store");
        store.close().await;
        world.restart().await;
        let answer = world.stream_key(&fixture.tokens.access).await;
        answer.assert_refused(500, "INTERNAL_SERVER_ERROR");
        // The operator can issue a new key.
        reissue(&world, "haneul").await.content();
        key(&world, &fixture.tokens.access).await;
    })
    .await;
}
