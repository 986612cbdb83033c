//! The fields of a posted form, and its files.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use domain::limits::BODY_BYTES_MAX;
use domain::{Invalid, Rule};
use http::{HeaderMap, header};
use multer::Multipart;

use crate::input::Pairs;

/// The media type of a form with files.
const MULTIPART: &str = "multipart/form-data";
/// How long a peer may take to send a form.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// The fields of a form, and its files.
#[derive(Debug)]
pub struct FormFields {
    pairs: Pairs,
    files: Vec<(String, Bytes)>,
    /// The largest field of a form with more than 64 KiB, of which only the beginning was read.
    too_large: Option<String>,
}

impl FormFields {
    /// Reads a form. Of one with more than 64 KiB only the fields are read that fit.
    ///
    /// # Errors
    /// `Invalid` for a body that is no form.
    pub(crate) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, Invalid> {
        let read = tokio::time::timeout(BODY_DEADLINE, read_beginning(body)).await;
        let (bytes, is_cut) = read.ok().flatten().ok_or_else(wrong)?;
        let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match media_type.filter(|media_type| media_type.starts_with(MULTIPART)) {
            Some(media_type) => Self::read_parts(media_type, bytes, is_cut).await,
            None => Self::read_pairs(bytes, is_cut),
        }
    }

    fn read_pairs(mut bytes: Vec<u8>, is_cut: bool) -> Result<Self, Invalid> {
        let mut cut = None;
        if is_cut {
            // The last pair is not whole: its value is left out.
            let start = bytes.iter().rposition(|byte| *byte == b'&').map_or(0, |at| at + 1);
            let last = String::from_utf8_lossy(&bytes[start..]).into_owned();
            bytes.truncate(start);
            let (name, value) = last.split_once('=').unwrap_or((&last, ""));
            cut = Some((name.to_owned(), value.len()));
        }
        let pairs = Pairs::parse(&String::from_utf8(bytes).map_err(|_| wrong())?)?;
        let too_large = cut.map(|cut| {
            let all = pairs.iter().map(|(name, value)| (name.to_owned(), value.len())).chain([cut]);
            all.max_by_key(|(_, bytes)| *bytes).unwrap_or_default().0
        });
        Ok(Self { pairs, files: Vec::new(), too_large })
    }

    async fn read_parts(media_type: &str, bytes: Vec<u8>, is_cut: bool) -> Result<Self, Invalid> {
        let boundary = multer::parse_boundary(media_type).map_err(|_| wrong())?;
        let mut parts = Multipart::new(Body::from(bytes).into_data_stream(), boundary);
        let (mut pairs, mut files) = (Vec::new(), Vec::new());
        let mut too_large = is_cut.then(String::new);
        loop {
            let part = match parts.next_field().await {
                Ok(Some(part)) => part,
                Err(_) if is_cut => break,
                Ok(None) => break,
                Err(_) => return Err(wrong()),
            };
            let name = part.name().unwrap_or_default().to_owned();
            let is_file = part.file_name().is_some();
            let content = match part.bytes().await {
                Ok(content) => content,
                Err(_) if is_cut => {
                    too_large = Some(name);
                    break;
                }
                Err(_) => return Err(wrong()),
            };
            if is_file {
                files.push((name, content));
            } else {
                let text = String::from_utf8(content.into()).map_err(|_| wrong())?;
                pairs.push((name, text));
            }
        }
        Ok(Self { pairs: Pairs::of(pairs)?, files, too_large })
    }

    /// The fields alone.
    pub(crate) fn into_pairs(self) -> Pairs {
        self.pairs
    }

    /// The largest field of a form that is too large.
    pub(crate) fn too_large(&self) -> Option<&str> {
        self.too_large.as_deref()
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

    /// Every field with its value, except the proof of the form.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().filter(|(name, _)| *name != "csrf")
    }

    /// The bytes of a file.
    pub fn file(&self, name: &str) -> Option<&[u8]> {
        self.files.iter().find(|(field, _)| field == name).map(|(_, bytes)| &bytes[..])
    }
}

fn wrong() -> Invalid {
    Invalid::new("form", Rule::QueryEncoding)
}

/// The body, or its first 64 KiB and whether there is more. `None` for a body that breaks off.
async fn read_beginning(mut body: Body) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let Some(frame) = frame else { return Some((bytes, false)) };
        let Ok(data) = frame.ok()?.into_data() else { continue };
        let room = BODY_BYTES_MAX - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Some((bytes, true));
        }
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
        assert!(
            read(PARTS, "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nno end").await.is_none()
        );
        assert!(read("multipart/form-data", part("fine")).await.is_none());
        assert!(read(PARTS, b"--x\r\n\xff".to_vec()).await.is_none());
    }

    #[tokio::test]
    async fn of_a_form_that_is_too_large_the_largest_field_is_named() {
        let large = "x".repeat(BODY_BYTES_MAX);
        let text = |name: &str, content: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{content}\r\n")
        };
        let file = |content: &str| {
            format!(
                "--x\r\nContent-Disposition: form-data; name=\"logo\"; filename=\"a\"\r\n\r\n{content}\r\n--x--"
            )
        };
        let fields = read(PARTS, format!("{}{}", text("name", "b"), file(&large))).await.expect("a form");
        assert_eq!((fields.text("name"), fields.too_large()), ("b", Some("logo")));
        for (body, name) in [
            (format!("a=1&about={large}&b=2"), "about"),
            (format!("a={}&b={}", "x".repeat(BODY_BYTES_MAX - 9), "y".repeat(99)), "a"),
            (format!("{large}x"), ""),
            (format!("%&a={large}"), ""),
        ] {
            let fields = read("application/x-www-form-urlencoded", body).await;
            match name {
                "" => assert!(fields.is_none_or(|fields| fields.too_large().is_some())),
                name => assert_eq!(fields.expect("a form").too_large(), Some(name)),
            }
        }
        let whole = read(PARTS, format!("{}--x--", text("a", &"x".repeat(BODY_BYTES_MAX - 200)))).await;
        assert_eq!(whole.expect("a form").too_large(), None);
    }
}
