//! Statements that do for a list what one after the other would do for its items: most of what a short statement costs is to
//! begin and to end it, and on PostgreSQL the way there and back.

/// A list is cut into parts of these lengths, longest first: every statement is compiled once, and few parts are short.
const LENGTHS: [usize; 5] = [16, 8, 4, 2, 1];

/// One statement in each length.
pub(super) struct Lengths([String; LENGTHS.len()]);

impl Lengths {
    /// `statement` gives its text for a list of rows like `(0, $1, $2), (1, $3, $4)`: the row's place, when `places` are
    /// asked for, and so many parameters.
    pub fn new(places: bool, parameters: usize, statement: impl Fn(&str) -> String) -> Self {
        Self(LENGTHS.map(|length| statement(&rows(length, places, parameters))))
    }

    /// The parts of a list, each with its statement.
    pub fn cut<'l, T>(&'static self, mut list: &'l [T]) -> impl Iterator<Item = (&'static str, &'l [T])> {
        std::iter::from_fn(move || {
            let at = LENGTHS.iter().position(|length| *length <= list.len())?;
            let (part, rest) = list.split_at(LENGTHS[at]);
            list = rest;
            Some((self.0[at].as_str(), part))
        })
    }
}

fn rows(length: usize, places: bool, parameters: usize) -> String {
    let row = |row: usize| {
        let place = places.then(|| row.to_string());
        let values = (1..=parameters).map(|parameter| format!("${}", row * parameters + parameter));
        format!("({})", place.into_iter().chain(values).collect::<Vec<_>>().join(", "))
    };
    (0..length).map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static VALUES: LazyLock<Lengths> =
        LazyLock::new(|| Lengths::new(false, 2, |rows| format!("VALUES {rows}")));

    #[test]
    fn rows_are_numbered_through() {
        assert_eq!(rows(2, false, 3), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(rows(3, true, 1), "(0, $1), (1, $2), (2, $3)");
    }

    #[test]
    fn a_list_is_cut_into_few_parts_in_its_order() {
        for count in 0..100 {
            let list: Vec<usize> = (0..count).collect();
            let parts: Vec<_> = VALUES.cut(&list).collect();
            for (text, part) in &parts {
                assert_eq!(text.matches('(').count(), part.len());
            }
            let together: Vec<usize> = parts.iter().flat_map(|(_, part)| part.iter().copied()).collect();
            assert_eq!(together, list);
            assert!(parts.len() < count / LENGTHS[0] + LENGTHS.len());
        }
    }
}
