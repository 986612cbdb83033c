//! The first page of the documentation.

use askama::Template;

use super::frame::Navigation;
use super::place::DocsPlace;
use super::reference::SampleView;
use super::samples::sample_calls;
use super::texts::DocsTexts;
use crate::pages::{Shell, filters};

/// The page.
#[derive(Template)]
#[template(path = "pages/docs/overview.html")]
pub struct OverviewPage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The navigation.
    pub nav: Navigation,
    /// The words.
    pub t: &'static DocsTexts,
    /// The base URL of the interface.
    pub base_url: &'a str,
    /// The first call.
    pub first: Option<SampleView>,
}

/// The first call of a new developer.
pub fn first_call(base_url: &str) -> Option<SampleView> {
    sample_calls(base_url).into_iter().find(|call| call.operation == "getMe").map(SampleView::from)
}

impl OverviewPage<'_> {
    fn title(&self) -> &'static str {
        DocsPlace::Overview.title(self.shell.lang)
    }
}
