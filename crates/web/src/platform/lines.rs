//! Splits a request's body into lines while it arrives. At most one line is held in memory.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use domain::limits::BODY_BYTES_MAX;
use domain::{Invalid, Rule};

/// A line of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number, from 1.
    pub number: u64,
    /// Its text; an error if it is not UTF-8, longer than a JSON body may be, or cut off.
    pub text: Result<String, Invalid>,
}

/// The lines of a body that are not blank. A line ends with a line feed, with or without a carriage return
/// before it.
#[derive(Debug)]
pub(super) struct Lines {
    /// `None` after the end of the body.
    body: Option<Body>,
    /// How long a peer may take to send the next part of its body.
    deadline: Duration,
    splitter: Splitter,
}

impl Lines {
    pub fn new(body: Body, deadline: Duration) -> Self {
        Self { body: Some(body), deadline, splitter: Splitter::default() }
    }

    /// Whether the whole body has been read.
    pub fn ended(&self) -> bool {
        self.body.is_none()
    }

    /// Waits for the next part of the body and passes its lines to `each`. Cancel safe.
    ///
    /// A body that breaks off, or is too slow, ends with a refused line, because the last line may be
    /// incomplete.
    pub async fn more(&mut self, mut each: impl FnMut(Line)) {
        let Some(body) = &mut self.body else { return };
        match tokio::time::timeout(self.deadline, next_chunk(body)).await {
            Ok(Some(Ok(chunk))) => {
                self.splitter.split(&chunk, &mut each);
                if !body.is_end_stream() {
                    return;
                }
                // The body is complete: a last line without a line feed joins this batch and its sync.
                self.splitter.end(each);
            }
            Ok(None) => self.splitter.end(each),
            Ok(Some(Err(_))) | Err(_) => self.splitter.cut(each),
        }
        self.body = None;
    }
}

/// The next chunk; `None` at the end. Trailers are ignored.
async fn next_chunk(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

/// Splits bytes into lines.
#[derive(Debug, Default)]
struct Splitter {
    /// Number of lines so far.
    ended: u64,
    /// The beginning of the next line, up to two bytes longer than a line may be.
    partial: Vec<u8>,
}

/// The maximum length of a line, its carriage return, and one byte more to detect a line that is too long.
const PARTIAL_MAX: usize = BODY_BYTES_MAX + 2;

impl Splitter {
    fn split(&mut self, chunk: &[u8], mut each: impl FnMut(Line)) {
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            self.go_on(&chunk[at..end]);
            self.end(&mut each);
            at = end + 1;
        }
        self.go_on(&chunk[at..]);
    }

    fn go_on(&mut self, part: &[u8]) {
        let room = PARTIAL_MAX - self.partial.len();
        self.partial.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Ends the current line, at its line feed or at the end of the body. An empty line is blank.
    fn end(&mut self, mut each: impl FnMut(Line)) {
        let mut bytes = std::mem::take(&mut self.partial);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        self.ended += 1;
        if bytes.len() > BODY_BYTES_MAX || !bytes.trim_ascii().is_empty() {
            let text = String::from_utf8(bytes).ok().filter(|text| text.len() <= BODY_BYTES_MAX);
            each(Line { number: self.ended, text: text.ok_or(wrong()) });
        }
    }

    fn cut(&mut self, mut each: impl FnMut(Line)) {
        self.partial.clear();
        self.ended += 1;
        each(Line { number: self.ended, text: Err(wrong()) });
    }
}

fn wrong() -> Invalid {
    Invalid::new("body", Rule::Json)
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    /// The lines of a body that arrives in these chunks; `-` for a line that is not text.
    fn lines(chunks: &[&[u8]]) -> Vec<(u64, String)> {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        let mut each = |line: Line| lines.push((line.number, line.text.unwrap_or("-".to_owned())));
        for chunk in chunks {
            splitter.split(chunk, &mut each);
        }
        splitter.end(&mut each);
        lines
    }

    #[test]
    fn lines_do_not_depend_on_the_chunks_of_the_body() {
        let body = b"a\r\n\nb\n \t\r\n{\"c\":\r1}\n\xff\n\xea\xb0\x80\nlast";
        let expected = [(1, "a"), (3, "b"), (5, "{\"c\":\r1}"), (6, "-"), (7, "가"), (8, "last")];
        for size in 1..=body.len() {
            let chunks: Vec<_> = body.chunks(size).collect();
            let found = lines(&chunks);
            assert_eq!(found, expected.map(|(number, text)| (number, text.to_owned())), "{size}");
        }
        assert_eq!(lines(&[]), []);
        assert_eq!(lines(&[b"a\n"]), [(1, "a".to_owned())]);
    }

    #[test]
    fn a_line_has_64_kib_at_most_and_a_longer_one_is_not_buffered() {
        let longest = "x".repeat(BODY_BYTES_MAX);
        for (end, spare) in [("\n", 0), ("\r\n", 0), ("\n", 1), ("\r\n", 1), ("\n", 2), ("\r\n", 1_000_000)] {
            let body = format!("{longest}{}{end}b", "x".repeat(spare));
            let first = if spare == 0 { longest.clone() } else { "-".to_owned() };
            for size in [1_000, 65_536, 2_000_000] {
                let chunks: Vec<_> = body.as_bytes().chunks(size).collect();
                assert_eq!(lines(&chunks), [(1, first.clone()), (2, "b".to_owned())], "{spare} {end:?}");
            }
        }
        let mut splitter = Splitter::default();
        for _ in 0..100 {
            splitter.split(&[b' '; 10_000], |_| panic!("no line has ended"));
        }
        assert_eq!(splitter.partial.len(), PARTIAL_MAX);
        assert_eq!(lines(&[&[b' '; BODY_BYTES_MAX + 1]]), [(1, "-".to_owned())]);
        assert_eq!(lines(&[&[b' '; BODY_BYTES_MAX]]), []);
    }

    #[tokio::test]
    async fn a_stalled_body_ends_after_its_deadline() {
        let sent = stream::iter([Ok::<_, std::io::Error>("whole\nbegun")]);
        let body = Body::from_stream(sent.chain(stream::pending()));
        let mut lines = Lines::new(body, Duration::from_millis(1));
        let mut found = Vec::new();
        while !lines.ended() {
            lines.more(|line| found.push((line.number, line.text.ok()))).await;
        }
        assert_eq!(found, [(1, Some("whole".to_owned())), (2, None)]);
    }

    #[tokio::test]
    async fn a_body_in_one_chunk_ends_with_it() {
        for (text, count) in [("a\nb", 2), ("a\nb\n", 2), ("a", 1)] {
            let mut lines = Lines::new(Body::from(text), Duration::from_secs(1));
            let mut found = 0;
            lines.more(|_| found += 1).await;
            assert_eq!((found, lines.ended()), (count, true), "{text:?}");
        }
    }

    #[test]
    fn an_incomplete_line_is_refused() {
        for (chunk, number) in [(&b""[..], 1), (b"a\n", 2), (b"a\nhalf", 2)] {
            let mut splitter = Splitter::default();
            let mut last = None;
            splitter.split(chunk, |line| last = Some(line));
            splitter.cut(|line| last = Some(line));
            assert_eq!(last, Some(Line { number, text: Err(wrong()) }));
        }
    }

    #[test]
    fn fuzz_lines() {
        let seeds = ["a\r\n\nb\n \t\r\n{\"c\":\r1}\n가\nlast", "{\"type\":\"CHAT\"}\n{\"type\":\"LIVE\"}\n"];
        fuzz::Fuzz::new("lines").seeds(seeds).tokens(["\n", "\r\n", "\n\n", " ", "\u{feff}"]).run(|input| {
            let found = lines(&[input]);
            for size in [1, 3, 64] {
                assert_eq!(lines(&input.chunks(size).collect::<Vec<_>>()), found, "in chunks of {size}");
            }
            // The expected lines, split without chunks. Only a line that is not UTF-8 is refused as such.
            let plain = input.split(|byte| *byte == b'\n').enumerate().filter_map(|(at, line)| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                let text = std::str::from_utf8(line).unwrap_or("-").to_owned();
                (!line.trim_ascii().is_empty()).then_some((at as u64 + 1, text))
            });
            assert_eq!(found, plain.collect::<Vec<_>>());
            found.len().min(20)
        });
    }
}
