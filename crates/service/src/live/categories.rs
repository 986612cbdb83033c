//! Categories and the search in them (`docs/spec/lives.md#categories`).

use std::sync::Arc;

use domain::audit::AuditAction;
use domain::live::Category;
use store::Tx;

use crate::live::category_index::Snapshot;
use crate::work::Work;
use crate::{Error, Service};

/// Maximum number of rows that one statement reads into the index.
const INDEX_LOAD: i64 = 2_000;

impl Service {
    /// Makes or replaces a category. An unchanged category is not written.
    ///
    /// # Errors
    /// `Invalid` for a wrong name or picture.
    pub async fn put_category(&self, category: Category) -> Result<(), Error> {
        category.check()?;
        self.write(async move |work: &mut Work<'_>| {
            put(work, &category).await?;
            Ok(work.audit(AuditAction::CategoryPut, &category.category_id).await?)
        })
        .await
    }

    /// Returns the first `size` categories whose name contains `query`: first exact matches, then names
    /// that begin with `query`, then the rest. Each group is ordered by name, then by id. Every committed
    /// category is found, also when another node wrote it.
    pub async fn search_categories(&self, query: &str, size: usize) -> Result<Vec<Arc<Category>>, Error> {
        Ok(self.categories_now().await?.search(query, size))
    }

    /// Returns every category, in no particular order.
    pub async fn categories(&self) -> Result<Vec<Arc<Category>>, Error> {
        Ok(self.categories_now().await?.all())
    }

    /// Reads all categories into memory for later searches.
    pub async fn read_categories(&self) -> Result<(), Error> {
        self.categories_now().await.map(drop)
    }

    /// Returns all categories, including every write that was acknowledged before this call.
    async fn categories_now(&self) -> Result<Arc<Snapshot>, Error> {
        let version = self.read(async move |tx: &mut Tx| Ok(tx.category_version().await?)).await?;
        match self.0.categories.current_at(version) {
            Some(snapshot) => Ok(snapshot),
            None => self.read_categories_up_to(version).await,
        }
    }

    /// Reads the categories that were written since the last update of the index. Concurrent callers wait
    /// for one reader and share its rows. The rows that a cancelled caller has read stay in the index.
    async fn read_categories_up_to(&self, version: i64) -> Result<Arc<Snapshot>, Error> {
        let index = &self.0.categories;
        let mut reader = index.reader().await;
        while !reader.has(version) {
            let mark = reader.mark().clone();
            let rows =
                self.read(async move |tx: &mut Tx| Ok(tx.categories_after(&mark, INDEX_LOAD).await?)).await?;
            let all = i64::try_from(rows.len()).is_ok_and(|count| count < INDEX_LOAD);
            reader.take(rows);
            if all {
                reader.publish(version).await;
            }
        }
        Ok(index.snapshot())
    }
}

/// Writes one checked category, inside a transaction.
pub(crate) async fn put(work: &mut Work<'_>, category: &Category) -> Result<(), Error> {
    if work.category(&category.category_id).await?.as_ref() != Some(category) {
        work.next_category_version().await?;
        work.put_category(category).await?;
    }
    Ok(())
}
