//! Channels listed, barred and deleted; organizations and campaigns disabled and deleted.

use domain::channel::UserRole;
use domain::drops::FulfillmentState;
use domain::{CampaignId, ChannelId, ClaimId, MessageId, RewardId};
use store::queries::channel_admin::ChannelFilter;
use store::queries::channel_deletions::DeletionStep;
use store::queries::credential_changes::{ChangeSlot, Dependency};
use store::queries::drops::{ClaimFilter, NewClaim};
use store::{StoreError, Tx};

use crate::{at, channel, client, hash, in_seeded, number, organization, record, scopes};

async fn text(tx: &mut Tx, sql: &'static str) -> Result<String, StoreError> {
    tx.query_one(sql, &[]).await?.get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_found_by_id_name_login_and_bar() {
    in_seeded(async move |tx: &mut Tx| {
        tx.put_person(&channel("b"), "login-b", "hash").await?;
        let ids = async |tx: &mut Tx, filter: ChannelFilter, after: &str, size| {
            let found = tx.list_channel_details(&filter, after, size).await?;
            Ok::<_, StoreError>(found.into_iter().map(|s| s.channel_id.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(ids(tx, ChannelFilter::All, "", 10).await?, ["a", "b", "c"]);
        assert_eq!(ids(tx, ChannelFilter::All, "a", 1).await?, ["b"]);
        assert_eq!(ids(tx, ChannelFilter::Name("channel c".into()), "", 10).await?, ["c"]);
        assert_eq!(ids(tx, ChannelFilter::Login("login-b".into()), "", 10).await?, ["b"]);
        assert!(ids(tx, ChannelFilter::Barred, "", 10).await?.is_empty());
        assert!(!tx.bar_channel(&channel("missing"), at(5)).await?);
        for now in [5, 6] {
            assert!(tx.bar_channel(&channel("b"), at(now)).await?);
        }
        assert_eq!(ids(tx, ChannelFilter::Barred, "", 10).await?, ["b"]);
        let details = tx.channel_details(&channel("b")).await?.unwrap();
        assert_eq!((details.barred_at, details.login.as_deref()), (Some(at(5)), Some("login-b")));
        assert!(!tx.lock_unbarred_channel(&channel("b")).await?);
        assert!(tx.unbar_channel(&channel("b")).await?);
        assert!(!tx.unbar_channel(&channel("missing")).await?);
        assert!(tx.lock_unbarred_channel(&channel("b")).await?);
        assert_eq!(tx.password_hash(&channel("b")).await?.as_deref(), Some("hash"));
        assert_eq!(tx.password_hash(&channel("a")).await?, None);
        assert_eq!(tx.consented_to(&channel("a")).await?, [client("app"), client("other")]);
        assert_eq!(tx.lock_application_scopes(&client("app")).await?, Some(scopes()));
        assert_eq!(tx.lock_application_scopes(&client("missing")).await?, None);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_records_once_which_command_created_it() {
    in_seeded(async move |tx: &mut Tx| {
        assert_eq!(tx.store_made_by().await?, None);
        assert!(tx.store_made_at().await? > at(0), "the first migration ran");
        // The store already has channels, so `serve` created it.
        tx.claim_store("dev").await?;
        assert_eq!(tx.store_made_by().await?.as_deref(), Some("serve"));
        tx.execute("DELETE FROM store_origin", &[]).await?;
        let mut sandbox = organization("sandbox-games", true);
        sandbox.name = "x".to_owned();
        tx.put_organization(&sandbox).await?;
        for _ in 0..2 {
            tx.claim_store("serve").await?;
            assert_eq!(tx.store_made_by().await?.as_deref(), Some("dev"));
        }
        tx.execute("DELETE FROM store_origin", &[]).await?;
        for table in ["DELETE FROM organizations", "DELETE FROM applications", "DELETE FROM channels"] {
            tx.execute(table, &[]).await?;
        }
        tx.claim_store("dev").await?;
        assert_eq!(tx.store_made_by().await?.as_deref(), Some("dev"));
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_of_a_person_are_signed_out_together() {
    in_seeded(async move |tx: &mut Tx| {
        for (token, user) in [("t1", "a"), ("t2", "a"), ("t3", "b")] {
            tx.insert_browser_session(&hash(token), &channel(user), at(100)).await?;
        }
        assert_eq!(tx.delete_browser_sessions(&channel("a")).await?, 2);
        assert!(tx.browser_session(&hash("t1"), at(1)).await?.is_none());
        assert!(tx.browser_session(&hash("t3"), at(1)).await?.is_some());
        Ok(())
    })
    .await;
}

async fn campaign(tx: &mut Tx) -> Result<CampaignId, StoreError> {
    tx.put_organization(&organization("games", true)).await?;
    tx.execute(
        "INSERT INTO categories (category_id, category_type, category_value) VALUES ('k', 'GAME', 'K')",
        &[],
    )
    .await?;
    tx.execute(
        "INSERT INTO drops_campaigns (campaign_id, campaign_name, organization_id, category_id)
         VALUES ('voyage', 'Voyage', 'games', 'k')",
        &[],
    )
    .await?;
    tx.execute(
        "INSERT INTO drops_rewards (campaign_id, reward_id, reward_name, claimable)
         VALUES ('voyage', 'sail', 'Sail', TRUE)",
        &[],
    )
    .await?;
    Ok(CampaignId::stored("voyage".to_owned()))
}

fn claim_of(user: &str) -> NewClaim {
    NewClaim {
        claim_id: ClaimId::stored(format!("claim-{user}")),
        campaign_id: CampaignId::stored("voyage".to_owned()),
        reward_id: RewardId::stored("sail".to_owned()),
        channel_id: channel(user),
    }
}

/// Follows, roles, restrictions, messages, a donation, and a claim of `a`, in both directions.
async fn hang_on_a(tx: &mut Tx) -> Result<(), StoreError> {
    campaign(tx).await?;
    assert_eq!(tx.insert_claim(&claim_of("a"), at(5)).await?, None);
    for (of, by) in [("a", "b"), ("b", "a"), ("c", "a"), ("c", "b")] {
        tx.follow(&channel(of), &channel(by), at(2)).await?;
        tx.restrict(&channel(of), &channel(by), at(2)).await?;
        tx.put_manager(&channel(of), &channel(by), UserRole::StreamingChatManager, at(2)).await?;
    }
    tx.put_person(&channel("a"), "login-a", "hash").await?;
    for sql in [
        "INSERT INTO chat_messages (message_id, channel_id, sender_channel_id, content, emojis, message_time)
         VALUES ('001', 'a', 'b', 'x', '{}', 1), ('002', 'b', 'a', 'x', '{}', 1), ('003', 'b', 'c', 'x', '{}', 1)",
        "INSERT INTO donations VALUES ('001', 'b', 'a', 'CHAT', '1', 't', '{}', 1)",
        "INSERT INTO donations VALUES ('002', 'a', 'b', 'CHAT', '1', 't', '{}', 1)",
    ] {
        tx.execute(sql, &[]).await?;
    }
    Ok(())
}

async fn take_apart(tx: &mut Tx, id: &ChannelId, writers_finished: i64) -> Result<DeletionStep, StoreError> {
    loop {
        match tx.delete_channel_rows(id, at(writers_finished)).await? {
            DeletionStep::More => {}
            end => return Ok(end),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_channel_is_hidden_at_once_and_deleted_in_batches() {
    in_seeded(async move |tx: &mut Tx| {
        hang_on_a(tx).await?;
        let (a, alias) = (channel("a"), channel("deleted-x"));
        let until = MessageId::stored("900".to_owned());
        assert!(tx.mark_channel_deleted(&a, &alias, &until, at(10)).await?);
        assert!(!tx.mark_channel_deleted(&a, &alias, &until, at(11)).await?);
        assert!(tx.channel_details(&a).await?.is_none());
        assert!(tx.channels_by_id(std::slice::from_ref(&a)).await?.is_empty());
        assert!(tx.speaker(&a, &a).await?.is_none() && tx.speaker(&channel("b"), &a).await?.is_none());
        assert!(tx.person_by_login("login-a").await?.is_none());
        assert!(!tx.put_channel(&record("a"), at(12)).await?, "not while it is being deleted");
        assert_eq!(tx.channels_being_deleted(10).await?, std::slice::from_ref(&a));

        assert_eq!(take_apart(tx, &a, 9).await?, DeletionStep::Waits, "a writer may still be there");
        for table in ["followers", "restricted_channels", "managers"] {
            let sql: &'static str = match table {
                "followers" => "SELECT COUNT(*) FROM followers",
                "managers" => "SELECT COUNT(*) FROM managers",
                _ => "SELECT COUNT(*) FROM restricted_channels",
            };
            assert_eq!(number(tx, sql).await?, 1, "{table}");
        }
        let followers = "SELECT follower_count FROM channels WHERE channel_id = 'c'";
        assert_eq!(number(tx, followers).await?, 1);
        let claims =
            tx.claims(&organization("games", true).organization_id, &ClaimFilter::default(), None, 9).await?;
        assert_eq!((claims.len(), &claims[0].channel_id), (1, &alias));
        assert_eq!(claims[0].state, FulfillmentState::Claimed);

        assert_eq!(take_apart(tx, &a, 10).await?, DeletionStep::Done);
        assert_eq!(take_apart(tx, &a, 10).await?, DeletionStep::Done, "again");
        assert_eq!(number(tx, "SELECT COUNT(*) FROM channels WHERE channel_id = 'a'").await?, 0);
        assert_eq!(number(tx, "SELECT COUNT(*) FROM chat_messages").await?, 2, "its own chat is gone");
        let sender = "SELECT sender_channel_id FROM chat_messages WHERE message_id = '002'";
        assert_eq!(text(tx, sender).await?, "deleted-x");
        assert_eq!(number(tx, "SELECT COUNT(*) FROM donations WHERE donator_channel_id = 'a'").await?, 0);
        let given = "SELECT channel_id FROM donations WHERE donation_id = '002'";
        assert_eq!(text(tx, given).await?, "deleted-x");
        assert!(tx.channels_being_deleted(10).await?.is_empty());
        assert!(tx.put_channel(&record("a"), at(20)).await?, "its id can be had again");
        // The alias has no details.
        assert!(tx.channel_details(&alias).await?.is_none());
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn organizations_and_campaigns_are_disabled_and_deleted() {
    in_seeded(async move |tx: &mut Tx| {
        let id = campaign(tx).await?;
        let games = organization("games", true).organization_id;
        tx.record_credential_changes().await?;
        assert!(tx.disable_organization(&games, at(5)).await?);
        assert_eq!(
            tx.record_credential_changes().await?,
            [ChangeSlot::from(Dependency::Organization(&games))]
        );
        assert_eq!(tx.organizations("", 10).await?[0].disabled_at, Some(at(5)));
        assert!(tx.enable_organization(&games).await?);
        assert!(tx.organizations("games", 10).await?.is_empty());

        assert!(tx.disable_campaign(&id, at(6)).await?);
        assert!(tx.insert_claim(&claim_of("a"), at(7)).await?.is_some(), "nothing is claimed");
        assert_eq!(tx.campaigns(None, "", 10).await?[0].disabled_at, Some(at(6)));
        assert_eq!(tx.campaigns(Some(&games), "voyage", 10).await?, []);
        assert!(tx.enable_campaign(&id).await?);
        assert!(!tx.campaign_has_claims(&id).await?);
        assert_eq!(tx.insert_claim(&claim_of("a"), at(7)).await?, None);
        assert!(tx.campaign_has_claims(&id).await?);
        tx.execute("DELETE FROM reward_claims", &[]).await?;
        tx.execute("INSERT INTO watched_minutes VALUES ('voyage', 'a', 5)", &[]).await?;
        assert_eq!(tx.delete_campaign_minutes(&id).await?, 1);
        tx.delete_campaign(&id).await?;
        tx.delete_organization(&games).await?;
        assert_eq!(number(tx, "SELECT COUNT(*) FROM organizations").await?, 0);
        Ok(())
    })
    .await;
}
