//! The two applications of the seeded world.

use domain::scope::{Scope, ScopeSet};

/// The organization of the second application.
pub(super) const ORGANIZATION: &str = "sandbox-games";
const REDIRECT_URIS: [&str; 2] = ["http://127.0.0.1:9999/callback", "http://localhost:9999/callback"];

/// A seeded application.
pub(super) struct SeededApplication {
    pub client_id: &'static str,
    pub organization: Option<&'static str>,
    drops: bool,
}

pub(super) const APPLICATIONS: [SeededApplication; 2] = [
    SeededApplication { client_id: "demo", organization: None, drops: false },
    SeededApplication { client_id: "drops", organization: Some(ORGANIZATION), drops: true },
];

impl SeededApplication {
    pub(super) fn redirect_uris(&self) -> &'static [&'static str] {
        &REDIRECT_URIS
    }

    pub(super) fn scopes(&self) -> ScopeSet {
        ScopeSet::of_users().iter().chain(self.drops.then_some(Scope::Drops)).collect()
    }
}
