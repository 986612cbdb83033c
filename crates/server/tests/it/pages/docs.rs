//! The documentation for people: every operation, event and reason is on it, in both languages.

use std::collections::{BTreeMap, BTreeSet};

use domain::event::EventType;
use domain::{Scope, Word};
use testkit::{Request, Response, Setup, World, both};
use web::documents::page_addresses;

use super::{assert_guarded, signed_in};
use crate::fixture::Fixture;

/// The close reasons for operators; a test of the sockets holds it against their list.
const CLOSE_REASONS: &str = include_str!("../../../../../docs/close-reasons.md");
/// What a page of the documentation depends on.
const VARY: &str = "accept-encoding, accept-language, cookie";

/// Addresses with text of all pages in a language.
async fn pages(world: &World, language: &str) -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    for address in page_addresses() {
        let answer = world.send(Request::get(&address).header("Accept-Language", language)).await;
        assert_eq!(answer.status, 200, "{address}");
        pages.insert(address, answer.text().to_owned());
    }
    pages
}

/// The parts of a text between two marks.
fn between<'t>(text: &'t str, begin: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(begin).skip(1).filter_map(move |rest| rest.split(end).next())
}

/// What a person reads: no tags, no code.
fn prose(html: &str) -> Vec<String> {
    let mut html = html.split_once("<main").expect("a page").1.to_owned();
    for tag in ["code", "pre", "script", "bdi"] {
        while let Some((before, rest)) = html.split_once(&format!("<{tag}")) {
            let after = rest.split_once(&format!("</{tag}>")).map_or("", |(_, after)| after);
            html = format!("{before} · {after}");
        }
    }
    html.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim().to_owned()).collect()
}

/// Whether a text has three English words in a row.
fn is_english(text: &str) -> bool {
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase());
    let words: Vec<&str> =
        text.split(' ').map(|word| word.trim_matches([',', '.', ':', ';', '(', ')'])).collect();
    words.windows(3).any(|three| three.iter().all(is_word))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_in_exactly_one_group_and_every_event_and_reason_is_explained() {
    both(Setup::default(), |world| async move {
        let document = web::documents::openapi();
        for language in ["ko", "en"] {
            let pages = pages(&world, language).await;
            for (path, methods) in document["paths"].as_object().expect("paths") {
                for (method, operation) in methods.as_object().expect("methods") {
                    let id = operation["operationId"].as_str().expect("a text");
                    let of: Vec<_> = pages
                        .iter()
                        .filter(|(_, html)| html.contains(&format!("<h2 id=\"{id}\">")))
                        .collect();
                    assert_eq!(
                        of.len(),
                        1,
                        "{id}: {:?}",
                        of.iter().map(|(page, _)| page).collect::<Vec<_>>()
                    );
                    let html = of[0].1;
                    assert!(html.contains(&format!("<code>{path}</code>")), "{method} {path}");
                    let summary = if language == "ko" { "x-summary-ko" } else { "summary" };
                    let summary = operation[summary].as_str().expect("a text").replace('\'', "&#39;");
                    assert!(html.contains(&format!(">{summary}<")), "{id}: {summary}");
                    for name in operation["parameters"].as_array().expect("parameters") {
                        let name = name["name"].as_str().expect("a text");
                        assert!(html.contains(&format!("\"field-name\">{name}<")), "{id}: {name}");
                    }
                    for status in operation["responses"].as_object().expect("responses").keys() {
                        assert!(
                            status.as_str() < "400" || html.contains(&format!(">{status}</span>")),
                            "{id}"
                        );
                    }
                }
            }
            for event in EventType::ALL.map(EventType::name).into_iter().chain(["SYSTEM"]) {
                assert!(pages["/docs/events"].contains(&format!("<h2 id=\"{event}\">")), "{event}");
            }
            assert!(pages["/docs/webhook"].contains("sha256="));
            for word in Word::ALL {
                let row = format!("<tr id=\"{}\">", word.name());
                assert_eq!(pages["/docs/guides/errors"].matches(&row).count(), 1, "{row}");
            }
            let reasons: Vec<&str> = between(CLOSE_REASONS, "\n| `", "`").collect();
            assert!(reasons.len() > 10, "{reasons:?}");
            for reason in reasons {
                let row = format!("<tr id=\"{reason}\">");
                assert_eq!(pages["/docs/guides/close-reasons"].matches(&row).count(), 1, "{row}");
            }
            for scope in Scope::ALL {
                let row = format!("<tr id=\"{}\">", scope.key());
                let (_, rest) = pages["/docs/guides/scopes"].split_once(&row).expect("a row");
                let row = rest.split("</tr>").next().expect("a row");
                assert!(row.contains(scope.name()) && row.contains("<li><a href=\"/docs/"), "{row}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_link_leads_to_a_place_that_exists() {
    both(Setup::default(), |world| async move {
        let pages = pages(&world, "en").await;
        let ids = |html: &str| between(html, " id=\"", "\"").map(str::to_owned).collect::<Vec<_>>();
        let mut links = BTreeSet::new();
        for (page, html) in &pages {
            let own = ids(html);
            let distinct: BTreeSet<_> = own.iter().collect();
            assert_eq!(distinct.len(), own.len(), "{page} has an id twice");
            for link in between(html, "href=\"", "\"") {
                links.insert(if link.starts_with('#') { format!("{page}{link}") } else { link.to_owned() });
            }
        }
        // These pages are for people who are signed in.
        let personal = ["/account/apps", "/developers", "/developers/register", "/studio"];
        let is_public = |link: &&String| !link.contains('?') && !personal.contains(&link.as_str());
        for link in links.iter().filter(is_public) {
            assert!(link.starts_with('/') && !link.starts_with("//"), "{link}");
            let (page, anchor) = link.split_once('#').unwrap_or((link, ""));
            match pages.get(page) {
                Some(html) => assert!(anchor.is_empty() || ids(html).iter().any(|id| id == anchor), "{link}"),
                None => assert_eq!(world.send(Request::get(page)).await.status, 200, "{link}"),
            }
        }
        assert!(links.len() > 150, "{}", links.len());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_korean_pages_are_korean_and_no_page_refers_to_what_its_reader_does_not_have() {
    both(Setup::default(), |world| async move {
        for (address, html) in pages(&world, "ko").await {
            for text in prose(&html) {
                assert!(!is_english(&text), "{address}: {text}; the Korean of a field is in korean.txt");
            }
        }
        for language in ["ko", "en"] {
            for (address, html) in pages(&world, language).await {
                for forbidden in ["§", "{=", "docs/spec", "Stagedoor events"] {
                    assert!(!html.contains(forbidden), "{address}: {forbidden}");
                }
                let has_section = (1..=9).any(|number| html.contains(&format!("section {number}")));
                assert!(!has_section, "{address}: a section of another document");
                let is_fields = html.contains("class=\"field-name\"");
                let undescribed = between(&html, "class=\"field-name\"", "</tr>")
                    .find(|row| row.contains("</td><td></td>") && !row.contains("class=\"values\""));
                assert!(!is_fields || undescribed.is_none(), "{address}: {undescribed:?} has no description");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_kept_by_a_browser_until_it_changes() {
    both(Setup::default(), |world| async move {
        let ask = async |path: &str, language: &str, etag: &str| -> Response {
            let request = Request::get(path).header("Accept-Language", language);
            world.send(request.header("If-None-Match", etag)).await
        };
        let page = ask("/docs/chat", "ko", "\"other\"").await;
        let etag = page.header("etag").expect("an ETag").to_owned();
        assert_eq!((page.status, page.header("vary")), (200, Some(VARY)));
        assert_eq!(page.header("cache-control"), Some("private, max-age=600"));
        assert!(
            page.header("content-security-policy")
                .is_some_and(|policy| policy.contains("connect-src 'self'"))
        );
        for known in [etag.clone(), format!("\"x\", W/{etag}")] {
            let again = ask("/docs/chat", "ko", &known).await;
            assert_eq!((again.status, again.text(), again.header("etag")), (304, "", Some(&*etag)));
        }
        assert_eq!(ask("/docs/chat", "en", &etag).await.status, 200);
        let asked = world.send(Request::get("/docs/chat?lang=ko")).await;
        assert_eq!(asked.text(), page.text());
        for missing in ["/docs/missing", "/docs/guides/missing", "/docs/guides", "/docs/chat/"] {
            world.send(Request::get(missing)).await.assert_refused(404, "NOT_FOUND");
        }
        for address in page_addresses() {
            let html = world.send(Request::get(&address)).await.text().to_owned();
            for forbidden in ["<script>", "src=\"http", "href=\"http", " style=\"", "<style", " onclick"] {
                assert!(!html.contains(forbidden), "{address}: {forbidden}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_operations_fields_reasons_and_guides_and_shows_no_foreign_html() {
    both(Setup::default(), |world| async move {
        let search = async |asked: &str, language: &str| {
            let mut browser = world.browser();
            browser.accept_language = Some(language.to_owned());
            let page = browser.open(&format!("/docs?q={}", testkit::encode(asked))).await;
            assert_eq!(page.response.status, 200, "{asked}");
            assert_guarded(&page);
            page.response.text().to_owned()
        };
        for (asked, expected) in [
            ("/open/v1/chats/send", "/docs/chat#sendChat"),
            ("chatSlowModeSec", "/docs/chat#changeChatSettings"),
            ("token-reused", "/docs/guides/errors#token-reused"),
            ("갱신", "/docs/guides/sign-in#refresh"),
            ("스트림키", "/docs/lives#getStreamKey"),
            ("  DONATION ", "/docs/events#DONATION"),
        ] {
            for language in ["ko", "en"] {
                let html = search(asked, language).await;
                assert!(html.contains(&format!("href=\"{expected}\"")), "{asked} in {language}");
            }
        }
        assert!(search("zzzz", "en").await.contains("Nothing was found."));
        let hostile = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'";
        let html = search(hostile, "en").await;
        assert!(!html.contains("<script>alert") && !html.contains("<img"), "{html}");
        assert!(html.contains("value=\"&#34;&#62;&#60;script&#62;alert(1)"), "{html}");
        let long = "가".repeat(400);
        assert!(search(&long, "ko").await.len() < 60_000);
        let overview = world.send(Request::get("/docs?q=%20")).await;
        assert!(overview.text().contains("id=\"first\""), "an empty search is the first page");
        for odd in ["/docs?q=%ff%fe", "/docs?q=a&q=b", "/docs?q", "/docs?q=%00"] {
            assert_eq!(world.send(Request::get(odd)).await.status, 200, "{odd}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_who_is_signed_in_and_is_kept_for_that_person_only() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer: person, .. } = Fixture::set_up(&world).await;
        let mut browser = signed_in(&world, &person).await;
        for address in ["/docs", "/docs/chat", "/docs/guides/errors", "/docs?q=token"] {
            let own = browser.open(address).await.response;
            assert!(own.text().contains("action=\"/sign-out\"") && !own.text().contains("href=\"/sign-in\""));
            assert!(own.text().contains(&person.name), "{address}");
            let other = world.send(Request::get(address).header("Accept-Language", "ko")).await;
            assert!(
                other.text().contains("href=\"/sign-in\"") && !other.text().contains("csrf"),
                "{address}"
            );
            assert_ne!(own.header("etag").unwrap_or("own"), other.header("etag").unwrap_or("other"));
        }
        let etag = browser.open("/docs/chat").await.response.header("etag").expect("an ETag").to_owned();
        let cookie = format!("stagedoor_browser={}", browser.cookie("stagedoor_browser").expect("a cookie"));
        let ask = async |cookie: &str| {
            let request =
                Request::get("/docs/chat").header("Accept-Language", "ko").header("If-None-Match", &etag);
            world.send(request.header("Cookie", cookie)).await.status
        };
        assert_eq!((ask(&cookie).await, ask("other=1").await), (304, 200));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_files_are_compressed_and_what_has_a_proof_or_an_input_is_not() {
    both(Setup::default(), |world| async move {
        let ask = async |path: &str, coding: &str, etag: &str| -> Response {
            let request =
                Request::get(path).header("Accept-Encoding", coding).header("Accept-Language", "en");
            world.send(request.header("If-None-Match", etag)).await
        };
        let html = world.send(Request::get("/docs")).await.text().to_owned();
        let files = between(&html, "\"/assets/", "\"").map(|name| format!("/assets/{name}"));
        let files = files.filter(|file| file.ends_with(".css") || file.ends_with(".js"));
        let documents = ["/openapi.json", "/asyncapi.json", "/docs", "/docs/platform-applications"];
        let paths: Vec<String> = documents.map(str::to_owned).into_iter().chain(files).collect();
        assert!(paths.len() >= 7, "{paths:?}");
        for path in paths {
            let plain = ask(&path, "identity", "").await;
            let small = ask(&path, "br, gzip;q=0.5", "").await;
            assert_eq!(
                (plain.header("content-encoding"), small.header("content-encoding")),
                (None, Some("gzip"))
            );
            assert!(
                small.body.len() * 2 < plain.body.len(),
                "{path}: {} {}",
                small.body.len(),
                plain.body.len()
            );
            for answer in [&plain, &small] {
                assert!(answer.header("vary").is_some_and(|vary| vary.contains("accept-encoding")), "{path}");
                assert_eq!(answer.header("content-type"), plain.header("content-type"));
            }
            let etag = small.header("etag").expect("an ETag");
            assert_ne!(Some(etag), plain.header("etag"), "{path}");
            let again = ask(&path, "gzip", etag).await;
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
            assert_eq!(ask(&path, "identity", etag).await.status, 200, "{path}");
            assert_eq!(ask(&path, "gzip;q=0", "").await.header("content-encoding"), None, "{path}");
        }
        for path in ["/", "/sign-in", "/docs?q=token", "/open/v1/users/me", "/health/live"] {
            assert_eq!(ask(path, "gzip", "").await.header("content-encoding"), None, "{path}");
        }
        let Fixture { streamer: person, .. } = Fixture::set_up(&world).await;
        let browser = signed_in(&world, &person).await;
        let cookie = format!("stagedoor_browser={}", browser.cookie("stagedoor_browser").expect("a cookie"));
        let own = Request::get("/docs/chat").header("Accept-Encoding", "gzip").header("Cookie", &cookie);
        assert_eq!(world.send(own).await.header("content-encoding"), None, "it has a proof");
    })
    .await;
}
