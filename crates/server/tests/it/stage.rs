//! What most tests need before they begin: an application, a streamer, a viewer, and the streamer's tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::Scope;
use serde_json::json;
use testkit::{Application, Person, Request, Tokens, World};

/// A small cast.
pub struct Stage {
    pub app: Application,
    pub streamer: Person,
    pub viewer: Person,
    pub tokens: Tokens,
    pub publisher: Arc<Publisher>,
}

/// A publisher of games: an application `publisher` of the verified organization of that name, which has the campaign
/// `voyage`.
pub struct Publisher {
    pub app: Application,
    claimed: AtomicUsize,
}

/// Rewards of the campaign `voyage`.
const REWARDS: usize = 20;

impl Publisher {
    async fn set(world: &World) -> Self {
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

    /// A reward of `voyage` that nobody was told of before: a channel claims each only once.
    pub fn next_reward(&self) -> String {
        let n = self.claimed.fetch_add(1, Ordering::Relaxed);
        assert!(n < REWARDS, "the campaign has too few rewards for this test");
        format!("reward-{n}")
    }
}

impl Stage {
    /// An application `bot` with every user scope, a streamer who has signed in to it, and a viewer who has not.
    pub async fn set(world: &World) -> Self {
        let app = world.application("bot").create().await;
        let streamer = world.person("haneul").name("하늘 🚀").create().await;
        let viewer = world.person("byeol").name("별이").create().await;
        let tokens = world.sign_in(&app, &streamer).await;
        let publisher = Arc::new(Publisher::set(world).await);
        Self { app, streamer, viewer, tokens, publisher }
    }
}

/// A token as it might look, that nobody was ever given.
pub const UNKNOWN_TOKEN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The message of a 400 in Korean.
pub fn wrong(field: &str, rule: &str) -> String {
    format!("잘못된 값을 입력했습니다. {field}: {rule}")
}
