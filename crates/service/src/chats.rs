//! Chat messages: posted by streamers and viewers, hidden by streamers (spec 4.4; the platform API's chats).

use bus::Message;
use domain::channel::UserRoleCode;
use domain::chat::{Emojis, MessageText, chat_channel_id, check_emojis};
use domain::chat_settings::{ChatSettings, may_speak, slow_mode_left};
use domain::event::{ChatHappening, Happening};
use domain::refusal::Resource;
use domain::{ChannelId, MessageId, Refusal, Timestamp};
use store::Tx;
use store::queries::channels::Speaker;
use store::queries::chat_settings::{ChatFacts, Turn};
use store::queries::chats::NewMessage;

use crate::happenings::{event, json, unknown_channel};
use crate::idempotency::{self, IdempotencyKey, UNREADABLE_ANSWER};
use crate::{Error, Service};

/// A chat message that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostedMessage {
    /// Its id.
    pub message_id: MessageId,
    /// When it was posted, in milliseconds since the epoch.
    pub message_time: Timestamp,
    /// The chat that it stands in.
    pub chat_channel_id: String,
}

/// A chat message about to be posted.
#[derive(Clone, Debug)]
pub struct ChatMessage {
    /// Who says it.
    pub sender: ChannelId,
    /// What is said.
    pub text: MessageText,
    /// Emojis in the text.
    pub emojis: Emojis,
}

/// What a CHAT event tells about a message, and names it by.
#[derive(Clone, Debug)]
pub struct MessagePlace {
    /// The chat that it stands in.
    pub chat_channel_id: String,
    /// When it was posted.
    pub message_time: Timestamp,
    /// Who said it.
    pub sender: ChannelId,
}

impl Service {
    /// Posts a chat message of `sender` in the chat of `channel`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist, `Invalid` when the sender does not, or for a wrong emoji;
    /// [`Refusal::Chat`] when the sender is a viewer whom the chat's settings or a restriction keep out.
    pub async fn post_chat(
        &self,
        channel: &ChannelId,
        sender: &ChannelId,
        text: MessageText,
        emojis: Emojis,
        key: Option<IdempotencyKey>,
    ) -> Result<PostedMessage, Error> {
        let (channel, now) = (channel.clone(), self.now());
        let message = ChatMessage { sender: sender.clone(), text, emojis };
        let id = MessageId::generate(now, self.random());
        self.write_then_publish(move |tx| {
            Box::pin(async move {
                let post = Post { channel: &channel, message: &message, id, key: key.as_ref() };
                self::post(tx, &post, now).await
            })
        })
        .await
    }

    /// Hides a message that stands in the chat of `channel`. Hiding it again changes nothing.
    ///
    /// # Errors
    /// [`Refusal::NotTheStreamer`] for a message of another chat, [`Refusal::NotFound`] when there is no such message.
    pub async fn hide_message(&self, channel: &ChannelId, place: MessagePlace) -> Result<(), Error> {
        if place.chat_channel_id != chat_channel_id(channel) {
            return Err(Refusal::NotTheStreamer.into());
        }
        let (channel, now) = (channel.clone(), self.now());
        self.write(move |tx| {
            Box::pin(async move {
                // More than one, where the sender said several things in one millisecond: nothing tells them apart.
                let then = place.message_time..place.message_time.plus_ms(1);
                match tx.hide_messages(&channel, &place.sender, then, now).await? {
                    0 => Err(Refusal::NotFound(Resource::Message).into()),
                    _ => Ok(()),
                }
            })
        })
        .await
    }
}

/// A message about to be posted, alone or among others.
pub(crate) struct Post<'a> {
    /// In whose chat.
    pub channel: &'a ChannelId,
    /// What.
    pub message: &'a ChatMessage,
    /// The id that it gets.
    pub id: MessageId,
    /// With a key it is posted once.
    pub key: Option<&'a IdempotencyKey>,
}

/// One message, inside a transaction.
pub(crate) async fn post(
    tx: &mut Tx,
    post: &Post<'_>,
    now: Timestamp,
) -> Result<(PostedMessage, Vec<Message>), Error> {
    let Post { channel, message, .. } = *post;
    let chat_channel_id = chat_channel_id(channel);
    if let Some(answer) = claim(tx, post, now).await? {
        return Ok((earlier_message(&answer, chat_channel_id)?, Vec::new()));
    }
    let speaker = if message.sender == *channel {
        // Most messages are of this kind, and one small look-up is enough for them.
        tx.speaker(channel, channel).await?.ok_or(Refusal::NotFound(Resource::Channel))?
    } else {
        let facts = tx.chat_facts(&[(channel, &message.sender)]).await?.pop().flatten();
        admitted(tx, post, facts, now).await?
    };
    let chats = [(post, chat_happening(post, speaker, now))];
    record(tx, &chats).await?;
    let [(_, chat)] = chats;
    let told = event(channel.clone(), now, Happening::Chat(chat));
    Ok((PostedMessage { message_id: post.id.clone(), message_time: now, chat_channel_id }, told))
}

/// Many messages, inside a transaction: each has the effect of a single one, by few statements for all of them.
pub(crate) async fn post_all(tx: &mut Tx, posts: &[Post<'_>], now: Timestamp) -> Result<Vec<Message>, Error> {
    let mut new = Vec::with_capacity(posts.len());
    for post in posts {
        if claim(tx, post, now).await?.is_none() {
            new.push(post);
        }
    }
    let asked: Vec<_> = new.iter().map(|post| (post.channel, &post.message.sender)).collect();
    let facts = tx.chat_facts(&asked).await?;
    let mut chats = Vec::with_capacity(new.len());
    for (post, facts) in new.into_iter().zip(facts) {
        let speaker = admitted(tx, post, facts, now).await?;
        chats.push((post, chat_happening(post, speaker, now)));
    }
    record(tx, &chats).await?;
    let told = |(post, chat): (&Post<'_>, _)| event(post.channel.clone(), now, Happening::Chat(chat));
    Ok(chats.into_iter().flat_map(told).collect())
}

/// The answer of the request that had the key first, if there was one.
async fn claim(tx: &mut Tx, post: &Post<'_>, now: Timestamp) -> Result<Option<String>, Error> {
    check_emojis(&post.message.emojis)?;
    if post.key.is_none() {
        return Ok(None);
    }
    let answer = format!("{} {}", post.id, now.as_millis());
    idempotency::claim(tx, post.key, &answer, now).await
}

async fn record(tx: &mut Tx, chats: &[(&Post<'_>, ChatHappening)]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(chats.len());
    for (post, chat) in chats {
        rows.push(NewMessage { id: &post.id, channel: post.channel, chat, emojis: json(&chat.emojis) });
    }
    Ok(tx.insert_chat_messages(&rows).await?)
}

fn chat_happening(post: &Post<'_>, speaker: Speaker, now: Timestamp) -> ChatHappening {
    let ChatMessage { sender, text, emojis } = post.message;
    ChatHappening {
        user_role_code: UserRoleCode::of(post.channel, sender, speaker.role),
        sender_channel_id: sender.clone(),
        nickname: speaker.name,
        verified_mark: speaker.verified_mark,
        chat_channel_id: chat_channel_id(post.channel),
        content: text.as_str().to_owned(),
        emojis: emojis.clone(),
        message_time: now,
    }
}

/// Who speaks, once it is sure that they may. The streamer and managers are exempt from every rule (decisions 5).
async fn admitted(
    tx: &mut Tx,
    post: &Post<'_>,
    facts: Option<ChatFacts>,
    now: Timestamp,
) -> Result<Speaker, Error> {
    let Post { channel, message, .. } = post;
    let is_streamer = message.sender == **channel;
    let Some(facts) = facts else {
        return Err(if is_streamer {
            Refusal::NotFound(Resource::Channel).into()
        } else {
            unknown_channel(tx, channel, "senderChannelId").await?
        });
    };
    if !is_streamer && facts.speaker.role.is_none() {
        let text = message.text.as_str();
        may_speak(&facts.settings, &facts.viewer, text, &message.emojis, now).map_err(Refusal::from)?;
        wait_for_turn(tx, channel, &message.sender, &facts.settings, now).await?;
    }
    Ok(facts.speaker)
}

/// Slow mode. It comes last, so that only a message that is let through counts.
async fn wait_for_turn(
    tx: &mut Tx,
    channel: &ChannelId,
    sender: &ChannelId,
    settings: &ChatSettings,
    now: Timestamp,
) -> Result<(), Error> {
    if settings.slow_mode_sec == 0 {
        return Ok(());
    }
    match tx.take_turn(channel, sender, settings.slow_mode_sec, now).await? {
        Turn::Taken => Ok(()),
        Turn::TooSoon { last } => Err(Refusal::from(slow_mode_left(settings, last, now)).into()),
    }
}

/// The answer of an earlier request, as [`post`] recorded it.
fn earlier_message(answer: &str, chat_channel_id: String) -> Result<PostedMessage, Error> {
    let (id, time) = answer.split_once(' ').ok_or(Error::Internal(UNREADABLE_ANSWER))?;
    let message_time = Timestamp::from_millis(time.parse().map_err(|_| Error::Internal(UNREADABLE_ANSWER))?);
    Ok(PostedMessage { message_id: MessageId::stored(id.to_owned()), message_time, chat_channel_id })
}
