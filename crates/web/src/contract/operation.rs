//! One operation of the REST interface, as the documents tell it.

use std::collections::BTreeSet;

use domain::Scope;
use domain::quota::Quota;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::input::shape::{Field, Shape};

/// Operations that belong together: a heading of the documents.
pub struct Section {
    /// The tag in the document.
    pub tag: &'static str,
    /// What they are for.
    pub about: &'static str,
    /// The heading in Korean.
    pub korean: &'static str,
}

/// What no type says about an operation. Stands above its handler.
#[derive(Clone, Copy)]
pub struct Summary {
    /// The `operationId`, which generated clients name their functions after.
    pub id: &'static str,
    /// What the operation does.
    pub english: &'static str,
    /// The same in Korean.
    pub korean: &'static str,
    /// The statuses that only the service refuses with.
    pub refusals: &'static [u16],
}

impl Summary {
    /// An operation that the service itself does not refuse.
    pub const fn new(id: &'static str, english: &'static str, korean: &'static str) -> Self {
        Self { id, english, korean, refusals: &[] }
    }

    /// The service refuses with these statuses.
    pub const fn refuses(self, refusals: &'static [u16]) -> Self {
        Self { refusals, ..self }
    }
}

/// One method on one path.
pub struct Operation {
    /// What it is for.
    pub summary: Summary,
    /// What it belongs to.
    pub section: &'static Section,
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, with `{names}` for what is filled in.
    pub path: &'static str,
    /// How the caller proves who it is.
    pub security: Security,
    /// The scope that the access token must have.
    pub scope: Option<Scope>,
    /// A quota besides that of the mode.
    pub quota: Option<Quota>,
    /// The parameters of the query.
    pub query: Vec<Field>,
    /// The headers that it reads.
    pub headers: Vec<Field>,
    /// The body that it reads: its media types and its schema.
    pub body: Option<(&'static [&'static str], Value)>,
    /// Whether it needs that body.
    pub body_required: bool,
    /// What a success holds.
    pub output: Output,
    /// The statuses that it may refuse with.
    pub refusals: BTreeSet<u16>,
}

/// How a caller proves who it is (`docs/spec/rest.md#modes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// No headers; where anything is to be proven, the body does it.
    None,
    /// An access token.
    User,
    /// Client id and secret.
    Client,
    /// The operator's key.
    Operator,
}

/// What a success holds.
#[derive(Clone, Copy)]
pub enum Output {
    /// The `content` of the envelope.
    Content(fn(&mut SchemaGenerator) -> Schema),
    /// A page of the sign-in, or the redirect at its end.
    Page,
}

impl Operation {
    /// An operation of which nothing else is known yet. Anything may fail for our fault.
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

    /// It reads a JSON object of this shape.
    pub fn takes_json(&mut self, shape: &Shape) {
        self.body = Some((&["application/json"], shape.schema()));
    }

    /// Its body may be missing or `null`.
    pub fn need_not_have_its_body(&mut self) {
        self.body_required = false;
        if let Some((_, schema)) = &mut self.body {
            schema["type"] = json!([schema["type"], "null"]);
        }
    }

    /// It reads JSON objects of this shape, one a line; of nothing there are none. Generated clients that do
    /// not know NDJSON send the same bytes as a file.
    pub fn takes_lines(&mut self, shape: &Shape) {
        let text = "NDJSON: one happening a line, each as `x-line` says.";
        let schema = json!({ "type": "string", "description": text, "x-line": shape.schema() });
        self.body = Some((&["application/x-ndjson", "application/octet-stream"], schema));
        self.body_required = false;
    }

    /// More statuses that it may refuse with.
    pub fn may_refuse(&mut self, statuses: &[u16]) {
        self.refusals.extend(statuses);
    }

    /// The names between braces in the path.
    pub fn path_names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}
