//! The signed-in user (`docs/spec/channels.md#user`).

use testkit::{Setup, both};

use crate::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn me_is_only_the_token_owners_channel() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let me = world.me(&tokens.access).await;
        assert_eq!(
            me.text(),
            r#"{"code":200,"message":null,"content":{"channelId":"haneul","channelName":"하늘 🚀"}}"#
        );
        assert_eq!(me.header("content-type"), Some("application/json"));
        assert_eq!(me.header("cache-control"), Some("no-store"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_is_returned_at_once() {
    both(Setup::default(), |world| async move {
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        world.person("haneul").name("노을").create().await;
        assert_eq!(world.me(&tokens.access).await.content()["channelName"], "노을");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_of_one_application_are_distinguished() {
    both(Setup::default(), |world| async move {
        let Fixture { app, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let others = world.sign_in(&app, &viewer).await;
        assert_eq!(world.me(&tokens.access).await.content()["channelId"], "haneul");
        assert_eq!(world.me(&others.access).await.content()["channelId"], "byeol");
    })
    .await;
}
