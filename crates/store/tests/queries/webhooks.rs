//! Webhooks, their secrets, and the receivers of claims.

use domain::application::Application;
use domain::delivery::DisabledReason;
use domain::drops::Campaign;
use domain::live::{Category, CategoryType};
use domain::{CampaignId, CategoryId, OrganizationId, Scope, WebhookId, WebhookSecretId};
use store::queries::webhooks::{Disabled, Receiver, Webhook};
use store::{StoreError, Tx, params};

use crate::{application, at, both, client, in_seeded, organization, tx};

pub fn webhook_id(id: &str) -> WebhookId {
    WebhookId::stored(id.to_owned())
}

fn secret_id(id: &str) -> WebhookSecretId {
    WebhookSecretId::stored(id.to_owned())
}

const BY_OPERATOR: Disabled = Disabled { reason: DisabledReason::Operator, since: domain::Timestamp::LAST };

/// An application that receives the claims of organization `games`.
pub async fn publisher(tx: &mut Tx, id: &str) -> Result<(), StoreError> {
    tx.put_organization(&organization("games", true)).await?;
    let scopes = [Scope::Drops].into_iter().collect();
    let of_games = Application { organization: Some(organization("games", true)), scopes, ..application(id) };
    tx.put_application(&of_games, at(1)).await
}

/// A webhook of such an application, named like it.
pub async fn plant(tx: &mut Tx, id: &str) -> Result<WebhookId, StoreError> {
    publisher(tx, id).await?;
    assert!(tx.lock_application(&client(id)).await?);
    let webhook = webhook_id(id);
    tx.insert_webhook(&webhook, &client(id), Some("https://games.example/hook"), None, at(2)).await?;
    Ok(webhook)
}

async fn of(tx: &mut Tx, id: &str) -> Result<Webhook, StoreError> {
    Ok(tx.webhook(&client(id)).await?.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_made_changed_and_deleted() {
    in_seeded(async move |tx: &mut Tx| {
        assert!(!tx.lock_application(&client("missing")).await?);
        let id = plant(tx, "drops").await?;
        let made = of(tx, "drops").await?;
        let expected = Webhook {
            webhook_id: id.clone(),
            url: Some("https://games.example/hook".to_owned()),
            disabled: None,
            failing_since: None,
            created_at: at(2),
            changed_at: at(2),
            receives: true,
        };
        assert_eq!(made, expected);
        let changed = Webhook {
            url: None,
            disabled: Some(Disabled { since: at(3), ..BY_OPERATOR }),
            failing_since: Some(at(1)),
            changed_at: at(3),
            ..made
        };
        tx.change_webhook(&changed).await?;
        assert_eq!(of(tx, "drops").await?, changed);

        assert!(tx.delete_webhook(&client("drops"), at(4)).await?);
        assert!(!tx.delete_webhook(&client("drops"), at(4)).await?);
        assert_eq!(tx.webhook(&client("drops")).await?, None);
        tx.insert_webhook(&webhook_id("next"), &client("drops"), None, Some(BY_OPERATOR), at(5)).await?;
        assert_eq!(of(tx, "drops").await?.disabled, Some(BY_OPERATOR));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_disabled_after_failures_without_a_success() {
    in_seeded(async move |tx: &mut Tx| {
        let id = plant(tx, "drops").await?;
        assert!(!tx.disable_failing_webhook(&id, at(100), at(100)).await?, "nothing failed");
        tx.note_webhook_failure(&id, at(10)).await?;
        tx.note_webhook_failure(&id, at(20)).await?;
        assert_eq!(of(tx, "drops").await?.failing_since, Some(at(10)), "the first one counts");
        tx.note_webhook_success(&id).await?;
        assert_eq!(of(tx, "drops").await?.failing_since, None);
        tx.note_webhook_failure(&id, at(30)).await?;
        assert!(!tx.disable_failing_webhook(&id, at(29), at(100)).await?);
        assert!(tx.disable_failing_webhook(&id, at(30), at(100)).await?);
        assert!(!tx.disable_failing_webhook(&id, at(30), at(110)).await?, "once");
        let failing = Disabled { reason: DisabledReason::Failing, since: at(100) };
        assert_eq!(of(tx, "drops").await?.disabled, Some(failing));

        let gone = Disabled { reason: DisabledReason::Gone, since: at(200) };
        assert!(!tx.disable_webhook(&id, gone).await?, "it is disabled already");
        let enabled = Webhook { disabled: None, failing_since: None, ..of(tx, "drops").await? };
        tx.change_webhook(&enabled).await?;
        assert!(tx.disable_webhook(&id, gone).await?);
        assert_eq!(of(tx, "drops").await?.disabled, Some(gone));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_are_listed_newest_first() {
    in_seeded(async move |tx: &mut Tx| {
        let id = plant(tx, "drops").await?;
        for (kind, ms) in [("GONE", 1), ("FAILING", 2), ("FAILING", 2), ("GONE", 3)] {
            tx.insert_webhook_notice(&id, kind, at(ms)).await?;
        }
        let notices = tx.webhook_notices(&id, 2).await?;
        let notices: Vec<_> = notices.iter().map(|notice| (notice.kind.as_str(), notice.given_at)).collect();
        assert_eq!(notices, [("GONE", at(3)), ("FAILING", at(2))]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_secret_whose_time_has_come_signs() {
    in_seeded(async move |tx: &mut Tx| {
        let id = plant(tx, "drops").await?;
        assert_eq!(tx.signing_secret(&id, at(10)).await?, None);
        tx.insert_webhook_secret(&secret_id("old"), &id, "sealed old", at(10), at(10)).await?;
        tx.insert_webhook_secret(&secret_id("new"), &id, "sealed new", at(50), at(20)).await?;
        for (ms, signs) in [(10, "sealed old"), (49, "sealed old"), (50, "sealed new"), (99, "sealed new")] {
            assert_eq!(tx.signing_secret(&id, at(ms)).await?.as_deref(), Some(signs), "{ms}");
        }
        tx.time_webhook_secret(&secret_id("old"), at(10), Some(at(90))).await?;
        let kept = async |tx: &mut Tx, ms| -> Result<Vec<_>, StoreError> {
            let secrets = tx.webhook_secrets(&id, at(ms)).await?;
            Ok(secrets.into_iter().map(|s| (s.secret_id, s.signs_from, s.forget_at, s.created_at)).collect())
        };
        let old = (secret_id("old"), at(10), Some(at(90)), at(10));
        let new = (secret_id("new"), at(50), None, at(20));
        assert_eq!(kept(tx, 89).await?, [old.clone(), new.clone()]);
        assert_eq!(kept(tx, 90).await?, [new]);
        tx.delete_webhook_secret(&secret_id("new")).await?;
        assert_eq!(kept(tx, 89).await?, [old]);
        assert!(tx.delete_webhook(&client("drops"), at(99)).await?);
        assert_eq!(tx.signing_secret(&id, at(99)).await?, None, "it goes with its webhook");
        Ok(())
    })
    .await;
}

/// A campaign of organization `games`.
pub async fn plant_campaign(tx: &mut Tx) -> Result<CampaignId, StoreError> {
    tx.put_organization(&organization("games", true)).await?;
    tx.put_category(&Category {
        category_id: CategoryId::stored("sea".to_owned()),
        category_type: CategoryType::Game,
        category_value: "The sea".to_owned(),
        poster_image_url: None,
    })
    .await?;
    let campaign_id = CampaignId::stored("voyage".to_owned());
    let campaign = Campaign {
        campaign_id: campaign_id.clone(),
        name: "voyage".to_owned(),
        organization_id: OrganizationId::stored("games".to_owned()),
        category_id: "sea".to_owned(),
        period: domain::drops::Period::default(),
        channels: None,
        rewards: Vec::new(),
    };
    assert_eq!(tx.put_campaign(&campaign).await?, None);
    Ok(campaign_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_goes_to_the_applications_of_its_organization_that_may_receive_claims() {
    in_seeded(async move |tx: &mut Tx| {
        let campaign = plant_campaign(tx).await?;
        for id in ["receiving", "disabled", "scopeless", "deleted", "webhookless"] {
            plant(tx, id).await?;
        }
        let disabled = Disabled { since: at(3), ..BY_OPERATOR };
        assert!(tx.disable_webhook(&webhook_id("disabled"), disabled).await?);
        assert!(tx.delete_webhook(&client("webhookless"), at(3)).await?);
        let games = Some(organization("games", true));
        tx.put_application(&Application { organization: games, ..application("scopeless") }, at(3)).await?;
        tx.execute("UPDATE applications SET deleted_at = $1 WHERE client_id = 'deleted'", params![3]).await?;
        // Another organization's.
        tx.insert_webhook(&webhook_id("app"), &client("app"), None, None, at(2)).await?;

        let receiver = |id, enabled| Receiver { webhook_id: webhook_id(id), enabled };
        let receivers = tx.claim_receivers(&campaign).await?;
        assert_eq!(receivers, [receiver("disabled", false), receiver("receiving", true)]);
        assert_eq!(tx.claim_receivers(&CampaignId::stored("none".to_owned())).await?, []);
        for (id, receives) in [("receiving", true), ("disabled", true), ("scopeless", false), ("app", false)]
        {
            assert_eq!(of(tx, id).await?.receives, receives, "{id}");
        }
        tx.put_organization(&organization("games", false)).await?;
        assert_eq!(tx.claim_receivers(&campaign).await?, []);
        assert!(!of(tx, "receiving").await?.receives);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_of_a_deleted_application_is_swept() {
    both(|store| async move {
        tx!(store, tx => {
            let id = plant(tx, "drops").await?;
            tx.insert_webhook_secret(&secret_id("s"), &id, "sealed", at(2), at(2)).await?;
            tx.insert_webhook_notice(&id, "GONE", at(2)).await?;
            tx.execute("UPDATE applications SET deleted_at = $1, purging = TRUE WHERE client_id = 'drops'", params![3])
                .await?;
            assert!(!tx.lock_application(&client("drops")).await?);
            Ok(())
        })
        .unwrap();
        assert!(tx!(store, tx => { tx.delete_unrestorable_application(&client("drops"), at(3)).await }).unwrap());
        tx!(store, tx => {
            assert_eq!(tx.webhook(&client("drops")).await?, None);
            assert_eq!(crate::number(tx, "SELECT COUNT(*) FROM webhooks").await?, 1);
            assert_eq!(tx.sweep(store::queries::sweeps::Sweep::DeletedWebhooks, at(3)).await?, 1);
            for left in [
                "SELECT COUNT(*) FROM webhooks",
                "SELECT COUNT(*) FROM webhook_secrets",
                "SELECT COUNT(*) FROM webhook_notices",
            ] {
                assert_eq!(crate::number(tx, left).await?, 0, "{left}");
            }
            Ok(())
        })
        .unwrap();
    })
    .await;
}
