//! The page of a guide: its Markdown as HTML.

use askama::Template;
use pulldown_cmark::{Event, Options, Parser, html};

use super::figures::fill;
use super::frame::Navigation;
use super::guides::Guide;
use super::marked::{escaped, marked};
use super::reasons::reasons;
use super::texts::{DocsTexts, texts};
use crate::pages::{Lang, Shell, filters};

/// Stands for the base URL in a guide.
const BASE: &str = "{=base}";
/// Stands for the table of all reasons.
const REASONS: &str = "<!-- reasons -->";

/// The page.
#[derive(Template)]
#[template(path = "pages/docs/guide.html")]
pub struct GuidePage<'a> {
    /// The layout.
    pub shell: Shell<'a>,
    /// The navigation.
    pub nav: Navigation,
    /// The words.
    pub t: &'static DocsTexts,
    /// The guide.
    pub guide: &'static Guide,
    /// Its text as HTML.
    pub html: String,
}

impl GuidePage<'_> {
    fn title(&self) -> &'static str {
        self.guide.title(self.shell.lang)
    }

    fn about(&self) -> &'static str {
        self.guide.about(self.shell.lang)
    }
}

/// The text of a guide with its numbers.
pub fn filled(guide: &Guide, base_url: &str, lang: Lang) -> String {
    fill(&guide.text(lang).replace(BASE, base_url), lang)
}

/// The text of a guide as HTML.
pub fn guide_html(guide: &Guide, base_url: &str, lang: Lang) -> String {
    let text = filled(guide, base_url, lang);
    let options = Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
    // The guides have no HTML but the mark of the table.
    let events = Parser::new_ext(&text, options).map(|event| match event {
        Event::Html(mark) if mark.trim() == REASONS => Event::Html(reason_table(lang).into()),
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        other => other,
    });
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(&mut page, events);
    // What may be wider than a phone can be scrolled with the keyboard, too.
    page.replace("<table>", "<div class=\"scrolls\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
        .replace("<pre>", "<pre tabindex=\"0\">")
}

fn reason_table(lang: Lang) -> String {
    let t = texts(lang);
    let heading = |text: &str| format!("<th scope=\"col\">{}</th>", escaped(text));
    let headings = [t.reason, t.status, t.meaning, t.remedy].map(heading).concat();
    let row = |reason: &super::reasons::ReasonText| {
        let super::reasons::ReasonText { word, status, meaning, remedy } = reason;
        format!(
            "<tr id=\"{word}\"><td><code>{word}</code></td><td>{status}</td><td>{}</td><td>{}</td></tr>\n",
            marked(meaning),
            marked(remedy)
        )
    };
    let rows: String = reasons(lang).iter().map(row).collect();
    format!("<table><thead><tr>{headings}</tr></thead><tbody>\n{rows}</tbody></table>\n")
}
