//! What operators search by name: people, applications and organizations, by the beginning of a name, and
//! inside of names in any case.
//!
//! Names that begin with a text are read in their index. Inside of names nothing is indexed: a statement
//! reads the index of names from a place on, [`NAMES_SCANNED_MAX`] names at most, so each page has a bound
//! whatever the number of names is, and the next page goes on where the scan ended.

use crate::{StoreError, Tx, params};

/// Names that one statement looks into.
pub const NAMES_SCANNED_MAX: i64 = 50_000;

/// Sorts behind every character of a name.
const BEHIND_NAMES: char = '\u{10FFFF}';
/// Sorts behind every character of an id or a login.
const BEHIND_IDS: char = '~';

/// The statements for a table with names. `AND NOT` leaves out what the names that begin with the text have
/// shown.
macro_rules! statements {
    ($table:literal, $name:literal, $id:literal) => {
        [
            concat!(
                "SELECT ",
                $name,
                ", ",
                $id,
                " FROM ",
                $table,
                " WHERE ",
                $id,
                " >= $1 AND ",
                $id,
                " < $2 ORDER BY ",
                $id,
                " LIMIT $3"
            ),
            concat!(
                "SELECT ",
                $name,
                ", ",
                $id,
                " FROM ",
                $table,
                " WHERE (",
                $name,
                ", ",
                $id,
                ") > ($1, $2) AND ",
                $name,
                " < $3 ORDER BY ",
                $name,
                ", ",
                $id,
                " LIMIT $4"
            ),
            concat!(
                "SELECT name, id FROM (SELECT ",
                $name,
                " AS name, ",
                $id,
                " AS id FROM ",
                $table,
                " WHERE (",
                $name,
                ", ",
                $id,
                ") > ($1, $2) ORDER BY ",
                $name,
                ", ",
                $id,
                " LIMIT $7) scanned
                WHERE translate(name, CAST($8 AS TEXT), CAST($9 AS TEXT)) LIKE CAST($3 AS TEXT) ESCAPE '!'
                AND NOT (name >= $4 AND name < $5)
                ORDER BY name, id LIMIT $6"
            ),
            concat!(
                "SELECT ",
                $name,
                ", ",
                $id,
                " FROM ",
                $table,
                " WHERE (",
                $name,
                ", ",
                $id,
                ") > ($1, $2) ORDER BY ",
                $name,
                ", ",
                $id,
                " LIMIT 1 OFFSET $3"
            ),
        ]
    };
}

const CHANNELS: [&str; 4] = statements!("channels", "channel_name", "channel_id");
const APPLICATIONS: [&str; 4] = statements!("applications", "name", "client_id");
const ORGANIZATIONS: [&str; 4] = statements!("organizations", "organization_name", "organization_id");

const LOGINS: &str = "
    SELECT c.channel_name, c.channel_id FROM people p JOIN channels c ON c.channel_id = p.channel_id
    WHERE p.login >= $1 AND p.login < $2 ORDER BY p.login LIMIT $3";

/// What has names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedKind {
    /// Channels, which are people.
    Channels,
    /// Applications.
    Applications,
    /// Organizations.
    Organizations,
}

/// A name and the id of what has it: also a place in the order of names.
pub type NameAndId = (String, String);

impl NamedKind {
    const fn statements(self) -> [&'static str; 4] {
        match self {
            Self::Channels => CHANNELS,
            Self::Applications => APPLICATIONS,
            Self::Organizations => ORGANIZATIONS,
        }
    }
}

impl Tx {
    /// Up to `size` of which the id begins with a text; without `is_prefix` the one with that id.
    pub async fn names_of_ids(
        &mut self,
        kind: NamedKind,
        id: &str,
        is_prefix: bool,
        size: i64,
    ) -> Result<Vec<NameAndId>, StoreError> {
        let until = if is_prefix { format!("{id}{BEHIND_IDS}") } else { format!("{id} ") };
        self.fetch_all(kind.statements()[0], params![id, until, size]).await
    }

    /// Up to `size` channels of people whose login begins with a text.
    pub async fn names_of_logins(&mut self, login: &str, size: i64) -> Result<Vec<NameAndId>, StoreError> {
        let until = format!("{login}{BEHIND_IDS}");
        self.fetch_all(LOGINS, params![login, until, size]).await
    }

    /// Up to `size` of which the name begins with a text, behind a place.
    pub async fn names_beginning(
        &mut self,
        kind: NamedKind,
        text: &str,
        behind: Option<&NameAndId>,
        size: i64,
    ) -> Result<Vec<NameAndId>, StoreError> {
        let (name, id) = behind.map_or((text, ""), |(name, id)| (name, id));
        let until = format!("{text}{BEHIND_NAMES}");
        self.fetch_all(kind.statements()[1], params![name, id, until, size]).await
    }

    /// Up to `size` with a text inside of the name, but not at its beginning as it is typed, among the first
    /// [`NAMES_SCANNED_MAX`] names behind a place. Gives the last of those names too, if there are more.
    pub async fn names_containing(
        &mut self,
        kind: NamedKind,
        text: &str,
        (name, id): &NameAndId,
        size: i64,
    ) -> Result<(Vec<NameAndId>, Option<NameAndId>), StoreError> {
        let [_, _, inside, end] = kind.statements();
        let (folded, until) = (Folded::of(text), format!("{text}{BEHIND_NAMES}"));
        let (pattern, Folded { from, to, .. }) = (containing(&folded.text), &folded);
        let values = params![name, id, pattern, text, until, size, NAMES_SCANNED_MAX, from, to];
        let found = self.fetch_all(inside, values).await?;
        let end = self.fetch_optional(end, params![name, id, NAMES_SCANNED_MAX - 1]).await?;
        Ok((found, end))
    }
}

/// A text without case and without full-width forms, and what `translate` has to do to the characters of a
/// name for the comparison. The databases' own `lower` knows the letters A to Z alone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    pub text: String,
    pub from: String,
    pub to: String,
}

impl Folded {
    pub fn of(text: &str) -> Self {
        let folded: String = text.chars().map(fold).collect();
        let (mut from, mut to) = (String::new(), String::new());
        for small in folded.chars() {
            let capital = one(small, small.to_uppercase());
            for other in [capital, full_width(small), full_width(capital)] {
                if other != small && fold(other) == small && !from.contains(other) {
                    from.push(other);
                    to.push(small);
                }
            }
        }
        Self { text: folded, from, to }
    }
}

/// Between a character of ASCII and its full-width form.
const FULL_WIDTH: u32 = '！' as u32 - '!' as u32;

fn full_width(character: char) -> char {
    let wide = character.is_ascii_graphic().then(|| char::from_u32(u32::from(character) + FULL_WIDTH));
    wide.flatten().unwrap_or(character)
}

fn fold(character: char) -> char {
    let narrow = u32::from(character).checked_sub(FULL_WIDTH).and_then(char::from_u32);
    let character = narrow.filter(char::is_ascii_graphic).unwrap_or(character);
    one(character, character.to_lowercase())
}

/// The only character of a mapping, or the character itself.
fn one(character: char, mut mapped: impl ExactSizeIterator<Item = char>) -> char {
    if mapped.len() == 1 { mapped.next().unwrap_or(character) } else { character }
}

/// The pattern of names that contain a text.
fn containing(text: &str) -> String {
    format!("%{}", beginning(text))
}

/// The pattern of names that begin with a text.
pub(crate) fn beginning(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if matches!(character, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(character);
    }
    pattern + "%"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::plan::sqlite_plan;

    #[test]
    fn a_pattern_has_no_wildcards_of_its_text() {
        assert_eq!(containing("100% _x!"), "%100!% !_x!!%");
    }

    #[test]
    fn a_text_is_folded_whatever_its_script() {
        let folded = Folded::of("ÉcＬ１");
        let expected = ["écl1", "ÉCｃＣLｌＬ１", "éccclll1"].map(str::to_owned);
        assert_eq!([folded.text, folded.from, folded.to], expected);
        assert_eq!(Folded::of("МОСКВА").text, "москва");
        assert!(Folded::of("하늘").from.is_empty());
    }

    #[test]
    fn sqlite_reads_names_in_their_index_alone() {
        for (kind, index) in [
            (NamedKind::Channels, "channels_name"),
            (NamedKind::Applications, "applications_name"),
            (NamedKind::Organizations, "organizations_name"),
        ] {
            let [_, beginning, inside, end] = kind.statements();
            for sql in [beginning, inside, end] {
                let plan = sqlite_plan(sql);
                assert!(
                    plan.iter().any(|step| step.contains("COVERING INDEX") && step.contains(index)),
                    "{plan:#?}"
                );
                // What was found inside of the names of one scan is sorted again.
                assert!(sql == inside || !plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:#?}");
            }
        }
        let plan = sqlite_plan(LOGINS);
        assert!(plan.iter().any(|step| step.contains("people_login (login>? AND login<?)")), "{plan:#?}");
    }
}
