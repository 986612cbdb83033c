//! The pages of `/sandbox/catch`.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::token_call::TokenAnswer;
use crate::http::answer::Problem;

/// Everything comes from this origin, and nothing runs.
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Whether the state of the redirect is that of the sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateCheck {
    /// It is.
    Same,
    /// It is not.
    Differs,
    /// The sign-in was not begun on this page.
    NotBegun,
}

/// What the redirect brought.
pub(super) struct Caught<'a> {
    pub code: &'a str,
    pub state: &'a str,
    pub client_id: &'a str,
    pub check: StateCheck,
}

impl StateCheck {
    fn text(self) -> &'static str {
        match self {
            Self::Same => "<p class=\"good\">The state is the one that this page sent.</p>",
            Self::Differs => {
                "<p class=\"bad\">The state is not the one that this page sent. An application must refuse this \
                 redirect: somebody else may have begun the sign-in.</p>"
            }
            Self::NotBegun => {
                "<p class=\"bad\">The state cannot be checked, because the sign-in was not begun on this page. \
                 An application compares it with the one that it sent.</p>"
            }
        }
    }
}

/// The page that begins a sign-in.
pub(super) fn start(uri: &str, client_id: Option<&str>) -> Response {
    let body = format!(
        "<p>This page is a redirect address for applications that have no server yet. It shows the code, exchanges it, \
         and shows the request that did it.</p>\
         <p>The redirect address is <code>{}</code>. The button registers it for the application.</p>\
         <form method=\"post\" action=\"/sandbox/catch/start\">\
         <label for=\"clientId\">Application</label> <input id=\"clientId\" name=\"clientId\" value=\"{}\">\
         <button>Begin a sign-in</button></form>",
        escaped(uri),
        escaped(client_id.unwrap_or("demo")),
    );
    page(StatusCode::OK, "Catch a redirect", &body)
}

/// The page of a redirect with a code.
pub(super) fn caught(caught: &Caught<'_>) -> Response {
    let Caught { code, state, client_id, check } = caught;
    let (code, state, client_id) = (escaped(code), escaped(state), escaped(client_id));
    let form = match check {
        StateCheck::Differs => String::new(),
        StateCheck::Same | StateCheck::NotBegun => format!(
            "<form method=\"post\" action=\"/sandbox/catch/exchange\">\
             <input type=\"hidden\" name=\"code\" value=\"{code}\">\
             <input type=\"hidden\" name=\"state\" value=\"{state}\">\
             <label for=\"clientId\">Application</label> <input id=\"clientId\" name=\"clientId\" value=\"{client_id}\">\
             <button>Exchange the code</button></form>"
        ),
    };
    let body = format!(
        "<dl><dt>code</dt><dd><code>{code}</code></dd><dt>state</dt><dd><code>{state}</code></dd></dl>{}{form}{AGAIN}",
        check.text()
    );
    page(StatusCode::OK, "The redirect brought a code", &body)
}

/// The page of a redirect with an error.
pub(super) fn refused(error: &str, check: StateCheck) -> Response {
    let body =
        format!("<dl><dt>error</dt><dd><code>{}</code></dd></dl>{}{AGAIN}", escaped(error), check.text());
    page(StatusCode::OK, "The redirect brought an error", &body)
}

/// The page of an exchange.
pub(super) fn exchanged(curl: &str, answer: &TokenAnswer) -> Response {
    let title = match answer.access_token {
        Some(_) => "The code bought tokens",
        None => "The code was refused",
    };
    let body = format!(
        "<h2>The request</h2><pre><code>{}</code></pre><h2>The answer: {}</h2><pre><code>{}</code></pre>{AGAIN}",
        escaped(curl),
        answer.status.as_u16(),
        escaped(&answer.body),
    );
    page(StatusCode::OK, title, &body)
}

/// The page of a wrong request.
pub(super) fn failure(problem: &Problem) -> Response {
    let body = format!("<p class=\"bad\">{}</p>{AGAIN}", escaped(problem.message()));
    page(problem.status(), "That did not work", &body)
}

const AGAIN: &str = "<p><a href=\"/sandbox/catch\">Begin another sign-in</a></p>";

fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/sandbox/catch/style.css\"></head>\
         <body><main><h1>{title}</h1>{body}</main></body></html>"
    );
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        // The address holds a code. Without any referrer browsers would hide the origin of a form, too.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A text in HTML, also between double quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
