//! The answers with an error page.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use crate::Web;
use crate::page_request::PageRequest;
use crate::pages::{PageProblem, Shell, alone_policy, language_href, problem_page};

/// The answer with an error page.
pub(crate) fn problem_answer(web: &Web, request: &PageRequest, problem: PageProblem) -> Response {
    // The query is not repeated: it may come from another site.
    let is_lost = request.is_get() && problem == PageProblem::NotFound;
    let language_href = is_lost.then(|| language_href(request.path(), None, request.lang().other()));
    let shell = Shell { language_href, ..request.shell(web) };
    let html = problem_page(shell, problem, &request.id.to_string());
    let mut response = request.page(html, &alone_policy(None), None);
    *response.status_mut() =
        StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.extensions_mut().insert(problem.reason());
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept, Accept-Language, Cookie"));
    if let Some(seconds) = problem.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
