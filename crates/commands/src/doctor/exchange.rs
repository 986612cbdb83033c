//! What a bot did, read from the records of a sandbox.

use std::collections::BTreeSet;

use domain::Timestamp;
use serde_json::Value;

/// The paths that only bots call. The doctor's own calls have others.
const BOT_PATHS: [&str; 3] = ["/open/", "/auth/", "/socket.io"];
/// The path of the token endpoint.
pub const TOKEN_PATH: &str = "/auth/v1/token";
/// The beginning of the paths that subscribe.
pub const SUBSCRIBE: &str = "/open/v1/sessions/events/subscribe/";
/// The beginning of the paths that give session URLs.
const SESSION_URL: &str = "/open/v1/sessions/auth";
const SOCKET: &str = "/socket.io";

/// A call of the bot, with its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The position in the log.
    pub mark: u64,
    /// When it ended, in milliseconds of the sandbox's clock.
    pub at_ms: i64,
    /// Method and path.
    pub call: String,
    /// The path.
    pub path: String,
    /// The status of the answer; `None` if the connection was cut.
    pub status: Option<u16>,
    /// Why it was refused, in a word.
    pub reason: String,
    /// The parameters.
    pub query: Value,
    /// The body, with masked secrets.
    pub body: Value,
}

impl Exchange {
    /// The call of a record; `None` if it is no call of a bot.
    pub fn of(record: &Value) -> Option<Self> {
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        let path = text("path");
        let is_of_bot = record["kind"] == "request" && BOT_PATHS.iter().any(|begin| path.starts_with(begin));
        is_of_bot.then(|| Self {
            mark: record["mark"].as_u64().unwrap_or_default(),
            at_ms: time_ms(record),
            call: format!("{} {path}", text("method")),
            path,
            status: record["status"].as_u64().and_then(|status| u16::try_from(status).ok()),
            reason: text("reason"),
            query: record["query"].clone(),
            body: record["body"].clone(),
        })
    }

    /// Whether the answer is a success.
    pub fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status < 400)
    }

    /// Whether it asks for a session.
    pub fn is_handshake(&self) -> bool {
        self.path.starts_with(SOCKET) && self.query["sid"].is_null()
    }

    /// Whether it asks for the URL of a session, or for the session itself.
    pub fn is_return(&self) -> bool {
        self.is_handshake() || self.path.starts_with(SESSION_URL)
    }

    /// Whether it is a part of a session that exists.
    pub fn is_transport(&self) -> bool {
        self.path.starts_with(SOCKET) && !self.is_handshake()
    }

    /// The event that it subscribes to.
    pub fn subscribes(&self) -> Option<&str> {
        self.path.strip_prefix(SUBSCRIBE)
    }

    /// The session that it subscribes.
    pub fn session_key(&self) -> Option<&str> {
        self.query["sessionKey"].as_str()
    }

    /// The masked refresh token that it uses.
    pub fn refresh_token(&self) -> Option<&str> {
        let is_refresh = self.path == TOKEN_PATH && self.body["grantType"] == "refresh_token";
        self.body["refreshToken"].as_str().filter(|_| is_refresh)
    }

    /// A line for a report.
    pub fn line(&self) -> String {
        let at = Timestamp::from_millis(self.at_ms).rfc3339();
        let status = self.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let reason = if self.reason.is_empty() { String::new() } else { format!(" ({})", self.reason) };
        format!("record {}  {at}  {} {status}{reason}", self.mark, self.call)
    }
}

/// A message of a session, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The position in the log.
    pub mark: u64,
    /// When it was sent, in milliseconds of the sandbox's clock.
    pub at_ms: i64,
    /// The key of the session.
    pub session: String,
    /// The name: `CHAT`, `SYSTEM/connected`, `opened`, `ended`.
    pub event: String,
    /// Why the session ended.
    pub reason: String,
}

impl Frame {
    /// The frame of a record; `None` if it is none, or one of the client.
    pub fn of(record: &Value) -> Option<Self> {
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        let is_ours = record["kind"] == "frame" && record["direction"] != "in";
        let event = match record["type"].as_str() {
            Some(kind) if record["event"] == "SYSTEM" => format!("SYSTEM/{kind}"),
            _ => text("event"),
        };
        let mark = record["mark"].as_u64().unwrap_or_default();
        let at_ms = time_ms(record);
        is_ours.then(|| Self { mark, at_ms, session: text("session"), event, reason: text("reason") })
    }
}

/// The events that these calls subscribed to.
pub fn subscribed(exchanges: &[Exchange]) -> BTreeSet<String> {
    let done = exchanges.iter().filter(|exchange| exchange.is_success());
    done.filter_map(Exchange::subscribes).map(str::to_owned).collect()
}

/// When a record was made, in milliseconds of the sandbox's clock.
pub fn time_ms(record: &Value) -> i64 {
    let at = record["at"].as_str().and_then(Timestamp::parse_rfc3339);
    at.map(Timestamp::as_millis).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_of_a_bots_call_is_read() {
        let record = json!({
            "mark": 3, "at": "1970-01-01T00:00:01.500Z", "kind": "request", "method": "POST", "path": TOKEN_PATH,
            "status": 401, "reason": "token-used", "body": { "grantType": "refresh_token", "refreshToken": "***abcd" },
        });
        let exchange = Exchange::of(&record).expect("a call");
        assert_eq!((exchange.at_ms, exchange.refresh_token()), (1_500, Some("***abcd")));
        let line = "record 3  1970-01-01T00:00:01.500Z  POST /auth/v1/token 401 (token-used)";
        assert_eq!(exchange.line(), line);
        for other in
            [json!({ "kind": "trigger" }), json!({ "kind": "request", "path": "/platform/v1/sessions" })]
        {
            assert_eq!(Exchange::of(&other), None);
        }
    }

    #[test]
    fn a_frame_is_named_by_its_event_and_the_type_of_a_system_message() {
        let frame = |record: Value| Frame::of(&record).map(|frame| frame.event);
        let system = json!({ "kind": "frame", "direction": "out", "event": "SYSTEM", "type": "connected" });
        assert_eq!(frame(system).as_deref(), Some("SYSTEM/connected"));
        assert_eq!(frame(json!({ "kind": "frame", "event": "ended" })).as_deref(), Some("ended"));
        assert_eq!(frame(json!({ "kind": "frame", "direction": "in", "event": "ping" })), None);
        assert_eq!(frame(json!({ "kind": "request" })), None);
    }

    #[test]
    fn a_bot_that_comes_back_asks_for_a_url_or_uses_one() {
        for (path, expected) in [
            ("/open/v1/sessions/auth", true),
            ("/open/v1/sessions/auth/client", true),
            ("/socket.io/", true),
            ("/open/v1/sessions", false),
        ] {
            let record = json!({ "kind": "request", "path": path });
            assert_eq!(Exchange::of(&record).map(|exchange| exchange.is_return()), Some(expected), "{path}");
        }
    }

    #[test]
    fn a_handshake_has_no_session_yet() {
        let socket = |query: Value| {
            let record = json!({ "kind": "request", "path": "/socket.io/", "query": query, "status": 101 });
            let exchange = Exchange::of(&record).expect("a call");
            (exchange.is_handshake(), exchange.is_transport())
        };
        assert_eq!(socket(json!({ "auth": "***abcd", "EIO": "3" })), (true, false));
        assert_eq!(socket(json!({ "auth": "***abcd", "EIO": "3", "sid": "***" })), (false, true));
    }
}
