//! Applications, organizations, people and their credentials.

mod account_removal;
pub(crate) mod account_settings;
pub mod accounts;
pub mod application_life;
pub mod application_secrets;
pub mod application_switch;
pub mod applications;
pub mod browser_sessions;
pub mod confirmations;
pub mod consents;
pub(crate) mod credential_cache;
pub mod credentials;
pub mod email_proofs;
pub(crate) mod last_used;
pub mod leaked_credentials;
pub mod mail;
pub mod notices;
pub mod operator_keys;
pub mod operators;
pub mod organizations;
pub(crate) mod password;
pub mod password_resets;
pub mod sign_in;
pub mod tokens;
pub mod two_factor;
pub mod upstream;
pub(crate) mod warned_applications;
