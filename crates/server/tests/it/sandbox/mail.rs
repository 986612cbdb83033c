//! Messages to people of a sandbox without a mail hook.

use serde_json::{Value, json};
use testkit::{Browser, Page, Request, patiently};

use crate::cli::process::Sandbox;

/// The first message of this kind.
async fn mail(sandbox: &Sandbox, kind: &str) -> Value {
    patiently(kind, async {
        loop {
            let request = Request::get("/sandbox/v1/log?kind=mail&within=60s");
            let records = sandbox.api.operator(request).await.content()["data"].clone();
            if let Some(found) = records.as_array().into_iter().flatten().find(|one| one["mail"] == kind) {
                return found.clone();
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_of_a_forgotten_password_is_in_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let base = sandbox.world["baseUrl"].as_str().expect("a text").to_owned();
    let address = sandbox.api.address();
    let mut browser = Browser::new(address);
    let form = browser.open("/register").await.form("channelName");
    let form = form.fill("login", "dal").fill("channelName", "달").fill("email", "dal@example.com");
    assert_eq!(browser.submit(&form.fill("password", "wolkenbruchig")).await.location(), "/account");
    let mut other = Browser::new(address);
    let form = other.open("/reset-password").await.form("account");
    assert_eq!(other.submit(&form.fill("account", "dal@example.com")).await.response.status, 200);
    // The registration sends a link that proves the address.
    let mail = mail(&sandbox, "password_reset").await;
    assert_eq!(mail["to"], json!("dal@example.com"));
    let link =
        mail["link"].as_str().expect("a link").strip_prefix(&base).expect("of this sandbox").to_owned();
    let form = other.open(&link).await.form("newPassword");
    assert_eq!(other.submit(&form.fill("newPassword", "regenbogenhaut")).await.location(), "/sign-in");
}

/// Fills and sends the form of a page whose address ends so.
async fn post(browser: &mut Browser, page: &str, end: &str, fields: &[(&str, &str)]) -> Page {
    let opened = browser.open(page).await;
    let form = opened.forms.iter().find(|form| form.action.ends_with(end));
    let mut form = form.unwrap_or_else(|| panic!("no form {end}: {}", opened.response.text())).clone();
    form.fields.retain(|(name, _)| fields.iter().all(|(filled, _)| filled != name));
    form.fields.extend(fields.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    let done = browser.submit(&form).await;
    assert!(matches!(done.response.status, 200 | 303), "{end}: {}", done.response.text());
    done
}

/// The acts of the developer center that a stolen sign-in would use, and a link that an operator issues.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_with_a_sign_in_is_told_to_its_person() {
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Sandbox::start(folder.path(), &[]).await;
    let base = sandbox.world["baseUrl"].as_str().expect("a text").to_owned();
    let browser = &mut Browser::new(sandbox.api.address());
    let form = browser.open("/register").await.form("channelName");
    let form = form.fill("login", "dal").fill("channelName", "달").fill("email", "dal@example.com");
    browser.submit(&form.fill("password", "wolkenbruchig")).await.location();
    let proof = mail(&sandbox, "email_proof").await;
    let proof = proof["link"].as_str().and_then(|link| link.strip_prefix(&base)).expect("a link").to_owned();
    post(browser, &proof, "/account/email/proof", &[]).await;

    let app = [("name", "봇"), ("redirectUris", "https://bot.example/cb")];
    let made = post(browser, "/developers/register", "/developers/register", &app).await;
    let app = made
        .response
        .text()
        .split("/developers/applications/")
        .nth(1)
        .and_then(|rest| rest.split(['"', '/']).next());
    let app = format!("/developers/applications/{}", app.expect("an application"));
    let url = [("url", "https://bot.example/hook")];
    post(browser, &format!("{app}/webhook"), &format!("{app}/webhook"), &url).await;
    mail(&sandbox, "webhook_secret_made").await;
    post(browser, &format!("{app}/manage"), "/offer", &[("login", "viewer-mina")]).await;
    mail(&sandbox, "application_offered").await;
    let new = "/developers/new-organization";
    let made = post(browser, new, new, &[("organizationName", "달 게임즈")]).await;
    let invited = [("login", "viewer-mina"), ("role", "admin")];
    post(browser, made.location(), "/invitations", &invited).await;
    mail(&sandbox, "member_changed").await;

    let found = Request::get("/platform/v1/channels?login=dal");
    let found = sandbox.api.operator(found).await.content();
    let id = found["data"][0]["channelId"].as_str().expect("an id");
    let reset = Request::post(format!("/platform/v1/channels/{id}/password-reset"));
    sandbox.api.operator(reset).await.content();
    mail(&sandbox, "password_reset_issued").await;
}
