//! Channels by name, as people look for each other: names are public, logins are not.

use domain::ChannelId;

use crate::queries::columns::{Select, columns, sql};
use crate::queries::name_search::{Folded, beginning};
use crate::{StoreError, Tx, params};

/// Sorts behind every character of a name.
const BEHIND_NAMES: char = '\u{10FFFF}';

const CALLED: &str = sql!(
    "SELECT ",
    NamedChannel::COLUMNS,
    " FROM channels WHERE deleted_at IS NULL AND channel_name = $1 ORDER BY channel_id LIMIT $2"
);

/// Names that one statement compares, so that it has a bound whatever the number of names is.
const NAMES_COMPARED_MAX: i64 = 2_000;

const NAME_BEGINS: &str = sql!(
    "SELECT ",
    NamedChannel::COLUMNS,
    " FROM (SELECT ",
    NamedChannel::COLUMNS,
    " FROM channels WHERE deleted_at IS NULL AND channel_name >= $1 AND channel_name < $2
    ORDER BY channel_name, channel_id LIMIT $3) compared
    WHERE translate(channel_name, CAST($4 AS TEXT), CAST($5 AS TEXT)) LIKE CAST($6 AS TEXT) ESCAPE '!'
    ORDER BY channel_name, channel_id LIMIT $7"
);

/// A channel, as people who look for it see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedChannel {
    /// Its id.
    pub channel_id: ChannelId,
    /// Its name.
    pub name: String,
    /// The number of its followers.
    pub follower_count: i64,
    /// Whether it has the platform's mark.
    pub verified_mark: bool,
}

columns!(NamedChannel {
    channel_id: "channel_id",
    name: "channel_name",
    follower_count: "follower_count",
    verified_mark: "verified_mark",
});

impl Tx {
    /// Up to `size` channels of exactly this name, in the order of their ids.
    pub async fn channels_called(&mut self, name: &str, size: i64) -> Result<Vec<NamedChannel>, StoreError> {
        self.fetch_all(CALLED, params![name, size]).await
    }

    /// Up to `size` channels whose name begins with `text` in any case, in the order of their names, among
    /// the first 2,000 names that begin with `prefix` as it is spelled.
    pub async fn channels_beginning_with(
        &mut self,
        prefix: &str,
        text: &str,
        size: i64,
    ) -> Result<Vec<NamedChannel>, StoreError> {
        let (until, folded) = (format!("{prefix}{BEHIND_NAMES}"), Folded::of(text));
        let (pattern, Folded { from, to, .. }) = (beginning(&folded.text), &folded);
        let values = params![prefix, until, NAMES_COMPARED_MAX, from, to, pattern, size];
        self.fetch_all(NAME_BEGINS, values).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn names_are_found_in_their_index() {
        for (sql, step) in [
            (CALLED, "channels_name (channel_name=?)"),
            (NAME_BEGINS, "channels_name (channel_name>? AND channel_name<?)"),
        ] {
            let plan = sqlite_plan(sql);
            assert!(plan.iter().any(|one| one.contains(step)), "{plan:#?}");
            assert!(!plan.iter().any(|one| one.contains("TEMP B-TREE")), "{plan:#?}");
        }
    }
}
