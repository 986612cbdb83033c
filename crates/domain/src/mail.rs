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
    /// An operator issued a link with which the person chooses a new password.
    PasswordResetIssued,
    /// The password was changed.
    PasswordChanged,
    /// The second step of the sign-in was turned on.
    TwoFactorOn,
    /// The second step of the sign-in was turned off.
    TwoFactorOff,
    /// The recovery codes of the second step were replaced.
    RecoveryCodesRenewed,
    /// The link that proves an address.
    EmailProof,
    /// The account has another address, or none. Goes to the former one.
    EmailChanged,
    /// A provider was linked to the account.
    ProviderLinked,
    /// A provider was unlinked.
    ProviderUnlinked,
    /// The person made an operator key.
    OperatorKeyMade,
    /// The person changed the operator role of somebody.
    OperatorRoleChanged,
    /// The person made a client secret.
    ClientSecretMade,
    /// The person made a signing secret of a webhook.
    WebhookSecretMade,
    /// The person offered an application to another person, or gave it another owner.
    ApplicationOffered,
    /// The person invited another person into an organization, or changed or removed a member.
    MemberChanged,
    /// The stream key was shown on a page.
    StreamKeyShown,
    /// The stream key was replaced.
    StreamKeyReplaced,
    /// The person allowed an application to read the stream key.
    StreamKeyAllowed,
}

impl MailKind {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PasswordReset => "password_reset",
            Self::PasswordResetIssued => "password_reset_issued",
            Self::PasswordChanged => "password_changed",
            Self::TwoFactorOn => "two_factor_on",
            Self::TwoFactorOff => "two_factor_off",
            Self::RecoveryCodesRenewed => "recovery_codes_renewed",
            Self::EmailProof => "email_proof",
            Self::EmailChanged => "email_changed",
            Self::ProviderLinked => "provider_linked",
            Self::ProviderUnlinked => "provider_unlinked",
            Self::OperatorKeyMade => "operator_key_made",
            Self::OperatorRoleChanged => "operator_role_changed",
            Self::ClientSecretMade => "client_secret_made",
            Self::WebhookSecretMade => "webhook_secret_made",
            Self::ApplicationOffered => "application_offered",
            Self::MemberChanged => "member_changed",
            Self::StreamKeyShown => "stream_key_shown",
            Self::StreamKeyReplaced => "stream_key_replaced",
            Self::StreamKeyAllowed => "stream_key_allowed",
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
    /// The name of the person's channel, without control characters; empty for an unproven address, so that
    /// nobody writes to others with it.
    pub name: String,
    /// The accounts of the address, with a link each, where there can be several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<MailAccount>,
}

/// An account in a message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MailAccount {
    /// The login.
    pub login: String,
    /// Where its person goes on.
    pub link: String,
}

/// A name as one line without control and direction characters, for a message.
pub fn flat_name(name: &str) -> String {
    let is_flat =
        |c: char| !c.is_control() && !matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let flat: String = name.chars().map(|c| if is_flat(c) { c } else { ' ' }).collect();
    flat.trim().to_owned()
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
            accounts: Vec::new(),
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
    fn a_name_in_a_message_is_one_line() {
        assert_eq!(flat_name("하늘\r\nBcc: a@b.co"), "하늘  Bcc: a@b.co");
        assert_eq!(flat_name("\u{202E}a\u{0}b\u{2028}"), "a b");
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
