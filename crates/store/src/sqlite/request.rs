//! A request on its way to a thread and its answer on the way back.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rusqlite::InterruptHandle;
use tokio::sync::oneshot;

use crate::engine::{Tx, Work, run};
use crate::{BoxFuture, StoreError};

/// What a caller hears first: what its work gave, or why it counts for nothing.
type Heard<T, E> = Result<(T, Durable), E>;

/// Whether what a caller has heard outlives a crash of the machine.
pub(super) enum Durable {
    Yes,
    /// The sync is under way, and tells.
    Soon(oneshot::Receiver<Result<(), StoreError>>),
}

type Caller<T, E> = oneshot::Sender<Heard<T, E>>;

/// Where the caller waits.
pub(super) type Answer<T, E> = oneshot::Receiver<Heard<T, E>>;

/// When a caller is to hear first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum When {
    /// When what it wrote is committed: others can read it.
    Committed,
    /// When it outlives a crash of the machine.
    Durable,
}

/// How far a request has come.
enum Phase {
    Waiting,
    /// With the handle that stops it, for a read.
    Running(Option<Arc<InterruptHandle>>),
    Done,
    Abandoned,
}

/// The caller's and the thread's shared view of how far the request has come, so that "nothing was done" is never
/// said of a request that then runs.
#[derive(Clone)]
pub(super) struct Ticket(Arc<Mutex<Phase>>);

impl Ticket {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the request for a thread; false if the caller has given it up.
    fn start(&self, interrupt: Option<Arc<InterruptHandle>>) -> bool {
        let mut phase = self.phase();
        let waiting = matches!(*phase, Phase::Waiting);
        if waiting {
            *phase = Phase::Running(interrupt);
        }
        waiting
    }

    fn finish(&self) {
        *self.phase() = Phase::Done;
    }

    /// Gives the request up: true if it will never run. A read that runs is stopped, under the lock, so that the
    /// thread cannot meanwhile have gone on to somebody else's.
    pub fn abandon(&self) -> bool {
        let mut phase = self.phase();
        match &*phase {
            Phase::Waiting => {
                *phase = Phase::Abandoned;
                true
            }
            Phase::Running(Some(interrupt)) => {
                interrupt.interrupt();
                false
            }
            Phase::Running(None) | Phase::Done => false,
            Phase::Abandoned => true,
        }
    }
}

/// A request without its types, for the queue.
pub(super) trait Request: Send {
    /// Claims the request; a thread must not run one that this refuses.
    fn start(&self, interrupt: Option<Arc<InterruptHandle>>) -> bool;
    /// Runs it.
    fn run(self: Box<Self>, tx: &mut Tx) -> Settled;
    /// Answers it without running it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A request that has run and whose caller still waits to hear whether it counts.
pub(super) struct Settled {
    /// Whether its writes are to stay.
    pub keep: bool,
    telling: Box<dyn Audience>,
}

impl Settled {
    /// Its transaction is committed, and not synced yet.
    pub fn committed(&mut self) {
        self.telling.committed();
    }

    /// Answers the caller: with what its closure gave if the transaction ended well, otherwise with the error. Even a
    /// refusal by the closure may rest on rows that a failed commit took back.
    pub fn answer(self, transaction: Result<(), StoreError>) {
        self.telling.answer(transaction);
    }
}

/// A caller without its types.
trait Audience {
    fn committed(&mut self);
    fn answer(self: Box<Self>, transaction: Result<(), StoreError>);
}

/// What one caller hears, and how far it has been told. One that has gone is no concern: its work is done whole or not at
/// all.
struct Telling<T, E> {
    ticket: Ticket,
    when: When,
    /// What is still to be heard first.
    first: Option<(Result<T, E>, Caller<T, E>)>,
    /// Whoever has heard of the commit hears of the sync here.
    synced: Option<oneshot::Sender<Result<(), StoreError>>>,
}

impl<T, E: From<StoreError>> Audience for Telling<T, E> {
    fn committed(&mut self) {
        // A refusal is all of the answer, and may rest on rows of others that are not durable yet.
        if self.when == When::Committed
            && let Some((Ok(value), caller)) = self.first.take_if(|(outcome, _)| outcome.is_ok())
        {
            let (synced, soon) = oneshot::channel();
            self.synced = Some(synced);
            self.ticket.finish();
            let _ = caller.send(Ok((value, Durable::Soon(soon))));
        }
    }

    fn answer(self: Box<Self>, transaction: Result<(), StoreError>) {
        if let Some(synced) = self.synced {
            let _ = synced.send(transaction);
        } else if let Some((outcome, caller)) = self.first {
            self.ticket.finish();
            let outcome = transaction.map_err(E::from).and(outcome);
            let _ = caller.send(outcome.map(|value| (value, Durable::Yes)));
        }
    }
}

struct Pending<F, T, E> {
    work: F,
    ticket: Ticket,
    when: When,
    caller: Caller<T, E>,
}

pub(super) fn new<T, E, F>(work: F, when: When) -> (Box<dyn Request>, Ticket, Answer<T, E>)
where
    F: Work<T, E>,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    let ticket = Ticket(Arc::new(Mutex::new(Phase::Waiting)));
    let (caller, answer) = oneshot::channel();
    (Box::new(Pending { work, ticket: ticket.clone(), when, caller }), ticket, answer)
}

impl<F, T, E> Request for Pending<F, T, E>
where
    F: Work<T, E>,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn start(&self, interrupt: Option<Arc<InterruptHandle>>) -> bool {
        self.ticket.start(interrupt)
    }

    fn run(self: Box<Self>, tx: &mut Tx) -> Settled {
        let Self { work, ticket, when, caller } = *self;
        let outcome = poll_once(Box::pin(run(work, tx)));
        let keep = outcome.is_ok();
        let telling = Telling { ticket, when, first: Some((outcome, caller)), synced: None };
        Settled { keep, telling: Box::new(telling) }
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        self.ticket.finish();
        let _ = self.caller.send(Err(error.into()));
    }
}

/// On SQLite a statement's future is ready at once, so a closure that awaits only its `Tx` is done after one poll.
fn poll_once<T, E: From<StoreError>>(future: BoxFuture<'_, Result<T, E>>) -> Result<T, E> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(StoreError::Misuse("the closure awaited something other than its Tx").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Link;
    use crate::sqlite::Connection;

    const UNKNOWN: StoreError = StoreError::CommitUnknown;

    /// A request that has run, and where its caller waits.
    fn run_one(when: When, outcome: Result<u8, StoreError>) -> (Settled, Answer<u8, StoreError>) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open_for_writing(&folder.path().join("a.db")).unwrap();
        let (request, _, answer) = new(move |_| Box::pin(async move { outcome }), when);
        assert!(request.start(None));
        (request.run(&mut Tx::new(Link::Sqlite(connection))), answer)
    }

    #[test]
    fn who_waits_for_the_commit_hears_of_the_sync_too() {
        let (mut settled, mut answer) = run_one(When::Committed, Ok(1));
        assert!(answer.try_recv().is_err(), "nothing is committed yet");
        settled.committed();
        let Ok(Ok((1, Durable::Soon(mut synced)))) = answer.try_recv() else { panic!("the commit is told") };
        assert!(synced.try_recv().is_err(), "nothing is synced yet");
        settled.answer(Err(UNKNOWN));
        assert_eq!(synced.try_recv(), Ok(Err(UNKNOWN)));
    }

    #[test]
    fn answers_and_refusals_wait_for_the_sync() {
        for (when, outcome) in [(When::Durable, Ok(1)), (When::Committed, Err(StoreError::NoRow))] {
            let (mut settled, mut answer) = run_one(when, outcome);
            settled.committed();
            assert!(answer.try_recv().is_err(), "nothing is synced yet");
            settled.answer(Err(UNKNOWN));
            assert!(matches!(answer.try_recv(), Ok(Err(UNKNOWN))));
        }
    }
}
