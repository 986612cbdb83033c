//! Lists from outside: read up to one item beyond their maximum, in time that grows with their length.

use std::collections::HashSet;
use std::hash::Hash;

/// The distinct items, in the order of their first occurrence. At most one item beyond `max` is read, which
/// tells that the list is too long. Comparing each item with each other takes minutes for a long list, so
/// every list from outside is read by this.
pub fn distinct_up_to<T: Copy + Eq + Hash>(max: usize, items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(*item)).take(max.saturating_add(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_up_to_one_item_beyond_its_maximum() {
        assert_eq!(distinct_up_to(3, ["b", "a", "b", "a"]), ["b", "a"]);
        assert_eq!(distinct_up_to(1, ["b", "a", "c"]), ["b", "a"]);
        assert_eq!(distinct_up_to(0, [0; 0]), [0; 0]);
        // An iterator without an end.
        assert_eq!(distinct_up_to(2, 0_u64..), [0, 1, 2]);
        assert_eq!(distinct_up_to(usize::MAX, 0..1_000_000).len(), 1_000_000);
    }
}
