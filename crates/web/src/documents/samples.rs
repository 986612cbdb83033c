//! The sample requests of the documentation, one for each operation, with their answers.
//!
//! A test sends every sample to a sandbox, in the order of the tables, and compares the shape of the answer
//! with the one that the pages show. `UPDATE_DOCS=1` renews the answers. A word in capitals, such as
//! `ACCESS_TOKEN`, stands for a value that the reader has.

mod open;
mod platform;
mod program;
mod sample;

use std::collections::HashMap;
use std::sync::LazyLock;

use domain::Scope;

use crate::contract::{Operation, Security};
use crate::router;

use program::{curl, javascript, python};
use sample::Sample;

pub use program::pretty;

/// A line for each operation: its id, a tab, and the body of the answer.
const ANSWERS: &str = include_str!("samples/answers.txt");
/// Stands for the base URL in an answer.
const BASE: &str = "{base}";

static ANSWER_OF: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| ANSWERS.lines().filter_map(|line| line.split_once('\t')).collect());

/// A sample request with its answer, for the pages and for the tests.
#[derive(Clone, Debug)]
pub struct SampleCall {
    /// The id of the operation.
    pub operation: &'static str,
    /// The method.
    pub method: &'static str,
    /// The address on the service.
    pub target: String,
    /// Names and values of the headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body; empty for none.
    pub body: &'static str,
    /// Values of the answer that stand for words in later samples.
    pub kept: &'static [(&'static str, &'static str)],
    /// The request as a command of a shell.
    pub curl: String,
    /// The request in JavaScript.
    pub javascript: String,
    /// The request in Python.
    pub python: String,
    /// The body of the answer; `None` when none was recorded.
    pub answer: Option<String>,
}

/// Every sample, in the order in which they can be sent.
pub fn sample_calls(base_url: &str) -> Vec<SampleCall> {
    let operations = router::operations();
    let samples = open::SAMPLES.iter().chain(platform::SAMPLES).chain(open::LAST_SAMPLES);
    let call = |sample: &Sample| {
        let operation = operations.iter().find(|operation| operation.summary.id == sample.id)?;
        Some(call_of(sample, operation, base_url))
    };
    samples.filter_map(call).collect()
}

/// The sample of an operation.
pub(super) fn sample_of(operation: &Operation, base_url: &str) -> Option<SampleCall> {
    let mut samples = open::SAMPLES.iter().chain(platform::SAMPLES).chain(open::LAST_SAMPLES);
    let sample = samples.find(|sample| sample.id == operation.summary.id)?;
    Some(call_of(sample, operation, base_url))
}

fn call_of(sample: &Sample, operation: &Operation, base_url: &str) -> SampleCall {
    let mut values = sample.path.iter();
    let part = |part: &str| match part.starts_with('{') {
        true => values.next().copied().unwrap_or_default().to_owned(),
        false => part.to_owned(),
    };
    let mut target = operation.path.split('/').map(part).collect::<Vec<_>>().join("/");
    if !sample.query.is_empty() {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(sample.query).finish();
        target = format!("{target}?{query}");
    }
    let headers = headers_of(sample, operation);
    let url = format!("{base_url}{target}");
    let (method, body) = (operation.method, sample.body);
    SampleCall {
        operation: sample.id,
        method,
        headers: headers.clone(),
        body,
        kept: sample.kept,
        curl: curl(method, &url, &headers, body),
        javascript: javascript(method, &url, &headers, body),
        python: python(method, &url, &headers, body),
        answer: ANSWER_OF.get(sample.id).map(|answer| answer.replace(BASE, base_url)),
        target,
    }
}

fn headers_of(sample: &Sample, operation: &Operation) -> Vec<(&'static str, String)> {
    let bearer = |word: &str| vec![("Authorization", format!("Bearer {word}"))];
    let mut headers = match operation.security {
        Security::None => Vec::new(),
        Security::User => bearer("ACCESS_TOKEN"),
        Security::Client if operation.scope == Some(Scope::Drops) => client("drops", "DROPS_SECRET"),
        Security::Client => client("demo", "CLIENT_SECRET"),
        Security::Operator(_) => bearer("OPERATOR_KEY"),
    };
    if !sample.body.is_empty() {
        let is_lines =
            operation.body.as_ref().is_some_and(|(types, _)| types.contains(&"application/x-ndjson"));
        let kind = if is_lines { "application/x-ndjson" } else { "application/json" };
        headers.push(("Content-Type", kind.to_owned()));
    }
    headers
}

fn client(id: &str, secret: &str) -> Vec<(&'static str, String)> {
    vec![("Client-Id", id.to_owned()), ("Client-Secret", secret.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_one_sample_with_its_parameters() {
        let samples = sample_calls("https://api.example");
        for operation in router::operations() {
            let id = operation.summary.id;
            let own: Vec<_> = samples.iter().filter(|sample| sample.operation == id).collect();
            // The form of the sign-in page is posted by the page alone.
            assert_eq!(own.len(), usize::from(id != "submitSignIn"), "{id}");
            for sample in own {
                assert!(!sample.target.contains("//") && !sample.target.contains('{'), "{}", sample.target);
                let needs_body = operation.body.is_some() && operation.body_required;
                assert!(!needs_body || !sample.body.is_empty(), "{id} needs a body");
                for field in operation.query.iter().filter(|field| field.required) {
                    assert!(sample.target.contains(&format!("{}=", field.name)), "{id}: {}", field.name);
                }
            }
        }
        let known = |id: &str| samples.iter().any(|sample| sample.operation == id);
        for line in ANSWERS.lines() {
            assert!(line.split_once('\t').is_some_and(|(id, _)| known(id)), "{line}");
        }
    }
}
