//! The socket of one HTTP connection, which may become that of a session.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What a listener serves HTTP over: a bare TCP stream that keeps the `101` of a websocket back until the session has it, so
/// that the answer and the session's first packets are one write and, to the peer, one packet.
///
/// Small events must not wait for the acknowledgement of the one before: the stream, or the listener that it comes from, needs
/// `TCP_NODELAY`.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    hold: Hold,
    /// The end of what HTTP has written: an answer without a body, and before it at the most what HTTP itself would have kept
    /// in its own buffer.
    held: Vec<u8>,
}

/// Tells a [`Socket`] to keep back what is written to it from now on. Each request of its connection carries one, as an
/// extension.
#[derive(Clone, Debug, Default)]
pub struct Hold(Arc<AtomicBool>);

impl Socket {
    /// The socket of a connection that was accepted.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, hold: Hold::default(), held: Vec::new() }
    }

    /// For the extensions of the connection's requests. Where it is missing nothing is kept back.
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// The bare stream, and what has to be written to it before anything else.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.held)
    }
}

impl Hold {
    /// The request's handler says so right before it answers `101`, after which HTTP has nothing more to write.
    pub(crate) fn begin(&self) {
        self.0.store(true, Relaxed);
    }

    fn is_on(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, hold, held } = self.get_mut();
        if !hold.is_on() {
            return Pin::new(stream).poll_write_vectored(cx, slices);
        }
        let before = held.len();
        slices.iter().for_each(|slice| held.extend_from_slice(slice));
        Poll::Ready(Ok(held.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
