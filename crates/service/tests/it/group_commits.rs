//! Reports of watched minutes, follows and changes of sessions that are made at once share transactions.
//! Each has its own outcome, the same on both engines.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use domain::application::Organization;
use domain::drops::{Campaign, Period, Reward};
use domain::event::EventType;
use domain::live::{Category, CategoryChoice, CategoryType};
use domain::refusal::Resource;
use domain::token::Caller;
use domain::{
    CampaignId, CategoryId, ChannelId, Invalid, OrganizationId, Refusal, RewardId, Rule, SessionKey,
    Timestamp,
};
use service::lives::LiveReport;
use service::watching::{Viewers, Watching, WatchingReport};
use service::{Page, Service};
use store::testing::{Level, Network, Wire, postgres, while_running};
use store::{Options, Store, Target};
use testkit::ServiceSetup;

use crate::world::{World, at_once, both, changes_among, client_owner, received, user_owner, within};

const SEA: &str = "sea";

fn id(name: &str) -> ChannelId {
    ChannelId::stored(name.to_owned())
}

/// Puts channels on air in the category of the campaigns `one` and `two`.
async fn air(world: &World, channels: &[&str]) {
    let organization_id = OrganizationId::stored("games".to_owned());
    let organization =
        Organization { organization_id: organization_id.clone(), name: "games".to_owned(), verified: true };
    world.service.put_organization(organization).await.unwrap();
    let category = Category {
        category_id: CategoryId::stored(SEA.to_owned()),
        category_type: CategoryType::Game,
        category_value: "The sea".to_owned(),
        poster_image_url: None,
    };
    world.service.put_category(category).await.unwrap();
    for name in ["one", "two"] {
        let reward_id = RewardId::stored(format!("reward of {name}"));
        let campaign = Campaign {
            campaign_id: CampaignId::stored(name.to_owned()),
            name: name.to_owned(),
            organization_id: organization_id.clone(),
            category_id: SEA.to_owned(),
            period: Period::default(),
            channels: None,
            rewards: vec![Reward { reward_id, name: "compass".to_owned(), watch_minutes: 1 }],
        };
        world.service.put_campaign(campaign).await.unwrap();
    }
    for channel in channels {
        let report = LiveReport {
            title: None,
            thumbnail_image_url: None,
            concurrent_user_count: 0,
            adult: false,
            category: CategoryChoice::Of(CategoryId::stored(SEA.to_owned())),
            tags: None,
        };
        world.service.put_live(&world.user(channel).await, report).await.unwrap();
    }
}

async fn watch(
    service: Service,
    of: &'static str,
    who: Viewers,
    minutes: i64,
) -> Result<Watching, service::Error> {
    service.report_watching(WatchingReport { channel_id: id(of), viewers: who, minutes }, None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reports_at_once_add_up_and_refused_ones_harm_no_other() {
    const ROUNDS: usize = 40;
    both(|world| async move {
        air(&world, &["live", "other"]).await;
        for name in ["idle", "a", "b", "c"] {
            world.user(name).await;
        }
        let many = |names: &[&str]| Viewers::Many(names.iter().map(|name| id(name)).collect());
        let no_channel = Refusal::from(Invalid::new("channelId", Rule::KnownChannel));
        let no_viewer = Refusal::from(Invalid::new("viewerChannelIds", Rule::KnownChannel));
        let cases = [
            ("live", Viewers::One(id("a")), None),
            ("live", many(&["a", "b"]), None),
            ("nowhere", many(&["a", "b"]), Some(no_channel)),
            ("other", many(&["c", "b", "a"]), None),
            ("live", many(&["a", "missing"]), Some(no_viewer.clone())),
            ("idle", many(&["a", "c"]), None),
            ("live", many(&["a", "b", "a"]), Some(no_viewer)),
        ];
        let before = world.service.store_stats();
        let outcomes = at_once((0..ROUNDS * cases.len()).map(|n| {
            let (of, who, _) = &cases[n % cases.len()];
            watch(world.service.clone(), of, who.clone(), 1 + n as i64 % 3)
        }))
        .await;
        // The minutes that were added to each viewer, and the sums that the callers saw.
        let mut minutes = BTreeMap::<&ChannelId, i64>::new();
        let mut seen = BTreeMap::<ChannelId, Vec<i64>>::new();
        for (n, outcome) in outcomes.iter().enumerate() {
            let (of, who, refused) = &cases[n % cases.len()];
            assert_eq!(outcome.as_ref().err(), refused.as_ref(), "{n}");
            let Ok(watching) = outcome else { continue };
            let viewers = match who {
                Viewers::One(one) => std::slice::from_ref(one),
                Viewers::Many(many) => many,
            };
            let counts = *of != "idle";
            assert_eq!((watching.on_air, watching.category_id.is_some()), (counts, counts));
            assert_eq!(watching.watched.len(), if counts { 2 * viewers.len() } else { 0 });
            for watched in &watching.watched {
                if watched.campaign_id.as_str() == "one" {
                    seen.entry(watched.viewer.clone()).or_default().push(watched.minutes);
                }
            }
            for viewer in viewers.iter().filter(|_| counts) {
                *minutes.entry(viewer).or_default() += 1 + n as i64 % 3;
            }
        }
        for (viewer, sum) in minutes {
            // As one after another: no two saw the same sum, and the last one saw all.
            let sums = &seen[viewer];
            assert_eq!(sums.iter().collect::<HashSet<_>>().len(), sums.len());
            assert_eq!(sums.iter().max(), Some(&sum));
            for campaign in ["one", "two"] {
                let campaign = CampaignId::stored(campaign.to_owned());
                let progress = world.service.drops_progress(campaign, viewer.clone()).await.unwrap();
                assert_eq!(progress.minutes, sum);
            }
        }
        let syncs = world.service.store_stats().syncs - before.syncs;
        assert!(syncs < (ROUNDS * 4 / 2) as u64, "{syncs} syncs");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn follows_at_once_are_counted_exactly_and_refused_ones_harm_no_other() {
    const FANS: usize = 60;
    both(|world| async move {
        for name in ["one", "two"] {
            world.user(name).await;
        }
        for n in 0..FANS {
            world.user(&format!("fan-{n}")).await;
            world.service.follow(id("two"), id(&format!("fan-{n}")), None).await.unwrap();
        }
        let fan = |n: usize| id(&format!("fan-{n}"));
        let unknown = Refusal::NotFound(Resource::Channel);
        let itself = Refusal::from(Invalid::new("followerChannelId", Rule::OtherChannel));
        let day = Timestamp::from_millis(86_400_000);
        let before = world.service.store_stats();
        // Each fan follows `one`, some again with another day; every second one leaves `two`.
        let outcomes = at_once((0..FANS * 6).map(|n| {
            let (service, fan) = (world.service.clone(), fan(n / 6));
            async move {
                match n % 6 {
                    0 => service.follow(id("one"), fan, None).await,
                    1 if n / 6 % 3 == 0 => service.follow(id("one"), fan, Some(day)).await,
                    2 if n / 6 % 2 == 0 => service.unfollow(id("two"), fan).await,
                    3 => service.follow(id("one"), id("missing"), None).await,
                    4 => service.unfollow(id("nowhere"), fan).await,
                    5 => service.follow(fan.clone(), fan, None).await,
                    _ => Ok(()),
                }
            }
        }))
        .await;
        for (n, outcome) in outcomes.into_iter().enumerate() {
            let refusal = match n % 6 {
                3 | 4 => Err(unknown.clone()),
                5 => Err(itself.clone()),
                _ => Ok(()),
            };
            assert_eq!(outcome, refusal, "{n}");
        }
        for (channel, expected) in [("one", FANS), ("two", FANS / 2)] {
            let page = Page { size: FANS as i64, page: 0 };
            let listed = world.service.followers(id(channel), page, true).await.unwrap();
            assert_eq!((listed.items.len(), listed.total), (expected, Some(expected as i64)), "{channel}");
            for follower in listed.items {
                let n: usize = follower.channel_id.as_str()["fan-".len()..].parse().unwrap();
                assert!(channel == "one" || n % 2 == 1, "{n}");
                assert_eq!(follower.created_at == day, channel == "one" && n.is_multiple_of(3), "{n}");
            }
        }
        let counted = "SELECT COUNT(*) FROM channels WHERE follower_count <> (
            SELECT COUNT(*) FROM followers WHERE followers.channel_id = channels.channel_id)";
        assert_eq!(world.count(counted).await, 0);
        let syncs = world.service.store_stats().syncs - before.syncs;
        assert!(syncs < FANS as u64, "{syncs} syncs");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn subscriptions_at_once_are_numbered_without_gaps_and_refused_ones_harm_no_other() {
    const USERS: usize = 30;
    const EVENTS: [EventType; 3] = [EventType::Chat, EventType::Donation, EventType::Subscription];
    both(|world| async move {
        let app = world.application("app").await;
        let shared = world.connect(&client_owner(&app)).await;
        let mut users = Vec::new();
        for n in 0..USERS {
            let user = world.user(&format!("user-{n}")).await;
            let caller = world.caller(&app, &user).await;
            let session = world.connect(&user_owner(&app, &user)).await;
            world.service.subscribe(&caller, &session, EventType::Chat).await.unwrap();
            users.push((user, caller, session));
        }
        world.service.disconnect_session(&users[0].2, "client_goodbye").await.unwrap();
        let tokens = world.tokens(&app, &users[1].0).await;
        world.service.revoke(&app, tokens.access.expose()).await.unwrap();
        let mut bus = world.service.subscribe_to_bus();
        let before = world.service.store_stats();
        // On its own session each user repeats one, adds one and ends one. All subscribe on the shared one.
        let outcomes = at_once((0..USERS * 4).map(|n| {
            let (service, shared) = (world.service.clone(), shared.clone());
            let (_, caller, session) = users[n / 4].clone();
            async move {
                match n % 4 {
                    3 => service.subscribe(&caller, &shared, EventType::Donation).await,
                    2 => service.unsubscribe(&caller, &session, EVENTS[2]).await,
                    event => service.subscribe(&caller, &session, EVENTS[event]).await,
                }
            }
        }))
        .await;
        let mut expected = 0;
        for (n, outcome) in outcomes.into_iter().enumerate() {
            match (n / 4, n % 4) {
                (0, 0..3) => assert_eq!(outcome, Err(Refusal::NotFound(Resource::Session))),
                (1, _) => assert_eq!(outcome.unwrap_err().kind(), "invalid_token"),
                _ => {
                    assert_eq!(outcome, Ok(()), "{n}");
                    expected += 1;
                }
            }
        }
        let changes = changes_among(&received(&mut bus).await);
        assert_eq!(changes.len(), expected);
        for (n, (_, _, session)) in users.iter().enumerate().skip(2) {
            // One came before.
            let mut versions: Vec<_> = changes.iter().filter(|it| it.0 == *session).map(|it| it.1).collect();
            versions.sort_unstable();
            assert_eq!(versions, [2, 3, 4], "{n}");
            assert_eq!(world.changes(session).await.len(), 4);
        }
        let numbered = "SELECT COUNT(*) FROM sessions s WHERE s.version <> (
            SELECT COUNT(*) FROM session_changes c WHERE c.session_key = s.session_key)";
        assert_eq!(world.count(numbered).await, 0);
        let subscribed = "SELECT COUNT(*) FROM session_subscriptions";
        // The ended session keeps its one, and the revoked user has none.
        assert_eq!(world.count(subscribed).await, 1 + 2 * (USERS as i64 - 2) + (USERS as i64 - 1));
        let syncs = world.service.store_stats().syncs - before.syncs;
        assert!(syncs < expected as u64 * 3 / 4, "{syncs} syncs for {expected} changes");
    })
    .await;
}

/// Calls of each kind at once: reports, follows and subscriptions.
async fn some_of_each(
    service: &Service,
    users: &[(Caller, SessionKey)],
    round: usize,
) -> Vec<Result<(), service::Error>> {
    let tasks: Vec<_> = (0..users.len() * 3)
        .map(|n| {
            let (service, (caller, session)) = (service.clone(), users[n / 3].clone());
            tokio::spawn(async move {
                match n % 3 {
                    0 => watch(service, "live", Viewers::One(caller.channel_id), 1).await.map(drop),
                    1 if round.is_multiple_of(2) => service.follow(id("live"), caller.channel_id, None).await,
                    1 => service.unfollow(id("live"), caller.channel_id).await,
                    _ => service.subscribe(&caller, &session, EventType::Chat).await,
                }
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_is_lost_fails_every_waiting_call_and_leaves_nothing_half_done() {
    let fresh = postgres().await;
    let wire = Wire::to(&fresh).await;
    let store = Store::open(Target::Postgres { url: wire.url().into() }, Options::default()).await.unwrap();
    let world = World::new(ServiceSetup::default(), store);
    air(&world, &["live"]).await;
    let app = world.application("app").await;
    let mut users = Vec::new();
    for n in 0..20 {
        let user = world.user(&format!("user-{n}")).await;
        users.push((world.caller(&app, &user).await, world.connect(&user_owner(&app, &user)).await));
    }
    for (round, network) in [Network::LosesCommits, Network::Down, Network::Silent].into_iter().enumerate() {
        wire.set(network);
        let outcomes = while_running(Duration::from_secs(6), some_of_each(&world.service, &users, round));
        for outcome in outcomes.await.expect("errors in time") {
            assert!(
                matches!(&outcome, Err(service::Error::Store(error)) if error.is_outage()),
                "{outcome:?}"
            );
        }
        wire.set(Network::Up);
        // Connections that died unnoticed are thrown away by use, each once.
        let again =
            async { while some_of_each(&world.service, &users, round).await.iter().any(Result::is_err) {} };
        within(again).await;
        for (what, halves) in [
            (
                "follows",
                "SELECT COUNT(*) FROM channels c WHERE follower_count <> (
                SELECT COUNT(*) FROM followers f WHERE f.channel_id = c.channel_id)",
            ),
            (
                "blocks",
                "SELECT COUNT(*) FROM list_blocks b WHERE list = 'FOLLOWERS' AND items <> (
                SELECT COUNT(*) FROM followers f WHERE f.channel_id = b.channel_id)",
            ),
            (
                "minutes",
                "SELECT COUNT(*) FROM watched_minutes a JOIN watched_minutes b
                ON b.channel_id = a.channel_id WHERE b.minutes <> a.minutes",
            ),
            (
                "changes",
                "SELECT COUNT(*) FROM sessions s WHERE version <> (
                SELECT COUNT(*) FROM session_changes c WHERE c.session_key = s.session_key)",
            ),
        ] {
            assert_eq!(world.count(halves).await, 0, "{what} after {network:?}");
        }
    }
    ServiceSetup::stop(world).await;
    fresh.remove().await;
}
