//! Locks that a transaction takes ahead of its rows, all in one order, so that transactions do not wait for each other in a
//! circle (`docs/adr/0025-locks-are-taken-in-one-order.md`).
//!
//! They are PostgreSQL's advisory locks: numbers, so that what has no row yet can be locked too. The server frees them with
//! the transaction. SQLite has one writer, so nothing is locked there. These are the only statements that run on one engine.

use std::collections::BTreeSet;

use domain::ChannelId;
use sha2::{Digest, Sha256};

use crate::{StoreError, Tx, params};

/// The rows come, and are locked, in the order of the list. Every schema of a database has locks of its own.
const LOCK: &str = "
    SELECT pg_advisory_xact_lock(number # hashtextextended(current_schema(), 0))
    FROM unnest(CAST(string_to_array($1, ' ') AS BIGINT[])) AS number";

const SHARE: &str = "
    SELECT pg_advisory_xact_lock_shared(CAST($1 AS BIGINT) # hashtextextended(current_schema(), 0))";

/// Something that several transactions write at the same time.
#[derive(Clone, Copy, Debug)]
pub enum Shared<'a> {
    /// A channel, and the rows that belong to it: its lists, managers, live, claims.
    Channel(&'a ChannelId),
    /// The numbering of categories.
    Categories,
    /// The numbering of lives.
    Lives,
    /// Minutes that were watched.
    WatchedMinutes,
    /// An idempotency key.
    Key {
        /// The operation.
        operation: &'a str,
        /// The key as the caller sent it.
        key: &'a str,
    },
}

impl Shared<'_> {
    /// Two that share a number wait for each other without need.
    fn number(self) -> i64 {
        let mut hash = Sha256::new();
        match self {
            Self::Channel(channel) => hash.update(format!("channel {}", channel.as_str())),
            Self::Categories => hash.update("categories"),
            Self::Lives => hash.update("lives"),
            Self::WatchedMinutes => hash.update("watched minutes"),
            Self::Key { operation, key } => hash.update(format!("key {operation}\0{key}")),
        }
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
        i64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// What one transaction locks, each once, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locks(BTreeSet<i64>);

impl Locks {
    /// Locks this too.
    pub fn add(&mut self, shared: Shared<'_>) {
        self.0.insert(shared.number());
    }

    /// The numbers of all, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = i64> {
        self.0.iter().copied()
    }

    /// Whether there is nothing to lock.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Tx {
    /// Makes other transactions that lock one of these wait for this one's end. To be called once, before the first row is
    /// written.
    pub async fn lock_in_order(&mut self, locks: &Locks) -> Result<(), StoreError> {
        if self.writes_alone() || locks.is_empty() {
            return Ok(());
        }
        let numbers: Vec<String> = locks.0.iter().map(i64::to_string).collect();
        self.execute(LOCK, params![numbers.join(" ")]).await?;
        Ok(())
    }

    /// Waits for those who have this locked, and makes those who lock it wait; others who share it do not. To be called
    /// before the first row is written.
    pub async fn share_lock(&mut self, shared: Shared<'_>) -> Result<(), StoreError> {
        if !self.writes_alone() {
            self.execute(SHARE, params![shared.number()]).await?;
        }
        Ok(())
    }
}
