//! The messages that the operator's mail hook sends as e-mail: headers and body (`docs/accounts.md#mail`).
//! They are signed like the messages to webhooks.

use serde::{Deserialize, Serialize};

use crate::delivery::signature;
use crate::limits::MAIL_RETRY_MS;
use crate::outbound::{Reach, WebhookUrl};
use crate::secret::WebhookSecret;
use crate::{DeliveryId, Language, Timestamp};

/// The value of the header `-Data-Type`.
pub const MAIL: &str = "mail";
/// The version of the body.
pub const VERSION: &str = "1";

/// Where messages to people go. `Debug` shows no secret.
#[derive(Clone)]
pub struct MailHook {
    /// The address of the hook.
    pub url: WebhookUrl,
    /// Signs the messages.
    pub secret: WebhookSecret,
}

impl std::fmt::Debug for MailHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MailHook({})", self.url.origin())
    }
}

impl MailHook {
    /// The addresses that a hook may have besides public ones: it is the operator's own.
    pub const REACH: Reach = Reach { loopback: true, private: true };
}

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// The link with which a person chooses a new password.
    PasswordReset,
    /// The password was changed.
    PasswordChanged,
    /// The second step of the sign-in was turned on.
    TwoFactorOn,
    /// The second step of the sign-in was turned off.
    TwoFactorOff,
}

impl MailKind {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PasswordReset => "password_reset",
            Self::PasswordChanged => "password_changed",
            Self::TwoFactorOn => "two_factor_on",
            Self::TwoFactorOff => "two_factor_off",
        }
    }
}

/// A message to a person. The store holds it sealed, because its link is a secret. It does not print.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mail {
    /// What it is about.
    pub kind: MailKind,
    /// The address.
    pub to: String,
    /// `ko` or `en`.
    pub language: String,
    /// Where the person goes on; `None` where there is nothing to do.
    pub link: Option<String>,
    /// The name of the person's channel.
    pub name: String,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mail({})", self.kind.name())
    }
}

impl Mail {
    /// The tag of a language.
    pub const fn language_tag(language: Language) -> &'static str {
        match language {
            Language::Korean => "ko",
            Language::English => "en",
        }
    }

    /// The body of one attempt. This text is signed.
    pub fn body(&self, id: &DeliveryId, timestamp: Timestamp) -> String {
        let timestamp = timestamp.rfc3339();
        let body = Body { version: VERSION, message_id: id.as_str(), timestamp: &timestamp, mail: self };
        // A struct of texts can always be serialized.
        serde_json::to_string(&body).unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    version: &'a str,
    message_id: &'a str,
    timestamp: &'a str,
    #[serde(flatten)]
    mail: &'a Mail,
}

/// The headers of an attempt with this number, which begins with 1.
pub fn headers(
    prefix: &str,
    secret: &WebhookSecret,
    id: &DeliveryId,
    timestamp: Timestamp,
    body: &str,
    number: i64,
) -> Vec<(String, String)> {
    let named = |name: &str, value: String| (format!("{prefix}{name}"), value);
    let mut headers = vec![
        named("Id", id.as_str().to_owned()),
        named("Timestamp", timestamp.rfc3339()),
        named("Signature", signature(secret, id, timestamp, body.as_bytes())),
        named("Type", "notification".to_owned()),
        named("Data-Type", MAIL.to_owned()),
        named("Version", VERSION.to_owned()),
        named("Data-Version", VERSION.to_owned()),
    ];
    if number > 1 {
        headers.push(named("Retry", (number - 1).to_string()));
    }
    headers
}

/// When a message is sent again whose attempt of this number failed at `now`; `None` when it is given up.
pub fn next_attempt(number: i64, now: Timestamp) -> Option<Timestamp> {
    let retry = usize::try_from(number - 1).ok().and_then(|retry| MAIL_RETRY_MS.get(retry))?;
    Some(now.plus_ms(*retry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_and_the_headers_are_as_documented() {
        let mail = Mail {
            kind: MailKind::PasswordReset,
            to: "a@b.co".into(),
            language: "ko".into(),
            link: Some("https://x.example/reset-password?token=t".into()),
            name: "하늘".into(),
        };
        let (id, at) = (DeliveryId::stored("id".into()), Timestamp::from_millis(1_784_385_132_345));
        let body = mail.body(&id, at);
        assert_eq!(
            body,
            r#"{"version":"1","messageId":"id","timestamp":"2026-07-18T14:32:12.345Z","kind":"password_reset","to":"a@b.co","language":"ko","link":"https://x.example/reset-password?token=t","name":"하늘"}"#
        );
        let secret = WebhookSecret::given(&"s".repeat(32)).expect("long enough");
        let headers = headers("X-", &secret, &id, at, &body, 2);
        let names: Vec<_> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "X-Id",
                "X-Timestamp",
                "X-Signature",
                "X-Type",
                "X-Data-Type",
                "X-Version",
                "X-Data-Version",
                "X-Retry"
            ]
        );
        assert!(headers[2].1.starts_with("sha256="));
        assert_eq!(format!("{mail:?}"), "Mail(password_reset)");
    }

    #[test]
    fn a_message_is_given_up_after_the_last_retry() {
        let now = Timestamp::from_millis(0);
        assert_eq!(next_attempt(1, now), Some(now.plus_ms(MAIL_RETRY_MS[0])));
        let last = i64::try_from(MAIL_RETRY_MS.len()).expect("few");
        assert!(next_attempt(last, now).is_some());
        assert_eq!(next_attempt(last + 1, now), None);
    }
}
