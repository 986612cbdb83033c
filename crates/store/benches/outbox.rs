//! What the outbox of events costs a chat message on PostgreSQL: the transaction of `chats/send` without it
//! and with it, in turn, for one caller and for 16.
//!
//!     STAGEDOOR_TEST_DATABASE_URL=… cargo bench -p store --bench outbox
#![allow(clippy::disallowed_methods, reason = "a bench measures real time")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::channel::UserRoleCode;
use domain::chat::Emojis;
use domain::event::ChatEvent;
use domain::{BatchId, ChannelId, MessageId, NodeId, Timestamp};
use store::queries::channels::ChannelRecord;
use store::queries::chats::NewMessage;
use store::queries::event_outbox::EventBatch;
use store::testing;
use store::{Options, Store, StoreError, Tx};

const RUN: Duration = Duration::from_secs(4);
const TURNS: usize = 3;
const SETTLE_EVERY: Duration = Duration::from_millis(100);

/// What the callers of a run share.
struct Run {
    store: Store,
    with_outbox: bool,
    count: AtomicU64,
    settled: Mutex<Vec<BatchId>>,
}

#[tokio::main]
async fn main() {
    let fresh = testing::postgres().await;
    let store = Store::open(fresh.target(), Options::default()).await.expect("the store opens");
    prepare(&store).await;
    let mut sums = [[0.0; 2]; 2];
    for turn in 1..=TURNS {
        for (which, callers) in [1, 16].into_iter().enumerate() {
            for with_outbox in [false, true] {
                let (rate, p50, p99) = run(&store, callers, with_outbox).await;
                sums[which][usize::from(with_outbox)] += rate;
                let name = if with_outbox { "with outbox" } else { "without" };
                println!(
                    "turn {turn}, {callers} callers, {name}: {rate:.0} messages/s, p50 {p50:?}, p99 {p99:?}"
                );
            }
        }
    }
    for (callers, [without, with]) in [1, 16].into_iter().zip(sums) {
        println!(
            "{callers} callers: a message costs {:+.1} % with the outbox",
            (without / with - 1.0) * 100.0
        );
    }
    store.close().await;
    fresh.remove().await;
}

fn channel() -> ChannelId {
    ChannelId::stored("streamer".to_owned())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Timestamp::from_millis(since.as_millis() as i64)
}

async fn prepare(store: &Store) {
    let record = ChannelRecord {
        channel_id: channel(),
        name: "streamer".to_owned(),
        image_url: None,
        verified_mark: false,
        real_name_verified: false,
    };
    let put: Result<(), StoreError> =
        store.write(async move |tx: &mut Tx| tx.put_channel(&record, now()).await.map(drop)).await;
    put.expect("a channel");
}

/// Messages a second, and how long the middle and the slowest took.
async fn run(store: &Store, callers: usize, with_outbox: bool) -> (f64, Duration, Duration) {
    let (count, settled) = Default::default();
    let run = Arc::new(Run { store: store.clone(), with_outbox, count, settled });
    let until = Instant::now() + RUN;
    let settler = tokio::spawn(settle(run.clone()));
    let tasks: Vec<_> = (0..callers).map(|_| tokio::spawn(post(run.clone(), until))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("it runs to its end"));
    }
    settler.abort();
    times.sort_unstable();
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    (times.len() as f64 / RUN.as_secs_f64(), at(0.5), at(0.99))
}

async fn settle(run: Arc<Run>) {
    loop {
        tokio::time::sleep(SETTLE_EVERY).await;
        let settled = std::mem::take(&mut *run.settled.lock().expect("the lock is not poisoned"));
        for part in settled.chunks(512) {
            let part = part.to_vec();
            let deleted: Result<(), StoreError> =
                run.store.write(async move |tx: &mut Tx| tx.settle_event_batches(&part).await).await;
            deleted.expect("rows are deleted");
        }
    }
}

async fn post(run: Arc<Run>, until: Instant) -> Vec<Duration> {
    let mut times = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        let mut random = [0; 10];
        // Different for each message of this process.
        random[..8].copy_from_slice(&run.count.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let batch = run.with_outbox.then(|| EventBatch {
            batch_id: BatchId::generate(now(), random),
            node_id: NodeId::stored("01985d0c7a5b7c3f9d1e2f3a4b5c6d7e".to_owned()),
            channels: vec![channel()],
            is_taken_over: false,
        });
        let id = MessageId::generate(now(), random);
        let settled = batch.as_ref().map(|batch| batch.batch_id.clone());
        let posted: Result<(), StoreError> = run
            .store
            .write(async move |tx: &mut Tx| {
                let channel = channel();
                let speaker = tx.speaker(&channel, &channel).await?.ok_or(StoreError::NoRow)?;
                let chat = ChatEvent {
                    sender_channel_id: channel.clone(),
                    nickname: speaker.name,
                    verified_mark: speaker.verified_mark,
                    user_role_code: UserRoleCode::Streamer,
                    chat_channel_id: "chat-streamer".to_owned(),
                    content: "안녕하세요, 오늘도 방송 재미있게 보고 있어요!".to_owned(),
                    badges: Default::default(),
                    emojis: Emojis::new(),
                    message_time: now(),
                };
                let message = NewMessage { id: &id, channel: &channel, chat: &chat, emojis: "{}".to_owned() };
                tx.insert_chat_messages(&[message]).await?;
                match batch {
                    Some(batch) => tx.record_event_batch(&batch, now()).await,
                    None => Ok(()),
                }
            })
            .await;
        posted.expect("a message is posted");
        run.settled.lock().expect("the lock is not poisoned").extend(settled);
        times.push(begun.elapsed());
    }
    times
}
