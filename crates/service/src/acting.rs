//! Who acts through a handle of the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use domain::audit::{Actor, AuditAction, AuditEntry, Subject};
use domain::operator_key::OperatorRole;
use domain::{AuditEntryId, Timestamp};

/// The actor of a handle, and the request with which the actor came.
#[derive(Debug)]
pub(crate) struct Acting {
    pub actor: Actor,
    /// The operator role of the actor.
    pub role: Option<OperatorRole>,
    pub request_id: String,
    /// Numbers the entries of this node.
    pub counter: Arc<AtomicU32>,
}

impl Acting {
    /// The entry about a change by the actor.
    pub fn entry(
        &self,
        action: AuditAction,
        subject: Subject<'_>,
        details: String,
        now: Timestamp,
        random: [u8; 6],
    ) -> AuditEntry {
        let number = self.counter.fetch_add(1, Ordering::Relaxed);
        AuditEntry {
            entry_id: AuditEntryId::generate(now, number, random),
            created_at: now,
            actor_kind: self.actor.kind(),
            actor_id: self.actor.id().to_owned(),
            actor_name: self.actor.name().to_owned(),
            action,
            subject_kind: subject.kind,
            subject_id: subject.id.to_owned(),
            subject_name: String::new(),
            details,
            request_id: self.request_id.clone(),
        }
    }
}
