//! The last question before a form takes effect that others feel at once, where a button alone cannot say
//! what the effect is. The form is posted again with its fields and `sure`, so it works without a script.

use askama::Template;
use web::pages::{Area, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer, Visitor};

/// The field with which a question is answered.
const SURE: &str = "sure";

/// Whether the question was answered.
pub(crate) fn is_sure(fields: &FormFields) -> bool {
    fields.is_checked(SURE)
}

/// A question.
#[derive(Debug)]
pub(crate) struct Question {
    /// What is about to happen, as a question.
    pub title: String,
    /// What it means for others.
    pub effects: Vec<String>,
    /// The words of the button that does it.
    pub yes: &'static str,
    /// The page that the form is on.
    pub back: String,
}

#[derive(Debug, Template)]
#[template(path = "site/question.html")]
struct QuestionPage<'a> {
    shell: Shell<'a>,
    question: &'a Question,
    cancel: &'static str,
    form: FormTarget,
    fields: Vec<(&'a str, &'a str)>,
}

impl QuestionPage<'_> {
    fn title(&self) -> &str {
        &self.question.title
    }
}

impl Question {
    /// The page with the question about a form with these fields.
    pub(crate) fn ask(&self, visitor: &Visitor, fields: &FormFields) -> PageAnswer {
        visitor.page(&QuestionPage {
            shell: visitor.shell(Area::Developers),
            question: self,
            cancel: visitor.lang().pick("취소", "Cancel"),
            form: visitor.form(visitor.request().path_and_query()),
            fields: fields.pairs().collect(),
        })
    }
}
