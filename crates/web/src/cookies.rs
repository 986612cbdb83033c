//! The cookies of the pages: the browser's token, the chosen language, a notice for the next page.

use domain::limits::BROWSER_SESSION_LIFETIME_MS;
use domain::secret::BrowserToken;
use http::{HeaderMap, header};

use crate::pages::{Flash, Lang};

const BROWSER: &str = "stagedoor_browser";
/// The cookie's name under https. The prefix makes browsers accept the cookie only from this host and over
/// https, so no other host of the domain can set it.
const HOST_BROWSER: &str = "__Host-stagedoor_browser";
const LANGUAGE: &str = "stagedoor_language";
const FLASH: &str = "stagedoor_notice";
const DRAFT: &str = "stagedoor_draft";
/// How long a chosen language is remembered, in seconds: a year.
const LANGUAGE_S: u32 = 365 * 24 * 60 * 60;
/// How long what was typed into a form waits for its page, in seconds.
const DRAFT_S: u32 = 3_600;
/// How long a notice waits for its page, in seconds.
const FLASH_S: u32 = 60;

/// The browser's token, from the cookies of its request.
pub(crate) fn browser_token(headers: &HeaderMap, https: bool) -> Option<BrowserToken> {
    // Browsers send the cookies with the longest paths first. Earlier versions set a cookie with a longer
    // path.
    let cookies = cookies(headers, if https { HOST_BROWSER } else { BROWSER });
    cookies.last().and_then(BrowserToken::presented)
}

/// The language that the person chose.
pub(crate) fn language(headers: &HeaderMap) -> Option<&str> {
    cookies(headers, LANGUAGE).last()
}

/// The notice for this page.
pub(crate) fn flash(headers: &HeaderMap) -> Option<Flash> {
    cookies(headers, FLASH).last().and_then(Flash::from_code)
}

/// Whether what was typed into a form waits for its page.
pub(crate) fn has_draft(headers: &HeaderMap) -> bool {
    cookies(headers, DRAFT).next().is_some_and(|value| !value.is_empty())
}

/// The cookie which says that what was typed waits. `false` deletes it.
pub(crate) fn draft_cookie(waits: bool, https: bool) -> String {
    let (value, age) = if waits { ("yes", DRAFT_S) } else { ("", 0) };
    plain_cookie(DRAFT, value, age, https)
}

fn cookies<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    lines
        .flat_map(|line| line.split(';'))
        .filter_map(move |pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// The cookie that signs a browser in, for `Set-Cookie`.
pub fn sign_in_cookie(token: &BrowserToken, https: bool) -> String {
    let (name, secure) = if https { (HOST_BROWSER, "; Secure") } else { (BROWSER, "") };
    let age = BROWSER_SESSION_LIFETIME_MS / 1_000;
    format!("{name}={}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}", token.expose())
}

/// The cookie that remembers a language.
pub(crate) fn language_cookie(lang: Lang, https: bool) -> String {
    plain_cookie(LANGUAGE, lang.tag(), LANGUAGE_S, https)
}

/// The cookie with a notice for the next page. `None` deletes it.
pub(crate) fn flash_cookie(flash: Option<Flash>, https: bool) -> String {
    let age = if flash.is_some() { FLASH_S } else { 0 };
    plain_cookie(FLASH, flash.map_or("", Flash::code), age, https)
}

fn plain_cookie(name: &str, value: &str, age: u32, https: bool) -> String {
    let secure = if https { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let mut headers = HeaderMap::new();
        let line = "a=1; xstagedoor_language=en; stagedoor_language=ko; stagedoor_language2=x";
        headers.append(header::COOKIE, HeaderValue::from_static(line));
        headers.append(header::COOKIE, HeaderValue::from_static("stagedoor_notice=unknown"));
        assert_eq!(language(&headers), Some("ko"));
        assert_eq!(flash(&headers), None);
        assert!(browser_token(&headers, false).is_none());
    }
}
