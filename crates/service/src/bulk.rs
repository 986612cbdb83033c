//! Happenings in bulk: many in one transaction, each with the effect of its single call (the platform API's events).
//!
//! A batch costs one sync, and what is refused of it leaves nothing behind. Most batches hold nothing that is refused,
//! so a batch is first run straight through; only when that fails does each happening get a part of the transaction of
//! its own, and only when two batches wait for each other a transaction of its own. The work grows with the number of
//! happenings and no faster.

use bus::Message;
use domain::channel::UserRole;
use domain::{ChannelId, MessageId, Refusal, Timestamp};
use store::Tx;

use crate::chats::{self, ChatMessage};
use crate::drops::{self, RewardRequest};
use crate::happenings::{self, Donation, PaidSubscription};
use crate::idempotency::{self, IdempotencyKey};
use crate::lives::{self, LiveReport};
use crate::relations;
use crate::{Error, Service};

/// Happenings of one batch. Beyond this a shared sync costs each hardly less, while what the batch has locked stays
/// locked for longer; and it is far below the messages that a session may have waiting, should all be of one channel.
pub const BATCH_MAX: usize = 128;

/// Something that the platform reports among other things.
#[derive(Clone, Debug)]
pub struct Reported {
    /// The channel that it happened on.
    pub channel: ChannelId,
    /// What happened.
    pub kind: Kind,
    /// With a key it happens once, however often it is reported.
    pub key: Option<IdempotencyKey>,
}

/// What can be reported in bulk.
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
}

/// What became of a happening: `None` when it happened, else why not.
pub type Outcome = Option<Refusal>;

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
    /// The store's: then none of them happened, or, when it did not confirm the commit, perhaps all.
    pub async fn report(&self, batch: Vec<Reported>) -> Result<Vec<Outcome>, Error> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut done = self.run(batch.clone(), Way::StraightThrough).await;
        if done.as_ref().is_err_and(|error| !is_outage(error)) {
            done = self.run(batch.clone(), Way::OneByOne).await;
        }
        match done {
            Err(Error::Store(error)) if error.is_deadlock() => Ok(self.separately(batch).await),
            done => done,
        }
    }

    /// Each in a transaction of its own, which holds nothing while it waits: what the batch waited for, and what waited
    /// for it, comes to its end meanwhile. Dear, but this is rare.
    async fn separately(&self, batch: Vec<Reported>) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(batch.len());
        let mut lost = false;
        for reported in batch {
            outcomes.push(if lost {
                Some(Refusal::Internal)
            } else {
                let done = self.run(vec![reported], Way::StraightThrough).await;
                lost = done.as_ref().is_err_and(is_outage);
                done.err().map(|error| error.refusal())
            });
        }
        outcomes
    }

    async fn run(&self, batch: Vec<Reported>, way: Way) -> Result<Vec<Outcome>, Error> {
        let now = self.now();
        let batch: Vec<_> = batch.into_iter().map(|reported| (reported, self.random())).collect();
        self.write_then_publish(move |tx| {
            Box::pin(async move {
                let (mut outcomes, mut messages) = (Vec::with_capacity(batch.len()), Vec::new());
                for (reported, random) in batch {
                    let told = match way {
                        Way::StraightThrough => Ok(happen(tx, reported, random, now).await?),
                        Way::OneByOne => happen_alone(tx, reported, random, now).await?,
                    };
                    outcomes.push(told.map(|told| messages.extend(told)).err());
                }
                Ok((outcomes, messages))
            })
        })
        .await
    }
}

/// Lets one thing happen, or leaves nothing of it behind.
///
/// # Errors
/// The store's, when the whole batch is lost.
async fn happen_alone(
    tx: &mut Tx,
    reported: Reported,
    random: [u8; 10],
    now: Timestamp,
) -> Result<Result<Vec<Message>, Refusal>, Error> {
    match tx.attempt(move |tx| Box::pin(happen(tx, reported, random, now))).await? {
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

/// Whether nothing else would fare better now.
fn is_outage(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_outage())
}

/// The effect of the single call, inside a transaction.
async fn happen(
    tx: &mut Tx,
    reported: Reported,
    random: [u8; 10],
    now: Timestamp,
) -> Result<Vec<Message>, Error> {
    let Reported { channel, kind, key } = reported;
    let key = key.as_ref();
    let message_id = MessageId::generate(now, random);
    match kind {
        Kind::Chat(message) => return Ok(chats::post(tx, channel, message, message_id, key, now).await?.1),
        Kind::Donation(donation) => {
            return happenings::donate(tx, channel, donation, message_id, key, now).await;
        }
        Kind::Subscription(paid) => return happenings::subscribe_paid(tx, channel, paid, key, now).await,
        Kind::Claim(request) => {
            let claim = request.into_claim(now, random);
            drops::claim(tx, &claim, key, now).await?;
        }
        // The single calls of these may be repeated as they are. Among others, they may not.
        _ if idempotency::claim(tx, key, "", now).await?.is_some() => {}
        Kind::Follow { follower, created } => {
            relations::follow(tx, &channel, &follower, created, now).await?;
        }
        Kind::Unfollow { follower } => relations::unfollow(tx, &channel, &follower).await?,
        Kind::Manager { manager, role } => relations::put_manager(tx, &channel, &manager, role, now).await?,
        Kind::Unmanager { manager } => relations::delete_manager(tx, &channel, &manager).await?,
        Kind::Live(report) => lives::put(tx, &channel, &report.checked()?, now).await?,
        Kind::LiveEnd => lives::end(tx, &channel).await?,
    }
    Ok(Vec::new())
}
