//! Takes a connection over from HTTP, and upgrades a polling session to a websocket.

use std::sync::Arc;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use socketio::CloseReason;

use super::socket::Socket;
use crate::config::PROBE_BYTES;
use crate::context::Context;
use crate::metrics::Counted;
use crate::panics::catch_panic;
use crate::session::{Probe, RawStream, Session};

/// Waits until HTTP has released a connection, for at most the upgrade deadline.
///
/// # Errors
/// [`CloseReason::TransportClosed`] when the deadline passes, [`CloseReason::InternalError`] when the
/// connection is not a [`Socket`].
pub(crate) async fn raw_stream(context: &Context, upgrade: OnUpgrade) -> Result<RawStream, CloseReason> {
    let upgraded = tokio::select! {
        upgraded = upgrade => upgraded.map_err(|_| CloseReason::TransportClosed)?,
        () = context.clock().sleep(context.config.upgrade_deadline) => return Err(CloseReason::TransportClosed),
    };
    let parts = upgraded.downcast::<TokioIo<Socket>>().map_err(|_| {
        tracing::error!("failed to upgrade: the listener must serve TokioIo<Socket>");
        CloseReason::InternalError
    })?;
    let (stream, held) = parts.io.into_inner().into_parts();
    Ok(RawStream { stream, held, read: parts.read_buf })
}

/// Runs the probe of the websocket that takes a session over. Returns `true` if the session now has the
/// websocket. Otherwise the session continues with polling.
pub(crate) async fn take_over(context: &Context, session: &Arc<Session>, upgrade: OnUpgrade) -> bool {
    let _socket = Counted::in_gauge(&context.counters.sockets_beside);
    let failed = tokio::select! {
        outcome = catch_panic(probe(context, session, upgrade)) => {
            outcome.unwrap_or(Err(CloseReason::InternalError)).err()
        }
        () = context.clock().sleep(context.config.upgrade_deadline) => Some(CloseReason::UpgradeFailed),
    };
    let Some(reason) = failed else { return true };
    tracing::debug!(
        session_key = %session.key(),
        %reason,
        "failed to upgrade a session to a websocket: it continues with polling"
    );
    session.abort_upgrade();
    false
}

async fn probe(context: &Context, session: &Session, upgrade: OnUpgrade) -> Result<(), CloseReason> {
    // The `101` of an upgrade is not held back, because the session sends nothing here yet.
    let RawStream { stream, held: _, read } = raw_stream(context, upgrade).await?;
    let mut probe = Probe::new(stream, context.config.message_bytes_max);
    let mut input = read.to_vec();
    loop {
        if let Err(reason) = session.feed_probe(&mut probe, &mut input) {
            probe.close(reason).await;
            return Err(reason);
        }
        let Some(stream) = probe.stream() else { return Ok(()) };
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
