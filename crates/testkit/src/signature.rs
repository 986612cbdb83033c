//! The check of a signature, as a receiver makes it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::Received;

impl Received {
    /// Whether the signature is that of id, timestamp and raw body under this secret
    /// (`docs/webhooks.md#the-signature`).
    ///
    /// # Panics
    /// When one of the headers is missing.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let header = |name: &str| self.header(&format!("Service-Event-Message-{name}"));
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("any key will do");
        [header("Id").as_bytes(), header("Timestamp").as_bytes(), &self.body]
            .iter()
            .for_each(|part| mac.update(part));
        let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        header("Signature") == format!("sha256={hex}")
    }
}
