//! The webhook attempts that are made while the clock moves.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use service::attempt_faults::SentAttempt;

/// Maximum number of attempts that a move has not fetched yet. Each step of a move fetches its own.
const COLLECTED_MAX: usize = 100_000;

/// The attempts that were made while the clock moves.
#[derive(Debug, Default)]
pub(crate) struct MadeAttempts(Mutex<Option<Vec<SentAttempt>>>);

/// Collects the attempts until it is dropped.
#[derive(Debug)]
pub(crate) struct Collecting<'a>(&'a MadeAttempts);

impl MadeAttempts {
    /// Begins to collect.
    pub fn collect(&self) -> Collecting<'_> {
        *self.made() = Some(Vec::new());
        Collecting(self)
    }

    /// An attempt was made.
    pub fn add(&self, attempt: SentAttempt) {
        if let Some(made) = &mut *self.made()
            && !attempt.is_copy
            && made.len() < COLLECTED_MAX
        {
            made.push(attempt);
        }
    }

    fn made(&self) -> MutexGuard<'_, Option<Vec<SentAttempt>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collecting<'_> {
    /// Whether each of these messages was attempted since the last [`take`](Self::take).
    pub fn has_all<'m>(&self, mut messages: impl Iterator<Item = &'m str>) -> bool {
        let made = self.0.made();
        let attempts = made.iter().flatten();
        let ids: HashSet<&str> = attempts.map(|attempt| attempt.key.message_id.as_str()).collect();
        messages.all(|message| ids.contains(message))
    }

    /// The attempts since the last call, in the order of their results.
    pub fn take(&self) -> Vec<SentAttempt> {
        self.0.made().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        *self.0.made() = None;
    }
}
