//! What people own and manage by themselves: applications, organizations, requests to the operator.

pub(crate) mod application_fate;
pub mod application_offers;
pub mod application_sessions;
pub mod application_usage;
pub(crate) mod developer_settings;
pub mod find_by_id;
pub mod organization_invitations;
pub mod organization_members;
pub mod owned_applications;
pub mod registration;
pub mod review_requests;
pub(crate) mod usage_counters;
