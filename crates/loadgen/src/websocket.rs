//! The client's side of RFC 6455, as far as a well-behaved server needs it.

use crate::http::{Head, Origin};

/// The nonce of every handshake and the proof that answers it: the pair that the RFC itself gives (section
/// 1.3). The nonce keeps confused proxies apart, and there are none here.
const NONCE: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const PROOF: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
/// Clients must mask what they send; the mask guards against proxies too, so any will do.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
/// Bytes of one frame's payload. The service's largest is far below.
const PAYLOAD_BYTES_MAX: u64 = 1024 * 1024;

/// The opcodes that a server uses.
pub(crate) mod opcode {
    pub(crate) const TEXT: u8 = 1;
    pub(crate) const BINARY: u8 = 2;
    pub(crate) const CLOSE: u8 = 8;
    pub(crate) const PING: u8 = 9;
    pub(crate) const PONG: u8 = 10;
}

/// The request that asks for a websocket at `path`.
pub(crate) fn handshake(origin: &Origin, path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {NONCE}\r\n\r\n",
        origin.host
    )
}

/// Whether the answer opens the websocket.
///
/// # Errors
/// The kind of error.
pub(crate) fn check_handshake(head: &Head) -> Result<(), String> {
    let says = |name, value: &str| head.header(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    if head.status != 101 {
        Err(format!("HTTP {}", head.status))
    } else if !says("upgrade", "websocket") || !says("connection", "upgrade") {
        Err("101 without its headers".to_owned())
    } else if head.header("sec-websocket-accept") != Some(PROOF) {
        Err("101 with a wrong proof".to_owned())
    } else if head.header("sec-websocket-extensions").is_some() {
        Err("101 with an extension that was not offered".to_owned())
    } else {
        Ok(())
    }
}

/// A masked frame with a payload of at most 125 bytes, which is all that a client here has to say.
pub(crate) fn client_frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(125)];
    let mut frame = vec![0x80 | opcode, 0x80 | payload.len() as u8];
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// A frame of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) opcode: u8,
    pub(crate) payload: &'a [u8],
}

/// What a server must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadFrame(pub(crate) &'static str);

impl<'a> Frame<'a> {
    /// Reads the frame at the start of `bytes`; gives it with its length, or `None` while it is not all
    /// there.
    ///
    /// # Errors
    /// [`BadFrame`]. Fragments are legal but the service sends none, so one is as surprising as a mask.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, BadFrame> {
        let &[first, second, ref rest @ ..] = bytes else { return Ok(None) };
        let opcode = first & 0x0f;
        match first & 0xf0 {
            0x80 if opcode != 0 => {}
            0x80 | 0x00 => return Err(BadFrame("a fragment")),
            _ => return Err(BadFrame("a reserved bit")),
        }
        if second & 0x80 != 0 {
            return Err(BadFrame("a masked frame"));
        }
        let (length, header) = match (second, rest) {
            (126, &[a, b, ..]) => (u64::from(u16::from_be_bytes([a, b])), 4),
            (127, &[a, b, c, d, e, f, g, h, ..]) => (u64::from_be_bytes([a, b, c, d, e, f, g, h]), 10),
            (126 | 127, _) => return Ok(None),
            (short, _) => (u64::from(short), 2),
        };
        if length > PAYLOAD_BYTES_MAX {
            return Err(BadFrame("a giant frame"));
        }
        let end = header + length as usize;
        Ok(bytes.get(header..end).map(|payload| (Self { opcode, payload }, end)))
    }
}

/// Cuts what a socket gives into frames. Between frames it holds nothing.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The beginning of a frame whose end has not come yet.
    rest: Vec<u8>,
}

impl Frames {
    /// Hands each frame that `chunk` completes to `take`.
    ///
    /// # Errors
    /// What `take` refused, or a [`BadFrame`]; nothing after it is looked at.
    pub(crate) fn feed<E: From<BadFrame>>(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rest = std::mem::take(&mut self.rest);
        let joined;
        let mut bytes = chunk;
        if !rest.is_empty() {
            joined = [rest.as_slice(), chunk].concat();
            bytes = &joined;
        }
        while let Some((frame, length)) = Frame::read(bytes)? {
            take(frame)?;
            bytes = &bytes[length..];
        }
        if !bytes.is_empty() {
            self.rest = bytes.to_vec();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x80 | opcode];
        match payload.len() {
            length @ 0..126 => frame.push(length as u8),
            length @ 126..65_536 => {
                frame.push(126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(payload);
        frame
    }

    #[test]
    fn frames_of_every_length_form_are_read_whole_or_not_at_all() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = vec![b'x'; length];
            let bytes = server_frame(opcode::TEXT, &payload);
            for cut in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
                assert_eq!(Frame::read(&bytes[..cut]), Ok(None), "{length} {cut}");
            }
            let whole = Frame { opcode: opcode::TEXT, payload: &payload };
            assert_eq!(Frame::read(&bytes), Ok(Some((whole, bytes.len()))));
        }
    }

    #[test]
    fn what_the_server_must_not_send_is_noticed() {
        let check = |bytes: &[u8], problem| assert_eq!(Frame::read(bytes), Err(BadFrame(problem)));
        check(&[0x01, 0x01, b'x'], "a fragment");
        check(&[0x80, 0x01, b'x'], "a fragment");
        check(&[0xc1, 0x01, b'x'], "a reserved bit");
        check(&client_frame(opcode::TEXT, b"2"), "a masked frame");
        check(&[0x81, 127, 0, 0, 0, 0, 1, 0, 0, 0], "a giant frame");
    }

    #[test]
    fn frames_come_out_the_same_however_the_bytes_are_cut() {
        let sent: Vec<(u8, Vec<u8>)> = vec![
            (opcode::TEXT, b"40".to_vec()),
            (opcode::TEXT, vec![b'y'; 300]),
            (opcode::PING, Vec::new()),
            (opcode::TEXT, vec![b'z'; 70_000]),
            (opcode::CLOSE, vec![3, 232]),
        ];
        let bytes: Vec<u8> =
            sent.iter().flat_map(|(opcode, payload)| server_frame(*opcode, payload)).collect();
        for step in [1, 2, 3, 7, 301, 4_096, bytes.len()] {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            // One byte at a time over the big frame would be quadratic, so only its head is cut so finely.
            let fine = if step < 300 { 320 } else { 0 };
            let (head, tail) = bytes.split_at(fine);
            for chunk in head.chunks(step).chain(tail.chunks(step.max(1_000))) {
                let taken: Result<(), BadFrame> = frames.feed(chunk, |frame| {
                    seen.push((frame.opcode, frame.payload.to_vec()));
                    Ok(())
                });
                taken.unwrap();
            }
            assert!(seen == sent, "cut every {step} bytes");
            assert_eq!(frames.rest.capacity(), 0);
        }
    }

    #[test]
    fn client_frames_are_masked_as_the_rfc_shows() {
        // The example of section 5.7, which has this very mask.
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(client_frame(opcode::TEXT, b"Hello"), hello);
        assert_eq!(client_frame(opcode::PONG, &[0; 200]).len(), 6 + 125);
    }

    #[test]
    fn only_a_proper_101_opens_a_websocket() {
        let check = |head: &str, expected: Result<(), &str>| {
            let (head, _) = Head::read(format!("{head}\r\n\r\n").as_bytes()).unwrap().unwrap();
            assert_eq!(check_handshake(&head), expected.map_err(str::to_owned));
        };
        let good = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {PROOF}"
        );
        check(&good, Ok(()));
        check("HTTP/1.1 401 Unauthorized", Err("HTTP 401"));
        check("HTTP/1.1 101 Switching Protocols", Err("101 without its headers"));
        check(&good.replace("xOo=", "xOO="), Err("101 with a wrong proof"));
        check(
            &format!("{good}\r\nSec-WebSocket-Extensions: permessage-deflate"),
            Err("101 with an extension that was not offered"),
        );
    }
}
