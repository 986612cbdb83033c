//! Requests and answers of HTTP/1.1, with the features that the tests need.

use std::net::SocketAddr;

use serde_json::Value;

/// A request. Its parts are sent unchanged.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    elsewhere: bool,
}

impl Request {
    /// A request with a method and a target, which is a path with or without a query.
    pub fn new(method: &str, target: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.into(),
            headers: Vec::new(),
            body: Vec::new(),
            elsewhere: false,
        }
    }

    /// A GET.
    pub fn get(target: impl Into<String>) -> Self {
        Self::new("GET", target)
    }

    /// A POST.
    pub fn post(target: impl Into<String>) -> Self {
        Self::new("POST", target)
    }

    /// A PUT.
    pub fn put(target: impl Into<String>) -> Self {
        Self::new("PUT", target)
    }

    /// A PATCH.
    pub fn patch(target: impl Into<String>) -> Self {
        Self::new("PATCH", target)
    }

    /// A DELETE.
    pub fn delete(target: impl Into<String>) -> Self {
        Self::new("DELETE", target)
    }

    /// Adds a header; the same name may be added again.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the headers of user mode.
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    /// Adds the headers of client mode.
    pub fn client(self, client_id: &str, client_secret: &str) -> Self {
        self.header("Client-Id", client_id).header("Client-Secret", client_secret)
    }

    /// Sets a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.header("Content-Type", "application/json").body(body.to_string())
    }

    /// Sets a body of any bytes.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Marks a request to a listener that may not serve it.
    pub(crate) fn elsewhere(self, elsewhere: bool) -> Self {
        Self { elsewhere, ..self }
    }

    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The path and query.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The body as JSON, if it is JSON.
    pub(crate) fn sent_json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The bytes that go to a server.
    pub(crate) fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let Self { method, target, headers, body, .. } = self;
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        if headers.iter().all(|(name, _)| name != "Host") {
            head.push_str(&format!("Host: {address}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        [head.as_bytes(), body].concat()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Every header, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header that occurs at most once.
    ///
    /// # Panics
    /// When it occurs more often.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} stands twice");
        value
    }

    /// A header that is a number.
    ///
    /// # Panics
    /// When the header is missing or not a number.
    pub fn number(&self, name: &str) -> i64 {
        let value = self.header(name).unwrap_or_else(|| panic!("{name} is missing: {self:?}"));
        value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}"))
    }

    /// The body as text.
    ///
    /// # Panics
    /// When it is not UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("an answer is UTF-8")
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// `content` of a success, after a check of the whole envelope (`docs/spec/rest.md#envelope`).
    ///
    /// # Panics
    /// When the answer is not a success in its envelope.
    #[track_caller]
    pub fn content(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        let prefix = r#"{"code":200,"message":null,"content":"#;
        assert!(self.text().starts_with(prefix), "not the envelope: {}", self.text());
        let Value::Object(mut envelope) = self.json() else { panic!("no object: {}", self.text()) };
        assert_eq!(envelope.len(), 3, "more than the envelope: {}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        envelope.remove("content").expect("content")
    }

    /// `message` of a failure, after a check of the whole envelope: exactly `code`, equal to the status, and
    /// `message`.
    ///
    /// # Panics
    /// When the answer is not a failure in its envelope.
    #[track_caller]
    pub fn message(&self) -> String {
        assert!((400..600).contains(&self.status), "no failure: {} {}", self.status, self.text());
        let Value::Object(envelope) = self.json() else { panic!("no object: {}", self.text()) };
        let keys: Vec<_> = envelope.keys().map(String::as_str).collect();
        assert_eq!(keys, ["code", "message"], "{}", self.text());
        assert_eq!(envelope["code"], self.status, "code and status differ");
        let content_type = self.header("content-type").unwrap_or_default();
        assert_eq!(content_type.split(';').next(), Some("application/json"));
        envelope["message"].as_str().expect("message is a text").to_owned()
    }

    /// Checks that this is a failure with this status and message.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn assert_refused(&self, status: u16, message: &str) {
        assert_eq!((self.status, self.message().as_str()), (status, message));
    }
}
