//! The fixture of most tests: an application, a streamer, a viewer, and the streamer's tokens.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use domain::Scope;
use serde_json::json;
use testkit::{Application, Person, Request, Tokens, World};

/// The data that a test begins with.
pub struct Fixture {
    pub app: Application,
    pub streamer: Person,
    pub viewer: Person,
    pub tokens: Tokens,
    pub publisher: Arc<Publisher>,
    pub webhook_owner: Arc<WebhookOwner>,
    /// The id of the only secret of `app`.
    pub secret_id: String,
    /// The request of the streamer to verify the organization `reviewed`.
    pub review_request_id: String,
}

/// An application `webhook-owner` of its own verified organization. Its webhook has no listener, and one
/// message.
pub struct WebhookOwner {
    /// The secret that signs.
    pub secret_id: String,
    /// The message.
    pub message_id: String,
    /// The latest added secret.
    pending_secret: Arc<Mutex<String>>,
}

impl WebhookOwner {
    /// The path of its webhook.
    pub const WEBHOOK: &str = "/platform/v1/applications/webhook-owner/webhook";

    async fn set_up(world: &World) -> Self {
        let organization = json!({ "organizationName": "바다 게임즈", "verified": true });
        world
            .operator(Request::put("/platform/v1/organizations/webhook-owner").json(&organization))
            .await
            .content();
        let app = world.application("webhook-owner").scopes(&[Scope::Drops]);
        app.with("organizationId", "webhook-owner").create().await;
        world.operator(Request::put(Self::WEBHOOK).json(&json!({}))).await.content();
        let campaign = json!({
            "campaignName": "등대", "organizationId": "webhook-owner", "categoryId": "star-voyage",
            "rewards": [{ "rewardId": "lamp", "rewardName": "등" }],
        });
        world.put_campaign("lighthouse", &campaign).await.content();
        let claim = json!({ "campaignId": "lighthouse", "rewardId": "lamp", "channelId": "byeol" });
        world.claim(&claim).await.content();
        let first = async |list: &str, id: &str| {
            let list = Request::get(format!("{}/{list}", Self::WEBHOOK));
            let id = &world.operator(list).await.content()["data"][0][id];
            id.as_str().expect("a text").to_owned()
        };
        let secret_id = first("secrets", "secretId").await;
        let message_id = first("deliveries", "messageId").await;
        Self { secret_id, message_id, pending_secret: Arc::default() }
    }

    /// Adds a secret that does not sign yet. The webhook must not have one already.
    pub async fn add_pending_secret(&self, world: &World) {
        let added = Request::post(format!("{}/secrets", Self::WEBHOOK));
        let added = world.operator(added).await.content();
        let id = added["secretId"].as_str().expect("a text").to_owned();
        *self.pending_secret.lock().expect("no test panicked") = id;
    }

    /// The id of the latest added secret.
    pub fn pending_secret(&self) -> String {
        match self.pending_secret.lock().expect("no test panicked").as_str() {
            "" => "unknown".to_owned(),
            id => id.to_owned(),
        }
    }
}

/// A publisher of games: an application `publisher` of the verified organization `publisher`, which has the
/// campaign `voyage`.
pub struct Publisher {
    pub app: Application,
    claimed: AtomicUsize,
}

/// Rewards of the campaign `voyage`.
const REWARDS: usize = 20;

impl Publisher {
    async fn set_up(world: &World) -> Self {
        world.category("star-voyage", "스타 보이지").await;
        let organization = json!({ "organizationName": "우주 게임즈", "verified": true });
        let target = "/platform/v1/organizations/publisher";
        world.operator(Request::put(target).json(&organization)).await.content();
        let app = world.application("publisher").scopes(&[Scope::Drops]);
        let app = app.with("organizationId", "publisher").create().await;
        let reward = |n| json!({ "rewardId": format!("reward-{n}"), "rewardName": format!("보상 {n}") });
        let campaign = json!({
            "campaignName": "첫 항해", "organizationId": "publisher", "categoryId": "star-voyage",
            "rewards": (0..REWARDS).map(reward).collect::<Vec<_>>(),
        });
        world.put_campaign("voyage", &campaign).await.content();
        Self { app, claimed: AtomicUsize::new(0) }
    }

    /// The next unclaimed reward of `voyage`, because a channel claims each reward only once.
    pub fn next_reward(&self) -> String {
        let n = self.claimed.fetch_add(1, Ordering::Relaxed);
        assert!(n < REWARDS, "the campaign has too few rewards for this test");
        format!("reward-{n}")
    }
}

impl Fixture {
    /// An application `bot` with every user scope, a streamer who has signed in to it, and a viewer who has
    /// not. Also an application `spare` and a person `spare-person` that no test needs.
    pub async fn set_up(world: &World) -> Self {
        let app = world.application("bot").create().await;
        let streamer = world.person("haneul").name("하늘 🚀").create().await;
        let viewer = world.person("byeol").name("별이").create().await;
        let tokens = world.sign_in(&app, &streamer).await;
        let publisher = Arc::new(Publisher::set_up(world).await);
        let webhook_owner = Arc::new(WebhookOwner::set_up(world).await);
        world.application("spare").create().await;
        world.person("spare-person").create().await;
        let secrets = world.operator(Request::get("/platform/v1/applications/bot/secrets")).await.content();
        let secret_id = secrets["data"][0]["secretId"].as_str().expect("a text").to_owned();
        let review_request_id = request_verification(world).await;
        Self { app, streamer, viewer, tokens, publisher, webhook_owner, secret_id, review_request_id }
    }
}

/// An organization `reviewed`, whose admin `haneul` asks for its verification.
async fn request_verification(world: &World) -> String {
    let organization = Request::put("/platform/v1/organizations/reviewed");
    world.operator(organization.json(&json!({ "organizationName": "별 게임즈" }))).await.content();
    let member = Request::put("/platform/v1/organizations/reviewed/members/haneul");
    world.operator(member.json(&json!({ "role": "admin" }))).await.content();
    let body = json!({
        "channelId": "haneul", "kind": "organization", "organizationId": "reviewed", "message": "부탁드립니다.",
    });
    let request = Request::post("/platform/v1/review-requests").json(&body);
    let made = world.operator(request).await.content();
    made["requestId"].as_str().expect("a text").to_owned()
}

/// A well-formed token that was never issued.
pub const UNKNOWN_TOKEN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The message of a 400 in Korean.
pub fn wrong(field: &str, rule: &str) -> String {
    format!("잘못된 값을 입력했습니다. {field}: {rule}")
}
