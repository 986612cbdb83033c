//! The address of `--forward-to`.

use domain::Language;
use domain::outbound::{Reach, WebhookUrl};

/// What may be reached. The commands run on the developer's machine, so every loopback and private address is
/// allowed.
pub(crate) const REACH: Reach = Reach { loopback: true, private: true };

/// Parses the address.
///
/// # Errors
/// A sentence that names the option.
pub(crate) fn parse(url: &str) -> Result<WebhookUrl, String> {
    if !url.contains("://") {
        let is_port = !url.is_empty() && url.bytes().all(|byte| byte.is_ascii_digit());
        let rest = if is_port { format!("127.0.0.1:{url}") } else { url.to_owned() };
        let rest = if rest.is_empty() { "127.0.0.1:3000".to_owned() } else { rest };
        let rest = rest.trim_end_matches('/');
        return Err(format!(
            "--forward-to {url}: it must be an address with its scheme, as in http://{rest}/"
        ));
    }
    WebhookUrl::parse(url, REACH)
        .map_err(|invalid| format!("--forward-to {url}: {}", invalid.message(Language::English)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_or_a_host_alone_is_refused_with_the_address_that_was_meant() {
        for (text, part) in [
            ("9999", "http://127.0.0.1:9999/"),
            ("localhost:3000/", "http://localhost:3000/"),
            ("", "http://127.0.0.1:3000/"),
            ("ftp://127.0.0.1/", "--forward-to ftp://127.0.0.1/"),
        ] {
            let refused = parse(text).expect_err(text);
            assert!(refused.contains(part), "{text}: {refused}");
        }
        assert!(parse("http://127.0.0.1:3000/events").is_ok());
    }
}
