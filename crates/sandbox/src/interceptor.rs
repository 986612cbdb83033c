//! Stands around every request of the node: injects its faults, and records it.

use std::sync::PoisonError;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use domain::ClientId;
use domain::reason::REASON_HEADER;
use gateway::{ConnectionLost, Gateway};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use serde_json::{Map, Value, json};
use service::Service;

use crate::fault::{Facts, FaultAnswer, FaultBody, Moment, RequestEffect, Subject};
use crate::fault_rules::Passage;
use crate::log::{NewRecord, RecordKind};
use crate::mask;
use crate::request_copy::{BODY_BYTES_MAX, Copied, RequestCopy};
use crate::sandbox::Sandbox;
use crate::truncated::truncate;

const CLIENT_ID: &str = "client-id";
/// The name of a restart among the rules.
const RESTART: &str = "restart";
/// How often a held request looks whether its network works again, in real time.
const HELD_LOOK_EVERY: Duration = Duration::from_millis(20);
const SANDBOX_FAULT: HeaderName = HeaderName::from_static("sandbox-fault");

/// A fault ends the connection of a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fault rule cut the connection")]
pub struct Cut;

/// Stands around the requests of one node.
#[derive(Clone, Debug)]
pub(crate) struct Interceptor(Sandbox);

/// What is known of a request before it is handled.
#[derive(Debug)]
struct Known {
    method: String,
    path: String,
    query: Option<String>,
    client_id: Option<String>,
    user: Option<String>,
}

impl Interceptor {
    /// The interceptor of a sandbox.
    pub fn new(sandbox: Sandbox) -> Self {
        Self(sandbox)
    }

    /// Answers a request by its handler, with the fault of the first rule that affects it, and records both.
    pub async fn answer<B, F>(
        &self,
        id: String,
        request: Request<B>,
        handle: impl FnOnce(Request<RequestCopy<B>>) -> F,
    ) -> Result<Response<Body>, Cut>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        F: Future<Output = Response<Body>>,
    {
        let (parts, body) = request.into_parts();
        let started = self.0.monotonic();
        // Boxed, so that the request does not reserve memory for the look-up while it is handled.
        let facts = Box::pin(self.facts(&parts)).await;
        let (body, copied) = RequestCopy::new(body);
        let lost = Box::pin(self.pass_network(&facts)).await;
        let fault = match &lost {
            None => self.0.faults().decide_request(facts.for_rules()),
            Some(_) => None,
        };
        let handled = handle(Request::from_parts(parts, body));
        let answer = match (&lost, &fault) {
            (Some(_), _) => None,
            (None, None) => Some(handled.await),
            (None, Some((rule, effect))) => self.faulted(rule, effect, handled).await,
        };
        let duration = self.0.monotonic().saturating_sub(started);
        let copied = std::mem::take(&mut *copied.lock().unwrap_or_else(PoisonError::into_inner));
        let mut fields = request_fields(id, facts, &copied);
        fields.insert("durationMs".to_owned(), (duration.as_micros() as f64 / 1_000.0).into());
        let done = fault.as_ref().map(|(rule, effect)| (rule.clone(), effect.to_json()));
        if let Some((rule, done)) = lost.or(done) {
            fields.insert("fault".to_owned(), rule.as_str().into());
            self.record_fault(rule, done, &fields);
        }
        let answer = match answer {
            Some(answer) => Ok(record_answer(answer, &mut fields).await),
            None => Err(Cut),
        };
        self.0.refusals().note(&fields, self.0.monotonic());
        self.0.log().add(NewRecord { at: self.0.clock().now(), kind: RecordKind::Request, fields });
        let answer = answer?;
        if answer.extensions().get::<ConnectionLost>().is_some() {
            return Err(Cut);
        }
        match fault {
            Some((_, RequestEffect::Truncate(bytes))) => truncate(answer, bytes).ok_or(Cut),
            _ => Ok(answer),
        }
    }

    /// The answer with a fault; `None` if the connection ends without one. A request that fails before it is
    /// handled has no effect.
    async fn faulted(
        &self,
        rule: &str,
        effect: &RequestEffect,
        handled: impl Future<Output = Response<Body>>,
    ) -> Option<Response<Body>> {
        let mut answer = match effect {
            RequestEffect::Answer(fault) => fault_answer(fault),
            RequestEffect::Delay(span, Moment::Before) => {
                self.wait(*span).await;
                handled.await
            }
            RequestEffect::Delay(span, Moment::After) => {
                let answer = handled.await;
                self.wait(*span).await;
                answer
            }
            RequestEffect::Cut(Moment::Before) => return None,
            RequestEffect::Cut(Moment::After) => {
                handled.await;
                return None;
            }
            RequestEffect::Truncate(_) => handled.await,
        };
        // The ids of rules are valid in a header.
        let rule = HeaderValue::from_str(rule).unwrap_or(HeaderValue::from_static(""));
        answer.headers_mut().insert(SANDBOX_FAULT, rule);
        Some(answer)
    }

    /// Waits in real time, also when the sandbox's clock stands still.
    async fn wait(&self, span: Duration) {
        if let Some(node) = self.0.parts() {
            node.service.clock().sleep(span).await;
        }
    }

    /// Lets a request pass the network of its caller, unless the service restarts. If the connection is lost,
    /// returns the rule and what it did.
    async fn pass_network(&self, request: &Known) -> Option<(String, Value)> {
        if !is_of_clients(&request.path) {
            return None;
        }
        if self.0.faults().is_away(self.0.monotonic()) {
            return Some((RESTART.to_owned(), json!({ "cut": Moment::Before })));
        }
        loop {
            let passed = self.0.faults().pass_request(request.for_rules(), self.0.monotonic());
            let (rule, profile, passage) = passed?;
            match passage {
                Passage::After(span) => {
                    self.wait(span).await;
                    return None;
                }
                Passage::LostAfter(span) => {
                    self.wait(span).await;
                    return Some((rule, profile.fault("cut")));
                }
                Passage::Held => {
                    let is_lost = tokio::select! {
                        () = self.wait_until_gone(&rule) => false,
                        () = self.0.log().ended() => true,
                    };
                    if is_lost {
                        return Some((rule, profile.fault("cut")));
                    }
                }
            }
        }
    }

    async fn wait_until_gone(&self, rule: &str) {
        while self.0.faults().has(rule) {
            self.wait(HELD_LOOK_EVERY).await;
        }
    }

    fn record_fault(&self, rule: String, done: Value, request: &Map<String, Value>) {
        let mut fields = Map::new();
        fields.insert("fault".to_owned(), rule.into());
        fields.insert("do".to_owned(), done);
        for name in ["requestId", "method", "path", "clientId", "user"] {
            if let Some(value) = request.get(name) {
                fields.insert(name.to_owned(), value.clone());
            }
        }
        self.0.log().add(NewRecord { at: self.0.clock().now(), kind: RecordKind::Fault, fields });
    }

    async fn facts(&self, parts: &Parts) -> Known {
        let (client_id, user) = match self.0.parts() {
            Some(node) if is_socket(parts.uri.path()) => {
                let query = parts.uri.query().unwrap_or_default();
                let owner = self.0.url_owners().find(&node.service, query).await;
                let client_id = owner.as_ref().map(|owner| owner.client_id().to_string());
                (client_id, owner.and_then(|owner| owner.channel_id().map(ToString::to_string)))
            }
            Some(node) => caller(&node.service, &parts.headers).await,
            None => (None, None),
        };
        Known {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            client_id,
            user,
        }
    }
}

impl Known {
    fn for_rules(&self) -> Facts<'_> {
        Facts {
            client_id: self.client_id.as_deref(),
            user: self.user.as_deref(),
            subject: Subject::Request { method: &self.method, path: &self.path },
        }
    }
}

/// Whether requests to a path come from applications, over their network.
fn is_of_clients(path: &str) -> bool {
    path.starts_with("/open/") || path.starts_with("/auth/") || is_socket(path)
}

/// Whether requests to a path belong to a socket.
fn is_socket(path: &str) -> bool {
    path.strip_suffix('/').unwrap_or(path) == Gateway::PATH.trim_end_matches('/')
}

/// The answer of a fault.
fn fault_answer(fault: &FaultAnswer) -> Response<Body> {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    // The texts were checked when the rule was added.
    let checked = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
    let (body, header, value) = match &fault.body {
        FaultBody::Refusal(message) => (envelope(status, message.as_deref()), header::CONTENT_TYPE, json),
        FaultBody::Redirect(location) => (String::new(), header::LOCATION, checked(location)),
        FaultBody::Text { text, content_type } => (text.clone(), header::CONTENT_TYPE, checked(content_type)),
    };
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header, value);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = fault.retry_after_s {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// A refusal in the envelope of the service.
fn envelope(status: StatusCode, message: Option<&str>) -> String {
    let usual = || status.canonical_reason().unwrap_or("Error").to_uppercase().replace([' ', '-'], "_");
    let message = message.map_or_else(usual, str::to_owned);
    json!({ "code": status.as_u16(), "message": message }).to_string()
}

/// The client id and the channel id of the caller. An unknown token or client id gives none.
async fn caller(service: &Service, headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION.as_str()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    if let Some(token) = bearer
        && let Ok(holder) = service.authenticate_user(token).await
    {
        let caller = &holder.caller;
        return (Some(caller.client_id.as_str().to_owned()), Some(caller.channel_id.as_str().to_owned()));
    }
    let client_id = text(CLIENT_ID).and_then(|id| ClientId::parse("clientId", id).ok());
    let Some(client_id) = client_id else { return (None, None) };
    let known = service.application(&client_id).await.ok().flatten();
    (known.map(|_| client_id.as_str().to_owned()), None)
}

fn request_fields(id: String, facts: Known, copied: &Copied) -> Map<String, Value> {
    let Known { method, path, query, client_id, user } = facts;
    let mut fields = Map::new();
    fields.insert("requestId".to_owned(), id.into());
    fields.insert("method".to_owned(), method.into());
    fields.insert("path".to_owned(), path.into());
    if let Some(query) = query {
        fields.insert("query".to_owned(), mask::query(&query).into());
    }
    for (name, value) in [("clientId", client_id), ("user", user)] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value.into());
        }
    }
    match json_body(&copied.beginning).filter(|_| copied.bytes == copied.beginning.len()) {
        Some(body) => _ = fields.insert("body".to_owned(), body),
        None if copied.bytes > 0 => _ = fields.insert("bodyBytes".to_owned(), copied.bytes.into()),
        None => {}
    }
    fields
}

/// Adds an answer to the fields of a record. Only a short body of known length is read, so that no answer
/// waits.
async fn record_answer(answer: Response<Body>, fields: &mut Map<String, Value>) -> Response<Body> {
    fields.insert("status".to_owned(), answer.status().as_u16().into());
    let reason = answer.headers().get(REASON_HEADER).and_then(|reason| reason.to_str().ok());
    if let Some(reason) = reason {
        fields.insert("reason".to_owned(), reason.into());
    }
    let length = answer.body().size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let Some(length) = length.filter(|length| *length > 0) else { return answer };
    if length > BODY_BYTES_MAX || answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        fields.insert("answerBytes".to_owned(), length.into());
        return answer;
    }
    let (parts, body) = answer.into_parts();
    // The body is already in memory, so it cannot fail.
    let bytes = to_bytes(body, BODY_BYTES_MAX).await.unwrap_or_default();
    match json_body(&bytes) {
        Some(body) => fields.insert("answer".to_owned(), body),
        None => fields.insert("answerBytes".to_owned(), length.into()),
    };
    Response::from_parts(parts, Body::from(bytes))
}

/// A body as JSON, with masked secrets; `None` if it is not JSON.
fn json_body(bytes: &[u8]) -> Option<Value> {
    let mut body = serde_json::from_slice(bytes).ok()?;
    mask::json(&mut body);
    Some(body)
}
