//! Statements that do for a list what one after the other would do for its items: most of what a short statement costs is to
//! begin and to end it, and on PostgreSQL the way there and back.

/// Items that one statement does at the most: beyond this each costs hardly less. Every length up to it has a statement of its
/// own, compiled when it is first needed, so that a list of up to so many is done by one.
const LENGTH_MAX: usize = 16;

/// One statement in each length.
pub(super) struct Lengths([String; LENGTH_MAX]);

impl Lengths {
    /// `statement` gives its text for a list of rows like `(0, $1, $2), (1, $3, $4)`: the row's place, when `places` are
    /// asked for, and so many parameters.
    pub fn new(places: bool, parameters: usize, statement: impl Fn(&str) -> String) -> Self {
        Self(std::array::from_fn(|before| statement(&rows(before + 1, places, parameters))))
    }

    /// The parts of a list, each with its statement.
    pub fn cut<'l, T>(&'static self, list: &'l [T]) -> impl Iterator<Item = (&'static str, &'l [T])> {
        list.chunks(LENGTH_MAX).map(|part| (self.0[part.len() - 1].as_str(), part))
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
    fn a_list_is_cut_into_as_few_parts_as_can_be_in_its_order() {
        for count in 0..100 {
            let list: Vec<usize> = (0..count).collect();
            let parts: Vec<_> = VALUES.cut(&list).collect();
            for (text, part) in &parts {
                assert_eq!(text.matches('(').count(), part.len());
            }
            let together: Vec<usize> = parts.iter().flat_map(|(_, part)| part.iter().copied()).collect();
            assert_eq!(together, list);
            assert_eq!(parts.len(), count.div_ceil(LENGTH_MAX));
        }
    }
}
