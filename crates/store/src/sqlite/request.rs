//! A request on its way to a thread, and its answer on the way back.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rusqlite::InterruptHandle;
use tokio::sync::oneshot;

use crate::work::{Closure, run};
use crate::{StoreError, Tx};

type AnswerSender<T, E> = oneshot::Sender<Result<T, E>>;

/// Receives the value of the closure, or the error.
pub(super) type AnswerReceiver<T, E> = oneshot::Receiver<Result<T, E>>;

/// The progress of a request.
enum Phase {
    Waiting,
    /// A read has the handle that interrupts it.
    Running(Option<Arc<InterruptHandle>>),
    Done,
    Abandoned,
}

/// The progress of a request, shared by the caller and the thread. A request never runs after its caller has
/// got the answer that nothing happened.
#[derive(Clone)]
pub(super) struct Ticket(Arc<Mutex<Phase>>);

impl Ticket {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the request: `false` if the caller has abandoned it.
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

    /// Abandons the request: `true` if it will never run. Interrupts a read that runs, under the lock: the
    /// thread cannot start another request meanwhile.
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

/// A request in the queue, without its types.
pub(super) trait Request: Send {
    /// Starts the request: `false` if its caller has abandoned it. A thread must not run it then.
    fn start(&self, interrupt: Option<Arc<InterruptHandle>>) -> bool;
    /// Runs the closure.
    fn run(self: Box<Self>, tx: &mut Tx) -> Executed;
    /// Answers the caller without running the closure.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A request whose closure has run, and whose caller is not answered yet.
pub(super) struct Executed {
    /// Whether the closure succeeded, so that its writes are committed.
    pub succeeded: bool,
    responder: Box<dyn Respond>,
}

impl Executed {
    /// Calls the commit hook, once, if the closure succeeded.
    pub fn committed(&mut self) {
        self.responder.committed();
    }

    /// Answers the caller with the closure's result if the transaction was committed, otherwise with the
    /// error of the transaction. Even a refusal by the closure may depend on rows of a commit that failed.
    pub fn answer(self, transaction: Result<(), StoreError>) {
        self.responder.answer(transaction);
    }
}

/// A [`Responder`] without its types.
trait Respond {
    fn committed(&mut self);
    fn answer(self: Box<Self>, transaction: Result<(), StoreError>);
}

/// The result of a closure, and its caller. The caller may have gone.
struct Responder<T, E, C> {
    ticket: Ticket,
    result: Result<T, E>,
    on_commit: Option<C>,
    caller: AnswerSender<T, E>,
}

impl<T, E: From<StoreError>, C: FnOnce(&mut T)> Respond for Responder<T, E, C> {
    fn committed(&mut self) {
        if let (Ok(value), Some(on_commit)) = (&mut self.result, self.on_commit.take()) {
            on_commit(value);
        }
    }

    fn answer(self: Box<Self>, transaction: Result<(), StoreError>) {
        self.ticket.finish();
        let _ = self.caller.send(transaction.map_err(E::from).and(self.result));
    }
}

/// A request whose closure has not run.
struct Pending<F, T, E, C> {
    work: F,
    ticket: Ticket,
    on_commit: C,
    caller: AnswerSender<T, E>,
}

/// A request, its progress, and where its answer arrives.
pub(super) fn new<T, E, F, C>(work: F, on_commit: C) -> (Box<dyn Request>, Ticket, AnswerReceiver<T, E>)
where
    F: Closure<T, E>,
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
    F: Closure<T, E>,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    C: FnOnce(&mut T) + Send + 'static,
{
    fn start(&self, interrupt: Option<Arc<InterruptHandle>>) -> bool {
        self.ticket.start(interrupt)
    }

    fn run(self: Box<Self>, tx: &mut Tx) -> Executed {
        let Self { work, ticket, on_commit, caller } = *self;
        let result = poll_once(run(work, tx));
        let succeeded = result.is_ok();
        let responder = Responder { ticket, result, on_commit: Some(on_commit), caller };
        Executed { succeeded, responder: Box::new(responder) }
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        self.ticket.finish();
        let _ = self.caller.send(Err(error.into()));
    }
}

/// Polls a closure's future once. On SQLite the future of a statement is ready at once, so one poll completes
/// a closure that awaits only its `Tx`.
fn poll_once<T, E: From<StoreError>>(future: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(StoreError::Misuse("the closure awaited something other than its Tx").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::SqliteConnection;
    use crate::tx::Link;

    const UNKNOWN: StoreError = StoreError::CommitUnknown;

    /// Runs a closure with this result.
    fn execute(
        result: Result<u8, StoreError>,
        on_commit: impl FnOnce(&mut u8) + Send + 'static,
    ) -> (Executed, AnswerReceiver<u8, StoreError>) {
        let folder = tempfile::tempdir().unwrap();
        let connection = SqliteConnection::open_for_writing(&folder.path().join("a.db")).unwrap();
        let (request, _, answer) = new(async move |_: &mut Tx| result, on_commit);
        assert!(request.start(None));
        (request.run(&mut Tx::new(Link::Sqlite(connection))), answer)
    }

    #[test]
    fn the_commit_hook_is_called_once_and_before_the_answer() {
        let (mut executed, mut answer) = execute(Ok(1), |value| *value += 1);
        executed.committed();
        executed.committed();
        assert!(answer.try_recv().is_err(), "nothing is synced yet");
        executed.answer(Ok(()));
        assert_eq!(answer.try_recv(), Ok(Ok(2)));
    }

    #[test]
    fn answers_and_refusals_wait_for_the_sync() {
        for result in [Ok(1), Err(StoreError::NoRow)] {
            let is_refusal = result.is_err();
            let (mut executed, mut answer) =
                execute(result, move |_| assert!(!is_refusal, "nothing was committed"));
            executed.committed();
            assert!(answer.try_recv().is_err(), "nothing is synced yet");
            executed.answer(Err(UNKNOWN));
            assert_eq!(answer.try_recv(), Ok(Err(UNKNOWN)));
        }
    }
}
