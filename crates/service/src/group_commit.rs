//! Group commit: on PostgreSQL concurrent requests of one kind share a transaction
//! (`docs/adr/0030-requests-of-a-kind-share-a-commit.md`). On SQLite the writer of the store does this for
//! all writes.
//!
//! A request waits until a batch has room. A batch takes all requests that wait, so a single caller does not
//! wait, and batches grow with the load. Each request has its own outcome. What a batch cannot decide is
//! carried out alone, by the transaction that SQLite runs.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::Refusal;
use futures_util::{StreamExt, stream};
use store::StoreError;
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::commit_queue::{CommitQueue, Outcome, Waiting};
use crate::service::Inner;
use crate::work::Work;
use crate::{Error, Service};

/// A batch that runs for longer is slow. It stops counting, so that it does not hold the requests behind it.
const SLOW_AFTER: Duration = Duration::from_millis(50);
/// Maximum number of locks that the requests of a batch wait for at the same time.
const LOCKS_AWAITED_MAX: usize = 4;

/// Why requests failed that waited behind a batch of unknown outcome.
const UNCONFIRMED: &str = "it did not confirm the commit of earlier requests";

/// A kind of request whose batches share a transaction.
pub(crate) trait GroupCommit: Sized + Send + Sync + 'static {
    /// What a request that was carried out gives.
    type Done: Send + 'static;

    /// The queue of this kind.
    fn queue(inner: &Inner) -> &CommitQueue<Self, Self::Done>;

    /// The number of rows that the request writes.
    fn rows(&self) -> usize {
        1
    }

    /// What the request locks, if another transaction may hold it for long.
    fn lock(&self) -> &str {
        ""
    }

    /// Decides about requests before their transaction, in their order.
    fn judge(
        _service: &Service,
        requests: &mut [Self],
    ) -> impl Future<Output = Result<Vec<Decision>, StoreError>> + Send {
        let all = requests.iter().map(|_| Decision::Ready).collect();
        std::future::ready(Ok(all))
    }

    /// Carries out requests inside a transaction. Gives their outcomes in their order. An error undoes all.
    fn write(
        service: &Service,
        work: &mut Work<'_>,
        requests: &[Arc<Self>],
        locking: Locking,
    ) -> impl Future<Output = Result<Vec<Written<Self::Done>>, Error>> + Send;
}

/// What is decided about a request before its transaction.
pub(crate) enum Decision {
    Ready,
    /// A transaction of its own has to decide.
    Alone,
    Refused(Refusal),
}

/// What a transaction does about locks that others hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locking {
    /// It leaves out the requests.
    Skip,
    /// It waits. All requests have the same [lock](GroupCommit::lock).
    Wait,
}

/// What a transaction did about a request.
pub(crate) enum Written<D> {
    Done(D),
    /// Nothing. A transaction of its own has to decide.
    Alone,
    /// Nothing, because another transaction holds the lock.
    Locked,
}

/// A request that is ready for its transaction.
struct Ready<R, D> {
    request: Arc<R>,
    outcome: oneshot::Sender<Outcome<D>>,
}

type ReadyOf<R> = Ready<R, <R as GroupCommit>::Done>;
type WaitingOf<R> = Waiting<R, <R as GroupCommit>::Done>;

impl<R, D> Ready<R, D> {
    fn new((request, outcome): (R, oneshot::Sender<Outcome<D>>)) -> Self {
        Self { request: Arc::new(request), outcome }
    }
}

/// Ends the requests that are decided, and gives the others.
fn decided<R, D>(requests: Vec<Ready<R, D>>, decisions: Vec<Decision>) -> Vec<Ready<R, D>> {
    let mut ready = Vec::with_capacity(requests.len());
    for (request, decision) in requests.into_iter().zip(decisions) {
        match decision {
            Decision::Ready => ready.push(request),
            Decision::Alone => end(request.outcome, Outcome::Alone),
            Decision::Refused(refusal) => end(request.outcome, Outcome::Ended(Err(refusal.into()))),
        }
    }
    ready
}

/// Ends a request. A caller that is gone needs no outcome.
fn end<D>(to: oneshot::Sender<Outcome<D>>, outcome: Outcome<D>) {
    let _ = to.send(outcome);
}

impl Service {
    /// Carries out a request together with others. Returns after the commit and the publication. `None` if a
    /// transaction of its own has to carry it out.
    pub(crate) async fn share_commit<R: GroupCommit>(&self, request: R) -> Option<Result<R::Done, Error>> {
        if !self.0.store.is_remote() {
            return None;
        }
        let (outcome, ended) = oneshot::channel();
        let rows = request.rows();
        if let Err(busy) = R::queue(&self.0).push(Waiting { request, rows, outcome }) {
            return Some(Err(busy.into()));
        }
        self.begin_batches::<R>();
        // The span of a write, as in `Service::write`: the request waits for its batch.
        let ended = ended.instrument(tracing::trace_span!(target: "traces", "store write"));
        match ended.await {
            Ok(Outcome::Ended(result)) => Some(result),
            Ok(Outcome::Alone) => None,
            // The sender is dropped only by a panic, which rolled back, or came after the commit.
            Err(_) => Some(Err(StoreError::CommitUnknown.into())),
        }
    }

    fn begin_batches<R: GroupCommit>(&self) {
        while let Some(batch) = R::queue(&self.0).begin_batch() {
            let service = Self(self.0.clone(), None, None);
            tokio::spawn(async move { service.run_batch::<R>(batch).await });
        }
    }

    async fn run_batch<R: GroupCommit>(&self, batch: Vec<WaitingOf<R>>) {
        let mut place = R::queue(&self.0).place();
        let mut running = pin!(self.carry_out_batch(batch));
        tokio::select! {
            biased;
            () = &mut running => {}
            () = self.clock().sleep(SLOW_AFTER) => {
                place.become_slow();
                self.begin_batches::<R>();
                running.await;
            }
        }
        drop(place);
        self.begin_batches::<R>();
    }

    async fn carry_out_batch<R: GroupCommit>(&self, batch: Vec<WaitingOf<R>>) {
        let count = batch.len();
        let (mut requests, mut outcomes) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for Waiting { request, outcome, .. } in batch {
            requests.push(request);
            outcomes.push(outcome);
        }
        let judged = R::judge(self, &mut requests).await;
        let mut ready: Vec<_> = requests.into_iter().zip(outcomes).map(Ready::new).collect();
        match judged {
            Ok(decisions) => ready = decided(ready, decisions),
            Err(error) => return self.end_all::<R>(ready, &error),
        }
        let mut by_lock = BTreeMap::<String, Vec<_>>::new();
        for locked in self.write_ready(ready, Locking::Skip).await {
            by_lock.entry(locked.request.lock().to_owned()).or_default().push(locked);
        }
        let awaited = stream::iter(by_lock.into_values());
        awaited.for_each_concurrent(LOCKS_AWAITED_MAX, |ready| self.await_lock(ready)).await;
    }

    /// Carries out requests with one lock, when it is free.
    async fn await_lock<R: GroupCommit>(&self, ready: Vec<ReadyOf<R>>) {
        for locked in self.write_ready(ready, Locking::Wait).await {
            end(locked.outcome, Outcome::Alone);
        }
    }

    /// Carries out requests in one transaction. If one of them fails, the transaction is run again in halves,
    /// so that one request harms no other. Gives those whose lock another transaction holds.
    async fn write_ready<R: GroupCommit>(&self, ready: Vec<ReadyOf<R>>, locking: Locking) -> Vec<ReadyOf<R>> {
        let (mut parts, mut locked) = (Vec::from([ready]), Vec::new());
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            match self.write_part(&part, locking).await {
                Ok(written) => {
                    for (ready, written) in part.into_iter().zip(written) {
                        match written {
                            Written::Done(done) => end(ready.outcome, Outcome::Ended(Ok(done))),
                            Written::Alone => end(ready.outcome, Outcome::Alone),
                            Written::Locked => locked.push(ready),
                        }
                    }
                }
                Err(Error::Store(error)) if error.is_outage() => {
                    self.end_all::<R>(part, &error);
                    let unwritten = parts.into_iter().flatten().chain(locked);
                    self.end_all::<R>(unwritten, &before_writing(error));
                    return Vec::new();
                }
                Err(_) if part.len() > 1 => {
                    let second = part.split_off(part.len() / 2);
                    parts.extend([second, part]);
                }
                Err(_) => part.into_iter().for_each(|ready| end(ready.outcome, Outcome::Alone)),
            }
        }
        locked
    }

    /// Runs the transaction of a part of a batch.
    async fn write_part<R: GroupCommit>(
        &self,
        part: &[ReadyOf<R>],
        locking: Locking,
    ) -> Result<Vec<Written<R::Done>>, Error> {
        let requests: Arc<[Arc<R>]> = part.iter().map(|ready| ready.request.clone()).collect();
        let service = self.clone();
        self.write(async move |work: &mut Work<'_>| R::write(&service, work, &requests, locking).await).await
    }

    /// Ends requests with the failure of the store, and those that wait, so that they do not wait for the
    /// same failure.
    fn end_all<R: GroupCommit>(&self, ready: impl IntoIterator<Item = ReadyOf<R>>, error: &StoreError) {
        let failed = |error: &StoreError| Outcome::Ended(Err(error.clone().into()));
        ready.into_iter().for_each(|ready| end(ready.outcome, failed(error)));
        if !error.is_contention() {
            let unwritten = before_writing(error.clone());
            let waiting = R::queue(&self.0).take_waiting();
            waiting.into_iter().for_each(|waiting| end(waiting.outcome, failed(&unwritten)));
        }
    }
}

/// The failure of requests behind a transaction that failed. Nothing was written for them.
fn before_writing(error: StoreError) -> StoreError {
    match error {
        StoreError::CommitUnknown => StoreError::Unavailable(UNCONFIRMED.to_owned()),
        error => error,
    }
}
