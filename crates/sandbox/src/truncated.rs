//! An answer that ends early, together with its connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body::{Body as _, Frame};

/// Cuts an answer after this number of bytes of its body, or after half of it. Returns `None` for an answer
/// without a body.
pub(crate) fn truncate(answer: Response<Body>, bytes: Option<u64>) -> Option<Response<Body>> {
    let length = answer.body().size_hint().exact();
    let left = match length {
        Some(0) => return None,
        // A whole body would not be truncated.
        Some(length) => bytes.unwrap_or(length / 2).min(length - 1),
        None => bytes.unwrap_or(0),
    };
    let mut answer = answer.map(|body| Body::new(Truncated { body, left, is_flushed: false }));
    if let Some(length) = length {
        answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Some(answer)
}

struct Truncated {
    body: Body,
    /// Number of bytes until the end.
    left: u64,
    is_flushed: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer is truncated by a fault rule")]
struct Truncation;

impl http_body::Body for Truncated {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.left > 0 {
            let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
            if let Some(Ok(frame)) = frame
                && let Ok(mut data) = frame.into_data()
            {
                data.truncate(usize::try_from(this.left).unwrap_or(usize::MAX));
                this.left -= data.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            this.left = 0;
        }
        // The connection sends what it has before it asks again.
        if !std::mem::replace(&mut this.is_flushed, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(axum::Error::new(Truncation))))
    }
}
