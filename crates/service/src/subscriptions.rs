//! Event subscriptions: made, ended, revoked. Each change is a numbered row in its session's log, written in the
//! transaction of the change; the session's node turns each row into one SYSTEM message (spec 3, 4.5; decisions 4).

use bus::Message;
use domain::limits::SUBSCRIPTIONS_PER_SESSION_MAX;
use domain::session::{ChangeKind, EventType, SessionChange, Subscription};
use domain::token::{Caller, TokenFamily};
use domain::{ChannelId, ClientId, Refusal, ScopeSet, SessionKey};
use store::Tx;

use crate::{Error, Service};

/// Changes kept for a connected session. Its node applies them at once; one that is this far behind has lost touch.
const CHANGES_KEPT: i64 = 1_000;
/// A session's old changes are forgotten once in so many.
const FORGET_EVERY: i64 = 100;

impl Service {
    /// Subscribes a session to events of the caller's channel. Repeating it is no error and gives one more SYSTEM
    /// message, but not a second delivery.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the session is not the caller's or not connected; [`Refusal::TooManySubscriptions`]
    /// for the 31st; [`Refusal::InvalidToken`] and [`Refusal::Forbidden`] when the token or the scope ended meanwhile.
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
        let change = self
            .write(move |tx| {
                Box::pin(async move {
                    still_allowed(tx, &caller, event).await?;
                    let (client_id, channel_id) = (&caller.client_id, &caller.channel_id);
                    let version = tx
                        .next_session_version(&key, client_id, channel_id)
                        .await?
                        .ok_or(Refusal::NotFound)?;
                    match kind {
                        ChangeKind::Subscribed => {
                            tx.put_subscription(&key, event, &caller, now).await?;
                            if tx.count_subscriptions(&key).await? > SUBSCRIPTIONS_PER_SESSION_MAX {
                                return Err(Error::from(Refusal::TooManySubscriptions));
                            }
                        }
                        ChangeKind::Unsubscribed | ChangeKind::Revoked => {
                            tx.delete_subscription(&key, event, channel_id).await?;
                        }
                    }
                    log_change(tx, &key, version, kind, event, channel_id).await
                })
            })
            .await?;
        self.publish_changes(vec![(session_key.clone(), change)]).await;
        Ok(())
    }

    pub(crate) async fn publish_changes(&self, changes: Vec<(SessionKey, SessionChange)>) {
        for (session_key, change) in changes {
            self.publish(Message::SessionChanged { session_key, change }).await;
        }
    }
}

/// Under the consent's lock: the token and the scope that the call was let in with have not ended since.
async fn still_allowed(tx: &mut Tx, caller: &Caller, event: EventType) -> Result<(), Error> {
    let consented =
        tx.lock_consent(&caller.client_id, &caller.channel_id).await?.ok_or(Refusal::InvalidToken)?;
    if !tx.family_lives(caller).await? {
        return Err(Refusal::InvalidToken.into());
    }
    if !consented.contains(event.scope()) {
        return Err(Refusal::Forbidden.into());
    }
    Ok(())
}

async fn log_change(
    tx: &mut Tx,
    key: &SessionKey,
    version: i64,
    kind: ChangeKind,
    event_type: EventType,
    channel_id: &ChannelId,
) -> Result<SessionChange, Error> {
    let subscription = Subscription { event_type, channel_id: channel_id.clone() };
    let change = SessionChange { version, kind, subscription };
    tx.insert_session_change(key, &change).await?;
    if version % FORGET_EVERY == 0 {
        tx.forget_session_changes(key, version - CHANGES_KEPT).await?;
    }
    Ok(change)
}

/// Revokes what stands on the tokens of a client and a user, or of one family. The consent must be locked.
pub(crate) async fn revoke_standing_on(
    tx: &mut Tx,
    client_id: &ClientId,
    channel_id: &ChannelId,
    family: Option<&TokenFamily>,
) -> Result<Vec<(SessionKey, SessionChange)>, Error> {
    let mut changes = Vec::new();
    for (key, event) in tx.subscriptions_standing_on(client_id, channel_id, family).await? {
        changes.extend(revoke(tx, client_id, channel_id, &key, event).await?);
    }
    Ok(changes)
}

/// Revokes what needed scopes that an application no longer has. All consents to it are locked first, so that a
/// subscribe call that was let in before either is seen here or sees the new scopes.
pub(crate) async fn revoke_for_lost_scopes(
    tx: &mut Tx,
    client_id: &ClientId,
    lost: ScopeSet,
) -> Result<Vec<(SessionKey, SessionChange)>, Error> {
    let mut changes = Vec::new();
    let lost_events = EventType::ALL.into_iter().filter(|event| lost.contains(event.scope()));
    for (index, event) in lost_events.enumerate() {
        if index == 0 {
            tx.lock_consents_to(client_id).await?;
        }
        for (key, channel_id) in tx.subscriptions_of_client(client_id, event).await? {
            changes.extend(revoke(tx, client_id, &channel_id, &key, event).await?);
        }
    }
    Ok(changes)
}

/// `None` for a session that ended in the meantime: there is nobody to tell.
async fn revoke(
    tx: &mut Tx,
    client_id: &ClientId,
    channel_id: &ChannelId,
    key: &SessionKey,
    event: EventType,
) -> Result<Option<(SessionKey, SessionChange)>, Error> {
    let Some(version) = tx.next_session_version(key, client_id, channel_id).await? else { return Ok(None) };
    tx.delete_subscription(key, event, channel_id).await?;
    let change = log_change(tx, key, version, ChangeKind::Revoked, event, channel_id).await?;
    Ok(Some((key.clone(), change)))
}
