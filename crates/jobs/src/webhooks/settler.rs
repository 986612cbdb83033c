//! Asks a sender to make the attempts that are due.

use tokio::sync::{mpsc, oneshot};

/// Asks a sender to make the attempts that are due. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Settler(mpsc::Sender<oneshot::Sender<()>>);

impl Settler {
    /// A handle, and the calls that it makes.
    pub(super) fn new() -> (Self, mpsc::Receiver<oneshot::Sender<()>>) {
        let (calls, received) = mpsc::channel(1);
        (Self(calls), received)
    }

    /// Makes every attempt that is due now. Returns when the results are recorded, or the sender has stopped.
    pub async fn settle(&self) {
        let (done, settled) = oneshot::channel();
        if self.0.send(done).await.is_ok() {
            // An error means that the sender has stopped.
            let _ = settled.await;
        }
    }
}
