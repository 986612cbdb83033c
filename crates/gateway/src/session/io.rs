//! The input and output of a session: its link, its send queue, and the waker of its task.

use std::io;
use std::task::{Context as TaskContext, Poll, Waker};

use bytes::Bytes;
use service::fault_points::{MessageAction, SystemMessage};
use socketio::{CloseReason, Decoder, Frame, Framing, Millis, Revision, payload};
use tokio::net::TcpStream;

use super::link::{Link, WebsocketIo};
use super::polling::{Rejected, RequestKind, Takeover, packets};
use super::send_queue::{Limits, SendQueue, Sent};
use super::tap::{LateBytes, Passage, Stage, Tap};
use crate::context::Context;
use crate::metrics::{add, sub};

/// The input and output of a session.
pub(super) struct Io {
    /// Why the session ended. Set once; nothing is sent afterwards.
    ended: Option<CloseReason>,
    pending: PendingCommands,
    queue: SendQueue,
    link: Link,
    /// Wakes the session's task.
    waker: Option<Waker>,
    /// Only in a sandbox.
    tap: Option<Box<Tap>>,
}

/// Commands that the session's task still has to send to its shard.
#[derive(Default)]
struct PendingCommands {
    introduce: bool,
    watch: bool,
}

/// The reason why the session's task wakes up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// SYSTEM `connected` is queued: the shard may apply changes.
    Introduce,
    /// The peer accepts no bytes: the shard checks the write deadline.
    Watch,
    /// The session has ended.
    Over(CloseReason),
}

impl Io {
    pub(super) fn new(link: Link, tap: Option<Box<Tap>>) -> Self {
        Self {
            ended: None,
            pending: PendingCommands::default(),
            queue: SendQueue::default(),
            link,
            waker: None,
            tap,
        }
    }

    /// The fault point of the session.
    pub(super) fn tap(&self) -> Option<&Tap> {
        self.tap.as_deref()
    }

    /// Holds bytes of the peer back, as the network of its rule does. Returns `false` if they have arrived.
    pub(super) fn hold_received(&mut self, bytes: &[u8], now: Millis) -> bool {
        self.tap.as_mut().is_some_and(|tap| tap.hold_received(bytes, now))
    }

    /// Whether nothing is sent and nothing is read any more.
    pub(super) fn is_silent(&self) -> bool {
        self.tap.as_ref().is_some_and(|tap| tap.is_silent)
    }

    pub(super) fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        if self.ended.is_none() {
            self.ended = Some(reason);
            self.wake_all();
        }
    }

    /// Sends whole frames to the peer, or queues them. Returns `true` if they are the first queued bytes of a
    /// websocket: then the caller watches the write deadline.
    pub(super) fn send(&mut self, context: &Context, bytes: &Bytes, messages: usize, now: Millis) -> bool {
        match &mut self.tap {
            None => self.send_now(context, bytes, messages, now),
            Some(tap) => {
                let passage = tap.pass(bytes, now, context.config.queue_messages_max);
                self.on_passage(context, passage, bytes, now)
            }
        }
    }

    /// Writes or queues frames. Returns what [`send`](Self::send) does.
    fn send_now(&mut self, context: &Context, bytes: &Bytes, messages: usize, now: Millis) -> bool {
        if self.ended.is_some() {
            return false;
        }
        match self.queue.send(self.link.stream(), bytes, messages, now, Limits::of(context)) {
            Ok(Sent::Written) => false,
            Ok(sent) => self.on_queued(sent),
            Err(reason) => {
                self.end(reason);
                false
            }
        }
    }

    /// Wakes the writer of the queued bytes. Returns `true` in the same case as [`send`](Self::send).
    fn on_queued(&mut self, sent: Sent) -> bool {
        match &self.link {
            Link::Websocket(_) if sent == Sent::FirstInQueue => {
                self.wake();
                true
            }
            Link::Polling(polling) => {
                polling.wake();
                false
            }
            Link::Websocket(_) | Link::Opening | Link::Gone => false,
        }
    }

    /// Sends bytes that do not come from the shard. If necessary, the session's task asks the shard to watch
    /// the write deadline.
    pub(super) fn answer(&mut self, context: &Context, bytes: &Bytes, now: Millis) {
        if self.send(context, bytes, 1, now) {
            self.watch();
        }
    }

    /// Makes the session's task ask the shard to watch the write deadline.
    pub(super) fn watch(&mut self) {
        self.pending.watch = true;
    }

    /// Marks SYSTEM `connected` as queued. The session's task reports that to the shard.
    pub(super) fn introduced(&mut self) {
        self.pending.introduce = true;
        self.wake();
    }

    /// Whether SYSTEM `connected` is still to be reported to the shard. Resets the mark.
    pub(super) fn take_introduction(&mut self) -> bool {
        std::mem::take(&mut self.pending.introduce)
    }

    /// The next reason to wake the session's task, if there is one.
    pub(super) fn take_wakeup(&mut self) -> Option<Wakeup> {
        if let Some(reason) = self.ended {
            Some(Wakeup::Over(reason))
        } else if self.take_introduction() {
            Some(Wakeup::Introduce)
        } else if std::mem::take(&mut self.pending.watch) {
            Some(Wakeup::Watch)
        } else {
            None
        }
    }

    /// The time at which a websocket is closed if it accepts no bytes until then.
    pub(super) fn write_deadline(&self, context: &Context) -> Option<Millis> {
        self.link.stream()?;
        let span = u64::try_from(context.config.write_deadline.as_millis()).unwrap_or(u64::MAX);
        self.queue.stalled_since().map(|since| since.saturating_add(span))
    }

    /// Sends bytes that passed the tap, and reports them.
    fn on_passage(&mut self, context: &Context, passage: Passage, bytes: &Bytes, now: Millis) -> bool {
        match passage {
            Passage::Now => {
                if let (None, Some(tap)) = (self.ended, &self.tap) {
                    tap.on_sent(bytes);
                }
                self.send_now(context, bytes, 1, now)
            }
            Passage::Later => false,
            Passage::Full => {
                self.end(CloseReason::SlowConsumer);
                false
            }
        }
    }

    /// Sends a SYSTEM message, as the fault point decides. Returns what [`send`](Self::send) does.
    pub(super) fn send_system(
        &mut self,
        context: &Context,
        message: SystemMessage<'_>,
        bytes: &Bytes,
        now: Millis,
    ) -> bool {
        let action = self.tap.as_ref().map_or(MessageAction::Send, |tap| tap.on_system(message));
        self.send_with(context, bytes, action, now)
    }

    /// Carries out what a fault point decided about a message. Returns what [`send`](Self::send) does.
    pub(super) fn send_with(
        &mut self,
        context: &Context,
        bytes: &Bytes,
        action: MessageAction,
        now: Millis,
    ) -> bool {
        let max = context.config.queue_messages_max;
        let passage = match (action, &mut self.tap) {
            (MessageAction::Send, _) | (_, None) => return self.send_message(context, bytes, now),
            (MessageAction::Duplicate, _) => {
                let is_first = self.send(context, bytes, 1, now);
                return self.send_message(context, bytes, now) || is_first;
            }
            (MessageAction::Drop, _) => Passage::Later,
            (MessageAction::Reorder(within), Some(tap)) => tap.reorder(bytes, within, now, max),
            (MessageAction::Late(by), Some(tap)) => tap.delay(bytes, by, now, max),
            (MessageAction::Silence, _) => {
                self.silence(context);
                Passage::Later
            }
            (MessageAction::Close(name), _) => {
                self.end(CloseReason::from_name(name).unwrap_or(CloseReason::InternalError));
                Passage::Later
            }
            (MessageAction::CutBefore, _) => {
                self.cut();
                Passage::Later
            }
            (MessageAction::CutAfter, _) => {
                self.send_message(context, bytes, now);
                self.cut();
                Passage::Later
            }
        };
        self.on_passage(context, passage, bytes, now)
    }

    /// Sends a message, and then those that wait for their successor.
    fn send_message(&mut self, context: &Context, bytes: &Bytes, now: Millis) -> bool {
        let is_first = self.send(context, bytes, 1, now);
        let reordered = self.tap.as_mut().map(|tap| tap.take_reordered()).unwrap_or_default();
        reordered.iter().fold(is_first, |is_first, bytes| self.send(context, bytes, 1, now) || is_first)
    }

    /// Sends bytes that are due. Returns those of the peer, which have arrived now.
    pub(super) fn send_late(&mut self, context: &Context, late: LateBytes, now: Millis) -> Option<Bytes> {
        let tap = self.tap.as_mut()?;
        tap.on_due(&late);
        let LateBytes { due, bytes, stage } = late;
        match stage {
            Stage::Delayed => self.pending.watch |= self.send_message(context, &bytes, now),
            Stage::Overdue => {
                for bytes in tap.take_overdue(due) {
                    self.pending.watch |= self.send(context, &bytes, 1, now);
                }
            }
            Stage::Sent if tap.is_silent => {}
            Stage::Sent => self.pending.watch |= self.on_passage(context, Passage::Now, &bytes, now),
            Stage::Received => {
                // The session's task may have stopped reading.
                self.wake();
                return Some(bytes);
            }
        }
        None
    }

    /// Sends and reads nothing any more. The connection stays. Only a session with a fault point does that.
    pub(super) fn silence(&mut self, context: &Context) {
        if let Some(tap) = &mut self.tap {
            tap.is_silent = true;
            self.queue.clear(&context.counters.queued_bytes);
        }
    }

    /// Loses the connection without a close frame.
    pub(super) fn cut(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.is_cut = true;
        }
        self.end(CloseReason::TransportClosed);
    }

    /// Puts the answer to the handshake in front of the queue.
    pub(super) fn push_front(&mut self, context: &Context, bytes: Vec<u8>, now: Millis) {
        self.queue.push_front(bytes.into(), now, &context.counters.queued_bytes);
    }

    /// Moves the session to a websocket. Queued messages are sent there, and a waiting poll is released.
    pub(super) fn link_websocket(&mut self, context: &Context, stream: TcpStream, now: Millis) {
        if self.ended.is_some() && matches!(self.link, Link::Gone) {
            return;
        }
        if let Link::Polling(polling) = &self.link {
            sub(&context.counters.polling, 1);
            polling.wake();
        }
        add(&context.counters.websocket, 1);
        self.queue.restart(now);
        // The session's task gets the same error and ends the session.
        let _ = self.queue.write_to(&stream, now, &context.counters.queued_bytes);
        self.pending.watch |= !self.queue.is_empty();
        let decoder = Decoder::new(context.config.message_bytes_max);
        self.link = Link::Websocket(WebsocketIo { stream, decoder });
        self.wake();
    }

    /// Ends the session, if it has not ended, and releases its link. Returns its websocket and the unwritten
    /// part of a partly written chunk. A polling client is answered for some more seconds.
    pub(super) fn detach(&mut self, context: &Context, reason: CloseReason) -> Option<(TcpStream, Bytes)> {
        self.end(reason);
        let unfinished = self.queue.unfinished();
        self.queue.clear(&context.counters.queued_bytes);
        if let Link::Polling(polling) = &self.link {
            sub(&context.counters.polling, 1);
            polling.wake();
            return None;
        }
        match std::mem::replace(&mut self.link, Link::Gone) {
            Link::Websocket(socket) => {
                sub(&context.counters.websocket, 1);
                Some((socket.stream, unfinished))
            }
            Link::Polling(_) | Link::Opening | Link::Gone => None,
        }
    }

    /// Writes queued bytes until the queue is empty or the socket is full.
    ///
    /// # Errors
    /// When the stream is broken.
    pub(super) fn poll_write(
        &mut self,
        context: &Context,
        now: Millis,
        cx: &mut TaskContext<'_>,
    ) -> Result<(), CloseReason> {
        let Some(stream) = self.link.stream() else { return Ok(()) };
        while !self.queue.is_empty() {
            let Poll::Ready(ready) = stream.poll_write_ready(cx) else { break };
            let written =
                ready.and_then(|()| self.queue.write_to(stream, now, &context.counters.queued_bytes));
            if written.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
                return Err(CloseReason::TransportClosed);
            }
        }
        Ok(())
    }

    /// Waits until the websocket has bytes, and reads them. Returns their number, which may be 0.
    pub(super) fn poll_read(
        &self,
        cx: &mut TaskContext<'_>,
        scratch: &mut [u8],
    ) -> Poll<Result<usize, CloseReason>> {
        let Some(stream) = self.link.stream() else { return Poll::Pending };
        if self.tap.as_ref().is_some_and(|tap| tap.is_full_of_received()) {
            return Poll::Pending;
        }
        let read = std::task::ready!(stream.poll_read_ready(cx)).and_then(|()| stream.try_read(scratch));
        Poll::Ready(match read {
            Ok(0) => Err(CloseReason::TransportClosed),
            Ok(read) => Ok(read),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(_) => Err(CloseReason::TransportClosed),
        })
    }

    /// The packets of a poll, as soon as there are any, or the end of the session. Revision 4 gets no
    /// packet `1` at an end by the server ([`says_close`]): its polls are refused from then on.
    ///
    /// # Errors
    /// The session is over.
    pub(super) fn poll_packets(
        &mut self,
        context: &Context,
        framing: Framing,
        revision: Revision,
        cx: &TaskContext<'_>,
    ) -> Poll<Result<Vec<u8>, Rejected>> {
        if self.is_silent() {
            return Poll::Pending;
        }
        let waiting = match &self.link {
            // The websocket sends the remaining packets.
            Link::Websocket(_) => return Poll::Ready(Ok(packets(framing, &[Frame::NOOP]))),
            _ => self.take_packets(context, framing),
        };
        if let Some(reason) = self.ended {
            let is_said = says_close(revision, reason) || reason.is_clean();
            if let Some(polling) = self.link.polling() {
                polling.end_reported = is_said || waiting.is_none();
            }
            let mut body = waiting.unwrap_or_default();
            if is_said {
                payload::append(framing, Frame::CLOSE.packet(), &mut body);
            }
            return Poll::Ready(if body.is_empty() { Err(Rejected::NotPolling) } else { Ok(body) });
        }
        match (waiting, &mut self.link) {
            (Some(body), _) => Poll::Ready(Ok(body)),
            (None, Link::Polling(polling)) if polling.takeover != Takeover::Probed => {
                polling.waiter = Some(cx.waker().clone());
                Poll::Pending
            }
            (None, _) => Poll::Ready(Ok(packets(framing, &[Frame::NOOP]))),
        }
    }

    /// Takes the packets for the answer to one poll; `None` when the queue is empty.
    pub(super) fn take_packets(&mut self, context: &Context, framing: Framing) -> Option<Vec<u8>> {
        self.queue.take_packets(framing, &context.counters.queued_bytes)
    }

    /// Marks a request as in flight. A second request of its kind ends the session, as on the reference
    /// server. A post to a session that is over does nothing, so any number of them may be in flight.
    pub(super) fn begin_request(&mut self, kind: RequestKind) -> Result<(), Rejected> {
        let is_over = self.is_over();
        let Some(polling) = self.link.polling() else { return Err(Rejected::NotPolling) };
        match kind {
            RequestKind::Poll if polling.end_reported => return Err(Rejected::NotPolling),
            // Some clients say goodbye twice at once: by themselves, and when a poll reports the end.
            RequestKind::Post if is_over => return Ok(()),
            RequestKind::Poll | RequestKind::Post => {}
        }
        if std::mem::replace(polling.in_flight(kind), true) {
            self.end(CloseReason::PollConflict);
            return Err(Rejected::Overlap);
        }
        Ok(())
    }

    /// Marks a request as no longer in flight. An aborted request ends the session, because its packets are
    /// lost.
    pub(super) fn end_request(&mut self, kind: RequestKind, is_answered: bool) {
        let Some(polling) = self.link.polling() else { return };
        *polling.in_flight(kind) = false;
        if kind == RequestKind::Poll {
            polling.waiter = None;
        }
        if !is_answered {
            self.end(CloseReason::TransportClosed);
        }
    }

    /// Claims the session for one websocket.
    pub(super) fn begin_upgrade(&mut self) -> Result<(), Rejected> {
        match self.link.polling() {
            Some(polling) if self.ended.is_none() => match polling.takeover {
                Takeover::None => {
                    polling.takeover = Takeover::Begun;
                    Ok(())
                }
                Takeover::Begun | Takeover::Probed => Err(Rejected::UpgradeUnderWay),
            },
            _ => Err(Rejected::NotPolling),
        }
    }

    pub(super) fn set_takeover(&mut self, takeover: Takeover) {
        if let Some(polling) = self.link.polling() {
            polling.takeover = takeover;
            polling.wake();
        }
    }

    /// Stores the waker of the session's task.
    pub(super) fn remember(&mut self, cx: &TaskContext<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    /// Wakes the session's task, and the poll that waits.
    fn wake_all(&self) {
        self.wake();
        if let Link::Polling(polling) = &self.link {
            polling.wake();
        }
    }
}

/// Whether the packet `1` precedes the close frame, or ends the polls. Some clients of revision 3 do not
/// notice the end without it: chzzkpy 2 reads the closed websocket again and again. Some clients of
/// revision 4 notice the end too late with it: python-socketio 5 stops its reader at the `1`, and then
/// waits a minute for a packet.
pub(crate) fn says_close(revision: Revision, reason: CloseReason) -> bool {
    revision != Revision::V4 && !reason.is_clean()
}
