//! The header with the date on which an unused application will be deleted
//! (`docs/spec/authorization.md#unused-applications`).

use std::sync::{Arc, OnceLock};

use domain::{ClientId, Timestamp};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Web;

/// RFC 3339, UTC. From the first warning on, every answer to the application or one of its users has this
/// header.
pub(crate) const DELETES_AT: HeaderName = HeaderName::from_static("stagedoor-deletes-at");

/// The deletion date of the application that makes a request, if the application was warned. `finish` adds it
/// to every request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion(Arc<OnceLock<Timestamp>>);

impl Deletion {
    /// Looks the application of a request up.
    pub(crate) fn note(&self, web: &Web, client_id: &ClientId) {
        if let Some(at) = web.service().deletes_at(client_id) {
            // The date is set once, because a request has one application.
            let _ = self.0.set(at);
        }
    }

    /// Writes the header, if there is a deletion date.
    pub(crate) fn describe(&self, headers: &mut HeaderMap) {
        let value = self.0.get().and_then(|at| HeaderValue::try_from(at.rfc3339()).ok());
        if let Some(value) = value {
            headers.insert(DELETES_AT, value);
        }
    }
}
