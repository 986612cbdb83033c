//! What becomes due: a sandbox runs it when its clock is moved.

use domain::Timestamp;
use store::Tx;
pub use store::queries::due::{DUE_ROWS_MAX, Due, DueKind};

use crate::{Error, Service};

impl Service {
    /// What of these kinds becomes due after `from`, until `until`, in the order of its times. Of each kind
    /// the earliest up to `limit`, at most [`DUE_ROWS_MAX`].
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
                all.extend(tx.due(kind, from, until, limit).await?);
            }
            all.sort_by_key(|due: &Due| due.at);
            Ok::<_, Error>(all)
        })
        .await
    }
}
