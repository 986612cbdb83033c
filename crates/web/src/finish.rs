//! Finishes every answer, also after a panic: writes the envelope and reason of a refusal, the quota's
//! headers, and a log line.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use domain::reason::REASON_HEADER;
use domain::refusal::Resource;
use domain::{Language, Reason, Refusal};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::browser::Renewed;
use crate::deletion::Deletion;
use crate::envelope::{Cause, Failure, refused};
use crate::form_again::PostedForm;
use crate::page_request::PageRequest;
use crate::pages::PageProblem;
use crate::problems::problem_answer;
use crate::quota::Charged;
use crate::usage::Outcome;
use crate::{ClientAddress, RequestId, Web, language};

const REASON: HeaderName = HeaderName::from_static(REASON_HEADER);

/// Wraps the routes in this layer.
pub(crate) fn layer(routes: Router<Web>, web: Web, has_pages: bool) -> Router {
    routes
        .fallback(|| async { Failure::from(Refusal::NotFound(Resource::Path)) })
        .method_not_allowed_fallback(|| async { Failure::from(Refusal::MethodNotAllowed) })
        .layer(from_fn_with_state((web.clone(), has_pages), finish))
        .with_state(web)
}

async fn finish(State((web, has_pages)): State<(Web, bool)>, mut request: Request, next: Next) -> Response {
    let (began, traffic) = (web.service().clock().monotonic(), web.traffic());
    let pattern = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let place = traffic.place(pattern, request.method());
    let (charged, deletion) = (Charged::default(), Deletion::default());
    let renewed = (!is_for_programs(request.uri().path())).then(Renewed::default);
    let client = request.extensions().get::<ClientAddress>().copied();
    let request_id = request.extensions().get::<RequestId>().copied();
    let preferred = language::preferred(request.headers());
    request.extensions_mut().insert(charged.clone());
    request.extensions_mut().insert(deletion.clone());
    if let Some(renewed) = &renewed {
        request.extensions_mut().insert(renewed.clone());
    }
    let page = page_request(&web, &mut request, has_pages);
    let form = page.as_ref().filter(|page| !page.is_get()).map(|_| PostedForm::default());
    if let Some(form) = &form {
        request.extensions_mut().insert(form.clone());
    }

    let mut response = run(next, request).await;
    if let Some(cause) = cause(&mut response) {
        web.service().log_failure("a request failed", &cause);
    }
    let refusal = response.extensions_mut().remove::<Refusal>();
    let reason = refusal.as_ref().map(Refusal::reason).or_else(|| response.extensions_mut().remove());
    if let Some(refusal) = &refusal {
        traffic.refused(refusal);
        response = match &page {
            Some(page) => on_page(&web, page, refusal, form, response).await,
            None => in_envelope(refusal, preferred.unwrap_or(web.config().language), response),
        };
    }
    if let Some(reason) = &reason {
        give_reason(reason, response.headers_mut());
    }
    traffic.answered(place, response.status(), web.service().clock().monotonic().saturating_sub(began));
    if let Some(counted) = charged.counted() {
        let (status, reason) = (response.status(), reason.as_ref());
        counted.answered(&web, Outcome { request_id, route: traffic.route(place), status, reason });
    }
    log(response.status(), reason.as_ref());
    let application = charged.counted().map(|counted| counted.client_id.as_str());
    tracing::trace!(target: "traces", route = traffic.route(place).0, application);
    if !matches!(refusal, Some(Refusal::Cap(_))) {
        charged.describe(&web, client, response.headers_mut());
    }
    deletion.describe(response.headers_mut());
    if let Some(renewed) = &renewed {
        renewed.describe(response.headers_mut());
    }
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The facts of a request for a page; `None` for other requests. An unfinished request keeps them in memory,
/// so they are boxed.
fn page_request(web: &Web, request: &mut Request, has_pages: bool) -> Option<Box<PageRequest>> {
    if !has_pages || !is_for_a_page(request.uri().path(), request.headers()) {
        return None;
    }
    let (parts, body) = std::mem::take(request).into_parts();
    let page = PageRequest::of(&parts, web);
    *request = Request::from_parts(parts, body);
    Some(Box::new(page))
}

/// The first parts of the paths that programs call.
const PROGRAMS: [&str; 10] = [
    "/open/",
    "/auth/",
    "/platform/",
    "/sandbox/",
    "/health/",
    "/metrics",
    "/router",
    "/socket.io",
    "/pictures/",
    "/assets/",
];

fn is_for_programs(path: &str) -> bool {
    path.ends_with(".json") || PROGRAMS.iter().any(|start| path.starts_with(start))
}

/// Whether a person with a browser asks, and not a program.
fn is_for_a_page(path: &str, headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let takes_html = |range: &str| range.split(';').next().is_some_and(|kind| kind.trim() == "text/html");
    !is_for_programs(path) && accepted.flat_map(|ranges| ranges.split(',')).any(takes_html)
}

/// The refusal's page, or its form again. Only the header `Allow` of the original response is kept.
async fn on_page(
    web: &Web,
    page: &PageRequest,
    refusal: &Refusal,
    form: Option<PostedForm>,
    mut response: Response,
) -> Response {
    let allow = response.headers_mut().remove(header::ALLOW);
    let again = match form {
        Some(form) => form.show_again(web, refusal).await,
        None => None,
    };
    let mut response = again.unwrap_or_else(|| problem_answer(web, page, PageProblem::of(refusal)));
    response.extensions_mut().remove::<Reason>();
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

/// The cause of a failed request, for the log. Every response with status 500 has one.
fn cause(response: &mut Response) -> Option<service::Error> {
    let unknown = || service::Error::Internal("its handler gave no cause");
    let failed = response.status() == StatusCode::INTERNAL_SERVER_ERROR;
    response.extensions_mut().remove().map(|Cause(error)| error).or_else(|| failed.then(unknown))
}

/// The refusal's answer. Only the header `Allow` of the original response is kept.
fn in_envelope(refusal: &Refusal, language: Language, mut response: Response) -> Response {
    let allow = response.headers_mut().remove(header::ALLOW);
    let mut response = refused(refusal, language);
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept-Language"));
    response
}

fn give_reason(reason: &Reason, headers: &mut HeaderMap) {
    // The words and details of reasons are ASCII.
    if let Ok(reason) = HeaderValue::try_from(reason.to_string()) {
        headers.insert(REASON, reason);
    }
}

/// Logs an answer.
fn log(status: StatusCode, reason: Option<&Reason>) {
    let status = status.as_u16();
    match reason {
        Some(reason) => tracing::debug!(status, %reason, "answered"),
        None => tracing::debug!(status, "answered"),
    }
}

/// Runs the handler. A panic becomes a 500 in the envelope and a log line, and the connection continues.
async fn run(next: Next, request: Request) -> Response {
    let mut work = pin!(AssertUnwindSafe(next.run(request)));
    let unharmed = std::future::poll_fn(|context| catch(work.as_mut(), context)).await;
    unharmed
        .unwrap_or_else(|()| Failure::from(service::Error::Internal("a handler panicked")).into_response())
}

fn catch<F: Future>(
    work: Pin<&mut AssertUnwindSafe<F>>,
    context: &mut Context<'_>,
) -> Poll<Result<F::Output, ()>> {
    match std::panic::catch_unwind(AssertUnwindSafe(|| work.poll(context))) {
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => Poll::Ready(Err(())),
    }
}

#[cfg(test)]
mod tests {
    use service::Error;

    use super::*;

    #[test]
    fn a_page_is_for_browsers_outside_of_the_paths_of_programs() {
        let chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (path, accept, expected) in [
            ("/missing", chrome, true),
            ("/", "text/html", true),
            ("/account/apps/x", "application/json, text/html;q=0.5", true),
            ("/missing", "*/*", false),
            ("/missing", "application/json", false),
            ("/missing", "text/plain", false),
            ("/missing", "", false),
            ("/open/v1/missing", chrome, false),
            ("/auth/v1/token", chrome, false),
            ("/platform/v1/x", chrome, false),
            ("/sandbox/v1/x", chrome, false),
            ("/health/ready", chrome, false),
            ("/metrics", chrome, false),
            ("/openapi.json", chrome, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(is_for_a_page(path, &headers), expected, "{path} {accept}");
        }
        assert!(!is_for_a_page("/missing", &HeaderMap::new()));
    }

    #[test]
    fn every_failure_has_a_cause_for_the_log_and_no_refusal_has() {
        let cause = |mut response: Response| cause(&mut response);
        assert!(
            cause(StatusCode::INTERNAL_SERVER_ERROR.into_response()).is_some(),
            "a handler that said nothing"
        );
        let sealed = Error::Internal("a stream key was sealed with another service key");
        assert_eq!(cause(Failure::from(sealed.clone()).into_response()), Some(sealed.clone()));
        assert!(cause(Failure::from(Refusal::Internal).into_response()).is_some());
        assert!(cause(Failure::from(Refusal::DiskFull).into_response()).is_some());
        assert_eq!(cause(Failure::from(Refusal::MethodNotAllowed).into_response()), None);
        assert_eq!(cause(StatusCode::OK.into_response()), None);
    }
}
