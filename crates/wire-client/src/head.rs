//! The head of an answer.

use httparse::{EMPTY_HEADER, Status};

/// Bytes of a head.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers of a head.
const HEADERS_MAX: usize = 64;

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// Every header, names in lower case.
    pub headers: Vec<(String, String)>,
}

/// The bytes are no head, or too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHead;

impl Head {
    /// Reads the head at the start of `bytes`. Returns it with its length, or `None` while a part is missing.
    ///
    /// # Errors
    /// [`BadHead`].
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadHead> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let length = match response.parse(bytes) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Ok(None),
            Ok(Status::Partial) | Err(_) => return Err(BadHead),
        };
        let status = response.code.ok_or(BadHead)?;
        let headers = response.headers.iter().map(|header| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
        });
        Ok(Some((Self { status, headers: headers.collect() }, length)))
    }

    /// The first header of that name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_whole_or_not_at_all() {
        let bytes = b"HTTP/1.1 303 See Other\r\nLocation:  http://x/?a=b:c \r\nX-Y:z\r\n\r\nrest";
        for cut in 0..bytes.len() - 4 {
            assert_eq!(Head::read(&bytes[..cut]), Ok(None), "{cut}");
        }
        let (head, length) = Head::read(bytes).unwrap().unwrap();
        assert_eq!((head.status, length), (303, bytes.len() - 4));
        assert_eq!(head.header("location"), Some("http://x/?a=b:c"));
        assert_eq!(head.header("x-y"), Some("z"));
        assert_eq!(head.header("absent"), None);
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for bytes in [
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 20\r\n\r\n",
            "HTTP/1.1 2000\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx\r\n\r\n",
        ] {
            assert_eq!(Head::read(bytes.as_bytes()), Err(BadHead), "{bytes:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(HEAD_BYTES_MAX));
        assert_eq!(Head::read(endless.as_bytes()), Err(BadHead));
    }
}
