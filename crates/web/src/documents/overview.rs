//! The first page of the documentation.

use askama::Template;

use super::events::listening_programs;
use super::figures::fill;
use super::frame::Navigation;
use super::marked::marked;
use super::place::DocsPlace;
use super::reference::SampleView;
use super::samples::sample_calls;
use super::texts::{DocsTexts, texts};
use crate::pages::{Lang, Shell, filters};

/// The redirect address of the quick start. Nothing has to answer there.
const REDIRECT: &str = "http://localhost:3000/callback";

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
    /// The steps of the quick start.
    pub steps: Vec<QuickStep>,
}

/// A step of the quick start.
pub struct QuickStep {
    /// Its heading.
    pub heading: &'static str,
    /// What to do, as HTML.
    pub text: String,
    /// What to type: anchor, caption, text.
    pub programs: Vec<(&'static str, &'static str, String)>,
}

/// The steps of the quick start, to a program that the tests of the clients run.
pub fn steps(base_url: &str, lang: Lang) -> Vec<QuickStep> {
    let sign_in =
        format!("{base_url}/account-interlock?clientId=CLIENT_ID&redirectUri={REDIRECT}&state=STATE");
    let tokens = format!(
        "curl -X POST '{base_url}/auth/v1/token' \\\n  -H 'Content-Type: application/json' \\\n  \
         --data '{{\"grantType\": \"authorization_code\", \"clientId\": \"CLIENT_ID\",\n           \
         \"clientSecret\": \"CLIENT_SECRET\", \"code\": \"CODE\", \"state\": \"STATE\"}}'"
    );
    let start = format!("npm install socket.io-client@4\nAPI={base_url} TOKEN=ACCESS_TOKEN node bot.js");
    let program = listening_programs().into_iter().next().map(|program| program.text).unwrap_or_default();
    let chat = "stagedoor trigger chat --channel haneul --message 'hello'".to_owned();
    let programs = [
        vec![],
        vec![("quick-sign-in", "URL", sign_in)],
        vec![("quick-tokens", "curl", tokens)],
        vec![
            ("quick-program", "bot.js", program),
            ("quick-run", "sh", start),
            ("quick-chat", "sandbox", chat),
        ],
    ];
    let step = |([heading, text], programs): ([&'static str; 2], _)| {
        let text = marked(&fill(text, lang));
        QuickStep { heading, text, programs }
    };
    texts(lang).steps.into_iter().zip(programs).map(step).collect()
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
