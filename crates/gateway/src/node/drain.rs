//! The drain of a node: its sessions are closed in waves, so that their clients do not all connect elsewhere
//! at once.

use std::time::Duration;

use service::Purpose;
use socketio::CloseReason;

use super::registry::Registry;
use crate::config::DRAIN_WAVES;
use crate::context::Context;
use crate::fanout::Shards;

/// Closes every session, in jittered waves over half of `within`, and waits until their ends are recorded,
/// for at most the other half. New handshakes are refused from now on.
pub(crate) async fn drain(context: &Context, shards: &Shards, registry: &Registry, within: Duration) {
    registry.start_drain();
    let deadline = context.clock().monotonic() + within;
    let closing = async {
        close_in_waves(context, shards, within / 2).await;
        registry.empty().await;
    };
    tokio::select! {
        () = closing => {}
        () = context.clock().sleep_until(deadline) => {
            tracing::warn!(sessions = registry.live(), "failed to close every session before the drain deadline");
        }
    }
}

/// Closes every session at once, and waits until their ends are recorded, for at most `within`. New
/// handshakes are refused from now on.
pub(crate) async fn close_at_once(context: &Context, shards: &Shards, registry: &Registry, within: Duration) {
    registry.start_drain();
    for session in shards.sessions().await {
        session.end(CloseReason::ServerShutdown);
    }
    tokio::select! {
        () = registry.empty() => {}
        () = context.clock().sleep(within) => {}
    }
}

async fn close_in_waves(context: &Context, shards: &Shards, span: Duration) {
    let mut sessions = shards.sessions().await;
    let wave = sessions.len().div_ceil(DRAIN_WAVES as usize).max(1);
    let pause = span / DRAIN_WAVES;
    while !sessions.is_empty() {
        for session in sessions.drain(sessions.len().saturating_sub(wave)..) {
            session.end(CloseReason::ServerShutdown);
        }
        if !sessions.is_empty() {
            // Between half and one and a half of the pause, so that several draining nodes do not close their
            // waves at the same time.
            let [jitter] = context.service.entropy().bytes::<1>(Purpose::Jitter);
            context.clock().sleep(pause / 2 + pause * u32::from(jitter) / 255).await;
        }
    }
}
