//! The webhook sender of a node with the role jobs, from start to stop.

use std::sync::Arc;
use std::time::Duration;

use jobs::webhooks::{Client, ClientConfig, ConnectionProber, Sender, Settler, WebhookMetrics};
use service::Service;
use service::connection_tests::Prober;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Makes the connections of tests.
///
/// # Errors
/// A sentence for the operator: TLS is not available.
pub(crate) fn prober(service: &Service) -> Result<Arc<dyn Prober>, String> {
    let reach = service.webhook_settings().reach;
    let prober = ConnectionProber::new(ClientConfig::system(reach, service.clock().clone(), 0));
    let prober = prober.map_err(|error| format!("connections cannot be tested: {error}"))?;
    Ok(Arc::new(prober))
}

/// A running sender. Dropping it aborts its attempts.
pub(crate) struct Webhooks {
    metrics: Arc<WebhookMetrics>,
    settler: Settler,
    stop: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Webhooks {
    /// Starts the sender, with a maximum number of concurrent attempts.
    ///
    /// # Errors
    /// A sentence for the operator: TLS is not available.
    pub fn start(service: &Service, attempts_at_once: usize) -> Result<Self, String> {
        let reach = service.webhook_settings().reach;
        let client = Client::new(ClientConfig::system(reach, service.clock().clone(), attempts_at_once));
        let client = client.map_err(|error| format!("webhooks cannot be sent: {error}"))?;
        let metrics = Arc::new(WebhookMetrics::default());
        let (stop, stopping) = watch::channel(false);
        let sender = Sender::new(service.clone(), client, attempts_at_once, metrics.clone(), stopping);
        let settler = sender.settler();
        let mut running = JoinSet::new();
        running.spawn(sender.run());
        Ok(Self { metrics, settler, stop, running })
    }

    /// The counters.
    pub fn metrics(&self) -> Arc<WebhookMetrics> {
        self.metrics.clone()
    }

    /// Asks the sender to make the attempts that are due.
    pub fn settler(&self) -> Settler {
        self.settler.clone()
    }

    /// Takes no more messages, and waits up to `grace` for running attempts. An aborted attempt is repeated
    /// under the same id when its lease has ended.
    pub async fn stop(mut self, grace: Duration) {
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(grace, self.running.join_next()).await;
    }
}
