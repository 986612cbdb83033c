//! The envelope around every answer (`docs/spec/rest.md#envelope`).

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use domain::{Language, Refusal};
use http::{HeaderValue, StatusCode, header};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use service::Page;

/// `{"code":200,"message":null,"content":…}`. All three keys are always there, also without content.
#[derive(Debug)]
pub struct Success<T>(pub T);

/// A success with `"content":null`.
pub const NOTHING: Success<()> = Success(());

/// `{"data":[…]}`: the content of every list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct Data<T> {
    /// The items.
    pub data: Vec<T>,
}

/// `{"data":[…],"page":{"next":…}}`: the content of a list with a cursor; `null` on its last page.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}CursorPage")]
pub struct NextData<T> {
    /// The items.
    data: Vec<T>,
    /// Where the list goes on.
    page: NextPage,
}

/// Where a list with a cursor goes on.
#[derive(Debug, Serialize, JsonSchema)]
struct NextPage {
    /// The cursor of the next page; `null` on the last one.
    next: Option<String>,
}

impl<T> NextData<T> {
    /// A page, and the cursor of the page after it.
    pub fn new(data: Vec<T>, next: Option<String>) -> Self {
        Self { data, page: NextPage { next } }
    }
}

/// The content of a page-number list: `data` only as documented; as observed also where the page stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Page")]
pub struct PageData<T> {
    /// The items. An empty list says that there are no more pages.
    data: Vec<T>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
}

/// Only in the observed profile.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Place {
    /// Only in the observed profile: the number of this page.
    page: i64,
    /// Only in the observed profile: items on all pages.
    total_count: i64,
    /// Only in the observed profile: how many pages there are.
    total_pages: i64,
}

impl<T> PageData<T> {
    /// A page; `total` is the number of items on all pages, where the profile shows it.
    pub fn new(data: Vec<T>, page: Page, total: Option<i64>) -> Self {
        let pages = |total: i64| (total + page.size - 1) / page.size;
        let place =
            total.map(|total| Place { page: page.page, total_count: total, total_pages: pages(total) });
        Self { data, place }
    }
}

#[derive(Serialize)]
pub(crate) struct SuccessBody<T> {
    code: u16,
    message: (),
    content: T,
}

/// Each has a name, because programs that are generated from the documents name types after them.
impl<T: JsonSchema> JsonSchema for SuccessBody<T> {
    fn schema_name() -> Cow<'static, str> {
        let content = T::schema_name();
        let name = if content == "null" { "Empty" } else { &*content };
        format!("{name}Envelope").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut content = generator.subschema_for::<T>();
        if T::schema_name() == "null" {
            content.insert("description".to_owned(), "There is nothing to answer.".into());
        }
        json_schema!({
            "type": "object",
            "properties": {
                "code": { "type": "integer", "const": 200, "description": "The HTTP status." },
                "message": { "type": "null", "description": "A success says nothing." },
                "content": content,
            },
            "required": ["code", "message", "content"],
        })
    }
}

/// What every refusal answers: exactly these two.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub(crate) struct FailureBody<'a> {
    /// The HTTP status.
    #[schemars(range(min = 400, max = 599))]
    code: u16,
    /// What went wrong.
    message: &'a str,
}

impl<T: Serialize> IntoResponse for Success<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&SuccessBody { code: 200, message: (), content: self.0 }) {
            Ok(body) => json(StatusCode::OK, body),
            Err(error) => {
                tracing::error!(%error, "JSON serialization failed");
                Failure::from(service::Error::Internal("an answer could not be written as JSON"))
                    .into_response()
            }
        }
    }
}

/// An answer that is not a success.
#[derive(Debug)]
pub struct Failure(service::Error);

impl<E: Into<service::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl Failure {
    /// The refusal that the caller receives.
    pub fn refusal(&self) -> Refusal {
        self.0.refusal()
    }
}

/// The result of handlers.
pub type Answer<T> = Result<Success<T>, Failure>;

impl IntoResponse for Failure {
    /// Leaves the refusal in the response's extensions; `finish` writes it in the caller's language.
    fn into_response(self) -> Response {
        let refusal = self.refusal();
        let mut response = status(&refusal).into_response();
        if matches!(refusal, Refusal::Internal | Refusal::DiskFull) {
            response.extensions_mut().insert(Cause(self.0));
        }
        response.extensions_mut().insert(refusal);
        response
    }
}

/// The cause of a failed request, in the extensions of a response, for the log.
#[derive(Clone, Debug)]
pub(crate) struct Cause(pub service::Error);

/// Exactly `code` and `message`, nothing else (`docs/spec/rest.md#envelope`). Headers carry the reason and
/// the time to retry.
pub(crate) fn refused(refusal: &Refusal, language: Language) -> Response {
    let body = FailureBody { code: refusal.status(), message: &refusal.message(language) };
    // A number and a text can always be serialized.
    let mut response = json(status(refusal), serde_json::to_vec(&body).unwrap_or_default());
    if let Some(seconds) = refusal.retry_after_s() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
