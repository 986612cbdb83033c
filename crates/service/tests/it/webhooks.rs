//! The registration of webhooks and the rotation of their secrets.

use domain::application::Organization;
use domain::delivery::DisabledReason;
use domain::limits::{DAY_MS, WEBHOOK_SECRET_OVERLAP_MS};
use domain::refusal::Resource;
use domain::secret::{SecretHash, WebhookSecret};
use domain::webhook_secrets::SecretState::{self, Pending, Retiring, Signing};
use domain::{ClientId, Invalid, OrganizationId, Refusal, Rule, Scope, WebhookSecretId};
use service::applications::ApplicationRecord;
use service::idempotency::IdempotencyKey;
use service::webhooks::WebhookDetails;

use crate::world::{World, at_once, both, record, refused, winners};
use store::Tx;

pub const URL: &str = "https://games.example/hook";

/// Makes an application that may receive the claims of organization `games`.
pub async fn publisher(world: &World, id: &str) -> ClientId {
    let organization_id = OrganizationId::stored("games".to_owned());
    let organization =
        Organization { organization_id: organization_id.clone(), name: "games".to_owned(), verified: true };
    world.service.put_organization(organization).await.unwrap();
    let scopes = [Scope::Drops].into_iter().collect();
    let record = ApplicationRecord { organization_id: Some(organization_id), ..record(id, scopes) };
    world.service.put_application(record).await.unwrap();
    ClientId::stored(id.to_owned())
}

/// Makes the application's webhook and returns it with its secret.
pub async fn webhook(world: &World, client: &ClientId) -> (WebhookDetails, WebhookSecret) {
    let (details, secret) = world.service.put_webhook(client, Some(URL), None).await.unwrap();
    (details, secret.unwrap())
}

async fn states(world: &World, client: &ClientId) -> Vec<SecretState> {
    let secrets = world.service.webhook_secrets(client).await.unwrap();
    secrets.into_iter().map(|secret| secret.state).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_keeps_its_secret_until_it_is_deleted() {
    both(|world| async move {
        let service = &world.service;
        let missing = ClientId::stored("missing".to_owned());
        assert_eq!(
            refused(service.put_webhook(&missing, Some(URL), None).await),
            Refusal::NotFound(Resource::Application)
        );
        let client = publisher(&world, "drops").await;
        assert_eq!(refused(service.webhook_details(&client).await), Refusal::NotFound(Resource::Webhook));
        for bad in ["http://games.example/", "https://10.0.0.1/", "https://127.0.0.1/", "nonsense"] {
            let refused = refused(service.put_webhook(&client, Some(bad), None).await);
            assert!(matches!(refused, Refusal::Invalid(Invalid { field: "url", .. })), "{bad}: {refused:?}");
        }
        assert_eq!(
            refused(service.webhook_details(&client).await),
            Refusal::NotFound(Resource::Webhook),
            "nothing was made"
        );

        let (made, _) = webhook(&world, &client).await;
        assert_eq!((made.webhook.url.as_deref(), made.webhook.disabled), (Some(URL), None));
        assert!(made.webhook.receives && made.notices.is_empty());
        world.advance_ms(1);
        let (again, secret) = service.put_webhook(&client, Some(URL), Some(false)).await.unwrap();
        assert!(secret.is_none(), "the webhook has a secret already");
        assert_eq!(again.webhook.webhook_id, made.webhook.webhook_id);
        assert_eq!(again.webhook.disabled.unwrap().reason, DisabledReason::Operator);
        let (again, _) = service.put_webhook(&client, None, None).await.unwrap();
        assert!(again.webhook.url.is_none() && again.webhook.disabled.is_some(), "enabled stays as it is");
        let (again, _) = service.put_webhook(&client, Some(URL), Some(true)).await.unwrap();
        assert_eq!(again.webhook.disabled, None);

        service.delete_webhook(&client).await.unwrap();
        service.delete_webhook(&client).await.unwrap();
        assert_eq!(refused(service.webhook_details(&client).await), Refusal::NotFound(Resource::Webhook));
        assert_eq!(refused(service.webhook_secrets(&client).await), Refusal::NotFound(Resource::Webhook));
        let (next, _) = webhook(&world, &client).await;
        assert_ne!(next.webhook.webhook_id, made.webhook.webhook_id);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_concurrent_calls_that_make_a_webhook_one_returns_its_secret() {
    both(|world| async move {
        let client = publisher(&world, "drops").await;
        let puts = (0..20).map(|n| {
            let (service, client) = (world.node(&format!("node-{n}")), client.clone());
            async move { service.put_webhook(&client, Some(&format!("{URL}/{n}")), None).await }
        });
        let made = winners(at_once(puts).await, &Refusal::NotFound(Resource::Webhook));
        assert_eq!(made.len(), 20);
        assert_eq!(made.iter().filter(|(_, secret)| secret.is_some()).count(), 1);
        assert_eq!(world.count("SELECT COUNT(*) FROM webhooks").await, 1);
        assert_eq!(states(&world, &client).await, [Signing]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_secret_signs_after_a_day_and_the_old_one_is_deleted_a_day_later() {
    both(|world| async move {
        let client = publisher(&world, "drops").await;
        webhook(&world, &client).await;
        let (added, _) = world.service.add_webhook_secret(&client, None, None).await.unwrap();
        assert_eq!(added.state, Pending);
        world.advance_ms(WEBHOOK_SECRET_OVERLAP_MS as u64 - 1);
        assert_eq!(states(&world, &client).await, [Signing, Pending]);
        world.advance_ms(1);
        assert_eq!(states(&world, &client).await, [Retiring, Signing]);
        world.service.sweep().await.unwrap();
        world.advance_ms(DAY_MS as u64 - 1);
        assert_eq!(states(&world, &client).await, [Retiring, Signing]);
        world.advance_ms(1);
        assert_eq!(states(&world, &client).await, [Signing]);
        assert_eq!(world.count("SELECT COUNT(*) FROM webhook_secrets").await, 2);
        world.service.sweep().await.unwrap();
        assert_eq!(world.count("SELECT COUNT(*) FROM webhook_secrets").await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_activated_secret_signs_at_once_and_the_former_one_can_be_activated_again() {
    both(|world| async move {
        let service = &world.service;
        let client = publisher(&world, "drops").await;
        webhook(&world, &client).await;
        let old = service.webhook_secrets(&client).await.unwrap().remove(0).secret_id;
        let unknown = WebhookSecretId::stored("unknown".to_owned());
        assert_eq!(
            refused(service.activate_webhook_secret(&client, &unknown).await),
            Refusal::NotFound(Resource::WebhookSecret)
        );
        let new = service.add_webhook_secret(&client, None, None).await.unwrap().0.secret_id;
        // Both changes happen in one millisecond, because the clock stands still.
        for chosen in [&new, &old, &old, &new] {
            let secrets = service.activate_webhook_secret(&client, chosen).await.unwrap();
            let signing: Vec<_> = secrets.iter().filter(|secret| secret.state == Signing).collect();
            assert_eq!((secrets.len(), signing.len()), (2, 1));
            assert_eq!((&signing[0].secret_id, signing[0].forget_at), (chosen, None));
            assert!(secrets.iter().all(|secret| secret.state != Pending));
        }
        world.advance_ms(WEBHOOK_SECRET_OVERLAP_MS as u64);
        assert_eq!(
            refused(service.activate_webhook_secret(&client, &old).await),
            Refusal::NotFound(Resource::WebhookSecret)
        );
        assert_eq!(states(&world, &client).await, [Signing]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_does_not_sign_can_be_deleted() {
    both(|world| async move {
        let service = &world.service;
        let client = publisher(&world, "drops").await;
        webhook(&world, &client).await;
        let old = service.webhook_secrets(&client).await.unwrap().remove(0).secret_id;
        let signs = Refusal::Invalid(Invalid::new("secretId", Rule::NotTheSigningSecret));
        assert_eq!(refused(service.delete_webhook_secret(&client, &old).await), signs);

        let pending = service.add_webhook_secret(&client, None, None).await.unwrap().0.secret_id;
        let second = Refusal::Invalid(Invalid::new("secret", Rule::NoOtherPendingSecret));
        assert_eq!(refused(service.add_webhook_secret(&client, None, None).await), second);
        service.delete_webhook_secret(&client, &pending).await.unwrap();
        world.advance_ms(10 * DAY_MS as u64);
        world.service.sweep().await.unwrap();
        assert_eq!(
            states(&world, &client).await,
            [Signing],
            "the old one does not end for one that never came"
        );

        let new = service.add_webhook_secret(&client, None, None).await.unwrap().0.secret_id;
        service.activate_webhook_secret(&client, &new).await.unwrap();
        assert_eq!(states(&world, &client).await, [Retiring, Signing]);
        service.add_webhook_secret(&client, None, None).await.unwrap();
        assert_eq!(states(&world, &client).await, [Signing, Pending], "the retiring one makes room");
        let gone = service.delete_webhook_secret(&client, &old).await;
        assert_eq!(refused(gone), Refusal::NotFound(Resource::WebhookSecret));
        assert_eq!(states(&world, &client).await, [Signing, Pending]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_concurrent_new_secrets_one_is_pending_and_a_repeated_key_gets_the_same_one() {
    both(|world| async move {
        let client = publisher(&world, "drops").await;
        webhook(&world, &client).await;
        let adds = (0..20).map(|n| {
            let (service, client) = (world.node(&format!("node-{n}")), client.clone());
            async move { service.add_webhook_secret(&client, None, None).await }
        });
        let second = Refusal::Invalid(Invalid::new("secret", Rule::NoOtherPendingSecret));
        let made = winners(at_once(adds).await, &second);
        assert_eq!(made.len(), 1);
        assert_eq!(states(&world, &client).await, [Signing, Pending]);

        let other = publisher(&world, "other").await;
        webhook(&world, &other).await;
        let key = IdempotencyKey {
            operation: "POST secrets".to_owned(),
            key: "key".to_owned(),
            request: SecretHash::of(""),
        };
        let adds = (0..10).map(|n| {
            let (service, client, key) = (world.node(&format!("late-node-{n}")), other.clone(), key.clone());
            async move { service.add_webhook_secret(&client, None, Some(key)).await }
        });
        let same = winners(at_once(adds).await, &Refusal::NotFound(Resource::Webhook));
        assert_eq!(same.len(), 10);
        for (details, secret) in &same {
            assert_eq!((details, secret.expose()), (&same[0].0, same[0].1.expose()));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_holds_no_readable_secret() {
    both(|world| async move {
        let client = publisher(&world, "drops").await;
        let (_, secret) = webhook(&world, &client).await;
        let given = WebhookSecret::given(&"brought-along-".repeat(4)).unwrap();
        let (_, kept) = world.service.add_webhook_secret(&client, Some(given.clone()), None).await.unwrap();
        assert_eq!(kept.expose(), given.expose());
        let sealed: Vec<String> = world
            .store
            .read(async move |tx: &mut Tx| {
                let rows = tx.query("SELECT sealed_secret FROM webhook_secrets", &[]).await?;
                rows.iter().map(|row| row.get(0)).collect::<Result<_, store::StoreError>>()
            })
            .await
            .unwrap();
        assert_eq!(sealed.len(), 2);
        for sealed in sealed {
            assert!(!sealed.contains(secret.expose()) && !sealed.contains(given.expose()));
        }
    })
    .await;
}
