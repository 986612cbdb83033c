//! The pages for people, besides those of an application's sign-in.

mod accounts;
mod application_offers;
mod attacks;
mod brand;
mod browser_sessions;
mod confirmations;
mod connected_apps;
mod developer_audit;
mod developer_connection;
mod developer_find;
mod developer_sessions;
mod developer_usage;
mod developer_webhooks;
mod developers;
mod docs;
mod docs_samples;
mod docs_search;
mod docs_try;
mod journeys;
mod landing;
mod operator;
mod providers;
mod sign_in;
mod sizes;
mod studio;
mod studio_chat;
mod studio_managers;

use domain::secret::SecretHash;
use testkit::{Browser, Form, Page, Person, World};

/// The headers of a page with navigation.
#[track_caller]
pub(crate) fn assert_guarded(page: &Page) {
    let header = |name| page.response.header(name).unwrap_or_default();
    let policy = header("content-security-policy");
    for directive in [
        "default-src 'none'",
        "style-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.split("; ").any(|part| part == directive), "{directive} in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'), "{policy}");
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("x-frame-options"), "DENY");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("referrer-policy"), "no-referrer");
    assert_eq!(header("cache-control"), "no-store");
    let html = page.response.text();
    for forbidden in ["<script>", "javascript:", " onclick", " style=\"", "src=\"http", "<style"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}

/// A browser in which a person is signed in.
pub(crate) async fn signed_in(world: &World, person: &Person) -> Browser {
    let mut browser = world.browser();
    let form = browser.open("/sign-in").await.form("login");
    let form = form.fill("login", &person.login).fill("password", &person.password);
    browser.submit(&form).await.location();
    browser
}

/// A form that a browser may not post: it is refused, or, without a sign-in, leads to the sign-in first.
#[track_caller]
pub(crate) fn assert_not_done(page: &Page, context: &str) {
    let status = page.response.status;
    let is_led = status == 303 && page.location().starts_with("/sign-in");
    assert!(status == 400 || is_led, "{context}: {status} {}", page.response.text());
}

/// Sends a form that asks a question before it takes effect, and answers the question.
pub(crate) async fn submit_surely(browser: &mut Browser, form: &Form) -> Page {
    let question = browser.submit(form).await;
    assert_eq!(question.response.status, 200, "{}", question.response.text());
    browser.submit(&question.form("sure")).await
}

/// The form with the proof of this browser for its address, which a page of that address would give.
pub(crate) fn proven(browser: &Browser, mut form: Form) -> Form {
    let token = SecretHash::of(browser.cookie("stagedoor_browser").expect("a cookie"));
    let proof = SecretHash::of(&format!("{}\nform\n{}", token.as_str(), form.action));
    form.fields.retain(|(name, _)| name != "csrf");
    form.fields.push(("csrf".to_owned(), proof.as_str().to_owned()));
    form
}
