//! Callers that stop waiting, as when a client disconnects during its request.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use domain::chat::{Emojis, MessageText};
use domain::event::EventType;
use domain::session::ChangeKind;

use crate::world::{both, client_owner, within};

/// Starts the work and stops waiting for it at once.
pub async fn begin_and_leave<T>(work: impl Future<Output = T>) {
    let mut work = pin!(work);
    poll_fn(|context| {
        let _ = work.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_whose_caller_stopped_waiting_is_committed_and_published() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        let caller = world.service.authenticate_user(tokens.access.expose()).await.unwrap().caller.clone();
        let session = world.connect(&client_owner(&app)).await;
        let mut bus = world.service.subscribe_to_bus();

        let text = MessageText::parse("안녕".into()).unwrap();
        begin_and_leave(world.service.post_chat(&user, &user, text, Emojis::new(), None)).await;
        let message = within(bus.next()).await;
        assert!(matches!(message, Some(bus::Delivery::Message(bus::Message::Event(_)))), "{message:?}");

        begin_and_leave(world.service.subscribe(&caller, &session, EventType::Chat)).await;
        assert_eq!(change(within(bus.next()).await), (1, ChangeKind::Subscribed));
        begin_and_leave(world.service.revoke(&app, tokens.access.expose())).await;
        assert_eq!(change(within(bus.next()).await), (2, ChangeKind::Revoked));
        assert!(!world.lives(&tokens).await);
    })
    .await;
}

fn change(delivery: Option<bus::Delivery>) -> (i64, ChangeKind) {
    match delivery {
        Some(bus::Delivery::Message(bus::Message::SessionChanged { change, .. })) => {
            (change.version, change.kind)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_whose_caller_stopped_waiting_leaves_no_session() {
    both(|world| async move {
        let app = world.application("app").await;
        let owner = client_owner(&app);
        for abandoned in 1..=12 {
            let url = world.service.issue_session_url(owner.clone()).await.unwrap();
            begin_and_leave(world.service.connect_session(url.expose())).await;
            within(async {
                let over = async || {
                    let listed = world.listed(&owner).await;
                    listed.len() == abandoned
                        && listed.iter().all(|session| session.disconnected_at.is_some())
                };
                while !over().await {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
            .await;
        }
    })
    .await;
}
