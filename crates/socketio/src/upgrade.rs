//! [`Upgrade`]: the upgrade of a polling session to a websocket.
//!
//! 1. The client opens a websocket with the session's `sid` and sends `2probe`.
//! 2. [`Step::Probed`]: the gateway answers [`Frame::PONG_PROBE`](crate::Frame::PONG_PROBE) on the websocket,
//!    and releases the waiting poll with [`Frame::NOOP`](crate::Frame::NOOP). It also releases every later
//!    poll until step 4. The client stops polling and may still post.
//! 3. The client sends `5`.
//! 4. [`Step::Upgraded`]: the websocket carries the session. The queued packets are sent there, and polls and
//!    posts are refused.
//!
//! A failed or abandoned probe ends the websocket. The gateway decides whether the polling session continues.
//! The upgrade should take no longer than [`UPGRADE_TIMEOUT_MS`].

use crate::close::CloseReason;
use crate::engine::Millis;

/// Maximum duration of an upgrade from the opening of the websocket to the `5`, in milliseconds.
pub const UPGRADE_TIMEOUT_MS: Millis = 10_000;

/// State of a websocket that wants to take over a polling session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Upgrade {
    /// Waits for `2probe`.
    #[default]
    AwaitsProbe,
    /// The probe was answered. Waits for `5`.
    AwaitsUpgrade,
    /// Done. Further packets belong to the session.
    Done,
}

/// The next action of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Send `3probe` on the websocket and release the waiting poll with `6`.
    Probed,
    /// Move the session to the websocket.
    Upgraded,
}

impl Upgrade {
    /// Processes a text packet from the new websocket.
    ///
    /// # Errors
    /// [`CloseReason::UpgradeFailed`] for every packet that is not the next one of the upgrade.
    pub fn on_packet(&mut self, text: &str) -> Result<Step, CloseReason> {
        let (next, step) = match (*self, text) {
            (Self::AwaitsProbe, "2probe") => (Self::AwaitsUpgrade, Step::Probed),
            (Self::AwaitsUpgrade, "5") => (Self::Done, Step::Upgraded),
            _ => return Err(CloseReason::UpgradeFailed),
        };
        *self = next;
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_then_an_upgrade_completes_the_upgrade() {
        let mut upgrade = Upgrade::default();
        assert_eq!(upgrade.on_packet("2probe"), Ok(Step::Probed));
        assert_eq!(upgrade.on_packet("5"), Ok(Step::Upgraded));
        assert_eq!(upgrade, Upgrade::Done);
    }

    #[test]
    fn every_other_order_fails() {
        for packets in [&["5"][..], &["2"], &["2probe2"], &[""], &["2probe", "2probe"], &["2probe", "5x"]] {
            let mut upgrade = Upgrade::default();
            let (last, before) = packets.split_last().unwrap();
            for packet in before {
                assert!(upgrade.on_packet(packet).is_ok());
            }
            assert_eq!(upgrade.on_packet(last), Err(CloseReason::UpgradeFailed), "{packets:?}");
        }
        let mut done = Upgrade::Done;
        assert_eq!(done.on_packet("5"), Err(CloseReason::UpgradeFailed));
    }
}
