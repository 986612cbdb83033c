//! Counts the requests of applications, and keeps those that were refused, for their people.

use std::sync::Arc;

use domain::usage::UsageKind;
use domain::{ChannelId, ClientId, Reason};
use http::StatusCode;
use service::application_usage::{ApplicationUsage, RefusedRequest};

use crate::{RequestId, Web};

/// The application whose request is answered.
#[derive(Debug)]
pub(crate) struct CountedRequest {
    /// The application.
    pub client_id: ClientId,
    /// The user of the token, if it is a user-mode call.
    pub channel_id: Option<ChannelId>,
    /// What the request is counted as.
    pub kind: UsageKind,
    /// Its counters, if there is room.
    pub usage: Option<Arc<ApplicationUsage>>,
}

/// An answer to a request of an application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome<'a> {
    /// The id of the request.
    pub request_id: Option<RequestId>,
    /// The pattern of its route, and the method.
    pub route: (&'static str, &'static str),
    /// The status of the answer.
    pub status: StatusCode,
    /// Why it was refused.
    pub reason: Option<&'a Reason>,
}

impl CountedRequest {
    /// Counts the request. A refused or failed one is kept.
    pub(crate) fn answered(&self, web: &Web, outcome: Outcome<'_>) {
        let is_refused = outcome.status.is_client_error() || outcome.status.is_server_error();
        if let Some(usage) = &self.usage {
            usage.count(self.kind, is_refused);
        }
        if !is_refused {
            return;
        }
        let (route, method) = outcome.route;
        let request = RefusedRequest {
            request_id: outcome.request_id.map(|id| id.to_string()).unwrap_or_default(),
            at: web.service().clock().now(),
            method,
            route,
            status: outcome.status.as_u16(),
            reason: outcome.reason.map(Reason::to_string).unwrap_or_default(),
            channel_id: self.channel_id.clone(),
        };
        web.service().note_refused_request(&self.client_id, request);
    }
}
