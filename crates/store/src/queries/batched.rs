//! One statement for a batch of items. Most of the cost of a short statement is to begin and to end it, and
//! on PostgreSQL the round trip.

/// The most items of one statement. A longer list saves hardly anything more an item.
const BATCH_MAX: usize = 16;

/// A statement in a text for each batch size up to [`BATCH_MAX`]. A text is prepared when it is first used.
pub(super) struct BatchedStatement([String; BATCH_MAX]);

impl BatchedStatement {
    /// `statement` makes the text from a list of rows such as `(0, $1, $2), (1, $3, $4)`. A row has its
    /// index, if `has_index`, and that many parameters.
    pub fn new(has_index: bool, parameters: usize, statement: impl Fn(&str) -> String) -> Self {
        Self(std::array::from_fn(|before| statement(&rows(before + 1, has_index, parameters))))
    }

    /// Splits a list into batches, each with its text.
    pub fn batches<'l, T>(&'static self, list: &'l [T]) -> impl Iterator<Item = (&'static str, &'l [T])> {
        list.chunks(BATCH_MAX).map(|batch| (self.0[batch.len() - 1].as_str(), batch))
    }
}

fn rows(count: usize, has_index: bool, parameters: usize) -> String {
    let row = |row: usize| {
        let index = has_index.then(|| row.to_string());
        let values = (1..=parameters).map(|parameter| format!("${}", row * parameters + parameter));
        format!("({})", index.into_iter().chain(values).collect::<Vec<_>>().join(", "))
    };
    (0..count).map(row).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static VALUES: LazyLock<BatchedStatement> =
        LazyLock::new(|| BatchedStatement::new(false, 2, |rows| format!("VALUES {rows}")));

    #[test]
    fn parameters_are_numbered_through_all_rows() {
        assert_eq!(rows(2, false, 3), "($1, $2, $3), ($4, $5, $6)");
        assert_eq!(rows(3, true, 1), "(0, $1), (1, $2), (2, $3)");
    }

    #[test]
    fn a_list_is_split_into_as_few_batches_as_possible_in_its_order() {
        for count in 0..100 {
            let list: Vec<usize> = (0..count).collect();
            let batches: Vec<_> = VALUES.batches(&list).collect();
            for (text, batch) in &batches {
                assert_eq!(text.matches('(').count(), batch.len());
            }
            let joined: Vec<usize> = batches.iter().flat_map(|(_, batch)| batch.iter().copied()).collect();
            assert_eq!(joined, list);
            assert_eq!(batches.len(), count.div_ceil(BATCH_MAX));
        }
    }
}
