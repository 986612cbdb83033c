//! The webhook attempts of a sandbox: each is recorded, and a move of the clock learns which were made.

use std::sync::Arc;

use domain::ClaimId;
use domain::delivery::{Next, Outcome};
use serde_json::{Map, Value};
use service::attempt_faults::{AttemptFault, AttemptFaultPoint, SentAttempt};
use service::deliveries::Attempt;

use crate::fault::{Effect, Facts, Subject};
use crate::log::{NewRecord, RecordKind};
use crate::sandbox::Sandbox;

/// The fault point of webhook attempts.
#[derive(Debug)]
struct DeliveryPoint(Sandbox);

impl Sandbox {
    /// The fault point of the webhook attempts of this sandbox's node, also of those of listeners.
    pub fn webhook_faults(&self) -> Arc<dyn AttemptFaultPoint> {
        Arc::new(DeliveryPoint(self.clone()))
    }
}

impl AttemptFaultPoint for DeliveryPoint {
    fn fault(&self, attempt: &Attempt) -> Option<(String, AttemptFault)> {
        let Attempt { key, client_id, claim_id, .. } = attempt;
        let (client_id, webhook_id) = (client_id.as_str(), key.webhook_id.as_str());
        let claim_id = claim_id.as_ref().map(ClaimId::as_str);
        let subject = Subject::Attempt { webhook_id, claim_id };
        let facts = Facts { client_id: Some(client_id), user: None, subject };
        let (rule, fault) = self.0.faults().decide_attempt(facts)?;
        let fields = [
            ("fault", rule.as_str().into()),
            ("do", Effect::Attempt(fault).to_json()),
            ("clientId", client_id.into()),
            ("webhookId", webhook_id.into()),
            ("messageId", key.message_id.as_str().into()),
            ("number", key.number.into()),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.0.log().add(NewRecord { at: self.0.clock().now(), kind: RecordKind::Fault, fields });
        Some((rule, fault))
    }

    fn attempted(&self, attempt: SentAttempt) {
        let fields = fields(&attempt);
        self.0.log().add(NewRecord { at: attempt.began_at, kind: RecordKind::Delivery, fields });
        self.0.made_attempts().add(attempt);
    }
}

/// The fields of a record. The message's secret is not among them.
fn fields(attempt: &SentAttempt) -> Map<String, Value> {
    let SentAttempt { key, client_id, claim_id, url, duration_ms, outcome, next, fault, is_copy, .. } =
        attempt;
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
    put("messageId", key.message_id.as_str().into());
    put("webhookId", key.webhook_id.as_str().into());
    put("clientId", client_id.as_str().into());
    if let Some(claim_id) = claim_id {
        put("claimId", claim_id.as_str().into());
    }
    put("number", key.number.into());
    if let Some(url) = url {
        put("url", url.as_str().into());
    }
    match outcome {
        Outcome::Answered { status, .. } => put("status", (*status).into()),
        Outcome::Failed(failure) => put("failure", failure.name().into()),
    }
    put("durationMs", (*duration_ms).into());
    match next {
        Some(Next::Done) => put("next", "delivered".into()),
        Some(Next::Again(at)) => {
            put("next", "retry".into());
            put("nextAttempt", at.rfc3339().into());
        }
        Some(Next::Dead) => put("next", "dead".into()),
        Some(Next::Gone) => put("next", "gone".into()),
        None => {}
    }
    if let Some(rule) = fault {
        put("fault", rule.as_str().into());
    }
    if *is_copy {
        put("copy", true.into());
    }
    fields
}
