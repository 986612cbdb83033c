//! What every answer gets on its way out, whatever made it: the envelope of a refusal and its reason, the quota's headers,
//! a line in the log.

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

use crate::deletion::Deletion;
use crate::envelope::{Failure, Logged, refused};
use crate::quota::Charged;
use crate::{ClientAddress, Web, language};

const REASON: HeaderName = HeaderName::from_static(REASON_HEADER);

/// Puts the common way out around the routes.
pub(crate) fn around(routes: Router<Web>, web: Web) -> Router {
    routes
        .fallback(|| async { Failure::from(Refusal::NotFound(Resource::Path)) })
        .method_not_allowed_fallback(|| async { Failure::from(Refusal::MethodNotAllowed) })
        .layer(from_fn_with_state(web.clone(), finish))
        .with_state(web)
}

async fn finish(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    let (began, traffic) = (web.service().clock().monotonic(), web.traffic());
    let pattern = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let place = traffic.place(pattern, request.method());
    let (charged, deletion) = (Charged::default(), Deletion::default());
    let client = request.extensions().get::<ClientAddress>().copied();
    let preferred = language::preferred(request.headers());
    request.extensions_mut().insert(charged.clone());
    request.extensions_mut().insert(deletion.clone());

    let mut response = run(next, request).await;
    report_failure(&response);
    let refusal = response.extensions_mut().remove::<Refusal>();
    let reason = refusal.as_ref().map(Refusal::reason).or_else(|| response.extensions_mut().remove());
    if let Some(refusal) = &refusal {
        traffic.refused(refusal);
        response = in_envelope(refusal, preferred.unwrap_or(web.config().language), response);
    }
    if let Some(reason) = &reason {
        give_reason(reason, response.headers_mut());
    }
    traffic.answered(place, response.status(), web.service().clock().monotonic().saturating_sub(began));
    log(&web, response.status(), reason.as_ref());
    if !matches!(refusal, Some(Refusal::Cap(_))) {
        charged.describe(&web, client, response.headers_mut());
    }
    deletion.describe(response.headers_mut());
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Every failure of ours leaves one line in the log, also one whose handler wrote none.
fn report_failure(response: &Response) {
    let status = response.status();
    if status == StatusCode::INTERNAL_SERVER_ERROR && response.extensions().get::<Logged>().is_none() {
        tracing::error!("a request failed without a cause in the log");
    }
}

/// The refusal's answer. Of the response that brought it only `Allow` is kept.
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
    // Words and details are ASCII.
    if let Ok(reason) = HeaderValue::try_from(reason.to_string()) {
        headers.insert(REASON, reason);
    }
}

/// In the sandbox a refusal is worth a line by itself: its reader is the developer who was refused.
fn log(web: &Web, status: StatusCode, reason: Option<&Reason>) {
    let status = status.as_u16();
    match reason {
        Some(reason) if web.config().sandbox => tracing::info!(status, %reason, "refused"),
        Some(reason) => tracing::debug!(status, %reason, "answered"),
        None => tracing::debug!(status, "answered"),
    }
}

/// A panic in a handler is our fault, so it is a 500 in the envelope and a line in the log; the connection lives on.
async fn run(next: Next, request: Request) -> Response {
    let mut work = pin!(AssertUnwindSafe(next.run(request)));
    let unharmed = std::future::poll_fn(|context| catch(work.as_mut(), context)).await;
    unharmed.unwrap_or_else(|()| {
        tracing::error!("a handler panicked");
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(Logged);
        response.extensions_mut().insert(Refusal::Internal);
        response
    })
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
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of the log that a response leaves on its way out.
    fn logged(response: impl FnOnce() -> Response) -> Vec<String> {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || report_failure(&response()));
        let log = log.0.lock().expect("not poisoned");
        String::from_utf8_lossy(&log).lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_failure_leaves_one_error_line_and_no_refusal_does() {
        let lines = logged(|| StatusCode::INTERNAL_SERVER_ERROR.into_response());
        assert!(lines.len() == 1 && lines[0].contains("ERROR"), "a handler that said nothing: {lines:?}");
        let cause = "a stream key was sealed with another service key";
        let lines = logged(|| Failure::from(service::Error::Internal(cause)).into_response());
        assert!(lines.len() == 1 && lines[0].contains(cause), "{lines:?}");
        let lines = logged(|| Failure::from(Refusal::Internal).into_response());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(logged(|| Failure::from(Refusal::MethodNotAllowed).into_response()).is_empty());
        assert!(logged(|| StatusCode::OK.into_response()).is_empty());
    }
}
