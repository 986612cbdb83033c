//! Applications, organizations, people and their credentials.

pub mod application_life;
pub mod application_secrets;
pub mod application_switch;
pub mod applications;
pub mod consents;
pub(crate) mod credential_cache;
pub mod credentials;
pub(crate) mod last_used;
pub mod notices;
pub mod organizations;
pub(crate) mod password;
pub mod sign_in;
pub mod tokens;
pub(crate) mod warned_applications;
