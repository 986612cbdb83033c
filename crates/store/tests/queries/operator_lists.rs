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
    search: ApplicationSearch,
    after: Option<&str>,
    size: i64,
) -> Result<Vec<String>, StoreError> {
    let after = after.map(|id| ClientId::stored(id.to_owned()));
    Ok(ids(tx.search_applications(search, after.as_ref(), at(0), size).await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn applications_are_listed_by_their_state() {
    in_seeded(async move |tx: &mut Tx| {
        for (id, name) in
            [("bot", "가나"), ("bot-2", "가"), ("bot.3", "가나다"), ("bound", "나"), ("zoo", "가나")]
        {
            let application = domain::application::Application { name: name.to_owned(), ..application(id) };
            tx.put_application(&application, at(1)).await?;
        }
        assert_eq!(found(tx, ApplicationSearch::All, None, 2).await?, ["app", "bot"]);
        assert_eq!(found(tx, ApplicationSearch::All, Some("bot"), 2).await?, ["bot-2", "bot.3"]);
        tx.disable_application(&client("zoo"), at(2), at(0)).await?;
        tx.disable_application(&client("bot"), at(2), at(0)).await?;
        assert_eq!(found(tx, ApplicationSearch::Disabled, None, 9).await?, ["bot", "zoo"]);
        assert_eq!(found(tx, ApplicationSearch::Disabled, Some("bot"), 9).await?, ["zoo"]);
        assert!(found(tx, ApplicationSearch::Restorable, None, 9).await?.is_empty());
        let deleted = tx.delete_unused_application(at(9), at(5)).await?.expect("an application");
        assert_eq!(found(tx, ApplicationSearch::Restorable, None, 9).await?, [deleted.as_str()]);
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
async fn names_are_found_by_their_beginning_inside_and_by_id_and_login() {
    in_seeded(async move |tx: &mut Tx| {
        use store::queries::name_search::NamedKind::{Applications, Channels, Organizations};
        let ids = |names: Vec<(String, String)>| names.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        for (id, name) in [
            ("x", "하늘"),
            ("y", "하늘바다"),
            ("z", "하늘"),
            ("w", "푸른 하늘 Bot"),
            ("v", "100%_!"),
            ("é", "Café МосКва Ａlpha"),
        ] {
            let record = store::queries::channels::ChannelRecord { name: name.to_owned(), ..record(id) };
            tx.put_channel(&record, at(1)).await?;
        }
        let of = |name: &str, id: &str| (name.to_owned(), id.to_owned());
        let start = of("", "");
        assert_eq!(ids(tx.names_beginning(Channels, "하늘", None, 9).await?), ["x", "z", "y"]);
        assert_eq!(ids(tx.names_beginning(Channels, "하늘", Some(&of("하늘", "x")), 9).await?), ["z", "y"]);
        let inside = async |tx: &mut Tx, text: &str, behind: &(String, String)| {
            Ok::<_, StoreError>(ids(tx.names_containing(Channels, text, behind, 9).await?.0))
        };
        assert_eq!(inside(tx, "하늘", &start).await?, ["w"], "without those that begin with it");
        assert_eq!(inside(tx, "바다", &start).await?, ["y"]);
        assert_eq!(inside(tx, "bOT", &start).await?, ["w"]);
        for any in ["CAFÉ", "é м", "МОСква", "москВА", "alPHA", "ａｌｐ"] {
            assert_eq!(inside(tx, any, &start).await?, ["é"], "{any}");
        }
        assert!(inside(tx, "bot", &of("푸른 하늘 Bot", "w")).await?.is_empty());
        for wildcard in ["%_", "_!", "!"] {
            assert_eq!(inside(tx, wildcard, &start).await?, ["v"], "{wildcard}");
        }
        assert_eq!(tx.names_containing(Channels, "x", &start, 9).await?.1, None, "all were looked at");
        assert_eq!(ids(tx.names_of_ids(Channels, "x", false, 9).await?), ["x"]);
        assert!(tx.names_of_ids(Applications, "ap", false, 9).await?.is_empty());
        assert_eq!(ids(tx.names_of_ids(Applications, "ap", true, 9).await?), ["app"]);
        tx.put_person(&channel("y"), "mina", "hash").await?;
        assert_eq!(ids(tx.names_of_logins("mi", 9).await?), ["y"]);
        let organization = Organization {
            organization_id: OrganizationId::stored("games".to_owned()),
            name: "Blue Games".to_owned(),
            verified: false,
        };
        tx.put_organization(&organization).await?;
        assert_eq!(ids(tx.names_containing(Organizations, "games", &start, 9).await?.0), ["games"]);
        assert_eq!(
            ids(tx
                .channels_called("하늘", 9)
                .await?
                .into_iter()
                .map(|one| of("", one.channel_id.as_str()))
                .collect()),
            ["x", "z"]
        );
        assert_eq!(tx.channels_beginning_with("하늘", "하늘", 2).await?.len(), 2);
        assert_eq!(tx.count_consents(&client("app"), crate::scopes(), 9).await?, (3, 3));
        assert_eq!(tx.count_consents(&client("app"), crate::scopes(), 2).await?, (2, 2));
        assert_eq!(tx.count_consents(&client("app"), domain::ScopeSet::EMPTY, 9).await?, (0, 3));
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
