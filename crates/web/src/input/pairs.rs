//! The pairs of a query.

use domain::distinct::distinct_up_to;
use domain::{Invalid, Rule};

/// The pairs of a query, percent-decoded.
#[derive(Debug)]
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// # Errors
    /// `Invalid` naming `query` if it is not percent-encoded UTF-8, or contains a NUL.
    pub fn parse(query: &str) -> Result<Self, Invalid> {
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key)?, decode(value)?))
        };
        let pairs = query.split('&').filter(|part| !part.is_empty()).map(pair);
        let pairs: Vec<(String, String)> =
            pairs.collect::<Option<_>>().ok_or(Invalid::new("query", Rule::QueryEncoding))?;
        Self::of(pairs)
    }

    /// # Errors
    /// `Invalid` naming `query` if they contain a NUL.
    pub fn of(pairs: Vec<(String, String)>) -> Result<Self, Invalid> {
        if pairs.iter().any(|(key, value)| key.contains('\0') || value.contains('\0')) {
            return Err(Invalid::new("query", Rule::NoNul));
        }
        Ok(Self(pairs))
    }

    /// An optional parameter, at most once. An empty value counts as present.
    pub fn optional(&self, name: &'static str) -> Result<Option<&str>, Invalid> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Invalid::new(name, Rule::Once)),
            (value, None) => Ok(value),
        }
    }

    /// A required parameter, once and not empty.
    pub fn text(&self, name: &'static str) -> Result<&str, Invalid> {
        let missing = || Invalid::missing(name, |name| self.all(name).next().is_some());
        self.optional(name)?.filter(|value| !value.is_empty()).ok_or_else(missing)
    }

    /// [`Pairs::optional`] for a parameter with two spellings. Only one of them may be present.
    pub fn either(&self, name: &'static str, other: &'static str) -> Result<Option<&str>, Invalid> {
        match (self.optional(name)?, self.optional(other)?) {
            (Some(_), Some(_)) => Err(Invalid::new(name, Rule::Once)),
            (value, None) | (None, value) => Ok(value),
        }
    }

    /// The items of a list parameter: `a,b`, repeated keys, `name[]`. Empty items are skipped, and repeated
    /// items count once. At most one item beyond `max` is read, to detect a list that is too long.
    pub fn list(&self, name: &'static str, max: usize) -> Vec<&str> {
        let bracketed = format!("{name}[]");
        let values = self.0.iter().filter(|(key, _)| key == name || *key == bracketed);
        let items = values.flat_map(|(_, value)| value.split(',')).filter(|item| !item.is_empty());
        distinct_up_to(max, items)
    }

    /// [`Pairs::list`], or `None` if the parameter is absent.
    pub fn optional_list(&self, name: &'static str, max: usize) -> Option<Vec<&str>> {
        let bracketed = format!("{name}[]");
        self.0.iter().any(|(key, _)| key == name || *key == bracketed).then(|| self.list(name, max))
    }

    /// All pairs, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The values of a parameter.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// `None` for a broken escape, and for bytes that are not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::super::form::{FormOf, with_default};
    use super::super::values::integer;
    use super::*;

    #[test]
    fn a_list_has_several_spellings() {
        let check = |query: &str, expected: &[&str]| {
            assert_eq!(Pairs::parse(query).expect("readable").list("channelIds", 20), expected, "{query}");
        };
        check("channelIds=a,b", &["a", "b"]);
        check("channelIds=a%2Cb", &["a", "b"]);
        check("channelIds=a&channelIds=b&channelIds=a", &["a", "b"]);
        check("channelIds[]=a&channelIds%5B%5D=b", &["a", "b"]);
        check("channelIds=,a,,", &["a"]);
        check("other=1", &[]);
    }

    #[test]
    fn a_list_is_read_only_up_to_its_limit() {
        let ids: Vec<_> = (0..100_000).map(|n| n.to_string()).collect();
        let query = format!("channelIds={}", ids.join(","));
        let pairs = Pairs::parse(&query).expect("readable");
        assert_eq!(pairs.list("channelIds", 20), &ids[..21]);
        // Comparing every pair of items would take minutes.
        assert_eq!(pairs.list("channelIds", 100_000).len(), 100_000);
    }

    #[test]
    fn numbers_are_digits_within_their_range() {
        let check = |query: &str, expected: Option<i64>| {
            let pairs = Pairs::parse(query).expect("readable");
            assert_eq!(with_default("size", integer(1, 50), 20).read(&pairs).ok(), expected, "{query}");
        };
        check("", Some(20));
        check("size=1", Some(1));
        check("size=50", Some(50));
        check("size=0", None);
        check("size=51", None);
        check("size=", None);
        check("size=-1", None);
        check("size=%2B1", None);
        check("size=1.0", None);
        check("size=99999999999999999999", None);
        check("size=1&size=1", None);
    }

    #[test]
    fn a_parameter_may_have_one_of_its_two_spellings() {
        let check = |query: &str, expected: Option<i64>| {
            let pairs = Pairs::parse(query).expect("readable");
            let size = with_default("page.size", integer(1, 50), 20).or_spelled("page[size]");
            assert_eq!(size.read(&pairs).ok(), expected, "{query}");
        };
        check("", Some(20));
        check("page.size=7", Some(7));
        check("page[size]=7", Some(7));
        check("page%5Bsize%5D=7", Some(7));
        check("page.size=51", None);
        check("page.size=7&page[size]=7", None);
        check("page[size]=7&page%5Bsize%5D=7", None);
    }

    #[test]
    fn an_empty_list_differs_from_a_missing_list() {
        let check = |query: &str, expected: Option<&[&str]>| {
            let pairs = Pairs::parse(query).expect("readable");
            assert_eq!(pairs.optional_list("claimId", 100).as_deref(), expected, "{query}");
        };
        check("", None);
        check("claimIds=a", None);
        check("claimId=", Some(&[]));
        check("claimId[]=,", Some(&[]));
        check("claimId=a&claimId[]=b,a", Some(&["a", "b"]));
    }

    #[test]
    fn queries_must_be_percent_encoded_utf8() {
        let check = |query: &str, ok| assert_eq!(Pairs::parse(query).is_ok(), ok, "{query}");
        check("a=%EA%B0%80", true);
        check("a=가", true);
        check("a=%ff", false);
        check("a=%zz", false);
        check("a=%4", false);
        check("a=%00", false);
        assert_eq!(Pairs::parse("%00=a").err(), Some(Invalid::new("query", Rule::NoNul)));
    }
}
