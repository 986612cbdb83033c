//! One operation of the REST interface, as the documents describe it.

use std::collections::BTreeSet;

use domain::Scope;
use domain::operator_key::OperatorRole;
use domain::quota::Quota;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::input::shape::{Field, Shape};

/// Related operations under one heading of the documents.
pub struct Section {
    /// The tag in the document.
    pub tag: &'static str,
    /// The purpose of the operations.
    pub about: &'static str,
    /// The heading in Korean.
    pub korean: &'static str,
}

/// The properties of an operation that its types do not give. A `Summary` stands above each handler.
#[derive(Clone, Copy)]
pub struct Summary {
    /// The `operationId`. Generated clients name their functions after it.
    pub id: &'static str,
    /// The description of the operation.
    pub english: &'static str,
    /// The same description in Korean.
    pub korean: &'static str,
    /// The statuses of refusals that come from the service, not from an extractor.
    pub refusals: &'static [u16],
}

impl Summary {
    /// An operation that the service itself never refuses.
    pub const fn new(id: &'static str, english: &'static str, korean: &'static str) -> Self {
        Self { id, english, korean, refusals: &[] }
    }

    /// Adds the statuses with which the service refuses.
    pub const fn refuses(self, refusals: &'static [u16]) -> Self {
        Self { refusals, ..self }
    }
}

/// One method on one path.
pub struct Operation {
    /// Its summary.
    pub summary: Summary,
    /// Its section.
    pub section: &'static Section,
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, with `{names}` for its parameters.
    pub path: &'static str,
    /// How the caller authenticates.
    pub security: Security,
    /// The scope that the access token must have.
    pub scope: Option<Scope>,
    /// A quota besides the quota of the mode.
    pub quota: Option<Quota>,
    /// The parameters of the query.
    pub query: Vec<Field>,
    /// The headers that the operation reads.
    pub headers: Vec<Field>,
    /// The body that the operation reads: its media types and its schema.
    pub body: Option<(&'static [&'static str], Value)>,
    /// Whether the body is required.
    pub body_required: bool,
    /// The content of a success.
    pub output: Output,
    /// The statuses of its refusals.
    pub refusals: BTreeSet<u16>,
}

/// How a caller authenticates (`docs/spec/rest.md#modes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// No headers. If the operation needs authentication, it is in the body.
    None,
    /// An access token.
    User,
    /// Client id and secret.
    Client,
    /// An operator key with this role.
    Operator(OperatorRole),
}

/// The content of a success.
#[derive(Clone, Copy)]
pub enum Output {
    /// The `content` of the envelope.
    Content(fn(&mut SchemaGenerator) -> Schema),
    /// A page of the sign-in, or the redirect at its end.
    Page,
}

impl Operation {
    /// An operation without any description yet, except 500, which every operation may return.
    pub fn new(method: &'static str, summary: Summary, output: Output) -> Self {
        Self {
            summary,
            section: &Section { tag: "", about: "", korean: "" },
            method,
            path: "",
            security: Security::None,
            scope: None,
            quota: None,
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            body_required: true,
            output,
            refusals: [500, 503].into(),
        }
    }

    /// The body is a JSON object of this shape.
    pub fn takes_json(&mut self, shape: &Shape) {
        self.body = Some((&["application/json"], shape.schema()));
    }

    /// The body may be missing or `null`.
    pub fn need_not_have_its_body(&mut self) {
        self.body_required = false;
        if let Some((_, schema)) = &mut self.body {
            schema["type"] = json!([schema["type"], "null"]);
        }
    }

    /// The body is JSON objects of this shape, one on each line; an empty body has none. Generated clients
    /// without NDJSON support send the same bytes as a file.
    pub fn takes_lines(&mut self, shape: &Shape) {
        let text = "NDJSON: one happening a line, each as `x-line` says.";
        let schema = json!({ "type": "string", "description": text, "x-line": shape.schema() });
        self.body = Some((&["application/x-ndjson", "application/octet-stream"], schema));
        self.body_required = false;
    }

    /// Adds statuses of refusals.
    pub fn may_refuse(&mut self, statuses: &[u16]) {
        self.refusals.extend(statuses);
    }

    /// The names between braces in the path.
    pub fn path_names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}
