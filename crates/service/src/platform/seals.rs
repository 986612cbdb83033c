//! The change of the service key: secrets that the other key has sealed are sealed with the key of the
//! service.

use domain::seal::{Opener, Renewal, ServiceKey};
use domain::{ChannelId, WebhookId};
use store::Tx;
use store::queries::seals::SealedSecret;

pub use store::queries::seals::SealedKind;

use crate::channel::broadcast_settings;
use crate::identity::two_factor;
use crate::webhook::webhooks;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// Secrets that are looked at in one transaction.
pub const SEALS_AT_ONCE: i64 = 100;

/// What a look at sealed secrets has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SealsSeen {
    /// Secrets that were sealed again.
    pub renewed: u64,
    /// Secrets that no key opens.
    pub lost: u64,
    /// After which secret to go on; `None` when all were seen.
    pub next: Option<String>,
}

impl Service {
    /// Whether another service key opens too, because the key is being changed.
    pub fn has_other_key(&self) -> bool {
        self.key().has_other()
    }

    /// Looks at some secrets of a kind, after one, and seals again what the other key has sealed.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn renew_seals(&self, kind: SealedKind, after: &str) -> Result<SealsSeen, Error> {
        let after = after.to_owned();
        let found = self
            .read(async move |tx: &mut Tx| {
                Ok::<_, Error>(tx.sealed_secrets(kind, &after, SEALS_AT_ONCE).await?)
            })
            .await?;
        let mut seen = SealsSeen::default();
        if i64::try_from(found.len()).is_ok_and(|count| count == SEALS_AT_ONCE) {
            seen.next = found.last().map(|secret| secret.id.clone());
        }
        let mut renewals = Vec::new();
        for secret in found {
            match self.key().renew(&subject(kind, &secret), &secret.sealed, self.random(Purpose::Nonce)) {
                Renewal::Current => {}
                Renewal::Renewed(renewed) => renewals.push((secret, renewed)),
                Renewal::Lost => seen.lost += 1,
            }
        }
        if !renewals.is_empty() {
            seen.renewed = self
                .write(async move |work: &mut Work<'_>| {
                    let mut renewed = 0;
                    for (secret, seal) in &renewals {
                        renewed += u64::from(work.renew_seal(kind, secret, seal).await?);
                    }
                    Ok::<_, Error>(renewed)
                })
                .await?;
        }
        Ok(seen)
    }
}

/// The key that opens a secret.
pub(crate) fn opener(key: &ServiceKey, kind: SealedKind, secret: &SealedSecret) -> Option<Opener> {
    key.opener(&subject(kind, secret), &secret.sealed)
}

/// What a secret is sealed for.
fn subject(kind: SealedKind, secret: &SealedSecret) -> String {
    let owner = secret.owner.clone();
    match kind {
        SealedKind::StreamKey => broadcast_settings::subject(&ChannelId::stored(owner)),
        SealedKind::WebhookSecret => webhooks::subject(&WebhookId::stored(owner)),
        SealedKind::TwoFactor => two_factor::subject(&ChannelId::stored(owner)),
    }
}
