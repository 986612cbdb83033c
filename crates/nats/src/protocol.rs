//! NATS's protocol: the operations of a server and of this client. Lines end in `\r\n`. Only `MSG` and `PUB`
//! have a payload after the line.

use bytes::{BufMut, BytesMut};
use memchr::memmem;

/// Maximum length of a line. `INFO` may be longer, because it lists a cluster's servers.
const LINE_BYTES_MAX: usize = 4 * 1024;
const INFO_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a payload, in bytes. The default limit of a server is the same.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// An operation of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOp<'a> {
    /// Describes the server, as JSON.
    Info(&'a str),
    /// A message of a subscription.
    Message {
        /// Its subject.
        subject: &'a str,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// Asks for a `PONG`.
    Ping,
    /// Confirms the oldest unanswered `PING`, and every operation before it.
    Pong,
    /// Confirms one operation. Only sent to clients that ask for it.
    Ok,
    /// The reason of a disconnect, or a violated permission.
    Error(&'a str),
}

/// The bytes are not NATS's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak NATS")]
pub struct NotNats;

/// The first operation and its length; `None` while it is incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(ServerOp<'_>, usize)>, NotNats> {
    let line_max = if bytes.starts_with(b"INFO") { INFO_BYTES_MAX } else { LINE_BYTES_MAX };
    let Some(length) = memmem::find(&bytes[..bytes.len().min(line_max)], b"\r\n") else {
        return if bytes.len() < line_max { Ok(None) } else { Err(NotNats) };
    };
    let line = std::str::from_utf8(&bytes[..length]).map_err(|_| NotNats)?;
    let behind = length + 2;
    let (verb, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let op = match verb {
        "MSG" => return message(rest, &bytes[behind..]).map(|m| m.map(|(op, used)| (op, behind + used))),
        "PING" => ServerOp::Ping,
        "PONG" => ServerOp::Pong,
        "+OK" => ServerOp::Ok,
        "-ERR" => ServerOp::Error(rest.trim().trim_matches('\'')),
        "INFO" => ServerOp::Info(rest.trim()),
        _ => return Err(NotNats),
    };
    Ok(Some((op, behind)))
}

/// Parses `MSG subject sid [reply] size` after its first word, and the payload after the line.
fn message<'a>(line: &'a str, bytes: &'a [u8]) -> Result<Option<(ServerOp<'a>, usize)>, NotNats> {
    let mut words = line.split_ascii_whitespace();
    let subject = words.next().ok_or(NotNats)?;
    let (_sid, size) = match (words.next(), words.next(), words.next(), words.next()) {
        (Some(sid), Some(size), None, None) | (Some(sid), Some(_), Some(size), None) => (sid, size),
        _ => return Err(NotNats),
    };
    let size: usize = size.parse().map_err(|_| NotNats)?;
    if size > PAYLOAD_BYTES_MAX {
        return Err(NotNats);
    }
    let Some((payload, rest)) = bytes.split_at_checked(size) else { return Ok(None) };
    match rest {
        [b'\r', b'\n', ..] => Ok(Some((ServerOp::Message { subject, payload }, size + 2))),
        [] | [b'\r'] => Ok(None),
        _ => Err(NotNats),
    }
}

/// Publishes the concatenation of two parts.
pub(crate) fn publish(out: &mut BytesMut, subject: &str, header: &[u8], body: &[u8]) {
    let size = header.len() + body.len();
    out.reserve(subject.len() + size + 32);
    for part in ["PUB ", subject, " ", &size.to_string(), "\r\n"] {
        out.put_slice(part.as_bytes());
    }
    for part in [header, body, b"\r\n"] {
        out.put_slice(part);
    }
}

pub(crate) fn subscribe(out: &mut BytesMut, subject: &str, sid: u64) {
    for part in ["SUB ", subject, " ", &sid.to_string(), "\r\n"] {
        out.put_slice(part.as_bytes());
    }
}

pub(crate) fn unsubscribe(out: &mut BytesMut, sid: u64) {
    for part in ["UNSUB ", &sid.to_string(), "\r\n"] {
        out.put_slice(part.as_bytes());
    }
}

pub(crate) fn ping(out: &mut BytesMut) {
    out.put_slice(b"PING\r\n");
}

pub(crate) fn pong(out: &mut BytesMut) {
    out.put_slice(b"PONG\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(bytes: &str) -> Result<Option<(ServerOp<'_>, usize)>, NotNats> {
        parse(bytes.as_bytes())
    }

    #[test]
    fn server_operations() {
        for (bytes, expected, left) in [
            ("PING\r\nPONG\r\n", ServerOp::Ping, 6),
            ("PONG\r\n", ServerOp::Pong, 0),
            ("+OK\r\n", ServerOp::Ok, 0),
            ("INFO {\"a\": 1} \r\n", ServerOp::Info("{\"a\": 1}"), 0),
            ("-ERR 'Authorization Violation'\r\n", ServerOp::Error("Authorization Violation"), 0),
            ("MSG a.b 7 5\r\nhel\r\n\r\nPI", ServerOp::Message { subject: "a.b", payload: b"hel\r\n" }, 2),
            ("MSG a 7 _INBOX.x 0\r\n\r\n", ServerOp::Message { subject: "a", payload: b"" }, 0),
        ] {
            assert_eq!(op(bytes), Ok(Some((expected, bytes.len() - left))), "{bytes:?}");
            for cut in 0..bytes.len() - left {
                assert_eq!(op(&bytes[..cut]), Ok(None), "{:?}", &bytes[..cut]);
            }
        }
    }

    #[test]
    fn invalid_server_operations() {
        for bytes in [
            "HTTP/1.1 400 Bad Request\r\n",
            "MSG\r\n",
            "MSG a\r\n",
            "MSG a 1\r\n",
            "MSG a 1 -1\r\n",
            "MSG a 1 1048577\r\n",
            "MSG a 1 99999999999999999999\r\n",
            "MSG a 1 b 1 2\r\n",
            "MSG a 1 1\r\nxyz",
            "\r\n",
        ] {
            assert_eq!(op(bytes), Err(NotNats), "{bytes:?}");
        }
        assert_eq!(parse(b"PI\xffNG\r\n"), Err(NotNats));
    }

    #[test]
    fn lines_have_a_maximum_length() {
        assert_eq!(op(&"x".repeat(LINE_BYTES_MAX - 1)), Ok(None));
        assert_eq!(op(&"x".repeat(LINE_BYTES_MAX)), Err(NotNats));
        let info = |bytes: usize| format!("INFO{}", " ".repeat(bytes - 4));
        assert_eq!(op(&info(INFO_BYTES_MAX - 1)), Ok(None));
        assert_eq!(op(&info(INFO_BYTES_MAX)), Err(NotNats));
    }

    #[test]
    fn client_operations() {
        let mut out = BytesMut::new();
        publish(&mut out, "a.b", b"he", b"llo");
        subscribe(&mut out, "a.b", 12);
        unsubscribe(&mut out, 12);
        ping(&mut out);
        pong(&mut out);
        assert_eq!(&out[..], b"PUB a.b 5\r\nhello\r\nSUB a.b 12\r\nUNSUB 12\r\nPING\r\nPONG\r\n");
    }

    #[test]
    fn fuzz_nats() {
        let seeds = [
            "INFO {\"max_payload\": 1048576}\r\nPING\r\nPONG\r\n+OK\r\n-ERR 'Slow Consumer'\r\n",
            "MSG a.b 7 5\r\nhel\r\n\r\nPING\r\nMSG a 7 _INBOX.x 0\r\n\r\n",
        ];
        let tokens = ["\r\n", "MSG ", " ", "1048577", "18446744073709551616", "\r", "PING\r\n"];
        fuzz::Fuzz::new("NATS").seeds(seeds).tokens(tokens).bytes_max(400).run(|input| {
            let (mut rest, mut read) = (input, Vec::new());
            loop {
                let (op, used) = match parse(rest) {
                    Ok(Some(found)) => found,
                    end => return (read, end.is_ok()),
                };
                assert!(used > 0 && used <= rest.len());
                // Later bytes do not change an operation, and an incomplete one is not returned.
                assert_eq!(parse(&rest[..used]), Ok(Some((op, used))));
                assert!((0..used).all(|cut| parse(&rest[..cut]) == Ok(None)), "{op:?}");
                read.push(format!("{op:?}").split([' ', '(']).next().map(str::to_owned));
                rest = &rest[used..];
            }
        });
    }
}
