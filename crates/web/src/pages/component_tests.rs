//! Renders the layout and every component from samples.

use domain::Timestamp;

use super::tests::{HOSTILE, shell, tags};
use super::*;
use crate::FormTarget;

/// A page with every component.
#[derive(Template)]
#[template(path = "pages/samples.html")]
struct Samples<'a> {
    shell: Shell<'a>,
    text: &'a str,
    form: FormTarget,
    errors: FieldErrors,
    moment: Moment,
}

impl Samples<'_> {
    fn title(&self) -> &str {
        self.text
    }
}

fn samples<'a>(lang: Lang, account: Account<'a>, text: &'a str) -> String {
    let mut errors = FieldErrors::default();
    errors.add("name", text);
    errors.add("about", text);
    let at = Timestamp::from_millis(1_767_225_600_000);
    let page = Samples {
        shell: Shell { is_alone: false, account, flash: Some(Flash::SignedOut), ..shell(lang, "/?lang=en") },
        text,
        form: FormTarget { action: "/here".to_owned(), csrf: "c5rF".to_owned() },
        errors,
        moment: Moment::of(at, at.plus_ms(7_200_000), lang),
    };
    page.render().expect("a template")
}

#[test]
fn every_component_names_what_belongs_together() {
    for lang in Lang::ALL {
        let html = samples(lang, Account::SignedOut, "글");
        for expected in [
            "<h1>글</h1>",
            "<section class=\"panel\" aria-labelledby=\"part\"><h2 id=\"part\">글</h2>",
            "<label for=\"f-name\">글</label>",
            "id=\"f-name\" name=\"name\" type=\"text\" value=\"글\" autocomplete=\"off\" required aria-invalid=\"true\" \
             aria-describedby=\"f-name-hint f-name-error\"",
            "id=\"f-fine\" name=\"fine\" type=\"url\" value=\"글\" autocomplete=\"url\" aria-describedby=\"\"",
            "<textarea id=\"f-about\" name=\"about\" rows=\"3\"",
            "<span class=\"badge warn\">글</span>",
            "<p class=\"notice bad\" role=\"alert\">",
            "<time datetime=\"2026-01-01T00:00:00",
            "data-copy=\"secret\"",
            "rel=\"prev\" href=\"/?page=1\"",
            "rel=\"next\" href=\"/?page=3\"",
            "<button class=\"button danger\" type=\"submit\">글</button><a class=\"button\" href=\"/\">글</a>",
            "<td data-label=\"글\">글</td>",
        ] {
            assert!(html.contains(expected), "{expected}: {html}");
        }
        assert_eq!(html.matches("name=\"csrf\" value=\"c5rF\"").count(), 2);
        let ids: Vec<_> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for id in &ids {
            assert_eq!(ids.iter().filter(|other| *other == id).count(), 1, "{id}");
        }
    }
}

#[test]
fn the_components_escape_what_they_show() {
    let html =
        samples(Lang::En, Account::Person { name: HOSTILE, sign_out: "p", is_operator: false }, HOSTILE);
    assert!(!html.contains("<script>") && !html.contains("<img src=x") && !html.contains("\" onload"));
    let handlers =
        tags(&html).into_iter().filter(|tag| tag.contains(" onload=") && !tag.contains("&#34; onload="));
    assert_eq!(handlers.count(), 0);
}

#[test]
fn the_header_says_who_is_signed_in() {
    let signed_out = samples(Lang::En, Account::SignedOut, "x");
    assert!(signed_out.contains("href=\"/sign-in\">Sign in</a>") && !signed_out.contains("/sign-out"));
    let person =
        samples(Lang::En, Account::Person { name: "Moon", sign_out: "proof", is_operator: true }, "x");
    assert!(person.contains("<bdi class=\"line\">Moon</bdi>") && !person.contains("/sign-in\""));
    assert!(person.contains("name=\"csrf\" value=\"proof\""));
    let unknown = samples(Lang::En, Account::Unknown, "x");
    assert!(!unknown.contains("/sign-in\"") && !unknown.contains("/sign-out"));
    for html in [signed_out, person, unknown] {
        assert!(html.contains("<a class=\"skip\" href=\"#main\">Skip to the content</a>"));
        assert!(html.contains("<p class=\"flash\" role=\"status\"><span>You are signed out.</span></p>"));
    }
}
