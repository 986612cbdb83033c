//! How much applications are used, as their people see it: requests by day and kind, refused requests.

use std::sync::Arc;

use domain::limits::MINUTE_MS;
use domain::usage::{RequestCount, UsageKind, day_of, minute_of};
use domain::{ClientId, Timestamp};
use store::Tx;
pub use store::queries::application_load::{ApplicationLoad, LoadBy};
pub use store::queries::application_usage::UsageRow;

pub use crate::developer::usage_counters::{ApplicationUsage, REFUSED_KEPT, RefusedRequest};
use crate::work::Work;
use crate::{Error, Service};

/// How long the load of a minute is kept, and how far back it is shown.
pub const LOAD_KEPT_MS: i64 = LOAD_MINUTES_MAX * MINUTE_MS;
/// Minutes of [`LOAD_KEPT_MS`].
pub const LOAD_MINUTES_MAX: i64 = 60;
/// Maximum number of rows that one transaction writes.
const ROWS_PER_TRANSACTION: usize = 500;

impl Service {
    /// The counters of an application on this node.
    pub fn usage_counters(&self, client_id: &ClientId) -> Option<Arc<ApplicationUsage>> {
        self.0.usage.of(client_id)
    }

    /// Keeps a refused request of an application in memory.
    pub fn note_refused_request(&self, client_id: &ClientId, request: RefusedRequest) {
        self.0.refused.note(client_id, request);
    }

    /// The last refused requests of an application on this node, newest first, at most [`REFUSED_KEPT`].
    pub fn refused_requests(&self, client_id: &ClientId) -> Vec<RefusedRequest> {
        self.0.refused.of(client_id)
    }

    /// The application and the facts of a refused request, if this node still has it.
    pub fn refused_request(&self, request_id: &str) -> Option<(ClientId, RefusedRequest)> {
        self.0.refused.find(request_id)
    }

    /// Writes the requests that this node counted since the last call, as requests of the current UTC day and
    /// minute, and the events. Returns the number of written rows of days.
    pub async fn flush_usage(&self) -> Result<u64, Error> {
        let (day, minute) = (day_of(self.now()), minute_of(self.now()));
        self.flush_events(minute).await?;
        let taken = self.0.usage.take();
        let mut written = 0;
        for chunk in taken.chunks(ROWS_PER_TRANSACTION) {
            let row = |(client_id, kind, count): &(ClientId, UsageKind, _)| UsageRow {
                client_id: client_id.clone(),
                day,
                kind: *kind,
                count: *count,
            };
            let rows: Vec<UsageRow> = chunk.iter().map(row).collect();
            let load = load_of(chunk);
            let added = self
                .write(async move |work: &mut Work<'_>| {
                    work.add_usage(&rows).await?;
                    Ok::<_, Error>(work.add_load(minute, &load).await?)
                })
                .await;
            if let Err(error) = added {
                self.0.usage.give_back(&taken[written..]);
                return Err(error);
            }
            written += chunk.len();
        }
        self.0.usage.drop_idle();
        Ok(written.try_into().unwrap_or(u64::MAX))
    }

    /// Writes the events that sessions of applications have received. Those of a failed write are lost: they
    /// show an operator the load, and nobody counts on them.
    async fn flush_events(&self, minute: Timestamp) -> Result<(), Error> {
        let taken = self.0.usage.take_events();
        for chunk in taken.chunks(ROWS_PER_TRANSACTION) {
            let load = chunk.iter().map(|(id, events)| ApplicationLoad { events: *events, ..no_load(id) });
            let load: Vec<_> = load.collect();
            self.write(async move |work: &mut Work<'_>| Ok::<_, Error>(work.add_load(minute, &load).await?))
                .await?;
        }
        Ok(())
    }

    /// The applications with the most load of the last minutes, this one included, the heaviest first. A node
    /// writes what it counted every few seconds.
    pub async fn heaviest_applications(
        &self,
        by: LoadBy,
        minutes: i64,
        limit: i64,
    ) -> Result<Vec<ApplicationLoad>, Error> {
        let since = minute_of(self.now()).plus_ms((1 - minutes) * MINUTE_MS);
        self.read(async move |tx: &mut Tx| Ok(tx.heaviest_applications(by, since, limit).await?)).await
    }

    /// The requests of an application by day and kind, from the day of `since` on, oldest first. Those that
    /// this node has not written yet are included, as requests of today.
    pub async fn usage_of_application(
        &self,
        client_id: &ClientId,
        since: Timestamp,
    ) -> Result<Vec<UsageRow>, Error> {
        let (id, since, today) = (client_id.clone(), day_of(since), day_of(self.now()));
        let mut rows =
            self.read(async move |tx: &mut Tx| Ok(tx.usage_of_application(&id, since).await?)).await?;
        let pending = self.usage_counters(client_id).map(|usage| usage.pending()).unwrap_or_default();
        for (kind, count) in pending {
            match rows.iter_mut().find(|row| row.day == today && row.kind == kind) {
                Some(row) => row.count = row.count.plus(count),
                None => rows.push(UsageRow { client_id: client_id.clone(), day: today, kind, count }),
            }
        }
        Ok(rows)
    }
}

fn no_load(client_id: &ClientId) -> ApplicationLoad {
    ApplicationLoad { client_id: client_id.clone(), name: String::new(), requests: 0, refused: 0, events: 0 }
}

/// The load of the applications of counted requests, which are ordered by them.
fn load_of(counted: &[(ClientId, UsageKind, RequestCount)]) -> Vec<ApplicationLoad> {
    let by_application = counted.chunk_by(|(one, ..), (other, ..)| one == other);
    let load = |kinds: &[(ClientId, UsageKind, RequestCount)]| {
        let (client_id, ..) = kinds.first()?;
        let sum = kinds.iter().fold(RequestCount::default(), |sum, (_, _, count)| sum.plus(*count));
        Some(ApplicationLoad { requests: sum.requests, refused: sum.refused, ..no_load(client_id) })
    };
    by_application.filter_map(load).collect()
}
