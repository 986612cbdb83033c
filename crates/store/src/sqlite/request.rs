//! A request on its way to a thread and its answer on the way back.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rusqlite::InterruptHandle;
use tokio::sync::oneshot;

use crate::engine::{Tx, Work, run};
use crate::{BoxFuture, StoreError};

type Caller<T, E> = oneshot::Sender<Result<T, E>>;

/// Where the caller waits for what its work gave, or why it counts for nothing.
pub(super) type Answer<T, E> = oneshot::Receiver<Result<T, E>>;

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

/// What one caller is to hear. One that has gone is no concern: its work is done whole or not at all.
struct Telling<T, E, C> {
    ticket: Ticket,
    outcome: Result<T, E>,
    on_commit: Option<C>,
    caller: Caller<T, E>,
}

impl<T, E: From<StoreError>, C: FnOnce(&mut T)> Audience for Telling<T, E, C> {
    fn committed(&mut self) {
        if let (Ok(value), Some(on_commit)) = (&mut self.outcome, self.on_commit.take()) {
            on_commit(value);
        }
    }

    fn answer(self: Box<Self>, transaction: Result<(), StoreError>) {
        self.ticket.finish();
        let _ = self.caller.send(transaction.map_err(E::from).and(self.outcome));
    }
}

struct Pending<F, T, E, C> {
    work: F,
    ticket: Ticket,
    on_commit: C,
    caller: Caller<T, E>,
}

pub(super) fn new<T, E, F, C>(work: F, on_commit: C) -> (Box<dyn Request>, Ticket, Answer<T, E>)
where
    F: Work<T, E>,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    C: FnOnce(&mut T) + Send + 'static,
{
    let ticket = Ticket(Arc::new(Mutex::new(Phase::Waiting)));
    let (caller, answer) = oneshot::channel();
    (Box::new(Pending { work, ticket: ticket.clone(), on_commit, caller }), ticket, answer)
}

impl<F, T, E, C> Request for Pending<F, T, E, C>
where
    F: Work<T, E>,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    C: FnOnce(&mut T) + Send + 'static,
{
    fn start(&self, interrupt: Option<Arc<InterruptHandle>>) -> bool {
        self.ticket.start(interrupt)
    }

    fn run(self: Box<Self>, tx: &mut Tx) -> Settled {
        let Self { work, ticket, on_commit, caller } = *self;
        let outcome = poll_once(Box::pin(run(work, tx)));
        let keep = outcome.is_ok();
        let telling = Telling { ticket, outcome, on_commit: Some(on_commit), caller };
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
    fn run_one(
        outcome: Result<u8, StoreError>,
        on_commit: impl FnOnce(&mut u8) + Send + 'static,
    ) -> (Settled, Answer<u8, StoreError>) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open_for_writing(&folder.path().join("a.db")).unwrap();
        let (request, _, answer) = new(move |_| Box::pin(async move { outcome }), on_commit);
        assert!(request.start(None));
        (request.run(&mut Tx::new(Link::Sqlite(connection))), answer)
    }

    #[test]
    fn what_is_done_after_the_commit_is_done_once_and_before_the_answer() {
        let (mut settled, mut answer) = run_one(Ok(1), |value| *value += 1);
        settled.committed();
        settled.committed();
        assert!(answer.try_recv().is_err(), "nothing is synced yet");
        settled.answer(Ok(()));
        assert_eq!(answer.try_recv(), Ok(Ok(2)));
    }

    #[test]
    fn answers_and_refusals_wait_for_the_sync() {
        for outcome in [Ok(1), Err(StoreError::NoRow)] {
            let is_refusal = outcome.is_err();
            let (mut settled, mut answer) =
                run_one(outcome, move |_| assert!(!is_refusal, "there is nothing to tell"));
            settled.committed();
            assert!(answer.try_recv().is_err(), "nothing is synced yet");
            settled.answer(Err(UNKNOWN));
            assert_eq!(answer.try_recv(), Ok(Err(UNKNOWN)));
        }
    }
}
