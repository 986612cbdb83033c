//! One attempt to send a message to a webhook: its key, its bytes and their signature.

use std::sync::Arc;

use domain::delivery::signature;
use domain::secret::WebhookSecret;
use domain::webhook::{self, MessageKind};
use domain::{ClaimId, ClientId, DeliveryId, Timestamp, WebhookId};

/// One attempt to send a message, signed and ready. The lease of the message ends 15 seconds after the
/// attempt was taken. The sender must get an answer or give up before the lease ends. `Debug` shows
/// neither address nor content.
#[derive(Clone)]
pub struct Attempt {
    /// The key of the attempt, for [`Service::record_attempts`](crate::Service::record_attempts).
    pub key: AttemptKey,
    /// The application.
    pub client_id: ClientId,
    /// The claim that the message reports; `None` for a test message.
    pub claim_id: Option<ClaimId>,
    /// The address. `None` if a listener fetches the message. The address was checked when it was
    /// registered, perhaps under another configuration.
    pub url: Option<String>,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The bytes that were signed.
    pub body: Vec<u8>,
    /// The time in the headers and in the body.
    pub signed_at: Timestamp,
    signer: Arc<Signer>,
    data: String,
}

/// The headers and the body of an attempt.
type SignedParts = (Vec<(String, String)>, Vec<u8>);

/// Makes and signs the attempts of one webhook.
pub(crate) struct Signer {
    pub secret: WebhookSecret,
    pub header_prefix: String,
}

impl Signer {
    /// Makes an attempt for an application, about a claim, to an address; `None` if the data is not JSON.
    pub fn attempt(
        self: &Arc<Self>,
        key: AttemptKey,
        (client_id, claim_id, url): (ClientId, Option<ClaimId>, Option<String>),
        signed_at: Timestamp,
        data: String,
    ) -> Option<Attempt> {
        let kind = MessageKind::about(claim_id.as_ref());
        let (headers, body) = self.sign(kind, &key, signed_at, &data)?;
        let signer = self.clone();
        Some(Attempt { key, client_id, claim_id, url, headers, body, signer, signed_at, data })
    }

    /// The headers and the body of an attempt; `None` if the data is not JSON.
    fn sign(&self, kind: MessageKind, key: &AttemptKey, at: Timestamp, data: &str) -> Option<SignedParts> {
        let body = webhook::body(kind, &key.message_id, at, data)?.into_bytes();
        let signature = signature(&self.secret, &key.message_id, at, &body);
        let headers = webhook::headers(&self.header_prefix, kind, &key.message_id, at, signature, key.number);
        Some((headers, body))
    }
}

impl Attempt {
    /// What the message reports.
    pub const fn kind(&self) -> MessageKind {
        MessageKind::about(self.claim_id.as_ref())
    }

    /// The same attempt, made and signed as if it were sent earlier, for the faults of a sandbox.
    pub fn backdated(self, by_ms: i64) -> Self {
        let signed_at = self.signed_at.plus_ms(-by_ms);
        // The data was JSON before.
        let signed = self.signer.sign(self.kind(), &self.key, signed_at, &self.data);
        let (headers, body) = signed.unwrap_or_default();
        Self { headers, body, signed_at, ..self }
    }
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The key of an attempt of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptKey {
    /// The webhook of the message.
    pub webhook_id: WebhookId,
    /// The message.
    pub message_id: DeliveryId,
    /// The number of the attempt, from 1 on.
    pub number: i64,
    /// The number of earlier failed attempts since the message was last scheduled.
    pub failures: i64,
}
