//! The websocket that takes a polling session over: `2probe`, `3probe`, `5`. Until the `5` the session is
//! unchanged, so a failed probe has no effect on it.

use socketio::upgrade::Step;
use socketio::{CloseReason, Decoder, Event, Frame, Upgrade, websocket};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::polling::Takeover;
use super::state::{Call, State};
use crate::config::PROBE_CONTROLS_MAX;

/// A websocket during its probe.
pub(crate) struct Probe {
    /// The stream; `None` once it belongs to the session.
    stream: Option<TcpStream>,
    decoder: Decoder,
    upgrade: Upgrade,
    /// Websocket pings and pongs so far.
    controls: u32,
}

impl Probe {
    /// A probe with the maximum size of a websocket message.
    pub(crate) fn new(stream: TcpStream, message_bytes_max: u32) -> Self {
        let decoder = Decoder::new(message_bytes_max);
        Self { stream: Some(stream), decoder, upgrade: Upgrade::default(), controls: 0 }
    }

    /// The stream; `None` once it belongs to the session.
    pub(crate) fn stream(&self) -> Option<&TcpStream> {
        self.stream.as_ref()
    }

    /// Processes bytes: those up to the `5` for the probe, later ones for the session.
    pub(super) fn feed(
        &mut self,
        state: &mut State,
        call: Call<'_>,
        input: &mut [u8],
    ) -> Result<(), CloseReason> {
        let Self { stream, decoder, upgrade, controls } = self;
        let fed = decoder.decode(input, |event| match event {
            // The stream already belongs to the session.
            event if stream.is_none() => state.on_event(call, event),
            Event::Text(text) => match upgrade.on_packet(text)? {
                Step::Probed => {
                    state.io.set_takeover(Takeover::Probed);
                    write(stream, Frame::PONG_PROBE.websocket())
                }
                Step::Upgraded => take_over(state, call, stream),
            },
            // Without a limit, a peer that sends faster than this loop reads would occupy the thread.
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
        match (fed, state.io.link().websocket()) {
            (Err(reason), _) => state.io.end(reason),
            (Ok(()), Some(socket)) => socket.decoder = std::mem::replace(decoder, Decoder::new(0)),
            (Ok(()), None) => {}
        }
        Ok(())
    }

    /// Closes the websocket, unless the session has it.
    pub(crate) async fn close(mut self, reason: CloseReason) {
        if let Some(stream) = &mut self.stream {
            let frame = websocket::close(reason.close_code(), reason.as_str());
            // The peer may be gone; the upgrade's deadline bounds the wait.
            let _ = stream.write_all(&frame).await;
            let _ = stream.shutdown().await;
        }
    }
}

/// Makes the websocket the link of the session.
fn take_over(state: &mut State, call: Call<'_>, stream: &mut Option<TcpStream>) -> Result<(), CloseReason> {
    if state.io.link().polling().is_none() || state.io.is_over() {
        return Err(CloseReason::UpgradeFailed);
    }
    let stream = stream.take().ok_or(CloseReason::UpgradeFailed)?;
    state.io.link_websocket(call.context, stream, call.now);
    Ok(())
}

/// Writes an answer of a few bytes to an empty socket. If the answer does not fit, the peer is not reading.
fn write(stream: &Option<TcpStream>, bytes: &[u8]) -> Result<(), CloseReason> {
    let written = stream.as_ref().and_then(|stream| stream.try_write(bytes).ok());
    if written == Some(bytes.len()) { Ok(()) } else { Err(CloseReason::UpgradeFailed) }
}
