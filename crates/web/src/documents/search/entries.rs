//! What the search of the documentation finds: pages, sections of guides, operations, events, reasons and
//! scopes. The texts of both languages are searched, whatever the language of the page.

use std::sync::LazyLock;

use crate::documents::close_reasons::close_reasons;
use crate::documents::events::{EventView, event_views};
use crate::documents::figures::fill;
use crate::documents::groups::GROUPS;
use crate::documents::guide::filled;
use crate::documents::guides::{GUIDES, Guide};
use crate::documents::marked::plain;
use crate::documents::notes::{also, note};
use crate::documents::place::{DOCS, DocsPlace};
use crate::documents::reasons::{ReasonText, reasons};
use crate::documents::reference::{OperationView, views};
use crate::documents::scope_rows::{ScopeRow, scope_rows};
use crate::documents::sections::{GuideSection, sections};
use crate::documents::texts::{DocsTexts, texts};
use crate::pages::Lang;

/// The weights of a heading, of words given for the search, of the page's name, of a text, of a program and
/// of a long list.
const HEADING: TextKind = TextKind::Head(1.0);
const ALSO: TextKind = TextKind::Head(1.5);
const PAGE: TextKind = TextKind::Body(1.0);
const TEXT: TextKind = TextKind::Body(1.0);
const PROGRAM: TextKind = TextKind::Body(0.3);
const LIST: TextKind = TextKind::Body(0.25);

/// Guides answer questions. The one about moving is for few readers, and so is the platform API. A scope is
/// less than the calls that need it.
const GUIDE_WORTH: f32 = 1.25;
const MOVING_WORTH: f32 = 0.7;
const PLATFORM_WORTH: f32 = 0.55;
const SCOPE_WORTH: f32 = 0.8;
/// Words by which the beginning of a guide is found, whatever it is about.
const GUIDE: &str = "guide overview procedure work 가이드";

/// A result.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Its address.
    pub href: String,
    /// Its heading.
    pub title: String,
    /// The page that it is on.
    pub page: &'static str,
    /// The method of an operation.
    pub method: &'static str,
    /// A text about it, or around the match.
    pub excerpt: String,
}

/// The place of a text in its entry, with its weight.
#[derive(Clone, Copy, Debug)]
pub enum TextKind {
    /// A heading: a word counts once.
    Head(f32),
    /// A text: a word counts by how often it stands there.
    Body(f32),
}

/// Something that can be found.
pub struct Entry {
    /// How it is shown, with its whole text.
    pub found: Found,
    /// Names that mean this and nothing else, in lower case.
    pub names: Vec<String>,
    /// The texts that it is found by.
    pub texts: Vec<(TextKind, String)>,
    /// A factor of its score.
    pub worth: f32,
}

impl Entry {
    fn new(found: Found, names: &[&str], texts: Vec<(TextKind, String)>) -> Self {
        let names = names.iter().map(|name| name.to_lowercase()).collect();
        Self { found, names, texts, worth: 1.0 }
    }
}

/// The operations of each group in each language.
static VIEWS: LazyLock<Vec<[Vec<OperationView>; 2]>> =
    LazyLock::new(|| GROUPS.iter().map(|group| Lang::ALL.map(|lang| views(group, "", lang))).collect());

/// Everything that a reader of this language can find, in the order of the navigation.
pub fn entries(lang: Lang) -> Vec<Entry> {
    let mut entries: Vec<Entry> = GUIDES.iter().flat_map(|guide| of_guide(guide, lang)).collect();
    entries.extend(of_pages(lang));
    entries.extend(of_scopes(lang));
    entries.extend(of_operations(lang));
    entries.extend(of_events(lang));
    entries.extend(of_parts(lang));
    entries.extend(of_reasons("errors", reasons, |t| [t.errors, t.reason], lang));
    entries.extend(of_reasons("close-reasons", close_reasons, |t| [t.close_code, t.close_words], lang));
    entries
}

/// A text in both languages.
fn both(text: impl Fn(Lang) -> String) -> String {
    Lang::ALL.map(text).join(" ")
}

fn guide_title(slug: &str, lang: Lang) -> &'static str {
    GUIDES.iter().find(|guide| guide.slug == slug).map_or("", |guide| guide.title(lang))
}

fn of_pages(lang: Lang) -> impl Iterator<Item = Entry> {
    let places = DocsPlace::all().filter(|place| !matches!(place, DocsPlace::Guide(_)));
    places.map(move |place| {
        let title = place.title(lang);
        let found = Found {
            href: place.href(),
            title: title.to_owned(),
            excerpt: first_filled(&[place.about(lang), texts(lang).quick_start_about]),
            ..Found::default()
        };
        let texts = vec![
            (HEADING, both(|lang| place.title(lang).to_owned())),
            (TEXT, both(|lang| place.about(lang).to_owned())),
        ];
        let is_platform = matches!(place, DocsPlace::Group(group) if group.is_platform());
        Entry { worth: if is_platform { PLATFORM_WORTH } else { 0.9 }, ..Entry::new(found, &[title], texts) }
    })
}

/// An entry for each section of a guide.
fn of_guide(guide: &'static Guide, lang: Lang) -> Vec<Entry> {
    let [korean, english] = Lang::ALL.map(|lang| sections(&filled(guide, "", lang)));
    let href = DocsPlace::Guide(guide).href();
    let entry = |(korean, english): (&GuideSection, &GuideSection)| {
        let own = if lang == Lang::Ko { korean } else { english };
        let is_begin = own.id.is_empty();
        let title = if is_begin { guide.title(lang) } else { &own.title };
        let heading = match is_begin {
            true => both(|lang| guide.title(lang).to_owned()),
            false => format!("{} {}", korean.title, english.title),
        };
        let found = Found {
            href: if is_begin { href.clone() } else { format!("{href}#{}", own.id) },
            title: title.to_owned(),
            page: if is_begin { "" } else { guide.title(lang) },
            excerpt: if is_begin {
                guide.about(lang).to_owned()
            } else {
                first_filled(&[&own.text, &own.programs, guide.about(lang)])
            },
            ..Found::default()
        };
        let texts = vec![
            (HEADING, heading),
            (ALSO, if is_begin { GUIDE.to_owned() } else { format!("{} {}", korean.also, english.also) }),
            (PAGE, both(|lang| guide.title(lang).to_owned())),
            (TEXT, format!("{} {}", korean.text, english.text)),
            (TEXT, if is_begin { both(|lang| guide.about(lang).to_owned()) } else { String::new() }),
            (PROGRAM, own.programs.clone()),
        ];
        let worth = if guide.slug == "moving" { MOVING_WORTH } else { GUIDE_WORTH };
        Entry { worth, ..Entry::new(found, &[title], texts) }
    };
    korean.iter().zip(&english).map(entry).collect()
}

fn of_operations(lang: Lang) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (group, [korean, english]) in GROUPS.iter().zip(&*VIEWS) {
        for (korean, english) in korean.iter().zip(english) {
            let own = if lang == Lang::Ko { korean } else { english };
            let noted = |lang| plain(&fill(note(own.id, lang), lang));
            let found = Found {
                href: format!("{DOCS}/{}#{}", group.slug, own.id),
                title: own.path.to_owned(),
                page: own.summary,
                method: own.method,
                excerpt: first_filled(&[&noted(lang), &in_short(own)]),
            };
            let scopes = [korean, english].map(|view| view.scope.map_or("", |(_, label)| label)).join(" ");
            let key = own.scope.map_or("", |(key, _)| key);
            let quotas = format!("{} {}", korean.quotas.join(" "), english.quotas.join(" "));
            let texts = vec![
                (HEADING, format!("{} {}", korean.summary, english.summary)),
                (ALSO, format!("{} {} {} {}", own.id, own.method, own.path, also(own.id))),
                (PAGE, both(|lang| group.name(lang).to_owned())),
                (TEXT, both(noted)),
                (PAGE, format!("scope {key} {scopes} {quotas}")),
                (HEADING, if is_list(own) { "list 목록" } else { "" }.to_owned()),
                (LIST, format!("{} {}", fields(korean), fields(english))),
                (LIST, own.reasons.iter().map(|reason| reason.word).collect::<Vec<_>>().join(" ")),
            ];
            let short = own.path.trim_start_matches("/open/v1/");
            let request = format!("{} {}", own.method, own.path);
            let entry = Entry::new(found, &[own.id, own.path, short, &request, own.summary], texts);
            entries.push(Entry { worth: if group.is_platform() { PLATFORM_WORTH } else { 1.0 }, ..entry });
        }
    }
    entries
}

/// The first text that is not empty.
fn first_filled(texts: &[&str]) -> String {
    texts.iter().find(|text| !text.trim().is_empty()).map(|text| (*text).to_owned()).unwrap_or_default()
}

/// The summary of an operation with the fields of its answer.
fn in_short(view: &OperationView) -> String {
    let fields: Vec<&str> = view.content.rows.iter().map(|row| row.name.as_str()).collect();
    if fields.is_empty() {
        view.summary.to_owned()
    } else {
        format!("{}: {}", view.summary, fields.join(", "))
    }
}

/// Whether an operation answers with items.
fn is_list(view: &OperationView) -> bool {
    view.content.rows.iter().any(|row| row.name.starts_with("data[]"))
}

/// The fields of an operation with their meanings.
fn fields(view: &OperationView) -> String {
    let rows = view.inputs.iter().chain([&view.content]).flat_map(|table| &table.rows);
    rows.map(|row| format!("{} {} {}\n", row.name, row.values.join(" "), row.about)).collect()
}

fn of_events(lang: Lang) -> Vec<Entry> {
    let page = DocsPlace::Events.title(lang);
    let [korean, english] = Lang::ALL.map(event_views);
    let event = |(korean, english): (&EventView, &EventView)| {
        let own = if lang == Lang::Ko { korean } else { english };
        let rows = korean.payload.rows.iter().chain(&english.payload.rows);
        let fields: String = rows.map(|row| format!("{} {}\n", row.name, row.about)).collect();
        let found = Found {
            href: format!("{DOCS}/events#{}", own.name),
            title: own.name.to_owned(),
            page,
            excerpt: own.summary.to_owned(),
            ..Found::default()
        };
        let texts = vec![
            (HEADING, format!("{} event 이벤트", own.name)),
            (
                ALSO,
                format!(
                    "{} {} {} field 필드",
                    korean.summary,
                    english.summary,
                    both(|lang| texts(lang).payload.to_owned())
                ),
            ),
            (PAGE, both(|lang| DocsPlace::Events.title(lang).to_owned())),
            (TEXT, fields),
        ];
        Entry::new(found, &[own.name], texts)
    };
    korean.iter().zip(&english).map(event).collect()
}

/// The parts of the pages that are neither guides nor operations.
fn of_parts(lang: Lang) -> Vec<Entry> {
    type Words = fn(&'static DocsTexts) -> &'static str;
    let webhook = DocsPlace::Webhook;
    let parts: [(DocsPlace, &str, Words, Words, &str); 7] = [
        (
            DocsPlace::Overview,
            "quick-start",
            |t| t.quick_start,
            |t| t.quick_start_about,
            "quick start 시작하기 tutorial bot 봇 만들기",
        ),
        (DocsPlace::Overview, "envelope", |t| t.envelope, |t| t.envelope_lead, "json format"),
        (
            DocsPlace::Overview,
            "programs",
            |t| t.programs,
            |t| t.programs_lead,
            "openapi asyncapi swagger postman codegen",
        ),
        (
            DocsPlace::Events,
            "listening",
            |t| t.listening,
            |t| t.listening_lead,
            "javascript python program 프로그램 예제",
        ),
        (
            DocsPlace::Events,
            "SYSTEM",
            |_| "SYSTEM",
            |t| t.system_lead,
            "connected subscribed unsubscribed revoked",
        ),
        (
            webhook,
            "verifying",
            |t| t.verifying,
            |t| t.verifying_lead,
            "verify webhook signature hmac sha256 웹훅 서명 검증 javascript python java",
        ),
        (
            webhook,
            "attempts",
            |t| t.attempts,
            |t| t.attempts_text,
            "webhook retry retries delivery delivered 웹훅 재시도 전달",
        ),
    ];
    let part = |(place, id, heading, about, also): (DocsPlace, &str, Words, Words, &str)| {
        let filled = |lang| plain(&fill(about(texts(lang)), lang));
        let found = Found {
            href: format!("{}#{id}", place.href()),
            title: heading(texts(lang)).to_owned(),
            page: place.title(lang),
            excerpt: filled(lang),
            ..Found::default()
        };
        let texts = vec![
            (HEADING, both(|lang| heading(texts(lang)).to_owned())),
            (ALSO, also.to_owned()),
            (PAGE, both(|lang| place.title(lang).to_owned())),
            (TEXT, both(filled)),
        ];
        Entry { worth: GUIDE_WORTH, ..Entry::new(found, &[id], texts) }
    };
    parts.map(part).into()
}

fn of_scopes(lang: Lang) -> Vec<Entry> {
    let page = guide_title("scopes", lang);
    let [korean, english] = Lang::ALL.map(scope_rows);
    let entry = |(korean, english): (&ScopeRow, &ScopeRow)| {
        let own = if lang == Lang::Ko { korean } else { english };
        let calls = |row: &ScopeRow| {
            row.calls
                .iter()
                .map(|(_, method, path, summary)| format!("{method} {path} {summary}\n"))
                .collect::<String>()
        };
        let found = Found {
            href: format!("{DOCS}/guides/scopes#{}", own.key),
            title: format!("{} ({})", own.label, own.key),
            page,
            excerpt: own.about.to_owned(),
            ..Found::default()
        };
        let texts = vec![
            (HEADING, format!("scope {} {} {}", own.key, korean.label, english.label)),
            (TEXT, format!("{} {}", korean.about, english.about)),
            (TEXT, format!("{} {}", calls(korean), calls(english))),
        ];
        Entry { worth: SCOPE_WORTH, ..Entry::new(found, &[own.key, own.label], texts) }
    };
    korean.iter().zip(&english).map(entry).collect()
}

/// The words of a table of a guide, named by what all of them are.
fn of_reasons(
    slug: &str,
    reasons: fn(Lang) -> &'static [ReasonText],
    kind: fn(&DocsTexts) -> [&'static str; 2],
    lang: Lang,
) -> Vec<Entry> {
    let kinds = both(|lang| kind(texts(lang)).join(" "));
    let [korean, english] = Lang::ALL.map(reasons);
    let entry = |(korean, english): (&ReasonText, &ReasonText)| {
        let own = if lang == Lang::Ko { korean } else { english };
        let text = |reason: &ReasonText| plain(&format!("{} {}", reason.meaning, reason.remedy));
        let found = Found {
            href: format!("{DOCS}/guides/{slug}#{}", own.word),
            title: own.word.to_owned(),
            page: guide_title(slug, lang),
            excerpt: text(own),
            ..Found::default()
        };
        let texts = vec![
            (ALSO, own.word.to_owned()),
            (PAGE, format!("{kinds} {}", own.status)),
            (TEXT, format!("{} {}", text(korean), text(english))),
        ];
        Entry { worth: 0.9, ..Entry::new(found, &[own.word], texts) }
    };
    korean.iter().zip(english).map(entry).collect()
}
