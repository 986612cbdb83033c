//! What every answer gets on its way out, whatever made it: the envelope of a refusal, and the quota's headers.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use http::{HeaderValue, StatusCode, header};

use crate::envelope::{Failure, refused};
use crate::quota::Charged;
use crate::{ClientAddress, Web};

/// Puts the common way out around the routes.
pub(crate) fn around(routes: Router<Web>, web: Web) -> Router {
    routes
        .fallback(|| async { Failure::from(Refusal::NotFound) })
        .method_not_allowed_fallback(|| async { Failure::from(Refusal::MethodNotAllowed) })
        .layer(from_fn_with_state(web.clone(), finish))
        .with_state(web)
}

async fn finish(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    let (began, traffic) = (web.service().clock().monotonic(), web.traffic());
    let pattern = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let place = traffic.place(pattern, request.method());
    let charged = Charged::default();
    let client = request.extensions().get::<ClientAddress>().copied();
    request.extensions_mut().insert(charged.clone());

    let mut response = run(next, request).await;
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        traffic.refused(&refusal);
        let allow = response.headers_mut().remove(header::ALLOW);
        response = refused(&refusal, web.config().language);
        if let Some(allow) = allow {
            response.headers_mut().insert(header::ALLOW, allow);
        }
    }
    traffic.answered(place, response.status(), web.service().clock().monotonic().saturating_sub(began));
    tracing::debug!(status = response.status().as_u16(), "answered");
    charged.describe(&web, client, response.headers_mut());
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A panic in a handler is our fault, so it is a 500 in the envelope and a line in the log; the connection lives on.
async fn run(next: Next, request: Request) -> Response {
    let mut work = pin!(AssertUnwindSafe(next.run(request)));
    let unharmed = std::future::poll_fn(|context| catch(work.as_mut(), context)).await;
    unharmed.unwrap_or_else(|()| {
        tracing::error!("a handler panicked");
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
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
