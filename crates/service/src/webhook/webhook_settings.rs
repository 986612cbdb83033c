//! The settings of webhooks.

use domain::outbound::Reach;
use domain::webhook::HEADER_PREFIX;

/// The settings of webhooks. They are the same on every node of a service.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// The allowed addresses besides public ones.
    pub reach: Reach,
    /// The prefix of header names.
    pub header_prefix: String,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { reach: Reach::PUBLIC, header_prefix: HEADER_PREFIX.to_owned() }
    }
}
