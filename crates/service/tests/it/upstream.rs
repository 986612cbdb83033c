//! Accounts of people who come from a provider, with concurrent requests.

use domain::secret::BrowserToken;
use domain::upstream::UpstreamIdentity;
use domain::{ChannelId, Language, Refusal};
use service::upstream::{LinkOutcome, UnlinkOutcome, UpstreamSignIn};

use crate::world::{World, at_once, both, refused};

fn identity(provider: &str, subject: &str) -> UpstreamIdentity {
    UpstreamIdentity {
        provider: provider.to_owned(),
        issuer: format!("https://{provider}.example"),
        subject: subject.to_owned(),
        name: Some("하늘".to_owned()),
        picture: None,
        email: None,
    }
}

fn token(signed_in: UpstreamSignIn) -> BrowserToken {
    match signed_in {
        UpstreamSignIn::SignedIn(token) => token,
        other => panic!("{other:?}"),
    }
}

async fn registered(world: &World, provider: &str, subject: &str) -> ChannelId {
    let made = world.service.register_upstream(&identity(provider, subject), "하늘").await.unwrap();
    world.service.signed_in(&token(made)).await.unwrap().expect("signed in").channel_id
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_registrations_of_one_person_make_one_account() {
    both(|world| async move {
        let tasks = (0..6).map(|_| {
            let service = world.service.clone();
            async move { service.register_upstream(&identity("sky", "1"), "하늘").await }
        });
        let mut channels = Vec::new();
        for made in at_once(tasks).await {
            let signed_in = world.service.signed_in(&token(made.unwrap())).await.unwrap();
            channels.push(signed_in.expect("signed in").channel_id);
        }
        channels.dedup();
        assert_eq!(channels.len(), 1, "{channels:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_of_a_provider_is_linked_to_one_of_two_accounts() {
    both(|world| async move {
        let accounts = [registered(&world, "sky", "1").await, registered(&world, "sky", "2").await];
        let tasks = accounts.clone().into_iter().map(|channel| {
            let service = world.service.clone();
            async move { service.link_upstream(&channel, &identity("sea", "9"), Language::Korean).await }
        });
        let outcomes: Vec<_> = at_once(tasks).await.into_iter().map(Result::unwrap).collect();
        let done = outcomes.iter().filter(|outcome| **outcome == LinkOutcome::Done).count();
        assert_eq!((done, outcomes.contains(&LinkOutcome::OtherAccount)), (1, true), "{outcomes:?}");
        let again =
            world.service.link_upstream(&accounts[0], &identity("sky", "1"), Language::Korean).await.unwrap();
        assert_eq!(again, LinkOutcome::Done, "it is linked already");
        let second =
            world.service.link_upstream(&accounts[0], &identity("sky", "3"), Language::Korean).await.unwrap();
        assert_eq!(second, LinkOutcome::OtherPerson);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_requests_for_the_last_two_providers_one_is_refused() {
    both(|world| async move {
        let channel = registered(&world, "sky", "1").await;
        world.service.link_upstream(&channel, &identity("sea", "1"), Language::Korean).await.unwrap();
        let tasks = ["sky", "sea"].map(|provider| {
            let (service, channel) = (world.service.clone(), channel.clone());
            async move { service.unlink_upstream(&channel, provider, &["sky", "sea"], Language::Korean).await }
        });
        let outcomes = at_once(tasks.into_iter()).await;
        let mut outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
        outcomes.sort_by_key(|outcome| *outcome == UnlinkOutcome::LastWayIn);
        assert_eq!(outcomes, [UnlinkOutcome::Done, UnlinkOutcome::LastWayIn]);
        assert_eq!(world.service.linked_providers(&channel).await.unwrap().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_configured_is_no_way_in() {
    both(|world| async move {
        let channel = registered(&world, "sky", "1").await;
        world.service.link_upstream(&channel, &identity("gone", "1"), Language::Korean).await.unwrap();
        let unlink = async |provider: &str| {
            world.service.unlink_upstream(&channel, provider, &["sky"], Language::Korean).await
        };
        assert_eq!(unlink("sky").await.unwrap(), UnlinkOutcome::LastWayIn);
        assert_eq!(unlink("gone").await.unwrap(), UnlinkOutcome::Done);
        assert!(matches!(refused(unlink("gone").await), Refusal::NotFound(_)));
        world.service.bar_channel(&channel).await.unwrap();
        let barred = world.service.sign_in_upstream(&identity("sky", "1")).await.unwrap();
        assert!(matches!(barred, UpstreamSignIn::Barred), "{barred:?}");
        world.service.delete_channel(&channel).await.unwrap();
        let gone = world.service.sign_in_upstream(&identity("sky", "1")).await.unwrap();
        assert!(matches!(gone, UpstreamSignIn::Unknown), "{gone:?}");
    })
    .await;
}
