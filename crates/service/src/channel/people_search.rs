//! How people find each other: by the name or the id of a channel. Logins are never looked at.

use domain::ChannelId;
use domain::limits::NAME_CHARS_MAX;
use store::Tx;
pub use store::queries::named_channels::NamedChannel;

use crate::{Error, Service};

/// Channels that one search gives.
pub const PEOPLE_FOUND_MAX: i64 = 8;

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

/// Channels whose name begins with a text as it is typed, in small letters, or with a capital: each is one
/// look-up in the index of names.
async fn beginning_with(tx: &mut Tx, text: &str) -> Result<Vec<NamedChannel>, Error> {
    let mut spellings = vec![text.to_owned()];
    for spelling in [text.to_lowercase(), capitalized(text)] {
        if !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    }
    let mut found: Vec<NamedChannel> = Vec::new();
    for spelling in spellings {
        let left = PEOPLE_FOUND_MAX - i64::try_from(found.len()).unwrap_or(PEOPLE_FOUND_MAX);
        if left > 0 {
            found.extend(tx.channels_beginning_with(&spelling, left).await?);
        }
    }
    Ok(found)
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars.flat_map(char::to_lowercase)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capital_begins_a_name() {
        assert_eq!(capitalized("mINA"), "Mina");
        assert_eq!(capitalized("하늘"), "하늘");
        assert_eq!(capitalized(""), "");
    }
}
