//! The answer to requests that the HTTP library cannot parse: the envelope with a request id, like every
//! other refusal.

use domain::Language;
use domain::reason::{REASON_HEADER, Word};
use http::StatusCode;
use serde_json::json;
use web::RequestId;

/// Maximum length of a request's head, in bytes: its line and its headers.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The answer to bytes that are not a request; `None` if the connection ended for another reason. `unread` is
/// the part of the head that the library has read, and `idle` is whether no request is running.
pub(crate) fn answer(
    error: &hyper::Error,
    unread: &[u8],
    idle: bool,
    language: Language,
    id: &RequestId,
) -> Option<Vec<u8>> {
    // Without unread bytes, the peer closed the connection during an answer.
    let is_cut_off = idle && error.is_incomplete_message() && !unread.is_empty();
    if !error.is_parse() && !is_cut_off {
        return None;
    }
    let status = match error.is_parse_too_large() {
        // Without a line end, the request line itself is too long.
        true if !unread.contains(&b'\n') => StatusCode::URI_TOO_LONG,
        true => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        false => StatusCode::BAD_REQUEST,
    };
    tracing::debug!(%id, status = status.as_u16(), %error, "refused a malformed request");
    Some(spell(status, &message(status, language), id))
}

/// The answer to plain HTTP where only HTTPS is spoken.
pub(crate) fn not_https(language: Language, id: &RequestId) -> Vec<u8> {
    let message = language.pick(
        "이 주소는 HTTPS로만 응답합니다. https://로 시작하는 주소를 쓰세요.",
        "This address speaks HTTPS only: use an address that begins with https://.",
    );
    spell(StatusCode::BAD_REQUEST, message, id)
}

fn message(status: StatusCode, language: Language) -> String {
    const KIB: usize = HEAD_BYTES_MAX / 1024;
    let (korean, english) = match status {
        StatusCode::URI_TOO_LONG => (
            format!("요청 주소가 너무 깁니다. 주소와 헤더는 합쳐서 {KIB} KiB까지입니다."),
            format!(
                "The address of the request is too long: together with the headers it may have {KIB} KiB."
            ),
        ),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            format!("요청 헤더가 너무 큽니다. 주소와 헤더는 합쳐서 {KIB} KiB까지입니다."),
            format!("The headers are too large: together with the address they may have {KIB} KiB."),
        ),
        _ => (
            "잘못된 값을 입력했습니다. HTTP/1.1 형식에 맞지 않는 요청입니다.".to_owned(),
            "A wrong value was entered. The request is not well-formed HTTP/1.1.".to_owned(),
        ),
    };
    language.pick(korean, english)
}

fn reason(status: StatusCode) -> Word {
    match status {
        StatusCode::URI_TOO_LONG => Word::AddressTooLong,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Word::HeadersTooLarge,
        _ => Word::HttpMalformed,
    }
}

fn spell(status: StatusCode, message: &str, id: &RequestId) -> Vec<u8> {
    let body = json!({ "code": status.as_u16(), "message": message }).to_string();
    let (phrase, reason) = (status.canonical_reason().unwrap_or_default(), reason(status).name());
    format!(
        "HTTP/1.1 {} {phrase}\r\ncontent-type: application/json\r\ncache-control: no-store\r\nx-request-id: {id}\r\n\
         x-content-type-options: nosniff\r\n\
         {REASON_HEADER}: {reason}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        status.as_u16(),
        body.len()
    )
    .into_bytes()
}
