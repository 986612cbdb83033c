//! The end of session URLs and sessions whose application, user or client secret was deleted or revoked.

use domain::SessionKey;
use store::queries::session_ends::AdmittedBy;

use crate::realtime::sessions;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Deletes the session URLs and ends the sessions that a deleted or revoked application, user or
    /// client secret opened. The deletion or revocation is committed before. The nodes of the sessions
    /// close the sockets within two seconds. Sessions are ended in batches, so that other transactions
    /// run in between. The call may be repeated.
    pub(crate) async fn end_admitted(&self, admitted: AdmittedBy) -> Result<(), Error> {
        let urls = admitted.clone();
        self.write(async move |work: &mut Work<'_>| Ok(work.delete_session_urls(&urls).await?)).await?;
        let mut after = Some(SessionKey::stored(String::new()));
        while let Some(last) = after {
            after = self.end_some(&admitted, last).await?;
        }
        Ok(())
    }

    async fn end_some(&self, admitted: &AdmittedBy, after: SessionKey) -> Result<Option<SessionKey>, Error> {
        let admitted = admitted.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            Ok(work.end_sessions(&admitted, &after, now, sessions::REVOKED).await?)
        })
        .await
    }
}
