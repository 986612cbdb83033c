//! Barred and deleted channels, browsers that are signed out, and disabled organizations and campaigns.

use std::time::Duration;

use domain::Scope;
use serde_json::{Value, json};
use testkit::{
    Browser, Engine, Person, Request, Response, Setup, Socket, World, both, patiently, while_running,
};

use crate::fixture::{Fixture, wrong};

const NOTHING: &str = r#"{"code":200,"message":null,"content":null}"#;
const ADDRESS: &str =
    "/account-interlock?clientId=bot&redirectUri=http%3A%2F%2F127.0.0.1%3A9999%2Fcallback&state=state";

fn real_time() -> Setup {
    Setup { system_clock: true, ..Setup::default() }
}

fn channel(id: &str) -> String {
    format!("/platform/v1/channels/{id}")
}

fn bar(id: &str) -> String {
    format!("/platform/v1/channels/{id}/bar")
}

/// Whether a browser is signed in. If so, the page asks for consent.
async fn is_signed_in(browser: &mut Browser) -> bool {
    let page = browser.open(ADDRESS).await;
    assert_eq!(page.response.status, 200);
    page.response.text().contains(r#"value="allow""#)
}

async fn signed_in(world: &World, fixture: &Fixture, person: &Person) -> Browser {
    let mut browser = world.browser();
    world.sign_in_page(&mut browser, &fixture.app, person, "state").await;
    assert!(is_signed_in(&mut browser).await);
    browser
}

async fn try_to_sign_in(world: &World, person: &Person) -> Response {
    let mut browser = world.browser();
    let page = browser.open(ADDRESS).await;
    let form = page.form("login").fill("login", &person.login).fill("password", &person.password);
    browser.submit(&form).await.response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_barred_person_is_signed_out_at_once_and_may_sign_in_after_the_bar() {
    both(real_time(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let Fixture { app, streamer, tokens, .. } = &fixture;
        let mut browser = signed_in(&world, &fixture, streamer).await;
        let user = world.open_user_session(&tokens.access).await;
        let mut client = world.open_client_session(app).await;
        world.subscribe(&tokens.access, "chat", client.session_key()).await.content();
        client.system("subscribed").await;
        let code = world.consent(app, streamer, "state").await;
        let url = world.user_session_url(&tokens.access).await.content();
        for _ in 0..2 {
            assert_eq!(world.operator(Request::put(bar("haneul"))).await.text(), NOTHING);
        }
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        world.refresh(app, &tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
        assert_eq!(world.exchange(app, &code, "state").await.status, 400);
        assert_eq!(user.closed().await.1, "revoked");
        assert_eq!(client.system("revoked").await["channelId"], "haneul");
        assert!(Socket::connect(url["url"].as_str().expect("a text")).await.is_err());
        assert!(!is_signed_in(&mut browser).await);
        assert!(!try_to_sign_in(&world, streamer).await.text().contains(r#"value="allow""#));
        let listed = world.operator(Request::get("/platform/v1/channels?barred=true")).await.content();
        assert_eq!(listed["data"][0]["channelId"], "haneul");
        assert!(listed["data"][0]["barredDate"].is_string());

        for _ in 0..2 {
            assert_eq!(world.operator(Request::delete(bar("haneul"))).await.text(), NOTHING);
        }
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        let tokens = world.sign_in(app, streamer).await;
        world.me(&tokens.access).await.content();
        for request in [Request::put(bar("missing")), Request::delete(bar("missing"))] {
            world.operator(request).await.assert_refused(404, "NOT_FOUND");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_barred_on_one_node_is_signed_out_on_another() {
    both(real_time(), |world| async move {
        if world.engine() == Engine::Sqlite {
            return; // An SQLite file belongs to one node.
        }
        let Fixture { tokens, .. } = Fixture::set_up(&world).await;
        let (node, elsewhere) = world.another_node().await;
        let socket = elsewhere.open_user_session(&tokens.access).await;
        elsewhere.me(&tokens.access).await.content();
        world.operator(Request::put(bar("haneul"))).await.content();
        while_running(Duration::from_secs(2), async {
            while elsewhere.me(&tokens.access).await.status == 200 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .expect("refused within two seconds");
        assert_eq!(socket.closed().await.1, "revoked");
        node.stop().await;
    })
    .await;
}

/// A person consents continuously while being barred.
#[tokio::test(flavor = "multi_thread")]
async fn no_consent_outlives_a_bar() {
    both(real_time(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for _ in 0..5 {
            let mut consents = Vec::new();
            for _ in 0..6 {
                let mut browser = world.browser();
                let page = world.sign_in_page(&mut browser, &fixture.app, &fixture.streamer, "state").await;
                let (world, app) = (world.clone(), fixture.app.clone());
                consents.push(tokio::spawn(async move {
                    let form = page.form("decision").press("decision", "allow");
                    let redirect = browser.submit(&form).await.response;
                    let code = redirect.header("location").and_then(|to| testkit::query_value(to, "code"));
                    match code {
                        Some(code) => Some(world.exchange(&app, &code, "state").await),
                        None => None,
                    }
                }));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            world.operator(Request::put(bar("haneul"))).await.content();
            for consent in consents {
                if let Some(answer) = consent.await.expect("no panic")
                    && answer.status == 200
                {
                    let token = answer.content()["accessToken"].as_str().expect("a text").to_owned();
                    world.me(&token).await.assert_refused(401, "INVALID_TOKEN");
                }
            }
            world.operator(Request::delete(bar("haneul"))).await.content();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_and_the_operator_sign_browsers_out() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let streamer = &fixture.streamer;
        let mut browser = signed_in(&world, &fixture, streamer).await;
        let put = async |password: &str| {
            let body = json!({ "channelName": "하늘 🚀", "login": streamer.login, "password": password });
            world.operator(Request::put(channel("haneul")).json(&body)).await.content();
        };
        put(&streamer.password).await;
        assert!(is_signed_in(&mut browser).await, "the same password changes nothing");
        put("another password").await;
        assert!(!is_signed_in(&mut browser).await);

        let person = Person { password: "another password".to_owned(), ..streamer.clone() };
        let mut browser = signed_in(&world, &fixture, &person).await;
        let mut other = signed_in(&world, &fixture, &fixture.viewer).await;
        let sessions = channel("haneul") + "/browser-sessions";
        for _ in 0..2 {
            assert_eq!(world.operator(Request::delete(&sessions)).await.text(), NOTHING);
        }
        assert!(!is_signed_in(&mut browser).await);
        assert!(is_signed_in(&mut other).await);
        let missing = world.operator(Request::delete(channel("missing") + "/browser-sessions")).await;
        missing.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_out_on_the_page() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        for (language, words) in [("ko", "로그아웃"), ("en", "Sign out")] {
            let mut browser = signed_in(&world, &fixture, &fixture.streamer).await;
            browser.accept_language = Some(language.to_owned());
            let page = browser.open(ADDRESS).await;
            assert!(page.response.text().contains(words));
            let before = browser.clone();
            // Without the CSRF proof the form has no effect.
            let forged = page.form("sign_out").fill("csrf", "x").press("sign_out", "1");
            assert_eq!(browser.submit(&forged).await.response.status, 400);
            assert!(is_signed_in(&mut browser).await);
            let out = browser.submit(&page.form("sign_out").press("sign_out", "1")).await;
            assert_eq!(out.response.status, 200);
            out.form("login");
            assert!(!is_signed_in(&mut browser).await);
            // A copy of the cookie is signed out too.
            assert!(!is_signed_in(&mut before.clone()).await);
            assert_ne!(browser.cookie("stagedoor_browser"), before.cookie("stagedoor_browser"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_channel_loses_all_its_data() {
    both(Setup::default(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let Fixture { app, streamer, tokens, viewer, .. } = &fixture;
        let follow = |of: &str, by: &str| Request::put(format!("{}/followers/{by}", channel(of)));
        for (of, by) in [("haneul", "byeol"), ("byeol", "haneul")] {
            world.operator(follow(of, by)).await.content();
        }
        world.put_live("haneul", &json!({})).await.content();
        let claim =
            json!({ "campaignId": "voyage", "rewardId": "reward-0", "channelId": "haneul", "claimId": "c1" });
        world.claim(&claim).await.content();
        let message = json!({ "senderChannelId": "haneul", "message": "안녕" });
        world.happen("byeol", "chats", &message).await.content();
        for id in ["haneul", "haneul", "missing"] {
            assert_eq!(world.operator(Request::delete(channel(id))).await.text(), NOTHING);
        }
        world.operator(Request::get(channel("haneul"))).await.assert_refused(404, "NOT_FOUND");
        assert_eq!(world.channels(app, "channelIds=haneul").await.content()["data"], json!([]));
        assert_eq!(world.lives(app, "").await.content()["data"], json!([]));
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        world.operator(follow("haneul", "byeol")).await.assert_refused(404, "NOT_FOUND");
        world
            .happen("byeol", "chats", &message)
            .await
            .assert_refused(400, &wrong("senderChannelId", "존재하는 채널이어야 합니다."));
        assert!(!try_to_sign_in(&world, streamer).await.text().contains(r#"value="allow""#));
        let byeol = world.operator(Request::get(channel("byeol"))).await.content();
        assert_eq!((&byeol["followerCount"], &byeol["login"]), (&json!(0), &json!(viewer.login)));
        let claims = world.reward_claims(&fixture.publisher.app, "claimId=c1").await.content();
        let alias = claims["data"][0]["channelId"].as_str().expect("a text").to_owned();
        assert!(alias.starts_with("deleted-"), "{alias}");

        let body = json!({ "channelName": "하늘" });
        let put = world.operator(Request::put(channel("haneul")).json(&body)).await;
        assert!(put.status == 400 && put.message().contains("channelId: "), "{}", put.text());
        let new = patiently("the id is free", async {
            loop {
                let answer = world.operator(Request::put(channel("haneul")).json(&body)).await;
                if answer.status == 200 {
                    return answer;
                }
                world.advance(Duration::from_secs(60));
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        assert_eq!(new.text(), NOTHING);
        let fresh = world.operator(Request::get(channel("haneul"))).await.content();
        assert_eq!((&fresh["followerCount"], &fresh["login"]), (&json!(0), &Value::Null));
        world.operator(Request::get(channel(&alias))).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_are_listed_page_by_page_and_found_by_name_and_login() {
    both(Setup::default(), |world| async move {
        let Fixture { viewer, .. } = Fixture::set_up(&world).await;
        let list =
            async |query: &str| world.operator(Request::get(channel("").replace("s/", "s") + query)).await;
        let first = list("?size=2").await.content();
        let next = first["page"]["next"].as_str().expect("a cursor").to_owned();
        let rest = list(&format!("?size=2&next={next}")).await.content();
        let ids = |page: &Value| {
            let items = page["data"].as_array().expect("a list").clone();
            items
                .iter()
                .map(|item| item["channelId"].as_str().expect("a text").to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!([ids(&first), ids(&rest)].concat(), ["byeol", "haneul", "spare-person"]);
        assert_eq!(rest["page"]["next"], Value::Null);
        assert_eq!(ids(&list("?name=%ED%95%98%EB%8A%98%20%F0%9F%9A%80").await.content()), ["haneul"]);
        let login = viewer.login.replace('@', "%40");
        assert_eq!(ids(&list(&format!("?login={login}")).await.content()), ["byeol"]);
        assert!(ids(&list("?login=missing").await.content()).is_empty());
        for query in
            ["?login=a&name=b", "?login=a&barred=true", "?barred=x", "?size=0", "?next=x", "?name=%00"]
        {
            assert_eq!(list(query).await.status, 400, "{query}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_organizations_have_no_drops_and_disabled_campaigns_no_claims() {
    both(real_time(), |world| async move {
        let fixture = Fixture::set_up(&world).await;
        let app = &fixture.publisher.app;
        let organization = |id: &str| format!("/platform/v1/organizations/{id}");
        let campaign = |id: &str| format!("/platform/v1/drops/campaigns/{id}");
        world.reward_claims(app, "").await.content();
        world.operator(Request::put(organization("publisher") + "/disabled")).await.content();
        assert_eq!(world.reward_claims(app, "").await.status, 403);
        let listed = world.operator(Request::get("/platform/v1/organizations?size=1")).await.content();
        assert!(listed["data"][0]["disabledDate"].is_string(), "{listed}");
        world.operator(Request::delete(organization("publisher") + "/disabled")).await.content();
        world.reward_claims(app, "").await.content();

        let claim = json!({ "campaignId": "voyage", "rewardId": "reward-0", "channelId": "byeol" });
        world.operator(Request::put(campaign("voyage") + "/disabled")).await.content();
        world.claim(&claim).await.assert_refused(403, "사용이 중지된 캠페인입니다.");
        world.operator(Request::delete(campaign("voyage") + "/disabled")).await.content();
        world.claim(&claim).await.content();
        let listed =
            world.operator(Request::get("/platform/v1/drops/campaigns?organizationId=publisher")).await;
        assert_eq!(listed.content()["data"][0]["campaignId"], "voyage");

        let in_use = world.operator(Request::delete(organization("publisher"))).await;
        assert!(in_use.status == 400 && in_use.message().contains("organizationId: "), "{}", in_use.text());
        let claimed = world.operator(Request::delete(campaign("voyage"))).await;
        assert!(claimed.status == 400 && claimed.message().contains("campaignId: "), "{}", claimed.text());
        let body = json!({
            "campaignName": "빈", "organizationId": "publisher", "categoryId": "star-voyage",
            "rewards": [{ "rewardId": "r", "rewardName": "보상" }],
        });
        world.put_campaign("empty", &body).await.content();
        for _ in 0..2 {
            assert_eq!(world.operator(Request::delete(campaign("empty"))).await.text(), NOTHING);
        }
        world.operator(Request::get(campaign("empty"))).await.assert_refused(404, "NOT_FOUND");
        let body = json!({ "organizationName": "빈" });
        world.operator(Request::put(organization("empty")).json(&body)).await.content();
        for _ in 0..2 {
            assert_eq!(world.operator(Request::delete(organization("empty"))).await.text(), NOTHING);
        }
        for target in [organization("missing"), campaign("missing")] {
            world.operator(Request::put(target + "/disabled")).await.assert_refused(404, "NOT_FOUND");
        }
    })
    .await;
}

/// The page showed two scopes. Before the decision the application drops one of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_consent_contains_only_scopes_that_the_application_still_requests() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let both_scopes = [Scope::UserRead, Scope::ChatRead];
        let app = world.application("narrow").scopes(&both_scopes).create().await;
        let mut browser = world.browser();
        let page = world.sign_in_page(&mut browser, &app, &streamer, "state").await;
        world.application("narrow").scopes(&[Scope::ChatRead]).replace().await;
        let answer = browser.submit(&page.form("decision").press("decision", "allow")).await;
        assert_eq!(answer.response.status, 400, "another page was shown");
        let tokens = world.sign_in(&app, &streamer).await;
        world.application("narrow").scopes(&both_scopes).replace().await;
        world.me(&tokens.access).await.assert_refused(403, "FORBIDDEN");
    })
    .await;
}
