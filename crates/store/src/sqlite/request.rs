//! A request on its way to a thread, and its answer on the way back.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rusqlite::InterruptHandle;
use tokio::sync::oneshot;

use crate::work::{Closure, CommitHook, Outcome, run, run_hook};
use crate::{StoreError, Tx};

/// Receives the value of the closure, or the error.
pub(super) type AnswerReceiver = oneshot::Receiver<Outcome>;

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

/// A request in the queue. The closure has not run.
pub(super) struct Request {
    work: Closure,
    ticket: Ticket,
    on_commit: Option<CommitHook>,
    caller: oneshot::Sender<Outcome>,
}

impl Request {
    /// A request, its progress, and where its answer arrives.
    pub fn new(work: Closure, on_commit: Option<CommitHook>) -> (Self, Ticket, AnswerReceiver) {
        let ticket = Ticket(Arc::new(Mutex::new(Phase::Waiting)));
        let (caller, answer) = oneshot::channel();
        (Self { work, ticket: ticket.clone(), on_commit, caller }, ticket, answer)
    }

    /// Starts the request: `false` if its caller has abandoned it. A thread must not run it then.
    pub fn start(&self, interrupt: Option<Arc<InterruptHandle>>) -> bool {
        self.ticket.start(interrupt)
    }

    /// Runs the closure.
    pub fn run(self, tx: &mut Tx) -> Executed {
        let Self { work, ticket, on_commit, caller } = self;
        let outcome = poll_once(run(work, tx));
        Executed { ticket, outcome, on_commit, caller }
    }

    /// Answers the caller without running the closure.
    pub fn refuse(self, error: StoreError) {
        self.ticket.finish();
        let _ = self.caller.send(Err(error.into()));
    }
}

/// A request whose closure has run, and whose caller is not answered yet. The caller may have gone.
pub(super) struct Executed {
    ticket: Ticket,
    outcome: Outcome,
    on_commit: Option<CommitHook>,
    caller: oneshot::Sender<Outcome>,
}

impl Executed {
    /// Whether the closure succeeded, so that its writes are committed.
    pub fn has_succeeded(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Calls the commit hook, once, if the closure succeeded.
    pub fn committed(&mut self) {
        if let (Ok(value), Some(on_commit)) = (&mut self.outcome, self.on_commit.take()) {
            run_hook(on_commit, value);
        }
    }

    /// Answers the caller with the closure's result if the transaction was committed, otherwise with the
    /// error of the transaction. Even a refusal by the closure may depend on rows of a commit that failed.
    pub fn answer(self, transaction: Result<(), StoreError>) {
        self.ticket.finish();
        let _ = self.caller.send(transaction.map_err(Into::into).and(self.outcome));
    }
}

/// Polls a closure's future once. On SQLite the future of a statement is ready at once, so one poll completes
/// a closure that awaits only its `Tx`.
fn poll_once(future: impl Future<Output = Outcome>) -> Outcome {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(StoreError::Misuse("the closure awaited something other than its Tx").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection::SqliteConnection;
    use crate::tx::Link;
    use crate::work::{erase, erase_hook, typed};

    const UNKNOWN: StoreError = StoreError::CommitUnknown;

    /// Runs a closure with this result.
    fn execute(
        result: Result<u8, StoreError>,
        on_commit: impl FnOnce(&mut u8) + Send + 'static,
    ) -> (Executed, AnswerReceiver) {
        let folder = tempfile::tempdir().unwrap();
        let connection = SqliteConnection::open_for_writing(&folder.path().join("a.db")).unwrap();
        let (request, _, answer) =
            Request::new(erase(async move |_: &mut Tx| result), Some(erase_hook(on_commit)));
        assert!(request.start(None));
        (request.run(&mut Tx::new(Link::Sqlite(connection))), answer)
    }

    /// The answer that has arrived.
    fn answer_of(answer: &mut AnswerReceiver) -> Result<u8, StoreError> {
        typed(answer.try_recv().expect("an answer has arrived"))
    }

    #[test]
    fn the_commit_hook_is_called_once_and_before_the_answer() {
        let (mut executed, mut answer) = execute(Ok(1), |value| *value += 1);
        executed.committed();
        executed.committed();
        assert!(answer.try_recv().is_err(), "nothing is synced yet");
        executed.answer(Ok(()));
        assert_eq!(answer_of(&mut answer), Ok(2));
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
            assert_eq!(answer_of(&mut answer), Err(UNKNOWN));
        }
    }
}
