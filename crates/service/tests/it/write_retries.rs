//! Writes that PostgreSQL ends with a deadlock or a serialization failure. SQLite has one writer, so neither
//! happens there.

use domain::chat::{Emojis, MessageText};
use domain::live::CategoryChoice;
use domain::{ChannelId, Refusal};
use service::RetriedWrites;
use service::lives::LiveReport;
use store::{StoreError, Tx};
use tokio::sync::oneshot;

use crate::world::{World, both, events_among, received, within};

/// Loses the race of the first messages that are written, as many as the sequence `races` has left.
const LOSE_RACES: [&str; 3] = [
    "CREATE SEQUENCE races MINVALUE 0",
    "CREATE FUNCTION lose_race() RETURNS trigger LANGUAGE plpgsql AS $$
     BEGIN
         IF nextval('races') < 4 THEN
             RAISE EXCEPTION 'another transaction was first' USING ERRCODE = 'serialization_failure';
         END IF;
         RETURN NEW;
     END $$",
    "CREATE TRIGGER lose_race BEFORE INSERT ON chat_messages FOR EACH ROW EXECUTE FUNCTION lose_race()",
];

const LOSE_EVERY_RACE: &str = "ALTER SEQUENCE races MINVALUE -1000 RESTART WITH -1000";

/// The last of the counts that are reported until a report meets a deadlock.
const ROUNDS_END: i64 = 12;

const MESSAGES: &str = "SELECT COUNT(*) FROM chat_messages";

/// The locks of this transaction for which others wait. `pg_stat_activity` would not do: a transaction keeps
/// its first answer, without later connections.
const WAITING: &str =
    "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";

fn report(viewers: i64) -> LiveReport {
    LiveReport {
        title: None,
        thumbnail_image_url: None,
        concurrent_user_count: viewers,
        adult: false,
        category: CategoryChoice::Unsaid,
        tags: None,
    }
}

async fn execute(world: &World, sql: &'static str) {
    let done = world.store.write(async move |tx: &mut Tx| tx.execute(sql, &[]).await).await;
    done.map_err(|error: StoreError| error).unwrap();
}

/// Locks a live first and its setting second. A report takes these locks in the other order. The second lock
/// is taken when the report waits for the first, so the report finds the deadlock and is ended.
async fn block_report(
    tx: &mut Tx,
    channel: &ChannelId,
    locked: oneshot::Sender<()>,
) -> Result<(), StoreError> {
    tx.change_live_details(channel, "막은 제목", None, &[]).await?;
    locked.send(()).expect("the test waits");
    while tx.query_one(WAITING, &[]).await?.get::<i64>(0)? == 0 {}
    tx.lock_broadcast_setting(channel).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_call_that_a_deadlock_ended_is_run_again_and_takes_effect_once() {
    both(|world: World| async move {
        if !world.store.is_remote() {
            return;
        }
        let channel = world.user("a").await;
        world.service.put_live(&channel, report(5)).await.unwrap();
        let mut changes = 0;
        // On a machine that stands still, a lock can be given up before the deadlock is found.
        for viewers in 6..=ROUNDS_END {
            let (locked, is_locked) = oneshot::channel();
            let blocker = {
                let (store, channel) = (world.store.clone(), channel.clone());
                tokio::spawn(async move {
                    store.write(async move |tx: &mut Tx| block_report(tx, &channel, locked).await).await
                })
            };
            is_locked.await.unwrap();
            let reported = within(world.service.put_live(&channel, report(viewers))).await;
            changes += i64::from(reported.is_ok());
            let went_on = blocker.await.unwrap();
            if world.service.retried_writes().after_deadlock == 1 {
                assert_eq!((reported, went_on), (Ok(()), Ok(())), "both transactions take effect");
                let live = world.service.live_on_air(&channel).await.unwrap().unwrap();
                assert_eq!(live.show.concurrent_user_count, viewers);
                assert_ne!(live.show.title, "막은 제목", "the report came last");
                let spans = "SELECT COUNT(*) FROM live_spans";
                assert_eq!(world.count(spans).await, 1 + changes, "a change takes effect once");
                return;
            }
        }
        panic!("no report met a deadlock");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_loses_races_is_run_again_and_in_the_end_refused() {
    both(|world: World| async move {
        if !world.store.is_remote() {
            return;
        }
        let channel = world.user("a").await;
        for sql in LOSE_RACES {
            execute(&world, sql).await;
        }
        let post = async |text: &str| {
            let text = MessageText::parse(text.into()).unwrap();
            world.service.post_chat(&channel, &channel, text, Emojis::new(), None).await
        };
        let mut bus = world.service.subscribe_to_bus();
        post("다섯 번째").await.unwrap();
        assert_eq!(events_among(&received(&mut bus).await).len(), 1);
        assert_eq!(world.count(MESSAGES).await, 1);
        let retried = RetriedWrites { after_lost_race: 4, ..RetriedWrites::default() };
        assert_eq!(world.service.retried_writes(), retried);

        execute(&world, LOSE_EVERY_RACE).await;
        let error = post("없음").await.unwrap_err();
        assert_eq!(error.refusal(), Refusal::Busy { retry_after_s: 1 });
        assert!(events_among(&received(&mut bus).await).is_empty());
        assert_eq!(world.count(MESSAGES).await, 1);
        let retried = RetriedWrites { after_lost_race: 8, given_up: 1, ..RetriedWrites::default() };
        assert_eq!(world.service.retried_writes(), retried);
    })
    .await;
}
