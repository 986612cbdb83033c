//! What most tests need before they begin: an application, a streamer, a viewer, and the streamer's tokens.

use testkit::{Application, Person, Tokens, World};

/// A small cast.
pub struct Stage {
    pub app: Application,
    pub streamer: Person,
    pub viewer: Person,
    pub tokens: Tokens,
}

impl Stage {
    /// An application `bot` with every user scope, a streamer who has signed in to it, and a viewer who has not.
    pub async fn set(world: &World) -> Self {
        let app = world.application("bot").create().await;
        let streamer = world.person("haneul").name("하늘 🚀").create().await;
        let viewer = world.person("byeol").name("별이").create().await;
        let tokens = world.sign_in(&app, &streamer).await;
        Self { app, streamer, viewer, tokens }
    }
}

/// A token as it might look, that nobody was ever given.
pub const UNKNOWN_TOKEN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The message of a 400 in Korean.
pub fn wrong(field: &str, rule: &str) -> String {
    format!("잘못된 값을 입력했습니다. {field}: {rule}")
}
