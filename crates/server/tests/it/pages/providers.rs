//! Sign-in at a provider, through the real pages and over real sockets.

use std::sync::Arc;
use std::time::Duration;

use domain::limits::TOTP_STEP_MS;
use domain::totp::TotpSecret;
use domain::upstream::redirect_address;
use serde_json::json;
use testkit::{Browser, Form, Page, Request, Setup, World, both};
use upstream::ProviderSettings;
use upstream::testing::{TestProvider, Wrong};

use super::{assert_guarded, assert_not_done};
use crate::fixture::Fixture;

const PASSWORD: &str = "wolkenbruchig";

/// Providers, and a setup that knows them.
struct Providers {
    sky: TestProvider,
    sea: TestProvider,
}

impl Providers {
    async fn start(further: &str) -> (Arc<Self>, Setup) {
        let (sky, sea) = (TestProvider::start().await, TestProvider::start().await);
        let upstreams = vec![sky.settings("sky", further), sea.settings("sea", "    registration: closed\n")];
        let upstreams: &'static [ProviderSettings] = upstreams.leak();
        let setup = Setup { upstreams, ..Setup::default() };
        (Arc::new(Self { sky, sea }), setup)
    }

    fn be_at(&self, world: &World) {
        self.sky.set_clock(world.now_ms());
        self.sea.set_clock(world.now_ms());
    }
}

/// The form of a provider's button.
fn button(page: &Page, name: &str) -> Form {
    let action = format!("/sign-in/upstream/{name}");
    let form = page.forms.iter().find(|form| form.action == action);
    form.unwrap_or_else(|| panic!("no button of {name}: {}", page.response.text())).clone()
}

/// Where a page leads to by itself.
#[track_caller]
fn leads_to(page: &Page) -> String {
    assert_eq!(page.response.status, 200, "{}", page.response.text());
    let refresh = page.response.header("refresh").expect("it leads to the provider").to_owned();
    refresh.strip_prefix("0;url=").expect("an address").to_owned()
}

/// Path and query of an address of the world.
fn local(world: &World, address: &str) -> String {
    let base = format!("http://{}", world.address());
    address.strip_prefix(&base).unwrap_or_else(|| panic!("{address}")).to_owned()
}

/// Presses the button on the sign-in page, and signs in at the provider. Gives the callback.
async fn leave(
    world: &World,
    browser: &mut Browser,
    at: &str,
    provider: &TestProvider,
    next: &str,
) -> String {
    let page = browser.open(&format!("/sign-in?next={next}")).await;
    let page = browser.submit(&button(&page, at)).await;
    assert_guarded(&page);
    local(world, &provider.sign_in(&leads_to(&page)))
}

/// A whole sign-in.
async fn sign_in(world: &World, browser: &mut Browser, provider: &TestProvider) -> Page {
    let callback = leave(world, browser, "sky", provider, "/account").await;
    browser.open(&callback).await
}

#[track_caller]
fn assert_problem(page: &Page, status: u16, text: &str) {
    assert_eq!(page.response.status, status, "{}", page.response.text());
    assert!(page.response.text().contains(text), "{text}: {}", page.response.text());
    assert_guarded(page);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_of_a_provider_gets_one_account_and_comes_back_to_it() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            let hostile = "<script>alert(1)</script>\"'&";
            providers
                .sky
                .set_claims(json!({ "sub": "42", "name": hostile, "picture": "javascript:alert(1)" }));
            let mut browser = world.browser();
            let page = browser.open("/sign-in?lang=en").await;
            assert!(page.response.text().contains("sky account"), "{}", page.response.text());
            let page = sign_in(&world, &mut browser, &providers.sky).await;
            assert_eq!(page.location(), "/account");
            let account = browser.open("/account").await;
            assert_eq!(account.response.status, 200);
            assert!(!account.response.text().contains("<script>alert"));
            assert!(account.response.text().contains("&#60;script&#62;alert"));

            let mut other = world.browser();
            providers.sky.set_claims(json!({ "sub": "42", "name": "another name" }));
            assert_eq!(sign_in(&world, &mut other, &providers.sky).await.location(), "/account");
            assert!(other.open("/account").await.response.text().contains("&#60;script&#62;alert"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_ends_once_in_its_browser_in_time() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            let mut browser = world.browser();
            let callback = leave(&world, &mut browser, "sky", &providers.sky, "/account").await;
            let mut thief = world.browser();
            assert_problem(&thief.open(&callback).await, 400, "이어갈 수 없습니다");
            thief.open("/sign-in").await;
            assert_problem(&thief.open(&callback).await, 400, "이어갈 수 없습니다");
            let elsewhere = callback.replace("/upstream/sky/", "/upstream/sea/");
            assert_problem(&browser.open(&elsewhere).await, 400, "이어갈 수 없습니다");
            let (a, b) = (&mut browser.clone(), &mut browser.clone());
            let (first, second) = tokio::join!(a.open(&callback), b.open(&callback));
            let statuses = [first.response.status, second.response.status];
            assert!(statuses == [303, 400] || statuses == [400, 303], "{statuses:?}");
            assert_problem(&browser.open(&callback).await, 400, "이어갈 수 없습니다");

            let mut slow = world.browser();
            let callback = leave(&world, &mut slow, "sky", &providers.sky, "/account").await;
            world.advance(Duration::from_mins(10));
            providers.be_at(&world);
            assert_problem(&slow.open(&callback).await, 400, "이어갈 수 없습니다");
            for strange in ["", "?state=x", "?code=1&state=%00", "?error=access_denied", "?state=a&state=b"] {
                let page = slow.open(&format!("/sign-in/upstream/sky/callback{strange}")).await;
                assert_problem(&page, 400, "이어갈 수 없습니다");
            }
            assert_eq!(slow.open("/sign-in/upstream/moon/callback?state=x").await.response.status, 404);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_provider_signs_no_person_in_and_does_not_affect_others() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            for (wrong, status, text) in [
                (Wrong::Issuer, 502, "올바르지 않아"),
                (Wrong::Nonce, 502, "올바르지 않아"),
                (Wrong::NoSignature, 502, "올바르지 않아"),
                (Wrong::SharedPublicKey, 502, "올바르지 않아"),
                (Wrong::OtherKey, 502, "올바르지 않아"),
                (Wrong::Expired, 502, "올바르지 않아"),
                (Wrong::CallbackIssuer, 502, "올바르지 않아"),
            ] {
                let mut browser = world.browser();
                providers.sky.be(wrong);
                let page = sign_in(&world, &mut browser, &providers.sky).await;
                assert_problem(&page, status, text);
                assert_eq!(browser.open("/account").await.response.status, 303, "{wrong:?}");
                assert!(
                    button(&page, "sky").field("next") == Some("/account"),
                    "another try keeps the page after it"
                );
            }
            providers.sky.be(Wrong::Down);
            let mut browser = world.browser();
            let callback = leave(&world, &mut browser, "sky", &providers.sky, "/").await;
            assert_problem(&browser.open(&callback).await, 503, "응답하지 않습니다");
            providers.sky.be(Wrong::Nothing);

            let mut browser = world.browser();
            let callback = leave(&world, &mut browser, "sky", &providers.sky, "/").await;
            let denied = callback.replace("code=", "error=access_denied&code=");
            assert_problem(&browser.open(&denied).await, 400, "로그인하지 않았습니다");

            let mut browser = world.browser();
            let callback = leave(&world, &mut browser, "sky", &providers.sky, "/").await;
            let forged = callback.replace("code=", "code=forged-");
            assert_problem(&browser.open(&forged).await, 502, "거절했습니다");

            let text = world.operator(Request::get("/metrics")).await;
            let text = text.text();
            for outcome in ["invalid", "unavailable", "denied", "client_refused"] {
                let line =
                    format!("stagedoor_upstream_sign_ins_total{{provider=\"sky\",outcome=\"{outcome}\"}}");
                let line = text.lines().find(|found| found.starts_with(&line)).expect("counted");
                assert!(!line.ends_with(" 0"), "{line}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_needs_its_own_proof_and_leads_nowhere_else() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            let mut browser = world.browser();
            let form = button(&browser.open("/sign-in?next=/account").await, "sky");
            for forged in [form.clone().without("csrf"), form.clone().fill("csrf", "x")] {
                assert_eq!(browser.submit(&forged).await.response.status, 400);
            }
            let mut other = world.browser();
            other.open("/sign-in").await;
            assert_eq!(other.submit(&form).await.response.status, 400, "the proof is of another browser");
            assert_eq!(browser.open("/sign-in/upstream/sky").await.response.status, 405);
            for next in ["https://evil.example/", "//evil.example", "/\\evil.example"] {
                let page = browser.submit(&form.clone().fill("next", next)).await;
                let callback = local(&world, &providers.sky.sign_in(&leads_to(&page)));
                let mut came = browser.clone();
                assert_eq!(came.open(&callback).await.location(), "/");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_of_an_application_survives_the_way() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            let Fixture { app, .. } = Fixture::set_up(&world).await;
            let mut browser = world.browser();
            let redirect = testkit::encode(&app.redirect_uri);
            let target =
                format!("/account-interlock?clientId={}&redirectUri={redirect}&state=state-1", app.client_id);
            let page = browser.open(&target).await;
            let page = browser.submit(&button(&page, "sky")).await;
            let callback = local(&world, &providers.sky.sign_in(&leads_to(&page)));
            let next = browser.open(&callback).await.location().to_owned();
            assert!(next.starts_with("/account-interlock?") && next.contains("state-1"), "{next}");
            let consent = browser.open(&next).await;
            let page = browser.submit(&consent.form("decision").press("decision", "allow")).await;
            assert!(page.location().contains("code=") && page.location().contains("state=state-1"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_before_an_account_is_made() {
    let (providers, setup) = Providers::start("    registration: ask\n").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            providers.sky.set_claims(json!({ "sub": "7", "name": "누리" }));
            let mut browser = world.browser();
            let page = sign_in(&world, &mut browser, &providers.sky).await;
            assert_guarded(&page);
            let form = page.form("channelName");
            assert_eq!(form.field("channelName"), Some("누리"));
            let mut thief = world.browser();
            thief.open("/sign-in").await;
            assert_eq!(thief.submit(&form).await.response.status, 400);
            let again = browser.submit(&form.clone().fill("channelName", "")).await;
            assert_eq!(again.response.status, 422);
            assert_problem(&browser.submit(&form).await, 400, "이어갈 수 없습니다");
            let form = again.form("channelName").fill("channelName", "새벽");
            assert_eq!(browser.submit(&form).await.location(), "/account");
            assert!(browser.open("/account").await.response.text().contains("새벽"));

            let mut closed = world.browser();
            providers.sea.set_claims(json!({ "sub": "7", "name": "누리" }));
            let callback = leave(&world, &mut closed, "sea", &providers.sea, "/").await;
            assert_problem(&closed.open(&callback).await, 403, "연결된 계정이 없습니다");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_redirect_address_is_that_of_the_documentation() {
    assert_eq!(
        redirect_address("https://api.example.com", "company"),
        "https://api.example.com/sign-in/upstream/company/callback"
    );
}

/// Registers with a password.
async fn register(world: &World, login: &str) -> Browser {
    let mut browser = world.browser();
    let form = browser.open("/register").await.form("channelName");
    let form = form.fill("login", login).fill("channelName", "하늘").fill("password", PASSWORD);
    assert_eq!(browser.submit(&form).await.location(), "/account");
    browser
}

/// Presses a button on the page of the account.
async fn press(browser: &mut Browser, action: &str) -> Page {
    let page = browser.open("/account").await;
    let form = page.forms.iter().find(|form| form.action == action);
    browser.submit(form.unwrap_or_else(|| panic!("no {action}: {}", page.response.text()))).await
}

/// Links the provider on the page of the account. Gives the answer to the callback.
async fn link(world: &World, browser: &mut Browser, provider: &TestProvider) -> Page {
    let page = press(browser, "/account/upstream/sky/link").await;
    let callback = local(world, &provider.sign_in(&leads_to(&page)));
    browser.open(&callback).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_links_and_unlinks_a_provider() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            providers.sky.set_claims(json!({ "sub": "1", "name": "<b>누리</b>" }));
            let mut browser = register(&world, "haneul").await;
            assert_eq!(link(&world, &mut browser, &providers.sky).await.location(), "/account");
            let page = browser.open("/account").await;
            assert!(page.response.text().contains("연결했습니다."));
            assert!(page.response.text().contains("&#60;b&#62;누리"), "{}", page.response.text());

            let mut other = world.browser();
            assert_eq!(sign_in(&world, &mut other, &providers.sky).await.location(), "/account");
            assert!(other.open("/account").await.response.text().contains("<bdi>haneul</bdi>"));

            let mut second = register(&world, "nuri").await;
            let taken = link(&world, &mut second, &providers.sky).await;
            assert_problem(&taken, 409, "다른 계정에 연결");

            let form =
                page.forms.iter().find(|form| form.action.ends_with("/unlink")).expect("a button").clone();
            assert_eq!(second.submit(&form).await.response.status, 400, "the proof is of another browser");
            assert_eq!(browser.submit(&form.clone().without("csrf")).await.response.status, 400);
            assert_not_done(&world.browser().submit(&form).await, "unlink");
            assert_eq!(browser.submit(&form).await.location(), "/account");
            assert!(browser.open("/account").await.response.text().contains("연결을 끊었습니다."));
            assert_eq!(browser.submit(&form).await.response.status, 404);
            assert_eq!(link(&world, &mut second, &providers.sky).await.location(), "/account");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_passwords_people_confirm_by_a_recent_sign_in_and_keep_their_last_way_in() {
    let (providers, setup) = Providers::start("").await;
    both(Setup { passwords: false, ..setup }, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            providers.sky.set_claims(json!({ "sub": "9", "name": "새벽" }));
            let mut browser = world.browser();
            let page = browser.open("/sign-in").await;
            assert!(!page.response.text().contains("password"), "{}", page.response.text());
            for gone in ["/register", "/reset-password", "/reset-password?token=x"] {
                assert_eq!(browser.open(gone).await.response.status, 404, "{gone}");
            }
            assert_eq!(sign_in(&world, &mut browser, &providers.sky).await.location(), "/account");
            assert_eq!(browser.open("/account/password").await.response.status, 404);
            let account = browser.open("/account").await;
            assert!(account.response.text().contains("로그인할 수 있는 유일한 방법입니다."));
            // The form of the other provider has a proof for its own path only.
            let link =
                account.forms.iter().find(|form| form.action.ends_with("/sea/link")).expect("a button");
            let unlink = Form { action: "/account/upstream/sky/unlink".into(), ..link.clone() };
            assert_eq!(browser.submit(&unlink).await.response.status, 400);

            world.advance(Duration::from_mins(11));
            providers.be_at(&world);
            let page = browser.open("/account/delete").await;
            let login = page.response.text().split("<strong>").nth(1).and_then(|rest| rest.split('<').next());
            let login = login.expect("the login").to_owned();
            assert!(login.starts_with("sky-"), "{login}");
            let form = page.form("login").fill("login", &login);
            let late = browser.submit(&form).await;
            assert_eq!(late.response.status, 422);
            assert!(late.response.text().contains("로그인한 지 10분이 지났습니다."));
            let page = browser.open("/sign-in?again=1&next=/account/delete").await;
            let page = browser.submit(&button(&page, "sky")).await;
            let callback = local(&world, &providers.sky.sign_in(&leads_to(&page)));
            assert_eq!(browser.open(&callback).await.location(), "/account/delete");
            let form = browser.open("/account/delete").await.form("login").fill("login", &login);
            assert_eq!(browser.submit(&form).await.location(), "/");
            assert_eq!(browser.open("/account").await.response.status, 303);
            assert_eq!(sign_in(&world, &mut browser, &providers.sky).await.location(), "/account");
            assert!(!browser.open("/account").await.response.text().contains(&login), "a new account");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_step_is_asked_for_after_a_sign_in_at_a_provider() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            providers.sky.set_claims(json!({ "sub": "5", "name": "누리" }));
            let mut browser = world.browser();
            assert_eq!(sign_in(&world, &mut browser, &providers.sky).await.location(), "/account");
            let page = browser.open("/account/two-factor").await;
            let begin =
                page.forms.iter().find(|form| form.action.ends_with("/begin")).expect("a form").clone();
            browser.submit(&begin).await;
            let page = browser.open("/account/two-factor").await;
            let (_, secret) = page.response.text().split_once("secret=").expect("a secret");
            let secret = TotpSecret::from_base32(&secret[..32]).expect("base32");
            let code = |step: i64| secret.code(world.now_ms() / TOTP_STEP_MS + step);
            let on = browser.submit(&page.form("code").fill("code", &code(0))).await;
            assert!(on.response.text().contains("복구 코드"), "{}", on.response.text());

            let mut other = world.browser();
            let page = sign_in(&world, &mut other, &providers.sky).await;
            assert_eq!(page.location(), "/sign-in/code?next=%2Faccount");
            assert_eq!(other.open("/account").await.response.status, 303, "the code is missing");
            let form = other.open("/sign-in/code?next=%2Faccount").await.form("code");
            assert_eq!(other.submit(&form.fill("code", &code(1))).await.location(), "/account");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_first_sign_ins_of_a_person_all_get_one_account() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            providers.sky.set_claims(json!({ "sub": "77", "name": "누리" }));
            let mut waiting = Vec::new();
            for _ in 0..6 {
                let mut browser = world.browser();
                let callback = leave(&world, &mut browser, "sky", &providers.sky, "/account").await;
                waiting.push(tokio::spawn(async move {
                    assert_eq!(browser.open(&callback).await.location(), "/account");
                    let page = browser.open("/account").await;
                    let login =
                        page.response.text().split("<bdi>sky-").nth(1).map(|rest| rest[..8].to_owned());
                    login.expect("a login")
                }));
            }
            let mut logins = Vec::new();
            for each in waiting {
                logins.push(each.await.expect("signed in"));
            }
            logins.dedup();
            assert_eq!(logins.len(), 1, "{logins:?}");
        }
    })
    .await;
}

/// A stolen sign-in cannot link a provider of the thief. After a reset the person sees what is linked.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_link_asks_for_the_password_and_a_reset_shows_what_is_linked() {
    let (providers, setup) = Providers::start("").await;
    both(setup, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            providers.sky.set_claims(json!({ "sub": "1", "name": "누리" }));
            let mut browser = register(&world, "haneul").await;
            world.advance(Duration::from_mins(11));
            providers.be_at(&world);
            let stolen = press(&mut browser.clone(), "/account/upstream/sky/link").await;
            assert_eq!(stolen.response.status, 403);
            let confirm = stolen.form("confirmPassword").fill("confirmPassword", PASSWORD);
            let page = browser.submit(&confirm).await;
            let callback = local(&world, &providers.sky.sign_in(&leads_to(&page)));
            assert_eq!(browser.open(&callback).await.location(), "/account");
            let found = world.operator(Request::get("/platform/v1/channels?login=haneul")).await.content();
            let channel = found["data"][0]["channelId"].as_str().expect("an id").to_owned();
            let reset = Request::post(format!("/platform/v1/channels/{channel}/password-reset"));
            let link = world.operator(reset).await.content()["link"].as_str().expect("a link").to_owned();
            let mut owner = world.browser();
            let form = owner.open(&local(&world, &link)).await.form("newPassword");
            let done = owner.submit(&form.fill("newPassword", "regenbogenhaut")).await;
            assert_eq!(done.location(), "/sign-in?next=/account/after-reset");
            let form = owner.open(done.location()).await.form("login");
            let form = form.fill("login", "haneul").fill("password", "regenbogenhaut");
            assert_eq!(owner.submit(&form).await.location(), "/account/after-reset");
            let page = owner.open("/account/after-reset").await;
            assert_guarded(&page);
            let unlink =
                page.forms.iter().find(|form| form.action.ends_with("/sky/unlink")).expect("a button");
            assert_eq!(owner.submit(unlink).await.location(), "/account");
            let mut thief = world.browser();
            sign_in(&world, &mut thief, &providers.sky).await;
            assert!(!thief.open("/account").await.response.text().contains("<bdi>haneul</bdi>"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_password_the_proof_comes_from_the_provider_and_the_form_goes_on() {
    let (providers, setup) = Providers::start("").await;
    both(Setup { passwords: false, ..setup }, move |world| {
        let providers = providers.clone();
        async move {
            providers.be_at(&world);
            providers.sky.set_claims(json!({ "sub": "9", "name": "새벽" }));
            let mut browser = world.browser();
            sign_in(&world, &mut browser, &providers.sky).await.location();
            world.advance(Duration::from_mins(11));
            providers.be_at(&world);
            let page = browser.open("/studio/stream-key").await;
            let reveal = page.forms.iter().find(|form| form.action == "/studio/stream-key").expect("a form");
            let asked = browser.submit(reveal).await;
            assert_eq!(asked.response.status, 403);
            assert_guarded(&asked);
            let leave = asked.form("confirmAction");
            assert_eq!(leave.action, "/account/confirm/sky");
            // Another person of the provider proves nothing.
            let to_thief = browser.submit(&leave).await;
            providers.sky.set_claims(json!({ "sub": "10", "name": "도둑" }));
            let wrong = browser.open(&local(&world, &providers.sky.sign_in(&leads_to(&to_thief)))).await;
            assert_eq!(wrong.response.status, 409);
            assert_eq!(browser.submit(reveal).await.response.status, 403);
            providers.sky.set_claims(json!({ "sub": "9", "name": "새벽" }));
            let to_owner = browser.submit(&leave).await;
            let back = browser.open(&local(&world, &providers.sky.sign_in(&leads_to(&to_owner)))).await;
            assert_guarded(&back);
            let go_on = back.forms.iter().find(|form| form.action == "/studio/stream-key").expect("the form");
            let shown = browser.submit(go_on).await;
            assert_eq!(shown.response.status, 200, "{}", shown.response.text());
            assert!(shown.response.text().contains("숨기기"));
        }
    })
    .await;
}
