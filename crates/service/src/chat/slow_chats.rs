//! Chats in slow mode. Batches that hold messages of the same viewers wait for each other's turns there, so a batch locks such a
//! chat before its first line (`docs/adr/0025-locks-are-taken-in-one-order.md`). This node learns of a chat from the first turn in it.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use domain::ChannelId;

/// Chats that are remembered. One that is forgotten is learned again.
const CHATS_MAX: usize = 4_096;

/// The chats in which a viewer of this node has taken a turn.
#[derive(Default)]
pub(crate) struct SlowChats(Mutex<HashSet<ChannelId>>);

impl SlowChats {
    /// Takes note that a viewer takes a turn.
    pub fn note(&self, channel: &ChannelId) {
        let mut chats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !chats.contains(channel) {
            if chats.len() >= CHATS_MAX {
                chats.clear();
            }
            chats.insert(channel.clone());
        }
    }

    /// Whether viewers take turns.
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
