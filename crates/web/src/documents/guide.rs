//! The page of a guide: its Markdown as HTML.

use askama::Template;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Parser, Tag, TagEnd, html};

use super::blocks::block;
use super::close_reasons::close_reasons;
use super::figures::fill;
use super::frame::Navigation;
use super::guides::Guide;
use super::marked::{escaped, marked};
use super::reasons::{ReasonText, reasons};
use super::scope_rows::{ScopeRow, scope_rows};
use super::sections::{OPTIONS, is_also};
use super::texts::{DocsTexts, texts};
use crate::pages::{Lang, Shell, filters};

/// Stands for the base URL in a guide.
const BASE: &str = "{=base}";
/// Stand for tables that are made of what the service knows.
const REASONS: &str = "<!-- reasons -->";
const CLOSE_REASONS: &str = "<!-- close-reasons -->";
const SCOPES: &str = "<!-- scopes -->";
/// Begins the mark of a program: `<!-- program: LIBRARY LANGUAGE -->`.
const PROGRAM: &str = "<!-- program: ";
/// Programs that the tests of the clients run.
const CLIENTS: &str = include_str!("../../../../docs/clients.md");

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

/// The text of a guide with its numbers and programs.
pub fn filled(guide: &Guide, base_url: &str, lang: Lang) -> String {
    let mut text = String::new();
    for line in guide.text(lang).lines() {
        match line.strip_prefix(PROGRAM).and_then(|mark| mark.strip_suffix(" -->")?.split_once(' ')) {
            Some((library, language)) => {
                let program = block(CLIENTS, &format!("with: {library}"), language);
                text.push_str(&format!("```{language}\n{program}\n```"));
            }
            None => text.push_str(line),
        }
        text.push('\n');
    }
    // A search knows no base URL.
    if base_url.is_empty() {
        text = text.replace(&format!("`{BASE}`"), lang.pick("기본 주소", "the base URL"));
    }
    fill(&text.replace(BASE, base_url), lang)
}

/// The text of a guide as HTML.
pub fn guide_html(guide: &Guide, base_url: &str, lang: Lang) -> String {
    let text = filled(guide, base_url, lang);
    let mut page = String::with_capacity(text.len() * 2);
    let mut tables = Tables::default();
    html::push_html(&mut page, Parser::new_ext(&text, OPTIONS).map(|event| tables.drawn(event, lang)));
    page
}

/// The headings of the columns, which are repeated beside each cell where a phone shows a row as a block.
#[derive(Default)]
struct Tables {
    headings: Vec<String>,
    column: usize,
    is_head: bool,
    /// The anchor of the open heading.
    anchor: Option<String>,
}

impl Tables {
    fn drawn<'e>(&mut self, event: Event<'e>, lang: Lang) -> Event<'e> {
        match event {
            // The guides have no HTML but marks.
            Event::Html(mark) if mark.trim() == REASONS => {
                html_event(reason_table(reasons(lang), false, lang))
            }
            Event::Html(mark) if mark.trim() == CLOSE_REASONS => {
                html_event(reason_table(close_reasons(lang), true, lang))
            }
            Event::Html(mark) if mark.trim() == SCOPES => html_event(scope_table(&scope_rows(lang), lang)),
            Event::Html(mark) if is_also(&mark) => html_event(String::new()),
            Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
            Event::Start(Tag::Heading { level: HeadingLevel::H2, id: Some(id), .. }) => {
                let id = escaped(&id);
                self.anchor = Some(id.clone());
                html_event(format!("<h2 id=\"{id}\"><a href=\"#{id}\">"))
            }
            Event::End(TagEnd::Heading(_)) if self.anchor.take().is_some() => {
                html_event("</a></h2>\n".to_owned())
            }
            // What may be wider than its place can be scrolled with the keyboard, too.
            Event::Start(Tag::CodeBlock(_)) => html_event("<pre tabindex=\"0\"><code>".to_owned()),
            Event::End(TagEnd::CodeBlock) => html_event("</code></pre>\n".to_owned()),
            other => self.of_table(other),
        }
    }

    fn of_table<'e>(&mut self, event: Event<'e>) -> Event<'e> {
        match event {
            Event::Start(Tag::Table(_)) => {
                self.headings.clear();
                html_event(TABLE.to_owned())
            }
            Event::Start(Tag::TableHead) => {
                (self.is_head, self.column) = (true, 0);
                html_event("<thead><tr>".to_owned())
            }
            Event::End(TagEnd::TableHead) => {
                self.is_head = false;
                html_event("</tr></thead><tbody>\n".to_owned())
            }
            Event::Start(Tag::TableRow) => {
                self.column = 0;
                html_event("<tr>".to_owned())
            }
            Event::End(TagEnd::TableRow) => html_event("</tr>\n".to_owned()),
            Event::Start(Tag::TableCell) if self.is_head => {
                self.headings.push(String::new());
                html_event("<th scope=\"col\">".to_owned())
            }
            Event::End(TagEnd::TableCell) if self.is_head => html_event("</th>".to_owned()),
            Event::Start(Tag::TableCell) => {
                let heading = self.headings.get(self.column).map_or("", String::as_str);
                self.column += 1;
                html_event(cell(heading))
            }
            Event::End(TagEnd::TableCell) => html_event("</td>".to_owned()),
            Event::End(TagEnd::Table) => html_event(TABLE_END.to_owned()),
            other => {
                if self.is_head
                    && let (Event::Text(text) | Event::Code(text), Some(heading)) =
                        (&other, self.headings.last_mut())
                {
                    heading.push_str(text);
                }
                other
            }
        }
    }
}

const TABLE: &str = "<div class=\"scrolls\" tabindex=\"0\"><table>\n";
const TABLE_END: &str = "</tbody></table></div>\n";

fn html_event<'e>(html: String) -> Event<'e> {
    Event::Html(CowStr::from(html))
}

/// The beginning of a cell. On a phone its heading stands beside it.
fn cell(heading: &str) -> String {
    match heading {
        "" => "<td>".to_owned(),
        heading => format!("<td data-label=\"{}\">", escaped(heading)),
    }
}

fn head(headings: &[&str]) -> String {
    let heading = |text: &&str| format!("<th scope=\"col\">{}</th>", escaped(text));
    format!("{TABLE}<thead><tr>{}</tr></thead><tbody>\n", headings.iter().map(heading).collect::<String>())
}

fn reason_table(reasons: &[ReasonText], is_of_sockets: bool, lang: Lang) -> String {
    let t = texts(lang);
    let number = if is_of_sockets { t.close_code } else { t.status };
    let row = |reason: &ReasonText| {
        let ReasonText { word, status, meaning, remedy } = reason;
        let [status_cell, meaning_cell, remedy_cell] = [number, t.meaning, t.remedy].map(cell);
        format!(
            "<tr id=\"{word}\"><td><a href=\"#{word}\"><code>{word}</code></a></td>{status_cell}{status}</td>\
             {meaning_cell}{}</td>{remedy_cell}{}</td></tr>\n",
            marked(meaning),
            marked(remedy)
        )
    };
    let rows: String = reasons.iter().map(row).collect();
    format!("{}{rows}{TABLE_END}", head(&[t.reason, number, t.meaning, t.remedy]))
}

fn scope_table(scopes: &[ScopeRow], lang: Lang) -> String {
    let t = texts(lang);
    let row = |scope: &ScopeRow| {
        let ScopeRow { key, label, name, about, calls } = scope;
        let other_name = if label == name { String::new() } else { format!("<br>{}", escaped(name)) };
        let call = |(href, method, path, summary): &(String, &str, &str, &str)| {
            format!(
                "<li><a href=\"{href}\">{}</a> <code>{method} {}</code></li>",
                escaped(summary),
                escaped(path)
            )
        };
        format!(
            "<tr id=\"{key}\"><td><a href=\"#{key}\">{}</a><br><code>{key}</code>{other_name}</td>{}{}</td>{}<ul>{}</ul></td></tr>\n",
            escaped(label),
            cell(t.allows),
            escaped(about),
            cell(t.calls),
            calls.iter().map(call).collect::<String>()
        )
    };
    let rows: String = scopes.iter().map(row).collect();
    format!("{}{rows}{TABLE_END}", head(&[t.scope, t.allows, t.calls]))
}
