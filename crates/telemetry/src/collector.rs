//! The settings of the collector.

use std::fmt;

use http::uri::{Authority, Scheme, Uri};
use http::{HeaderName, HeaderValue};

/// Maximum number of further headers.
const HEADERS_MAX: usize = 16;

/// The share of requests that are traced, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleRatio(f64);

impl SampleRatio {
    /// A share.
    ///
    /// # Errors
    /// What it must be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        ratio.map(Self).ok_or_else(|| "it must be a number from 0 to 1".to_owned())
    }

    /// The share.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Where an OpenTelemetry collector listens. `Debug` hides the headers.
#[derive(Clone)]
pub struct Collector {
    pub(crate) is_secure: bool,
    pub(crate) authority: Authority,
    /// The path before `/v1/traces`, without a slash at the end.
    pub(crate) base_path: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) ratio: SampleRatio,
}

impl Collector {
    /// A collector that takes OTLP over HTTP. `headers` are `name=value`, separated by commas.
    ///
    /// # Errors
    /// What is wrong, without the values of headers. The text begins with the option of `serve`.
    pub fn parse(endpoint: &str, headers: &str, ratio: SampleRatio) -> Result<Self, String> {
        let wrong =
            "--otlp-endpoint must be an address as in http://127.0.0.1:4318, without a login or a query";
        let uri: Uri = endpoint.parse().map_err(|_| wrong.to_owned())?;
        let parts = uri.into_parts();
        let is_secure = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTPS => true,
            Some(scheme) if scheme == Scheme::HTTP => false,
            _ => return Err(wrong.to_owned()),
        };
        let authority = parts.authority.filter(|authority| !authority.as_str().contains('@'));
        let path = parts.path_and_query.filter(|path| path.query().is_none());
        let (Some(authority), Some(path)) = (authority, path) else { return Err(wrong.to_owned()) };
        let base_path = path.path().trim_end_matches('/').to_owned();
        Ok(Self { is_secure, authority, base_path, headers: parse_headers(headers)?, ratio })
    }

    /// The host without the brackets of an IPv6 address, and the port.
    pub(crate) fn host(&self) -> (&str, u16) {
        let host = self.authority.host().trim_start_matches('[').trim_end_matches(']');
        (host, self.authority.port_u16().unwrap_or(if self.is_secure { 443 } else { 80 }))
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        let url = format!("{scheme}://{}{}", self.authority, self.base_path);
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut shown = f.debug_struct("Collector");
        shown.field("url", &url).field("headers", &names).field("ratio", &self.ratio.0).finish()
    }
}

fn parse_headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let wrong = || format!("--otlp-headers must be at most {HEADERS_MAX} of name=value, separated by commas");
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let headers = parts.map(|part| {
        let (name, value) = part.split_once('=')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(value.trim()).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    });
    let headers: Option<Vec<_>> = headers.collect();
    headers.filter(|headers| headers.len() <= HEADERS_MAX).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(endpoint: &str, headers: &str) -> Result<Collector, String> {
        Collector::parse(endpoint, headers, SampleRatio(1.0))
    }

    #[test]
    fn an_endpoint_is_an_address_of_http() {
        for (endpoint, host, path) in [
            ("http://127.0.0.1:4318", ("127.0.0.1", 4318), ""),
            ("http://[::1]:4318/", ("::1", 4318), ""),
            ("https://otlp.example/otlp/", ("otlp.example", 443), "/otlp"),
            ("http://collector", ("collector", 80), ""),
        ] {
            let found = collector(endpoint, "").expect("good");
            assert_eq!((found.host(), found.base_path.as_str()), (host, path), "{endpoint}");
        }
        for endpoint in ["", "collector:4318", "/v1", "grpc://x:4317", "http://u:p@x", "http://x/?key=1"] {
            let refused = collector(endpoint, "").expect_err("bad");
            assert!(refused.starts_with("--otlp-endpoint must be"), "{endpoint}: {refused}");
        }
    }

    #[test]
    fn headers_are_never_shown() {
        let found = collector("https://x", "Authorization=Basic aHVudGVyMg==, x-scope=1").expect("good");
        let shown = format!("{found:?}");
        assert!(shown.contains("authorization") && shown.contains("x-scope"), "{shown}");
        assert!(!shown.contains("aHVudGVyMg"), "{shown}");
        assert_eq!(found.headers[0].1, "Basic aHVudGVyMg==");
        let many = "a=b,".repeat(HEADERS_MAX + 1);
        for headers in ["hunter2", "na me=hunter2", "name=hun\nter2", &many] {
            let refused = collector("https://x", headers).expect_err("bad");
            assert!(refused.starts_with("--otlp-headers") && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn a_share_is_from_0_to_1() {
        for (text, ok) in
            [("0", true), ("1", true), ("0.05", true), ("1.1", false), ("-1", false), ("NaN", false)]
        {
            assert_eq!(SampleRatio::parse(text).is_ok(), ok, "{text}");
        }
    }
}
