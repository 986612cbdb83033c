//! The messages to people of a sandbox without a mail hook: each is recorded and logged, with its link.

use std::sync::Arc;

use domain::DeliveryId;
use domain::mail::Mail;
use jobs::mail::MailRecord;
use serde_json::Value;

use crate::log::{NewRecord, RecordKind};
use crate::sandbox::Sandbox;

/// Records the messages of a sandbox.
#[derive(Debug)]
struct RecordedMail(Sandbox);

impl Sandbox {
    /// Records the messages to people of this sandbox's node.
    pub fn mail_record(&self) -> Arc<dyn MailRecord> {
        Arc::new(RecordedMail(self.clone()))
    }
}

impl MailRecord for RecordedMail {
    fn record(&self, id: &DeliveryId, mail: &Mail) {
        let Mail { kind, to, language, link, name, accounts } = mail;
        let link = link.as_deref();
        tracing::info!(parent: None, "mail {} to {to}: {}", kind.name(), link.unwrap_or("-"));
        let fields = [
            ("mail", Value::from(kind.name())),
            ("messageId", id.as_str().into()),
            ("to", to.as_str().into()),
            ("language", language.as_str().into()),
            ("link", link.map_or(Value::Null, Value::from)),
            ("name", name.as_str().into()),
            ("accounts", serde_json::to_value(accounts).unwrap_or_default()),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.0.log().add(NewRecord { at: self.0.clock().now(), kind: RecordKind::Mail, fields });
    }
}
