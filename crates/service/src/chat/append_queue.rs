//! The chat messages of this node that wait for a batch, and the number of its batches (`appender.rs`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ChannelId;
use store::StoreError;
use tokio::sync::oneshot;

use crate::Error;
use crate::chat::messages::{ChatMessage, PostedMessage};

/// Maximum number of messages in a batch.
const BATCH_MAX: usize = 256;
/// Number of batches that run at the same time, without slow ones. While one is synced, the next one gathers.
const BATCHES: usize = 2;
/// Maximum number of batches, slow ones included. The store has twice as many connections.
const BATCHES_MAX: usize = 8;
/// Maximum number of messages that wait.
const WAITING_MAX: usize = 4_096;

/// The outcome of a message.
pub(crate) enum Appended {
    /// The message was posted, or it was refused.
    Done(Result<PostedMessage, Error>),
    /// A transaction of its own has to decide about the message. Nothing was written.
    Alone,
}

/// A message that waits for its outcome.
pub(super) struct Waiting {
    pub channel: ChannelId,
    pub message: Arc<ChatMessage>,
    pub outcome: oneshot::Sender<Appended>,
}

impl Waiting {
    pub fn end(self, outcome: Appended) {
        // A caller that is gone needs no outcome.
        let _ = self.outcome.send(outcome);
    }
}

/// The messages of this node that wait, and the number of its batches.
#[derive(Default)]
pub(crate) struct ChatAppender(Mutex<AppendQueue>);

#[derive(Default)]
struct AppendQueue {
    waiting: VecDeque<Waiting>,
    /// Batches that are not slow.
    running: usize,
    slow: usize,
}

impl ChatAppender {
    fn queue(&self) -> MutexGuard<'_, AppendQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, waiting: Waiting) -> Result<(), StoreError> {
        let mut queue = self.queue();
        if queue.waiting.len() >= WAITING_MAX {
            return Err(StoreError::Busy("too many chat messages are waiting"));
        }
        queue.waiting.push_back(waiting);
        Ok(())
    }

    /// Begins a batch, if messages wait and a batch may run.
    pub(super) fn begin_batch(&self) -> Option<Vec<Waiting>> {
        let mut queue = self.queue();
        let may_run = queue.running < BATCHES && queue.running + queue.slow < BATCHES_MAX;
        if !may_run || queue.waiting.is_empty() {
            return None;
        }
        queue.running += 1;
        let count = queue.waiting.len().min(BATCH_MAX);
        Some(queue.waiting.drain(..count).collect())
    }

    /// The place of a batch that begins.
    pub(super) fn place(&self) -> BatchPlace<'_> {
        BatchPlace { appender: self, is_slow: false }
    }

    /// Takes all messages that wait.
    pub(super) fn take_waiting(&self) -> Vec<Waiting> {
        self.queue().waiting.drain(..).collect()
    }
}

/// The part of a batch in the number of batches, until it is dropped.
pub(super) struct BatchPlace<'a> {
    appender: &'a ChatAppender,
    is_slow: bool,
}

impl BatchPlace<'_> {
    pub fn become_slow(&mut self) {
        let mut queue = self.appender.queue();
        queue.running -= 1;
        queue.slow += 1;
        self.is_slow = true;
    }
}

impl Drop for BatchPlace<'_> {
    fn drop(&mut self) {
        let mut queue = self.appender.queue();
        let count = if self.is_slow { &mut queue.slow } else { &mut queue.running };
        *count -= 1;
    }
}
