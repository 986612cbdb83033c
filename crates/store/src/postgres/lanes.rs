//! Shared read-only connections. Many look-ups are under way on each: a look-up costs one round trip and no wait for a
//! free connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deadpool_postgres::ClientWrapper;
use tokio::sync::Mutex;
use tokio_postgres::Config;

use super::connection::{SharedClient, failure};
use super::connector::{Connector, Deadlines};
use crate::StoreError;

pub(super) struct Lanes {
    lanes: Vec<Lane>,
    config: Config,
    connector: Connector,
    deadlines: Deadlines,
}

struct Lane {
    client: Mutex<Option<Arc<SharedClient>>>,
    /// Look-ups under way.
    load: AtomicUsize,
}

impl Lanes {
    /// Connects nothing yet.
    pub fn new(config: Config, count: usize, deadlines: Deadlines) -> Self {
        let lanes =
            (0..count).map(|_| Lane { client: Mutex::default(), load: AtomicUsize::new(0) }).collect();
        Self { lanes, config, connector: Connector::for_reading(deadlines), deadlines }
    }

    /// The connection with the fewest look-ups under way: the server answers them in turn, so a slow one holds up
    /// those behind it.
    pub fn least_loaded(&self) -> Turn<'_> {
        let lane = self.lanes.iter().min_by_key(|lane| lane.load.load(Ordering::Relaxed));
        let lane = lane.unwrap_or(&self.lanes[0]);
        lane.load.fetch_add(1, Ordering::Relaxed);
        Turn { lane, lanes: self }
    }

    pub async fn close(&self) {
        for lane in &self.lanes {
            lane.client.lock().await.take();
        }
    }
}

/// One look-up's turn on a connection.
pub(super) struct Turn<'a> {
    lane: &'a Lane,
    lanes: &'a Lanes,
}

impl Turn<'_> {
    /// The connection, made anew if it has ended.
    pub async fn client(&self) -> Result<Arc<SharedClient>, StoreError> {
        let mut slot = self.lane.client.lock().await;
        if let Some(client) = slot.as_ref().filter(|client| client.is_usable()) {
            return Ok(client.clone());
        }
        let Lanes { config, connector, deadlines, .. } = self.lanes;
        // Boxed, so that the future of every look-up does not reserve memory for a connect.
        let (client, task) = tokio::time::timeout(deadlines.connect, Box::pin(connector.open(config)))
            .await
            .map_err(|_| StoreError::Unavailable("the server does not answer".to_owned()))?
            .map_err(|error| failure(&error, ""))?;
        let client = Arc::new(SharedClient::new(ClientWrapper::new(client, task)));
        *slot = Some(client.clone());
        Ok(client)
    }

    /// Gives up a connection that did not answer in time. Look-ups that are under way on it keep it until they end.
    pub fn discard(&self) {
        // If it is locked, somebody is replacing it already.
        if let Ok(mut slot) = self.lane.client.try_lock() {
            slot.take();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.lane.load.fetch_sub(1, Ordering::Relaxed);
    }
}
