//! The style sheet, and the content security policy that allows it.

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// The only style sheet of the pages, exactly the bytes between the style tags.
pub(crate) const STYLE: &str = include_str!("../../templates/pages/style.css");

static STYLE_HASH: LazyLock<String> =
    LazyLock::new(|| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(STYLE.as_bytes()))));

/// The source expression that allows the pages' style sheet, quotes included: `'sha256-…'`.
pub fn style_csp_hash() -> &'static str {
    &STYLE_HASH
}

/// The value of the `Content-Security-Policy` header of a page.
///
/// `redirect_origin` is scheme, host and port of the validated redirect address, for pages whose form may end
/// there. Browsers apply `form-action` also to the redirect after a form. An origin that is not valid in a
/// header is omitted, so the form stays on this origin. A policy cannot name an IPv6 host, so a redirect to
/// `[::1]` allows its whole scheme.
pub fn content_security_policy(redirect_origin: Option<&str>) -> String {
    let mut form_action = "form-action 'self'".to_owned();
    if let Some(source) = redirect_origin.and_then(source_expression) {
        form_action.push(' ');
        form_action.push_str(source);
    }
    format!(
        "default-src 'none'; style-src {}; img-src 'self' data:; {form_action}; frame-ancestors 'none'; base-uri 'none'",
        style_csp_hash()
    )
}

/// The policy of the documents' page, which has `more` as a second style sheet, and no form.
pub fn docs_security_policy(more: &str) -> String {
    let more = STANDARD.encode(Sha256::digest(more.as_bytes()));
    format!(
        "default-src 'none'; style-src {} 'sha256-{more}'; img-src data:; form-action 'none'; \
         frame-ancestors 'none'; base-uri 'none'",
        style_csp_hash()
    )
}

fn source_expression(origin: &str) -> Option<&str> {
    let (scheme, host) = origin.split_once("://")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if !matches!(scheme, "http" | "https") || host.is_empty() || !host.chars().all(fits) {
        return None;
    }
    if host.starts_with('[') { Some(&origin[..=scheme.len()]) } else { Some(origin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_contains_only_a_valid_redirect_origin() {
        for (origin, expected) in [
            (None, "form-action 'self';"),
            (Some("https://bot.example"), "form-action 'self' https://bot.example;"),
            (Some("http://127.0.0.1:3000"), "form-action 'self' http://127.0.0.1:3000;"),
            (Some("http://[::1]:3000"), "form-action 'self' http:;"),
            (Some("https://a; script-src *"), "form-action 'self';"),
            (Some("https://a, default-src *"), "form-action 'self';"),
            (Some("https://*"), "form-action 'self';"),
            (Some("https://a/path"), "form-action 'self';"),
            (Some("https://"), "form-action 'self';"),
            (Some("javascript://a"), "form-action 'self';"),
            (Some("*"), "form-action 'self';"),
        ] {
            let policy = content_security_policy(origin);
            assert!(policy.contains(expected), "{origin:?}: {policy}");
            assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"));
            assert!(policy.ends_with("frame-ancestors 'none'; base-uri 'none'"));
        }
    }

    #[test]
    fn the_style_sheet_loads_nothing_and_hashes_the_same_after_parsing() {
        // A browser turns CR LF into LF before it hashes, so these bytes must not contain CR.
        assert!(!STYLE.contains('\r'));
        for forbidden in ["</", "url(", "@import", "http"] {
            assert!(!STYLE.contains(forbidden), "{forbidden}");
        }
    }
}
