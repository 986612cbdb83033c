//! Chats in slow mode. Batches with messages of the same viewers lock the same rows in such a chat, so a
//! batch locks the chat before its first entry (`docs/adr/0025-locks-are-taken-in-one-order.md`). This
//! node adds a chat at the first slow-mode message that is posted through this node.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use domain::ChannelId;

/// Maximum number of chats in memory. A dropped chat is added again at its next slow-mode message.
const CHATS_MAX: usize = 4_096;

/// The chats to which a viewer posted in slow mode through this node.
#[derive(Default)]
pub(crate) struct SlowChats(Mutex<HashSet<ChannelId>>);

impl SlowChats {
    /// Records that a message was posted in slow mode.
    pub fn note(&self, channel: &ChannelId) {
        let mut chats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !chats.contains(channel) {
            if chats.len() >= CHATS_MAX {
                chats.clear();
            }
            chats.insert(channel.clone());
        }
    }

    /// Whether the chat is known to be in slow mode.
    pub fn contains(&self, channel: &ChannelId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_are_remembered_and_their_number_is_bounded() {
        let (chats, chat) = (SlowChats::default(), |n: usize| ChannelId::stored(n.to_string()));
        for n in 0..3 * CHATS_MAX {
            chats.note(&chat(n));
            assert!(chats.contains(&chat(n)) && !chats.contains(&chat(n + 1)));
            assert!(chats.0.lock().unwrap().len() <= CHATS_MAX);
        }
    }
}
