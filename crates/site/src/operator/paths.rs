//! The addresses of the operator pages.

pub(super) const OVERVIEW: &str = "/operator";
pub(super) const REQUESTS: &str = "/operator/requests";
pub(super) const REQUEST: &str = "/operator/requests/{requestId}";
pub(super) const APPLICATIONS: &str = "/operator/applications";
pub(super) const APPLICATION: &str = "/operator/applications/{clientId}";
pub(super) const APPLICATION_SECRET: &str = "/operator/applications/{clientId}/secrets/{secretId}";
pub(super) const PEOPLE: &str = "/operator/people";
pub(super) const PERSON: &str = "/operator/people/{channelId}";
pub(super) const ROLE: &str = "/operator/people/{channelId}/role";
pub(super) const ORGANIZATIONS: &str = "/operator/organizations";
pub(super) const ORGANIZATION: &str = "/operator/organizations/{organizationId}";
pub(super) const WEBHOOKS: &str = "/operator/webhooks";
pub(super) const WEBHOOK: &str = "/operator/webhooks/{clientId}";
pub(super) const KEYS: &str = "/operator/keys";
pub(super) const KEY: &str = "/operator/keys/{keyId}";
pub(super) const AUDIT: &str = "/operator/audit";

/// Items of a page of a list.
pub(super) const PAGE_SIZE: i64 = 20;
