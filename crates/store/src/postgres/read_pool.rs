//! Shared read-only connections. Each runs many look-ups at the same time. So a look-up costs one round trip
//! and never waits for a free connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deadpool_postgres::ClientWrapper;
use tokio::sync::Mutex;
use tokio_postgres::Config;

use super::connection::{SharedClient, failure};
use super::connector::{Connector, Deadlines, Endpoint};
use crate::StoreError;

/// The shared connections, opened when they are first used.
pub(super) struct ReadPool {
    connections: Vec<PooledReader>,
    config: Config,
    connector: Connector,
    deadlines: Deadlines,
}

/// One connection of the pool, unless it is closed.
struct PooledReader {
    client: Mutex<Option<Arc<SharedClient>>>,
    /// Look-ups that use the connection now.
    load: AtomicUsize,
}

impl ReadPool {
    /// A pool without open connections.
    pub fn new(endpoint: Endpoint, count: usize, deadlines: Deadlines) -> Self {
        let Endpoint { config, tls } = endpoint;
        let closed = || PooledReader { client: Mutex::default(), load: AtomicUsize::new(0) };
        let connections = std::iter::repeat_with(closed).take(count).collect();
        Self { connections, config, connector: Connector::for_reading(deadlines, tls), deadlines }
    }

    /// Counts a look-up on the connection with the fewest look-ups. The server answers the look-ups of a
    /// connection one after the other, so a slow one delays the next.
    pub fn least_loaded(&self) -> ReadLease<'_> {
        let reader = self.connections.iter().min_by_key(|reader| reader.load.load(Ordering::Relaxed));
        let reader = reader.unwrap_or(&self.connections[0]);
        reader.load.fetch_add(1, Ordering::Relaxed);
        ReadLease { reader, pool: self }
    }

    pub async fn close(&self) {
        for reader in &self.connections {
            reader.client.lock().await.take();
        }
    }
}

/// The use of a shared connection by one look-up.
pub(super) struct ReadLease<'a> {
    reader: &'a PooledReader,
    pool: &'a ReadPool,
}

impl ReadLease<'_> {
    /// The client of the connection. Connects again if the connection is lost.
    pub async fn client(&self) -> Result<Arc<SharedClient>, StoreError> {
        let mut current = self.reader.client.lock().await;
        if let Some(client) = current.as_ref().filter(|client| client.is_usable()) {
            return Ok(client.clone());
        }
        let ReadPool { config, connector, deadlines, .. } = self.pool;
        // Boxed, so that the future of every look-up does not reserve memory for a connect.
        let (client, task) = tokio::time::timeout(deadlines.connect, Box::pin(connector.open(config)))
            .await
            .map_err(|_| StoreError::Unavailable("the server does not answer".to_owned()))?
            .map_err(|error| failure(&error, ""))?;
        let client = Arc::new(SharedClient::new(ClientWrapper::new(client, task)));
        *current = Some(client.clone());
        Ok(client)
    }

    /// Gives up a connection that did not answer in time. Its other look-ups keep the connection until they
    /// end.
    pub fn discard(&self) {
        // A locked connection is being replaced already.
        if let Ok(mut current) = self.reader.client.try_lock() {
            current.take();
        }
    }
}

impl Drop for ReadLease<'_> {
    fn drop(&mut self) {
        self.reader.load.fetch_sub(1, Ordering::Relaxed);
    }
}
