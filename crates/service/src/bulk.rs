//! Happenings in bulk: many in one transaction, each with the effect of its single call (the platform API's events).
//!
//! A batch costs one sync, and what is refused of it leaves nothing behind. Most batches hold nothing that is refused,
//! so a batch is first run straight through, its messages in chats by few statements for many; only when that fails does
//! each happening get a part of the transaction of its own. The work grows with the number of happenings and no faster.
//!
//! A batch locks what it shares with others before its first line, so that batches and single calls wait for each other but
//! not in a circle. Should the database end one for another all the same, the whole of it is run again.

mod locks;

use std::sync::Arc;

use bus::Message;
use domain::channel::UserRole;
use domain::live::Category;
use domain::{ChannelId, MessageId, Refusal, Timestamp};
use store::Tx;
use store::queries::chats::is_time_taken;

use crate::categories;
use crate::channels::{self, CheckedChannel, Credentials};
use crate::chats::{self, ChatMessage, Post, Posting};
use crate::drops::{self, RewardRequest};
use crate::happenings::{self, Donation, PaidSubscription};
use crate::idempotency::{self, IdempotencyKey};
use crate::lives::{self, LiveReport};
use crate::relations;
use crate::watching::{self, WatchingReport};
use crate::{ChannelRecord, Error, Service};

pub(crate) use locks::NodeLocks;

/// Happenings of one batch. Beyond this a shared sync costs each hardly less, while what the batch has locked stays
/// locked for longer; and it is far below the messages that a session may have waiting, should all be of one channel.
pub const BATCH_MAX: usize = 128;

/// How often a batch is run that others are in the way of.
const TRIES_MAX: u32 = 5;

/// Something that the platform reports among other things.
#[derive(Clone, Debug)]
pub struct Reported {
    /// What it is.
    pub what: What,
    /// With a key it happens once, however often it is reported.
    pub key: Option<IdempotencyKey>,
}

/// What can be reported in bulk.
#[derive(Clone, Debug)]
pub enum What {
    /// A channel, made or replaced; with credentials its owner can sign in.
    Channel(ChannelRecord, Option<Credentials>),
    /// A category, made or replaced.
    Category(Category),
    /// What happened on a channel.
    On(ChannelId, Kind),
}

/// What happens on a channel.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A chat message.
    Chat(ChatMessage),
    /// A donation.
    Donation(Donation),
    /// A paid subscription.
    Subscription(PaidSubscription),
    /// A follow.
    Follow {
        /// Who follows.
        follower: ChannelId,
        /// Since when; `None` for since now.
        created: Option<Timestamp>,
    },
    /// The end of a follow.
    Unfollow {
        /// Who followed.
        follower: ChannelId,
    },
    /// A role in the channel.
    Manager {
        /// Who has it.
        manager: ChannelId,
        /// The role.
        role: UserRole,
    },
    /// The end of a role.
    Unmanager {
        /// Who had it.
        manager: ChannelId,
    },
    /// What is on air.
    Live(LiveReport),
    /// The end of what is on air.
    LiveEnd,
    /// A claim of a reward.
    Claim(RewardRequest),
    /// Watching for drops.
    Watching(WatchingReport),
}

/// What became of a happening: `None` when it happened, else why not.
pub type Outcome = Option<Refusal>;

/// Something reported, when all is done that needs no transaction.
#[derive(Clone)]
struct Ready {
    deed: Deed,
    key: Option<IdempotencyKey>,
    /// For an id that it may need.
    random: [u8; 10],
    /// For a message.
    posting: Posting,
}

#[derive(Clone)]
enum Deed {
    Channel(Result<CheckedChannel, Error>),
    Category(Category),
    On(ChannelId, Kind),
}

impl Ready {
    fn is_chat(&self) -> bool {
        matches!(self.deed, Deed::On(_, Kind::Chat(_)))
    }

    /// What is to be posted, if it is a message in a chat.
    fn post(&self) -> Option<Post<'_>> {
        let Deed::On(channel, Kind::Chat(message)) = &self.deed else { return None };
        Some(Post { channel, message, posting: &self.posting, key: self.key.as_ref() })
    }
}

/// How a batch is run.
#[derive(Clone, Copy)]
enum Way {
    /// All together: the first that is refused ends it.
    StraightThrough,
    /// Each in a part of the transaction that can be taken back alone.
    OneByOne,
}

impl Service {
    /// Lets up to [`BATCH_MAX`] things happen, in their order, and says of each what became of it.
    ///
    /// # Errors
    /// [`Refusal::Busy`] when others are in the way for too long: then none of them happened. The store's: then none of them
    /// happened, or, when it did not confirm the commit, perhaps all.
    pub async fn report(&self, reported: Vec<Reported>) -> Result<Vec<Outcome>, Error> {
        if reported.is_empty() {
            return Ok(Vec::new());
        }
        let mut batch = Vec::with_capacity(reported.len());
        for reported in reported {
            batch.push(self.ready(reported).await);
        }
        let batch: Arc<[Ready]> = batch.into();
        let mut done = self.run_until_uncontended(&batch, Way::StraightThrough).await;
        if done.as_ref().is_err_and(|error| !is_outage(error)) {
            done = self.run_until_uncontended(&batch, Way::OneByOne).await;
        }
        match done {
            Err(error) if is_contention(&error) => {
                self.log_failure("other transactions were in the way of a bulk batch for too long", &error);
                Err(locks::CONTENDED.into())
            }
            done => done,
        }
    }

    /// Runs it again as long as others are in its way, up to [`TRIES_MAX`] times: nothing of it was written then.
    async fn run_until_uncontended(&self, batch: &Arc<[Ready]>, way: Way) -> Result<Vec<Outcome>, Error> {
        let mut done = self.run(batch.clone(), way).await;
        for _ in 1..TRIES_MAX {
            if !done.as_ref().is_err_and(is_contention) {
                break;
            }
            done = self.run(batch.clone(), way).await;
        }
        done
    }

    async fn ready(&self, Reported { what, key }: Reported) -> Ready {
        let deed = match what {
            What::Channel(record, credentials) => {
                Deed::Channel(self.checked_channel(record, credentials).await)
            }
            What::Category(category) => Deed::Category(category),
            What::On(channel, kind) => Deed::On(channel, kind),
        };
        Ready { deed, key, random: self.random(), posting: self.posting() }
    }

    async fn run(&self, batch: Arc<[Ready]>, way: Way) -> Result<Vec<Outcome>, Error> {
        let shared = self.locks_of(&batch);
        let _held = self.lock_in_node(&shared).await?;
        let now = self.now();
        let claims = batch.iter().any(|ready| matches!(ready.deed, Deed::On(_, Kind::Claim(_))));
        let run = self.write_then_publish(move |tx| {
            Box::pin(async move {
                tx.lock_in_order(&shared).await?;
                let (mut outcomes, mut messages) = (vec![None; batch.len()], Vec::new());
                match way {
                    Way::StraightThrough => {
                        for part in batch.chunk_by(|one, next| one.is_chat() && next.is_chat()) {
                            messages.extend(happen_together(tx, part, now).await?);
                        }
                    }
                    Way::OneByOne => {
                        for (ready, outcome) in batch.iter().zip(&mut outcomes) {
                            match happen_alone(tx, ready.clone(), now).await? {
                                Ok(told) => messages.extend(told),
                                Err(refusal) => *outcome = Some(refusal),
                            }
                        }
                    }
                }
                Ok((outcomes, messages))
            })
        });
        let outcomes = run.await.inspect_err(|error| {
            if is_outage(error) && !is_contention(error) {
                self.0.node_locks.store_failed();
            }
        })?;
        if claims {
            self.wake_senders();
        }
        Ok(outcomes)
    }
}

/// Lets one thing happen, or several messages in chats.
async fn happen_together(tx: &mut Tx, part: &[Ready], now: Timestamp) -> Result<Vec<Message>, Error> {
    match part {
        [ready] => happen(tx, ready.clone(), now).await,
        part => {
            let posts: Vec<_> = part.iter().filter_map(Ready::post).collect();
            chats::post_all(tx, &posts, now).await
        }
    }
}

/// Lets one thing happen, or leaves nothing of it behind.
///
/// # Errors
/// The store's, when the whole batch is lost.
async fn happen_alone(
    tx: &mut Tx,
    ready: Ready,
    now: Timestamp,
) -> Result<Result<Vec<Message>, Refusal>, Error> {
    match attempt(tx, ready, now).await? {
        Ok(told) => Ok(Ok(told)),
        Err(error) if is_outage(&error) => Err(error),
        Err(error) => {
            if let Error::Store(error) = &error {
                tracing::error!(%error, "the store failed at one of many happenings");
            }
            Ok(Err(error.refusal()))
        }
    }
}

/// Tries it in a part of the transaction; a message whose time is taken, again with a later one.
async fn attempt(tx: &mut Tx, ready: Ready, now: Timestamp) -> Result<Result<Vec<Message>, Error>, Error> {
    for _ in 0..chats::TIMES_TRIED_MAX {
        let one = ready.clone();
        let done = tx.attempt(move |tx| Box::pin(happen(tx, one, now))).await?;
        match (&done, ready.post()) {
            (Err(Error::Store(error)), Some(post)) if is_time_taken(error) => {
                chats::learn_time(tx, &post.posting.times, post.channel, &post.message.sender, now).await?;
            }
            _ => return Ok(done),
        }
    }
    Ok(Err(Error::Internal(chats::NO_TIME)))
}

/// Whether nothing else would fare better now.
fn is_outage(error: &Error) -> bool {
    match error {
        Error::Store(error) => error.is_outage(),
        error => *error == locks::CONTENDED.into(),
    }
}

/// Whether other transactions were in the way.
fn is_contention(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_contention())
}

/// The effect of the single call, inside a transaction.
async fn happen(tx: &mut Tx, ready: Ready, now: Timestamp) -> Result<Vec<Message>, Error> {
    if let Some(post) = ready.post() {
        return Ok(chats::post(tx, &post, now).await?.1);
    }
    let Ready { deed, key, random, .. } = ready;
    let key = key.as_ref();
    match deed {
        Deed::On(channel, kind) => return happen_on(tx, channel, kind, key, random, now).await,
        // The single calls of these may be repeated as they are. Among others, they may not.
        _ if idempotency::claim(tx, key, "", now).await?.is_some() => {}
        Deed::Channel(channel) => channels::put(tx, &channel?, now).await?,
        Deed::Category(category) => {
            category.check()?;
            categories::put(tx, &category).await?;
        }
    }
    Ok(Vec::new())
}

async fn happen_on(
    tx: &mut Tx,
    channel: ChannelId,
    kind: Kind,
    key: Option<&IdempotencyKey>,
    random: [u8; 10],
    now: Timestamp,
) -> Result<Vec<Message>, Error> {
    match kind {
        Kind::Donation(donation) => {
            let id = MessageId::generate(now, random);
            return happenings::donate(tx, channel, donation, id, key, now).await;
        }
        Kind::Subscription(paid) => return happenings::subscribe_paid(tx, channel, paid, key, now).await,
        Kind::Claim(request) => {
            let claim = request.into_claim(now, random);
            drops::claim(tx, &claim, key, now).await?;
        }
        // As above. Messages have been posted there.
        Kind::Chat(_) => {}
        _ if idempotency::claim(tx, key, "", now).await?.is_some() => {}
        Kind::Follow { follower, created } => {
            relations::follow(tx, &channel, &follower, created, now).await?;
        }
        Kind::Unfollow { follower } => relations::unfollow(tx, &channel, &follower).await?,
        Kind::Manager { manager, role } => relations::put_manager(tx, &channel, &manager, role, now).await?,
        Kind::Unmanager { manager } => relations::delete_manager(tx, &channel, &manager).await?,
        Kind::Live(report) => lives::put(tx, &channel, &report.checked()?, now).await?,
        Kind::LiveEnd => lives::end(tx, &channel).await?,
        Kind::Watching(report) => {
            watching::watch(tx, &report, now).await?;
        }
    }
    Ok(Vec::new())
}
