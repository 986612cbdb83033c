//! Webhook messages that a receiver must refuse.

use domain::delivery::signature;
use domain::outbound::{Reach, WebhookUrl};
use domain::secret::WebhookSecret;
use domain::webhook::{HEADER_PREFIX, body, headers};
use domain::{DeliveryId, Language, Timestamp};
use jobs::webhooks::{Client, ClientConfig, Outgoing};
use serde_json::Value;
use service::Clock;

use crate::failure::CommandFailure;

/// A secret that the receiver does not have.
const OTHER_SECRET: &str = "a-secret-that-the-receiver-does-not-have";
/// Older than receivers accept: they refuse what is more than five minutes off.
const OLD_MS: i64 = 10 * 60 * 1_000;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// It is signed with another secret.
    Signature,
    /// Its body is not the signed one.
    Body,
    /// It was signed ten minutes ago.
    Timestamp,
}

impl Forgery {
    /// The id of its message. Each has its own, because receivers skip an id that they have seen.
    fn message_id(self) -> &'static str {
        match self {
            Self::Signature => "019f75a4-5739-7128-b08a-000000000001",
            Self::Body => "019f75a4-5739-7128-b08a-000000000002",
            Self::Timestamp => "019f75a4-5739-7128-b08a-000000000003",
        }
    }
}

/// Sends forged messages to a receiver.
pub struct Forger {
    client: Client,
    clock: Clock,
    url: WebhookUrl,
    secret: WebhookSecret,
    other: WebhookSecret,
}

impl Forger {
    /// Messages to this address. `secret` is the secret that the receiver has.
    ///
    /// # Errors
    /// The address or the secret is wrong.
    pub fn new(url: &str, secret: &str) -> Result<Self, CommandFailure> {
        // The receiver runs on the developer's machine or network.
        let reach = Reach { loopback: true, private: true };
        let url = WebhookUrl::parse(url, reach).map_err(|invalid| {
            CommandFailure::Usage(format!("--webhook {url}: {}", invalid.message(Language::English)))
        })?;
        let parse = |text| WebhookSecret::given(text).map_err(|_| "the webhook has no secret".to_owned());
        let (secret, other, clock) = (parse(secret)?, parse(OTHER_SECRET)?, Clock::system());
        let client = Client::new(ClientConfig::system(reach, clock.clone(), 0));
        let client = client.map_err(|error| format!("TLS is not available: {error}"))?;
        Ok(Self { client, clock, url, secret, other })
    }

    /// Sends a forged message about this claim. Returns the status of the answer; `None` without one.
    pub async fn send(&self, forgery: Forgery, claim: &Value) -> Option<u16> {
        let (headers, body) = self.message(forgery, claim, self.clock.now())?;
        let outgoing = Outgoing::new(self.url.clone(), &headers, body.into_bytes())?;
        self.client.send(outgoing).await.ok().map(|answer| answer.status)
    }

    /// The headers and the body.
    fn message(
        &self,
        forgery: Forgery,
        claim: &Value,
        now: Timestamp,
    ) -> Option<(Vec<(String, String)>, String)> {
        let id = DeliveryId::stored(forgery.message_id().to_owned());
        let at = if forgery == Forgery::Timestamp { now.plus_ms(-OLD_MS) } else { now };
        let secret = if forgery == Forgery::Signature { &self.other } else { &self.secret };
        let signed = body(&id, at, &claim.to_string())?;
        let signature = signature(secret, &id, at, signed.as_bytes());
        let sent = if forgery == Forgery::Body { signed.replacen("CLAIMED", "FULFILLED", 1) } else { signed };
        Some((headers(HEADER_PREFIX, &id, at, signature, 1), sent))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_forgery_is_wrong_in_one_thing() {
        let text = "the-secret-of-the-receiver-in-this-test";
        let forger = Forger::new("http://127.0.0.1:9/hook", text).expect("a forger");
        let secret = WebhookSecret::given(text).expect("a secret");
        let now = Timestamp::from_millis(1_800_000_000_000);
        let claim = json!({ "fulfillmentState": "CLAIMED" });
        for (forgery, is_signed, is_old) in [
            (Forgery::Signature, false, false),
            (Forgery::Body, false, false),
            (Forgery::Timestamp, true, true),
        ] {
            let (headers, body) = forger.message(forgery, &claim, now).expect("a message");
            let header = |name: &str| {
                let found = headers.iter().find(|(header, _)| header.ends_with(name));
                found.map(|(_, value)| value.clone()).expect("a header")
            };
            let at = Timestamp::parse_rfc3339(&header("-Timestamp")).expect("a time");
            let id = DeliveryId::stored(header("-Id"));
            let good = signature(&secret, &id, at, body.as_bytes());
            assert_eq!((header("-Signature") == good, at < now), (is_signed, is_old), "{forgery:?}");
        }
    }
}
