//! Chat messages that are posted at once share a transaction (group commit). Each has its own outcome.

use std::time::Duration;

use domain::chat::{Emojis, MessageText};
use domain::chat_settings::{ChatRefusal, ChatSettingsChange, Group};
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, MessageSeries, Refusal, Rule, Timestamp};
use service::chats::PostedMessage;
use service::{Error, Service};
use store::testing::{Level, Network, Wire, postgres, while_running};
use store::{Options, Store, StoreError, Target, Tx, params};
use testkit::ServiceSetup;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::world::{START_MS, World, at_once, both, events_among, received, within};

const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";
const POISON: &str = "poison";

async fn say(
    service: Service,
    channel: ChannelId,
    sender: ChannelId,
    text: &str,
) -> Result<PostedMessage, Error> {
    let text = MessageText::parse(text.to_owned()).unwrap();
    service.post_chat(&channel, &sender, text, Emojis::new(), None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_messages_at_once_has_its_own_outcome() {
    const ROUNDS: usize = 40;
    both(|world| async move {
        let [channel, viewer, banned, muted] = ["channel", "viewer", "banned", "muted"];
        let fans = world.user("fans").await;
        for name in [channel, viewer, banned, muted] {
            world.user(name).await;
        }
        let only_followers = ChatSettingsChange { group: Some(Group::Follower), ..Default::default() };
        world.service.change_chat_settings(&fans, only_followers).await.unwrap();
        let id = |name: &str| ChannelId::stored(name.to_owned());
        world.service.restrict(&id(channel), id(banned)).await.unwrap();
        let unknown = Invalid::new("senderChannelId", Rule::KnownChannel);
        let cases: [(&str, &str, Option<Refusal>); 8] = [
            (channel, channel, None),
            (channel, viewer, None),
            (channel, banned, Some(Refusal::Chat(ChatRefusal::Restricted))),
            (viewer, banned, None),
            ("fans", muted, Some(Refusal::Chat(ChatRefusal::Follower))),
            ("fans", "fans", None),
            ("nobody", "nobody", Some(Refusal::NotFound(Resource::Channel))),
            (channel, "nobody", Some(unknown.into())),
        ];
        let mut bus = world.service.subscribe_to_bus();
        let before = world.service.store_stats();
        let all = (0..ROUNDS * cases.len()).map(|n| {
            let (channel, sender, _) = &cases[n % cases.len()];
            say(world.service.clone(), id(channel), id(sender), "안녕")
        });
        let mut posted = 0;
        for (n, outcome) in at_once(all).await.into_iter().enumerate() {
            let expected = &cases[n % cases.len()].2;
            assert_eq!(outcome.as_ref().err(), expected.as_ref(), "{n}");
            posted += i64::from(outcome.is_ok());
        }
        assert_eq!(world.count(MESSAGES).await, posted);
        assert_eq!(events_among(&received(&mut bus).await).len() as i64, posted);
        let after = world.service.store_stats();
        let syncs = after.syncs - before.syncs;
        assert!(syncs < posted as u64 / 2, "{syncs} syncs for {posted} messages");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_that_the_database_refuses_harms_no_other() {
    both(|world| async move {
        let channel = world.user("channel").await;
        let refuse_poison = if world.store.is_remote() {
            "ALTER TABLE chat_messages ADD CONSTRAINT no_poison CHECK (content <> 'poison')"
        } else {
            "CREATE TRIGGER no_poison BEFORE INSERT ON chat_messages WHEN NEW.content = 'poison'
             BEGIN SELECT RAISE(ABORT, 'no poison'); END"
        };
        let altered: Result<u64, StoreError> =
            world.store.write(async move |tx: &mut Tx| tx.execute(refuse_poison, &[]).await).await;
        altered.unwrap();
        let posts: Vec<_> = (0..150)
            .map(|n| {
                let text = if n % 50 == 17 { POISON } else { "안녕" };
                (text, tokio::spawn(say(world.service.clone(), channel.clone(), channel.clone(), text)))
            })
            .collect();
        for (text, post) in posts {
            let posted = post.await.unwrap();
            assert_eq!(posted.is_err(), text == POISON, "{posted:?}");
        }
        assert_eq!(world.count(MESSAGES).await, 147);
    })
    .await;
}

/// Holds the place of a message with an uncommitted row, until the test commits or rolls back.
async fn hold(store: &Store, channel: &ChannelId) -> (oneshot::Sender<bool>, JoinHandle<()>) {
    let (held, is_held) = oneshot::channel();
    let (end, ended) = oneshot::channel();
    let id = MessageSeries::of(channel, channel).id_at(Timestamp::from_millis(START_MS));
    let (store, channel) = (store.clone(), channel.clone());
    let holding = tokio::spawn(async move {
        let outcome: Result<(), StoreError> = store
            .write(async move |tx: &mut Tx| {
                let sql = "
                    INSERT INTO chat_messages
                        (message_id, channel_id, sender_channel_id, content, emojis, message_time)
                    VALUES ($1, $2, $2, 'held', '{}', $3)";
                tx.execute(sql, params![&id, &channel, START_MS]).await?;
                held.send(()).unwrap();
                if ended.await.unwrap() { Ok(()) } else { Err(StoreError::NoRow) }
            })
            .await;
        drop(outcome);
    });
    is_held.await.unwrap();
    (end, holding)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_that_wait_for_another_transaction_do_not_hold_later_messages() {
    let fresh = postgres().await;
    let world = ServiceSetup::default().start(&fresh).await;
    let mut stuck = Vec::new();
    for name in ["first", "second"] {
        let channel = world.user(name).await;
        let (end, holding) = hold(&world.store, &channel).await;
        // Each is a batch of its own, and together they are all batches that run at the same time.
        let post = tokio::spawn(say(world.service.clone(), channel.clone(), channel, "안녕"));
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        stuck.push((end, holding, post));
    }
    let other = world.user("other").await;
    let mut later = tokio::spawn(say(world.service.clone(), other.clone(), other.clone(), "안녕"));
    let early = tokio::time::timeout(Duration::from_millis(50), &mut later).await;
    assert!(early.is_err(), "two batches run at the same time: {early:?}");
    world.advance_ms(1_000);
    within(later).await.unwrap().unwrap();
    // One of the rows is committed, so that its message takes the next time.
    for (is_committed, (end, holding, post)) in [false, true].into_iter().zip(stuck) {
        end.send(is_committed).unwrap();
        holding.await.unwrap();
        let posted = within(post).await.unwrap().unwrap();
        assert_eq!(posted.message_time.as_millis() != START_MS, is_committed);
    }
    assert_eq!(world.count(MESSAGES).await, 4);
    ServiceSetup::stop(world).await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_that_wait_while_the_database_is_silent_fail_within_3_s() {
    let fresh = postgres().await;
    let wire = Wire::to(&fresh).await;
    let store = Store::open(Target::Postgres { url: wire.url().into() }, Options::default()).await.unwrap();
    let world = World::new(ServiceSetup::default(), store);
    let channel = world.user("channel").await;
    let post = |_| tokio::spawn(say(world.service.clone(), channel.clone(), channel.clone(), "안녕"));
    wire.set(Network::Silent);
    let all = async {
        for post in (0..40).map(post).collect::<Vec<_>>() {
            let posted = post.await.unwrap();
            assert!(matches!(&posted, Err(Error::Store(error)) if error.is_outage()), "{posted:?}");
        }
    };
    while_running(Duration::from_secs(3), all).await.expect("errors within 3 s");
    wire.set(Network::Up);
    // Connections that died unnoticed are thrown away by use, each once.
    within(async { while post(0).await.unwrap().is_err() {} }).await;
    assert!(world.count(MESSAGES).await >= 1);
    ServiceSetup::stop(world).await;
    fresh.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_of_a_commit_without_an_answer_are_unknown_to_their_callers_and_in_doubt() {
    let fresh = postgres().await;
    let wire = Wire::to(&fresh).await;
    let store = Store::open(Target::Postgres { url: wire.url().into() }, Options::default()).await.unwrap();
    let world = World::new(ServiceSetup::default(), store);
    let channel = world.user("channel").await;
    say(world.service.clone(), channel.clone(), channel.clone(), "안녕").await.unwrap();
    world.service.settle_events().await.unwrap();
    wire.set(Network::LosesCommits);
    let posted = say(world.service.clone(), channel.clone(), channel.clone(), "안녕").await;
    assert_eq!(posted.unwrap_err(), StoreError::CommitUnknown.into());
    wire.set(Network::Up);
    assert_eq!(world.count(MESSAGES).await, 2);
    assert_eq!(world.count("SELECT COUNT(*) FROM event_outbox WHERE taken_over_at IS NULL").await, 1);
    world.service.settle_events().await.unwrap();
    assert_eq!(world.count("SELECT COUNT(*) FROM event_outbox WHERE taken_over_at IS NOT NULL").await, 1);
    ServiceSetup::stop(world).await;
    fresh.remove().await;
}
