//! The owners of session URLs, so that fault rules and records know the caller of a handshake and of a poll.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use domain::secret::SecretHash;
use domain::session::SessionOwner;
use service::Service;

/// Maximum number of remembered URLs.
const REMEMBERED_MAX: usize = 1_000;
/// The parameter of a session URL that holds its token.
const TOKEN: &str = "auth";

/// The owners of the session URLs that were used last.
#[derive(Debug, Default)]
pub(crate) struct UrlOwners(Mutex<VecDeque<(SecretHash, SessionOwner)>>);

impl UrlOwners {
    /// The owner of the session URL with this query.
    pub async fn find(&self, service: &Service, query: &str) -> Option<SessionOwner> {
        let (_, token) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == TOKEN)?;
        let hash = SecretHash::of(&token);
        let known = self.with(|owners| {
            owners.iter().rev().find(|(known, _)| *known == hash).map(|(_, owner)| owner.clone())
        });
        if known.is_some() {
            return known;
        }
        let owner = service.session_url_owner(&token).await.ok().flatten()?;
        self.with(|owners| {
            if owners.len() >= REMEMBERED_MAX {
                owners.pop_front();
            }
            owners.push_back((hash, owner.clone()));
        });
        Some(owner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut VecDeque<(SecretHash, SessionOwner)>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
