//! Ids of traces and spans, and the header `traceparent` of W3C Trace Context.

use std::fmt;

/// The id of a trace. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(u128);

/// The id of a span. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanId(u64);

impl TraceId {
    /// An id of random bits.
    pub fn of(high: u64, low: u64) -> Self {
        Self(((u128::from(high) << 64) | u128::from(low)).max(1))
    }

    /// Random bits of the id, by which it is sampled.
    pub fn low_bits(self) -> u64 {
        self.0 as u64
    }
}

impl SpanId {
    /// An id of random bits.
    pub fn of(bits: u64) -> Self {
        Self(bits.max(1))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The span of a caller, in its header `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether the caller traces the request.
    pub is_sampled: bool,
}

impl RemoteParent {
    /// Parses `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`. Later versions may have more after it.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split('-');
        let version = hex(parts.next()?, 2)?;
        let (trace, span, flags) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?, hex(parts.next()?, 2)?);
        let is_version_known = version == 0 && parts.next().is_none();
        let is_later = (1..0xff).contains(&version);
        if trace == 0 || span == 0 || !(is_version_known || is_later) {
            return None;
        }
        let span = SpanId(u64::try_from(span).ok()?);
        Some(Self { trace: TraceId(trace), span, is_sampled: flags & 1 == 1 })
    }
}

/// A number of exactly this many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let fits = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    fits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_traceparent_is_read_as_the_recommendation_says() {
        let read = |header: &str| {
            let parent = RemoteParent::parse(header)?;
            assert_eq!((parent.trace.to_string(), parent.span.to_string()), (TRACE.into(), SPAN.into()));
            Some(parent.is_sampled)
        };
        for (header, expected) in [
            (format!("00-{TRACE}-{SPAN}-01"), Some(true)),
            (format!("00-{TRACE}-{SPAN}-00"), Some(false)),
            (format!("00-{TRACE}-{SPAN}-03"), Some(true)),
            (format!("cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like"), Some(true)),
            (format!("00-{TRACE}-{SPAN}-01-more"), None),
            (format!("ff-{TRACE}-{SPAN}-01"), None),
            (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
            (format!("00-{}-{SPAN}-01", "0".repeat(32)), None),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
            (format!("00-{TRACE}-{SPAN}"), None),
            (format!("00-{TRACE}-{SPAN}-1"), None),
            (format!("00-{TRACE}-+0f067aa0ba902b7-01"), None),
            (String::new(), None),
        ] {
            assert_eq!(read(&header), expected, "{header}");
        }
    }

    #[test]
    fn ids_are_never_zero() {
        assert_eq!(TraceId::of(0, 0).to_string(), format!("{:032x}", 1));
        assert_eq!(SpanId::of(0).to_string(), format!("{:016x}", 1));
        assert_eq!(TraceId::of(1, 2).to_string(), "00000000000000010000000000000002");
    }
}
