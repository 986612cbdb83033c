//! What only the node that holds a session knows of it.

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
        self.tell(key, Command::Find(key.clone(), reply)).await;
        answer.await.ok().flatten()
    }
}

impl Gateway {
    /// How a session is connected to this node; `None` when it is not, or not yet.
    pub async fn transport(&self, key: &SessionKey) -> Option<Transport> {
        let session = self.hub.session(key).await?;
        match session.lock().io.link {
            Link::Websocket(_) => Some(Transport::Websocket),
            Link::Polling(_) => Some(Transport::Polling),
            Link::Opening | Link::Gone => None,
        }
    }
}
