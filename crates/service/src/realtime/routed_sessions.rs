//! What the store says about the sessions of this node, and how it differs from what the node remembers: the
//! router, by which events find their sessions.

use std::collections::BTreeSet;

use domain::event::EventType;
use domain::session::Subscription;
use domain::{ChannelId, NodeId, SessionKey};
use serde::Serialize;
use store::Tx;
pub use store::queries::routed_sessions::RoutedSession;

use crate::{Error, Service};

/// The router of a node beside the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouterComparison {
    /// The node.
    pub node_id: String,
    /// The sessions of the node in the store that were compared.
    pub sessions: u64,
    /// Their subscriptions.
    pub subscriptions: u64,
    /// The differences that stayed.
    pub differences: Vec<RouterDifference>,
    /// There are more than these.
    pub are_more: bool,
}

/// A session of which the store and the router of its node say different things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouterDifference {
    /// The session.
    pub session_key: SessionKey,
    /// What is different.
    pub kind: DifferenceKind,
    /// Subscriptions that only the store has.
    pub only_stored: Vec<Subscription>,
    /// Subscriptions that only the router has.
    pub only_routed: Vec<Subscription>,
}

/// What is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// The session is connected in the store, and the node does not have it.
    NotRouted,
    /// The node has the session, and it is not connected in the store.
    NotStored,
    /// The subscriptions differ.
    Subscriptions,
}

impl RouterComparison {
    /// Of a node without sessions.
    pub fn empty(node: &NodeId) -> Self {
        Self {
            node_id: node.to_string(),
            sessions: 0,
            subscriptions: 0,
            differences: Vec::new(),
            are_more: false,
        }
    }
}

impl RouterDifference {
    /// The difference between the two sides of a session. `None` on a side that does not have it.
    pub fn between(
        key: &SessionKey,
        stored: Option<&[Subscription]>,
        routed: Option<&[Subscription]>,
    ) -> Option<Self> {
        let (of_store, of_router) = (ordered(stored), ordered(routed));
        let only = |one: &BTreeSet<(EventType, String)>, other: &BTreeSet<(EventType, String)>| {
            let found = one.difference(other).map(|(event_type, channel)| Subscription {
                event_type: *event_type,
                channel_id: ChannelId::stored(channel.clone()),
            });
            found.collect::<Vec<_>>()
        };
        let kind = match (stored, routed) {
            (None, None) => return None,
            (Some(_), None) => DifferenceKind::NotRouted,
            (None, Some(_)) => DifferenceKind::NotStored,
            (Some(_), Some(_)) if of_store == of_router => return None,
            (Some(_), Some(_)) => DifferenceKind::Subscriptions,
        };
        Some(Self {
            session_key: key.clone(),
            kind,
            only_stored: only(&of_store, &of_router),
            only_routed: only(&of_router, &of_store),
        })
    }
}

fn ordered(subscriptions: Option<&[Subscription]>) -> BTreeSet<(EventType, String)> {
    let subscriptions = subscriptions.unwrap_or_default().iter();
    subscriptions.map(|each| (each.event_type, each.channel_id.as_str().to_owned())).collect()
}

impl Service {
    /// Up to `limit` connected sessions of this node after `after`, in the order of their keys.
    pub async fn routed_sessions(&self, after: &SessionKey, limit: i64) -> Result<Vec<RoutedSession>, Error> {
        let (node, after) = (self.node().clone(), after.clone());
        self.read(async move |tx: &mut Tx| Ok(tx.routed_sessions(&node, &after, limit).await?)).await
    }

    /// A session, if it is connected to this node.
    pub async fn routed_session(&self, key: &SessionKey) -> Result<Option<RoutedSession>, Error> {
        let (node, key) = (self.node().clone(), key.clone());
        self.read(async move |tx: &mut Tx| Ok(tx.routed_session(&node, &key).await?)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(event_type: EventType, channel: &str) -> Subscription {
        Subscription { event_type, channel_id: ChannelId::stored(channel.to_owned()) }
    }

    #[test]
    fn the_order_of_subscriptions_makes_no_difference() {
        let key = SessionKey::stored("s".to_owned());
        let (chat, donation) = (subscription(EventType::Chat, "a"), subscription(EventType::Donation, "a"));
        let there = [chat.clone(), donation.clone()];
        let back = [donation.clone(), chat.clone()];
        let between = |stored, routed| RouterDifference::between(&key, stored, routed);
        assert_eq!(between(Some(&there[..]), Some(&back[..])), None);
        assert_eq!(between(None, None), None);
        let found = between(Some(&there[..1]), Some(&back[..1])).expect("a difference");
        assert_eq!(found.kind, DifferenceKind::Subscriptions);
        assert_eq!((found.only_stored, found.only_routed), (vec![chat], vec![donation]));
        let kind = |stored, routed| between(stored, routed).map(|found| found.kind);
        assert_eq!(kind(Some(&[]), None), Some(DifferenceKind::NotRouted));
        assert_eq!(kind(None, Some(&[])), Some(DifferenceKind::NotStored));
    }
}
