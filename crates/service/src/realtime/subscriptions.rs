//! Event subscriptions of sessions. Each change is a numbered row of the session, written in the transaction
//! of the change. The session's node turns each row into one SYSTEM message
//! (`docs/spec/realtime.md#subscriptions`).

use bus::Message;
use domain::event::EventType;
use domain::limits::SUBSCRIPTIONS_PER_SESSION_MAX;
use domain::refusal::{Cap, Resource, TokenFault};
use domain::session::{ChangeKind, SessionChange, Subscription};
use domain::token::{Caller, TokenFamily};
use domain::{ChannelId, ClientId, NodeId, Refusal, ScopeSet, SessionKey};
use store::Tx;

use crate::{Error, Service};

/// Maximum number of changes kept for a connected session. Its node applies changes at once, so it is never
/// this far behind.
const CHANGES_KEPT: i64 = 1_000;
/// Old changes of a session are deleted after every so many new ones.
const FORGET_EVERY: i64 = 100;

impl Service {
    /// Subscribes a session to events of the caller's channel. Repeating it is no error and gives one more
    /// SYSTEM message, but not a second delivery.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the session is not the caller's or not connected; [`Refusal::Cap`] for the
    /// 31st; [`Refusal::InvalidToken`] and [`Refusal::ScopeMissing`] when the token or the scope ended
    /// meanwhile.
    pub async fn subscribe(&self, caller: &Caller, key: &SessionKey, event: EventType) -> Result<(), Error> {
        self.change(caller, key, event, ChangeKind::Subscribed).await
    }

    /// Ends a subscription. Repeating it is no error and gives one more SYSTEM message.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe), but for the limit.
    pub async fn unsubscribe(
        &self,
        caller: &Caller,
        key: &SessionKey,
        event: EventType,
    ) -> Result<(), Error> {
        self.change(caller, key, event, ChangeKind::Unsubscribed).await
    }

    async fn change(
        &self,
        caller: &Caller,
        session_key: &SessionKey,
        event: EventType,
        kind: ChangeKind,
    ) -> Result<(), Error> {
        let (caller, key, now) = (caller.clone(), session_key.clone(), self.now());
        self.write_then_publish(move |tx| {
            Box::pin(async move {
                still_allowed(tx, &caller, event).await?;
                let (client_id, channel_id) = (&caller.client_id, &caller.channel_id);
                let next = tx.next_session_version(&key, client_id, channel_id).await?;
                let (version, node) = next.ok_or(Refusal::NotFound(Resource::Session))?;
                match kind {
                    ChangeKind::Subscribed => {
                        tx.put_subscription(&key, event, &caller, now).await?;
                        if tx.count_subscriptions(&key).await? > SUBSCRIPTIONS_PER_SESSION_MAX {
                            return Err(Error::from(Refusal::Cap(Cap::Subscriptions)));
                        }
                    }
                    ChangeKind::Unsubscribed | ChangeKind::Revoked => {
                        tx.delete_subscription(&key, event, channel_id).await?;
                    }
                }
                let subscription = Subscription { event_type: event, channel_id: channel_id.clone() };
                let change = SessionChange { version, kind, subscription };
                Ok(((), vec![log_change(tx, key, node, change).await?]))
            })
        })
        .await
    }
}

/// Checks under the consent's lock that the token and the scope of the call are still valid.
async fn still_allowed(tx: &mut Tx, caller: &Caller, event: EventType) -> Result<(), Error> {
    let consented = tx
        .lock_consent(&caller.client_id, &caller.channel_id)
        .await?
        .ok_or(Refusal::InvalidToken(TokenFault::Revoked))?;
    if !tx.family_lives(caller).await? {
        return Err(Refusal::InvalidToken(TokenFault::Revoked).into());
    }
    if !consented.contains(event.scope()) {
        return Err(Refusal::ScopeMissing(event.scope()).into());
    }
    Ok(())
}

async fn log_change(
    tx: &mut Tx,
    session_key: SessionKey,
    node: NodeId,
    change: SessionChange,
) -> Result<Message, Error> {
    tx.insert_session_change(&session_key, &node, &change).await?;
    if change.version % FORGET_EVERY == 0 {
        tx.forget_session_changes(&session_key, change.version - CHANGES_KEPT).await?;
    }
    Ok(Message::SessionChanged { node, session_key, change })
}

/// Revokes the subscriptions made with the tokens of a client and a user, or of one family. Returns the
/// messages to publish. The consent must be locked.
pub(crate) async fn revoke_standing_on(
    tx: &mut Tx,
    client_id: &ClientId,
    channel_id: &ChannelId,
    family: Option<&TokenFamily>,
) -> Result<Vec<Message>, Error> {
    let mut changes = Vec::new();
    for (key, event) in tx.subscriptions_standing_on(client_id, channel_id, family).await? {
        changes.extend(revoke(tx, client_id, channel_id, &key, event).await?);
    }
    Ok(changes)
}

/// Revokes the subscriptions that need scopes that an application lost. First the consents with such a scope
/// are narrowed, which locks them. So a concurrent subscribe call is either seen here or finds the narrower
/// consent.
pub(crate) async fn revoke_outside(
    tx: &mut Tx,
    client_id: &ClientId,
    scopes: ScopeSet,
) -> Result<Vec<Message>, Error> {
    tx.narrow_consents(client_id, scopes).await?;
    let lost = EventType::ALL.into_iter().filter(|event| !scopes.contains(event.scope()));
    revoke_needing(tx, client_id, lost).await
}

/// Revokes all subscriptions of an application, which must be deleted already. So a concurrent subscribe call
/// is either seen here, behind the consent's lock, or finds no living application.
pub(crate) async fn revoke_all(tx: &mut Tx, client_id: &ClientId) -> Result<Vec<Message>, Error> {
    tx.lock_live_consents(client_id).await?;
    revoke_needing(tx, client_id, EventType::ALL.into_iter()).await
}

async fn revoke_needing(
    tx: &mut Tx,
    client_id: &ClientId,
    events: impl Iterator<Item = EventType>,
) -> Result<Vec<Message>, Error> {
    let mut subscriptions = Vec::new();
    for event in events {
        let found = tx.subscriptions_of_client(client_id, event).await?;
        subscriptions.extend(found.into_iter().map(|(key, channel_id)| (key, event, channel_id)));
    }
    // Sessions are locked in one order everywhere, so that two revocations cannot wait for each other.
    subscriptions.sort();
    let mut changes = Vec::new();
    for (key, event, channel_id) in subscriptions {
        changes.extend(revoke(tx, client_id, &channel_id, &key, event).await?);
    }
    Ok(changes)
}

/// `None` for a session that has ended meanwhile.
async fn revoke(
    tx: &mut Tx,
    client_id: &ClientId,
    channel_id: &ChannelId,
    key: &SessionKey,
    event: EventType,
) -> Result<Option<Message>, Error> {
    let next = tx.next_session_version(key, client_id, channel_id).await?;
    let Some((version, node)) = next else { return Ok(None) };
    tx.delete_subscription(key, event, channel_id).await?;
    let subscription = Subscription { event_type: event, channel_id: channel_id.clone() };
    let change = SessionChange { version, kind: ChangeKind::Revoked, subscription };
    Ok(Some(log_change(tx, key.clone(), node, change).await?))
}
