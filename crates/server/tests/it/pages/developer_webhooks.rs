//! The webhook of an application in the developer center: address, secrets, test message, delivery log.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Browser, Form, Page, Person, Receiver, Reply, Request, Setup, World, both};

use super::studio::{assert_at_field, assert_shows, form_to, with};
use super::{assert_guarded, signed_in};
use crate::fixture::Fixture;

const APP: &str = "/developers/applications/publisher";
const WEBHOOK: &str = "/developers/applications/publisher/webhook";
const LOG: &str = "/developers/applications/publisher/webhook/deliveries";
const SECOND: Duration = Duration::from_secs(1);
const HOSTILE: &str = "\u{202E}<script>alert(1)</script>\"'<img src=x onerror=alert(2)>";

/// A publisher with a developer and a viewer of its organization, and a receiver.
struct Desk {
    world: World,
    fixture: Fixture,
    receiver: Receiver,
    developer: Browser,
    viewer: Browser,
}

impl Desk {
    async fn open(world: World) -> Self {
        let fixture = Fixture::set_up(&world).await;
        let developer = Self::member(&world, "dev", "developer").await;
        let viewer = Self::member(&world, "reader", "viewer").await;
        let developer = signed_in(&world, &developer).await;
        let viewer = signed_in(&world, &viewer).await;
        Self { world, fixture, receiver: Receiver::start().await, developer, viewer }
    }

    async fn member(world: &World, id: &str, role: &str) -> Person {
        let person = world.person(id).create().await;
        let member = Request::put(format!("/platform/v1/organizations/publisher/members/{id}"));
        world.operator(member.json(&json!({ "role": role }))).await.content();
        person
    }

    async fn page(&mut self, path: &str) -> Page {
        let page = self.developer.open(path).await;
        assert_guarded(&page);
        page
    }

    /// Registers the address of the receiver.
    async fn register(&mut self) -> String {
        let url = self.receiver.url("/hook?key=of-the-receiver");
        let form = with(form_to(&self.page(WEBHOOK).await, WEBHOOK), "url", &url);
        shown(&self.developer.submit(&form).await, "made-secret")
    }

    async fn claim(&self) -> Value {
        let reward = self.fixture.publisher.next_reward();
        let body = json!({ "campaignId": "voyage", "rewardId": reward, "channelId": "byeol" });
        self.world.claim(&body).await.content()
    }

    /// The page when it shows the text.
    async fn page_with(&mut self, path: &str, text: &str) -> Page {
        let page = async {
            loop {
                let page = self.developer.open(path).await;
                if page.response.text().contains(text) {
                    break page;
                }
            }
        };
        tokio::time::timeout(testkit::PATIENCE, page).await.unwrap_or_else(|_| panic!("{text} at {path}"))
    }

    async fn disable(&self, enabled: bool) {
        let body = json!({ "url": self.receiver.url("/hook"), "enabled": enabled });
        let request = Request::put("/platform/v1/applications/publisher/webhook");
        self.world.operator(request.json(&body)).await.content();
    }
}

/// The value of the read-only field with this id.
#[track_caller]
fn shown(page: &Page, id: &str) -> String {
    let html = page.response.text();
    let tag = html.split('<').find(|tag| tag.starts_with(&format!("input id=\"{id}\"")));
    let tag = tag.unwrap_or_else(|| panic!("no {id}: {html}"));
    tag.split("value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a value").to_owned()
}

async fn status(browser: &mut Browser, path: &str) -> u16 {
    browser.send(Request::get(path).header("Accept", "text/html")).await.response.status
}

/// The first button of a secret that does this.
fn secret_button(page: &Page, action: &str) -> Form {
    let button = ("action".to_owned(), action.to_owned());
    let own = |form: &&Form| form.action.contains("/webhook/secrets/") && form.buttons.contains(&button);
    page.forms.iter().find(own).expect("a secret").clone().press("action", action)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_registers_a_webhook_and_tests_it() {
    both(Setup::default(), |world| async move {
        let mut desk = Desk::open(world).await;
        let blank = form_to(&desk.page(WEBHOOK).await, WEBHOOK);
        for (url, said) in [
            ("", "https://로 시작"),
            ("http://games.example/", "https://로 시작"),
            ("https://10.1.2.3/", "공개된 주소"),
            ("https://games.example/#top", "프래그먼트"),
            (HOSTILE, "https://로 시작"),
        ] {
            let page = desk.developer.submit(&with(blank.clone(), "url", url)).await;
            assert_at_field(&page, "url", said);
            assert!(!page.response.text().contains("<script>"), "{url}");
        }
        let secret = desk.register().await;
        let page = desk.page(WEBHOOK).await;
        assert_shows(&page, &format!("…{}", &secret[secret.len() - 4..]));
        assert!(!page.response.text().contains(&secret));
        assert_shows(&page, "key=of-the-receiver");

        let test = format!("{WEBHOOK}/test");
        let test = form_to(&page, &test);
        let at = desk.developer.submit(&test).await.location().to_owned();
        let received = desk.receiver.next().await;
        assert_eq!(received.header("Service-Event-Message-Data-Type"), "webhook_test");
        assert!(received.is_signed_with(&secret));
        let page = desk.page_with(&at, "200 · 받음").await;
        assert_guarded(&page);
        let body = String::from_utf8(received.body.clone()).expect("a text").replace('"', "&#34;");
        assert_shows(&page, &body);
        assert_shows(&page, "Service-Event-Message-Signature: sha256=…");
        assert_shows(&page, received.header("Service-Event-Message-Timestamp"));
        assert_shows(&desk.page(&format!("{LOG}?show=tests")).await, at.rsplit('/').next().expect("an id"));

        for _ in 0..4 {
            desk.developer.submit(&test).await.location();
            desk.receiver.next().await;
        }
        let page = desk.developer.submit(&test).await;
        assert_eq!(page.response.status, 422);
        assert!(page.response.text().contains("1분에 5개까지"));

        let removal = format!("{WEBHOOK}/removal");
        let form = form_to(&desk.page(&removal).await, &removal);
        assert_eq!(desk.developer.submit(&form).await.location(), WEBHOOK);
        assert_eq!(status(&mut desk.developer, &removal).await, 404);
        assert_eq!(status(&mut desk.developer, LOG).await, 404);
        assert_eq!(desk.developer.submit(&test).await.response.status, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_followed_from_its_failures_to_its_delivery() {
    both(Setup::default(), |world| async move {
        let mut desk = Desk::open(world).await;
        desk.register().await;
        let answer = HOSTILE.as_bytes().to_vec();
        desk.receiver.reply([Reply::Whole(503, Vec::new(), answer), Reply::Close]);
        let claim = desk.claim().await;
        let claim = claim["claimId"].as_str().expect("an id").to_owned();
        let first = desk.receiver.next().await;
        let path = format!("{LOG}/{}", first.header("Service-Event-Message-Id"));
        let page = desk.page_with(&path, "503 · 거절").await;
        assert_guarded(&page);
        assert_shows(&page, "alert(1)");
        assert!(!page.response.text().contains("<script>") && !page.response.text().contains("<img src=x"));
        assert_shows(&page, "다음 시도");
        assert_shows(&page, &claim);
        assert_shows(&desk.page(WEBHOOK).await, "실패 중");
        desk.world.advance(6 * SECOND);
        let second = desk.receiver.next().await;
        desk.page_with(&path, "응답 중에 연결이 끊김").await;
        let shown = desk.page(&format!("{path}?attempt=2")).await;
        assert_shows(&shown, "Service-Event-Message-Retry: 1");
        assert_shows(&shown, second.header("Service-Event-Message-Timestamp"));
        let shown = desk.page(&format!("{path}?attempt=1")).await;
        assert_shows(&shown, first.header("Service-Event-Message-Timestamp"));
        assert!(!shown.response.text().contains("Message-Retry"));

        // By the id of the message, of the claim, and by neither.
        let found = desk.developer.open(&format!("{LOG}?id={claim}")).await;
        assert_eq!(found.location(), path);
        assert_eq!(
            desk.developer.open(&format!("{LOG}?id=%20{}", &path[LOG.len() + 1..])).await.location(),
            path
        );
        let missing = desk.page(&format!("{LOG}?id={}", testkit::encode(HOSTILE))).await;
        assert_shows(&missing, "이 ID의 메시지가 없습니다.");
        assert!(!missing.response.text().contains("<script>"));

        let resend = form_to(&desk.page(&path).await, &path);
        assert_eq!(desk.developer.submit(&resend).await.location(), path);
        desk.receiver.next().await;
        desk.page_with(&path, "200 · 받음").await;
        assert_shows(&desk.page(&format!("{LOG}?show=DELIVERED")).await, &claim);
        assert!(!desk.page(&format!("{LOG}?show=DEAD")).await.response.text().contains(&claim));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_replaced_without_a_gap() {
    both(Setup::default(), |world| async move {
        let mut desk = Desk::open(world).await;
        let first = desk.register().await;
        let add = form_to(&desk.page(WEBHOOK).await, &format!("{WEBHOOK}/secrets"));
        let made = desk.developer.submit(&add).await;
        let second = shown(&made, "made-secret");
        assert_eq!(
            shown(&desk.developer.submit(&add).await, "made-secret"),
            second,
            "a form takes effect once"
        );
        desk.claim().await;
        assert!(desk.receiver.next().await.is_signed_with(&first));

        let page = desk.page(WEBHOOK).await;
        assert_shows(&page, "대기 중");
        assert!(page.forms.iter().all(|form| !form.action.ends_with("/secrets")), "one is pending");
        assert_eq!(desk.developer.submit(&secret_button(&page, "activate")).await.location(), WEBHOOK);
        desk.claim().await;
        assert!(desk.receiver.next().await.is_signed_with(&second));
        let page = desk.page(WEBHOOK).await;
        assert_shows(&page, "물러나는 중");
        let delete = secret_button(&page, "delete");
        assert_eq!(desk.developer.submit(&delete).await.location(), WEBHOOK);
        assert_eq!(desk.developer.submit(&delete).await.response.status, 404);
        assert!(!desk.page(WEBHOOK).await.response.text().contains("물러나는 중"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_was_switched_off_is_enabled_by_who_may() {
    both(Setup::default(), |world| async move {
        let mut desk = Desk::open(world).await;
        desk.register().await;
        desk.receiver.reply([Reply::Status(410)]);
        desk.claim().await;
        desk.receiver.next().await;
        let page = desk.page_with(WEBHOOK, "수신 서버를 고친 뒤").await;
        let enable = form_to(&page, WEBHOOK).press("enable", "yes");
        assert!(page.forms.iter().all(|form| !form.action.ends_with("/test")));
        assert_eq!(desk.developer.submit(&enable).await.location(), WEBHOOK);
        assert_shows(&desk.page(WEBHOOK).await, "정상");
        let dead = format!("{LOG}?show=DEAD");
        let page = desk.page(&dead).await;
        let resend = page.forms.iter().find(|form| form.method == "post" && form.action == LOG);
        let resend = resend.expect("a form").clone();
        assert_eq!(desk.developer.submit(&resend).await.location(), LOG);
        desk.receiver.next().await;

        desk.disable(false).await;
        let removal = form_to(&desk.page(&format!("{WEBHOOK}/removal")).await, &format!("{WEBHOOK}/removal"));
        let page = desk.page(WEBHOOK).await;
        assert_shows(&page, "운영자만 다시 켤 수 있습니다.");
        for form in [enable, removal] {
            assert_eq!(desk.developer.submit(&form).await.response.status, 422, "{}", form.action);
        }
        assert_shows(&desk.page(WEBHOOK).await, "운영자가 중지함");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_read_and_strangers_see_nothing() {
    both(Setup::default(), |world| async move {
        let mut desk = Desk::open(world).await;
        desk.register().await;
        desk.claim().await;
        let message = desk.receiver.next().await.header("Service-Event-Message-Id").to_owned();
        let one = format!("{LOG}/{message}");
        desk.page_with(&one, "200 · 받음").await;
        let add = form_to(&desk.page(WEBHOOK).await, &format!("{WEBHOOK}/secrets"));
        desk.developer.submit(&add).await;
        let removal = format!("{WEBHOOK}/removal");
        let mut forms = Vec::new();
        for path in [WEBHOOK, LOG, &one, &removal] {
            forms.extend(desk.page(path).await.forms.into_iter().filter(|form| form.method == "post"));
        }
        forms.retain(|form| form.action.starts_with(APP));
        forms.sort_by(|a, b| a.action.cmp(&b.action));
        forms.dedup_by(|a, b| a.action == b.action);
        assert_eq!(forms.len(), 5, "address, message, removal, secret, test");

        for path in [WEBHOOK, LOG, &one] {
            let page = desk.viewer.open(path).await;
            assert_eq!(page.response.status, 200, "{path}");
            assert!(!page.response.text().contains("key=of-the-receiver"), "{path}");
            assert!(
                page.forms.iter().all(|form| form.method == "get" || form.action == "/sign-out"),
                "{path}"
            );
        }
        let stranger = desk.world.person("stranger").create().await;
        let mut stranger = signed_in(&desk.world, &stranger).await;
        for path in [WEBHOOK, LOG, &one, &removal] {
            assert_eq!(status(&mut stranger, path).await, 404, "{path}");
        }
        // A form needs the proof of its own page and browser, and the role.
        for form in &forms {
            assert_eq!(desk.developer.submit(&form.clone().without("csrf")).await.response.status, 400);
            assert_eq!(stranger.submit(form).await.response.status, 400, "{}", form.action);
        }
        desk.page(&one).await;
        // Messages and secrets of other applications are not found.
        for id in [&desk.fixture.webhook_owner.message_id, "missing", "%ED%95%9C"] {
            assert_eq!(status(&mut desk.developer, &format!("{LOG}/{id}")).await, 404, "{id}");
        }
        let member = Request::put("/platform/v1/organizations/publisher/members/dev");
        desk.world.operator(member.json(&json!({ "role": "viewer" }))).await.content();
        for form in &forms {
            assert_eq!(desk.developer.submit(form).await.response.status, 404, "{}", form.action);
        }
        assert_eq!(status(&mut desk.developer, &removal).await, 404);
        assert_eq!(desk.developer.open(&format!("{LOG}?next=x")).await.location(), LOG);
    })
    .await;
}
