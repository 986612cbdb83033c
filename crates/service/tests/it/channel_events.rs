//! Chat messages, donations and paid subscriptions, and the events that they become.

use std::sync::{Arc, Mutex};

use bus::{BoxFuture, Bus, Interest, LocalBus, Message, Subscriber};
use domain::channel::{UserRole, UserRoleCode};
use domain::chat::{DonationType, Emojis, MessageText};
use domain::event::{ChatEvent, EventKind};
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, Refusal, Rule};
use service::channel_events::{Donation, PaidSubscription};
use service::chats::PostedMessage;
use service::idempotency::IdempotencyKey;
use service::{ChannelRecord, Error};
use store::{Store, Tx};
use tokio::runtime::Handle;

use crate::world::{World, at_once, both, events_among, received, refused};

const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";

fn text(text: &str) -> MessageText {
    MessageText::parse(text.to_owned()).unwrap()
}

fn key(key: &str, body: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::parse("POST /chats".to_owned(), key, body).unwrap())
}

fn unknown_channel() -> ChannelId {
    ChannelId::stored("unknown_channel".into())
}

fn donation(donator: Option<&ChannelId>) -> Donation {
    Donation {
        donation_type: DonationType::Chat,
        donator: donator.cloned(),
        pay_amount: "1000".into(),
        donation_text: "힘내세요".into(),
        emojis: Emojis::new(),
    }
}

fn paid(subscriber: &ChannelId, month: i64) -> PaidSubscription {
    PaidSubscription {
        subscriber: subscriber.clone(),
        tier_no: 2,
        tier_name: "별".into(),
        month,
        created: None,
    }
}

async fn post(
    world: &World,
    channel: &ChannelId,
    sender: &ChannelId,
    said: &str,
) -> Result<PostedMessage, Error> {
    world.service.post_chat(channel, sender, text(said), Emojis::new(), None).await
}

fn chats(messages: &[Message]) -> Vec<ChatEvent> {
    let chat = |event: Arc<domain::event::Event>| match &event.kind {
        EventKind::Chat(chat) => Some(chat.clone()),
        _ => None,
    };
    events_among(messages).into_iter().filter_map(chat).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_becomes_one_event_with_the_sender_and_the_role() {
    both(|world| async move {
        let channel = world.user("channel").await;
        let viewer = world.user("viewer").await;
        let manager = ChannelRecord {
            channel_id: ChannelId::stored("manager".into()),
            name: "관리자".into(),
            image_url: None,
            verified_mark: true,
            real_name_verified: true,
        };
        let manager_id = manager.channel_id.clone();
        world.service.put_channel(manager, None).await.unwrap();
        world
            .service
            .put_manager(channel.clone(), manager_id.clone(), UserRole::StreamingChatManager)
            .await
            .unwrap();
        let mut bus = world.service.subscribe_to_bus();
        for (sender, role, mark) in [
            (&channel, UserRoleCode::Streamer, false),
            (&viewer, UserRoleCode::CommonUser, false),
            (&manager_id, UserRoleCode::StreamingChatManager, true),
        ] {
            let posted = post(&world, &channel, sender, "안녕").await.unwrap();
            let messages = received(&mut bus).await;
            assert_eq!(events_among(&messages)[0].channel_id, channel);
            let [chat] = &chats(&messages)[..] else { panic!("one event") };
            assert_eq!(
                (&chat.sender_channel_id, chat.user_role_code, chat.verified_mark),
                (sender, role, mark)
            );
            assert_eq!(
                (chat.message_time, &chat.chat_channel_id),
                (posted.message_time, &posted.chat_channel_id)
            );
            assert_eq!(chat.content, "안녕");
        }
        assert_eq!(world.count(MESSAGES).await, 3);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_names_an_unknown_channel_is_refused_and_changes_nothing() {
    both(|world| async move {
        let channel = world.user("channel").await;
        let mut bus = world.service.subscribe_to_bus();
        let unknown = |field| Refusal::Invalid(Invalid::new(field, Rule::KnownChannel));
        let service = &world.service;
        assert_eq!(
            refused(post(&world, &unknown_channel(), &channel, "a").await),
            Refusal::NotFound(Resource::Channel)
        );
        assert_eq!(
            refused(post(&world, &unknown_channel(), &unknown_channel(), "a").await),
            Refusal::NotFound(Resource::Channel)
        );
        assert_eq!(
            refused(post(&world, &channel, &unknown_channel(), "a").await),
            unknown("senderChannelId")
        );
        for donator in [None, Some(&channel)] {
            assert_eq!(
                refused(service.donate(&unknown_channel(), donation(donator), None).await),
                Refusal::NotFound(Resource::Channel)
            );
        }
        let outcome = service.donate(&channel, donation(Some(&unknown_channel())), None).await;
        assert_eq!(refused(outcome), unknown("donatorChannelId"));
        let outcome = service.subscribe_paid(&unknown_channel(), paid(&channel, 1), None).await;
        assert_eq!(refused(outcome), Refusal::NotFound(Resource::Channel));
        let outcome = service.subscribe_paid(&channel, paid(&unknown_channel(), 1), None).await;
        assert_eq!(refused(outcome), unknown("subscriberChannelId"));
        assert_eq!(world.count(MESSAGES).await, 0);
        assert_eq!(world.count("SELECT COUNT(*) FROM donations").await, 0);
        assert_eq!(world.count("SELECT COUNT(*) FROM subscribers").await, 0);
        assert!(received(&mut bus).await.is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_values_are_refused_before_any_change() {
    both(|world| async move {
        let channel = world.user("channel").await;
        let wrong = |outcome: Result<(), Error>| match refused(outcome) {
            Refusal::Invalid(invalid) => invalid.field,
            other => panic!("{other:?}"),
        };
        let service = &world.service;
        let amount = Donation { pay_amount: "-1".into(), ..donation(None) };
        assert_eq!(wrong(service.donate(&channel, amount, None).await.map(drop)), "payAmount");
        let long = Donation { donation_text: "가".repeat(501), ..donation(None) };
        assert_eq!(wrong(service.donate(&channel, long, None).await.map(drop)), "donationText");
        let emojis: Emojis = [("{:a:}".to_owned(), "javascript:alert(1)".to_owned())].into();
        let picture = Donation { emojis: emojis.clone(), ..donation(None) };
        assert_eq!(wrong(service.donate(&channel, picture, None).await.map(drop)), "emojis");
        let chat = service.post_chat(&channel, &channel, text("a"), emojis, None).await;
        assert_eq!(wrong(chat.map(drop)), "emojis");
        for (field, value) in [
            ("tierNo", PaidSubscription { tier_no: 3, ..paid(&channel, 1) }),
            ("tierNo", PaidSubscription { tier_no: 0, ..paid(&channel, 1) }),
            ("month", paid(&channel, -1)),
            ("month", paid(&channel, 1_201)),
            ("tierName", PaidSubscription { tier_name: " ".into(), ..paid(&channel, 1) }),
        ] {
            assert_eq!(wrong(service.subscribe_paid(&channel, value, None).await), field);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn donations_and_paid_subscriptions_become_events() {
    both(|world| async move {
        let (channel, fan) = (world.user("channel").await, world.user("fan").await);
        let mut bus = world.service.subscribe_to_bus();
        world.service.donate(&channel, donation(Some(&fan)), None).await.unwrap();
        world.service.donate(&channel, donation(None), None).await.unwrap();
        world.service.subscribe_paid(&channel, paid(&fan, 1), None).await.unwrap();
        world.service.subscribe_paid(&channel, paid(&fan, 2), None).await.unwrap();
        let events: Vec<String> = events_among(&received(&mut bus).await)
            .iter()
            .map(|event| serde_json::to_string(&event.payload(domain::Profile::Documented)).unwrap())
            .collect();
        let parts = [
            r#""donatorChannelId":"fan","donatorNickname":"fan's channel","payAmount":"1000""#,
            r#""donatorChannelId":"""#,
            r#""subscriberChannelId":"fan","subscriberNickname":"fan's channel","tierNo":2,"tierName":"별","month":1"#,
            r#""month":2"#,
        ];
        assert_eq!(events.len(), parts.len());
        for (event, part) in events.iter().zip(parts) {
            assert!(event.contains(part), "{event}");
        }
        assert_eq!(world.count("SELECT COUNT(*) FROM subscribers").await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_20_concurrent_posts_with_one_key_one_posts_and_all_get_its_answer() {
    both(|world| async move {
        let channel = world.user("channel").await;
        let mut bus = world.service.subscribe_to_bus();
        let answers = at_once((0..20).map(|_| {
            let (service, channel) = (world.service.clone(), channel.clone());
            async move {
                service.post_chat(&channel, &channel, text("once"), Emojis::new(), key("k", "body")).await
            }
        }));
        let answers: Vec<PostedMessage> = answers.await.into_iter().map(|answer| answer.unwrap()).collect();
        assert_eq!(answers.len(), 20);
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        assert_eq!(chats(&received(&mut bus).await).len(), 1);
        assert_eq!(world.count(MESSAGES).await, 1);

        world.advance_ms(60_000);
        let again =
            world.service.post_chat(&channel, &channel, text("once"), Emojis::new(), key("k", "body")).await;
        assert_eq!(again.unwrap(), answers[0]);
        let other =
            world.service.post_chat(&channel, &channel, text("b"), Emojis::new(), key("k", "other")).await;
        assert_eq!(refused(other), Refusal::Invalid(Invalid::new("Idempotency-Key", Rule::Taken)));
        world
            .service
            .post_chat(&channel, &channel, text("once"), Emojis::new(), key("l", "body"))
            .await
            .unwrap();
        assert_eq!(world.count(MESSAGES).await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_belongs_to_one_operation_and_a_refused_request_does_not_use_it_up() {
    both(|world| async move {
        let channel = world.user("channel").await;
        let mut bus = world.service.subscribe_to_bus();
        let refused_first = world
            .service
            .post_chat(&channel, &unknown_channel(), text("a"), Emojis::new(), key("k", "1"))
            .await;
        assert!(matches!(refused(refused_first), Refusal::Invalid(_)));
        world.service.post_chat(&channel, &channel, text("a"), Emojis::new(), key("k", "2")).await.unwrap();
        let of = |operation: &str| Some(IdempotencyKey::parse(operation.to_owned(), "k", "2").unwrap());
        for _ in 0..2 {
            world.service.donate(&channel, donation(None), of("POST /donations")).await.unwrap();
            world
                .service
                .subscribe_paid(&channel, paid(&channel, 1), of("POST /subscriptions"))
                .await
                .unwrap();
        }
        assert_eq!(received(&mut bus).await.len(), 3);
        assert_eq!(world.count("SELECT COUNT(*) FROM donations").await, 1);
    })
    .await;
}

/// A bus that checks at every publication whether the row of the message is committed.
struct WitnessBus {
    bus: LocalBus,
    store: Store,
    /// Publications begin on a thread without a runtime.
    runtime: Handle,
    seen: Arc<Mutex<Vec<i64>>>,
}

impl Bus for WitnessBus {
    fn publish_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Vec<ChannelId>> {
        Box::pin(async move {
            let store = self.store.clone();
            let read = self.runtime.spawn(async move {
                store.read(async move |tx: &mut Tx| tx.query_one(MESSAGES, &[]).await?.get(0)).await
            });
            let committed: Result<i64, store::StoreError> = read.await.unwrap();
            self.seen.lock().unwrap().push(committed.unwrap());
            self.bus.publish_all(messages).await
        })
    }

    fn interest(&self, channel: &ChannelId) -> Interest {
        self.bus.interest(channel)
    }

    fn subscribe(&self) -> Subscriber {
        self.bus.subscribe()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_published_after_their_commit_and_in_the_order_of_their_producer() {
    store::testing::both(|store| async move {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (bus, runtime) = (LocalBus::default(), Handle::current());
        let bus = WitnessBus { bus, store: store.clone(), runtime, seen: seen.clone() };
        let world = World::over(store, Arc::new(bus));
        let channel = world.user("channel").await;
        let mut bus = world.service.subscribe_to_bus();
        let said: Vec<String> = (0..30).map(|n| format!("message {n}")).collect();
        for said in &said {
            post(&world, &channel, &channel, said).await.unwrap();
        }
        let contents: Vec<String> =
            chats(&received(&mut bus).await).into_iter().map(|chat| chat.content).collect();
        assert_eq!(contents, said);
        assert_eq!(*seen.lock().unwrap(), (1..=30).collect::<Vec<_>>(), "rows there at each publication");
    })
    .await;
}
