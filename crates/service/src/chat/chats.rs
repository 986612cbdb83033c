//! Chat messages: posted by streamers and viewers, hidden by streamers (`docs/spec/chat.md`).

use std::sync::Arc;

use domain::chat::{Emojis, MessageText, chat_channel_id, check_badges, check_emojis};
use domain::chat_settings::{ChatSettings, may_speak, slow_mode_left};
use domain::event::{ChatEvent, EventKind};
use domain::refusal::Resource;
use domain::{ChannelId, MessageId, MessageSeries, Refusal, Timestamp};
use store::Tx;
use store::queries::chat_settings::{ChatFacts, SlowModeTurn};
use store::queries::chats::{NewMessage, is_time_taken};

use crate::chat::message_times::MessageTimes;
pub use crate::chat::messages::{ChatMessage, PostedMessage};
use crate::chat::posts::{Author, Place, chat_event};
pub(crate) use crate::chat::posts::{Post, Posting};
use crate::platform::channel_events::{json, publish, unknown_channel};
use crate::platform::idempotency::{self, IdempotencyKey};
use crate::service::Inner;
use crate::work::Work;
use crate::{Error, Service};

/// Maximum number of timestamps that are tried for one message. A timestamp is taken when another node
/// posted for the same sender in the same millisecond. Each try uses a timestamp after all posted ones.
pub(crate) const TIMES_TRIED_MAX: u32 = 32;

/// The error when all [`TIMES_TRIED_MAX`] timestamps were taken.
pub(crate) const NO_TIME: &str = "no time was free for a chat message";

/// The parts of a CHAT event that identify a message.
#[derive(Clone, Debug)]
pub struct MessagePlace {
    /// The chat of the message.
    pub chat_channel_id: String,
    /// When it was posted.
    pub message_time: Timestamp,
    /// The channel of the sender.
    pub sender: ChannelId,
}

impl Service {
    /// Posts a chat message of `sender` in the chat of `channel`.
    ///
    /// # Errors
    /// As [`Service::post_message`].
    pub async fn post_chat(
        &self,
        channel: &ChannelId,
        sender: &ChannelId,
        text: MessageText,
        emojis: Emojis,
        key: Option<IdempotencyKey>,
    ) -> Result<PostedMessage, Error> {
        self.post_message(channel, ChatMessage { sender: sender.clone(), text, emojis, badges: None }, key)
            .await
    }

    /// Posts a chat message in the chat of `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist; `Invalid` when the sender does not exist,
    /// and for a wrong emoji or badge; [`Refusal::Chat`] when the sender is a viewer, and the chat's
    /// settings or a restriction forbid the message.
    pub async fn post_message(
        &self,
        channel: &ChannelId,
        message: ChatMessage,
        key: Option<IdempotencyKey>,
    ) -> Result<PostedMessage, Error> {
        let message = Arc::new(message);
        if key.is_none()
            && let Some(posted) = self.append_chat(channel, &message).await
        {
            return posted;
        }
        for _ in 0..TIMES_TRIED_MAX {
            let posted = self.try_post_chat(channel.clone(), message.clone(), key.clone()).await;
            match posted {
                Err(Error::Store(error)) if is_time_taken(&error) => {
                    self.read_last_time(channel, &message.sender).await?;
                }
                posted => return posted,
            }
        }
        Err(Error::Internal(NO_TIME))
    }

    async fn try_post_chat(
        &self,
        channel: ChannelId,
        message: Arc<ChatMessage>,
        key: Option<IdempotencyKey>,
    ) -> Result<PostedMessage, Error> {
        let posting = self.posting();
        self.write(async move |work: &mut Work<'_>| {
            let post = Post { channel: &channel, message: &message, posting: &posting, key: key.as_ref() };
            self::post(work, &post).await
        })
        .await
    }

    /// The state of this node for posting messages.
    pub(crate) fn posting(&self) -> Posting {
        let Inner { message_times, pictures, slow_chats, .. } = &*self.0;
        Posting {
            times: message_times.clone(),
            pictures: pictures.get().cloned(),
            slow_chats: slow_chats.clone(),
        }
    }

    /// Looks up the time of a sender's last message in the store.
    async fn read_last_time(&self, channel: &ChannelId, sender: &ChannelId) -> Result<(), Error> {
        let (channel, sender) = (channel.clone(), sender.clone());
        let (times, now) = (self.0.message_times.clone(), self.now());
        self.read(async move |tx: &mut Tx| read_last_time(tx, &times, &channel, &sender, now).await).await
    }

    /// Hides a message in the chat of `channel`. Hiding a hidden message changes nothing.
    ///
    /// # Errors
    /// [`Refusal::NotTheStreamer`] for a message of another chat, [`Refusal::NotFound`] when there is no such
    /// message.
    pub async fn hide_message(&self, channel: &ChannelId, place: MessagePlace) -> Result<(), Error> {
        if place.chat_channel_id != chat_channel_id(channel) {
            return Err(Refusal::NotTheStreamer.into());
        }
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // More than one message matches only if an earlier version recorded several with the same
            // time.
            let then = place.message_time..place.message_time.plus_ms(1);
            match work.hide_messages(&channel, &place.sender, then, now).await? {
                0 => Err(Refusal::NotFound(Resource::Message).into()),
                _ => Ok(()),
            }
        })
        .await
    }
}

impl Service {
    /// Shows a hidden message in the chat of `channel` again. Showing a visible message changes nothing.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such message in this chat.
    pub async fn show_message(&self, channel: &ChannelId, id: &MessageId) -> Result<(), Error> {
        let (channel, id) = (channel.clone(), id.clone());
        self.write(async move |work: &mut Work<'_>| match work.show_message(&channel, &id).await? {
            true => Ok(()),
            false => Err(Refusal::NotFound(Resource::Message).into()),
        })
        .await
    }
}

/// Looks up the sender's last message from `now` on, so that the next message gets a later time.
pub(crate) async fn read_last_time(
    tx: &mut Tx,
    times: &MessageTimes,
    channel: &ChannelId,
    sender: &ChannelId,
    now: Timestamp,
) -> Result<(), Error> {
    if let Some(last) = tx.last_message(channel, sender, now).await? {
        times.known(MessageSeries::of(channel, sender), last);
    }
    Ok(())
}

/// Posts one message, inside a transaction.
///
/// # Errors
/// The store's error. If [`is_time_taken`], the caller calls [`read_last_time`] and tries again.
pub(crate) async fn post(work: &mut Work<'_>, post: &Post<'_>) -> Result<PostedMessage, Error> {
    let now = work.now();
    let Post { channel, message, .. } = *post;
    let (chat_channel_id, place) = (chat_channel_id(channel), post.place(now));
    if let Some(earlier) = claim(work, post, &place).await? {
        return Ok(earlier.message(chat_channel_id));
    }
    let author = if message.sender == *channel {
        // Most messages are of this kind. One small query is enough for them.
        let speaker = work.speaker(channel, channel).await?.ok_or(Refusal::NotFound(Resource::Channel))?;
        Author { speaker, subscriber: false }
    } else {
        let facts = work.chat_facts(&[(channel, &message.sender)]).await?.pop().flatten();
        admitted(work, post, facts).await?
    };
    let chats = [(post, place.id, chat_event(post, author, place.time))];
    record(work, &chats).await?;
    let [(_, id, chat)] = chats;
    publish(work, channel.clone(), EventKind::Chat(chat));
    Ok(Place { id, time: place.time }.message(chat_channel_id))
}

/// Posts many messages with few statements, inside a transaction. Each has the effect of [`post`].
///
/// # Errors
/// As [`post`].
pub(crate) async fn post_all(work: &mut Work<'_>, posts: &[Post<'_>]) -> Result<(), Error> {
    let now = work.now();
    let mut new = Vec::with_capacity(posts.len());
    for post in posts {
        let place = post.place(now);
        if claim(work, post, &place).await?.is_none() {
            new.push((post, place));
        }
    }
    let asked: Vec<_> = new.iter().map(|(post, _)| (post.channel, &post.message.sender)).collect();
    let facts = work.chat_facts(&asked).await?;
    let mut chats = Vec::with_capacity(new.len());
    for ((post, place), facts) in new.into_iter().zip(facts) {
        let author = admitted(work, post, facts).await?;
        chats.push((post, place.id, chat_event(post, author, place.time)));
    }
    record(work, &chats).await?;
    for (post, _, chat) in chats {
        publish(work, post.channel.clone(), EventKind::Chat(chat));
    }
    Ok(())
}

/// Returns the place of the message that an earlier request with the same key posted, if there was one.
async fn claim(work: &mut Work<'_>, post: &Post<'_>, place: &Place) -> Result<Option<Place>, Error> {
    check_emojis(&post.message.emojis)?;
    check_badges(post.message.badges.as_deref().unwrap_or_default())?;
    idempotency::claim(work, post.key, place).await
}

async fn record(work: &mut Work<'_>, chats: &[(&Post<'_>, MessageId, ChatEvent)]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(chats.len());
    for (post, id, chat) in chats {
        rows.push(NewMessage { id, channel: post.channel, chat, emojis: json(&chat.emojis) });
    }
    Ok(work.insert_chat_messages(&rows).await?)
}

/// Returns the sender of a message if the sender may post. The streamer and managers are exempt from
/// every rule (`docs/spec/chat.md#viewers`).
async fn admitted(work: &mut Work<'_>, post: &Post<'_>, facts: Option<ChatFacts>) -> Result<Author, Error> {
    let now = work.now();
    let Post { channel, message, .. } = post;
    let is_streamer = message.sender == **channel;
    let Some(facts) = facts else {
        return Err(if is_streamer {
            Refusal::NotFound(Resource::Channel).into()
        } else {
            unknown_channel(work, channel, "senderChannelId").await?
        });
    };
    if !is_streamer && facts.speaker.role.is_none() {
        let text = message.text.as_str();
        may_speak(&facts.settings, &facts.viewer, text, &message.emojis, now).map_err(Refusal::from)?;
        wait_for_turn(work, post, &facts.settings).await?;
    }
    // A streamer does not subscribe to their own channel.
    Ok(Author { speaker: facts.speaker, subscriber: facts.viewer.subscriber && !is_streamer })
}

/// Applies slow mode. This is the last check, so that only an accepted message starts a new waiting time.
async fn wait_for_turn(work: &mut Work<'_>, post: &Post<'_>, settings: &ChatSettings) -> Result<(), Error> {
    let now = work.now();
    if settings.slow_mode_sec == 0 {
        return Ok(());
    }
    post.posting.slow_chats.note(post.channel);
    match work.take_slow_mode_turn(post.channel, &post.message.sender, settings.slow_mode_sec, now).await? {
        SlowModeTurn::Granted => Ok(()),
        SlowModeTurn::TooSoon { last } => Err(Refusal::from(slow_mode_left(settings, last, now)).into()),
    }
}
