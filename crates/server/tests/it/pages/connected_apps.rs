//! Connected apps (`/account/apps`), and what the consent page says to those who come back.

use domain::Scope;
use serde_json::json;
use testkit::{Form, Request, Setup, both, encode};

use super::{assert_guarded, assert_not_done, signed_in};
use crate::fixture::Fixture;

const APPS: &str = "/account/apps";
const HOSTILE: &str = "\u{202E}<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";
const PNG: &str = "data:image/png;base64,iVBORw0KGgpyZXN0";

fn withdrawal(page: &testkit::Page, client_id: &str) -> Form {
    let action = format!("{APPS}/{client_id}");
    page.forms.iter().find(|form| form.action == action).expect("a form").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_what_an_app_may_do_and_withdraws_it_at_once() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, tokens, app, .. } = Fixture::set_up(&world).await;
        assert_eq!(world.browser().open(APPS).await.location(), "/sign-in?next=%2Faccount%2Fapps");
        let mut socket = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;

        let mut browser = signed_in(&world, &streamer).await;
        let list = browser.open(APPS).await;
        assert_guarded(&list);
        assert!(list.response.text().contains("href=\"/account/apps/bot\""), "{}", list.response.text());
        let page = browser.open("/account/apps/bot").await;
        assert_guarded(&page);
        let html = page.response.text();
        assert!(
            html.contains("내 방송 스트림키를 확인합니다.") && html.contains("<dt>마지막 사용</dt><dd><time")
        );
        assert_eq!(browser.submit(&withdrawal(&page, "bot")).await.location(), APPS);
        assert_eq!(
            socket.system("revoked").await,
            json!({ "eventType": "CHAT", "channelId": streamer.channel_id })
        );
        world.me(&tokens.access).await.assert_refused(401, "INVALID_TOKEN");
        world.refresh(&app, &tokens.refresh).await.assert_refused(401, "INVALID_TOKEN");
        let after = browser.open(APPS).await;
        assert!(after.response.text().contains("앱의 접근을 취소했습니다."));
        assert!(after.response.text().contains("연결된 앱이 없습니다."));
        let gone = browser.send(Request::get("/account/apps/bot").header("Accept", "text/html")).await;
        assert_eq!(gone.response.status, 404);
        assert_guarded(&gone);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_withdraws_the_consent_of_another() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, viewer, tokens, .. } = Fixture::set_up(&world).await;
        let mut owner = signed_in(&world, &streamer).await;
        let form = withdrawal(&owner.open("/account/apps/bot").await, "bot");

        let mut other = signed_in(&world, &viewer).await;
        for path in ["/account/apps/bot", "/account/apps/missing", "/account/apps/%ED%95%9C"] {
            let page = other.send(Request::get(path).header("Accept", "text/html")).await;
            assert_eq!(page.response.status, 404, "{path}");
        }
        for (mut browser, form) in [
            (other.clone(), form.clone()),
            (world.browser(), form.clone()),
            (owner.clone(), form.clone().without("csrf")),
            (owner.clone(), form.clone().fill("csrf", "x")),
            (owner.clone(), Form { action: "/account/apps/other".to_owned(), ..form.clone() }),
        ] {
            assert_not_done(&browser.submit(&form).await, &form.action);
        }
        world.me(&tokens.access).await.content();
        // A proof of the viewer's own withdraws only what is the viewer's.
        let own = world.sign_in(&world.application("second").create().await, &viewer).await;
        let mine = withdrawal(&other.open("/account/apps/second").await, "second");
        assert_eq!(other.submit(&mine).await.location(), APPS);
        world.me(&own.access).await.assert_refused(401, "INVALID_TOKEN");
        world.me(&tokens.access).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_and_links_are_text_on_every_page() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, app, .. } = Fixture::set_up(&world).await;
        let link = "https://bot.example/?a=1&b='x'";
        let body = json!({
            "name": HOSTILE, "redirectUris": [app.redirect_uri], "scopes": ["유저 정보 조회"],
            "homepageUrl": link, "termsUrl": link, "privacyUrl": link, "logo": PNG,
        });
        world.operator(Request::put("/platform/v1/applications/bot").json(&body)).await.content();
        let channel = json!({ "channelName": HOSTILE });
        world.operator(Request::put("/platform/v1/channels/haneul").json(&channel)).await.content();
        let mut browser = signed_in(&world, &streamer).await;
        let query = format!("clientId=bot&redirectUri={}&state=s", encode(&app.redirect_uri));
        for path in ["/", APPS, "/account/apps/bot", &format!("/account-interlock?{query}")] {
            let page = browser.open(path).await;
            let html = page.response.text();
            assert!(!html.contains("<script>") && !html.contains("<img src=x"), "{path}");
            assert!(!html.contains('\u{202E}') && html.contains("&#60;script&#62;"), "{path}");
        }
        let html = browser.open("/account/apps/bot").await.response.text().to_owned();
        assert!(html.contains("href=\"https://bot.example/?a=1&#38;b=&#39;x&#39;\""), "{html}");
        let logo = html.split('"').find(|part| part.starts_with("/pictures/")).expect("a logo");
        assert!(logo.starts_with("/pictures/applications/bot?v="), "{logo}");
        let logo = world.send(Request::get(logo)).await;
        assert_eq!(
            (logo.header("content-type"), logo.header("x-content-type-options")),
            (Some("image/png"), Some("nosniff"))
        );
        world.send(Request::get("/pictures/applications/publisher")).await.assert_refused(404, "NOT_FOUND");
        // What is left out is removed.
        let body = json!({ "name": "bot", "redirectUris": [app.redirect_uri], "scopes": [] });
        world.operator(Request::put("/platform/v1/applications/bot").json(&body)).await.content();
        world.send(Request::get("/pictures/applications/bot")).await.assert_refused(404, "NOT_FOUND");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_sees_what_is_new() {
    both(Setup::default(), |world| async move {
        let Fixture { streamer, .. } = Fixture::set_up(&world).await;
        let narrow = world.application("wider").scopes(&[Scope::ChatRead, Scope::UserRead]).create().await;
        let first = world.sign_in_page(&mut world.browser(), &narrow, &streamer, "s").await;
        assert!(!first.response.text().contains("새로 요청함") && !first.response.text().contains("지난번"));
        world.sign_in(&narrow, &streamer).await;
        let same = world.sign_in_page(&mut world.browser(), &narrow, &streamer, "s").await;
        assert!(same.response.text().contains("지난번에 허용한 것과 같은 권한을 요청합니다."));
        let body = json!({
            "name": "wider", "redirectUris": [narrow.redirect_uri],
            "scopes": ["채팅 메시지 조회", "유저 정보 조회", "채팅 메시지 쓰기"],
        });
        world.operator(Request::put("/platform/v1/applications/wider").json(&body)).await.content();
        let wider = world.sign_in_page(&mut world.browser(), &narrow, &streamer, "s").await;
        let html = wider.response.text();
        let (new, known) = html.split_once("지난번에 허용한 권한 2가지").expect("the known ones come last");
        assert!(
            new.contains("새로 요청함")
                && new.contains("채팅 메시지 쓰기")
                && !new.contains("채팅 메시지 조회")
        );
        assert!(known.contains("채팅 메시지 조회") && known.contains("유저 정보 조회"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_apps_are_listed_on_pages() {
    both(Setup::default(), |world| async move {
        let Fixture { viewer, .. } = Fixture::set_up(&world).await;
        for n in 0..21 {
            let app = world.application(&format!("app-{n:02}")).create().await;
            world.consent(&app, &viewer, "s").await;
        }
        let mut browser = signed_in(&world, &viewer).await;
        let first = browser.open(APPS).await;
        let count = |page: &testkit::Page| {
            page.response.text().matches("class=\"button small\" href=\"/account/apps/").count()
        };
        assert_eq!(count(&first), 20);
        let html = first.response.text();
        let next = html.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
        let second = browser.open(next.expect("a second page")).await;
        assert_eq!(count(&second), 1);
        assert!(second.response.text().contains("rel=\"first\" href=\"/account/apps\""));
        assert_eq!(count(&browser.open("/account/apps?after=x").await), 20);
    })
    .await;
}
