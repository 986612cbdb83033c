//! The bounded send queue of one session. It holds whole websocket frames, shared with the other sessions
//! that receive them. Polls extract the packets from the frames.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::atomic::AtomicU64;

use bytes::{Buf, Bytes};
use socketio::{CloseReason, Framing, Millis, payload};
use tokio::net::TcpStream;

use crate::config::CHUNKS_PER_WRITE;
use crate::context::Context;
use crate::metrics;

/// Maximum number of packets in the answer to one poll. Python clients refuse more than 16.
const POLL_PACKETS_MAX: usize = 16;

/// First byte of an unfragmented text frame.
const TEXT_FRAME: u8 = 0x81;

/// The limits of a queue, and the gauge of its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) messages_max: usize,
    pub(crate) bytes_max: usize,
    /// The node's gauge of queued bytes.
    pub(crate) gauge: &'a AtomicU64,
}

impl<'a> Limits<'a> {
    /// The limits of every session of a node.
    pub(super) fn of(context: &'a Context) -> Self {
        Self {
            messages_max: context.config.queue_messages_max,
            bytes_max: context.config.queue_bytes_max,
            gauge: &context.counters.queued_bytes,
        }
    }
}

/// The queue of one session. An empty queue takes eight bytes.
#[derive(Default)]
pub(crate) struct SendQueue(Option<Box<Waiting>>);

struct Waiting {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    messages: usize,
    /// When the peer last accepted a byte.
    progress_at: Millis,
    /// Whether part of the first frame is written. Then the remaining part must follow.
    head_started: bool,
}

struct Chunk {
    bytes: Bytes,
    messages: usize,
}

/// The outcome of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The kernel accepted all bytes.
    Written,
    /// The message is queued, as the first one.
    FirstInQueue,
    /// The message is queued after others.
    Queued,
}

impl SendQueue {
    /// Writes at once if there is a stream and the queue is empty, and queues the unwritten bytes.
    ///
    /// # Errors
    /// [`CloseReason::SlowConsumer`] when the queue is full, [`CloseReason::TransportClosed`] when the stream
    /// is broken.
    pub(crate) fn send(
        &mut self,
        stream: Option<&TcpStream>,
        bytes: &Bytes,
        messages: usize,
        now: Millis,
        limits: Limits<'_>,
    ) -> Result<Sent, CloseReason> {
        let written = match (&self.0, stream) {
            (None, Some(stream)) => match stream.try_write(bytes) {
                Ok(written) if written == bytes.len() => return Ok(Sent::Written),
                Ok(written) => written,
                Err(error) if is_temporary(&error) => 0,
                Err(_) => return Err(CloseReason::TransportClosed),
            },
            _ => 0,
        };
        let first = self.0.is_none();
        let waiting = self.0.get_or_insert_with(|| Waiting::new(now));
        let rest = bytes.slice(written..);
        if waiting.messages + messages > limits.messages_max || waiting.bytes + rest.len() > limits.bytes_max
        {
            return Err(CloseReason::SlowConsumer);
        }
        metrics::add(limits.gauge, rest.len());
        waiting.head_started |= written > 0;
        waiting.bytes += rest.len();
        waiting.messages += messages;
        waiting.chunks.push_back(Chunk { bytes: rest, messages });
        Ok(if first { Sent::FirstInQueue } else { Sent::Queued })
    }

    /// Puts the answer to the handshake in front of the queue. The answer counts as started, so it is written
    /// completely before anything else.
    pub(crate) fn push_front(&mut self, bytes: Bytes, now: Millis, gauge: &AtomicU64) {
        if bytes.is_empty() {
            return;
        }
        let waiting = self.0.get_or_insert_with(|| Waiting::new(now));
        metrics::add(gauge, bytes.len());
        waiting.head_started = true;
        waiting.bytes += bytes.len();
        waiting.chunks.push_front(Chunk { bytes, messages: 0 });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The unwritten part of a chunk whose writing has started. It must be written before anything else.
    pub(crate) fn unfinished(&self) -> Bytes {
        match &self.0 {
            Some(waiting) if waiting.head_started => {
                waiting.chunks.front().map(|head| head.bytes.clone()).unwrap_or_default()
            }
            _ => Bytes::new(),
        }
    }

    /// When the peer last accepted a byte, if any byte is queued.
    pub(crate) fn stalled_since(&self) -> Option<Millis> {
        self.0.as_ref().map(|waiting| waiting.progress_at)
    }

    /// Restarts the write deadline, because messages that were queued for polls now go to a websocket.
    pub(crate) fn restart(&mut self, now: Millis) {
        if let Some(waiting) = &mut self.0 {
            waiting.progress_at = now;
        }
    }

    /// Makes one vectored write from the queue.
    ///
    /// # Errors
    /// The socket's errors, `WouldBlock` among them.
    pub(crate) fn write_to(&mut self, stream: &TcpStream, now: Millis, gauge: &AtomicU64) -> io::Result<()> {
        let Some(waiting) = &mut self.0 else { return Ok(()) };
        let mut slices = [IoSlice::new(&[]); CHUNKS_PER_WRITE];
        let mut used = 0;
        for (slice, chunk) in slices.iter_mut().zip(&waiting.chunks) {
            *slice = IoSlice::new(&chunk.bytes);
            used += 1;
        }
        let written = stream.try_write_vectored(&slices[..used])?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        metrics::sub(gauge, written);
        waiting.advance(written);
        waiting.progress_at = now;
        if waiting.chunks.is_empty() {
            self.0 = None;
        }
        Ok(())
    }

    /// Takes the packets for the answer to one poll; `None` when the queue is empty.
    pub(crate) fn take_packets(&mut self, framing: Framing, gauge: &AtomicU64) -> Option<Vec<u8>> {
        let waiting = self.0.as_mut()?;
        let (before, mut body) = (waiting.bytes, Vec::new());
        for _ in 0..POLL_PACKETS_MAX {
            let Some(frame) = waiting.take_frame() else { break };
            payload::append(framing, &frame, &mut body);
        }
        metrics::sub(gauge, before - waiting.bytes);
        if waiting.chunks.is_empty() {
            self.0 = None;
        }
        (!body.is_empty()).then_some(body)
    }

    /// Empties the queue.
    pub(crate) fn clear(&mut self, gauge: &AtomicU64) {
        if let Some(waiting) = self.0.take() {
            metrics::sub(gauge, waiting.bytes);
        }
    }
}

impl Waiting {
    fn new(now: Millis) -> Box<Self> {
        Box::new(Self {
            chunks: VecDeque::new(),
            bytes: 0,
            messages: 0,
            progress_at: now,
            head_started: false,
        })
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        while let Some(head) = self.chunks.front_mut() {
            if written < head.bytes.len() {
                head.bytes.advance(written);
                self.head_started |= written > 0;
                return;
            }
            written -= head.bytes.len();
            self.messages -= head.messages;
            self.head_started = false;
            self.chunks.pop_front();
        }
    }

    /// Extracts the packet from the next text frame. A chunk holds whole frames as long as nothing was
    /// written.
    fn take_frame(&mut self) -> Option<Bytes> {
        loop {
            let head = self.chunks.front_mut()?;
            let (is_text, mut frame) = split_frame(&mut head.bytes)?;
            self.bytes -= frame.0 + frame.1.len();
            if head.bytes.is_empty() {
                self.messages -= head.messages;
                self.chunks.pop_front();
            } else {
                let taken = head.messages.min(1);
                head.messages -= taken;
                self.messages -= taken;
            }
            if is_text {
                return Some(std::mem::take(&mut frame.1));
            }
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The text packets of whole frames.
pub(super) fn text_packets(frames: &Bytes) -> impl Iterator<Item = Bytes> {
    let mut rest = frames.clone();
    let frames = std::iter::from_fn(move || split_frame(&mut rest));
    frames.filter_map(|(is_text, (_, packet))| is_text.then_some(packet))
}

/// Splits off the first frame. Returns whether it is text, the length of its header, and its payload.
fn split_frame(bytes: &mut Bytes) -> Option<(bool, (usize, Bytes))> {
    let is_text = *bytes.first()? == TEXT_FRAME;
    let (header, payload) = match *bytes.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?),
        short => (2, usize::from(short)),
    };
    if bytes.len() < header + payload {
        return None;
    }
    bytes.advance(header);
    Some((is_text, (header, bytes.split_to(payload))))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use socketio::{Frame, websocket};
    use tokio::io::AsyncReadExt;

    use super::*;

    fn limits(gauge: &AtomicU64) -> Limits<'_> {
        Limits { messages_max: 20, bytes_max: 200_000, gauge }
    }

    fn frame(text: &str) -> Bytes {
        Frame::text(text).into_websocket()
    }

    #[test]
    fn a_poll_takes_packets_of_every_length_out_of_frames_and_batches() {
        let gauge = AtomicU64::new(0);
        let mut queue = SendQueue::default();
        let (medium, long) = ("4".repeat(300), "4".repeat(70_000));
        let batch: Bytes = [frame("41"), frame(&medium)].concat().into();
        for (bytes, messages) in [(batch, 2), (websocket::pong(b"x"), 1), (frame(&long), 1)] {
            queue.send(None, &bytes, messages, 0, limits(&gauge)).expect("there is room");
        }
        assert!(gauge.load(Relaxed) > 70_000);
        let body = queue.take_packets(Framing::Records, &gauge).expect("something waits");
        assert_eq!(body, format!("41\x1e{medium}\x1e{long}").into_bytes());
        assert!(queue.is_empty());
        assert_eq!((queue.take_packets(Framing::Text, &gauge), gauge.load(Relaxed)), (None, 0));
    }

    #[test]
    fn one_poll_takes_at_most_sixteen_packets() {
        let gauge = AtomicU64::new(0);
        let mut queue = SendQueue::default();
        let batch: Bytes = (0..18).flat_map(|_| frame("6")).collect::<Vec<_>>().into();
        queue.send(None, &batch, 18, 0, limits(&gauge)).expect("there is room");
        assert_eq!(queue.take_packets(Framing::Text, &gauge), Some(b"1:6".repeat(16)));
        // The taken packets no longer count against the limit.
        let more = queue.send(None, &batch, 18, 0, limits(&gauge));
        assert_eq!(more, Ok(Sent::Queued));
        assert_eq!(queue.take_packets(Framing::Text, &gauge), Some(b"1:6".repeat(16)));
        assert_eq!(queue.take_packets(Framing::Text, &gauge), Some(b"1:6".repeat(4)));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_refuses_by_messages_and_by_bytes() {
        let gauge = AtomicU64::new(0);
        let mut queue = SendQueue::default();
        for at in 0..20 {
            let expected = if at == 0 { Sent::FirstInQueue } else { Sent::Queued };
            assert_eq!(queue.send(None, &frame("6"), 1, 0, limits(&gauge)), Ok(expected));
        }
        assert_eq!(queue.send(None, &frame("6"), 1, 0, limits(&gauge)), Err(CloseReason::SlowConsumer));
        queue.clear(&gauge);
        assert_eq!(gauge.load(Relaxed), 0);
        let big = frame(&"4".repeat(100_100));
        assert!(queue.send(None, &big, 1, 0, limits(&gauge)).is_ok());
        assert_eq!(queue.send(None, &big, 1, 0, limits(&gauge)), Err(CloseReason::SlowConsumer));
    }

    #[tokio::test]
    async fn the_answer_to_the_handshake_is_written_before_all_else() {
        let (stream, mut peer) = pair().await;
        let gauge = AtomicU64::new(0);
        let mut queue = SendQueue::default();
        queue.push_front(Bytes::new(), 0, &gauge);
        assert!(queue.is_empty());
        queue.send(None, &frame("40"), 1, 0, limits(&gauge)).expect("there is room");
        assert_eq!(queue.unfinished(), "");
        queue.push_front(Bytes::from_static(b"HTTP/1.1 101 x"), 0, &gauge);
        assert_eq!(queue.unfinished(), "HTTP/1.1 101 x", "no close frame before it");
        stream.writable().await.expect("the stream writes");
        queue.write_to(&stream, 0, &gauge).expect("there is room");
        let mut received = [0; 18];
        peer.read_exact(&mut received).await.expect("it arrives");
        assert_eq!(&received, b"HTTP/1.1 101 x\x81\x0240");
        assert!(queue.is_empty() && queue.unfinished().is_empty() && gauge.load(Relaxed) == 0);
    }

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
        (listener.accept().await.expect("accepts").0, peer)
    }

    #[tokio::test]
    async fn what_the_kernel_does_not_take_follows_in_order_without_a_hole() {
        let (stream, peer) = pair().await;
        let gauge = AtomicU64::new(0);
        let limits = Limits { messages_max: 10_000, bytes_max: 100_000_000, gauge: &gauge };
        let (mut queue, mut sent) = (SendQueue::default(), Vec::new());
        for at in 0..400 {
            let bytes = frame(&format!("4{at}").repeat(20_000));
            queue.send(Some(&stream), &bytes, 1, at, limits).expect("there is room");
            sent.extend_from_slice(&bytes);
        }
        assert!(!queue.is_empty() && queue.stalled_since().is_some());
        let mut received = Vec::new();
        while received.len() < sent.len() {
            tokio::select! {
                ready = peer.readable() => {
                    ready.expect("the peer reads");
                    let _ = peer.try_read_buf(&mut received);
                }
                ready = stream.writable(), if !queue.is_empty() => {
                    ready.expect("the stream writes");
                    let _ = queue.write_to(&stream, 7, &gauge);
                }
            }
        }
        assert!(received == sent && queue.is_empty());
        assert_eq!(gauge.load(Relaxed), 0);
    }
}
