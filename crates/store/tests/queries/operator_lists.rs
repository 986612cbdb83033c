//! What the operator pages list and count.

use domain::application::Organization;
use domain::quota::QuotaShare;
use domain::{ClientId, OrganizationId};
use store::queries::application_life::ApplicationLife;
use store::queries::application_search::ApplicationSearch;
use store::queries::nodes::NodeRecord;
use store::queries::overview::Backlog;
use store::queries::webhooks::Disabled;
use store::{StoreError, Tx};

use crate::webhooks::{plant, webhook_id};
use crate::{application, at, channel, client, in_seeded, node, record};

fn ids(lives: Vec<ApplicationLife>) -> Vec<String> {
    lives.into_iter().map(|life| life.application.client_id.to_string()).collect()
}

async fn found(
    tx: &mut Tx,
    search: &ApplicationSearch,
    after: Option<(&str, &str)>,
    size: i64,
) -> Result<Vec<String>, StoreError> {
    let after = after.map(|(name, id)| (name.to_owned(), ClientId::stored(id.to_owned())));
    Ok(ids(tx.search_applications(search, after.as_ref(), at(0), size).await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_are_found_by_the_beginning_of_id_and_name_and_by_their_state() {
    in_seeded(async move |tx: &mut Tx| {
        for (id, name) in
            [("bot", "가나"), ("bot-2", "가"), ("bot.3", "가나다"), ("bound", "나"), ("zoo", "가나")]
        {
            let application = domain::application::Application { name: name.to_owned(), ..application(id) };
            tx.put_application(&application, at(1)).await?;
        }
        let id = |prefix: &str| ApplicationSearch::Id(prefix.to_owned());
        assert_eq!(found(tx, &id("bot"), None, 9).await?, ["bot", "bot-2", "bot.3"]);
        assert_eq!(found(tx, &id("bot"), Some(("", "bot")), 1).await?, ["bot-2"]);
        assert_eq!(found(tx, &id("bo"), Some(("", "bot.3")), 9).await?, ["bound"]);
        assert_eq!(found(tx, &id(""), None, 2).await?, ["app", "bot"]);
        let name = |prefix: &str| ApplicationSearch::Name(prefix.to_owned());
        assert_eq!(found(tx, &name("가나"), None, 9).await?, ["bot", "zoo", "bot.3"]);
        assert_eq!(found(tx, &name("가나"), Some(("가나", "bot")), 9).await?, ["zoo", "bot.3"]);
        assert!(found(tx, &name("다"), None, 9).await?.is_empty());
        tx.disable_application(&client("zoo"), at(2), at(0)).await?;
        tx.disable_application(&client("bot"), at(2), at(0)).await?;
        assert_eq!(found(tx, &ApplicationSearch::Disabled, None, 9).await?, ["bot", "zoo"]);
        assert_eq!(found(tx, &ApplicationSearch::Disabled, Some(("", "bot")), 9).await?, ["zoo"]);
        assert!(found(tx, &ApplicationSearch::Restorable, None, 9).await?.is_empty());
        let deleted = tx.delete_unused_application(at(9), at(5)).await?.expect("an application");
        assert_eq!(found(tx, &ApplicationSearch::Restorable, None, 9).await?, [deleted.as_str()]);
        assert_eq!(tx.count_up_to(Backlog::RestorableApplications, 9).await?, 1);
        assert_eq!(tx.count_up_to(Backlog::DisabledApplications, 9).await?, 2);
        assert_eq!(tx.count_up_to(Backlog::DisabledApplications, 1).await?, 1);
        assert!(tx.set_application_quota(&client("bot"), false, at(0)).await?);
        let shown = tx.application_life(&client("bot"), at(0)).await?.expect("an application");
        assert_eq!(shown.application.quota, QuotaShare::Unlimited);
        // A part of the quotas turns them on, and stays when they are turned off and on.
        for (quota, share) in [
            (None, QuotaShare::Percent(25)),
            (Some(false), QuotaShare::Unlimited),
            (Some(true), QuotaShare::Percent(25)),
        ] {
            match quota {
                None => assert!(tx.set_application_quota_percent(&client("bot"), 25, at(0)).await?),
                Some(quota) => assert!(tx.set_application_quota(&client("bot"), quota, at(0)).await?),
            }
            let shown = tx.application_life(&client("bot"), at(0)).await?.expect("an application");
            assert_eq!(shown.application.quota, share);
        }
        assert!(!tx.set_application_quota_percent(&client("missing"), 25, at(0)).await?);
        assert!(!tx.set_application_quota(&client("missing"), false, at(0)).await?);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_found_by_the_beginning_of_their_name() {
    in_seeded(async move |tx: &mut Tx| {
        for (id, name) in [("x", "하늘"), ("y", "하늘바다"), ("z", "하늘")] {
            let record = store::queries::channels::ChannelRecord { name: name.to_owned(), ..record(id) };
            tx.put_channel(&record, at(1)).await?;
        }
        let names = async |tx: &mut Tx, after: Option<&(String, domain::ChannelId)>| {
            let found = tx.channels_by_name("하늘", after, 9).await?;
            Ok::<_, StoreError>(found.into_iter().map(|one| one.channel_id.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(names(tx, None).await?, ["x", "z", "y"]);
        assert_eq!(names(tx, Some(&("하늘".to_owned(), channel("x")))).await?, ["z", "y"]);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overview_has_nodes_and_counts_and_the_webhooks_in_trouble() {
    in_seeded(async move |tx: &mut Tx| {
        let record = NodeRecord {
            node_id: node("n1"),
            roles: "web".to_owned(),
            session_base: None,
            started_at: at(3),
            version: "1.2.3".to_owned(),
        };
        tx.register_node(&record, at(4)).await?;
        let nodes = tx.nodes(9).await?;
        let shown = |one: &store::queries::overview::NodeListing| {
            (one.node_id.to_string(), one.version.clone(), one.started_at, one.seen_at)
        };
        assert_eq!(
            nodes.iter().map(shown).collect::<Vec<_>>(),
            [("n1".into(), "1.2.3".into(), at(3), at(4))]
        );
        for what in Backlog::ALL {
            assert_eq!(tx.count_up_to(what, 9).await?, 0, "{what:?}");
        }
        for name in ["calm", "gone", "late"] {
            plant(tx, name).await?;
        }
        assert!(tx.webhooks_in_trouble("", 9).await?.is_empty());
        let gone = Disabled { reason: domain::delivery::DisabledReason::Gone, since: at(7) };
        tx.disable_webhook(&webhook_id("gone"), gone).await?;
        tx.note_webhook_failure(&webhook_id("late"), at(8)).await?;
        let found = tx.webhooks_in_trouble("", 9).await?;
        let shown: Vec<_> = found.iter().map(|one| (one.disabled, one.failing_since)).collect();
        assert_eq!(shown, [(Some(gone), None), (None, Some(at(8)))]);
        assert_eq!(tx.webhooks_in_trouble(found[0].client_id.as_str(), 9).await?, found[1..]);
        assert_eq!(tx.count_up_to(Backlog::WebhooksInTrouble, 9).await?, 2);
        tx.bar_channel(&channel("a"), at(1)).await?;
        assert_eq!(tx.count_up_to(Backlog::BarredChannels, 9).await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_is_shown_and_verified() {
    in_seeded(async move |tx: &mut Tx| {
        let organization_id = OrganizationId::stored("games".to_owned());
        assert!(tx.organization_details(&organization_id).await?.is_none());
        assert!(!tx.set_organization_verified(&organization_id, true).await?);
        let organization = Organization {
            organization_id: organization_id.clone(),
            name: "게임즈".to_owned(),
            verified: false,
        };
        tx.put_organization(&organization).await?;
        assert!(tx.set_organization_verified(&organization_id, true).await?);
        let shown = tx.organization_details(&organization_id).await?.expect("an organization");
        assert_eq!((shown.organization.name.as_str(), shown.organization.verified), ("게임즈", true));
        Ok(())
    })
    .await;
}
