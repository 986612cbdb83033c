//! The sender of webhooks of a node with the role jobs, from start to stop.

use std::sync::Arc;
use std::time::Duration;

use jobs::webhooks::{Client, ClientConfig, Sender, WebhookMetrics};
use service::Service;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A sender that runs. Dropped, it ends in the middle of its attempts.
pub(crate) struct Webhooks {
    figures: Arc<WebhookMetrics>,
    stop: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Webhooks {
    /// Begins to send, with so many attempts at once.
    ///
    /// # Errors
    /// A sentence for the operator: there is no TLS.
    pub fn start(service: &Service, attempts_at_once: usize) -> Result<Self, String> {
        let reach = service.webhook_settings().reach;
        let client = Client::new(ClientConfig::system(reach, service.clock().clone(), attempts_at_once));
        let client = client.map_err(|error| format!("webhooks cannot be sent: {error}"))?;
        let figures = Arc::new(WebhookMetrics::default());
        let (stop, stopping) = watch::channel(false);
        let sender = Sender::new(service.clone(), client, attempts_at_once, figures.clone(), stopping);
        let mut running = JoinSet::new();
        running.spawn(sender.run());
        Ok(Self { figures, stop, running })
    }

    /// What it has done so far.
    pub fn figures(&self) -> Arc<WebhookMetrics> {
        self.figures.clone()
    }

    /// Takes nothing more, and gives what is under way so much time. What is cut off then is sent again, under the same
    /// ids, when its lease has ended.
    pub async fn stop(mut self, grace: Duration) {
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(grace, self.running.join_next()).await;
    }
}
