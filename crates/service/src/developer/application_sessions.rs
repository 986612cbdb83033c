//! The sessions of an application, as its people see and end them.

use std::collections::HashMap;

use domain::limits::CHANNEL_IDS_MAX;
use domain::refusal::Resource;
use domain::session::{SessionDetails, SessionOwner};
use domain::{ChannelId, ClientId, Refusal, SessionKey};
use store::Tx;

use crate::{Error, Service};

/// What a page about sessions says beside them.
#[derive(Clone, Debug, Default)]
pub struct SessionContext {
    /// The names of the channels, by id. A deleted channel has none.
    pub names: HashMap<ChannelId, String>,
    /// The connected sessions of each owner, by [`SessionOwner::counted_as`]. Those of a user count over all
    /// applications. An owner without any has no entry.
    pub connected: HashMap<String, i64>,
}

impl SessionContext {
    /// The connected sessions that count together with those of this owner.
    pub fn connected_of(&self, owner: &SessionOwner) -> i64 {
        self.connected.get(&owner.counted_as()).copied().unwrap_or_default()
    }
}

impl Service {
    /// A session of an application, connected or ended within 90 days.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such session, or it is another application's.
    pub async fn session_of_application(
        &self,
        client_id: &ClientId,
        key: &SessionKey,
    ) -> Result<SessionDetails, Error> {
        let details = self.session_details(key).await?;
        if details.owner.client_id() == client_id {
            Ok(details)
        } else {
            Err(Refusal::NotFound(Resource::Session).into())
        }
    }

    /// Ends a session of an application on any node, as [`evict_session`](Self::evict_session) does.
    ///
    /// # Errors
    /// As [`session_of_application`](Self::session_of_application).
    pub async fn end_session_of_application(
        &self,
        client_id: &ClientId,
        key: &SessionKey,
    ) -> Result<(), Error> {
        // The application of a session never changes.
        self.session_of_application(client_id, key).await?;
        self.evict_session(key).await
    }

    /// The names of these channels, and the numbers of connected sessions of these owners.
    pub async fn session_context(
        &self,
        channels: Vec<ChannelId>,
        owners: Vec<SessionOwner>,
    ) -> Result<SessionContext, Error> {
        let channels = distinct(channels);
        let owners = distinct(owners.iter().map(SessionOwner::counted_as).collect());
        self.read(async move |tx: &mut Tx| {
            let mut names = HashMap::new();
            for ids in channels.chunks(CHANNEL_IDS_MAX) {
                let found = tx.channels_by_id(ids).await?;
                names.extend(found.into_iter().map(|channel| (channel.channel_id, channel.name)));
            }
            Ok(SessionContext { names, connected: tx.counts_connected(&owners).await? })
        })
        .await
    }
}

fn distinct<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort_unstable();
    items.dedup();
    items
}
