//! The audit log, read by an administrator.

use std::collections::BTreeMap;

use axum::extract::State;
use domain::audit::{AuditAction, AuditEntry};
use domain::limits::{OPERATOR_LIST_SIZE_DEFAULT, OPERATOR_LIST_SIZE_MAX};
use domain::{AuditEntryId, ChannelId, Invalid, Rule};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use service::audit_log::AuditFilter;

use crate::Web;
use crate::caller::Administrator;
use crate::contract::Summary;
use crate::envelope::{Answer, NextData, Success};
use crate::input::values::{cursor, date, id, integer, text};
use crate::input::{Form, Params, Query, QueryForm, optional, record, with_default};

/// The filter of the log.
#[derive(Debug)]
pub struct AuditQuery {
    filter: AuditFilter,
    size: i64,
    next: Option<String>,
}

impl Params for AuditQuery {
    fn form() -> impl QueryForm<Out = Self> {
        // The ids of all nouns are spelled alike.
        let subject = id(ChannelId::parse).about("What was changed: entries about the thing with this id.");
        let actor = id(ChannelId::parse)
            .about("Who changed it: a `keyId`, `configured` for the configured key, or a `channelId`.");
        let action = |name: &str| {
            AuditAction::from_name(name).ok_or(Invalid::new("action", Rule::OneOf(AuditAction::NAMES)))
        };
        let subject = optional("subject", subject).map(|id| id.map(|id| id.to_string()));
        let actor = optional("actor", actor).map(|id| id.map(|id| id.to_string()));
        record!(Self {
            filter: record!(AuditFilter {
                subject: subject,
                actor: actor,
                action: optional("action", text().one_of(AuditAction::NAMES).parsed(action)),
                since: optional("since", date().about("Entries of this time and later.")),
                until: optional("until", date().about("Entries before this time.")),
            }),
            size: with_default("size", integer(1, OPERATOR_LIST_SIZE_MAX), OPERATOR_LIST_SIZE_DEFAULT),
            next: optional("next", cursor()),
        })
    }
}

/// Who changed something.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditActor {
    /// `operator-key`, `configured-key`, `person` or `command`.
    kind: &'static str,
    /// The `keyId`, `configured`, the `channelId`, or the name of the command.
    id: String,
    /// The name of the key when it was used, or the name of the person today; `null` where there is none.
    name: Option<String>,
}

/// What was changed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditSubject {
    /// `application`, `campaign`, `category`, `channel`, `operator-key`, `organization` or `session`.
    kind: &'static str,
    /// Its id.
    id: String,
    /// The name of today of an application, an organization or a channel; `null` where there is none.
    name: Option<String>,
}

/// An entry of the audit log.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntryAnswer {
    /// Its id, which begins with its time.
    entry_id: AuditEntryId,
    /// When it was.
    created_date: String,
    /// Who it was.
    actor: AuditActor,
    /// What was done, as in `application.disable`.
    action: &'static str,
    /// What was changed.
    subject: AuditSubject,
    /// More about the change. Which fields there are depends on the action.
    details: BTreeMap<String, Value>,
    /// The `X-Request-Id` of the answer to the request; `null` for a command.
    request_id: Option<String>,
}

impl From<AuditEntry> for AuditEntryAnswer {
    fn from(entry: AuditEntry) -> Self {
        let given = |name: String| Some(name).filter(|name| !name.is_empty());
        let (name, subject_name) = (given(entry.actor_name), given(entry.subject_name));
        Self {
            entry_id: entry.entry_id,
            created_date: entry.created_at.rfc3339(),
            actor: AuditActor { kind: entry.actor_kind.name(), id: entry.actor_id, name },
            action: entry.action.name(),
            subject: AuditSubject {
                kind: entry.subject_kind.name(),
                id: entry.subject_id,
                name: subject_name,
            },
            details: serde_json::from_str(&entry.details).unwrap_or_default(),
            request_id: Some(entry.request_id).filter(|id| !id.is_empty()),
        }
    }
}

pub(crate) const LIST: Summary =
    Summary::new("listAuditLog", "Who changed what, newest first", "감사 로그 조회");

/// `GET /platform/v1/audit-log`: who changed what over the platform API, on the operator pages and in the
/// developer center, newest first; for 400 days.
pub async fn list(
    _: Administrator,
    State(web): State<Web>,
    Query(query): Query<AuditQuery>,
) -> Answer<NextData<AuditEntryAnswer>> {
    let AuditQuery { filter, size, next } = query;
    let page = web.service().audit_log(filter, size, next.as_deref()).await?;
    Ok(Success(NextData::new(page.items.into_iter().map(AuditEntryAnswer::from).collect(), page.next)))
}
