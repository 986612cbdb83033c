//! Restrictions of channels (`docs/spec/restriction.md`): until released, or temporary, for a minute.

use domain::chat::{channel_of_chat, chat_channel_id};
use domain::limits::{TEMPORARY_RESTRICTION_HIDES_MS, TEMPORARY_RESTRICTION_MS};
use domain::restriction::{RestrictionRefusal, Target, may_release, may_restrict};
use domain::token::Caller;
use domain::{ChannelId, Invalid, Refusal, Rule, Timestamp};
use store::Tx;
use store::queries::restrictions::RestrictedPlace;
pub use store::queries::restrictions::{RestrictedChannel, TemporaryRestriction};

use crate::work::Work;
use crate::{Error, Service};

/// A page of the channels that a channel restricted.
#[derive(Clone, Debug)]
pub struct RestrictedPage {
    /// Newest first.
    pub channels: Vec<RestrictedChannel>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The target of a temporary restriction and the chat.
#[derive(Clone, Debug)]
pub struct ChatTarget {
    /// The channel to restrict.
    pub target: ChannelId,
    /// The id of the chat, as in a CHAT event.
    pub chat_channel_id: String,
}

impl Service {
    /// Keeps `target` from sending to the chat of `channel` until it is released.
    ///
    /// # Errors
    /// [`RestrictionRefusal`], also when `target` is restricted already.
    pub async fn restrict(&self, channel: &ChannelId, target: ChannelId) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            check_target(work, &channel, &target).await?;
            let done = work.restrict(&channel, &target, now).await?;
            done_or(done, RestrictionRefusal::AlreadyRestricted)
        })
        .await
    }

    /// Lets `target` send again.
    ///
    /// # Errors
    /// [`RestrictionRefusal`], also when `target` is not restricted.
    pub async fn release(&self, channel: &ChannelId, target: ChannelId) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let refusal = check_release(work, &channel, &target, RestrictionRefusal::NotRestricted).await?;
            let done = work.release(&channel, &target).await?;
            done_or(done, refusal)
        })
        .await
    }

    /// A page of the channels that the caller's channel restricted, newest first. `next` is the cursor of
    /// the page before, given to the same caller.
    ///
    /// # Errors
    /// `Invalid` for any other cursor.
    pub async fn restricted_channels(
        &self,
        caller: &Caller,
        size: i64,
        next: Option<&str>,
    ) -> Result<RestrictedPage, Error> {
        let context = format!("restrict-channels {} {}", caller.client_id, caller.channel_id);
        self.restricted_page(context, &caller.channel_id, size, next).await
    }

    /// As [`restricted_channels`](Self::restricted_channels), for the person of a channel.
    ///
    /// # Errors
    /// `Invalid` for the cursor of another list or channel.
    pub async fn restricted_by_person(
        &self,
        channel: &ChannelId,
        size: i64,
        next: Option<&str>,
    ) -> Result<RestrictedPage, Error> {
        self.restricted_page(format!("restricted-by-person {channel}"), channel, size, next).await
    }

    /// Up to `limit` temporary restrictions of a channel that run now, the latest first.
    pub async fn temporarily_restricted(
        &self,
        channel: &ChannelId,
        limit: i64,
    ) -> Result<Vec<TemporaryRestriction>, Error> {
        let (channel, now) = (channel.clone(), self.now());
        self.read(async move |tx: &mut Tx| Ok(tx.temporarily_restricted(&channel, now, limit).await?)).await
    }

    async fn restricted_page(
        &self,
        context: String,
        channel: &ChannelId,
        size: i64,
        next: Option<&str>,
    ) -> Result<RestrictedPage, Error> {
        let after = match next {
            Some(cursor) => place(&self.cursors().open("next", &context, cursor)?)?,
            None => RestrictedPlace::start(),
        };
        let channel = channel.clone();
        let channels = self
            .read(async move |tx: &mut Tx| Ok(tx.restricted_channels(&channel, &after, size + 1).await?))
            .await?;
        let (channels, next) = self.page(&context, channels, size, position);
        Ok(RestrictedPage { channels, next })
    }

    /// Keeps `target` from sending to the chat of `channel` for a minute, and hides its messages there of
    /// the minute before.
    ///
    /// # Errors
    /// [`Refusal::NotYourChat`] for the chat of another channel; [`RestrictionRefusal`], also while a
    /// temporary restriction of `target` runs.
    pub async fn restrict_temporarily(&self, channel: &ChannelId, target: ChatTarget) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let ChatTarget { target, chat_channel_id } = target;
            check_chat(work, &channel, &chat_channel_id).await?;
            check_target(work, &channel, &target).await?;
            let ends_at = now.plus_ms(TEMPORARY_RESTRICTION_MS);
            let done = work.restrict_temporarily(&channel, &target, ends_at, now).await?;
            done_or(done, RestrictionRefusal::AlreadyTemporarilyRestricted)?;
            // The range has no end, so it includes messages of a node whose clock is ahead.
            let hidden = now.plus_ms(-TEMPORARY_RESTRICTION_HIDES_MS)..Timestamp::LAST;
            work.hide_messages(&channel, &target, hidden, now).await?;
            Ok(())
        })
        .await
    }

    /// Lets `target` send again before the minute is over.
    ///
    /// # Errors
    /// [`Refusal::NotYourChat`] for the chat of another channel; [`RestrictionRefusal`], also when no
    /// temporary restriction runs.
    pub async fn release_temporarily(&self, channel: &ChannelId, target: ChatTarget) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let ChatTarget { target, chat_channel_id } = target;
            check_chat(work, &channel, &chat_channel_id).await?;
            let not_restricted = RestrictionRefusal::NotTemporarilyRestricted;
            let refusal = check_release(work, &channel, &target, not_restricted).await?;
            let done = work.release_temporarily(&channel, &target, now).await?;
            done_or(done, refusal)
        })
        .await
    }
}

async fn check_target(tx: &mut Tx, channel: &ChannelId, target: &ChannelId) -> Result<(), Error> {
    let known = target_of(tx, channel, target).await?;
    Ok(may_restrict(channel, target, known.as_ref()).map_err(Refusal::from)?)
}

/// Returns the refusal for a target that is not restricted.
async fn check_release(
    tx: &mut Tx,
    channel: &ChannelId,
    target: &ChannelId,
    not_restricted: RestrictionRefusal,
) -> Result<RestrictionRefusal, Error> {
    let known = target_of(tx, channel, target).await?;
    Ok(may_release(channel, target, known.as_ref(), not_restricted).map_err(Refusal::from)?)
}

async fn target_of(tx: &mut Tx, channel: &ChannelId, target: &ChannelId) -> Result<Option<Target>, Error> {
    let known = tx.speaker(channel, target).await?;
    Ok(known.map(|known| Target { channel_id: target.clone(), role: known.role }))
}

/// The chat must be the caller's. The chat of another channel is forbidden; an id without a channel is a
/// wrong value.
async fn check_chat(tx: &mut Tx, channel: &ChannelId, chat: &str) -> Result<(), Error> {
    if chat == chat_channel_id(channel) {
        return Ok(());
    }
    let Some(other) = channel_of_chat(chat) else { return done_or(false, RestrictionRefusal::NoSuchChat) };
    match tx.speaker(&other, &other).await? {
        Some(_) => Err(Refusal::NotYourChat.into()),
        None => done_or(false, RestrictionRefusal::NoSuchChat),
    }
}

fn done_or(done: bool, refusal: RestrictionRefusal) -> Result<(), Error> {
    if done { Ok(()) } else { Err(Refusal::from(refusal).into()) }
}

/// Reads the position in a cursor. The service wrote the cursor, so an error means that the format has
/// changed.
fn place(position: &str) -> Result<RestrictedPlace, Invalid> {
    let parts = position.split_once(' ').and_then(|(at, id)| Some((at.parse().ok()?, id)));
    let (at, id) = parts.ok_or(Invalid::new("next", Rule::Cursor))?;
    let created_at = Timestamp::from_millis(at);
    Ok(RestrictedPlace { created_at, channel_id: ChannelId::stored(id.to_owned()) })
}

fn position(last: &RestrictedChannel) -> String {
    format!("{} {}", last.created_at.as_millis(), last.channel_id)
}
