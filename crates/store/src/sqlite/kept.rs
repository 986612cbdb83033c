//! What decides whether somebody may speak, kept from one message of theirs to the next. Only the writer of a file keeps it:
//! nobody else changes what it is read from, so it is forgotten when the writer does
//! (`docs/adr/0019-the-writer-remembers-who-may-speak.md`).

use std::collections::HashMap;

use domain::ChannelId;

use crate::queries::chat_settings::{ChatFacts, FACTS_SOURCES};

/// Pairs of a channel and a speaker: some 250 B each, so 1 MiB. When there are as many, all are forgotten.
const PAIRS_MAX: usize = 4_096;

/// What a statement means to what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It begins a transaction.
    Begins,
    /// It may change what the facts are read from.
    Spoils,
    /// Nothing.
    None,
}

impl Effect {
    /// Of a statement that writes, its text is searched for names: to forget too much does no harm.
    pub fn of(sql: &str, only_reads: bool) -> Self {
        if sql.starts_with("BEGIN") {
            Self::Begins
        } else if !only_reads && names_a_source(&sql.to_ascii_lowercase()) {
            Self::Spoils
        } else {
            Self::None
        }
    }
}

fn names_a_source(sql: &str) -> bool {
    FACTS_SOURCES.iter().any(|table| sql.contains(table))
}

/// The facts by channel and speaker.
#[derive(Default)]
pub(crate) struct KeptFacts {
    facts: HashMap<Box<str>, ChatFacts>,
    /// Room for the key that is looked for.
    key: String,
    /// The transaction has changed a source. What it reads may yet be taken back, so nothing is kept before the next one.
    is_spoilt: bool,
}

impl KeptFacts {
    /// What is known of a speaker in a channel's chat.
    pub fn get(&mut self, channel: &ChannelId, speaker: &ChannelId) -> Option<ChatFacts> {
        if self.facts.is_empty() {
            return None;
        }
        self.facts.get(key(&mut self.key, channel, speaker)).cloned()
    }

    /// Keeps what was just read.
    pub fn keep(&mut self, channel: &ChannelId, speaker: &ChannelId, facts: &ChatFacts) {
        if self.is_spoilt {
            return;
        }
        if self.facts.len() >= PAIRS_MAX {
            self.facts.clear();
        }
        self.facts.insert(key(&mut self.key, channel, speaker).into(), facts.clone());
    }

    /// Hears of a statement before it runs.
    pub(super) fn hear(&mut self, effect: Effect) {
        match effect {
            Effect::Begins => self.is_spoilt = false,
            Effect::Spoils => {
                self.is_spoilt = true;
                self.facts.clear();
            }
            Effect::None => {}
        }
    }
}

/// No id contains a line feed.
fn key<'k>(room: &'k mut String, channel: &ChannelId, speaker: &ChannelId) -> &'k str {
    room.clear();
    room.push_str(channel.as_str());
    room.push('\n');
    room.push_str(speaker.as_str());
    room
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::migrate::MIGRATIONS;

    #[test]
    fn statements_are_told_apart_by_what_they_do() {
        for (sql, only_reads, effect) in [
            ("BEGIN IMMEDIATE", true, Effect::Begins),
            ("COMMIT", true, Effect::None),
            ("SELECT 1 FROM channels", true, Effect::None),
            ("INSERT INTO chat_messages (channel_id) VALUES ($1)", false, Effect::None),
            ("UPDATE channels SET follower_count = 0", false, Effect::Spoils),
            ("update Channels set follower_count = 0", false, Effect::Spoils),
            ("\n    DELETE FROM managers WHERE channel_id = $1", false, Effect::Spoils),
            ("INSERT INTO chat_speakers SELECT 1 FROM followers", false, Effect::Spoils),
        ] {
            assert_eq!(Effect::of(sql, only_reads), effect, "{sql}");
        }
    }

    /// A statement changes the tables that it names: nothing else follows from it behind its back.
    #[test]
    fn no_other_table_brings_a_source_to_change() {
        let schema = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            schema.execute_batch(migration.sql).unwrap();
        }
        let count = |sql: &str| schema.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'trigger'"), 0);
        for table in FACTS_SOURCES {
            let named =
                format!("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = '{table}'");
            assert_eq!(count(&named), 1, "{table}");
            let sql = format!("SELECT DISTINCT \"table\" FROM pragma_foreign_key_list('{table}')");
            let mut parents = schema.prepare(&sql).unwrap();
            for parent in parents.query_map([], |row| row.get::<_, String>(0)).unwrap() {
                let parent = parent.unwrap();
                assert!(FACTS_SOURCES.contains(&parent.as_str()), "{table} loses rows with {parent}");
            }
        }
    }

    fn facts() -> ChatFacts {
        use crate::queries::channels::Speaker;
        use domain::chat_settings::{ChatSettings, Viewer};
        use domain::restriction::Standing;
        ChatFacts {
            speaker: Speaker { name: "b".to_owned(), verified_mark: false, role: None },
            viewer: Viewer {
                real_name_verified: false,
                following_since: None,
                subscriber: false,
                standing: Standing::default(),
            },
            settings: ChatSettings::default(),
        }
    }

    #[test]
    fn what_a_spoilt_transaction_reads_is_not_kept_and_the_number_of_pairs_is_bounded() {
        let id = |number: usize| ChannelId::stored(number.to_string());
        let mut kept = KeptFacts::default();
        kept.keep(&id(1), &id(2), &facts());
        assert!(kept.get(&id(1), &id(2)).is_some() && kept.get(&id(2), &id(1)).is_none());
        kept.hear(Effect::Spoils);
        assert!(kept.get(&id(1), &id(2)).is_none());
        kept.keep(&id(1), &id(2), &facts());
        assert!(kept.get(&id(1), &id(2)).is_none(), "it may be taken back");
        kept.hear(Effect::Begins);
        for number in 0..=PAIRS_MAX {
            kept.keep(&id(number), &id(0), &facts());
            assert!(kept.facts.len() <= PAIRS_MAX && kept.get(&id(number), &id(0)).is_some());
        }
    }
}
