//! What becomes due: a sandbox runs it when its clock is moved.

use domain::Timestamp;
use store::Tx;
pub use store::queries::due::{DUE_ROWS_MAX, Due, DueKind};

use crate::{Error, Service};

impl Service {
    /// What of these kinds becomes due after `from`, until `until`, in the order of the due times. Of each
    /// kind the earliest up to `limit`, at most [`DUE_ROWS_MAX`].
    pub async fn due(
        &self,
        kinds: &[DueKind],
        from: Timestamp,
        until: Timestamp,
        limit: i64,
    ) -> Result<Vec<Due>, Error> {
        let kinds = kinds.to_vec();
        self.read(async move |tx: &mut Tx| {
            let mut all = Vec::new();
            for kind in kinds {
                all.extend(tx.due(kind, from, until, limit, 0).await?);
            }
            all.sort_by_key(|due: &Due| due.at);
            Ok::<_, Error>(all)
        })
        .await
    }

    /// What begins after `from`, until `until`, as [`due`](Self::due), and the earliest time after `from` at
    /// which a lifetime ends.
    pub async fn plan(
        &self,
        from: Timestamp,
        until: Timestamp,
        limit: i64,
    ) -> Result<(Vec<Due>, Option<Timestamp>), Error> {
        self.read(async move |tx: &mut Tx| {
            let mut begins = Vec::new();
            for kind in DueKind::ACTIVE {
                begins.extend(tx.due(kind, from, until, limit, 0).await?);
            }
            begins.sort_by_key(|due: &Due| due.at);
            Ok::<_, Error>((begins, tx.next_end(from).await?))
        })
        .await
    }

    /// All that becomes due of these kinds after `from`, until `until`, in the order of the due times. The
    /// number is that of all, but only the earliest up to `kept` of each kind are returned.
    pub async fn all_due(
        &self,
        kinds: &[DueKind],
        from: Timestamp,
        until: Timestamp,
        kept: usize,
    ) -> Result<(Vec<Due>, u64), Error> {
        let kinds = kinds.to_vec();
        self.read(async move |tx: &mut Tx| {
            let (mut all, mut count) = (Vec::new(), 0);
            for kind in kinds {
                let (mut skipped, mut page_is_full) = (0, true);
                while page_is_full {
                    let page = tx.due(kind, from, until, DUE_ROWS_MAX, skipped).await?;
                    let left = kept.saturating_sub(usize::try_from(skipped).unwrap_or(usize::MAX));
                    let rows = i64::try_from(page.len()).unwrap_or(DUE_ROWS_MAX);
                    page_is_full = rows == DUE_ROWS_MAX;
                    skipped += rows;
                    all.extend(page.into_iter().take(left));
                }
                count += skipped.unsigned_abs();
            }
            all.sort_by_key(|due: &Due| due.at);
            Ok::<_, Error>((all, count))
        })
        .await
    }
}
