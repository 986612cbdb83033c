//! A stream with a limit of received bytes of any kind: interim answers, chunk framing, TLS records.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The number of bytes that may still be received. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget(Arc<AtomicUsize>);

/// A stream with a [`ByteBudget`]. Reading after it is used up fails with [`BudgetExceeded`].
pub(crate) struct LimitedStream {
    stream: TcpStream,
    budget: ByteBudget,
}

/// The peer sent more than its budget.
#[derive(Debug)]
pub(crate) struct BudgetExceeded;

impl std::fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer is too long")
    }
}

impl std::error::Error for BudgetExceeded {}

impl ByteBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Sets the budget.
    pub(crate) fn renew(&self, bytes: usize) {
        self.0.store(bytes, Relaxed);
    }
}

impl LimitedStream {
    pub(crate) fn new(stream: TcpStream, budget: ByteBudget) -> Self {
        Self { stream, budget }
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, budget } = self.get_mut();
        let left = budget.0.load(Relaxed);
        if left == 0 {
            return Poll::Ready(Err(io::Error::other(BudgetExceeded)));
        }
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        budget.0.store(left.saturating_sub(read), Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LimitedStream {
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
