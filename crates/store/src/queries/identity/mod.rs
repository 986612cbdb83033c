//! Applications, people's consents and sign-ins, and their credentials.

pub mod accounts;
pub mod application_admin;
pub mod application_life;
pub mod application_logos;
pub mod application_search;
pub mod application_secrets;
pub mod applications;
pub mod browser_sessions;
pub mod connected_applications;
pub mod consents;
pub mod credential_changes;
pub mod form_drafts;
pub mod operator_keys;
pub mod operators;
pub mod organizations;
pub mod password_resets;
pub mod pending_sign_ins;
pub mod tokens;
pub mod two_factors;
pub mod upstreams;
