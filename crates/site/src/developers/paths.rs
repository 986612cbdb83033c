//! The addresses of the developer center.

/// The list.
pub(super) const DEVELOPERS: &str = "/developers";
/// The field that takes any id.
pub(super) const FIND: &str = "/developers/find";
/// The form that registers an application.
pub(super) const REGISTER: &str = "/developers/register";
/// One application.
pub(super) const APPLICATION: &str = "/developers/applications/{clientId}";
pub(super) const SETTINGS: &str = "/developers/applications/{clientId}/settings";
pub(super) const LOGO: &str = "/developers/applications/{clientId}/logo";
pub(super) const SCOPES: &str = "/developers/applications/{clientId}/scopes";
pub(super) const DROPS: &str = "/developers/applications/{clientId}/drops";
pub(super) const REQUEST: &str = "/developers/applications/{clientId}/requests/{requestId}";
pub(super) const SECRETS: &str = "/developers/applications/{clientId}/secrets";
pub(super) const SECRET: &str = "/developers/applications/{clientId}/secrets/{secretId}";
pub(super) const LEAK: &str = "/developers/applications/{clientId}/leak";
pub(super) const APP_SESSIONS: &str = "/developers/applications/{clientId}/sessions";
pub(super) const APP_SESSION: &str = "/developers/applications/{clientId}/sessions/{sessionKey}";
pub(super) const APP_USAGE: &str = "/developers/applications/{clientId}/usage";
/// The webhook, its test, its secrets and its messages.
pub(super) const WEBHOOK: &str = "/developers/applications/{clientId}/webhook";
pub(super) const WEBHOOK_TEST: &str = "/developers/applications/{clientId}/webhook/test";
pub(super) const WEBHOOK_REMOVAL: &str = "/developers/applications/{clientId}/webhook/removal";
pub(super) const WEBHOOK_SECRETS: &str = "/developers/applications/{clientId}/webhook/secrets";
pub(super) const WEBHOOK_SECRET: &str = "/developers/applications/{clientId}/webhook/secrets/{secretId}";
pub(super) const DELIVERIES: &str = "/developers/applications/{clientId}/webhook/deliveries";
pub(super) const DELIVERY: &str = "/developers/applications/{clientId}/webhook/deliveries/{messageId}";
/// The connection test.
pub(super) const CONNECTION: &str = "/developers/applications/{clientId}/connection";
pub(super) const MANAGE: &str = "/developers/applications/{clientId}/manage";
pub(super) const DISABLED: &str = "/developers/applications/{clientId}/disabled";
pub(super) const OWNER: &str = "/developers/applications/{clientId}/owner";
pub(super) const OFFER: &str = "/developers/applications/{clientId}/offer";
pub(super) const DELETED: &str = "/developers/applications/{clientId}/deleted";
/// The form that answers the offer of an application.
pub(super) const OFFERED: &str = "/developers/offers/{clientId}";
/// The form that makes an organization.
pub(super) const NEW_ORGANIZATION: &str = "/developers/new-organization";
/// One organization.
pub(super) const ORGANIZATION: &str = "/developers/organizations/{organizationId}";
pub(super) const VERIFICATION: &str = "/developers/organizations/{organizationId}/verification";
pub(super) const ORGANIZATION_REQUEST: &str =
    "/developers/organizations/{organizationId}/requests/{requestId}";
pub(super) const INVITATIONS: &str = "/developers/organizations/{organizationId}/invitations";
pub(super) const INVITATION: &str = "/developers/organizations/{organizationId}/invitation";
/// The form that declines every invitation.
pub(super) const DECLINED: &str = "/developers/invitations";
pub(super) const MEMBER: &str = "/developers/organizations/{organizationId}/members/{channelId}";
/// Who changed an application.
pub(super) const APP_HISTORY: &str = "/developers/applications/{clientId}/history";
/// Who changed an organization.
pub(super) const ORGANIZATION_HISTORY: &str = "/developers/organizations/{organizationId}/history";
