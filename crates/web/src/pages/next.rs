//! Where a sign-in leads: only to pages of this origin.

use domain::limits::URL_BYTES_MAX;

/// The path and query of a page of this origin; `None` for anything else. Browsers take `//host` and
/// `/\host` for another host, and leave tabs and line ends out.
pub fn local_page(next: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_local = next.starts_with('/') && !next.starts_with("//");
    (is_local && next.len() <= URL_BYTES_MAX && next.bytes().all(is_plain)).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_origin_are_next() {
        for (next, is_local) in [
            ("/", true),
            ("/account/apps?page=2&lang=ko", true),
            ("/account/apps#x", true),
            ("/%2F%2Fevil.example", true),
            ("/a//b", true),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("/a\\b", false),
            ("/\t/evil.example", false),
            ("/\n/evil.example", false),
            ("/\0", false),
            ("https://evil.example/", false),
            ("https:/evil.example", false),
            ("javascript:alert(1)", false),
            ("evil.example", false),
            (" /x", false),
            ("/ x", false),
            ("/한글", false),
            ("", false),
        ] {
            assert_eq!(local_page(next).is_some(), is_local, "{next:?}");
        }
        assert_eq!(local_page(&format!("/{}", "x".repeat(URL_BYTES_MAX))), None);
    }
}
