//! A copy of the beginning of a request's body, made while its handler reads it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Maximum length of a recorded body, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 8 * 1024;

/// The read part of a body.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    /// Its first [`BODY_BYTES_MAX`] bytes.
    pub beginning: Vec<u8>,
    /// Its length, in bytes.
    pub bytes: usize,
}

/// The body of a request, of which a copy is made.
#[derive(Debug)]
pub struct RequestCopy<B> {
    body: B,
    copied: Arc<Mutex<Copied>>,
}

impl<B> RequestCopy<B> {
    /// Wraps a body. The second value is the copy.
    pub(crate) fn new(body: B) -> (Self, Arc<Mutex<Copied>>) {
        let copied = Arc::<Mutex<Copied>>::default();
        (Self { body, copied: copied.clone() }, copied)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestCopy<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let mut copied = this.copied.lock().unwrap_or_else(PoisonError::into_inner);
            let room = BODY_BYTES_MAX - copied.beginning.len();
            copied.beginning.extend_from_slice(&data[..data.len().min(room)]);
            copied.bytes += data.len();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
