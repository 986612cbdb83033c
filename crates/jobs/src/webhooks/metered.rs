//! A stream that lets so many bytes in and no more, whatever they are: interim answers, the framing of chunks, records of TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How many bytes may come in yet. Clones are the same allowance.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<AtomicUsize>);

/// A stream with an [`Allowance`]. Reading on when it is used up fails with [`UsedUp`].
pub(super) struct Metered {
    stream: TcpStream,
    allowance: Allowance,
}

/// The peer sent more than it may.
#[derive(Debug)]
pub(super) struct UsedUp;

impl std::fmt::Display for UsedUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer is too long")
    }
}

impl std::error::Error for UsedUp {}

impl Allowance {
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Allows so many bytes from now on.
    pub fn renew(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }
}

impl Metered {
    pub fn new(stream: TcpStream, allowance: Allowance) -> Self {
        Self { stream, allowance }
    }
}

impl AsyncRead for Metered {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, allowance } = self.get_mut();
        let left = allowance.0.load(Relaxed);
        if left == 0 {
            return Poll::Ready(Err(io::Error::other(UsedUp)));
        }
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        allowance.0.store(left.saturating_sub(read), Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
