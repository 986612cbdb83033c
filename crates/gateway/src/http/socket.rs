//! The socket of one HTTP connection, which may become the socket of a session.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream that a listener serves HTTP over. It holds the `101` of a websocket back until the session
/// has the stream. So the answer and the session's first packets are sent in one write, and mostly in one
/// packet.
///
/// It also withholds the HTTP library's own answer to an unreadable request. The listener sends a better
/// answer on the [bare stream](Self::into_stream).
///
/// The stream needs `TCP_NODELAY`, so that small events do not wait for acknowledgements. The listener or the
/// session sets it.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    hold: Hold,
    /// The bytes that are held back: an answer without a body, and before it at most as many bytes as HTTP
    /// would have buffered.
    held: Vec<u8>,
    /// Whether the HTTP library refused a request itself.
    withheld: bool,
}

/// Makes a [`Socket`] hold back all later writes. Each request of the connection carries one as an
/// extension.
#[derive(Clone, Debug, Default)]
pub struct Hold(Arc<AtomicBool>);

impl Socket {
    /// The socket of an accepted connection.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, hold: Hold::default(), held: Vec::new(), withheld: false }
    }

    /// The hold for the extensions of the connection's requests. Without it, the answer to a request is never
    /// held back.
    pub fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// The bare stream, after HTTP has released it.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// The bare stream, and the bytes that must be written first.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.held)
    }
}

impl Hold {
    /// Holds back all later writes. The handler calls this right before it answers `101`, after which HTTP
    /// writes nothing more.
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
        let Self { stream, hold, held, withheld } = self.get_mut();
        if *withheld || is_automatic(slices) {
            *withheld = true;
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
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
        let Self { stream, withheld, .. } = self.get_mut();
        if *withheld {
            return Poll::Ready(Ok(()));
        }
        Pin::new(stream).poll_shutdown(cx)
    }
}

/// Maximum length of the HTTP library's own answers, which consist of a status line and a date.
const AUTOMATIC_BYTES_MAX: usize = 256;

/// Whether this is the HTTP library's own answer of status 4xx: a head without a body, and without the
/// request id that every other answer has. Any earlier answer was flushed before, so the bytes contain only
/// this head.
fn is_automatic(slices: &[IoSlice<'_>]) -> bool {
    let [head] = slices else { return false };
    let has = |needle: &[u8]| head.windows(needle.len()).any(|window| window == needle);
    (head.starts_with(b"HTTP/1.1 4") || head.starts_with(b"HTTP/1.0 4"))
        && head.len() <= AUTOMATIC_BYTES_MAX
        && head.ends_with(b"\r\n\r\n")
        && has(b"\r\ncontent-length: 0\r\n")
        && !has(b"\r\nx-request-id: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bare_refusal_is_automatic() {
        let check = |slices: &[&[u8]], expected: bool| {
            let slices: Vec<_> = slices.iter().map(|slice| IoSlice::new(slice)).collect();
            assert_eq!(is_automatic(&slices), expected);
        };
        check(&[b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n"], true);
        check(&[b"HTTP/1.0 400 Bad Request\r\ncontent-length: 0\r\n\r\n"], true);
        check(&[b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"], false);
        check(&[b"HTTP/1.1 404 Not Found\r\nx-request-id: 1\r\ncontent-length: 0\r\n\r\n"], false);
        check(&[b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n", b"{}"], false);
        check(&[b"HTTP/1.1 100 Continue\r\n\r\n"], false);
        check(&[], false);
    }
}
