//! The sessions of an application in the developer center: what is shown, and who ends one.

use serde_json::json;
use testkit::{Application, Browser, Page, Request, Setup, Socket, World, both, patiently};

use super::developers::{HOSTILE, address, choose, form, register, status, with};
use super::{assert_guarded, assert_not_done, signed_in};

fn one(app: &Application, socket: &Socket) -> String {
    address(app, &format!("/sessions/{}", socket.session_key()))
}

async fn close_reason(world: &World, key: &str) -> serde_json::Value {
    world.operator(Request::get(format!("/platform/v1/sessions/{key}"))).await.content()["closeReason"]
        .clone()
}

/// Waits until a page says something: the end of a session is recorded after its socket closes.
async fn until(browser: &mut Browser, path: &str, text: &str) -> Page {
    patiently("the page says it", async {
        loop {
            let page = browser.open(path).await;
            if page.response.text().contains(text) {
                break page;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_sees_the_sessions_of_an_application_and_ends_one() {
    both(Setup::default(), |world| async move {
        let developer = world.person("dev").create().await;
        let viewer = world.person("byeol").create().await;
        let name = json!({ "channelName": HOSTILE });
        world.operator(Request::put("/platform/v1/channels/byeol").json(&name)).await.content();
        let mut browser = signed_in(&world, &developer).await;
        let app = register(&mut browser, "봇", "").await;
        choose(&mut browser, &app, &["user-read", "chat-read"]).await;
        let list = address(&app, "/sessions");
        let empty = browser.open(&list).await;
        assert_guarded(&empty);
        assert!(empty.response.text().contains("연결된 세션이 없습니다."));

        let tokens = world.sign_in(&app, &viewer).await;
        let of_client = world.open_client_session(&app).await;
        let mut of_user = world.open_user_session(&tokens.access).await;
        world.subscribe(&tokens.access, "chat", of_user.session_key()).await.content();
        of_user.system("subscribed").await;
        for lang in ["ko", "en"] {
            let page = browser.open(&format!("{list}?lang={lang}")).await;
            let html = page.response.text();
            for text in ["1 / 10", "1 / 3", "1 / 30", of_client.session_key(), of_user.session_key()] {
                assert!(html.contains(text), "{text}: {html}");
            }
            assert!(!html.contains("<script>") && !html.contains("<img src=x"));
        }
        let path = one(&app, &of_user);
        let page = browser.open(&format!("{path}?lang=ko")).await;
        assert_guarded(&page);
        for text in ["websocket", "<code>CHAT</code>", "<code>byeol</code>", "방금"] {
            assert!(page.response.text().contains(text), "{text}");
        }
        let end = form(&page, &path);
        assert_eq!(browser.submit(&end).await.location(), list);
        let noticed = browser.open(&list).await;
        assert!(noticed.response.text().contains("세션을 종료했습니다."));
        let key = of_user.session_key().to_owned();
        assert_eq!(of_user.closed().await, (1008, "evicted".to_owned()));
        assert_eq!(close_reason(&world, &key).await, "evicted");

        // It stands below the others, with its reason. A form of before does nothing more.
        let ended = until(&mut browser, &list, "운영자나 개발자가 세션을 종료했습니다.").await;
        assert!(ended.response.text().contains(&format!("href=\"{path}\"")));
        assert_eq!(browser.submit(&end).await.location(), list);
        let page = browser.open(&path).await;
        assert!(page.forms.iter().all(|form| form.action != path), "it has ended");
        let all = browser.open(&format!("{list}?state=ended")).await;
        assert!(all.response.text().contains(&key));
        assert!(!all.response.text().contains(of_client.session_key()));
        world.subscribe(&tokens.access, "chat", of_client.session_key()).await.content();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_shown_and_ended_by_the_people_of_its_application_only() {
    both(Setup::default(), |world| async move {
        let (developer, other) = (world.person("dev").create().await, world.person("byeol").create().await);
        let mut owner = signed_in(&world, &developer).await;
        let app = register(&mut owner, "봇", "").await;
        let mut stranger = signed_in(&world, &other).await;
        let theirs = register(&mut stranger, "다른 봇", "").await;
        let socket = world.open_client_session(&app).await;
        let path = one(&app, &socket);
        // Of another person, below another application, and none at all.
        let below = one(&theirs, &socket);
        let missing = [address(&app, "/sessions/missing"), address(&app, "/sessions/%3Cscript%3E")];
        for (browser, path) in [
            (&mut stranger.clone(), &path),
            (&mut stranger.clone(), &address(&app, "/sessions")),
            (&mut stranger.clone(), &below),
            (&mut owner.clone(), &missing[0]),
            (&mut owner.clone(), &missing[1]),
        ] {
            assert_eq!(status(browser, path).await, 404, "{path}");
        }
        let end = form(&owner.open(&path).await, &path);
        // The proof of another browser, none, and one of another session.
        for (mut browser, form) in [
            (stranger.clone(), end.clone()),
            (world.browser(), end.clone()),
            (owner.clone(), end.clone().without("csrf")),
            (owner.clone(), testkit::Form { action: missing[0].clone(), ..end.clone() }),
        ] {
            assert_not_done(&browser.submit(&form).await, &form.action);
        }
        // With a proof of the stranger’s own browser, for an address that it may not use.
        let own = form(&stranger.open("/developers/register").await, "/developers/register");
        let forged = testkit::Form { action: path.clone(), ..own };
        assert_eq!(stranger.submit(&forged).await.response.status, 400);
        assert_eq!(close_reason(&world, socket.session_key()).await, serde_json::Value::Null);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_of_the_organization_sees_sessions_and_ends_none() {
    both(Setup::default(), |world| async move {
        let (admin, member) = (world.person("dev").create().await, world.person("byeol").create().await);
        let mut owner = signed_in(&world, &admin).await;
        let make = form(&owner.open("/developers/new-organization").await, "/developers/new-organization");
        let path = owner.submit(&with(make, "organizationName", "게임즈")).await.location().to_owned();
        let id = path.rsplit('/').next().expect("an id").to_owned();
        let app = register(&mut owner, "게임 봇", &id).await;
        let invite = form(&owner.open(&path).await, &format!("{path}/invitations"));
        owner.submit(&with(with(invite, "login", &member.login), "role", "viewer")).await.location();
        let mut browser = signed_in(&world, &member).await;
        let accept = form(&browser.open("/developers").await, &format!("{path}/invitation"));
        browser.submit(&accept.press("answer", "accept")).await.location();

        let socket = world.open_client_session(&app).await;
        let session = one(&app, &socket);
        let page = browser.open(&session).await;
        assert_eq!(page.response.status, 200);
        assert!(page.forms.iter().all(|form| form.action != session));
        assert!(owner.open(&session).await.forms.iter().any(|form| form.action == session));
    })
    .await;
}
