//! Credentials are checked from cached answers. No cached answer outlives its credential.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::application::{Application, Organization};
use domain::limits::ACCESS_TOKEN_LIFETIME_MS;
use domain::{ChannelId, OrganizationId, Refusal, Scope, ScopeSet};
use service::credentials::{TRUST, WATCH_EVERY};
use service::tokens::IssuedTokens;
use service::{Error, Service};
use store::{StoreError, Tx};

use crate::world::{World, all_scopes_but, both, record, refused, within};

/// Makes an application, a user and tokens whose answers are cached, in a world that polls for changes.
async fn begin(world: &World) -> (Application, ChannelId, IssuedTokens) {
    world.service.watch_credentials().await.unwrap();
    let (app, user) = (world.application("app").await, world.user("user").await);
    let tokens = world.tokens(&app, &user).await;
    assert!(world.lives(&tokens).await);
    (app, user, tokens)
}

/// Changes rows without the service. A service that still answers as before did not query the store.
async fn change_rows(world: &World, sql: &'static str) {
    let changed: Result<u64, StoreError> =
        world.store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
    assert!(changed.unwrap() > 0, "{sql}");
}

async fn opens(service: &Service, tokens: &IssuedTokens) -> bool {
    match service.authenticate_user(tokens.access.expose()).await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.refusal().kind(), "invalid_token");
            false
        }
    }
}

const END_TOKENS: &str = "DELETE FROM access_tokens";

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_answer_is_used_while_the_node_polls_for_changes() {
    both(|world| async move {
        let (_, _, tokens) = begin(&world).await;
        change_rows(&world, END_TOKENS).await;
        world.manual_clock.advance(TRUST - Duration::from_millis(1));
        assert!(world.lives(&tokens).await);
        world.advance_ms(1);
        assert!(!world.lives(&tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_never_polled_queries_the_store() {
    both(|world| async move {
        let (app, user) = (world.application("app").await, world.user("user").await);
        let tokens = world.tokens(&app, &user).await;
        assert!(world.lives(&tokens).await);
        change_rows(&world, END_TOKENS).await;
        assert!(!world.lives(&tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_is_refused_at_once_with_all_tokens_revoked_by_it() {
    both(|world| async move {
        let (app, user, first) = begin(&world).await;
        let second = world.tokens(&app, &user).await;
        let neighbour = world.user("neighbour").await;
        let others = world.tokens(&app, &neighbour).await;
        assert!(world.lives(&second).await && world.lives(&others).await);
        world.service.revoke(&app, first.refresh.expose()).await.unwrap();
        assert!(!world.lives(&first).await && !world.lives(&second).await);
        assert!(world.lives(&others).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stolen_credentials_end_cached_answers() {
    both(|world| async move {
        let (app, user, _) = begin(&world).await;
        let code = world.code(&app, &user).await;
        let exchange = || world.service.exchange_code(&app, code.expose(), crate::world::STATE);
        let bought = exchange().await.unwrap();
        let elsewhere = world.tokens(&app, &user).await;
        let refreshed = world.service.refresh(&app, elsewhere.refresh.expose()).await.unwrap();
        world.advance_ms(10_001);
        world.service.watch_credentials().await.unwrap();
        for tokens in [&bought, &elsewhere, &refreshed] {
            assert!(world.lives(tokens).await);
        }
        assert_eq!(refused(exchange().await).kind(), "bad_code");
        assert!(!world.lives(&bought).await);
        assert!(world.lives(&refreshed).await);
        let again = world.service.refresh(&app, elsewhere.refresh.expose()).await;
        assert_eq!(refused(again).kind(), "invalid_token");
        assert!(!world.lives(&elsewhere).await && !world.lives(&refreshed).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_answer_changes_with_its_rows() {
    both(|world| async move {
        let (app, user, tokens) = begin(&world).await;
        let holder = async || world.service.authenticate_user(tokens.access.expose()).await.unwrap();
        assert_eq!(holder().await.channel_name, "user's channel");

        let renamed = service::ChannelRecord {
            channel_id: user.clone(),
            name: "another name".to_owned(),
            image_url: None,
            verified_mark: false,
            real_name_verified: false,
        };
        world.service.put_channel(renamed, None).await.unwrap();
        assert_eq!(holder().await.channel_name, "another name");

        let narrower = world.application_with("app", all_scopes_but(Scope::ChatWrite)).await;
        assert!(!holder().await.caller.scopes.contains(Scope::ChatWrite));
        let only_one = [Scope::UserRead].into_iter().collect::<ScopeSet>();
        world.code(&Application { scopes: only_one, ..narrower }, &user).await;
        assert_eq!(holder().await.caller.scopes, only_one, "a consent replaces the one before");

        let mut observed = record("app", app.scopes);
        observed.profile = Some(domain::Profile::Observed);
        world.service.put_application(observed).await.unwrap();
        assert_eq!(holder().await.caller.profile, Some(domain::Profile::Observed));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cached_token_expires_to_the_millisecond() {
    both(|world| async move {
        let (_, _, tokens) = begin(&world).await;
        world.advance_ms(ACCESS_TOKEN_LIFETIME_MS.unsigned_abs() - 1);
        world.service.watch_credentials().await.unwrap();
        assert!(world.lives(&tokens).await);
        change_rows(&world, "UPDATE access_tokens SET expires_at = expires_at + 1000").await;
        world.advance_ms(1);
        assert!(!world.lives(&tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_finds_a_revocation_by_polling() {
    both(|world| async move {
        let (app, _, tokens) = begin(&world).await;
        let other = world.node("node-b");
        other.watch_credentials().await.unwrap();
        assert!(opens(&other, &tokens).await);
        world.service.revoke(&app, tokens.access.expose()).await.unwrap();
        assert!(!world.lives(&tokens).await);
        world.manual_clock.advance(WATCH_EVERY);
        other.watch_credentials().await.unwrap();
        assert!(!opens(&other, &tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_that_cannot_poll_stops_using_cached_answers() {
    both(|world| async move {
        let (app, _, tokens) = begin(&world).await;
        let other = world.node("node-b");
        other.watch_credentials().await.unwrap();
        assert!(opens(&other, &tokens).await);
        world.service.revoke(&app, tokens.access.expose()).await.unwrap();
        world.manual_clock.advance(TRUST);
        assert!(!opens(&other, &tokens).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_a_cached_answer_is_used_for_a_limited_time() {
    both(|world| async move {
        let (app, _, tokens) = begin(&world).await;
        let secret = world.service.add_secret(&app.client_id, None).await.unwrap();
        let client = || world.service.authenticate_client(app.client_id.as_str(), secret.expose());
        client().await.unwrap();
        world.store.close().await;
        world.service.watch_credentials().await.unwrap_err();
        assert!(world.lives(&tokens).await);
        client().await.unwrap();
        world.manual_clock.advance(TRUST);
        let failed = world.service.authenticate_user(tokens.access.expose()).await.unwrap_err();
        assert!(matches!(failed, Error::Store(_)), "{failed}");
        let failed = client().await.unwrap_err();
        assert!(matches!(failed, Error::Store(_)), "{failed}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authenticated_application_is_cached_until_it_changes() {
    both(|world| async move {
        world.service.watch_credentials().await.unwrap();
        let owner = Organization {
            organization_id: OrganizationId::stored("owner".to_owned()),
            name: "before".to_owned(),
            verified: false,
        };
        world.service.put_organization(owner.clone()).await.unwrap();
        let mut owned = record("app", ScopeSet::of_users());
        owned.organization_id = Some(owner.organization_id.clone());
        let secret = world.service.put_application(owned.clone()).await.unwrap().unwrap();
        let application = async || world.service.authenticate_client("app", secret.expose()).await.unwrap();
        assert_eq!(application().await.name, "application app");

        change_rows(&world, "UPDATE applications SET name = 'unheard of'").await;
        assert_eq!(application().await.name, "application app", "kept");
        owned.name = "renamed".to_owned();
        world.service.put_application(owned).await.unwrap();
        assert_eq!(application().await.name, "renamed");
        world.service.put_organization(Organization { name: "after".to_owned(), ..owner }).await.unwrap();
        assert_eq!(application().await.organization.as_ref().unwrap().name, "after");

        // The cached answer accepts neither another application's id nor another secret.
        let other = world.service.put_application(record("other", ScopeSet::of_users())).await.unwrap();
        let other = other.unwrap();
        for (id, secret) in [("other", &secret), ("app", &other), ("unknown", &secret)] {
            let wrong = world.service.authenticate_client(id, secret.expose()).await;
            assert_eq!(refused(wrong), Refusal::InvalidClient, "{id}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_caller_stopped_waiting_is_found() {
    both(|world| async move {
        let (_, _, tokens) = begin(&world).await;
        let renamed = service::ChannelRecord {
            channel_id: ChannelId::stored("user".to_owned()),
            name: "another name".to_owned(),
            image_url: None,
            verified_mark: false,
            real_name_verified: false,
        };
        crate::interruptions::begin_and_leave(world.service.put_channel(renamed, None)).await;
        within(async {
            let name = async || {
                let holder = world.service.authenticate_user(tokens.access.expose()).await.unwrap();
                holder.channel_name.clone()
            };
            while name().await != "another name" {
                tokio::task::yield_now().await;
            }
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_that_begins_after_the_answer_to_a_revocation_is_accepted() {
    const CALLERS: usize = 64;
    const ROUNDS: usize = 4;
    const CALLS_AFTER: usize = 50;
    both(|world| async move {
        let (app, user, _) = begin(&world).await;
        for _ in 0..ROUNDS {
            let tokens = world.tokens(&app, &user).await;
            let revoked = Arc::new(AtomicBool::new(false));
            let callers: Vec<_> = (0..CALLERS)
                .map(|_| {
                    let (service, tokens, revoked) = (world.service.clone(), tokens.clone(), revoked.clone());
                    tokio::spawn(async move {
                        let mut after = 0;
                        while after < CALLS_AFTER {
                            let over = revoked.load(Ordering::SeqCst);
                            let opened = opens(&service, &tokens).await;
                            assert!(!(over && opened), "after {after} refusals");
                            after += usize::from(over);
                            tokio::task::yield_now().await;
                        }
                    })
                })
                .collect();
            world.service.revoke(&app, tokens.access.expose()).await.unwrap();
            revoked.store(true, Ordering::SeqCst);
            for caller in callers {
                within(caller).await.unwrap();
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_read_during_a_revocation_does_not_outlive_the_token() {
    const ROUNDS: usize = 60;
    const READERS: usize = 4;
    both(|world| async move {
        let (app, user, _) = begin(&world).await;
        for _ in 0..ROUNDS {
            let tokens = world.tokens(&app, &user).await;
            let begin = Arc::new(tokio::sync::Barrier::new(READERS + 1));
            let readers: Vec<_> = (0..READERS)
                .map(|_| {
                    let (service, tokens, begin) = (world.service.clone(), tokens.clone(), begin.clone());
                    tokio::spawn(async move {
                        begin.wait().await;
                        opens(&service, &tokens).await
                    })
                })
                .collect();
            begin.wait().await;
            world.service.revoke(&app, tokens.access.expose()).await.unwrap();
            for reader in readers {
                reader.await.unwrap();
            }
            assert!(!world.lives(&tokens).await);
        }
    })
    .await;
}
