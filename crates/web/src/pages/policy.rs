//! The content security policies of the pages.

/// What every page may do: load its own files, nothing of other hosts, and stand in no frame.
const BASE: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:";
const END: &str = "frame-ancestors 'none'; base-uri 'none'";

/// The value of the `Content-Security-Policy` header of a page that stands for itself, without a script.
///
/// `redirect_origin` is scheme, host and port of the validated redirect address, for pages whose form may end
/// there. Browsers apply `form-action` also to the redirect after a form. An origin that is not valid in a
/// header is omitted, so the form stays on this origin. A policy cannot name an IPv6 host, so a redirect to
/// `[::1]` allows its whole scheme.
pub fn alone_policy(redirect_origin: Option<&str>) -> String {
    let mut form_action = "form-action 'self'".to_owned();
    if let Some(source) = redirect_origin.and_then(source_expression) {
        form_action.push(' ');
        form_action.push_str(source);
    }
    format!("{BASE}; {form_action}; {END}")
}

/// The policy of a page with navigation and the script, which asks this origin only.
pub fn site_policy() -> String {
    format!("{BASE}; script-src 'self'; connect-src 'self'; form-action 'self'; {END}")
}

/// The policy of the documentation, whose script also loads results of the search.
pub fn documentation_policy() -> String {
    format!("{BASE}; script-src 'self'; connect-src 'self'; form-action 'self'; {END}")
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
            let policy = alone_policy(origin);
            assert!(policy.contains(expected), "{origin:?}: {policy}");
            assert!(policy.starts_with(BASE) && policy.ends_with(END) && !policy.contains("script"));
        }
    }
}
