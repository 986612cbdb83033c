//! The unit of work: one write transaction and the effects that follow its commit.

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use bus::Message;
use domain::audit::{Actor, AuditAction, Subject};
use domain::refusal::Resource;
use domain::{ChannelId, Refusal, Timestamp};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use store::{SendAsyncFnOnce, StoreError, Tx};
use tracing::Instrument;

use crate::acting::Acting;
use crate::identity::credential_cache::CommittedChanges;
use crate::realtime::event_batches::{BatchRow, OutboxWrite, OwnBatch};
use crate::realtime::publication::Publication;
use crate::run_to_completion::run_to_completion;
use crate::{Entropy, Error, Purpose, Service};

/// A write transaction with its time, its randomness and its effects. It dereferences to [`Tx`].
pub(crate) struct Work<'t> {
    tx: &'t mut Tx,
    effects: &'t mut Effects,
    entropy: &'t Entropy,
    acting: Option<&'t Acting>,
    now: Timestamp,
}

/// The effects that follow the commit.
#[derive(Default)]
struct Effects {
    /// Published in this order.
    messages: Vec<Message>,
    wakes_senders: bool,
}

impl Deref for Work<'_> {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        self.tx
    }
}

impl DerefMut for Work<'_> {
    fn deref_mut(&mut self) -> &mut Tx {
        self.tx
    }
}

impl Work<'_> {
    /// The time at which the work began.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Random bytes.
    pub fn random<const N: usize>(&self, purpose: Purpose) -> [u8; N] {
        self.entropy.bytes(purpose)
    }

    /// Publishes a message after the commit.
    pub fn publish(&mut self, message: Message) {
        self.effects.messages.push(message);
    }

    /// Wakes the webhook senders of this node after the commit.
    pub fn wake_senders(&mut self) {
        self.effects.wakes_senders = true;
    }

    /// Locks the account of a channel's person for a change by the actor. It is the only way in which an
    /// operator's call changes an account: a test walks the routes and the forms. The account of an operator
    /// with a higher role is refused, because the actor could give itself that role by a new password.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; [`Refusal::RoleMissing`] with the role of the
    /// person.
    pub async fn lock_account_of_lower_rank(&mut self, channel: &ChannelId) -> Result<(), Error> {
        if !self.tx.lock_channel(channel).await? {
            return Err(Refusal::NotFound(Resource::Channel).into());
        }
        let Some(acting) = self.acting else { return Ok(()) };
        match self.tx.operator_role(channel).await? {
            Some(role) if acting.role < Some(role) => Err(Refusal::RoleMissing(role).into()),
            _ => Ok(()),
        }
    }

    /// [`lock_account_of_lower_rank`](Self::lock_account_of_lower_rank) for what people do to others only: to
    /// their own account it would be a way around the password.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] also for the account of the actor.
    pub async fn lock_account_of_another(&mut self, channel: &ChannelId) -> Result<(), Error> {
        if self.acting.is_some_and(|acting| matches!(&acting.actor, Actor::Person(own) if own == channel)) {
            return Err(Refusal::NotFound(Resource::Path).into());
        }
        self.lock_account_of_lower_rank(channel).await
    }

    /// Writes to the audit log that the actor of the service did this. Without an actor nothing is written.
    ///
    /// # Errors
    /// The store's.
    pub async fn audit<'s>(
        &mut self,
        action: AuditAction,
        subject: impl Into<Subject<'s>>,
    ) -> Result<(), StoreError> {
        self.audit_with(action, subject, json!({})).await
    }

    /// [`audit`](Self::audit) with more about the change: a small object without secrets and without names of
    /// people.
    ///
    /// # Errors
    /// The store's.
    pub async fn audit_with<'s>(
        &mut self,
        action: AuditAction,
        subject: impl Into<Subject<'s>>,
        details: Value,
    ) -> Result<(), StoreError> {
        let Some(acting) = self.acting else { return Ok(()) };
        let random = self.random(Purpose::Audit);
        let entry = acting.entry(action, subject.into(), details.to_string(), self.now, random);
        self.tx.insert_audit_entry(&entry).await
    }

    /// Runs a part of the work in a savepoint. An error of the part undoes the part alone, with its effects,
    /// and the work goes on.
    ///
    /// # Errors
    /// The error of the savepoint. The transaction cannot be committed then.
    pub async fn attempt<T>(
        &mut self,
        part: impl AsyncFnOnce(&mut Work<'_>) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Error> {
        let Self { tx, effects, entropy, acting, now } = self;
        let (messages_before, woke_before) = (effects.messages.len(), effects.wakes_senders);
        let outcome = tx
            .attempt(async |tx: &mut Tx| {
                part(&mut Work { tx, effects, entropy, acting: *acting, now: *now }).await
            })
            .await?;
        if outcome.is_err() {
            self.effects.messages.truncate(messages_before);
            self.effects.wakes_senders = woke_before;
        }
        Ok(outcome)
    }
}

/// The closure of a unit of work without its types (type erasure). The compiler would otherwise make a copy
/// of all that follows for each closure.
type UnitOfWork =
    Box<dyn for<'t> FnOnce(&'t mut Work<'t>) -> BoxFuture<'t, Result<ErasedValue, Error>> + Send>;

/// A value whose type only the caller of the write knows.
type ErasedValue = Box<dyn Any + Send>;

fn erase<T, F>(work: F) -> UnitOfWork
where
    F: for<'t> SendAsyncFnOnce<&'t mut Work<'t>, Result<T, Error>> + Send + 'static,
    T: Send + 'static,
{
    Box::new(move |unit: &mut Work<'_>| {
        async move { work(unit).await.map(|value| Box::new(value) as ErasedValue) }.boxed()
    })
}

fn typed<T: 'static>(written: Result<ErasedValue, Error>) -> Result<T, Error> {
    match written?.downcast() {
        Ok(value) => Ok(*value),
        Err(_) => Err(Error::Internal("a write's value has another type")),
    }
}

/// A committed transaction: its value and its effects.
struct Committed {
    value: ErasedValue,
    publication: Option<Publication>,
    wakes_senders: bool,
    recorded: OutboxWrite,
    changes: CommittedChanges,
}

impl Service {
    /// Runs a unit of work. Returns after the commit was synced and the effects have followed. If the caller
    /// stops waiting, for example because its client disconnected, the commit and the effects are still
    /// completed. On PostgreSQL the work is run again after a deadlock or a serialization failure, so
    /// it changes nothing outside of its transaction (`write_retries.rs`).
    ///
    /// On SQLite the messages are published before the sync. A power failure can then undo a published event,
    /// but its caller has no answer yet (`docs/adr/0017-listeners-need-not-wait-for-the-sync.md`). Changes of
    /// credentials are recorded for the other nodes. This node drops the changed credentials from its caches
    /// before it returns.
    pub(crate) fn write<T, F>(&self, work: F) -> impl Future<Output = Result<T, Error>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Work<'t>, Result<T, Error>> + Clone + Send + 'static,
        T: Send + 'static,
    {
        // SQLite has one writer.
        let written = if self.0.store.is_remote() {
            self.write_with_retries(Box::new(move || erase(work.clone())))
        } else {
            self.write_without_retries(erase(work))
        };
        written.map(typed)
    }

    /// Like [`write`](Self::write), but runs the work once.
    pub(crate) fn try_write<T, F>(&self, work: F) -> impl Future<Output = Result<T, Error>> + Send
    where
        F: for<'t> SendAsyncFnOnce<&'t mut Work<'t>, Result<T, Error>> + Send + 'static,
        T: Send + 'static,
    {
        self.write_without_retries(erase(work)).map(typed)
    }

    // The futures of these two are boxed, so that a write is compiled in this crate and not in each crate
    // that awaits one.

    fn write_with_retries(
        &self,
        work: Box<dyn Fn() -> UnitOfWork + Send>,
    ) -> BoxFuture<'static, Result<ErasedValue, Error>> {
        let service = self.clone();
        run_to_completion(async move {
            for tries in 1.. {
                match service.write_once(work()).await {
                    Err(error) => match service.pause_before_retry(&error, tries) {
                        Some(pause) => tokio::time::sleep(pause).await,
                        None => return Err(error),
                    },
                    written => return written,
                }
            }
            Err(Error::Internal("a write was not run"))
        })
        .instrument(tracing::trace_span!(target: "traces", "store write"))
        .boxed()
    }

    fn write_without_retries(&self, work: UnitOfWork) -> BoxFuture<'static, Result<ErasedValue, Error>> {
        let service = self.clone();
        run_to_completion(async move { service.write_once(work).await })
            .instrument(tracing::trace_span!(target: "traces", "store write"))
            .boxed()
    }

    /// The pause before a write is run again, after `tries` runs. `None` if it is not run again.
    pub(crate) fn pause_before_retry(&self, error: &Error, tries: u32) -> Option<Duration> {
        let random = u16::from_le_bytes(self.random(Purpose::Jitter));
        self.0.write_retries.pause(error, tries, random)
    }

    /// Runs a unit of work with its effects, once.
    async fn write_once(&self, work: UnitOfWork) -> Result<ErasedValue, Error> {
        let batch = self.begin_event_batch();
        let row = batch.as_ref().map(OwnBatch::row);
        match self.commit(work, row).await {
            Ok(committed) => self.carry_out(committed, batch).await,
            Err(error) => {
                if let (Some(batch), Error::Store(StoreError::CommitUnknown)) = (batch, &error) {
                    batch.doubt();
                }
                Err(error)
            }
        }
    }

    /// Runs the transaction. On a bus that is not shared the publication begins with the commit. With a `row`
    /// the transaction writes its batch into the event outbox.
    async fn commit(&self, work: UnitOfWork, row: Option<BatchRow>) -> Result<Committed, Error> {
        let (bus, is_shared) = (self.0.bus.clone(), self.0.bus.is_shared());
        let (entropy, acting, now) = (self.0.entropy.clone(), self.1.clone(), self.now());
        let credentials = self.0.credentials.changes.clone();
        let transaction = async move |tx: &mut Tx| {
            let mut effects = Effects::default();
            row.iter().for_each(|row| row.begin(tx));
            let acting = acting.as_deref();
            let mut unit = Work { tx: &mut *tx, effects: &mut effects, entropy: &entropy, acting, now };
            let value = work(&mut unit).await?;
            let Effects { messages, wakes_senders } = effects;
            let recorded = match row {
                Some(row) => row.record(tx, &messages).await?,
                None => OutboxWrite::default(),
            };
            let changes = credentials.when_dropped(tx.record_credential_changes().await?);
            let publication = (!messages.is_empty()).then(|| Publication::new(bus, messages));
            Ok(Committed { value, publication, wakes_senders, recorded, changes })
        };
        let on_commit = move |committed: &mut Committed| {
            committed.changes.apply();
            // No message leaves the node before the sync.
            if let (Some(publication), false) = (&mut committed.publication, is_shared) {
                publication.begin();
            }
        };
        self.0.store.write_with_commit_hook(transaction, on_commit).await
    }

    /// Carries out the effects of a committed transaction.
    async fn carry_out(&self, committed: Committed, batch: Option<OwnBatch>) -> Result<ErasedValue, Error> {
        let Committed { value, publication, wakes_senders, recorded, .. } = committed;
        if wakes_senders {
            self.0.delivery_queue.wake_senders();
        }
        let is_settled = match publication {
            Some(publication) => self.publish(publication).await,
            None => true,
        };
        if let Some(batch) = batch.filter(|_| recorded.has_row) {
            if is_settled { batch.settle() } else { batch.doubt() }
        }
        if let Err(error) = self.await_published(recorded.earlier).await {
            self.log_failure(
                "failed to check whether the events of an earlier request were published",
                &error,
            );
            // This transaction is committed, so the error must not mean that the transaction was undone.
            return Err(StoreError::CommitUnknown.into());
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use domain::NodeId;

    use super::*;

    fn publish(work: &mut Work<'_>, node: &str) {
        work.publish(Message::NodeDeclaredDead { node: NodeId::stored(node.to_owned()) });
    }

    /// The nodes of the published messages.
    fn nodes(effects: &Effects) -> Vec<&str> {
        let nodes = effects.messages.iter().map(|message| match message {
            Message::NodeDeclaredDead { node } => node.as_str(),
            other => panic!("{other:?}"),
        });
        nodes.collect()
    }

    #[tokio::test]
    async fn the_effects_of_a_failed_part_are_undone_with_its_writes() {
        store::testing::both(|store| async move {
            let written: Result<(Effects, u64), Error> = store
                .write(async |tx: &mut Tx| {
                    let mut effects = Effects::default();
                    let (entropy, now) = (Entropy::seeded(1), Timestamp::from_millis(1));
                    let mut work = Work { tx, effects: &mut effects, entropy: &entropy, acting: None, now };
                    publish(&mut work, "before");
                    let failed = work.attempt(async |work: &mut Work<'_>| {
                        work.claim_store("dev").await?;
                        publish(work, "undone");
                        work.wake_senders();
                        Err::<(), _>(Refusal::NotTheStreamer.into())
                    });
                    assert_eq!(failed.await?, Err(Refusal::NotTheStreamer.into()));
                    assert_eq!(work.store_made_by().await?, None);
                    let done = work.attempt(async |work: &mut Work<'_>| {
                        publish(work, "kept");
                        Ok(7)
                    });
                    let done = done.await?.expect("the part succeeds");
                    Ok((effects, done))
                })
                .await;
            let (effects, done) = written.expect("the transaction is committed");
            assert_eq!((nodes(&effects), done), (vec!["before", "kept"], 7));
            assert!(!effects.wakes_senders);
        })
        .await;
    }
}
