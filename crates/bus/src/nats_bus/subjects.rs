//! The subjects of this service on NATS.

use domain::{ChannelId, NodeId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::Message;

/// Maximum length of a prefix, in bytes.
const PREFIX_BYTES_MAX: usize = 64;
/// The bytes of an id that are escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The text cannot be a prefix of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be words of ASCII letters, digits, - and _, separated by dots, 64 bytes in all")]
pub struct BadPrefix;

/// The prefix of every subject of this service, so that several services can share one NATS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Default for Prefix {
    fn default() -> Self {
        Self("stagedoor".to_owned())
    }
}

impl Prefix {
    /// Parses a prefix.
    ///
    /// # Errors
    /// [`BadPrefix`].
    pub fn parse(text: &str) -> Result<Self, BadPrefix> {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_plain);
        if text.len() <= PREFIX_BYTES_MAX && text.split('.').all(is_word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadPrefix)
        }
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn of_channel(&self, channel: &ChannelId) -> String {
        format!("{}.event.{}", self.0, word(channel.as_str()))
    }

    pub(super) fn of_node(&self, node: &NodeId) -> String {
        format!("{}.node.{}", self.0, word(node.as_str()))
    }

    /// Subjects that the rights to publish to channels and nodes cover. No id is encoded with two tildes, so
    /// nothing subscribes to them.
    pub(super) fn of_trials(&self, node: &NodeId) -> [String; 2] {
        ["event", "node"].map(|kind| format!("{}.{kind}.~~{}", self.0, word(node.as_str())))
    }

    /// A subject that the right to subscribe to channels covers, and that nothing publishes to.
    pub(super) fn of_subscribing_trial(&self, node: &NodeId) -> String {
        format!("{}.event.~~~{}", self.0, word(node.as_str()))
    }

    /// The subject of the probe of one move to another server.
    pub(super) fn of_probe(&self, move_id: u64) -> String {
        format!("{}.probe.{move_id}", self.0)
    }

    /// The subject of a message.
    pub(super) fn of_message(&self, message: &Message) -> String {
        match message {
            Message::Event(event) => self.of_channel(&event.channel_id),
            Message::SessionChanged { node, .. }
            | Message::SessionEvicted { node, .. }
            | Message::NodeDeclaredDead { node } => self.of_node(node),
        }
    }

    /// The channel of a subject of events.
    pub(super) fn channel_of(&self, subject: &str) -> Option<ChannelId> {
        let word = subject.strip_prefix(self.0.as_str())?.strip_prefix(".event.")?;
        let id = percent_decode_str(&word.replace('~', "%")).decode_utf8().ok()?.into_owned();
        Some(ChannelId::stored(id))
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// An id as one token of a subject. Dots separate tokens and some bytes are wildcards, so they are escaped.
fn word(id: &str) -> String {
    utf8_percent_encode(id, ESCAPED).to_string().replace('%', "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_words() {
        for (text, ok) in [("a", true), ("a.b-c_D9", true), (&"p".repeat(64), true), (&"p".repeat(65), false)]
        {
            assert_eq!(Prefix::parse(text).is_ok(), ok, "{text}");
        }
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "한", "a\r\n"] {
            assert_eq!(Prefix::parse(text), Err(BadPrefix), "{text}");
        }
    }

    #[test]
    fn every_id_is_encoded_as_one_word_and_decodes() {
        let prefix = Prefix::default();
        for id in ["haneul", "a.b", "..a", "A-b_9", "~2E", "%2E", "한 > *", "."] {
            let channel = ChannelId::stored(id.into());
            let subject = prefix.of_channel(&channel);
            assert_eq!(subject.split('.').count(), 3, "{subject}");
            assert!(subject.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'*' | b'>')), "{subject}");
            assert_eq!(prefix.channel_of(&subject), Some(channel));
        }
        assert_eq!(prefix.of_channel(&ChannelId::stored("a.b".into())), "stagedoor.event.a~2Eb");
        assert_eq!(prefix.of_node(&NodeId::stored("n".into())), "stagedoor.node.n");
        let node = NodeId::stored("n".into());
        assert_eq!(prefix.of_trials(&node), ["stagedoor.event.~~n", "stagedoor.node.~~n"]);
        assert_eq!(prefix.of_subscribing_trial(&node), "stagedoor.event.~~~n");
        assert_eq!(prefix.channel_of("stagedoor.node.n"), None);
        assert_eq!(prefix.channel_of("other.event.n"), None);
    }

    #[test]
    fn fuzz_prefixes() {
        fuzz::Fuzz::new("prefixes of subjects")
            .seeds(["stagedoor", "stagedoor.eu-1"])
            .tokens([".", "*"])
            .run(|input| {
                let text = String::from_utf8_lossy(input);
                let prefix = Prefix::parse(&text);
                assert!(prefix.as_ref().is_ok_and(|prefix| prefix.as_str() == text) || prefix.is_err());
                prefix.is_ok()
            });
    }
}
