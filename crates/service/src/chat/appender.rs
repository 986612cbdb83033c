//! The chat appender: on PostgreSQL concurrent chat messages share a transaction (group commit,
//! `docs/adr/0026-chat-messages-share-a-commit.md`). On SQLite the writer of the store does this for all
//! writes.
//!
//! A message waits until a batch has room. A batch takes all messages that wait, so a single caller does
//! not wait, and batches grow with the load. Each message has its own outcome. A batch locks nothing that
//! another transaction may hold: messages with an idempotency key, and viewers' messages in slow mode, are
//! posted alone.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::chat::{check_badges, check_emojis};
use domain::chat_settings::may_speak;
use domain::event::EventKind;
use domain::{ChannelId, Refusal};
use store::queries::channels::Speaker;
use store::queries::chat_appends::MessageAppend;
use store::queries::chat_settings::ChatFacts;
use store::{Contention, StoreError, Tx};
use tokio::sync::oneshot;

use crate::chat::append_queue::{Appended, Waiting};
use crate::chat::messages::{ChatMessage, PostedMessage};
use crate::chat::posts::{Author, Post, Posting, chat_event};
use crate::platform::channel_events::{json, publish};
use crate::work::Work;
use crate::{Error, Service};

/// A batch that runs for longer is slow. It stops counting, so that it does not hold the messages behind it.
const SLOW_AFTER: Duration = Duration::from_millis(50);
/// Maximum number of runs of a batch that conflicts with other transactions.
const TRIES_MAX: u32 = 3;

/// Why messages failed that waited behind a batch of unknown outcome.
const UNCONFIRMED: &str = "it did not confirm the commit of earlier messages";

/// A message whose sender may post.
struct Admitted {
    channel: ChannelId,
    message: Arc<ChatMessage>,
    /// What is known of a viewer. The streamer's name is read when the message is written.
    viewer: Option<Author>,
    /// Whether restrictions apply to the sender.
    is_restrictable: bool,
}

impl Service {
    /// Whether chat messages share transactions.
    pub(super) fn appends_chats(&self) -> bool {
        self.0.store.is_remote()
    }

    /// Posts a message together with others. Returns after the commit and the publication.
    pub(super) async fn append_chat(
        &self,
        channel: &ChannelId,
        message: Arc<ChatMessage>,
    ) -> Result<Appended, Error> {
        check_emojis(&message.emojis)?;
        check_badges(message.badges.as_deref().unwrap_or_default())?;
        let (outcome, ended) = oneshot::channel();
        self.0.chat_appender.push(Waiting { channel: channel.clone(), message, outcome })?;
        self.begin_batches();
        // The sender is dropped only by a panic, which rolled back, or came after the commit.
        Ok(ended.await.unwrap_or(Appended::Done(Err(StoreError::CommitUnknown.into()))))
    }

    fn begin_batches(&self) {
        while let Some(batch) = self.0.chat_appender.begin_batch() {
            let service = Self(self.0.clone(), None);
            tokio::spawn(async move { service.run_batch(batch).await });
        }
    }

    async fn run_batch(&self, batch: Vec<Waiting>) {
        let mut place = self.0.chat_appender.place();
        let mut posting = pin!(self.post_batch(batch));
        tokio::select! {
            biased;
            () = &mut posting => {}
            () = self.clock().sleep(SLOW_AFTER) => {
                place.become_slow();
                self.begin_batches();
                posting.await;
            }
        }
        drop(place);
        self.begin_batches();
    }

    async fn post_batch(&self, batch: Vec<Waiting>) {
        let facts = match self.facts_of_viewers(&batch).await {
            Ok(facts) => facts,
            Err(error) => {
                let outcomes = batch.into_iter().map(|waiting| waiting.outcome);
                return self.end_all(outcomes, &error);
            }
        };
        let (mut admitted, mut outcomes) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for (waiting, facts) in batch.into_iter().zip(facts) {
            let viewer = match self.admission(&waiting, facts) {
                Ok(Admission::Streamer) => None,
                Ok(Admission::Viewer(author)) => Some(author),
                Ok(Admission::Alone) => {
                    waiting.end(Appended::Alone);
                    continue;
                }
                Err(refusal) => {
                    waiting.end(Appended::Done(Err(refusal.into())));
                    continue;
                }
            };
            let Waiting { channel, message, outcome } = waiting;
            let is_restrictable = viewer.as_ref().is_some_and(|author| author.speaker.role.is_none());
            admitted.push(Admitted { channel, message, viewer, is_restrictable });
            outcomes.push(outcome);
        }
        self.post_admitted(admitted, outcomes).await;
    }

    /// The facts about the senders of messages; `None` for streamers, and for viewers or channels that do not
    /// exist.
    async fn facts_of_viewers(&self, batch: &[Waiting]) -> Result<Vec<Option<ChatFacts>>, StoreError> {
        let viewers = batch.iter().filter(|waiting| waiting.message.sender != waiting.channel);
        let viewers: Vec<_> =
            viewers.map(|waiting| (waiting.channel.clone(), waiting.message.sender.clone())).collect();
        if viewers.is_empty() {
            return Ok(batch.iter().map(|_| None).collect());
        }
        let mut found = self
            .0
            .store
            .read(async move |tx: &mut Tx| {
                let asked: Vec<_> = viewers.iter().map(|(channel, sender)| (channel, sender)).collect();
                Ok::<_, StoreError>(tx.chat_facts(&asked).await?.into_iter())
            })
            .await?;
        let of_each = batch.iter().map(|waiting| {
            let is_viewer = waiting.message.sender != waiting.channel;
            is_viewer.then(|| found.next().flatten()).flatten()
        });
        Ok(of_each.collect())
    }

    /// Decides whether a sender may post. The streamer and managers are exempt from every rule.
    fn admission(&self, waiting: &Waiting, facts: Option<ChatFacts>) -> Result<Admission, Refusal> {
        let message = &waiting.message;
        if message.sender == waiting.channel {
            return Ok(Admission::Streamer);
        }
        // The call that is alone finds out what does not exist.
        let Some(ChatFacts { speaker, viewer, settings }) = facts else { return Ok(Admission::Alone) };
        if speaker.role.is_none() {
            may_speak(&settings, &viewer, message.text.as_str(), &message.emojis, self.now())?;
            if settings.slow_mode_sec > 0 {
                return Ok(Admission::Alone);
            }
        }
        Ok(Admission::Viewer(Author { speaker, subscriber: viewer.subscriber }))
    }

    /// Posts messages in one transaction. If one of them fails, the transaction is run again in halves, so
    /// that one message harms no other.
    async fn post_admitted(&self, messages: Vec<Admitted>, outcomes: Vec<oneshot::Sender<Appended>>) {
        let (messages, mut outcomes) = (Arc::new(messages), outcomes.into_iter());
        let mut parts = Vec::from([Range { start: 0, end: messages.len() }]);
        while let Some(part) = parts.pop() {
            let count = part.len();
            match self.write_part(&messages, part.clone()).await {
                Ok(posted) => {
                    // In this order: at its end a zip has taken one more item from its first side.
                    for (posted, outcome) in posted.into_iter().zip(outcomes.by_ref()) {
                        let _ = outcome.send(posted.map_or(Appended::Alone, |it| Appended::Done(Ok(it))));
                    }
                }
                Err(Error::Store(error)) if error.is_outage() => {
                    return self.end_all(outcomes, &error);
                }
                Err(_) if count > 1 => {
                    let middle = part.start + count / 2;
                    parts.extend([middle..part.end, part.start..middle]);
                }
                Err(_) => _ = outcomes.next().map(|outcome| outcome.send(Appended::Alone)),
            }
        }
    }

    /// Ends messages with the failure of the store. So the messages behind them do not wait for the same
    /// failure.
    fn end_all(&self, outcomes: impl Iterator<Item = oneshot::Sender<Appended>>, error: &StoreError) {
        let end = |outcome: oneshot::Sender<Appended>, error: &StoreError| {
            let _ = outcome.send(Appended::Done(Err(error.clone().into())));
        };
        outcomes.for_each(|outcome| end(outcome, error));
        if error.is_contention() {
            return;
        }
        // Nothing was written for those that still wait.
        let unwritten = match error {
            StoreError::CommitUnknown => StoreError::Unavailable(UNCONFIRMED.to_owned()),
            error => error.clone(),
        };
        for waiting in self.0.chat_appender.take_waiting() {
            end(waiting.outcome, &unwritten);
        }
    }

    /// Posts messages in one transaction, which is run again after a deadlock or a lost race. `None` for a
    /// message whose sender or channel does not exist, or whose sender has been restricted.
    async fn write_part(
        &self,
        messages: &Arc<Vec<Admitted>>,
        part: Range<usize>,
    ) -> Result<Vec<Option<PostedMessage>>, Error> {
        let mut tries = 1;
        loop {
            let (messages, part, posting) = (messages.clone(), part.clone(), self.posting());
            let written = self
                .write(async move |work: &mut Work<'_>| append(work, &messages[part], &posting).await)
                .await;
            match written {
                Err(Error::Store(StoreError::Contention(Contention::Deadlock | Contention::LostRace)))
                    if tries < TRIES_MAX =>
                {
                    tries += 1;
                }
                written => return written,
            }
        }
    }
}

/// What the facts say about a message.
enum Admission {
    Streamer,
    Viewer(Author),
    Alone,
}

/// Appends messages inside a transaction, as its only statement.
async fn append(
    work: &mut Work<'_>,
    messages: &[Admitted],
    posting: &Posting,
) -> Result<Vec<Option<PostedMessage>>, Error> {
    let now = work.now();
    let posts: Vec<_> = messages
        .iter()
        .map(|admitted| {
            let Admitted { channel, message, .. } = admitted;
            let post = Post { channel, message, posting, key: None };
            let place = post.place(now);
            (admitted, post, place)
        })
        .collect();
    let rows: Vec<_> = posts
        .iter()
        .map(|(admitted, post, place)| MessageAppend {
            id: &place.id,
            channel: post.channel,
            sender: &post.message.sender,
            content: post.message.text.as_str(),
            emojis: json(&post.message.emojis),
            message_time: place.time,
            is_viewer: admitted.is_restrictable,
        })
        .collect();
    let senders = work.append_chat_messages(&rows).await?;
    let mut posted = Vec::with_capacity(posts.len());
    for ((admitted, post, place), sender) in posts.into_iter().zip(senders) {
        let Some(sender) = sender else {
            posted.push(None);
            continue;
        };
        let (role, subscriber) =
            admitted.viewer.as_ref().map_or((None, false), |it| (it.speaker.role, it.subscriber));
        let speaker = Speaker { name: sender.name, verified_mark: sender.verified_mark, role };
        let chat = chat_event(&post, Author { speaker, subscriber }, place.time);
        posted.push(Some(place.message(chat.chat_channel_id.clone())));
        publish(work, post.channel.clone(), EventKind::Chat(chat));
    }
    Ok(posted)
}
