//! A revoked token is refused at once on the same node, and soon on every other node.

use std::time::Duration;

use testkit::{Engine, Setup, both, while_running};

use crate::fixture::Fixture;

/// The promised delay on other nodes.
const ELSEWHERE_WITHIN: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_at_once() {
    both(Setup { system_clock: true, ..Setup::default() }, |world| async move {
        let Fixture { app, tokens, .. } = Fixture::set_up(&world).await;
        for _ in 0..3 {
            world.me(&tokens.access).await.content();
        }
        world.revoke(&app, &tokens.access).await.content();
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_revoked_on_one_node_is_refused_on_another_within_two_seconds() {
    both(Setup { system_clock: true, ..Setup::default() }, |world| async move {
        if world.engine() == Engine::Sqlite {
            return; // An SQLite file belongs to one node.
        }
        let Fixture { app, streamer, tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        let narrowed = world.sign_in(&app, &streamer).await;
        elsewhere.me(&tokens.access).await.content();
        elsewhere.me(&narrowed.access).await.content();

        world.revoke(&app, &tokens.access).await.content();
        let refused = async {
            while elsewhere.me(&tokens.access).await.status == 200 {
                tokio::task::yield_now().await;
            }
        };
        while_running(ELSEWHERE_WITHIN, refused).await.expect("the other node refuses the token");
        // From here on it is always refused.
        for _ in 0..20 {
            elsewhere.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        }
        node.stop().await;
    })
    .await;
}
