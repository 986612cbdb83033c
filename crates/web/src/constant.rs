//! Answers that are the same for everybody, compressed once: documents, style sheet, scripts.
//!
//! The length of a compressed answer tells something about what is in it. So nothing is compressed that has
//! the proof of a form, a secret, or what the request sent.

use std::io::Write;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

/// Number of bytes of a hash that are used.
const HASH_BYTES: usize = 12;

/// A content that does not change while the process runs.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    plain: Bytes,
    /// `None` if compression does not make it smaller.
    gzip: Option<Bytes>,
    hash: String,
}

impl Constant {
    /// This content.
    pub fn new(plain: impl Into<Bytes>) -> Self {
        let plain = plain.into();
        let gzip = gzip(&plain).filter(|gzip| gzip.len() < plain.len()).map(Bytes::from);
        Self { hash: hash(&plain), plain, gzip }
    }

    /// The answer: compressed if the client takes it, and without a body if it has the content already.
    pub fn answer(&self, asked: &HeaderMap) -> Response {
        let gzip = self.gzip.as_ref().filter(|_| takes_gzip(asked));
        let etag = etag(&[self.hash.as_str()], gzip.is_some());
        let mut response = match is_known(asked, &etag) {
            true => (StatusCode::NOT_MODIFIED, Body::empty()).into_response(),
            false => gzip.unwrap_or(&self.plain).clone().into_response(),
        };
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ETAG, etag);
        if self.gzip.is_some() {
            headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if gzip.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// The hash of a content, in hex.
pub(crate) fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The value of `ETag` of a content with these hashes. A compressed one has another.
pub(crate) fn etag(hashes: &[&str], is_compressed: bool) -> HeaderValue {
    let hashes = hashes.join("-");
    let etag = format!("\"{hashes}{}\"", if is_compressed { "-gzip" } else { "" });
    // Hex digits are valid in a header.
    HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether the client says that it has the content with this tag.
pub(crate) fn is_known(asked: &HeaderMap, etag: &HeaderValue) -> bool {
    let tags = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|list| list.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || etag == tag.trim_start_matches("W/")
    })
}

fn gzip(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).ok()?;
    encoder.finish().ok()
}

/// Whether `Accept-Encoding` names gzip, or everything, and does not refuse it.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let lists = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let (mut gzip, mut any) = (None, None);
    for coding in lists.flat_map(|list| list.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let is_taken = weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0));
        match name.as_str() {
            "gzip" | "x-gzip" => gzip = Some(is_taken),
            "*" => any = Some(is_taken),
            _ => {}
        }
    }
    gzip.or(any).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for (accepted, expected) in [
            ("gzip", true),
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, GZIP;q=0.8, *;q=0.1", true),
            ("*", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("*;q=0", false),
            ("gzip;q=x", false),
            ("identity", false),
            ("br", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            assert_eq!(takes_gzip(&headers), expected, "{accepted}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn what_does_not_get_smaller_is_sent_as_it_is() {
        let noise: Vec<u8> = hash(b"a").into_bytes().into_iter().take(8).collect();
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let answer = Constant::new(noise).answer(&headers);
        assert!(!answer.headers().contains_key(header::CONTENT_ENCODING));
        assert!(!answer.headers().contains_key(header::VARY));
    }
}
