//! Many changes in one transaction. Each has the effect of its single call (`POST /platform/v1/events`).
//!
//! A batch costs one sync. A refused entry changes nothing. Most batches have no refused entry, so a batch
//! is first run as a whole, with few statements for all its chat messages. If that fails, each entry gets a
//! savepoint. The work is linear in the number of entries.
//!
//! Before its first entry a batch takes all locks that it shares with other batches, so that transactions do
//! not deadlock. If the database aborts a batch in favour of another transaction nevertheless, the batch is
//! run again.

mod entries;
mod locks;

use std::sync::Arc;

use domain::{ChannelId, Refusal};
use store::queries::chats::is_time_taken;

use crate::channel::channels;
use crate::channel::relations;
use crate::chat::chats::{self, Posting};
use crate::drops;
use crate::live::categories;
use crate::live::lives;
use crate::live::watching;
use crate::platform::channel_events;
use crate::platform::idempotency::{self, IdempotencyKey};
use crate::work::Work;
use crate::{Error, Purpose, Service};

pub use entries::{BATCH_MAX, ChannelEvent, Entry, KeyedEntry};
use entries::{Prepared, PreparedEntry};

/// Maximum number of runs of a batch that conflicts with other transactions.
const TRIES_MAX: u32 = 5;

/// The outcome of an entry: `None` if the entry took effect, else the refusal.
pub type EntryOutcome = Option<Refusal>;

/// How a batch is run.
#[derive(Clone, Copy)]
enum BatchMode {
    /// All entries together. The first refusal ends the run.
    Together,
    /// Each entry in a savepoint.
    OneByOne,
}

impl Service {
    /// Applies up to [`BATCH_MAX`] entries in their order and returns the outcome of each.
    ///
    /// # Errors
    /// [`Refusal::Busy`] when the batch conflicted with other transactions for too long. The error of the
    /// store when the store fails. In both cases no entry took effect, except that after an unconfirmed
    /// commit all may have taken effect.
    pub async fn report(&self, entries: Vec<KeyedEntry>) -> Result<Vec<EntryOutcome>, Error> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let mut batch = Vec::with_capacity(entries.len());
        for entry in entries {
            batch.push(self.prepare(entry).await);
        }
        let batch: Arc<[Prepared]> = batch.into();
        let mut outcome = self.run_until_uncontended(&batch, BatchMode::Together).await;
        if outcome.as_ref().is_err_and(|error| !is_outage(error)) {
            outcome = self.run_until_uncontended(&batch, BatchMode::OneByOne).await;
        }
        match outcome {
            Err(error) if is_contention(&error) => {
                self.log_failure("a bulk batch conflicted with other transactions for too long", &error);
                Err(locks::CONTENDED.into())
            }
            outcome => outcome,
        }
    }

    /// Runs a batch up to [`TRIES_MAX`] times while it conflicts with other transactions, each time with the
    /// locks that it needs by then. A run that conflicts writes nothing.
    async fn run_until_uncontended(
        &self,
        batch: &Arc<[Prepared]>,
        mode: BatchMode,
    ) -> Result<Vec<EntryOutcome>, Error> {
        let mut outcome = self.run(batch.clone(), mode).await;
        for tries in 1..=TRIES_MAX {
            let Some(error) = outcome.as_ref().err().filter(|error| is_contention(error)) else { break };
            let pause = self.pause_before_retry(error, tries);
            if tries < TRIES_MAX {
                tokio::time::sleep(pause.unwrap_or_default()).await;
                outcome = self.run(batch.clone(), mode).await;
            }
        }
        outcome
    }

    async fn prepare(&self, KeyedEntry { entry, key }: KeyedEntry) -> Prepared {
        let entry = match entry {
            Entry::Channel(record, credentials) => {
                PreparedEntry::Channel(self.checked_channel(record, credentials).await)
            }
            Entry::Category(category) => PreparedEntry::Category(category),
            Entry::Event(channel, event) => PreparedEntry::Event(channel, event),
        };
        Prepared { entry, key }
    }

    async fn run(&self, batch: Arc<[Prepared]>, mode: BatchMode) -> Result<Vec<EntryOutcome>, Error> {
        let shared = self.locks_of(&batch);
        let _held = self.lock_in_node(&shared).await?;
        let posting = self.posting();
        let run = self.try_write(async move |work: &mut Work<'_>| {
            work.lock_in_order(&shared).await?;
            let mut outcomes = vec![None; batch.len()];
            match mode {
                BatchMode::Together => {
                    for part in batch.chunk_by(|one, next| one.is_chat() && next.is_chat()) {
                        apply_together(work, part, &posting).await?;
                    }
                }
                BatchMode::OneByOne => {
                    for (prepared, outcome) in batch.iter().zip(&mut outcomes) {
                        *outcome = apply_alone(work, prepared, &posting).await?;
                    }
                }
            }
            Ok(outcomes)
        });
        run.await.inspect_err(|error| {
            if is_outage(error) && !is_contention(error) {
                self.0.node_locks.store_failed();
            }
        })
    }
}

/// Applies one entry, or several chat messages.
async fn apply_together(work: &mut Work<'_>, part: &[Prepared], posting: &Posting) -> Result<(), Error> {
    match part {
        [prepared] => apply(work, prepared, posting).await,
        part => {
            let posts: Vec<_> = part.iter().filter_map(|prepared| prepared.post(posting)).collect();
            chats::post_all(work, &posts).await
        }
    }
}

/// Applies one entry completely or not at all.
///
/// # Errors
/// The error of the store, when the whole batch failed.
async fn apply_alone(
    work: &mut Work<'_>,
    prepared: &Prepared,
    posting: &Posting,
) -> Result<EntryOutcome, Error> {
    match attempt(work, prepared, posting).await? {
        Ok(()) => Ok(None),
        Err(error) if is_outage(&error) => Err(error),
        Err(error) => {
            if let Error::Store(error) = &error {
                tracing::error!(%error, "the store failed in one entry of a batch");
            }
            Ok(Some(error.refusal()))
        }
    }
}

/// Applies an entry in a savepoint. If the time of a chat message is taken, the entry is applied again with
/// a later time.
async fn attempt(
    work: &mut Work<'_>,
    prepared: &Prepared,
    posting: &Posting,
) -> Result<Result<(), Error>, Error> {
    let now = work.now();
    for _ in 0..chats::TIMES_TRIED_MAX {
        let outcome = work.attempt(async |work: &mut Work<'_>| apply(work, prepared, posting).await).await?;
        match (&outcome, prepared.post(posting)) {
            (Err(Error::Store(error)), Some(post)) if is_time_taken(error) => {
                chats::read_last_time(work, &posting.times, post.channel, &post.message.sender, now).await?;
            }
            _ => return Ok(outcome),
        }
    }
    Ok(Err(Error::Internal(chats::NO_TIME)))
}

/// Whether every other entry would fail too.
fn is_outage(error: &Error) -> bool {
    match error {
        Error::Store(error) => error.is_outage(),
        error => *error == locks::CONTENDED.into(),
    }
}

/// Whether the batch conflicted with other transactions.
fn is_contention(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_contention())
}

/// Applies an entry with the effect of its single call, inside a transaction.
async fn apply(work: &mut Work<'_>, prepared: &Prepared, posting: &Posting) -> Result<(), Error> {
    if let Some(post) = prepared.post(posting) {
        return chats::post(work, &post).await.map(drop);
    }
    let Prepared { entry, key } = prepared.clone();
    let key = key.as_ref();
    match entry {
        PreparedEntry::Event(channel, event) => return apply_event(work, channel, event, key).await,
        // A repetition of these single calls has no effect. A repetition after other entries may have one.
        _ if idempotency::claim(work, key, &()).await?.is_some() => {}
        PreparedEntry::Channel(channel) => channels::put(work, &channel?).await?,
        PreparedEntry::Category(category) => {
            category.check()?;
            categories::put(work, &category).await?;
        }
    }
    Ok(())
}

async fn apply_event(
    work: &mut Work<'_>,
    channel: ChannelId,
    event: ChannelEvent,
    key: Option<&IdempotencyKey>,
) -> Result<(), Error> {
    match event {
        ChannelEvent::Donation(donation) => {
            return channel_events::donate(work, channel, donation, key).await.map(drop);
        }
        ChannelEvent::Subscription(paid) => {
            return channel_events::subscribe_paid(work, channel, paid, key).await;
        }
        ChannelEvent::Claim(request) => {
            let claim = request.into_claim(work.now(), work.random(Purpose::Claim));
            drops::claim(work, &claim, key).await?;
        }
        // `apply` has posted the message.
        ChannelEvent::Chat(_) => {}
        _ if idempotency::claim(work, key, &()).await?.is_some() => {}
        ChannelEvent::Follow { follower, created } => {
            relations::follow(work, &channel, &follower, created).await?;
        }
        ChannelEvent::Unfollow { follower } => relations::unfollow(work, &channel, &follower).await?,
        ChannelEvent::Manager { manager, role } => {
            relations::put_manager(work, &channel, &manager, role).await?
        }
        ChannelEvent::Unmanager { manager } => relations::delete_manager(work, &channel, &manager).await?,
        ChannelEvent::Live(report) => lives::put(work, &channel, &report.checked()?).await?,
        ChannelEvent::LiveEnd => lives::end(work, &channel).await?,
        ChannelEvent::Watching(report) => {
            watching::watch(work, &report).await?;
        }
    }
    Ok(())
}
