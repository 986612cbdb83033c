//! The chat appender: on PostgreSQL concurrent chat messages share a transaction (`group_commit.rs`,
//! `docs/adr/0026-chat-messages-share-a-commit.md`).
//!
//! A batch locks nothing that another transaction may hold: messages with an idempotency key, and viewers'
//! messages in slow mode, are posted alone.

use std::sync::Arc;

use domain::ChannelId;
use domain::chat::{check_badges, check_emojis};
use domain::chat_settings::may_speak;
use domain::event::EventKind;
use store::queries::channels::Speaker;
use store::queries::chat_appends::MessageAppend;
use store::queries::chat_settings::ChatFacts;
use store::{StoreError, Tx};

use crate::chat::chat_append::ChatAppend;
use crate::chat::messages::{ChatMessage, PostedMessage};
use crate::chat::posts::{Author, Post, chat_event};
use crate::commit_queue::CommitQueue;
use crate::group_commit::{Decision, GroupCommit, Locking, Written};
use crate::platform::channel_events::{json, publish};
use crate::service::Inner;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Posts a message together with others. `None` if it has to be posted alone.
    pub(super) async fn append_chat(
        &self,
        channel: &ChannelId,
        message: &Arc<ChatMessage>,
    ) -> Option<Result<PostedMessage, Error>> {
        let checked = check_emojis(&message.emojis)
            .and_then(|()| check_badges(message.badges.as_deref().unwrap_or_default()));
        if let Err(invalid) = checked {
            return Some(Err(invalid.into()));
        }
        let append = ChatAppend { channel: channel.clone(), message: message.clone(), viewer: None };
        self.share_commit(append).await
    }

    /// The facts about the senders of messages; `None` for streamers, and for viewers or channels that do not
    /// exist.
    async fn facts_of_viewers(&self, appends: &[ChatAppend]) -> Result<Vec<Option<ChatFacts>>, StoreError> {
        let viewers: Vec<_> = appends
            .iter()
            .filter(|append| !append.is_streamers())
            .map(|append| (append.channel.clone(), append.message.sender.clone()))
            .collect();
        if viewers.is_empty() {
            return Ok(appends.iter().map(|_| None).collect());
        }
        let mut found = self
            .0
            .store
            .read(async move |tx: &mut Tx| {
                let asked: Vec<_> = viewers.iter().map(|(channel, sender)| (channel, sender)).collect();
                Ok::<_, StoreError>(tx.chat_facts(&asked).await?.into_iter())
            })
            .await?;
        let of_each =
            appends.iter().map(|append| (!append.is_streamers()).then(|| found.next().flatten()).flatten());
        Ok(of_each.collect())
    }

    /// Decides whether a sender may post. The streamer and managers are exempt from every rule.
    fn admit(&self, append: &mut ChatAppend, facts: Option<ChatFacts>) -> Decision {
        if append.is_streamers() {
            return Decision::Ready;
        }
        // The call that is alone finds out what does not exist.
        let Some(facts) = facts else { return Decision::Alone };
        let ChatFacts { speaker, viewer, settings } = &facts;
        let message = &append.message;
        if speaker.role.is_none() {
            if let Err(refusal) =
                may_speak(settings, viewer, message.text.as_str(), &message.emojis, self.now())
            {
                return Decision::Refused(refusal.into());
            }
            if settings.slow_mode_sec > 0 {
                return Decision::Alone;
            }
        }
        append.viewer = Some(facts);
        Decision::Ready
    }
}

impl GroupCommit for ChatAppend {
    type Done = PostedMessage;

    fn queue(inner: &Inner) -> &CommitQueue<Self, PostedMessage> {
        &inner.chat_appends
    }

    async fn judge(service: &Service, requests: &mut [Self]) -> Result<Vec<Decision>, StoreError> {
        let facts = service.facts_of_viewers(requests).await?;
        Ok(requests.iter_mut().zip(facts).map(|(append, facts)| service.admit(append, facts)).collect())
    }

    /// The senders or channels of messages that are not written do not exist, or the senders have been
    /// restricted.
    async fn write(
        service: &Service,
        work: &mut Work<'_>,
        requests: &[Arc<Self>],
        _: Locking,
    ) -> Result<Vec<Written<PostedMessage>>, Error> {
        let (now, posting) = (work.now(), service.posting());
        let posts: Vec<_> = requests
            .iter()
            .map(|append| {
                let ChatAppend { channel, message, .. } = &**append;
                let post = Post { channel, message, posting: &posting, key: None };
                let place = post.place(now);
                (append, post, place)
            })
            .collect();
        let rows: Vec<_> = posts
            .iter()
            .map(|(append, post, place)| MessageAppend {
                id: &place.id,
                channel: post.channel,
                sender: &post.message.sender,
                content: post.message.text.as_str(),
                emojis: json(&post.message.emojis),
                message_time: place.time,
                is_viewer: append.is_restrictable(),
            })
            .collect();
        let senders = work.append_chat_messages(&rows).await?;
        let mut written = Vec::with_capacity(posts.len());
        for ((append, post, place), sender) in posts.into_iter().zip(senders) {
            let Some(sender) = sender else {
                written.push(Written::Alone);
                continue;
            };
            let (role, subscriber) =
                append.viewer.as_ref().map_or((None, false), |it| (it.speaker.role, it.viewer.subscriber));
            let speaker = Speaker { name: sender.name, verified_mark: sender.verified_mark, role };
            let chat = chat_event(&post, Author { speaker, subscriber }, place.time);
            written.push(Written::Done(place.message(chat.chat_channel_id.clone())));
            publish(work, post.channel.clone(), EventKind::Chat(chat));
        }
        Ok(written)
    }
}
