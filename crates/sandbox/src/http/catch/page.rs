//! The pages of `/sandbox/catch`.

use askama::Template;
use axum::response::{IntoResponse, Response};
use domain::Language;
use http::StatusCode;

use super::texts::CatchTexts;
use super::token_call::TokenAnswer;
use crate::http::answer::Problem;
use crate::http::console::{html_answer, script_href, style_href, write};

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

/// What all these pages have.
pub(super) struct Frame {
    t: &'static CatchTexts,
    style: String,
    script: String,
    /// The address of this page in the other language; `None` for the result of a form.
    language_href: Option<String>,
}

/// Begins a sign-in.
#[derive(Template)]
#[template(path = "catch/start.html")]
pub(super) struct StartPage {
    pub frame: Frame,
    pub address: String,
    /// The ids and names of the applications.
    pub applications: Vec<(String, String)>,
    /// The id of the chosen one.
    pub chosen: String,
}

/// A redirect with a code.
#[derive(Template)]
#[template(path = "catch/caught.html")]
pub(super) struct CaughtPage<'a> {
    pub frame: Frame,
    pub code: &'a str,
    pub state: &'a str,
    pub client_id: &'a str,
    pub check: StateCheck,
}

/// A redirect with an error.
#[derive(Template)]
#[template(path = "catch/refused.html")]
pub(super) struct RefusedPage<'a> {
    pub frame: Frame,
    pub error: &'a str,
    pub state: &'a str,
    pub check: StateCheck,
}

/// An exchange.
#[derive(Template)]
#[template(path = "catch/exchanged.html")]
pub(super) struct ExchangedPage<'a> {
    pub frame: Frame,
    /// The request as a command.
    pub curl: String,
    pub answer: &'a TokenAnswer,
    pub base_url: &'a str,
}

#[derive(Template)]
#[template(path = "catch/failure.html")]
struct FailurePage<'a> {
    frame: Frame,
    message: &'a str,
}

impl Frame {
    /// The frame of a page with this address in the other language.
    pub fn new(language: Language, language_href: Option<String>) -> Self {
        Self { t: CatchTexts::of(language), style: style_href(), script: script_href(), language_href }
    }
}

/// The answer with a page.
pub(super) fn page(page: &impl Template) -> Response {
    match write(page) {
        Ok(html) => html_answer(StatusCode::OK, html),
        Err(problem) => problem.into_response(),
    }
}

/// The page of a wrong request.
pub(super) fn failure(language: Language, problem: &Problem) -> Response {
    let frame = Frame::new(language, None);
    let message = match problem.status() {
        StatusCode::UNAUTHORIZED => frame.t.needs_key,
        _ => problem.message(),
    };
    match write(&FailurePage { frame, message }) {
        Ok(html) => html_answer(problem.status(), html),
        Err(problem) => problem.into_response(),
    }
}
