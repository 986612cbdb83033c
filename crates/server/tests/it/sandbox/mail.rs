//! Messages to people of a sandbox without a mail hook.

use serde_json::json;
use testkit::{Browser, Request, patiently};

use crate::cli::process::Sandbox;

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
    let mail = patiently("the message", async {
        loop {
            let request = Request::get("/sandbox/v1/log?kind=mail&within=10s");
            let records = sandbox.api.operator(request).await.content()["data"].clone();
            let found = records.as_array().into_iter().flatten().find(|one| one["mail"] == "password_reset");
            if let Some(found) = found {
                return found.clone();
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(mail["to"], json!("dal@example.com"));
    let link =
        mail["link"].as_str().expect("a link").strip_prefix(&base).expect("of this sandbox").to_owned();
    let form = other.open(&link).await.form("newPassword");
    assert_eq!(other.submit(&form.fill("newPassword", "regenbogenhaut")).await.location(), "/sign-in");
}
