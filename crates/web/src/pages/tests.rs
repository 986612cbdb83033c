//! Renders every page from samples in every language, and checks the common rules.

use std::sync::LazyLock;

use domain::quota::QuotaName;

use super::scopes::{scope_acts, scope_description, scope_warning};
use super::*;
use crate::brand::{Brand, StaticFiles};

static BRAND: LazyLock<Brand> = LazyLock::new(Brand::default);
static FILES: LazyLock<StaticFiles> = LazyLock::new(|| StaticFiles::of(&BRAND));

const HIDDEN: [(&str, &str); 2] = [("csrf", "c5rF"), ("request", "clientId=1&state=\"2\"")];

const PEOPLE: [SeededPerson<'_>; 2] = [
    SeededPerson { login: "byeol", channel_name: "별빛", description: "streamer" },
    SeededPerson { login: "dal", channel_name: "달빛", description: "" },
];

const SCOPE_NAMES: [&str; 4] = ["유저 정보 조회", "방송 스트림키 조회", "채팅 메시지 쓰기", "드롭스"];

/// A name with many attacks at once.
pub(super) const HOSTILE: &str =
    "\u{202E}</title></style><script>alert('1')</script>\" onload=\"x\" & <img src=x>";

const PROBLEMS: [PageProblem; 12] = [
    PageProblem::UnknownApplication,
    PageProblem::RedirectNotRegistered,
    PageProblem::MissingParameter("state"),
    PageProblem::RepeatedParameter("redirectUri"),
    PageProblem::InvalidParameter("clientId"),
    PageProblem::FormExpired,
    PageProblem::NotFound,
    PageProblem::WrongMethod,
    PageProblem::TooMany { quota: Some(QuotaName::Pages), retry_after_seconds: 30 },
    PageProblem::Refused { status: 403 },
    PageProblem::DiskFull,
    PageProblem::ServerError,
];

pub(super) fn shell(lang: Lang, href: &str) -> Shell<'static> {
    Shell {
        lang,
        language_href: Some(href.to_owned()),
        brand: &BRAND,
        files: &FILES,
        is_alone: true,
        account: Account::Unknown,
        area: Area::Elsewhere,
        flash: None,
    }
}

fn sign_in<'a>(lang: Lang, error: Option<SignInError>) -> SignInPage<'a> {
    SignInPage {
        shell: shell(lang, "/account-interlock?clientId=1&lang=en"),
        application_name: Some("별빛 채팅봇"),
        action: "/account-interlock/sign-in",
        hidden: &HIDDEN,
        login: "",
        error,
        people: &PEOPLE,
        has_registration: true,
        has_passwords: true,
        providers: &[],
        next: "/account-interlock?clientId=1",
    }
}

fn consent<'a>(lang: Lang, scopes: &'a [ScopeLine<'a>]) -> ConsentPage<'a> {
    ConsentPage {
        shell: shell(lang, "/account-interlock?clientId=1&lang=en"),
        application_name: "별빛 채팅봇",
        face: AppFace::default(),
        is_returning: false,
        organization: Some("주식회사 별"),
        verified: true,
        person_name: "달빛",
        person_image: None,
        scopes,
        redirect_host: "bot.example:8443",
        action: "/account-interlock/consent",
        hidden: &HIDDEN,
        switch_account_href: "/account-interlock/switch?clientId=1",
    }
}

fn error<'a>(lang: Lang, problem: PageProblem) -> ErrorPage<'a> {
    ErrorPage {
        shell: Shell { language_href: None, ..shell(lang, "") },
        problem,
        retry_href: Some("/account-interlock?a=1"),
        request_id: "r-42",
    }
}

fn scope_lines(lang: Lang) -> [ScopeLine<'static>; 4] {
    SCOPE_NAMES.map(|name| ScopeLine::new(name, lang))
}

/// Each page in each language and in each of its states, with a label for the failure message.
fn samples() -> Vec<(String, String)> {
    let mut samples = Vec::new();
    let mut add = |label: String, page: &dyn askama::DynTemplate| {
        let html = page.dyn_render().unwrap_or_else(|error| panic!("{label}: {error}"));
        samples.push((label, html));
    };
    for lang in Lang::ALL {
        for problem in [
            None,
            Some(SignInError::WrongLoginOrPassword),
            Some(SignInError::Missing),
            Some(SignInError::Expired),
            Some(SignInError::TooManyAttempts { quota: QuotaName::Passwords, retry_after_seconds: 61 }),
            Some(SignInError::Busy { retry_after_seconds: 2 }),
        ] {
            add(format!("sign-in {lang:?} {problem:?}"), &sign_in(lang, problem));
        }
        add(
            format!("sign-in {lang:?} alone"),
            &SignInPage { people: &[], login: "dal", ..sign_in(lang, None) },
        );
        add(
            format!("sign-in {lang:?} without an application"),
            &SignInPage { application_name: None, ..sign_in(lang, None) },
        );
        let providers = [ProviderButton {
            label: "회사 계정",
            action: "/sign-in/upstream/company".to_owned(),
            csrf: "c5rF".to_owned(),
        }];
        for has_passwords in [true, false] {
            add(
                format!("sign-in {lang:?} with a provider, passwords: {has_passwords}"),
                &SignInPage { providers: &providers, has_passwords, ..sign_in(lang, None) },
            );
        }
        let hostile_people = [SeededPerson { login: HOSTILE, channel_name: HOSTILE, description: HOSTILE }];
        let hostile_hidden = [("csrf", HOSTILE)];
        add(
            format!("sign-in {lang:?} hostile"),
            &SignInPage {
                application_name: Some(HOSTILE),
                login: HOSTILE,
                shell: shell(lang, HOSTILE),
                hidden: &hostile_hidden,
                people: &hostile_people,
                ..sign_in(lang, None)
            },
        );
        let scopes = scope_lines(lang);
        add(format!("consent {lang:?}"), &consent(lang, &scopes));
        add(format!("consent {lang:?} reads"), &consent(lang, &scopes[..1]));
        add(format!("consent {lang:?} acts"), &consent(lang, &scopes[2..]));
        add(format!("consent {lang:?} nothing"), &consent(lang, &[]));
        let hostile_scopes = [ScopeLine::new(HOSTILE, lang)];
        add(
            format!("consent {lang:?} hostile"),
            &ConsentPage {
                application_name: HOSTILE,
                organization: Some(HOSTILE),
                person_name: HOSTILE,
                person_image: Some("/\"><script>"),
                redirect_host: HOSTILE,
                switch_account_href: HOSTILE,
                ..consent(lang, &hostile_scopes)
            },
        );
        for problem in PROBLEMS {
            add(format!("error {lang:?} {problem:?}"), &error(lang, problem));
        }
        add(
            format!("error {lang:?} hostile"),
            &ErrorPage { request_id: HOSTILE, ..error(lang, PageProblem::ServerError) },
        );
    }
    samples
}

/// The opening tags of a page with their attributes. Attribute values are escaped on these pages, so the
/// first `>` ends a tag.
pub(super) fn tags(html: &str) -> Vec<&str> {
    html.split('<').skip(1).filter_map(|tag| tag.split('>').next()).collect()
}

/// The names and values of a tag's attributes.
fn attributes(tag: &str) -> Vec<(&str, &str)> {
    let mut attributes = Vec::new();
    let mut rest = tag.split_once(' ').map_or("", |(_, rest)| rest).trim();
    while let Some((name, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"').expect("the end of a value");
        // Attributes without a value (`required`) precede the name.
        attributes.push((name.rsplit(' ').next().expect("a name"), value));
        rest = after;
    }
    attributes
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    attributes(tag).into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[test]
fn every_page_has_a_language_one_heading_and_one_title() {
    for (label, html) in samples() {
        let lang = if label.contains("Ko") { "ko" } else { "en" };
        assert!(html.starts_with(&format!("<!DOCTYPE html>\n<html lang=\"{lang}\">")), "{label}");
        for (tag, count) in [("<h1", 1), ("<title>", 1), ("<main", 1)] {
            assert_eq!(html.matches(tag).count(), count, "{label}: {tag}");
        }
        assert!(html.trim_end().ends_with("</html>"), "{label}");
    }
}

#[test]
fn a_page_has_no_script_and_loads_nothing_from_other_hosts() {
    for (label, html) in samples() {
        for tag in tags(&html) {
            let element = tag.split([' ', '/']).next().expect("an element");
            assert!(!["script", "iframe", "object", "embed", "base"].contains(&element), "{label}: {tag}");
            for (name, value) in attributes(tag) {
                assert!(!name.starts_with("on") && name != "style", "{label}: {tag}");
                assert!(!value.contains("http"), "{label}: {tag}");
                if name == "src" {
                    assert!(value.starts_with('/') || value.starts_with("data:"), "{label}: {tag}");
                }
            }
        }
    }
}

#[test]
fn a_page_has_one_style_sheet_of_this_origin_and_no_style_of_its_own() {
    for (label, html) in samples() {
        let link = format!("<link rel=\"stylesheet\" href=\"{}\">", FILES.style.href);
        assert_eq!(html.matches(&link).count(), 1, "{label}");
        assert!(!html.contains("<style") && !html.contains(" style="), "{label}");
    }
}

#[test]
fn every_field_has_a_label_and_a_hint_for_the_password_manager() {
    for (label, html) in samples() {
        let tags = tags(&html);
        let mut ids: Vec<_> = tags.iter().filter_map(|tag| attribute(tag, "id")).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{label}: an id occurs twice");
        for tag in &tags {
            for reference in
                ["for", "aria-describedby", "aria-labelledby"].iter().filter_map(|r| attribute(tag, r))
            {
                assert!(ids.contains(&reference), "{label}: {tag}");
            }
            if tag.starts_with("input ") && attribute(tag, "type") != Some("hidden") {
                let id = attribute(tag, "id").expect("an id");
                assert!(tags.iter().any(|other| attribute(other, "for") == Some(id)), "{label}: {tag}");
                assert!(attribute(tag, "autocomplete").is_some(), "{label}: {tag}");
            }
            if tag.starts_with("img ") {
                assert!(attribute(tag, "alt").is_some(), "{label}: {tag}");
            }
        }
    }
}

#[test]
fn hostile_names_are_escaped() {
    for (label, html) in samples().into_iter().filter(|(label, _)| label.ends_with("hostile")) {
        assert!(!html.contains("<script"), "{label}");
        assert!(!html.contains("<img src=x"), "{label}");
        assert!(html.contains("&#60;script&#62;"), "{label}: the name is not there at all");
        assert!(!html.contains("\" onload"), "{label}");
        let body = html.split_once("<body").expect("a body").1;
        // Values that a form sends back are kept byte for byte. Displayed text must not change the text
        // direction.
        for line in body.lines().filter(|line| line.contains('\u{202E}')) {
            assert!(line.contains("value=\"\u{202E}") || line.contains("href=\"\u{202E}"), "{label}: {line}");
            assert_eq!(line.matches('\u{202E}').count(), 1, "{label}: {line}");
        }
    }
}

#[test]
fn a_name_of_ten_thousand_characters_does_not_fill_the_page() {
    let name = "별".repeat(10_000);
    for lang in Lang::ALL {
        let people = [SeededPerson { login: "a", channel_name: &name, description: &name }];
        let pages = [
            SignInPage { application_name: Some(&name), people: &people, ..sign_in(lang, None) }.render(),
            ConsentPage {
                application_name: &name,
                organization: Some(&name),
                person_name: &name,
                ..consent(lang, &scope_lines(lang))
            }
            .render(),
            ErrorPage { request_id: &name, ..error(lang, PageProblem::ServerError) }.render(),
        ];
        for page in pages {
            let page = page.unwrap();
            assert!(page.contains('…'));
            assert!(page.matches('별').count() < 1_000);
        }
    }
}

#[test]
fn the_redirect_host_is_never_shortened() {
    let host = format!("{}evil.example:65535", "bank.example.".repeat(18));
    let html = ConsentPage { redirect_host: &host, ..consent(Lang::Ko, &[]) }.render().unwrap();
    assert!(html.contains(&host));
}

#[test]
fn the_sign_in_form_keeps_its_values_but_never_a_password() {
    for lang in Lang::ALL {
        let html = SignInPage { login: "da\"l", ..sign_in(lang, Some(SignInError::WrongLoginOrPassword)) };
        let html = html.render().unwrap();
        let tags = tags(&html);
        let field = |name| *tags.iter().find(|tag| attribute(tag, "name") == Some(name)).expect(name);
        assert_eq!(attribute(field("login"), "value"), Some("da&#34;l"));
        assert_eq!(attribute(field("password"), "type"), Some("password"));
        assert_eq!(attribute(field("password"), "value"), None);
        // The login is filled in, so the password field has the focus.
        assert!(field("password").contains("autofocus") && !field("login").contains("autofocus"));
        assert_eq!(html.matches(" autofocus").count(), 1);
        assert_eq!(html.matches("aria-invalid=\"true\" aria-describedby=\"error\"").count(), 2);
        assert!(html.contains("role=\"alert\""));
        // Once in the form with the fields, once in the form with the seeded people.
        for (name, value) in
            [("csrf", "c5rF"), ("request", "clientId=1&#38;state=&#34;2&#34;"), ("lang", lang.tag())]
        {
            let input = format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">");
            assert_eq!(html.matches(&input).count(), 2, "{name}");
        }
    }
}

#[test]
fn seeded_people_are_offered_only_when_there_are_any() {
    let with = sign_in(Lang::Ko, None).render().unwrap();
    let without = SignInPage { people: &[], ..sign_in(Lang::Ko, None) }.render().unwrap();
    assert!(
        with.contains("name=\"person\" value=\"byeol\"") && with.contains("name=\"person\" value=\"dal\"")
    );
    assert!(!without.contains("name=\"person\"") && !without.contains("샌드박스"));
    assert_eq!(without.matches("<form").count(), 1);
}

#[test]
fn consent_has_two_buttons_and_no_default() {
    for (lang, allow, deny) in [(Lang::Ko, "허용", "거부"), (Lang::En, "Allow", "Deny")] {
        let html = consent(lang, &scope_lines(lang)).render().unwrap();
        assert!(html.contains(&format!("name=\"decision\" value=\"allow\">{allow}</button>")));
        assert!(html.contains(&format!("name=\"decision\" value=\"deny\">{deny}</button>")));
        assert_eq!(html.matches("name=\"decision\"").count(), 2);
        assert!(!html.contains("autofocus"));
        assert!(html.contains("bot.example:8443"));
    }
}

#[test]
fn scopes_that_write_come_before_scopes_that_read() {
    for lang in Lang::ALL {
        let html = consent(lang, &scope_lines(lang)).render().unwrap();
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is missing"));
        let (acts, reads) = (at("id=\"acts\""), at("id=\"reads\""));
        assert!(acts < reads);
        for name in SCOPE_NAMES {
            let (description, acts_here) = (at(scope_description(name, lang)), scope_acts(name));
            assert_eq!(html.matches(&format!(">{name}</span>")).count(), usize::from(lang == Lang::Ko));
            assert_eq!(description > acts && description < reads, acts_here, "{name}");
        }
        assert!(html.contains(scope_warning("방송 스트림키 조회", lang).unwrap()));

        let reads_only = consent(lang, &scope_lines(lang)[..1]).render().unwrap();
        assert!(!reads_only.contains("id=\"acts\"") && reads_only.contains("id=\"reads\""));
    }
}

#[test]
fn only_an_organization_can_be_shown_as_verified() {
    for (organization, verified, shown) in [
        (Some("주식회사 별"), true, true),
        (Some("주식회사 별"), false, false),
        (None, true, false),
        (None, false, false),
    ] {
        let html = ConsentPage { organization, verified, ..consent(Lang::En, &[]) }.render().unwrap();
        assert_eq!(html.contains("Verified organization"), shown, "{organization:?} {verified}");
        assert_eq!(html.contains("Not verified"), !shown, "{organization:?} {verified}");
    }
}

#[test]
fn a_picture_of_another_host_is_replaced_by_the_initial() {
    for (image, shown) in
        [(Some("/images/1.png"), true), (Some("https://evil.example/1.png"), false), (None, false)]
    {
        let html = ConsentPage { person_image: image, ..consent(Lang::Ko, &[]) }.render().unwrap();
        assert_eq!(html.contains("<img"), shown, "{image:?}");
    }
}

#[test]
fn every_problem_has_a_status_a_next_step_and_the_request_id_in_both_languages() {
    for lang in Lang::ALL {
        for problem in PROBLEMS {
            let html = error(lang, problem).render().unwrap();
            assert!((400..=599).contains(&problem.status()));
            assert!(html.contains(&format!("<dd>{}</dd>", problem.status())), "{problem:?}");
            assert!(html.contains(&problem.next_step(lang)) && html.contains(problem.explanation(lang)));
            assert!(html.contains("<dd>r-42</dd>"));
        }
        for name in ["state", "redirectUri"] {
            let html = error(lang, PageProblem::MissingParameter(name)).render().unwrap();
            assert!(html.contains(name));
        }
    }
}

#[test]
fn english_pages_hold_korean_only_in_the_link_to_the_other_language() {
    let is_korean = |c: char| ('가'..='힣').contains(&c);
    let scopes = scope_lines(Lang::En);
    let page = ConsentPage {
        application_name: "Star Bot",
        organization: Some("Star Inc."),
        person_name: "Moon",
        ..consent(Lang::En, &scopes)
    };
    let html = page.render().unwrap();
    for line in html.split("<body").nth(1).unwrap().lines().filter(|line| line.chars().any(is_korean)) {
        assert!(line.contains("hreflang=\"ko\""), "{line}");
    }
}

#[test]
fn many_scopes_that_only_read_are_folded_and_warnings_are_not() {
    let names = ["유저 정보 조회", "방송 스트림키 조회", "채팅 메시지 조회", "후원 조회", "구독 조회"];
    let scopes = names.map(|name| ScopeLine::new(name, Lang::En));
    let html = consent(Lang::En, &scopes).render().unwrap();
    let (before, folded) =
        html.split_once("<details class=\"fold\"><summary>Show all 5</summary>").expect("a fold");
    assert!(before.contains("Anyone who has your stream key") && !folded.contains("Anyone who has"));
    assert!(folded.contains("See your stream key."));
    assert!(!consent(Lang::En, &scopes[..4]).render().unwrap().contains("<details"));
}

#[test]
fn who_comes_back_sees_the_new_scopes_first() {
    let known = ScopeLine { is_known: true, ..ScopeLine::new("방송 스트림키 조회", Lang::En) };
    let scopes = [known, ScopeLine::new("채팅 메시지 쓰기", Lang::En)];
    let html = ConsentPage { is_returning: true, ..consent(Lang::En, &scopes) }.render().unwrap();
    let (new, old) = html.split_once("What you allowed last time (1)").expect("a fold");
    assert!(new.contains("Send chat messages") && new.contains("class=\"badge warn\">New<"));
    assert!(old.contains("See your stream key.") && !html.contains("Anyone who has your stream key"));
    let html = ConsentPage { is_returning: true, ..consent(Lang::En, &scopes[..1]) }.render().unwrap();
    assert!(html.contains("It asks for what you allowed last time."));
}
