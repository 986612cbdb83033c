//! What a stolen sign-in must not do asks for a fresh proof, and keeps what was typed.

use std::time::Duration;

use serde_json::json;
use testkit::{Browser, Form, Page, Request, Setup, World, both};

use super::attacks::TABLE;
use super::developers::{address, form, register, with};
use super::{assert_guarded, proven, signed_in};

/// The form of the page that asks for the proof.
#[track_caller]
fn asked(page: &Page, action: &str) -> Form {
    assert_eq!(page.response.status, 403, "{action}: {}", page.response.text());
    assert_guarded(page);
    let form = page.form("confirmPassword");
    assert_eq!(form.action, action);
    form
}

/// The person `gaon`, an administrator with an application, eleven minutes after the sign-in.
async fn late(world: &World) -> (Browser, testkit::Person, testkit::Application) {
    let person = world.person("gaon").name("가온").create().await;
    let role = Request::put("/platform/v1/channels/gaon/operator-role").json(&json!({ "role": "admin" }));
    world.operator(role).await.content();
    let mut browser = signed_in(world, &person).await;
    let app = register(&mut browser, "봇", "").await;
    world.advance(Duration::from_mins(11));
    (browser, person, app)
}

/// Forms that an old sign-in may post. Every other one asks for a fresh proof.
const WITHOUT_PROOF: &[(&str, &[&str])] = &[
    (
        "it asks for the password itself, each time",
        &[
            "/account/email",
            "/account/password",
            "/account/delete",
            "/account/two-factor/confirm",
            "/account/two-factor/codes",
            "/account/two-factor/off",
        ],
    ),
    (
        "it is a way to a proof, or is done with a link that was sent to the address",
        &["/account/confirm/{name}", "/account/email/link", "/account/email/proof"],
    ),
    (
        "it takes access away only",
        &[
            "/account/apps/{clientId}",
            "/account/sessions",
            "/account/sessions/{sessionId}",
            "/developers/applications/{clientId}/secrets/{secretId}",
            "/developers/applications/{clientId}/leak",
            "/developers/applications/{clientId}/sessions/{sessionKey}",
            "/developers/applications/{clientId}/webhook/removal",
            "/developers/applications/{clientId}/requests/{requestId}",
            "/developers/organizations/{organizationId}/requests/{requestId}",
            "/developers/invitations",
            "/studio/managers/remove",
        ],
    ),
    (
        "it changes only what no credential depends on, or what can be taken back",
        &[
            "/developers/register",
            "/developers/applications/{clientId}/settings",
            "/developers/applications/{clientId}/logo",
            "/developers/applications/{clientId}/scopes",
            "/developers/applications/{clientId}/drops",
            "/developers/applications/{clientId}/disabled",
            "/developers/applications/{clientId}/deleted",
            "/developers/applications/{clientId}/connection",
            "/developers/applications/{clientId}/webhook/test",
            "/developers/applications/{clientId}/webhook/deliveries",
            "/developers/applications/{clientId}/webhook/deliveries/{messageId}",
            "/developers/new-organization",
            "/developers/organizations/{organizationId}",
            "/developers/organizations/{organizationId}/verification",
            "/operator/requests/{requestId}",
            "/operator/organizations/{organizationId}",
            "/operator/webhooks/{clientId}",
        ],
    ),
    (
        "it makes a secret sign that was made with a proof, or takes over what another person gives",
        &[
            "/developers/applications/{clientId}/webhook/secrets/{secretId}",
            "/developers/offers/{clientId}",
            "/developers/organizations/{organizationId}/invitation",
        ],
    ),
];

/// A new form fails here until it asks for a proof or has its reason above.
#[tokio::test(flavor = "multi_thread")]
async fn every_form_asks_for_a_proof_or_has_a_reason() {
    both(Setup::default(), |world| async move {
        let (mut browser, _, _) = late(&world).await;
        let listed: Vec<&str> = WITHOUT_PROOF.iter().flat_map(|(_, paths)| *paths).copied().collect();
        let mut asking = Vec::new();
        let parts = ["/account", "/developers", "/operator", "/studio/managers", "/studio/stream-key"];
        for (method, path, _) in TABLE {
            // The other forms of the studio are of the broadcast and the chat.
            if *method != "POST" || !parts.iter().any(|part| path.starts_with(part)) {
                continue;
            }
            let target: Vec<_> =
                path.split('/').map(|part| if part.starts_with('{') { "gaon" } else { part }).collect();
            let form = Form { action: target.join("/"), method: "post".to_owned(), ..Form::default() };
            let form = proven(&browser, form);
            let page = browser.submit(&form).await;
            let asks = page.response.status == 403 && page.response.text().contains("confirmPassword");
            if asks {
                asking.push(*path);
            }
            assert_ne!(asks, listed.contains(path), "{path}: {}", page.response.status);
        }
        assert!(asking.len() >= 19, "{asking:?}");
    })
    .await;
}

/// The pages for others are no way around an operator's own password and second step.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_does_not_reset_the_own_account() {
    both(Setup::default(), |world| async move {
        let (mut browser, person, _) = late(&world).await;
        world.person("byeol").create().await;
        let own = browser.open("/operator/people/gaon").await;
        for action in ["remove-two-factor", "reset-password"] {
            let pressed = ("action".to_owned(), action.to_owned());
            assert!(own.forms.iter().all(|form| !form.buttons.contains(&pressed)), "{action}");
            let others = browser.open("/operator/people/byeol").await;
            let form = others.forms.iter().find(|form| form.buttons.contains(&pressed)).expect("a form");
            let confirm = browser.submit(&form.clone().press("action", action)).await;
            let confirm = match confirm.response.status {
                403 => asked(&confirm, "/operator/people/byeol").fill("confirmPassword", &person.password),
                _ => form.clone().press("action", action),
            };
            assert!(matches!(browser.submit(&confirm).await.response.status, 200 | 303), "{action}");
            let own = Form { action: "/operator/people/gaon".to_owned(), ..form.clone() };
            let own = proven(&browser, own.press("action", action));
            assert_eq!(browser.submit(&own).await.response.status, 404, "{action}");
        }
    })
    .await;
}

/// Each act, with the page of its form and a part of what is done.
#[tokio::test(flavor = "multi_thread")]
async fn each_act_that_outlives_a_stolen_sign_in_asks_for_a_proof() {
    both(Setup::default(), |world| async move {
        let (mut browser, person, app) = late(&world).await;
        world.person("byeol").create().await;
        let secrets = address(&app, "/secrets");
        let acts = [
            (secrets.clone(), secrets, "made-secret"),
            ("/studio/stream-key".to_owned(), "/studio/stream-key".to_owned(), "value="),
            ("/studio/stream-key".to_owned(), "/studio/stream-key/replace".to_owned(), ""),
            ("/operator/keys".to_owned(), "/operator/keys".to_owned(), "id=\"once\""),
            ("/operator/people/byeol".to_owned(), "/operator/people/byeol/role".to_owned(), ""),
        ];
        for (page, action, done) in acts {
            let opened = browser.open(&page).await;
            let mut act = form(&opened, &action);
            if action == "/operator/keys" {
                act = act.fill("name", "수집기 <b>").fill("role", "read");
            }
            if action.ends_with("/role") {
                act = act.fill("role", "read");
            }
            let confirm = asked(&browser.submit(&act).await, &action);
            let wrong = browser.submit(&confirm.clone().fill("confirmPassword", "wrong")).await;
            assert_eq!(wrong.response.status, 422, "{action}");
            assert!(wrong.response.text().contains("현재 비밀번호와 다릅니다"), "{action}");
            let again = wrong.form("confirmPassword");
            let went_on = browser.submit(&again.fill("confirmPassword", &person.password)).await;
            assert!(matches!(went_on.response.status, 200 | 303), "{action}: {}", went_on.response.text());
            assert!(went_on.response.text().contains(done), "{action}: {}", went_on.response.text());
            // The next act of this browser within ten minutes is not asked again.
            let next = browser.open("/studio/stream-key").await;
            assert_eq!(browser.submit(&form(&next, "/studio/stream-key")).await.response.status, 200);
            world.advance(Duration::from_mins(10));
        }
        let keys = world.operator(Request::get("/platform/v1/keys")).await.content();
        assert_eq!(keys["data"][0]["name"], "수집기 <b>", "what was typed is kept");
        let listed = world.operator(Request::get("/platform/v1/operators")).await.content();
        assert_eq!(listed["data"].as_array().map(Vec::len), Some(2));
    })
    .await;
}

/// A copied cookie does not become fresh with the proof of its person, and does not outlive a new password.
#[tokio::test(flavor = "multi_thread")]
async fn a_proof_and_a_new_password_sign_copies_of_the_cookie_out() {
    both(Setup::default(), |world| async move {
        let (mut browser, person, _) = late(&world).await;
        let page = browser.open("/studio/stream-key").await;
        let confirm = asked(&browser.submit(&form(&page, "/studio/stream-key")).await, "/studio/stream-key");
        let password = async |browser: &mut Browser| {
            let form = browser.open("/account/password").await.form("newPassword");
            let form = form.fill("password", &person.password).fill("newPassword", "a new and good one 7");
            browser.submit(&form).await.response.status
        };
        let others = async |browser: &mut Browser| {
            let page = browser.open("/account/sessions").await;
            browser.submit(&form(&page, "/account/sessions")).await.response.status
        };
        signed_in(&world, &person).await;
        let mut copy = browser.clone();
        let shown = browser.submit(&confirm.fill("confirmPassword", &person.password)).await;
        assert_eq!(shown.response.status, 200);
        // The forms of the answer belong to the new cookie.
        assert_eq!(browser.submit(&form(&shown, "/studio/stream-key/replace")).await.response.status, 303);
        for n in 0..3 {
            assert_eq!(copy.open("/account").await.response.status, 303, "{n}");
            assert_eq!(browser.open("/account").await.response.status, 200, "{n}");
            copy = browser.clone();
            match n {
                0 => assert_eq!(others(&mut browser).await, 303),
                1 => assert_eq!(password(&mut browser).await, 303),
                _ => {}
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_cannot_be_guessed_and_is_of_its_person() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        let (mut browser, person, app) = late(&world).await;
        let secrets = address(&app, "/secrets");
        let act = form(&browser.open(&secrets).await, &secrets);
        let confirm = asked(&browser.submit(&act).await, &secrets);
        let mut statuses = Vec::new();
        for _ in 0..12 {
            let wrong = browser.submit(&confirm.clone().fill("confirmPassword", "wrong")).await;
            statuses.push(wrong.response.status);
        }
        assert_eq!((statuses[0], statuses[11]), (422, 429), "{statuses:?}");
        let right = confirm.clone().fill("confirmPassword", &person.password);
        assert_eq!(browser.submit(&right).await.response.status, 429);
        let stranger = world.person("stranger").create().await;
        let mut strangers = signed_in(&world, &stranger).await;
        let foreign = with(confirm, "confirmPassword", &stranger.password);
        assert_eq!(strangers.submit(&foreign).await.response.status, 400);
    })
    .await;
}
