//! PostgreSQL: a pool of connections for transactions, and a pool of shared connections for single look-ups.

pub(crate) mod connection;
pub(crate) mod connector;
mod meaning;
mod read_pool;
mod tls;
mod upkeep;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Pool, PoolError, QueueMode, RecyclingMethod, Runtime, TimeoutType,
};
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};
use tokio::time::Timeout;

use crate::disk::Disk;
use crate::run_to_completion::run_to_completion;
use crate::stats::Counters;
use crate::tx::{Link, Tx};
use crate::work::{Closure, CommitHook, Outcome, run, run_hook};
use crate::{DatabaseUrl, Options, Stats, StoreError};
use connection::{Lease, PostgresConnection};
use connector::{Connector, Deadlines, Endpoint};
use read_pool::ReadPool;

/// The longest [`Postgres::close`] waits for accepted work.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// An open PostgreSQL database.
pub(crate) struct Postgres {
    endpoint: Endpoint,
    pool: Pool,
    read_pool: ReadPool,
    /// A permit for each transaction that waits or runs.
    transactions: Semaphore,
    /// A permit for each running look-up.
    lookups: Semaphore,
    /// The number of permits of each.
    queue_cap: u32,
    /// The longest that a caller waits.
    deadline: Duration,
    counters: Counters,
}

impl Postgres {
    pub async fn open(url: &DatabaseUrl, options: Options) -> Result<Self, StoreError> {
        let deadlines = Deadlines::within(options.deadline);
        let endpoint = connector::parse(url, deadlines)?;
        connector::prepare_database(&endpoint, options.migrations, options.existing, deadlines).await?;
        // The driver knows whether a connection is closed. Asking the server would cost a round trip.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let connector = Connector::for_writing(deadlines, endpoint.tls.clone());
        let pool = Pool::builder(Manager::from_connect(endpoint.config.clone(), connector, recycling))
            .max_size(options.postgres_connections.max(1))
            // The connection that was used last has its statements prepared and its tables looked up.
            .queue_mode(QueueMode::Lifo)
            .wait_timeout(Some(deadlines.acquire))
            .create_timeout(Some(deadlines.connect))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|_| StoreError::Open("the connection pool cannot be built".to_owned()))?;
        let queue_cap =
            u32::try_from(options.queue_cap).unwrap_or(u32::MAX).min(Semaphore::MAX_PERMITS as u32);
        Ok(Self {
            pool,
            endpoint: endpoint.clone(),
            read_pool: ReadPool::new(endpoint, options.postgres_read_connections.max(1), deadlines),
            transactions: Semaphore::new(queue_cap as usize),
            lookups: Semaphore::new(queue_cap as usize),
            queue_cap,
            deadline: options.deadline,
            counters: Counters::default(),
        })
    }

    /// Runs a write to its end, because a caller that stops waiting must not stop a transaction.
    pub async fn write(self: &Arc<Self>, work: Closure, on_commit: CommitHook) -> Outcome {
        let engine = self.clone();
        let transaction = run_to_completion(async move {
            let _permit = engine.permit(&engine.transactions)?;
            let mut outcome = engine.transact(BEGIN_WRITE, work).await;
            let counter = match &outcome {
                Ok(_) => &engine.counters.committed,
                Err(_) => &engine.counters.rolled_back,
            };
            Counters::add(counter, 1);
            if let Ok(value) = &mut outcome {
                Counters::add(&engine.counters.syncs, 1);
                engine.counters.largest_batch.fetch_max(1, Ordering::Relaxed);
                run_hook(on_commit, value);
            }
            outcome
        });
        transaction.await.unwrap_or_else(|| Err(StoreError::Panicked.into()))
    }

    pub async fn snapshot(&self, work: Closure) -> Outcome {
        let _permit = self.permit(&self.transactions)?;
        self.transact(BEGIN_SNAPSHOT, work).await
    }

    pub async fn read(&self, work: Closure) -> Outcome {
        let _permit = self.permit(&self.lookups)?;
        let lease = self.read_pool.least_loaded();
        self.within_deadline(async {
            let client = lease.client().await?;
            run(work, &mut Tx::new(Link::Postgres(PostgresConnection::Shared(client)))).await
        })
        .await
        .unwrap_or_else(|_| {
            lease.discard();
            Err(StoreError::Unavailable("the read took too long".to_owned()).into())
        })
    }

    async fn transact(&self, begin: &'static str, work: Closure) -> Outcome {
        let committing = Arc::new(AtomicBool::new(false));
        self.within_deadline(self.attempt(begin, work, committing.clone())).await.unwrap_or_else(|_| {
            Err(if committing.load(Ordering::Relaxed) {
                StoreError::CommitUnknown
            } else {
                StoreError::Unavailable("the transaction took too long".to_owned())
            }
            .into())
        })
    }

    /// Runs a transaction. If the future is dropped, the connection is closed and the server rolls back.
    async fn attempt(&self, begin: &'static str, work: Closure, committing: Arc<AtomicBool>) -> Outcome {
        let connection = self.pool.get().await.map_err(|error| self.counters.refused(acquiring(error)))?;
        let lease = Lease::new(connection, begin, committing);
        let mut tx = Tx::new(Link::Postgres(PostgresConnection::Leased(lease)));
        let outcome = run(work, &mut tx).await;
        let (found_disk_full, has_written) = (tx.found_disk_full, tx.has_written);
        let (link, last) = tx.into_parts();
        let Link::Postgres(PostgresConnection::Leased(lease)) = link else {
            return Err(StoreError::Misuse("a transaction lost its connection").into());
        };
        match outcome {
            Ok(value) => {
                let committed = match last {
                    Some(last) => lease.commit_with(last).await,
                    None => lease.commit().await,
                };
                let was_full = found_disk_full || committed == Err(StoreError::DiskFull);
                self.counters.disk.note(was_full, has_written && committed.is_ok());
                committed?;
                Ok(value)
            }
            Err(error) => {
                self.counters.disk.note(found_disk_full, false);
                if lease.is_committed() {
                    tracing::error!("a transaction failed after its last statement was committed");
                    return Err(StoreError::CommitUnknown.into());
                }
                lease.roll_back().await;
                Err(error)
            }
        }
    }

    fn permit<'a>(&self, of: &'a Semaphore) -> Result<SemaphorePermit<'a>, StoreError> {
        of.try_acquire().map_err(|error| match error {
            TryAcquireError::NoPermits => {
                self.counters.refused(StoreError::Busy("too many requests are waiting"))
            }
            TryAcquireError::Closed => StoreError::closed(),
        })
    }

    /// Not an async fn, whose future would store the work twice.
    fn within_deadline<F: Future>(&self, work: F) -> Timeout<F> {
        tokio::time::timeout(self.deadline, work)
    }

    pub fn stats(&self) -> Stats {
        self.counters.stats(self.pool.status().waiting)
    }

    pub fn disk(&self) -> Disk {
        self.counters.disk.state()
    }

    pub async fn close(&self) {
        // When `close` has all permits, no request runs. It keeps the permits until the semaphores are
        // closed.
        let alone = async {
            tokio::join!(
                self.transactions.acquire_many(self.queue_cap),
                self.lookups.acquire_many(self.queue_cap)
            )
        };
        let alone = tokio::time::timeout(CLOSE_DEADLINE, alone).await;
        if alone.is_err() {
            tracing::warn!("the PostgreSQL store did not finish its accepted work in time");
        }
        self.transactions.close();
        self.lookups.close();
        self.pool.close();
        self.read_pool.close().await;
    }
}

fn acquiring(error: PoolError) -> StoreError {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => StoreError::Busy("all connections are in use"),
        PoolError::Timeout(_) => StoreError::Unavailable("the server does not answer".to_owned()),
        PoolError::Backend(error) => connection::failure(&error, ""),
        PoolError::Closed => StoreError::closed(),
        PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            StoreError::Unavailable("the connection pool cannot connect".to_owned())
        }
    }
}
