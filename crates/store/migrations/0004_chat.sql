-- Chat settings, notices, restriction.

-- A channel without a row has the default settings.
CREATE TABLE chat_settings (
    channel_id                        TEXT PRIMARY KEY REFERENCES channels (channel_id) ON DELETE CASCADE,
    chat_available_condition          TEXT NOT NULL,
    chat_available_group              TEXT NOT NULL,
    min_follower_minute               BIGINT NOT NULL,
    allow_subscriber_in_follower_mode BOOLEAN NOT NULL,
    chat_slow_mode_sec                BIGINT NOT NULL,
    chat_emoji_mode                   BOOLEAN NOT NULL
);

-- When a viewer last spoke in a chat, written in slow mode only. Rows live for minutes, so nothing refers to anything.
CREATE TABLE chat_speakers (
    channel_id        TEXT NOT NULL,
    sender_channel_id TEXT NOT NULL,
    last_message_at   BIGINT NOT NULL,
    PRIMARY KEY (channel_id, sender_channel_id)
);
CREATE INDEX chat_speakers_age ON chat_speakers (last_message_at);

-- One notice a channel. message_id is null for a text of its own.
CREATE TABLE chat_notices (
    channel_id TEXT PRIMARY KEY REFERENCES channels (channel_id) ON DELETE CASCADE,
    message_id TEXT,
    content    TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Hidden messages are found by their ids, which begin with their time: the table still has no index but the one that
-- grows with time.
ALTER TABLE chat_messages ADD COLUMN hidden_at BIGINT;

CREATE TABLE restricted_channels (
    channel_id            TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    restricted_channel_id TEXT NOT NULL REFERENCES channels (channel_id) ON DELETE CASCADE,
    created_at            BIGINT NOT NULL,
    PRIMARY KEY (channel_id, restricted_channel_id)
);
CREATE INDEX restricted_channels_newest ON restricted_channels (channel_id, created_at, restricted_channel_id);

-- Over at ends_at, whether or not the row has been swept. Rows live for minutes, so nothing refers to anything.
CREATE TABLE temporary_restrictions (
    channel_id            TEXT NOT NULL,
    restricted_channel_id TEXT NOT NULL,
    ends_at               BIGINT NOT NULL,
    PRIMARY KEY (channel_id, restricted_channel_id)
);
CREATE INDEX temporary_restrictions_end ON temporary_restrictions (ends_at);
