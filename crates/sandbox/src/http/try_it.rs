//! `POST /sandbox/try`: sends a request of the documentation, for a person and an application that its reader
//! chose, and shows the answer. The documentation has the form, and works without JavaScript.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use serde_json::Value;

use super::access::Access;
use super::answer::Problem;
use super::bilingual::bilingual;
use super::console::{View, html_answer, script_href, style_href, write};
use super::environment::secret_of;
use super::names;
use super::own_call::call;
use super::own_form::own_form;
use super::tokens::{self, SignInFields};
use crate::sandbox::{Parts, Sandbox};

/// The address of the form.
pub(super) const PATH: &str = "/sandbox/try";
/// The first parts of the paths that may be called.
const CALLED: [&str; 3] = ["/open/v1/", "/auth/v1/", "/platform/v1/"];
/// The headers of an answer that are shown, besides the quota's.
const SHOWN: [&str; 7] = [
    "stagedoor-reason",
    "x-request-id",
    "retry-after",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "allow",
];

bilingual! {
    TryTexts {
        tag: "ko", "en";
        title: "호출 결과", "Answer";
        no_body: "(본문 없음)", "(no body)";
        failed: "보내지 못했습니다", "Not sent";
        needs_key: "먼저 터미널에서 stagedoor open으로 콘솔을 여세요. 이 브라우저에서 한 번이면 됩니다.",
            "Open the console first: run stagedoor open in a terminal. Once is enough for this browser.";
        console: "콘솔", "Console";
        docs: "문서로 돌아가기", "Back to the documentation";
    }
}

#[derive(Clone)]
struct Sender {
    sandbox: Sandbox,
    access: Access,
}

/// What came of a request.
#[derive(Template)]
#[template(path = "try/answer.html")]
struct AnswerPage {
    t: &'static TryTexts,
    style: String,
    script: String,
    /// Method and path of the request; empty if it was not sent.
    request: String,
    /// The status with its name, or what was wrong with the form.
    status: String,
    is_good: bool,
    /// Names and values.
    headers: Vec<(String, String)>,
    body: String,
}

/// The form's address.
pub(super) fn routes(sandbox: Sandbox, access: Access) -> Router {
    Router::new().route(PATH, post(send)).with_state(Sender { sandbox, access })
}

async fn send(State(sender): State<Sender>, headers: HeaderMap, body: Bytes) -> Response {
    let t = TryTexts::of(View::of("", &headers).language);
    let sent = match own_form(&sender.sandbox, &sender.access, &headers) {
        Ok(parts) => sent(&sender.sandbox, parts, &body).await,
        Err(problem) => Err(problem),
    };
    let (status, page) = match sent {
        Ok((request, answer)) => (StatusCode::OK, answered(t, request, &answer)),
        Err(problem) => (problem.status(), refused(t, &problem)),
    };
    match write(&page) {
        Ok(html) => html_answer(status, html),
        Err(problem) => problem.into_response(),
    }
}

/// Sends the request of a form. The result also has its method and its path.
async fn sent(
    sandbox: &Sandbox,
    parts: &Parts,
    form: &[u8],
) -> Result<(String, http_client::Answer), Problem> {
    let fields: Vec<(String, String)> = form_urlencoded::parse(form).into_owned().collect();
    let field = |name: &str| {
        let found = fields.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    let method = method_of(field("method").unwrap_or_default())?;
    let filled = Filled::of(sandbox, parts, &field).await?;
    let target = filled.text(field("target").unwrap_or_default());
    let is_called = CALLED.iter().any(|prefix| target.starts_with(prefix));
    let uri: PathAndQuery = match target.parse() {
        Ok(uri) if is_called => uri,
        _ => {
            return Err(Problem::invalid(
                "target",
                "must be the path of a call, with a percent-encoded query",
            ));
        }
    };
    let mut request = Request::builder().method(&method).uri(uri.as_str());
    for (name, value) in filled.headers(field("mode").unwrap_or_default(), field("key")) {
        let value = HeaderValue::from_str(&value).map_err(|_| Problem::invalid("key", "must be a key"))?;
        request = request.header(name, value);
    }
    let body = filled.text(field("body").unwrap_or_default());
    if !body.is_empty() {
        let is_lines = target.starts_with("/platform/v1/events");
        let kind = if is_lines { "application/x-ndjson" } else { "application/json" };
        request = request.header(header::CONTENT_TYPE, kind);
    }
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request.map_err(|_| Problem::invalid("target", "must be the path of a call"))?;
    let answer = call(parts, request).await?;
    Ok((format!("{method} {}", masked(&target)), answer))
}

fn method_of(text: &str) -> Result<Method, Problem> {
    match text {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => Err(Problem::invalid("method", "must be GET, POST, PUT, PATCH or DELETE")),
    }
}

/// A target without its query, which may have an id that opens something.
fn masked(target: &str) -> &str {
    target.split('?').next().unwrap_or(target)
}

/// The values of the words of an example.
struct Filled {
    client_id: String,
    secret: String,
    /// The tokens of the person; empty if the form needs none.
    access: String,
    refresh: String,
}

impl Filled {
    /// The values for the application and the person of a form. Only what the form needs is made.
    async fn of<'f>(
        sandbox: &Sandbox,
        parts: &Parts,
        field: &impl Fn(&str) -> Option<&'f str>,
    ) -> Result<Self, Problem> {
        let service = &parts.service;
        let client = field("client");
        let application = match client {
            Some(name) => names::application(service, "client", name).await?,
            None => names::first_application(service, "client").await?,
        };
        let texts = [field("target"), field("body")].map(Option::unwrap_or_default);
        let needs = |word: &str| texts.iter().any(|text| text.contains(word));
        let needs_token = field("mode") == Some("user") || needs("ACCESS_TOKEN") || needs("REFRESH_TOKEN");
        let (mut access, mut refresh) = (String::new(), String::new());
        if needs_token {
            let wanted = SignInFields::of(field("user"), Some(application.client_id.as_str()));
            let signed_in = tokens::sign_in(service, wanted).await?;
            signed_in.tokens.access.expose().clone_into(&mut access);
            signed_in.tokens.refresh.expose().clone_into(&mut refresh);
        }
        let secret = match field("mode") == Some("client") || needs("CLIENT_SECRET") {
            true => secret_of(sandbox, parts, &application.client_id).await?.expose().to_owned(),
            false => String::new(),
        };
        Ok(Self { client_id: application.client_id.to_string(), secret, access, refresh })
    }

    fn text(&self, text: &str) -> String {
        text.replace("CLIENT_SECRET", &self.secret)
            .replace("ACCESS_TOKEN", &self.access)
            .replace("REFRESH_TOKEN", &self.refresh)
    }

    fn headers(&self, mode: &str, key: Option<&str>) -> Vec<(&'static str, String)> {
        match mode {
            "user" => vec![("authorization", format!("Bearer {}", self.access))],
            "client" => vec![("client-id", self.client_id.clone()), ("client-secret", self.secret.clone())],
            "operator" => vec![("authorization", format!("Bearer {}", key.unwrap_or_default()))],
            _ => Vec::new(),
        }
    }
}

fn answered(t: &'static TryTexts, request: String, answer: &http_client::Answer) -> AnswerPage {
    let text = String::from_utf8_lossy(&answer.beginning).into_owned();
    let json = serde_json::from_str::<Value>(&text).ok();
    let pretty = json.and_then(|json| serde_json::to_string_pretty(&json).ok());
    let body = pretty.unwrap_or(text);
    let shown = |name: &&str| {
        let value = answer.headers.get(*name)?.to_str().ok()?;
        Some(((*name).to_owned(), value.to_owned()))
    };
    AnswerPage {
        t,
        style: style_href(),
        script: script_href(),
        request,
        status: answer.status.to_string(),
        is_good: answer.status.is_success(),
        headers: SHOWN.iter().filter_map(shown).collect(),
        body: if body.is_empty() { t.no_body.to_owned() } else { body },
    }
}

fn refused(t: &'static TryTexts, problem: &Problem) -> AnswerPage {
    let message = match problem.status() {
        StatusCode::UNAUTHORIZED => t.needs_key,
        _ => problem.message(),
    };
    AnswerPage {
        t,
        style: style_href(),
        script: script_href(),
        request: String::new(),
        status: t.failed.to_owned(),
        is_good: false,
        headers: Vec::new(),
        body: message.to_owned(),
    }
}
