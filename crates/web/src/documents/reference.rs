//! The page of a group: its operations with everything that a caller needs.

use std::sync::LazyLock;

use askama::Template;
use domain::limits::{CLIENT_QUOTA, TOKEN_QUOTA, USER_QUOTA};
use domain::quota::Quota;
use domain::{Scope, limits};
use serde_json::Value;

use super::figures::{calls, fill};
use super::frame::Navigation;
use super::groups::{Group, group_of};
use super::json::openapi;
use super::marked::marked;
use super::notes::note;
use super::reasons::{ReasonText, reasons_of};
use super::rows::{FieldRow, resolve, rows};
use super::samples::{SampleCall, pretty, sample_of};
use super::texts::{DocsTexts, texts};
use crate::contract::{Operation, Security};
use crate::pages::{Lang, Shell, filters, scope_label};
use crate::router;

static OPENAPI: LazyLock<Value> = LazyLock::new(openapi);

/// The page.
#[derive(Template)]
#[template(path = "pages/docs/group.html")]
pub struct GroupPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The navigation.
    pub nav: Navigation,
    /// The words.
    pub t: &'static DocsTexts,
    /// The group.
    pub group: &'static Group,
    /// Its operations.
    pub operations: Vec<OperationView>,
    /// Whom a reader of a sandbox can call as; `None` elsewhere.
    pub callers: Option<Callers>,
}

impl GroupPage<'_> {
    fn title(&self) -> &'static str {
        self.group.name(self.shell.lang)
    }

    fn about(&self) -> &'static str {
        self.group.about(self.shell.lang)
    }

    fn marked(&self, text: &str) -> String {
        marked(text)
    }

    fn answer_id(&self, id: &str) -> String {
        format!("{id}-answer")
    }

    /// The application that a form begins with.
    fn is_first_choice(&self, client_id: &str, operation: &OperationView) -> bool {
        client_id == if operation.is_for_verified { "drops" } else { "demo" }
    }
}

/// One operation.
pub struct OperationView {
    /// Its id, which is also its anchor.
    pub id: &'static str,
    /// The method.
    pub method: &'static str,
    /// The path.
    pub path: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// What it does, as HTML.
    pub note: String,
    /// How the caller authenticates.
    pub proof: &'static str,
    /// Key and name of the scope.
    pub scope: Option<(&'static str, &'static str)>,
    /// Whether the organization must be verified.
    pub is_for_verified: bool,
    /// The role that the operator key needs.
    pub role: Option<&'static str>,
    /// The quotas.
    pub quotas: Vec<String>,
    /// Tables of what is sent.
    pub inputs: Vec<FieldTable>,
    /// Whether a body may be left out.
    pub is_body_optional: bool,
    /// The content of a success.
    pub content: FieldTable,
    /// Whether the answer is a page.
    pub is_page: bool,
    /// Why it may be refused.
    pub reasons: Vec<&'static ReasonText>,
    /// The example.
    pub sample: Option<SampleView>,
    /// Who is chosen to try it.
    pub mode: &'static str,
}

/// Fields under a heading.
pub struct FieldTable {
    /// The heading.
    pub heading: &'static str,
    /// The fields.
    pub rows: Vec<FieldRow>,
    /// Whether they belong to an answer. Then a field that may be missing is marked, not one that is there.
    pub is_answer: bool,
}

/// Whom a reader of a sandbox can call as.
pub struct Callers {
    /// Ids and names of people.
    pub people: Vec<(String, String)>,
    /// Ids of applications.
    pub applications: Vec<String>,
}

/// An example.
pub struct SampleView {
    /// The address on the service.
    pub target: String,
    /// The body; empty for none.
    pub body: &'static str,
    /// The request in each language.
    pub programs: Vec<ProgramText>,
    /// The answer.
    pub answer: Option<String>,
}

/// A program in one language.
pub struct ProgramText {
    /// The language, for the style sheet and the script.
    pub language: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The program.
    pub text: String,
}

impl ProgramText {
    /// A program in JavaScript.
    pub fn javascript(text: impl Into<String>) -> Self {
        Self { language: "javascript", name: "JavaScript", text: text.into() }
    }

    /// A program in Python.
    pub fn python(text: impl Into<String>) -> Self {
        Self { language: "python", name: "Python", text: text.into() }
    }
}

impl From<SampleCall> for SampleView {
    fn from(call: SampleCall) -> Self {
        let SampleCall { target, body, curl, javascript, python, answer, .. } = call;
        Self {
            target,
            body,
            programs: vec![
                ProgramText { language: "curl", name: "curl", text: curl },
                ProgramText::javascript(javascript),
                ProgramText::python(python),
            ],
            answer: answer.map(|answer| pretty(&answer)),
        }
    }
}

/// The operations of a group, in the order of the router.
pub fn views(group: &Group, base_url: &str, lang: Lang) -> Vec<OperationView> {
    let operations = router::operations();
    let own = operations.iter().filter(|each| group_of(each).is_some_and(|own| own.slug == group.slug));
    own.map(|operation| view(operation, base_url, lang)).collect()
}

fn view(operation: &Operation, base_url: &str, lang: Lang) -> OperationView {
    let Operation { method, path, summary, scope, security, .. } = operation;
    let described = &OPENAPI["paths"][*path][method.to_lowercase()];
    let t = texts(lang);
    let success = &described["responses"]["200"]["content"]["application/json"]["schema"];
    let content = &resolve(&OPENAPI, success)["properties"]["content"];
    OperationView {
        id: summary.id,
        method,
        path,
        summary: lang.pick(summary.korean, summary.english),
        note: marked(&fill(note(summary.id, lang), lang)),
        proof: t.proof(*security),
        scope: scope.map(|scope| (scope.key(), scope_label(scope, lang))),
        is_for_verified: *scope == Some(Scope::Drops),
        role: match security {
            Security::Operator(role) => Some(role.name()),
            _ => None,
        },
        quotas: quotas(operation, lang),
        inputs: inputs(described, lang),
        is_body_optional: operation.body.is_some() && !operation.body_required,
        content: FieldTable { heading: t.answer, rows: rows(&OPENAPI, content, lang), is_answer: true },
        is_page: success.is_null(),
        reasons: reasons_of(operation, lang),
        sample: sample_of(operation, base_url).map(SampleView::from),
        mode: match security {
            Security::User => "user",
            Security::Client => "client",
            Security::Operator(_) => "operator",
            Security::None => "none",
        },
    }
}

/// The tables of parameters and body that are not empty.
fn inputs(described: &Value, lang: Lang) -> Vec<FieldTable> {
    let t = texts(lang);
    let placed = |place: &str, heading| {
        let parameters = described["parameters"].as_array().into_iter().flatten();
        let own = parameters.filter(|parameter| parameter["in"] == place);
        let rows = own.map(|parameter| FieldRow::parameter(parameter, lang)).collect();
        FieldTable { heading, rows, is_answer: false }
    };
    let contents = described["requestBody"]["content"].as_object().into_iter().flatten();
    let body = contents.map(|(kind, body)| (kind.as_str(), &body["schema"])).next();
    let body = body.map(|(kind, schema)| {
        let heading = match kind {
            "application/x-ndjson" => t.lines,
            "application/json" => t.body,
            _ => t.form,
        };
        let rows = rows(&OPENAPI, schema.get("x-line").unwrap_or(schema), lang);
        FieldTable { heading, rows, is_answer: false }
    });
    let parameters =
        [placed("path", t.path_parameters), placed("query", t.query), placed("header", t.headers)];
    parameters.into_iter().chain(body).filter(|table| !table.rows.is_empty()).collect()
}

/// The quotas that an operation is charged to.
fn quotas(operation: &Operation, lang: Lang) -> Vec<String> {
    let line = |counted: &str, quota: Quota| format!("{counted}: {}", calls(quota, lang));
    let of_mode = match operation.security {
        Security::User => {
            Some(line(lang.pick("애플리케이션과 유저마다", "Calls of an application for a user"), USER_QUOTA))
        }
        Security::Client => {
            Some(line(lang.pick("애플리케이션마다", "Calls of an application"), CLIENT_QUOTA))
        }
        Security::None if operation.path.starts_with("/auth/") => {
            Some(line(lang.pick("애플리케이션의 토큰 호출", "Token calls of an application"), TOKEN_QUOTA))
        }
        Security::None | Security::Operator(_) => None,
    };
    let own = operation.quota.map(|quota| {
        let counted = match quota == limits::CHAT_SEND_QUOTA {
            true => lang.pick("유저의 채팅 메시지", "Chat messages of a user"),
            false => lang.pick("호출한 쪽의 세션 URL", "Session URLs of a caller"),
        };
        line(counted, quota)
    });
    of_mode.into_iter().chain(own).collect()
}

impl DocsTexts {
    /// How a caller authenticates.
    fn proof(&self, security: Security) -> &'static str {
        let [none, user, client, operator] = self.proofs;
        match security {
            Security::None => none,
            Security::User => user,
            Security::Client => client,
            Security::Operator(_) => operator,
        }
    }
}
