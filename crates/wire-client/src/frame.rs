//! Frames of a websocket.

/// First byte of a text message in one frame.
pub const TEXT: u8 = 0x81;
/// First byte of a binary message in one frame.
pub const BINARY: u8 = 0x82;
/// First byte of a close frame.
pub const CLOSE: u8 = 0x88;
/// First byte of a ping frame.
pub const PING: u8 = 0x89;
/// First byte of a pong frame.
pub const PONG: u8 = 0x8a;

/// A client must mask what it sends, against confused proxies. Tests and measurements have no proxy, so the
/// mask of the RFC's example does.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
/// Bytes of one frame's payload. The largest frame of the service is far smaller.
const PAYLOAD_BYTES_MAX: u64 = 1024 * 1024;

/// A client's frame: masked, its length in the shortest form. `first` holds FIN, the reserved bits and the
/// opcode.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    frame_with_mask(first, MASK, payload)
}

/// A text message in one frame.
pub fn text(message: &str) -> Vec<u8> {
    frame(TEXT, message.as_bytes())
}

/// As [`frame`], with a mask.
pub fn frame_with_mask(first: u8, mask: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut frame = header(first, 0x80, payload.len());
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// The first byte and the length in its shortest form.
fn header(first: u8, mask_bit: u8, length: usize) -> Vec<u8> {
    let mut header = vec![first];
    match length {
        short @ 0..126 => header.push(mask_bit | short as u8),
        medium @ 126..0x1_0000 => {
            header.push(mask_bit | 126);
            header.extend((medium as u16).to_be_bytes());
        }
        long => {
            header.push(mask_bit | 127);
            header.extend((long as u64).to_be_bytes());
        }
    }
    header
}

/// A frame of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// FIN and the opcode: [`TEXT`], [`CLOSE`] and so on.
    pub first: u8,
    /// The payload.
    pub payload: &'a [u8],
}

/// What the server must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame(pub &'static str);

impl<'a> Frame<'a> {
    /// Reads the frame at the start of `bytes`. Returns it with its length, or `None` while a part is
    /// missing.
    ///
    /// # Errors
    /// [`BadFrame`]. Fragments are legal, but the service sends none, so a fragment is as wrong as a mask.
    pub fn read(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, BadFrame> {
        let &[first, second, ref rest @ ..] = bytes else { return Ok(None) };
        match (first & 0xf0, first & 0x0f) {
            (0x00, _) | (0x80, 0) => return Err(BadFrame("a fragment")),
            (0x80, _) => {}
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
        Ok(bytes.get(header..end).map(|payload| (Self { first, payload }, end)))
    }
}

/// Cuts what a socket gives into frames. Between frames it holds no memory.
#[derive(Debug, Default)]
pub struct Frames {
    /// The beginning of a frame whose end has not come yet.
    rest: Vec<u8>,
}

impl Frames {
    /// Calls `take` with each frame that `chunk` completes.
    ///
    /// # Errors
    /// The error of `take`, or a [`BadFrame`]. The bytes after it are lost.
    pub fn feed<E: From<BadFrame>>(
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

    fn server_frame(first: u8, payload: &[u8]) -> Vec<u8> {
        [&header(first, 0, payload.len()), payload].concat()
    }

    #[test]
    fn frames_of_every_length_form_are_read_whole_or_not_at_all() {
        for length in [0, 1, 125, 126, 65_535, 65_536] {
            let payload = vec![b'x'; length];
            let bytes = server_frame(TEXT, &payload);
            for cut in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
                assert_eq!(Frame::read(&bytes[..cut]), Ok(None), "{length} {cut}");
            }
            let whole = Frame { first: TEXT, payload: &payload };
            assert_eq!(Frame::read(&bytes), Ok(Some((whole, bytes.len()))));
        }
    }

    #[test]
    fn what_the_server_must_not_send_is_noticed() {
        let check = |bytes: &[u8], problem| assert_eq!(Frame::read(bytes), Err(BadFrame(problem)));
        check(&[0x01, 0x01, b'x'], "a fragment");
        check(&[0x80, 0x01, b'x'], "a fragment");
        check(&[0xc1, 0x01, b'x'], "a reserved bit");
        check(&text("2"), "a masked frame");
        check(&[0x81, 127, 0, 0, 0, 0, 1, 0, 0, 0], "a giant frame");
    }

    #[test]
    fn frames_come_out_the_same_however_the_bytes_are_cut() {
        let sent: Vec<(u8, Vec<u8>)> = vec![
            (TEXT, b"40".to_vec()),
            (TEXT, vec![b'y'; 300]),
            (PING, Vec::new()),
            (TEXT, vec![b'z'; 70_000]),
            (CLOSE, vec![3, 232]),
        ];
        let bytes: Vec<u8> = sent.iter().flat_map(|(first, payload)| server_frame(*first, payload)).collect();
        for step in [1, 2, 3, 7, 301, 4_096, bytes.len()] {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            // One byte at a time over the big frame would be quadratic, so only its head is cut so finely.
            let fine = if step < 300 { 320 } else { 0 };
            let (head, tail) = bytes.split_at(fine);
            for chunk in head.chunks(step).chain(tail.chunks(step.max(1_000))) {
                let taken: Result<(), BadFrame> = frames.feed(chunk, |frame| {
                    seen.push((frame.first, frame.payload.to_vec()));
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
        // The example of section 5.7.
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(text("Hello"), hello);
        assert_eq!(frame(BINARY, &[0; 200])[..4], [0x82, 0x80 | 126, 0, 200]);
    }
}
