//! The fields of a posted form, and its files.

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use domain::limits::BODY_BYTES_MAX;
use domain::{Invalid, Rule};
use http::{HeaderMap, header};
use multer::Multipart;

use crate::input::{Pairs, read_body};

/// The media type of a form with files.
const MULTIPART: &str = "multipart/form-data";
/// How long a peer may take to send a form with files.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// The fields of a form, and its files.
#[derive(Debug)]
pub struct FormFields {
    pairs: Pairs,
    files: Vec<(String, Bytes)>,
}

impl FormFields {
    /// Reads a form of at most 64 KiB.
    ///
    /// # Errors
    /// `Invalid` for a body that is no form.
    pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, Invalid> {
        let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match media_type.filter(|media_type| media_type.starts_with(MULTIPART)) {
            Some(media_type) => Self::read_parts(media_type, body).await,
            None => Ok(Self { pairs: Pairs::parse(&read_body(body).await?)?, files: Vec::new() }),
        }
    }

    async fn read_parts(media_type: &str, body: Body) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("form", Rule::QueryEncoding);
        let boundary = multer::parse_boundary(media_type).map_err(|_| wrong())?;
        let bytes = tokio::time::timeout(BODY_DEADLINE, to_bytes(body, BODY_BYTES_MAX)).await;
        let bytes = bytes.map_err(|_| wrong())?.map_err(|_| wrong())?;
        let mut parts = Multipart::new(Body::from(bytes).into_data_stream(), boundary);
        let (mut pairs, mut files) = (Vec::new(), Vec::new());
        while let Some(part) = parts.next_field().await.map_err(|_| wrong())? {
            let name = part.name().unwrap_or_default().to_owned();
            let is_file = part.file_name().is_some();
            let content = part.bytes().await.map_err(|_| wrong())?;
            if is_file {
                files.push((name, content));
            } else {
                let text = String::from_utf8(content.into()).map_err(|_| wrong())?;
                pairs.push((name, text));
            }
        }
        Ok(Self { pairs: Pairs::of(pairs)?, files })
    }

    /// The value of a field; empty when it is missing, or occurs more than once.
    pub fn text(&self, name: &'static str) -> &str {
        self.pairs.optional(name).ok().flatten().unwrap_or_default()
    }

    /// Whether a box is checked.
    pub fn is_checked(&self, name: &'static str) -> bool {
        !self.text(name).is_empty()
    }

    /// The values of a field that may occur several times.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.pairs.all(name).collect()
    }

    /// All fields that are no files, in their order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter()
    }

    /// The bytes of a file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(field, _)| field == name).map(|(_, bytes)| &bytes[..])
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    async fn read(media_type: &'static str, body: impl Into<Body>) -> Option<FormFields> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        FormFields::read(&headers, body.into()).await.ok()
    }

    const PARTS: &str = "multipart/form-data; boundary=x";

    #[tokio::test]
    async fn a_form_with_a_file_is_read_like_one_without() {
        let body = "--x\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\n\u{ac00}&=\r\n\
            --x\r\nContent-Disposition: form-data; name=\"logo\"; filename=\"a.png\"\r\n\
            Content-Type: image/png\r\n\r\nP\r\nN\r\n--x--\r\n";
        let fields = read(PARTS, body).await.expect("a form");
        assert_eq!((fields.text("csrf"), fields.file("logo")), ("가&=", Some(&b"P\r\nN"[..])));
        assert_eq!((fields.text("logo"), fields.file("csrf")), ("", None));
        let fields = read("application/x-www-form-urlencoded", "csrf=%EA%B0%80").await.expect("a form");
        assert_eq!((fields.text("csrf"), fields.file("csrf")), ("가", None));
    }

    #[tokio::test]
    async fn what_is_no_form_is_refused() {
        let part = |content: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{content}\r\n--x--\r\n")
        };
        assert!(read(PARTS, part("fine")).await.is_some());
        assert!(read(PARTS, part("a\0")).await.is_none());
        assert!(read(PARTS, part(&"x".repeat(BODY_BYTES_MAX))).await.is_none());
        assert!(
            read(PARTS, "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nno end").await.is_none()
        );
        assert!(read("multipart/form-data", part("fine")).await.is_none());
        assert!(read(PARTS, b"--x\r\n\xff".to_vec()).await.is_none());
    }
}
