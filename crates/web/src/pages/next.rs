//! Where a sign-in leads: only to pages of this origin.

use domain::application::percent_encode;
use domain::limits::NEXT_PAGE_BYTES_MAX;

/// The path and query of a page of this origin; `None` for anything else. Browsers take `//host` and
/// `/\host` for another host, and leave tabs and line ends out.
pub fn local_page(next: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    let is_local = next.starts_with('/') && !next.starts_with("//");
    (is_local && next.len() <= NEXT_PAGE_BYTES_MAX && next.bytes().all(is_plain)).then_some(next)
}

/// A page of the sign-in or the registration that leads to `next` afterwards. What is no page of this
/// origin, and the start page, are left out.
pub fn with_next(page: &str, next: &str) -> String {
    let mut address = page.to_owned();
    if let Some(next) = local_page(next).filter(|next| *next != "/") {
        address.push_str("?next=");
        percent_encode(next, &mut address);
    }
    address
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
        assert_eq!(local_page(&format!("/{}", "x".repeat(NEXT_PAGE_BYTES_MAX))), None);
    }

    #[test]
    fn a_page_leads_on_to_pages_of_this_origin_only() {
        assert_eq!(with_next("/register", "/a?b=c&d"), "/register?next=%2Fa%3Fb%3Dc%26d");
        assert_eq!(with_next("/register", "/"), "/register");
        assert_eq!(with_next("/register", "https://evil.example/"), "/register");
    }
}
