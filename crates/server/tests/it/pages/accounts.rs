//! Accounts on pages: registration, password, reset, second step, removal.

use domain::limits::{CODE_FAILURES_MAX, TOTP_STEP_MS};
use domain::totp::TotpSecret;
use testkit::{Browser, Form, Page, Request, Setup, World, both, patiently};

use super::{assert_guarded, assert_not_done};
use crate::fixture::Fixture;

const PASSWORD: &str = "wolkenbruchig";
const NEW_PASSWORD: &str = "regenbogenhaut";

fn filled(form: &Form, fields: &[(&str, &str)]) -> Form {
    fields.iter().fold(form.clone(), |form, (name, value)| form.fill(name, value))
}

async fn register(world: &World, login: &str) -> Browser {
    let mut browser = world.browser();
    let page = browser.open("/register").await;
    assert_guarded(&page);
    let email = format!("{login}@example.com");
    let fields =
        [("login", login), ("channelName", "하늘 <b>방송국"), ("email", &email), ("password", PASSWORD)];
    let answer = browser.submit(&filled(&page.form("channelName"), &fields)).await;
    assert_eq!(answer.location(), "/account");
    browser
}

async fn sign_in(world: &World, login: &str, password: &str) -> (Browser, Page) {
    let mut browser = world.browser();
    let form = browser.open("/sign-in?next=/account").await.form("login");
    let page = browser.submit(&filled(&form, &[("login", login), ("password", password)])).await;
    (browser, page)
}

async fn is_signed_in(browser: &mut Browser) -> bool {
    browser.open("/account").await.response.status == 200
}

#[track_caller]
fn assert_wrong(page: &Page, field: &str, text: &str) {
    assert_eq!(page.response.status, 422, "{}", page.response.text());
    let html = page.response.text();
    let (_, error) = html.split_once(&format!("id=\"f-{field}-error\"")).expect("an error at the field");
    assert!(error.split("</p>").next().is_some_and(|error| error.contains(text)), "{error}");
}

/// The token of the latest link, from the record of the sandbox.
async fn issued_link(world: &World, channel: &str) -> String {
    let request = Request::post(format!("/platform/v1/channels/{channel}/password-reset"));
    let link = world.operator(request).await.content()["link"].as_str().expect("a link").to_owned();
    link[link.find("/reset-password").expect("the page")..].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_register_and_change_what_they_chose() {
    both(Setup::default(), |world| async move {
        let mut browser = register(&world, "haneul").await;
        let account = browser.open("/account").await;
        assert_guarded(&account);
        let html = account.response.text();
        assert!(html.contains("haneul@example.com") && html.contains("하늘 &#60;b&#62;방송국"), "{html}");

        let mut other = world.browser();
        let form = other.open("/register?lang=en").await.form("channelName");
        for (fields, field, text) in [
            ([("login", "haneul"), ("password", PASSWORD)], "login", "is taken already"),
            ([("login", "Nuri"), ("password", PASSWORD)], "login", "small letters"),
            ([("login", "nuri"), ("password", "kx9$Qv2")], "password", "at least 8 characters"),
            ([("login", "nuri"), ("password", "P@ssw0rd")], "password", "common"),
        ] {
            let page =
                other.submit(&filled(&form, &[&fields[..], &[("channelName", "누리")]].concat())).await;
            assert_wrong(&page, field, text);
            assert!(!page.response.text().contains(fields[1].1), "a password is never sent back");
        }
        let all = [("login", "A B"), ("channelName", " "), ("email", "x"), ("password", "short")];
        let page = other.submit(&filled(&form, &all)).await;
        for (field, text) in [
            ("login", "small letters"),
            ("channelName", "1 to"),
            ("email", "an e-mail address"),
            ("password", "at least 8 characters"),
        ] {
            assert_wrong(&page, field, text);
        }

        let (mut elsewhere, _) = sign_in(&world, "haneul", PASSWORD).await;
        let form = browser.open("/account/password").await.form("newPassword");
        let wrong =
            browser.submit(&filled(&form, &[("password", "wrong"), ("newPassword", NEW_PASSWORD)])).await;
        assert_wrong(&wrong, "password", "현재 비밀번호와 다릅니다");
        let right = [("password", PASSWORD), ("newPassword", NEW_PASSWORD)];
        assert_eq!(browser.submit(&filled(&form, &right)).await.location(), "/account");
        assert!(is_signed_in(&mut browser).await && !is_signed_in(&mut elsewhere).await);
        assert_eq!(sign_in(&world, "haneul", NEW_PASSWORD).await.1.location(), "/account");

        let form = browser.open("/account/email").await.form("email");
        let fields = [("email", ""), ("password", NEW_PASSWORD)];
        assert_eq!(browser.submit(&filled(&form, &fields)).await.location(), "/account");
        assert!(!browser.open("/account").await.response.text().contains("haneul@example.com"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_forgotten_password_names_no_account_and_a_link_works_once() {
    both(Setup::default(), |world| async move {
        let mut browser = register(&world, "haneul").await;
        let mut answers = Vec::new();
        for account in ["haneul", "haneul@example.com", "missing", "missing@example.com", ""] {
            let mut other = world.browser();
            let form = other.open("/reset-password").await.form("account");
            let page = other.submit(&form.clone().fill("account", account)).await;
            assert_eq!(page.response.status, 200);
            answers.push(page.response.text().to_owned());
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
        let channels = world.operator(Request::get("/platform/v1/channels?login=haneul")).await.content();
        let channel = channels["data"][0]["channelId"].as_str().expect("an id").to_owned();
        let link = issued_link(&world, &channel).await;
        let mut other = world.browser();
        let page = other.open(&link).await;
        assert_guarded(&page);
        let form = page.form("newPassword");
        assert_wrong(
            &other.submit(&form.clone().fill("newPassword", "12345678")).await,
            "newPassword",
            "순서대로",
        );
        assert_eq!(
            other.submit(&form.clone().fill("newPassword", NEW_PASSWORD)).await.location(),
            "/sign-in"
        );
        assert!(
            other
                .submit(&form.clone().fill("newPassword", PASSWORD))
                .await
                .response
                .text()
                .contains("이미 쓰였거나")
        );
        assert!(other.open(&link).await.response.text().contains("이미 쓰였거나"));
        assert!(!is_signed_in(&mut browser).await);
        assert_eq!(sign_in(&world, "haneul", NEW_PASSWORD).await.1.location(), "/account");
    })
    .await;
}

/// Turns the second step on, and gives the secret and the recovery codes.
async fn turn_on(world: &World, browser: &mut Browser) -> (TotpSecret, Vec<String>) {
    let page = browser.open("/account/two-factor").await;
    let begin = page.forms.iter().find(|form| form.action.ends_with("/begin")).expect("a form").clone();
    assert_eq!(browser.submit(&begin).await.location(), "/account/two-factor");
    let page = browser.open("/account/two-factor").await;
    assert_guarded(&page);
    let html = page.response.text().to_owned();
    assert!(html.contains("<svg class=\"qr\""));
    let (_, uri) = html.split_once("otpauth://totp/").expect("an address");
    let (_, secret) = uri.split_once("secret=").expect("a secret");
    let secret = TotpSecret::from_base32(&secret[..32]).expect("base32");
    let form = page.form("code");
    let wrong = filled(&form, &[("code", "12345"), ("password", PASSWORD)]);
    assert_wrong(&browser.submit(&wrong).await, "code", "<span>인증 앱에 지금 표시된 코드여야 합니다.<");
    let right = filled(&form, &[("code", &code(world, &secret)), ("password", PASSWORD)]);
    let page = browser.submit(&right).await;
    let html = page.response.text().to_owned();
    let (_, codes) = html.split_once("<pre class=\"mono\" id=\"codes\" tabindex=\"0\">").expect("codes");
    let codes = codes.split("</pre>").next().expect("an end").lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(codes.len(), 10, "{codes:?}");
    assert!(html.contains("data-copy=\"codes\""), "{html}");
    let file =
        html.split_once("data:text/plain;charset=utf-8,Stagedoor%0A").expect("a file of the service").1;
    let file = file.split('"').next().expect("an end");
    assert!(file.ends_with(&format!("%0A{}%0A", codes.join("%0A"))), "a file of them: {file}");
    assert!(html.contains(" recovery codes.txt\""), "{html}");
    (secret, codes)
}

fn code(world: &World, secret: &TotpSecret) -> String {
    secret.code(world.now_ms() / TOTP_STEP_MS)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_with_a_second_step_asks_for_a_code_also_for_applications() {
    both(Setup::default(), |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let mut browser = register(&world, "nuri").await;
        let (secret, codes) = turn_on(&world, &mut browser).await;
        assert!(!browser.open("/account/two-factor").await.response.text().contains(&codes[0]), "shown once");
        let account = browser.open("/account").await;
        assert!(
            account.response.text().contains("href=\"/account/two-factor\">관리</a>"),
            "it is on already"
        );

        let (mut other, page) = sign_in(&world, "nuri", PASSWORD).await;
        assert_eq!(page.location(), "/sign-in/code?next=%2Faccount");
        assert!(!is_signed_in(&mut other).await);
        let form = other.open("/sign-in/code?next=%2Faccount").await.form("code");
        let used = other.submit(&form.clone().fill("code", &code(&world, &secret))).await;
        assert_wrong(&used, "code", "이미 쓰인");
        world.advance(std::time::Duration::from_secs(30));
        let planted = other.cookie("stagedoor_browser").map(str::to_owned);
        assert_eq!(
            other.submit(&form.clone().fill("code", &code(&world, &secret))).await.location(),
            "/account"
        );
        assert_ne!(other.cookie("stagedoor_browser").map(str::to_owned), planted);
        assert!(is_signed_in(&mut other).await);

        // The sign-in of an application leads over the same page, and back.
        let query =
            format!("clientId={}&redirectUri={}&state=s", app.client_id, testkit::encode(&app.redirect_uri));
        let address = format!("/account-interlock?{query}");
        let mut third = world.browser();
        let form = third.open(&address).await.form("login");
        let page = third.submit(&filled(&form, &[("login", "nuri"), ("password", PASSWORD)])).await;
        let location = page.location().to_owned();
        assert!(location.starts_with("/sign-in/code?next=%2Faccount-interlock%3F"), "{location}");
        let form = third.open(&location).await.form("code");
        assert_eq!(third.submit(&form.clone().fill("code", &codes[1])).await.location(), address);
        third.open(&address).await.form("decision");

        let (mut fourth, page) = sign_in(&world, "nuri", PASSWORD).await;
        let form = fourth.open(page.location()).await.form("code");
        for _ in 0..CODE_FAILURES_MAX {
            fourth.submit(&form.clone().fill("code", "12345")).await;
        }
        let limited = fourth.submit(&form.clone().fill("code", "12345")).await;
        assert_eq!(limited.response.status, 429);
        assert!(limited.response.header("retry-after").is_some());
        assert_eq!(fourth.submit(&form.clone().fill("code", &codes[2])).await.location(), "/account");

        let page = fourth.open("/account/two-factor").await;
        let off = page.forms.iter().find(|form| form.action.ends_with("/off")).expect("a form").clone();
        let off = filled(&off, &[("password", PASSWORD), ("code", &codes[3])]);
        assert_eq!(fourth.submit(&off).await.location(), "/account/two-factor");
        assert_eq!(sign_in(&world, "nuri", PASSWORD).await.1.location(), "/account");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_account_takes_its_tokens_and_sockets_along() {
    both(Setup { system_clock: true, ..Setup::default() }, |world| async move {
        let Fixture { app, .. } = Fixture::set_up(&world).await;
        let mut browser = register(&world, "nuri").await;
        let person = testkit::Person {
            channel_id: String::new(),
            name: "하늘 <b>방송국".into(),
            login: "nuri".into(),
            password: PASSWORD.into(),
        };
        let tokens = world.sign_in(&app, &person).await;
        let socket = world.open_user_session(&tokens.access).await;
        let form = browser.open("/account/delete").await.form("login");
        let wrong = browser.submit(&filled(&form, &[("login", "x"), ("password", PASSWORD)])).await;
        assert_wrong(&wrong, "login", "아이디와 다릅니다");
        let right = [("login", "nuri"), ("password", PASSWORD)];
        assert_eq!(browser.submit(&filled(&form, &right)).await.location(), "/");
        assert!(!is_signed_in(&mut browser).await);
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        assert_eq!(patiently("the socket closes", socket.closed()).await.1, "revoked");
        assert_eq!(sign_in(&world, "nuri", PASSWORD).await.1.response.status, 200);
        register(&world, "nuri").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_second_step_an_account_is_deleted_with_a_code() {
    both(Setup::default(), |world| async move {
        let mut browser = register(&world, "nuri").await;
        let page = browser.open("/account/delete").await;
        assert!(page.form("login").field("code").is_none());
        let (secret, _) = turn_on(&world, &mut browser).await;
        world.advance(std::time::Duration::from_millis(2 * TOTP_STEP_MS as u64));
        let form = browser.open("/account/delete").await.form("login");
        let typed = |code: &str| filled(&form, &[("login", "nuri"), ("password", PASSWORD), ("code", code)]);
        for wrong in ["", "123456", "abcde-fghij"] {
            assert_wrong(&browser.submit(&typed(wrong)).await, "code", "인증 앱");
        }
        let without = typed("").without("code");
        assert_eq!(browser.submit(&without).await.response.status, 422);
        assert!(is_signed_in(&mut browser).await);
        assert_eq!(browser.submit(&typed(&code(&world, &secret))).await.location(), "/");
        assert!(!is_signed_in(&mut browser).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_accounts_need_the_proof_of_their_browser_and_page() {
    both(Setup::default(), |world| async move {
        let mut browser = register(&world, "haneul").await;
        let pages = [
            ("/register", "channelName"),
            ("/reset-password", "account"),
            ("/account/password", "newPassword"),
            ("/account/email", "email"),
            ("/account/delete", "login"),
            ("/account/two-factor", "csrf"),
        ];
        for (address, field) in pages {
            let mut from = if address == "/register" { world.browser() } else { browser.clone() };
            let page = from.open(address).await;
            let form =
                page.forms.iter().find(|form| form.field(field).is_some() && form.action != "/sign-out");
            let form = form.expect("a form").clone();
            let elsewhere = Form { action: "/sign-out".into(), ..form.clone() };
            for forged in [form.clone().without("csrf"), form.clone().fill("csrf", "x"), elsewhere] {
                assert_eq!(from.submit(&forged).await.response.status, 400, "{address}");
            }
            assert_not_done(&world.browser().submit(&form).await, address);
        }
        assert!(is_signed_in(&mut browser).await);
        for address in
            ["/account", "/account/password", "/account/email", "/account/delete", "/account/two-factor"]
        {
            let location = world.browser().open(address).await.location().to_owned();
            assert!(location.starts_with("/sign-in?next=%2Faccount"), "{location}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registrations_and_forgotten_passwords_of_an_address_and_guesses_of_a_person_are_limited() {
    both(Setup { quotas: true, ..Setup::default() }, |world| async move {
        let mut browser = register(&world, "haneul").await;
        let mut other = world.browser();
        for (address, field) in [("/register", "channelName"), ("/reset-password", "account")] {
            let form = other.open(address).await.form(field);
            // Only a form without faults costs a registration. It tells that the login is taken.
            let form = match field {
                "channelName" => {
                    for _ in 0..11 {
                        assert_eq!(other.submit(&form).await.response.status, 422);
                    }
                    filled(&form, &[("login", "haneul"), ("channelName", "누리"), ("password", PASSWORD)])
                }
                _ => form,
            };
            let mut statuses = Vec::new();
            for _ in 0..11 {
                statuses.push(other.submit(&form).await.response.status);
            }
            assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
            // The form comes back as it was typed, but for the password.
            let request = Request::post(&form.action).header("Accept", "text/html").body(form.body());
            let request = request.header("Content-Type", "application/x-www-form-urlencoded");
            let limited = other.send(request).await;
            let html = limited.response.text();
            assert!(limited.form(field).field("csrf").is_some());
            assert!(html.contains("아무것도 바뀌지 않았습니다.") && !html.contains(PASSWORD), "{html}");
            if field == "channelName" {
                assert_eq!(limited.form(field).field(field), Some("누리"));
            }
            assert!(limited.response.header("retry-after").is_some());
            assert!(statuses[..9].iter().all(|status| *status != 429), "{statuses:?}");
        }
        let form = browser.open("/account/delete").await.form("login");
        let mut statuses = Vec::new();
        for _ in 0..11 {
            let guess = filled(&form, &[("login", "haneul"), ("password", "wrong")]);
            statuses.push(browser.submit(&guess).await.response.status);
        }
        assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    })
    .await;
}
