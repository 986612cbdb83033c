//! A thing on the operator pages with what can be done to it, as plain data.

use std::borrow::Cow;

use askama::Template;
use web::pages::{Area, Shell, filters};
use web::{FormTarget, OperatorPerson, PageAnswer};

use super::frame::{Badge, Frame, Section, Shown};

/// A button with its last question.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    /// The value of the button.
    pub name: &'static str,
    pub label: &'static str,
    pub about: Cow<'static, str>,
    pub is_danger: bool,
    /// What has to be typed first.
    pub typed: Option<String>,
    /// The label of a field for a note.
    pub note: Option<&'static str>,
    /// What was wrong with a field.
    pub error: Option<String>,
}

impl Act {
    /// A change that can be taken back.
    pub const fn new(name: &'static str, label: &'static str, about: &'static str) -> Self {
        let about = Cow::Borrowed(about);
        Self { name, label, about, is_danger: false, typed: None, note: None, error: None }
    }

    /// A change that others feel at once.
    pub fn danger(name: &'static str, label: &'static str, about: &'static str) -> Self {
        Self { is_danger: true, ..Self::new(name, label, about) }
    }

    /// A change with a note.
    pub fn with_note(self, label: &'static str) -> Self {
        Self { note: Some(label), ..self }
    }

    /// A change that cannot be taken back: this text has to be typed.
    pub fn typing(self, text: &str) -> Self {
        Self { typed: Some(text.to_owned()), ..self }
    }
}

/// A table below the facts.
#[derive(Clone, Debug)]
pub(crate) struct DetailTable {
    pub id: &'static str,
    pub heading: &'static str,
    pub headers: Vec<&'static str>,
    pub rows: Vec<Vec<Shown>>,
    pub empty: &'static str,
}

/// A secret that is shown once.
#[derive(Clone, Debug)]
pub(crate) struct ShownOnce {
    pub label: &'static str,
    pub value: String,
    pub note: String,
}

/// A form that chooses one of several values.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub form: FormTarget,
    pub heading: &'static str,
    pub about: &'static str,
    pub field: &'static str,
    pub label: &'static str,
    /// Value, label, whether it is chosen.
    pub options: Vec<(String, String, bool)>,
    pub button: &'static str,
}

/// A thing, and what can be done to it.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    pub section: Section,
    /// Untrusted.
    pub name: String,
    pub id: String,
    pub badges: Vec<Badge>,
    pub facts: Vec<(&'static str, Shown)>,
    pub tables: Vec<DetailTable>,
    pub links: Vec<(String, &'static str)>,
    pub once: Option<ShownOnce>,
    pub form: FormTarget,
    pub acts: Vec<Act>,
    pub choice: Option<Choice>,
}

#[derive(Template)]
#[template(path = "site/operator/detail.html")]
struct DetailPage<'a> {
    shell: Shell<'a>,
    frame: Frame,
    detail: Detail,
    changes: &'static str,
    type_this: &'static str,
}

impl DetailPage<'_> {
    fn title(&self) -> &'static str {
        self.detail.section.title(self.shell.lang)
    }
}

impl Detail {
    /// The page with this thing. With an error at a field the answer is 422.
    pub fn page<R>(self, operator: &OperatorPerson<R>) -> PageAnswer {
        let visitor = operator.visitor();
        let (shell, frame) = (visitor.shell(Area::Operator), Frame::new(operator, self.section));
        let is_wrong = self.acts.iter().any(|act| act.error.is_some());
        let lang = visitor.lang();
        let page = DetailPage {
            shell,
            frame,
            detail: self,
            changes: lang.pick("할 수 있는 일", "Actions"),
            type_this: lang.pick("확인을 위해 다음을 그대로 입력하세요", "To confirm, type"),
        };
        if is_wrong { visitor.form_again(&page) } else { visitor.page(&page) }
    }

    /// Says why an act was refused.
    pub fn refused(mut self, name: &str, text: &str) -> Self {
        for act in self.acts.iter_mut().filter(|act| act.name == name) {
            act.error = Some(text.to_owned());
        }
        self
    }

    /// Marks the field of an act as wrong.
    pub fn mistyped<R>(self, name: &str, operator: &OperatorPerson<R>) -> Self {
        let text = operator.visitor().lang().pick(
            "입력한 값이 다릅니다. 아무것도 바뀌지 않았습니다.",
            "That is not the same. Nothing was changed.",
        );
        self.refused(name, text)
    }
}
