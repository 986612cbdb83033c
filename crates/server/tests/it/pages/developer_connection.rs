//! The connection test in the developer center.

use serde_json::json;
use testkit::{Page, Receiver, Reply, Request, Setup, both};

use super::studio::{assert_shows, form_to, with};
use super::{assert_guarded, signed_in};
use crate::fixture::Fixture;

const CONNECTION: &str = "/developers/applications/publisher/connection";

/// The part of the page with this heading.
#[track_caller]
fn part(page: &Page, heading: &str) -> String {
    let html = page.response.text();
    let parts = html.split("<section class=\"part\"").skip(1);
    let found = parts.map(|part| part.split("</section>").next().unwrap_or_default());
    let heading = format!(">{heading}</h2>");
    found.into_iter().find(|part| part.contains(&heading)).unwrap_or_else(|| panic!("{html}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_accepts_a_wrong_signature_is_found() {
    both(Setup::default(), |world| async move {
        Fixture::set_up(&world).await;
        let receiver = Receiver::start().await;
        let member = |id: &str, role: &str| {
            let request = Request::put(format!("/platform/v1/organizations/publisher/members/{id}"));
            world.operator(request.json(&json!({ "role": role })))
        };
        let (developer, viewer) = (world.person("dev").create().await, world.person("reader").create().await);
        member("dev", "developer").await.content();
        member("reader", "viewer").await.content();
        let mut browser = signed_in(&world, &developer).await;
        let page = browser.open(CONNECTION).await;
        assert_guarded(&page);
        let test = form_to(&page, CONNECTION);
        let tested = browser.submit(&test).await;
        assert!(part(&tested, "웹훅").contains("등록한 웹훅이 없어"));
        assert!(part(&tested, "세션 소켓").contains("401"), "{}", tested.response.text());

        let url = json!({ "url": receiver.url("/hook?key=of-the-receiver") });
        let made = Request::put("/platform/v1/applications/publisher/webhook").json(&url);
        let made = world.operator(made).await.content();
        let secret = made["secret"].as_str().expect("a secret").to_owned();
        assert_eq!(browser.submit(&test).await.response.status, 422, "one test in ten seconds");
        world.advance(jobs::webhooks::TEST_PAUSE);
        receiver.usually(Reply::Status(204));
        let tested = browser.submit(&test).await;
        assert_guarded(&tested);
        let webhook = part(&tested, "웹훅");
        assert!(
            webhook.contains("메시지를 받았습니다.") && webhook.contains("누구나 거짓 메시지를"),
            "{webhook}"
        );
        assert!(!tested.response.text().contains("of-the-receiver"));
        let (good, bad) = (receiver.next().await, receiver.next().await);
        assert!(good.is_signed_with(&secret) && !bad.is_signed_with(&secret));
        assert_eq!(bad.header("Service-Event-Message-Data-Type"), "webhook_test");

        world.advance(jobs::webhooks::TEST_PAUSE);
        receiver.reply([Reply::Status(200), Reply::Status(401)]);
        let webhook = part(&browser.submit(&test).await, "웹훅");
        assert!(webhook.contains("서명이 틀린 메시지를 거절했습니다."), "{webhook}");
        let log = "/developers/applications/publisher/webhook/deliveries";
        assert_shows(&browser.open(log).await, "메시지가 없습니다.");
        world.advance(jobs::webhooks::TEST_PAUSE);
        receiver.usually(Reply::Close);
        assert!(part(&browser.submit(&test).await, "웹훅").contains("응답 중에 연결이 끊김"));

        // A person without the role gets 404, and a form needs its proof.
        assert_eq!(browser.submit(&test.clone().without("csrf")).await.response.status, 400);
        let mut reader = signed_in(&world, &viewer).await;
        let request = Request::get(CONNECTION).header("Accept", "text/html");
        assert_eq!(reader.send(request).await.response.status, 404);
        assert_eq!(reader.submit(&with(test.clone(), "csrf", "x")).await.response.status, 400);
        member("dev", "viewer").await.content();
        assert_eq!(browser.submit(&test).await.response.status, 404);
    })
    .await;
}
