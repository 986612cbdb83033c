//! Ends credentials before their time, as if their lifetimes were over: a sandbox does so on demand.

pub use store::queries::expire::{ExpireFilter, Expired, Expiring};

use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Ends the credentials that fit the filter, and returns whose they were. As at the end of a lifetime,
    /// open sessions live on.
    pub async fn expire(&self, what: Expiring, filter: ExpireFilter) -> Result<Vec<Expired>, Error> {
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            Ok(work.expire(what, &filter, now).await?)
        })
        .await
    }
}
