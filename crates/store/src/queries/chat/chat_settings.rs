//! Chat settings, and the facts that decide whether a viewer may post.

use std::sync::LazyLock;

use domain::chat_settings::{ChatSettings, ChatSettingsChange, Condition, Group, Viewer};
use domain::limits::SECOND_MS;
use domain::restriction::RestrictionStatus;
use domain::{ChannelId, Timestamp};

use crate::queries::batched::{BatchedStatement, ColumnType};
use crate::queries::channels::Speaker;
use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, Value, params};

const CHAT_SETTINGS: &str =
    sql!("SELECT ", ChatSettings::COLUMNS, " FROM chat_settings o WHERE o.channel_id = $1");

/// `$2` to `$7` are the row of a channel without one, `$8` to `$13` the changes. One statement, so that
/// concurrent changes of different fields both take effect.
const CHANGE_CHAT_SETTINGS: &str = "
    INSERT INTO chat_settings
        (channel_id, chat_available_condition, chat_available_group, min_follower_minute,
         allow_subscriber_in_follower_mode, chat_slow_mode_sec, chat_emoji_mode)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (channel_id) DO UPDATE SET
        chat_available_condition = COALESCE(CAST($8 AS TEXT), chat_settings.chat_available_condition),
        chat_available_group = COALESCE(CAST($9 AS TEXT), chat_settings.chat_available_group),
        min_follower_minute = COALESCE(CAST($10 AS BIGINT), chat_settings.min_follower_minute),
        allow_subscriber_in_follower_mode =
            COALESCE(CAST($11 AS BOOLEAN), chat_settings.allow_subscriber_in_follower_mode),
        chat_slow_mode_sec = COALESCE(CAST($12 AS BIGINT), chat_settings.chat_slow_mode_sec),
        chat_emoji_mode = COALESCE(CAST($13 AS BOOLEAN), chat_settings.chat_emoji_mode)";

/// The facts of a list of channels and speakers. The follow is looked up only if the chat's settings need it.
static FACTS: LazyLock<BatchedStatement<2>> = LazyLock::new(|| {
    BatchedStatement::placed([ColumnType::Text, ColumnType::Text], |rows| {
        let facts = ChatFacts::COLUMNS;
        format!(
            "
    WITH asked (place, channel_id, speaker_id) AS ({rows})
    SELECT CAST(a.place AS BIGINT), {facts}
    FROM asked a
    CROSS JOIN channels s
    CROSS JOIN channels c
    LEFT JOIN chat_settings o ON o.channel_id = c.channel_id
    LEFT JOIN managers m ON m.channel_id = c.channel_id AND m.manager_channel_id = s.channel_id
    LEFT JOIN restricted_channels r ON r.channel_id = c.channel_id AND r.restricted_channel_id = s.channel_id
    LEFT JOIN temporary_restrictions t ON t.channel_id = c.channel_id AND t.restricted_channel_id = s.channel_id
    WHERE s.channel_id = a.speaker_id AND c.channel_id = a.channel_id
        AND s.deleted_at IS NULL AND c.deleted_at IS NULL"
        )
    })
});

const TAKE_SLOW_MODE_TURN: &str = "
    INSERT INTO chat_speakers (channel_id, sender_channel_id, last_message_at) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id, sender_channel_id) DO UPDATE SET last_message_at = excluded.last_message_at
    WHERE chat_speakers.last_message_at + CAST($4 AS BIGINT) <= excluded.last_message_at";

const LAST_TURN: &str = "
    SELECT last_message_at FROM chat_speakers WHERE channel_id = $1 AND sender_channel_id = $2";

/// A viewer in a channel's chat, and the facts that decide whether the viewer may post.
#[derive(Clone, Debug)]
pub struct ChatFacts {
    /// The viewer's name and role.
    pub speaker: Speaker,
    /// The viewer's relations to the channel. The follow is known if the chat's settings need it.
    pub viewer: Viewer,
    /// The settings of the chat.
    pub settings: ChatSettings,
}

columns!(ChatFacts {
    speaker: Speaker::COLUMNS,
    viewer: Viewer::COLUMNS,
    settings: ChatSettings::COLUMNS => Option::unwrap_or_default,
});

columns!(Viewer {
    real_name_verified: "s.real_name_verified",
    following_since: "CASE WHEN o.chat_available_group <> 'ALL' THEN
        (SELECT f.created_at FROM followers f
         WHERE f.channel_id = c.channel_id AND f.follower_channel_id = s.channel_id) END",
    subscriber: "EXISTS (SELECT 1 FROM subscribers b
         WHERE b.channel_id = c.channel_id AND b.subscriber_channel_id = s.channel_id)",
    restriction: RestrictionStatus::COLUMNS,
});

columns!(RestrictionStatus { restricted: "r.restricted_channel_id IS NOT NULL", until: "t.ends_at" });

columns!(outer_join ChatSettings {
    condition: "o.chat_available_condition",
    group: "o.chat_available_group",
    min_follower_minute: "o.min_follower_minute",
    allow_subscriber_in_follower_mode: "o.allow_subscriber_in_follower_mode",
    slow_mode_sec: "o.chat_slow_mode_sec",
    emoji_mode: "o.chat_emoji_mode",
});

/// Whether a viewer may post in slow mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowModeTurn {
    /// The viewer may, and the time of the message is recorded.
    Granted,
    /// The viewer's last message is too recent.
    TooSoon {
        /// The time of that message.
        last: Timestamp,
    },
}

impl Tx {
    /// The settings of a channel's chat.
    pub async fn chat_settings(&mut self, channel: &ChannelId) -> Result<ChatSettings, StoreError> {
        Ok(self.fetch_optional(CHAT_SETTINGS, params![channel]).await?.unwrap_or_default())
    }

    /// Changes the given fields. `StoreError::ForeignKey` if there is no such channel.
    pub async fn change_chat_settings(
        &mut self,
        channel: &ChannelId,
        change: ChatSettingsChange,
    ) -> Result<(), StoreError> {
        let first = change.applied_to(ChatSettings::default());
        self.execute(
            CHANGE_CHAT_SETTINGS,
            params![
                channel,
                first.condition.name(),
                first.group.name(),
                first.min_follower_minute,
                first.allow_subscriber_in_follower_mode,
                first.slow_mode_sec,
                first.emoji_mode,
                change.condition.map(Condition::name),
                change.group.map(Group::name),
                change.min_follower_minute,
                change.allow_subscriber_in_follower_mode,
                change.slow_mode_sec,
                change.emoji_mode
            ],
        )
        .await?;
        Ok(())
    }

    /// The facts that decide whether each sender may post in the chat of the channel before it; `None` if
    /// either does not exist.
    pub async fn chat_facts(
        &mut self,
        asked: &[(&ChannelId, &ChannelId)],
    ) -> Result<Vec<Option<ChatFacts>>, StoreError> {
        let rows = asked.iter().map(|(channel, sender)| [Value::from(*channel), Value::from(*sender)]);
        self.fetch_batched(&FACTS, rows.collect()).await
    }

    /// Records a viewer's message in slow mode, if the last one was `slow_mode_sec` seconds ago or longer. Of
    /// concurrent messages one is granted. The others wait for its transaction.
    pub async fn take_slow_mode_turn(
        &mut self,
        channel: &ChannelId,
        sender: &ChannelId,
        slow_mode_sec: i64,
        now: Timestamp,
    ) -> Result<SlowModeTurn, StoreError> {
        let params = params![channel, sender, now, slow_mode_sec * SECOND_MS];
        if self.execute(TAKE_SLOW_MODE_TURN, params).await? > 0 {
            return Ok(SlowModeTurn::Granted);
        }
        let last = self.fetch_one(LAST_TURN, params![channel, sender]).await?;
        Ok(SlowModeTurn::TooSoon { last })
    }
}
