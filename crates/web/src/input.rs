//! Reads requests field by field, so that every refusal names the field and its rule
//! (`docs/spec/rest.md#bodies`, `docs/spec/rest.md#parameters`).
//!
//! A body or a query is a struct whose [`Form`] declares each field once: its name, its allowed values, and
//! its conversion. The documents describe the form, and the extractors [`Json`] and [`Query`] read requests
//! with it.

mod fields;
pub mod form;
pub mod objects;
mod pairs;
pub mod shape;
pub mod union;
pub mod values;

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use domain::limits::BODY_BYTES_MAX;
use domain::{Invalid, Rule};
use http::request::Parts;
use http::{HeaderValue, header};

use crate::Web;
use crate::envelope::Failure;
pub use fields::Fields;
pub(crate) use form::record;
pub use form::{Form, FormOf, JsonForm, QueryForm, optional, required, with_default};
pub use pairs::Pairs;
use shape::Shape;

/// The media type of forms.
const FORM: &[u8] = b"application/x-www-form-urlencoded";
/// How long a peer may take to send its body.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// A request body that is a JSON object.
pub trait Body: Sized {
    /// Statuses of the handler's refusals besides 400.
    const REFUSES: &'static [u16] = &[];

    /// Its fields.
    fn form() -> impl JsonForm<Out = Self>;
}

/// A request's query.
pub trait Params: Sized {
    /// Its parameters, in the order of the documents.
    fn form() -> impl QueryForm<Out = Self>;
}

/// A JSON body of at most 64 KiB.
#[derive(Debug)]
pub struct Json<T>(pub T);

/// A JSON body that may be omitted: an empty body, or `null`, is an object without fields.
#[derive(Debug)]
pub struct OptionalJson<T>(pub T);

/// A JSON body together with its text, for calls that may be repeated.
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
        let fields = Fields::parse(&text)
            .map_err(|wrong| if form { not_a_form(&T::form().shape()) } else { wrong })?;
        Ok(Self(T::form().read(&fields)?, text))
    }
}

impl<T: Body> FromRequest<Web> for OptionalJson<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Web) -> Result<Self, Failure> {
        let text = read_body(request.into_body()).await?;
        let fields = if matches!(text.trim(), "" | "null") { "{}" } else { &text };
        Ok(Self(T::form().read(&Fields::parse(fields)?)?))
    }
}

impl<T: Params> FromRequestParts<Web> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        Ok(Self(T::form().read(&Pairs::parse(parts.uri.query().unwrap_or(""))?)?))
    }
}

fn is_form(request: &Request) -> bool {
    let media_type = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    media_type.is_some_and(|media_type| media_type.starts_with(FORM))
}

/// The refusal of a form, which OAuth libraries post. It lists the JSON fields to send instead.
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

#[cfg(test)]
mod tests {
    use super::form::page;
    use super::values::integer;
    use super::*;

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
                let numbers = required("n", integer(-5, 5)).read(&fields);
                assert!(numbers.as_ref().is_ok_and(|n| (-5..=5).contains(n)) || numbers.is_err());
                let message = fields.str("message");
                assert!(!message.as_ref().is_ok_and(|message| message.contains('\0')));
                let rest = fields.without("nothing");
                let again = Fields::parse(&rest).expect("its own JSON");
                assert_eq!(again.str("message"), message);
                let rest = [
                    fields.optional_texts("list").is_ok(),
                    fields.text_map("map").is_ok(),
                    fields.optional_date("date").is_ok(),
                    fields.optional_flag("flag").is_ok(),
                    fields.objects("objects").is_ok(),
                ];
                (numbers.is_ok(), message.is_ok(), rest)
            });
            let pairs = Pairs::parse(&text).map(|pairs| {
                let page = page(20, 50).read(&pairs);
                assert!(
                    !pairs.optional("next").is_ok_and(|next| next.is_some_and(|next| next.contains('\0')))
                );
                (page.is_ok(), pairs.list("channelIds", 20).len().min(5))
            });
            (fields.ok(), pairs.ok())
        });
    }
}
