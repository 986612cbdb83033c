//! The encoding of messages between nodes: one byte for the version, then [`Origin`] and [`Message`] in the
//! format of [`postcard`]. Nodes of different versions meet during a rolling upgrade. A message of another
//! version is not decoded, and its events count as lost.
//!
//! A change of a type inside [`Message`] changes the bytes, also a change of the order of fields or variants.
//! Such a change needs a higher [`VERSION`], and a test fails without. A new variant that comes last needs
//! none: it changes no other bytes, and a node that does not know the variant treats its messages like those
//! of another version.

use serde::{Deserialize, Serialize};

use crate::Message;

/// The version that is written, and the only version that is read.
const VERSION: u8 = 3;

/// The publisher and the number of a message. Numbers of a publisher only grow, so a number up to the last
/// one is a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Identifies one start of one node.
    pub(crate) publisher: u64,
    pub(crate) number: u64,
}

/// The bytes are not a message of a known version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message that this version cannot read")]
pub(crate) struct Malformed;

/// The header, which precedes the bytes of [`encode`].
pub(crate) fn header(origin: Origin) -> Vec<u8> {
    append(vec![VERSION], &origin)
}

/// The bytes of a message after its header.
pub(crate) fn encode(message: &Message) -> Vec<u8> {
    append(Vec::new(), message)
}

/// Decodes a header and its message. No memory is reserved for a length that the bytes do not contain.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Origin, Message), Malformed> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => match postcard::take_from_bytes(rest) {
            Ok((decoded, [])) => Ok(decoded),
            Ok(_) | Err(_) => Err(Malformed),
        },
        Some(_) | None => Err(Malformed),
    }
}

/// Writing into memory fails only for a sequence of unknown length. No message contains one.
fn append<T: Serialize>(bytes: Vec<u8>, value: &T) -> Vec<u8> {
    postcard::to_extend(value, bytes).unwrap_or_default()
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
