//! The sections of a guide: what its contents list, and what the search finds.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Begins a comment below a heading with further words by which the section is found.
const ALSO: &str = "<!-- also:";

/// A section, from one heading to the next. The first one begins before any heading.
#[derive(Clone, Debug, Default)]
pub struct GuideSection {
    /// The anchor; empty for the beginning.
    pub id: String,
    /// The heading; empty for the beginning.
    pub title: String,
    /// What a person reads, without marks and programs.
    pub text: String,
    /// The programs, and the headings of tables: words to be found by, but no sentences.
    pub programs: String,
    /// Further words by which it is found.
    pub also: String,
}

/// The parser's options for a guide.
pub const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_HEADING_ATTRIBUTES);

/// Whether a comment of a guide has words for the search.
pub fn is_also(html: &str) -> bool {
    html.trim_start().starts_with(ALSO)
}

/// The sections of a Markdown text.
pub fn sections(markdown: &str) -> Vec<GuideSection> {
    let mut sections = vec![GuideSection::default()];
    let (mut in_heading, mut in_program, mut in_head) = (false, false, false);
    for event in Parser::new_ext(markdown, OPTIONS) {
        if let Event::Start(Tag::Heading { level: HeadingLevel::H2, id, .. }) = &event {
            let id = id.as_deref().unwrap_or_default().to_owned();
            sections.push(GuideSection { id, ..GuideSection::default() });
            in_heading = true;
        }
        let Some(section) = sections.last_mut() else { break };
        match event {
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Start(Tag::CodeBlock(_)) => in_program = true,
            Event::End(TagEnd::CodeBlock) => in_program = false,
            Event::Start(Tag::TableHead) => in_head = true,
            Event::End(TagEnd::TableHead) => in_head = false,
            Event::End(TagEnd::TableCell) if in_head => section.programs.push(' '),
            Event::End(TagEnd::TableCell) => section.text.push_str(" · "),
            Event::End(TagEnd::TableRow) => {
                section.text.truncate(section.text.trim_end_matches(" · ").len());
                section.text.push_str(". ");
            }
            Event::Text(text) | Event::Code(text) => {
                let place = match in_heading {
                    true => &mut section.title,
                    false if in_program || in_head => &mut section.programs,
                    false => &mut section.text,
                };
                place.push_str(&text);
            }
            Event::SoftBreak | Event::End(TagEnd::Paragraph | TagEnd::Item) => section.text.push(' '),
            Event::Html(html) if is_also(&html) => {
                let words = html.trim().trim_start_matches(ALSO).trim_end_matches("-->");
                section.also.push_str(words);
            }
            _ => {}
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_clean_text_and_its_programs_apart() {
        let text = "Begin `x`.\n\n## One [two](/a) {#one}\n\n<!-- also: three -->\n\n- **four**\n- [`five`](/b)\n\n\
                    ```sh\nsix\n```\n\n| a | b |\n|---|---|\n| c | d |\n";
        let sections = sections(text);
        let [begin, one] = &sections[..] else { panic!("{sections:?}") };
        assert_eq!((begin.id.as_str(), begin.text.trim()), ("", "Begin x."));
        assert_eq!((one.id.as_str(), one.title.as_str(), one.also.trim()), ("one", "One two", "three"));
        assert_eq!((one.text.trim(), one.programs.trim()), ("four five c · d.", "six\na b"));
    }
}
