//! The requests of one kind that wait for a batch of this node, and the number of its batches
//! (`group_commit.rs`).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::StoreError;
use tokio::sync::oneshot;

use crate::Error;

/// Maximum number of rows that the requests of a batch write. A larger request is a batch of its own.
const BATCH_ROWS_MAX: usize = 256;
/// Number of batches that run at the same time, without slow ones. While one is synced, the next one gathers.
const BATCHES: usize = 2;
/// Maximum number of batches, slow ones included. The store has twice as many connections.
const BATCHES_MAX: usize = 8;
/// Maximum number of requests that wait.
const WAITING_MAX: usize = 4_096;

/// The outcome of a request.
pub(crate) enum Outcome<D> {
    /// The request was carried out, or it was refused.
    Ended(Result<D, Error>),
    /// A transaction of its own has to decide about the request. Nothing was written.
    Alone,
}

/// A request that waits for its outcome.
pub(crate) struct Waiting<R, D> {
    pub request: R,
    /// The number of rows that it writes.
    pub rows: usize,
    pub outcome: oneshot::Sender<Outcome<D>>,
}

/// The requests of one kind that wait.
pub(crate) struct CommitQueue<R, D>(Mutex<Queue<R, D>>);

struct Queue<R, D> {
    waiting: VecDeque<Waiting<R, D>>,
    /// Batches that are not slow.
    running: usize,
    slow: usize,
}

impl<R, D> Default for CommitQueue<R, D> {
    fn default() -> Self {
        Self(Mutex::new(Queue { waiting: VecDeque::new(), running: 0, slow: 0 }))
    }
}

impl<R, D> CommitQueue<R, D> {
    fn queue(&self) -> MutexGuard<'_, Queue<R, D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, waiting: Waiting<R, D>) -> Result<(), StoreError> {
        let mut queue = self.queue();
        if queue.waiting.len() >= WAITING_MAX {
            return Err(StoreError::Busy("too many requests wait for a commit"));
        }
        queue.waiting.push_back(waiting);
        Ok(())
    }

    /// Begins a batch, if requests wait and a batch may run.
    pub fn begin_batch(&self) -> Option<Vec<Waiting<R, D>>> {
        let mut queue = self.queue();
        let may_run = queue.running < BATCHES && queue.running + queue.slow < BATCHES_MAX;
        if !may_run || queue.waiting.is_empty() {
            return None;
        }
        queue.running += 1;
        let mut rows = 0;
        let fits = |waiting: &&Waiting<R, D>| {
            rows += waiting.rows;
            rows <= BATCH_ROWS_MAX
        };
        let count = queue.waiting.iter().take_while(fits).count().max(1);
        Some(queue.waiting.drain(..count).collect())
    }

    /// The place of a batch that begins.
    pub fn place(&self) -> BatchPlace<'_, R, D> {
        BatchPlace { queue: self, is_slow: false }
    }

    /// Takes all requests that wait.
    pub fn take_waiting(&self) -> Vec<Waiting<R, D>> {
        self.queue().waiting.drain(..).collect()
    }
}

/// The part of a batch in the number of batches, until it is dropped.
pub(crate) struct BatchPlace<'a, R, D> {
    queue: &'a CommitQueue<R, D>,
    is_slow: bool,
}

impl<R, D> BatchPlace<'_, R, D> {
    pub fn become_slow(&mut self) {
        let mut queue = self.queue.queue();
        queue.running -= 1;
        queue.slow += 1;
        self.is_slow = true;
    }
}

impl<R, D> Drop for BatchPlace<'_, R, D> {
    fn drop(&mut self) {
        let mut queue = self.queue.queue();
        let count = if self.is_slow { &mut queue.slow } else { &mut queue.running };
        *count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &CommitQueue<usize, ()>, request: usize, rows: usize) -> Result<(), StoreError> {
        queue.push(Waiting { request, rows, outcome: oneshot::channel().0 })
    }

    fn batch(queue: &CommitQueue<usize, ()>) -> Option<Vec<usize>> {
        Some(queue.begin_batch()?.into_iter().map(|waiting| waiting.request).collect())
    }

    #[test]
    fn a_batch_takes_what_waits_up_to_its_rows_and_two_batches_run() {
        let queue = CommitQueue::default();
        for (request, rows) in [(1, 100), (2, 156), (3, 1), (4, 1_000), (5, 1)] {
            push(&queue, request, rows).unwrap();
        }
        let (mut first, second) = (queue.place(), queue.place());
        assert_eq!((batch(&queue), batch(&queue)), (Some(vec![1, 2]), Some(vec![3])));
        assert_eq!(batch(&queue), None);
        // A slow batch does not count.
        first.become_slow();
        assert_eq!(batch(&queue), Some(vec![4]));
        assert_eq!(batch(&queue), None);
        drop(second);
        assert_eq!(batch(&queue), Some(vec![5]));
    }

    #[test]
    fn requests_that_wait_are_bounded() {
        let queue = CommitQueue::default();
        (0..WAITING_MAX).for_each(|request| push(&queue, request, 1).unwrap());
        assert!(matches!(push(&queue, 0, 1), Err(StoreError::Busy(_))));
        assert_eq!(queue.take_waiting().len(), WAITING_MAX);
        push(&queue, 0, 1).unwrap();
    }
}
