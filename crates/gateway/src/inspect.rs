//! Details of a session that only its node knows.

use std::sync::Arc;

use domain::SessionKey;
use tokio::sync::oneshot;

use crate::Gateway;
use crate::http::Transport;
use crate::hub::Hub;
use crate::session::{Link, Session};
use crate::shard::Command;

impl Hub {
    /// A session of this node.
    async fn session(&self, key: &SessionKey) -> Option<Arc<Session>> {
        let (reply, answer) = oneshot::channel();
        self.send(key, Command::Find(key.clone(), reply)).await;
        answer.await.ok().flatten()
    }
}

impl Gateway {
    /// The transport of a session; `None` when it is not connected to this node, or not yet.
    pub async fn transport(&self, key: &SessionKey) -> Option<Transport> {
        let session = self.hub.session(key).await?;
        match session.lock().io.link {
            Link::Websocket(_) => Some(Transport::Websocket),
            Link::Polling(_) => Some(Transport::Polling),
            Link::Opening | Link::Gone => None,
        }
    }
}
