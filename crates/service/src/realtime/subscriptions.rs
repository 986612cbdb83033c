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

use crate::realtime::subscription_change::SubscriptionChange;
use crate::realtime::subscription_groups::{CHANGES_KEPT, DELETE_EVERY};
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Subscribes a session to events of the caller's channel. A repeated call is no error. It sends one
    /// more SYSTEM message, but events are still delivered once.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the session is not the caller's or not connected; [`Refusal::Cap`] for
    /// the 31st subscription; [`Refusal::InvalidToken`] when the token ended during the call;
    /// [`Refusal::ScopeMissing`] when the scope ended during the call.
    pub async fn subscribe(&self, caller: &Caller, key: &SessionKey, event: EventType) -> Result<(), Error> {
        self.change(caller, key, event, ChangeKind::Subscribed).await
    }

    /// Ends a subscription. A repeated call is no error and sends one more SYSTEM message.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe), except for [`Refusal::Cap`].
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
        let (caller, key) = (caller.clone(), session_key.clone());
        let change = SubscriptionChange { caller: caller.clone(), session_key: key.clone(), event, kind };
        if let Some(changed) = self.share_commit(change).await {
            return changed;
        }
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            check_still_allowed(work, &caller, event).await?;
            let (client_id, channel_id) = (&caller.client_id, &caller.channel_id);
            let next = work.next_session_version(&key, client_id, channel_id).await?;
            let (version, node) = next.ok_or(Refusal::NotFound(Resource::Session))?;
            match kind {
                ChangeKind::Subscribed => {
                    work.put_subscription(&key, event, &caller, now).await?;
                    if work.count_subscriptions(&key).await? > SUBSCRIPTIONS_PER_SESSION_MAX {
                        return Err(Error::from(Refusal::Cap(Cap::Subscriptions)));
                    }
                }
                ChangeKind::Unsubscribed | ChangeKind::Revoked => {
                    work.delete_subscription(&key, event, channel_id).await?;
                }
            }
            let subscription = Subscription { event_type: event, channel_id: channel_id.clone() };
            let change = SessionChange { version, kind, subscription };
            log_change(work, key, node, change).await
        })
        .await
    }
}

/// Checks under the consent's lock that the token and the scope of the call are still valid.
async fn check_still_allowed(tx: &mut Tx, caller: &Caller, event: EventType) -> Result<(), Error> {
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

/// Records a change of a session, and notifies its node.
async fn log_change(
    work: &mut Work<'_>,
    session_key: SessionKey,
    node: NodeId,
    change: SessionChange,
) -> Result<(), Error> {
    work.insert_session_change(&session_key, &node, &change).await?;
    if change.version % DELETE_EVERY == 0 {
        work.delete_session_changes(&session_key, change.version - CHANGES_KEPT).await?;
    }
    work.publish(Message::SessionChanged { node, session_key, change });
    Ok(())
}

/// Revokes the subscriptions made with the tokens of a client and a user, or of one family. The consent must
/// be locked.
pub(crate) async fn revoke_standing_on(
    work: &mut Work<'_>,
    client_id: &ClientId,
    channel_id: &ChannelId,
    family: Option<&TokenFamily>,
) -> Result<(), Error> {
    for (key, event) in work.subscriptions_depending_on(client_id, channel_id, family).await? {
        revoke(work, client_id, channel_id, &key, event).await?;
    }
    Ok(())
}

/// Revokes the subscriptions that need scopes that an application lost. First the consents with such a
/// scope are narrowed, which locks them. So the subscription of a concurrent call either is found here,
/// or is refused because of the narrower consent.
pub(crate) async fn revoke_outside(
    work: &mut Work<'_>,
    client_id: &ClientId,
    scopes: ScopeSet,
) -> Result<(), Error> {
    work.narrow_consents(client_id, scopes).await?;
    let lost = EventType::ALL.into_iter().filter(|event| !scopes.contains(event.scope()));
    revoke_events(work, client_id, lost).await
}

/// Revokes all subscriptions of an application, which must be deleted already. The consents are locked
/// first. So the subscription of a concurrent call either is found here, or is refused because the
/// application is deleted.
pub(crate) async fn revoke_all(work: &mut Work<'_>, client_id: &ClientId) -> Result<(), Error> {
    work.lock_live_consents(client_id).await?;
    revoke_events(work, client_id, EventType::ALL.into_iter()).await
}

async fn revoke_events(
    work: &mut Work<'_>,
    client_id: &ClientId,
    events: impl Iterator<Item = EventType>,
) -> Result<(), Error> {
    let mut subscriptions = Vec::new();
    for event in events {
        let found = work.subscriptions_of_client(client_id, event).await?;
        subscriptions.extend(found.into_iter().map(|(key, channel_id)| (key, event, channel_id)));
    }
    // Sessions are locked in one order everywhere, so that two revocations cannot deadlock.
    subscriptions.sort();
    for (key, event, channel_id) in subscriptions {
        revoke(work, client_id, &channel_id, &key, event).await?;
    }
    Ok(())
}

/// Revokes one subscription. Does nothing for an ended session.
async fn revoke(
    work: &mut Work<'_>,
    client_id: &ClientId,
    channel_id: &ChannelId,
    key: &SessionKey,
    event: EventType,
) -> Result<(), Error> {
    let next = work.next_session_version(key, client_id, channel_id).await?;
    let Some((version, node)) = next else { return Ok(()) };
    work.delete_subscription(key, event, channel_id).await?;
    let subscription = Subscription { event_type: event, channel_id: channel_id.clone() };
    let change = SessionChange { version, kind: ChangeKind::Revoked, subscription };
    log_change(work, key.clone(), node, change).await
}
