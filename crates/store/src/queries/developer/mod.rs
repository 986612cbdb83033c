//! What people own and manage: their applications, their organizations, their requests to the operator.

pub mod application_load;
pub mod application_offers;
pub mod application_usage;
pub mod organization_invitations;
pub mod organization_members;
pub mod owned_applications;
pub mod review_requests;
