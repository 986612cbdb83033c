//! The life of applications. An application whose scopes were not used for 90 days is deleted after three
//! warnings. It can be restored for 30 more days (`docs/spec/authorization.md#unused-applications`).

use domain::audit::AuditAction;
use domain::limits::{APPLICATION_RESTORABLE_MS, DAY_MS, UNUSED_APPLICATION_MS, UNUSED_WARNING_DAYS};
use domain::refusal::Resource;
use domain::{ClientId, Refusal, Timestamp};

use crate::identity::warned_applications::WARNED_MAX;
use crate::realtime::sessions;
use crate::realtime::subscriptions;
use crate::work::Work;
use crate::{Error, Service};
use store::Tx;

pub use store::queries::application_life::{ApplicationLife, Notice};

/// Maximum number of uses that one transaction writes.
pub(crate) const USES_PER_TRANSACTION: usize = 500;

/// The result of [`Service::inspect_unused_applications`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The warned applications, with their days without use.
    pub warned: Vec<(ClientId, i64)>,
    /// The deleted applications.
    pub deleted: Vec<ClientId>,
    /// The number of applications that became irrecoverable.
    pub irrecoverable: u64,
}

/// An application with its redirect addresses.
#[derive(Clone, Debug)]
pub struct ApplicationDetails {
    /// The application, with its times and notices.
    pub life: ApplicationLife,
    /// Its redirect addresses.
    pub redirect_uris: Vec<String>,
}

impl Service {
    /// Notes in memory that a call used a scope of an application. The store is written by
    /// [`flush_uses`](Self::flush_uses).
    pub fn note_scope_use(&self, client_id: &ClientId) {
        self.0.applications_last_used.note(client_id, self.now());
    }

    /// Writes the due uses: the first use of an application soon, later uses once an hour. Returns their
    /// number.
    pub async fn flush_uses(&self) -> Result<u64, Error> {
        self.write_uses(false).await
    }

    /// Writes every unwritten use. The node calls this when it stops.
    pub async fn flush_all_uses(&self) -> Result<u64, Error> {
        self.write_uses(true).await
    }

    async fn write_uses(&self, every: bool) -> Result<u64, Error> {
        let of_applications = self.write_application_uses(every).await?;
        let of_secrets = self.write_secret_uses(every).await?;
        Ok(of_applications + of_secrets + self.write_operator_key_uses(every).await?)
    }

    async fn write_application_uses(&self, every: bool) -> Result<u64, Error> {
        let now = self.now();
        let uses = self.0.applications_last_used.to_write(now, every);
        for chunk in uses.chunks(USES_PER_TRANSACTION) {
            let batch = chunk.to_vec();
            self.write(async move |work: &mut Work<'_>| {
                for (client_id, at) in &batch {
                    work.note_application_use(client_id, *at).await?;
                }
                Ok::<_, Error>(())
            })
            .await?;
            self.0.applications_last_used.written(chunk);
        }
        self.0.applications_last_used.drop_idle(now);
        Ok(uses.len().try_into().unwrap_or(u64::MAX))
    }

    /// Warns about unused applications, deletes the applications that were unused for 90 days, and begins to
    /// purge the deleted applications that were not restored in time. Several nodes may do this at the same
    /// time.
    pub async fn inspect_unused_applications(&self) -> Result<Inspection, Error> {
        self.flush_all_uses().await?;
        let now = self.now();
        let mut inspection = Inspection { warned: self.warn_unused(now).await?, ..Inspection::default() };
        while let Some(client_id) = self.delete_one_unused(now).await? {
            tracing::warn!(%client_id, "deleted an application that was unused for 90 days: it can be restored for 30 days");
            inspection.deleted.push(client_id);
        }
        inspection.irrecoverable = self
            .write(async move |work: &mut Work<'_>| {
                // A handshake that ran during an earlier deletion may have opened a session after it.
                work.end_sessions_of_deleted_applications(now, sessions::REVOKED).await?;
                Ok::<_, Error>(work.begin_purge_of_applications(irrecoverable_since(now)).await?)
            })
            .await?;
        Ok(inspection)
    }

    async fn warn_unused(&self, now: Timestamp) -> Result<Vec<(ClientId, i64)>, Error> {
        let first = idle_since(now, UNUSED_WARNING_DAYS[0]);
        self.write(async move |work: &mut Work<'_>| {
            Ok::<_, Error>(work.note_subscribed_applications(now, first).await?)
        })
        .await?;
        let mut warned = Vec::new();
        for days in UNUSED_WARNING_DAYS {
            loop {
                let warned_now = self.warn_at(days, now).await?;
                if warned_now.is_empty() {
                    break;
                }
                for client_id in &warned_now {
                    tracing::warn!(%client_id, days, "an application is unused: it will be deleted at 90 days");
                }
                warned.extend(warned_now.into_iter().map(|client_id| (client_id, days)));
            }
        }
        Ok(warned)
    }

    async fn warn_at(&self, days: i64, now: Timestamp) -> Result<Vec<ClientId>, Error> {
        self.write(async move |work: &mut Work<'_>| {
            let kind = notice_kind(days);
            work.delete_outdated_notices(&kind, days * DAY_MS).await?;
            Ok(work.give_application_notices(&kind, now, idle_since(now, days)).await?)
        })
        .await
    }

    /// The time at which an application will be deleted unless one of its calls uses a scope. `None` before
    /// the first warning.
    pub fn deletes_at(&self, client_id: &ClientId) -> Option<Timestamp> {
        let last_use = self.0.warned.last_use(client_id)?;
        (!self.0.applications_last_used.used_since(client_id, last_use))
            .then(|| last_use.plus_ms(UNUSED_APPLICATION_MS))
    }

    /// Reads the warned applications, unless they were read within the last minute.
    pub(crate) async fn refresh_warned_applications(&self) -> Result<(), Error> {
        let (now, warned) = (self.now(), &self.0.warned);
        if !warned.is_due(now.as_millis()) {
            return Ok(());
        }
        let warned_since = idle_since(now, UNUSED_WARNING_DAYS[0]);
        let found = self
            .read(async move |tx: &mut Tx| Ok(tx.warned_applications(warned_since, WARNED_MAX).await?))
            .await?;
        warned.replace(found);
        Ok(())
    }

    /// Deletes one application. The same transaction revokes its subscriptions and ends its sessions.
    async fn delete_one_unused(&self, now: Timestamp) -> Result<Option<ClientId>, Error> {
        self.write(async move |work: &mut Work<'_>| {
            let unused_since = now.plus_ms(-UNUSED_APPLICATION_MS);
            let Some(client_id) = work.delete_unused_application(now, unused_since).await? else {
                return Ok(None);
            };
            subscriptions::revoke_all(work, &client_id).await?;
            work.end_sessions_of_deleted_applications(now, sessions::REVOKED).await?;
            Ok(Some(client_id))
        })
        .await
    }

    /// Deletes one batch of rows of irrecoverable applications and returns their number. At 0 only sessions
    /// whose sockets are still open are left.
    pub async fn purge_applications(&self) -> Result<u64, Error> {
        let any = self.read(async move |tx: &mut Tx| Ok(tx.has_purging_applications().await?)).await?;
        if !any {
            return Ok(0);
        }
        self.write(async move |work: &mut Work<'_>| Ok(work.purge_applications().await?)).await
    }

    /// Restores a deleted application with its secrets, its consents and its unexpired tokens. The
    /// application counts as used now, even if it was not deleted.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist or is irrecoverable.
    pub async fn restore_application(&self, client_id: &ClientId) -> Result<(), Error> {
        let client_id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            if work.restore_application(&client_id, now, irrecoverable_since(now)).await? {
                Ok(work.audit(AuditAction::ApplicationRestore, &client_id).await?)
            } else {
                Err(Error::from(Refusal::NotFound(Resource::Application)))
            }
        })
        .await
    }

    /// The details of an application. A deleted application has details while it can be restored.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the application does not exist or is irrecoverable.
    pub async fn application_details(&self, client_id: &ClientId) -> Result<ApplicationDetails, Error> {
        let (client_id, now) = (client_id.clone(), self.now());
        self.read(async move |tx: &mut Tx| {
            let life = tx
                .application_life(&client_id, irrecoverable_since(now))
                .await?
                .ok_or(Refusal::NotFound(Resource::Application))?;
            Ok(ApplicationDetails { life, redirect_uris: tx.redirect_uris(&client_id).await? })
        })
        .await
    }
}

/// An application that was deleted at this time or earlier is irrecoverable.
pub(crate) fn irrecoverable_since(now: Timestamp) -> Timestamp {
    now.plus_ms(-APPLICATION_RESTORABLE_MS)
}

fn idle_since(now: Timestamp, days: i64) -> Timestamp {
    now.plus_ms(-days * DAY_MS)
}

/// The kind of the notice after `days` without use.
fn notice_kind(days: i64) -> String {
    format!("UNUSED_{days}_DAYS")
}
