//! How people find each other: by the name or the id of a channel. Logins are never looked at.

use domain::ChannelId;
use domain::limits::NAME_CHARS_MAX;
use store::Tx;
pub use store::queries::named_channels::NamedChannel;

use crate::{Error, Service};

/// Channels that one search gives.
pub const PEOPLE_FOUND_MAX: i64 = 8;
/// Characters that a search spells in each case.
const SPELLED_CHARS_MAX: usize = 3;

/// Whom a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called {
    /// This channel alone.
    One(ChannelId),
    /// Several, or only the beginning of names: a person has to choose.
    Several(Vec<NamedChannel>),
    /// Nobody.
    Nobody,
}

impl Service {
    /// Whom a text names: a channel by its id or its whole name. What is the id of one channel and the name
    /// of others is left to the person, and so is the beginning of a name.
    pub async fn channel_called(&self, text: &str) -> Result<Called, Error> {
        let text = text.trim().to_owned();
        if text.is_empty() || text.chars().count() > NAME_CHARS_MAX || text.contains('\0') {
            return Ok(Called::Nobody);
        }
        let id = ChannelId::parse("channelId", &text).ok();
        self.read(async move |tx: &mut Tx| {
            let of_id = match &id {
                Some(id) => tx.channels_by_id(std::slice::from_ref(id)).await?.pop(),
                None => None,
            };
            let mut called = tx.channels_called(&text, PEOPLE_FOUND_MAX).await?;
            if let Some(channel) = of_id
                && !called.iter().any(|one| one.channel_id == channel.channel_id)
            {
                called.insert(
                    0,
                    NamedChannel {
                        channel_id: channel.channel_id,
                        name: channel.name,
                        follower_count: channel.follower_count,
                        verified_mark: channel.verified_mark,
                    },
                );
            }
            Ok(match (called.len(), called.pop()) {
                (1, Some(only)) => Called::One(only.channel_id),
                (_, Some(last)) => Called::Several(called.into_iter().chain([last]).collect()),
                (_, None) => match beginning_with(tx, &text).await? {
                    found if found.is_empty() => Called::Nobody,
                    found => Called::Several(found),
                },
            })
        })
        .await
    }

    /// Up to [`PEOPLE_FOUND_MAX`] channels whose name begins with a text.
    pub async fn suggested_channels(&self, text: &str) -> Result<Vec<NamedChannel>, Error> {
        let text = text.trim().to_owned();
        if text.is_empty() || text.chars().count() > NAME_CHARS_MAX || text.contains('\0') {
            return Ok(Vec::new());
        }
        self.read(async move |tx: &mut Tx| beginning_with(tx, &text).await).await
    }
}

/// Channels whose name begins with a text in any case. The index of names knows the case, so it is read once
/// for each spelling of the first characters.
async fn beginning_with(tx: &mut Tx, text: &str) -> Result<Vec<NamedChannel>, Error> {
    let mut found: Vec<NamedChannel> = Vec::new();
    for spelling in spellings(text) {
        let left = PEOPLE_FOUND_MAX - i64::try_from(found.len()).unwrap_or(PEOPLE_FOUND_MAX);
        if left > 0 {
            found.extend(tx.channels_beginning_with(&spelling, text, left).await?);
        }
    }
    Ok(found)
}

/// The spellings of the first [`SPELLED_CHARS_MAX`] characters of a text: as they are typed, then the others.
fn spellings(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for character in text.chars().take(SPELLED_CHARS_MAX) {
        let (small, capital) = (character.to_lowercase().to_string(), character.to_uppercase().to_string());
        let mut written = vec![character.to_string()];
        written.extend([small, capital].into_iter().filter(|other| *other != character.to_string()));
        all = written.iter().flat_map(|end| all.iter().map(move |start| format!("{start}{end}"))).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_characters_are_spelled_in_each_case() {
        assert_eq!(spellings("mIna"), ["mIn", "MIn", "min", "Min", "mIN", "MIN", "miN", "MiN"]);
        assert_eq!(spellings("하늘"), ["하늘"]);
        assert_eq!(spellings("1a"), ["1a", "1A"]);
    }
}
