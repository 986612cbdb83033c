//! The reasons why sessions end: one list for the log, the metric and the documentation.

use crate::payload::PayloadError;
use crate::websocket::WsError;

/// Declares [`CloseReason`] together with its names, codes and documentation, so that each reason has all of
/// them.
macro_rules! close_reasons {
    ($($variant:ident, $name:literal, $code:literal, $doc:literal;)+) => {
        /// Why a session ended. The name is a metric label; keep it stable.
        ///
        /// The list also has the reasons of the gateway that do not belong to the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum CloseReason {
            $(#[doc = $doc] $variant,)+
        }

        impl CloseReason {
            /// Every reason, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Stable name, e.g. `ping_timeout`: metric label, log field, key of the documentation's table.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The reason of this stable name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
            }

            /// One sentence for the documentation of operators.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => $doc,)+ }
            }

            /// The code of the websocket close frame to send (RFC 6455 section 7.4.1).
            #[must_use]
            pub fn close_code(self) -> u16 {
                match self { $(Self::$variant => $code,)+ }
            }
        }
    };
}

close_reasons! {
    ClientGoodbye, "client_goodbye", 1000, "The client said goodbye: `41`, `1` or a websocket close frame.";
    TransportClosed, "transport_closed", 1000, "The connection ended without a close frame.";
    PingTimeout, "ping_timeout", 1000, "The client was silent for longer than the ping times allow.";
    ConnectTimeout, "connect_timeout", 1008, "A client of revision 4 did not ask for the root namespace in time.";
    ProtocolError, "protocol_error", 1002, "The client broke the websocket, Engine.IO or Socket.IO protocol.";
    InvalidUtf8, "invalid_utf8", 1007, "A text message or body was not UTF-8.";
    MessageTooBig, "message_too_big", 1009, "A message or body was larger than the limit.";
    PacketFlood, "packet_flood", 1008, "The client sent more packets than the flood limit allows.";
    NamespaceFlood, "namespace_flood", 1008, "The client asked for too many namespaces that do not exist.";
    UpgradeFailed, "upgrade_failed", 1002, "The move from polling to websocket broke the protocol.";
    PollConflict, "poll_conflict", 1002, "Two polls, or two posts, ran at once for one session.";
    SlowConsumer, "slow_consumer", 1013, "The queue of the session was full: the client reads too slowly.";
    WriteTimeout, "write_timeout", 1013, "A write made no progress for too long.";
    ServerShutdown, "server_shutdown", 1001, "The node drained or stopped.";
    NodeDead, "node_dead", 1001, "The node that owned the session was found dead; another node closed its record.";
    Gap, "gap", 1013, "Events may have been lost between nodes; the session is ended rather than skipped.";
    OverLimit, "over_limit", 1008, "The caller already has as many connected sessions as allowed.";
    Evicted, "evicted", 1008, "An operator, a developer of the application or the console ended the session.";
    Revoked, "revoked", 1008, "The application or user behind the session is gone or barred.";
    InternalError, "internal_error", 1011, "The service failed; the log says where.";
}

impl CloseReason {
    /// Whether the client ended the session as the protocol intends.
    #[must_use]
    pub fn is_clean(self) -> bool {
        self == Self::ClientGoodbye
    }
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for CloseReason {}

impl From<WsError> for CloseReason {
    fn from(error: WsError) -> Self {
        match error {
            WsError::MessageTooBig => Self::MessageTooBig,
            WsError::InvalidUtf8 => Self::InvalidUtf8,
            WsError::TooManyFragments => Self::PacketFlood,
            WsError::Unmasked
            | WsError::ReservedBits
            | WsError::UnknownOpcode
            | WsError::BadControlFrame
            | WsError::BadFragmentation
            | WsError::BadLength
            | WsError::BadClose => Self::ProtocolError,
        }
    }
}

impl From<PayloadError> for CloseReason {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::TooBig => Self::MessageTooBig,
            PayloadError::TooManyPackets => Self::PacketFlood,
            PayloadError::InvalidUtf8 => Self::InvalidUtf8,
            PayloadError::Malformed => Self::ProtocolError,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_snake_case_and_codes_may_be_sent() {
        let mut names: Vec<_> = CloseReason::ALL.iter().map(|reason| reason.as_str()).collect();
        let is_label = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        assert!(names.iter().all(|name| name.bytes().all(is_label)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CloseReason::ALL.len());
        for reason in CloseReason::ALL {
            assert_eq!(CloseReason::from_name(reason.as_str()), Some(*reason));
            assert!(matches!(reason.close_code(), 1000..=1003 | 1007..=1013), "{reason}");
            assert!(reason.description().ends_with('.'), "{reason}");
        }
    }

    #[test]
    fn errors_of_the_wire_keep_their_close_code() {
        for error in [WsError::MessageTooBig, WsError::InvalidUtf8, WsError::Unmasked, WsError::BadClose] {
            assert_eq!(CloseReason::from(error).close_code(), error.close_code());
        }
    }
}
