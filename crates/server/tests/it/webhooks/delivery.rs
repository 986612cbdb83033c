//! The delivery of a claim to the publisher's webhook: the request, the consequence of each answer, and the
//! limits of concurrency (`docs/spec/drops.md#webhook`).

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Received, Receiver, Reply, Request, Response, Setup, World, both, patiently};

use crate::fixture::Fixture;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// The pauses between the attempts of one message.
const SCHEDULE: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(5 * 3_600),
    Duration::from_secs(10 * 3_600),
    Duration::from_secs(10 * 3_600),
];

/// A publisher with a webhook, and its receiver.
pub struct Shop {
    pub world: World,
    pub fixture: Fixture,
    pub receiver: Receiver,
    pub secret: String,
}

impl Shop {
    pub async fn open(world: &World) -> Self {
        let (fixture, receiver) = (Fixture::set_up(world).await, Receiver::start().await);
        let made = register(world, "publisher", &receiver.url("/hook?key=1")).await;
        let secret = made["secret"].as_str().expect("a secret").to_owned();
        Self { world: world.clone(), fixture, receiver, secret }
    }

    /// Claims another reward, and returns the claim.
    pub async fn claim(&self) -> Value {
        let reward = self.fixture.publisher.next_reward();
        let body = json!({ "campaignId": "voyage", "rewardId": reward, "channelId": "byeol" });
        self.world.claim(&body).await.content()
    }

    pub async fn webhook(&self) -> Value {
        self.world.operator(Request::get(path(""))).await.content()
    }

    /// The message, when it satisfies the condition.
    pub async fn message(&self, id: &str, is_as_it_should: impl Fn(&Value) -> bool) -> Value {
        let last = std::sync::Mutex::new(Value::Null);
        let found = async {
            loop {
                let now =
                    self.world.operator(Request::get(path(&format!("/deliveries/{id}")))).await.content();
                if is_as_it_should(&now) {
                    break now;
                }
                *last.lock().expect("not poisoned") = now;
            }
        };
        tokio::time::timeout(testkit::PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("the message stays {}", last.lock().expect("not poisoned")))
    }

    /// The next message that arrives, when this many of its attempts were recorded.
    async fn next_recorded(&self, attempts: usize) -> (Received, Value) {
        let received = self.receiver.next().await;
        let is_recorded = |message: &Value| count(message) == attempts && message["inFlight"] == false;
        let message = self.message(id(&received), is_recorded).await;
        (received, message)
    }

    async fn resend(&self, id: &str) -> Response {
        self.world.operator(Request::post(path(&format!("/deliveries/{id}/resend")))).await
    }
}

fn path(rest: &str) -> String {
    format!("/platform/v1/applications/publisher/webhook{rest}")
}

pub async fn register(world: &World, app: &str, url: &str) -> Value {
    let request = Request::put(format!("/platform/v1/applications/{app}/webhook"));
    world.operator(request.json(&json!({ "url": url }))).await.content()
}

pub fn id(received: &Received) -> &str {
    received.header("Service-Event-Message-Id")
}

pub fn count(message: &Value) -> usize {
    message["attempts"].as_array().expect("attempts").len()
}

fn rfc3339(ms: i64) -> String {
    domain::Timestamp::from_millis(ms).rfc3339()
}

/// A little more than a pause of the schedule with its maximum jitter.
fn at_most(pause: Duration) -> Duration {
    pause + pause / 10 + Duration::from_millis(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_arrives_signed_and_with_the_documented_headers() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        let claim = shop.claim().await;
        let (received, message) = shop.next_recorded(1).await;
        assert_eq!(received.line, "POST /hook?key=1 HTTP/1.1");
        let id = id(&received).to_owned();
        assert!(id.len() == 36 && id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f' | '-')), "{id}");
        let timestamp = "2026-07-18T14:32:12.345Z";
        let expected = [
            ("Service-Event-Message-Id", id.as_str()),
            ("Service-Event-Message-Timestamp", timestamp),
            ("Service-Event-Message-Type", "notification"),
            ("Service-Event-Message-Data-Type", "drop_reward_claim"),
            ("Service-Event-Message-Version", "1"),
            ("Service-Event-Message-Data-Version", "1"),
            ("Content-Type", "application/json"),
        ];
        for (name, value) in expected {
            assert!(
                received.headers.contains(&(name.into(), value.into())),
                "{name}: {:?}",
                received.headers
            );
        }
        // The other four: signature, user agent, host and length.
        assert_eq!(received.headers.len(), expected.len() + 4, "{:?}", received.headers);
        assert!(received.is_signed_with(&shop.secret));
        let mut changed = received.clone();
        changed.body.push(b' ');
        assert!(!changed.is_signed_with(&shop.secret));

        let body: Value = serde_json::from_slice(&received.body).expect("JSON");
        let event = json!({ "type": "drop_reward_claim", "version": "1", "data": claim });
        let whole = json!({ "version": "1", "messageId": id, "timestamp": timestamp, "event": event });
        assert_eq!(body, whole);
        assert_eq!((&message["state"], &message["claimId"]), (&json!("DELIVERED"), &claim["claimId"]));
        assert_eq!(message["attempts"][0]["status"], 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_retried_on_schedule_and_then_given_up() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        shop.receiver.usually(Reply::Whole(500, vec![], b"not\0today".to_vec()));
        shop.claim().await;
        let (first, message) = shop.next_recorded(1).await;
        assert_eq!(first.find("Service-Event-Message-Retry"), None);
        assert_eq!(
            (&message["attempts"][0]["status"], &message["attempts"][0]["answer"]),
            (&json!(500), &json!("not today"))
        );
        let mut message = message;
        for (retry, pause) in SCHEDULE.into_iter().enumerate() {
            let after = |pause: Duration| {
                rfc3339(world.now_ms() + i64::try_from(pause.as_millis()).expect("in range"))
            };
            let next = message["nextAttemptDate"].as_str().expect("a date");
            assert!(*after(pause) <= *next && *next <= *after(at_most(pause)), "{pause:?}: {next}");
            world.advance(at_most(pause));
            let (again, now) = shop.next_recorded(retry + 2).await;
            assert_eq!(id(&again), id(&first));
            assert_eq!(again.header("Service-Event-Message-Retry"), (retry + 1).to_string());
            assert_eq!(again.header("Service-Event-Message-Timestamp"), rfc3339(world.now_ms()));
            assert!(again.is_signed_with(&shop.secret), "signed anew");
            assert_eq!(now["state"], if retry == 6 { "DEAD" } else { "WAITING" });
            message = now;
        }
        world.advance(DAY);
        shop.receiver.usually(Reply::Status(204));
        assert_eq!(shop.receiver.count(), 8);

        // A dead letter is sent again under its old id, with the whole schedule of retries.
        shop.resend(id(&first)).await.content();
        let (again, message) = shop.next_recorded(9).await;
        assert_eq!((id(&again), &message["state"]), (id(&first), &json!("DELIVERED")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receiver_may_set_the_time_of_the_retry() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        let later = |header: &str| Reply::Whole(503, vec![format!("Retry-After: {header}")], vec![]);
        shop.receiver.reply([later("600"), later("Sun, 18 Jul 2027 00:00:00 GMT"), Reply::Status(200)]);
        shop.claim().await;
        let (_, message) = shop.next_recorded(1).await;
        assert_eq!(message["nextAttemptDate"], "2026-07-18T14:42:12.345Z");
        world.advance(10 * MINUTE);
        let (_, message) = shop.next_recorded(2).await;
        assert_eq!(message["nextAttemptDate"], "2026-07-19T14:42:12.345Z", "a day at the most");
        world.advance(DAY);
        let (_, message) = shop.next_recorded(3).await;
        assert_eq!(message["state"], "DELIVERED");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_is_disabled_and_its_owner_notified() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        shop.receiver.reply([Reply::Status(410)]);
        shop.claim().await;
        let (gone, message) = shop.next_recorded(1).await;
        assert_eq!(message["state"], "DEAD");
        let webhook = shop.webhook().await;
        assert_eq!((&webhook["enabled"], &webhook["disabledReason"]), (&json!(false), &json!("GONE")));
        assert_eq!(webhook["notices"][0]["kind"], "DISABLED_GONE");
        shop.claim().await;
        world.advance(DAY);
        assert_eq!(shop.receiver.count(), 1);

        // After enabling it and sending the window again, the publisher has received every message.
        world
            .operator(Request::put(path("")).json(&json!({ "url": shop.receiver.url("/"), "enabled": true })))
            .await
            .content();
        let window = json!({ "from": "2026-07-18T00:00:00Z", "to": "2026-07-20T00:00:00Z" });
        world.operator(Request::post(path("/resend")).json(&window)).await.content();
        let sent = [shop.receiver.next().await, shop.receiver.next().await];
        assert!(sent.iter().any(|sent| id(sent) == id(&gone)) && id(&sent[0]) != id(&sent[1]));
        for sent in &sent {
            shop.message(id(sent), |message| message["state"] == "DELIVERED").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_only_fails_for_five_days_is_disabled() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        shop.receiver.usually(Reply::Close);
        for day in 0..5 {
            shop.claim().await;
            let received = shop.receiver.next().await;
            let message = shop.message(id(&received), |message| count(message) > 0).await;
            assert_eq!(message["attempts"][0]["failure"], "closed");
            if day > 0 {
                settle(&shop).await;
            }
            assert_eq!(shop.webhook().await["enabled"], true, "day {day}");
            world.advance(DAY);
        }
        // The attempts that are due now fail too.
        patiently("the webhook is disabled", async { while shop.webhook().await["enabled"] == true {} })
            .await;
        assert_eq!(shop.webhook().await["notices"][0]["kind"], "DISABLED_FAILING");
    })
    .await;
}

/// Waits until every due attempt was made and recorded.
async fn settle(shop: &Shop) {
    patiently("nothing is due", async {
        loop {
            let page =
                shop.world.operator(Request::get(path("/deliveries?state=WAITING&size=50"))).await.content();
            let now = rfc3339(shop.world.now_ms());
            let waits =
                |message: &Value| message["nextAttemptDate"].as_str().is_some_and(|date| date > now.as_str());
            if page["data"].as_array().expect("a list").iter().all(waits) {
                break;
            }
        }
        while shop.receiver.seen() < shop.receiver.count() {
            shop.receiver.next().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_answers_and_not_followed() {
    both(Setup::default(), |world| async move {
        let (shop, elsewhere) = (Shop::open(&world).await, Receiver::start().await);
        for status in [301, 302, 303, 307, 308] {
            let location = format!("Location: {}", elsewhere.url("/"));
            shop.receiver.reply([Reply::Whole(status, vec![location], vec![])]);
            shop.claim().await;
            let (_, message) = shop.next_recorded(1).await;
            assert_eq!(
                (&message["attempts"][0]["status"], &message["state"]),
                (&json!(status), &json!("WAITING"))
            );
        }
        assert_eq!(elsewhere.connections(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_ends_after_five_seconds() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        for reply in [Reply::Hang, Reply::Drip(Duration::from_millis(1))] {
            shop.receiver.reply([reply]);
            shop.claim().await;
            let received = shop.receiver.next().await;
            world.advance(5 * SECOND);
            let message = shop.message(id(&received), |message| count(message) == 1).await;
            let attempt = &message["attempts"][0];
            assert_eq!((&attempt["failure"], &attempt["durationMs"]), (&json!("timeout"), &json!(5_000)));
        }
        shop.receiver.usually(Reply::Endless(200));
        shop.claim().await;
        // The first message is retried now, too.
        let is_retry = |received: &Received| received.find("Service-Event-Message-Retry").is_some();
        let received = loop {
            let received = shop.receiver.next().await;
            if !is_retry(&received) {
                break received;
            }
        };
        let is_recorded = |message: &Value| count(message) == 1 && message["inFlight"] == false;
        let message = shop.message(id(&received), is_recorded).await;
        assert_eq!(message["state"], "DELIVERED", "64 KiB are enough of an answer");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_receiver_delays_no_other_receiver() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        let other = world.application("other").scopes(&[domain::Scope::Drops]);
        other.with("organizationId", "publisher").create().await;
        let slow = Receiver::start().await;
        slow.usually(Reply::Hang);
        register(&world, "other", &slow.url("/")).await;
        for _ in 0..12 {
            shop.claim().await;
        }
        for _ in 0..12 {
            shop.receiver.next().await;
        }
        // The clock does not advance: the hanging receiver still has its first message, and no other.
        slow.next().await;
        assert_eq!((slow.count(), slow.at_once()), (1, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_at_most_eight_concurrent_messages() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        let page = json!({ "url": shop.receiver.url("/"), "enabled": false });
        world.operator(Request::put(path("")).json(&page)).await.content();
        for _ in 0..19 {
            shop.claim().await;
        }
        // The first seven answers increase the concurrency.
        shop.receiver.reply(vec![Reply::Status(200); 7]);
        shop.receiver.usually(Reply::Hang);
        let page = json!({ "url": shop.receiver.url("/"), "enabled": true });
        world.operator(Request::put(path("")).json(&page)).await.content();
        let window = json!({ "from": "2026-07-18T00:00:00Z", "to": "2026-07-20T00:00:00Z" });
        world.operator(Request::post(path("/resend")).json(&window)).await.content();
        let mut last = String::new();
        for _ in 0..15 {
            last = id(&shop.receiver.next().await).to_owned();
        }
        world.advance(5 * SECOND);
        shop.message(&last, |message| count(message) == 1).await;
        assert_eq!(shop.receiver.at_once(), 8);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outcomes_of_attempts_are_counted() {
    both(Setup::default(), |world| async move {
        let shop = Shop::open(&world).await;
        let metric = async |name: &str| {
            let page = world.operator(Request::get("/metrics")).await;
            let line = page.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("no {name}")).parse::<f64>().expect("a number")
        };
        shop.receiver.reply([Reply::Status(200), Reply::Status(500), Reply::Close, Reply::Status(410)]);
        for _ in 0..4 {
            shop.claim().await;
            shop.next_recorded(1).await;
        }
        let of = |outcome| format!("stagedoor_webhook_attempts_total{{outcome=\"{outcome}\"}}");
        assert_eq!(metric(&of("delivered")).await, 1.0);
        assert_eq!(metric(&of("refused")).await, 2.0);
        assert_eq!(metric(&of("closed")).await, 1.0);
        assert_eq!(metric("stagedoor_webhook_attempts_under_way").await, 0.0);
        assert_eq!(metric("stagedoor_webhook_first_attempt_delay_seconds_count").await, 4.0);
        assert_eq!(metric("stagedoor_webhook_dead_letters_total").await, 1.0);
        assert_eq!(metric("stagedoor_webhooks_disabled_total").await, 1.0);
        assert_eq!(metric("stagedoor_job_runs_total{job=\"webhook_look\",outcome=\"failed\"}").await, 0.0);
    })
    .await;
}
