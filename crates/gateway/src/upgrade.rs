//! Upgrades a polling session to a websocket: `2probe`, `3probe`, `5`. Until the `5` the session is
//! unchanged, so a failed probe has no effect on it.

use std::sync::Arc;

use hyper::upgrade::OnUpgrade;
use socketio::upgrade::Step;
use socketio::{CloseReason, Decoder, Event, Frame, Upgrade, websocket};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::config::{PROBE_BYTES, PROBE_CONTROLS_MAX};
use crate::http::Denied;
use crate::poll::Takeover;
use crate::session::{Link, Session, State, WebsocketIo};
use crate::session_task::{RawStream, catch_panic, raw_stream};
use crate::stats::Counted;

/// Claims the session for one websocket.
pub(crate) fn begin(session: &Session) -> Result<(), Denied> {
    let mut state = session.lock();
    if state.io.ended.is_some() {
        return Err(Denied::UnknownSid);
    }
    match &mut state.io.link {
        Link::Polling(polling) if polling.takeover == Takeover::None => {
            polling.takeover = Takeover::Begun;
            Ok(())
        }
        Link::Polling(_) => Err(Denied::UpgradeUnderWay),
        Link::Opening | Link::Websocket(_) | Link::Gone => Err(Denied::UnknownSid),
    }
}

/// Runs the probe of the websocket, in its own task.
pub(crate) async fn take_over(session: Arc<Session>, upgrade: OnUpgrade) {
    let hub = session.hub.clone();
    let _socket = Counted::in_gauge(&hub.counters.sockets_beside);
    let failed = tokio::select! {
        outcome = catch_panic(probe(&session, upgrade)) => {
            outcome.unwrap_or(Err(CloseReason::InternalError)).err()
        }
        () = hub.service.clock().sleep(hub.config.upgrade_deadline) => Some(CloseReason::UpgradeFailed),
    };
    match failed {
        None => hub.unregister_sid(&session.sid),
        Some(reason) => {
            tracing::debug!(session_key = %session.key, %reason, "failed to upgrade a session to a websocket: it continues with polling");
            set_takeover(&mut session.lock(), Takeover::None);
        }
    }
}

fn set_takeover(state: &mut State, takeover: Takeover) {
    if let Link::Polling(polling) = &mut state.io.link {
        polling.takeover = takeover;
        polling.wake();
    }
}

/// A websocket during its probe.
struct Candidate {
    stream: Option<TcpStream>,
    decoder: Decoder,
    upgrade: Upgrade,
    /// Websocket pings and pongs so far.
    controls: u32,
}

async fn probe(session: &Arc<Session>, upgrade: OnUpgrade) -> Result<(), CloseReason> {
    // The `101` of an upgrade is not held back, because the session sends nothing here yet.
    let RawStream { stream, held: _, read } = raw_stream(&session.hub, upgrade).await?;
    let decoder = Decoder::new(session.hub.config.message_bytes_max);
    let mut candidate = Candidate { stream: Some(stream), decoder, upgrade: Upgrade::default(), controls: 0 };
    let mut input = read.to_vec();
    loop {
        let fed = candidate.feed(session, &mut input);
        if let Err(reason) = fed {
            candidate.close(reason).await;
            return Err(reason);
        }
        let Some(stream) = &candidate.stream else { return Ok(()) };
        input.resize(PROBE_BYTES, 0);
        stream.readable().await.map_err(|_| CloseReason::TransportClosed)?;
        match stream.try_read(&mut input) {
            Ok(0) => return Err(CloseReason::TransportClosed),
            Ok(read) => input.truncate(read),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => input.clear(),
            Err(_) => return Err(CloseReason::TransportClosed),
        }
    }
}

impl Candidate {
    /// Processes bytes under one lock: up to the `5` for the probe, and from there for the session.
    fn feed(&mut self, session: &Session, input: &mut [u8]) -> Result<(), CloseReason> {
        let (Self { stream, decoder, upgrade, controls }, now) = (self, session.hub.now_ms());
        let mut guard = session.lock();
        let state = &mut *guard;
        let fed = decoder.decode(input, |event| match event {
            // Without its stream, the candidate has become the link of the session.
            event if stream.is_none() => state.on_event(session, now, event),
            Event::Text(text) => match upgrade.on_packet(text)? {
                Step::Probed => {
                    set_takeover(state, Takeover::Probed);
                    write(stream, Frame::PONG_PROBE.websocket())
                }
                Step::Upgraded => state.take_over(session, stream),
            },
            // Without a limit, a peer that is faster than this loop would occupy the thread.
            Event::Ping(_) | Event::Pong if *controls == PROBE_CONTROLS_MAX => Err(CloseReason::PacketFlood),
            Event::Ping(payload) => {
                *controls += 1;
                write(stream, &websocket::pong(payload))
            }
            Event::Pong => {
                *controls += 1;
                Ok(())
            }
            Event::Binary(_) => Err(CloseReason::UpgradeFailed),
            Event::Close(_) => Err(CloseReason::ClientGoodbye),
        });
        if stream.is_some() {
            return fed;
        }
        // After the `5`, an error ends the session.
        match (fed, &mut state.io.link) {
            (Err(reason), _) => state.io.end(reason),
            (Ok(()), Link::Websocket(socket)) => socket.decoder = std::mem::replace(decoder, Decoder::new(0)),
            (Ok(()), _) => {}
        }
        Ok(())
    }

    async fn close(mut self, reason: CloseReason) {
        if let Some(stream) = &mut self.stream {
            let frame = websocket::close(reason.close_code(), reason.as_str());
            // The peer may be gone; the upgrade's deadline bounds the wait.
            let _ = stream.write_all(&frame).await;
            let _ = stream.shutdown().await;
        }
    }
}

/// Writes an answer of a few bytes to an empty socket. If it does not fit, the peer does not read.
fn write(stream: &Option<TcpStream>, bytes: &[u8]) -> Result<(), CloseReason> {
    let written = stream.as_ref().and_then(|stream| stream.try_write(bytes).ok());
    if written == Some(bytes.len()) { Ok(()) } else { Err(CloseReason::UpgradeFailed) }
}

impl State {
    fn take_over(&mut self, session: &Session, stream: &mut Option<TcpStream>) -> Result<(), CloseReason> {
        if !matches!(self.io.link, Link::Polling(_)) || self.io.ended.is_some() {
            return Err(CloseReason::UpgradeFailed);
        }
        let Some(stream) = stream.take() else { return Err(CloseReason::UpgradeFailed) };
        let decoder = Decoder::new(session.hub.config.message_bytes_max);
        self.link_websocket(session, WebsocketIo { stream, decoder });
        Ok(())
    }
}
