//! Locks that a transaction takes before it writes rows, all in one order, so that transactions never wait
//! for each other in a circle (`docs/adr/0025-locks-are-taken-in-one-order.md`).
//!
//! They are advisory locks of PostgreSQL. An advisory lock is a number, so something without a row can be
//! locked too. The server releases the locks at the end of the transaction. SQLite has one writer, so nothing
//! is locked there.

use std::collections::BTreeSet;

use domain::ChannelId;
use sha2::{Digest, Sha256};

use crate::{StoreError, Tx, params};

/// The locks are taken in the order of the list. Every schema of a database has its own locks.
const LOCK: &str = "
    SELECT pg_advisory_xact_lock(number # hashtextextended(current_schema(), 0))
    FROM unnest(CAST(string_to_array($1, ' ') AS BIGINT[])) AS number";

const SHARE: &str = "
    SELECT pg_advisory_xact_lock_shared(CAST($1 AS BIGINT) # hashtextextended(current_schema(), 0))";

/// Data that several transactions write at the same time.
#[derive(Clone, Copy, Debug)]
pub enum Shared<'a> {
    /// A channel, and the rows that belong to it: its lists, managers, live, claims.
    Channel(&'a ChannelId),
    /// The numbering of categories.
    Categories,
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
    /// The number of its lock. Data with the same number is locked together.
    pub(in crate::queries) fn number(self) -> i64 {
        let mut hash = Sha256::new();
        match self {
            Self::Channel(channel) => hash.update(format!("channel {}", channel.as_str())),
            Self::Categories => hash.update("categories"),
            Self::WatchedMinutes => hash.update("watched minutes"),
            Self::Key { operation, key } => hash.update(format!("key {operation}\0{key}")),
        }
        let [a, b, c, d, e, f, g, h, ..]: [u8; 32] = hash.finalize().into();
        i64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// The locks of one transaction, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locks(BTreeSet<i64>);

impl Locks {
    /// Adds a lock.
    pub fn add(&mut self, shared: Shared<'_>) {
        self.0.insert(shared.number());
    }

    /// The numbers of all locks, in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = i64> {
        self.0.iter().copied()
    }

    /// Whether there is nothing to lock.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Tx {
    /// Takes the locks for the rest of the transaction. It is called once, before the first row is written.
    pub async fn lock_in_order(&mut self, locks: &Locks) -> Result<(), StoreError> {
        if self.writes_alone() || locks.is_empty() {
            return Ok(());
        }
        let numbers: Vec<String> = locks.0.iter().map(i64::to_string).collect();
        self.execute(LOCK, params![numbers.join(" ")]).await?;
        Ok(())
    }

    /// Takes a lock in shared mode: it excludes the exclusive lock, but not other shared ones. It is called
    /// before the first row is written.
    pub async fn share_lock(&mut self, shared: Shared<'_>) -> Result<(), StoreError> {
        if !self.writes_alone() {
            self.execute(SHARE, params![shared.number()]).await?;
        }
        Ok(())
    }
}
