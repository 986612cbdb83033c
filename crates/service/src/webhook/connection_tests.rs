//! Connection tests of an application. The crate that sends webhooks makes the connections.

use std::fmt;

use domain::delivery::signature;
use domain::outbound::WebhookUrl;
use domain::probe::{ProbeRequest, ProbeTarget, Probed};
use domain::webhook::{self, MessageKind};
use domain::{ChannelId, ClientId, DeliveryId};
use futures_util::future::BoxFuture;
use store::Tx;

use crate::webhook::webhooks::webhook_of;
use crate::{Error, Purpose, Service};

/// A test of the same application or person runs or has just ended, or too many others run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProberBusy;

/// Makes the connections of tests, only to judged addresses.
pub trait Prober: fmt::Debug + Send + Sync {
    /// Tests every target at once. The results are in the order of the targets, and of the requests of each.
    fn test(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        targets: Vec<ProbeTarget>,
    ) -> BoxFuture<'static, Result<Vec<Vec<Probed>>, ProberBusy>>;
}

impl Service {
    /// The target that tests the webhook of an application: a good test message, and one with a wrong
    /// signature. Neither is in the outbox. `None` where the webhook has no address, or its secret was sealed
    /// with another service key.
    ///
    /// # Errors
    /// [`NotFound`](domain::Refusal::NotFound) when the application has no webhook; `Invalid` when its
    /// address is not allowed any more.
    pub async fn webhook_probe(&self, client_id: &ClientId) -> Result<Option<ProbeTarget>, Error> {
        let (client, now) = (client_id.clone(), self.now());
        let (webhook, sealed) = self
            .read(async move |tx: &mut Tx| {
                let webhook = webhook_of(tx, &client).await?;
                let sealed = tx.signing_secret(&webhook.webhook_id, now).await?;
                Ok::<_, Error>((webhook, sealed))
            })
            .await?;
        let Some(url) = webhook.url.as_deref() else { return Ok(None) };
        let url = WebhookUrl::parse(url, self.webhook_settings().reach)?;
        let secret = sealed.and_then(|sealed| self.open_webhook_secret(&webhook.webhook_id, &sealed));
        let Some(secret) = secret else { return Ok(None) };
        let request = |is_good: bool| {
            let id = DeliveryId::generate(now, self.random(Purpose::Webhook));
            let data = webhook::test_data(client_id, now);
            let body = webhook::body(MessageKind::Test, &id, now, &data)?.into_bytes();
            let signed = signature(&secret, &id, now, &body);
            let signed = if is_good { signed } else { wrong_signature(&signed) };
            let prefix = &self.webhook_settings().header_prefix;
            let headers = webhook::headers(prefix, MessageKind::Test, &id, now, signed, 1);
            Some(ProbeRequest::Post { headers, body })
        };
        let requests = [true, false].into_iter().filter_map(request).collect();
        Ok(Some(ProbeTarget { url, requests }))
    }
}

/// A signature of the same form with another last digit.
fn wrong_signature(signature: &str) -> String {
    let mut wrong = signature.to_owned();
    let last = wrong.pop();
    wrong.push(if last == Some('0') { '1' } else { '0' });
    wrong
}
