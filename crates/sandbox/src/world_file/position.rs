//! Where a value stands in a text.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A text as a tree with positions. Scalars have no content.
enum Tree {
    Map(BTreeMap<String, Spanned<Tree>>),
    List(Vec<Spanned<Tree>>),
    Scalar,
}

/// Line and column of a value, from 1, or of the closest value around it. `path` is as in
/// `applications[0].redirectUris[1]`.
pub fn position(text: &str, path: &str) -> Option<(u64, u64)> {
    let root: Spanned<Tree> = serde_saphyr::from_str(text).ok()?;
    let mut found = &root;
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        let next = match &found.value {
            Tree::Map(fields) => fields.get(step),
            Tree::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            Tree::Scalar => None,
        };
        let Some(next) = next else { break };
        found = next;
    }
    let place = found.referenced;
    (place.line() > 0).then(|| (place.line(), place.column()))
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

macro_rules! scalars {
    ($($visit:ident: $type:ty),+ $(,)?) => {
        $(fn $visit<E>(self, _: $type) -> Result<Tree, E> {
            Ok(Tree::Scalar)
        })+
    };
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    scalars! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_bytes: &[u8],
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Tree::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = map.next_entry()? {
            fields.insert(name, value);
        }
        Ok(Tree::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_a_line_and_a_column() {
        let text = "people:\n  - channelId: a\n    live: { adult: true }\n  - channelId: b\n";
        for (path, expected) in [
            ("people[0].channelId", (2, 16)),
            ("people[0].live.adult", (3, 20)),
            ("people[1]", (4, 5)),
            ("people[1].missing", (4, 5)),
        ] {
            assert_eq!(position(text, path), Some(expected), "{path}");
        }
    }
}
