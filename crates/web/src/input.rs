//! Requests, read field by field, so that every refusal names its field and what it may be
//! (`docs/spec/rest.md#bodies`, `docs/spec/rest.md#parameters`).
//!
//! A body or query is a plain struct with a `read` function; [`Json`] and [`Query`] are the extractors around them.

mod fields;

use std::collections::HashSet;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use domain::limits::{BODY_BYTES_MAX, PAGE_MAX};
use domain::{Invalid, Rule};
use http::request::Parts;
use http::{HeaderValue, header};
use service::Page;

use crate::Web;
use crate::contract::shape::Shape;
use crate::envelope::Failure;
pub use fields::Fields;

/// The media type of forms.
const FORM: &[u8] = b"application/x-www-form-urlencoded";
/// How long a peer may take to send its body.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// A request body that is a JSON object.
pub trait Body: Sized {
    /// Statuses with which its handler refuses besides 400.
    const REFUSES: &'static [u16] = &[];

    /// What `read` reads, for the documents. It may not say less; the tests hold every answered request against it.
    fn shape() -> Shape;

    /// Reads the fields.
    ///
    /// # Errors
    /// `Invalid` naming the first wrong one.
    fn read(fields: &Fields) -> Result<Self, Invalid>;
}

/// A request's query.
pub trait Params: Sized {
    /// What `read` reads, for the documents.
    fn shape() -> Shape;

    /// Reads the parameters.
    ///
    /// # Errors
    /// `Invalid` naming the first wrong one.
    fn read(pairs: &Pairs) -> Result<Self, Invalid>;
}

/// A JSON body of at most 64 KiB.
#[derive(Debug)]
pub struct Json<T>(pub T);

/// A JSON body that may be left out: nothing, or `null`, is an object without fields.
#[derive(Debug)]
pub struct OptionalJson<T>(pub T);

/// A JSON body together with its bytes, for calls that may be repeated.
#[derive(Debug)]
pub struct JsonText<T>(pub T, pub String);

/// A query.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: Body> FromRequest<Web> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Failure> {
        let JsonText(body, _) = JsonText::from_request(request, web).await?;
        Ok(Self(body))
    }
}

impl<T: Body> FromRequest<Web> for JsonText<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Web) -> Result<Self, Failure> {
        let form = is_form(&request);
        let text = read_body(request.into_body()).await?;
        let fields =
            Fields::parse(&text).map_err(|wrong| if form { not_a_form(&T::shape()) } else { wrong })?;
        Ok(Self(T::read(&fields)?, text))
    }
}

impl<T: Body> FromRequest<Web> for OptionalJson<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Web) -> Result<Self, Failure> {
        let text = read_body(request.into_body()).await?;
        let fields = if matches!(text.trim(), "" | "null") { "{}" } else { &text };
        Ok(Self(T::read(&Fields::parse(fields)?)?))
    }
}

impl<T: Params> FromRequestParts<Web> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        Ok(Self(T::read(&Pairs::parse(parts.uri.query().unwrap_or(""))?)?))
    }
}

fn is_form(request: &Request) -> bool {
    let media_type = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    media_type.is_some_and(|media_type| media_type.starts_with(FORM))
}

/// Libraries for OAuth post forms: what they have to send instead.
fn not_a_form(shape: &Shape) -> Invalid {
    let names = |shape: &Shape| shape.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
    let either = shape.either.iter().map(names).collect::<Vec<_>>().join(" / ");
    let fields = [names(shape), either].into_iter().filter(|names| !names.is_empty());
    Invalid::new("body", Rule::NotAForm { fields: fields.collect::<Vec<_>>().join(", ") })
}

/// The body as text, within 64 KiB and 10 seconds.
pub(crate) async fn read_body(body: axum::body::Body) -> Result<String, Invalid> {
    let wrong = || Invalid::new("body", Rule::Json);
    let bytes = tokio::time::timeout(BODY_DEADLINE, to_bytes(body, BODY_BYTES_MAX)).await;
    let bytes = bytes.map_err(|_| wrong())?.map_err(|_| wrong())?;
    String::from_utf8(bytes.into()).map_err(|_| wrong())
}

/// The pairs of a query, percent-decoded.
#[derive(Debug)]
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// # Errors
    /// `Invalid` naming `query` when it is not percent-encoded UTF-8, or holds a NUL.
    pub fn parse(query: &str) -> Result<Self, Invalid> {
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(key)?, decode(value)?))
        };
        let pairs = query.split('&').filter(|part| !part.is_empty()).map(pair);
        let pairs: Vec<(String, String)> =
            pairs.collect::<Option<_>>().ok_or(Invalid::new("query", Rule::QueryEncoding))?;
        if pairs.iter().any(|(key, value)| key.contains('\0') || value.contains('\0')) {
            return Err(Invalid::new("query", Rule::NoNul));
        }
        Ok(Self(pairs))
    }

    /// A parameter that may stand once; an empty one counts as there.
    pub fn optional(&self, name: &'static str) -> Result<Option<&str>, Invalid> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Invalid::new(name, Rule::Once)),
            (value, None) => Ok(value),
        }
    }

    /// A parameter that must stand once and not be empty.
    pub fn text(&self, name: &'static str) -> Result<&str, Invalid> {
        let missing = || Invalid::missing(name, |name| self.all(name).next().is_some());
        self.optional(name)?.filter(|value| !value.is_empty()).ok_or_else(missing)
    }

    /// An integer in a range, with a default.
    pub fn integer(&self, name: &'static str, min: i64, max: i64, default: i64) -> Result<i64, Invalid> {
        within(name, self.optional(name)?, min, max, default)
    }

    /// [`Pairs::optional`] for a parameter with two spellings, of which one may stand.
    pub fn either(&self, name: &'static str, other: &'static str) -> Result<Option<&str>, Invalid> {
        match (self.optional(name)?, self.optional(other)?) {
            (Some(_), Some(_)) => Err(Invalid::new(name, Rule::Once)),
            (value, None) | (None, value) => Ok(value),
        }
    }

    /// [`Pairs::integer`] for a parameter with two spellings.
    pub fn either_integer(
        &self,
        (name, other): (&'static str, &'static str),
        min: i64,
        max: i64,
        default: i64,
    ) -> Result<i64, Invalid> {
        within(name, self.either(name, other)?, min, max, default)
    }

    /// `page` and `size` of a page-number list.
    pub fn page(&self, size_default: i64, size_max: i64) -> Result<Page, Invalid> {
        let size = self.integer("size", 1, size_max, size_default)?;
        let page = self.integer("page", 0, PAGE_MAX, 0)?;
        Ok(Page { size, page })
    }

    /// The items of a list parameter: `a,b`, repeated keys, `name[]`; empty items are passed over, repeated ones count
    /// once. No more than one item beyond `max` is read: it shows that there are too many.
    pub fn list(&self, name: &'static str, max: usize) -> Vec<&str> {
        let bracketed = format!("{name}[]");
        let values = self.0.iter().filter(|(key, _)| key == name || *key == bracketed);
        let items = values.flat_map(|(_, value)| value.split(',')).filter(|item| !item.is_empty());
        let mut seen = HashSet::new();
        items.filter(|item| seen.insert(*item)).take(max + 1).collect()
    }

    /// [`Pairs::list`], or `None` when the parameter is not there at all.
    pub fn optional_list(&self, name: &'static str, max: usize) -> Option<Vec<&str>> {
        let bracketed = format!("{name}[]");
        self.0.iter().any(|(key, _)| key == name || *key == bracketed).then(|| self.list(name, max))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// An integer of a query: digits within a range, with a default for what is not there.
fn within(name: &'static str, text: Option<&str>, min: i64, max: i64, default: i64) -> Result<i64, Invalid> {
    let Some(text) = text else { return Ok(default) };
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && (min..=max).contains(number));
    number.ok_or(Invalid::new(name, Rule::Integer { min, max }))
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
    use super::*;

    #[test]
    fn lists_come_in_every_spelling() {
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
    fn a_list_is_read_to_its_limit_whatever_its_length() {
        let ids: Vec<_> = (0..100_000).map(|n| n.to_string()).collect();
        let query = format!("channelIds={}", ids.join(","));
        let pairs = Pairs::parse(&query).expect("readable");
        assert_eq!(pairs.list("channelIds", 20), &ids[..21]);
        // Comparing each with each would take minutes.
        assert_eq!(pairs.list("channelIds", 100_000).len(), 100_000);
    }

    #[test]
    fn numbers_are_digits_within_their_range() {
        let check = |query: &str, expected: Option<i64>| {
            let pairs = Pairs::parse(query).expect("readable");
            assert_eq!(pairs.integer("size", 1, 50, 20).ok(), expected, "{query}");
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
    fn a_parameter_with_two_spellings_may_stand_in_one_of_them() {
        let check = |query: &str, expected: Option<i64>| {
            let pairs = Pairs::parse(query).expect("readable");
            let found = pairs.either_integer(("page.size", "page[size]"), 1, 50, 20);
            assert_eq!(found.ok(), expected, "{query}");
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
    fn a_list_that_is_there_without_items_is_not_a_list_that_is_missing() {
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

    #[test]
    fn fuzz_json_bodies_and_queries() {
        let seeds = [
            r#"{"message":"한글 😀","n":5,"list":["a","b"],"map":{"a":"b"},"date":"2026-07-18T14:32:12.345Z","flag":true}"#,
            r#"{"message":null,"n":-0.0,"list":[],"map":{},"objects":[{"n":1},{"n":2}]}"#,
            "size=20&page=3&channelIds=a,b&channelIds=c&next=%EA%B0%80",
            "a=%ff&b=%zz&&=&c",
        ];
        let tokens =
            ["\"n\":", "1e400", "-9223372036854775809", "\\u0000", "\\ud800", "[[[[", "null", "%", "&", "="];
        fuzz::Fuzz::new("json bodies and queries").seeds(seeds).tokens(tokens).run(|input| {
            let text = String::from_utf8_lossy(input);
            let fields = Fields::parse(&text).map(|fields| {
                let numbers = fields.integer("n", -5, 5);
                assert!(numbers.as_ref().is_ok_and(|n| (-5..=5).contains(n)) || numbers.is_err());
                let message = fields.text("message");
                assert!(!message.as_ref().is_ok_and(|message| message.contains('\0')));
                let rest = fields.without("nothing");
                let again = Fields::parse(&rest).expect("its own JSON");
                assert_eq!(again.text("message"), message);
                let rest = [
                    fields.texts("list").is_ok(),
                    fields.text_map("map").is_ok(),
                    fields.optional_date("date").is_ok(),
                    fields.flag("flag").is_ok(),
                    fields.objects("objects").is_ok(),
                ];
                (numbers.is_ok(), message.is_ok(), rest)
            });
            let pairs = Pairs::parse(&text).map(|pairs| {
                let page = pairs.page(20, 50);
                assert!(
                    !pairs.optional("next").is_ok_and(|next| next.is_some_and(|next| next.contains('\0')))
                );
                (page.is_ok(), pairs.list("channelIds", 20).len().min(5))
            });
            (fields.ok(), pairs.ok())
        });
    }
}
