//! Every REST endpoint, for the tests that cover all of them. The list comes from the router. This file has a
//! good request for each endpoint.

use std::sync::LazyLock;

use domain::Scope;
use serde_json::{Value, json};
use testkit::{Request, World};
use web::Security;

use crate::fixture::{Fixture, WebhookOwner};

/// How a caller authenticates at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Client id and secret in headers.
    Client,
    /// Client id and secret in headers, of an application that may use drops.
    Drops,
    /// An access token, with this scope; `None` if any token is enough.
    User(Option<Scope>),
    /// Client id and secret in the body.
    Body,
    /// The operator's key.
    Operator,
}

impl Mode {
    /// Whether the credentials are a client id and secret in headers.
    pub fn is_client(self) -> bool {
        matches!(self, Self::Client | Self::Drops)
    }
}

/// One endpoint, with the parts of a good request. [`Endpoint::good`] fills in `{…}`.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    pub method: &'static str,
    pub path: &'static str,
    pub query: &'static str,
    pub mode: Mode,
    /// Whether it needs a JSON body.
    pub reads_body: bool,
}

const MANAGER: &str = "/platform/v1/channels/{channelId}/managers/{managerChannelId}";

const ORGANIZATION: &str = "/platform/v1/organizations/{organizationId}";
const MEMBERS: &str = "/platform/v1/organizations/{organizationId}/members";
const MEMBER: &str = "/platform/v1/organizations/{organizationId}/members/{channelId}";
const REVIEW_REQUESTS: &str = "/platform/v1/review-requests";
const REVIEW_REQUEST: &str = "/platform/v1/review-requests/{requestId}";
const DISABLED_ORGANIZATION: &str = "/platform/v1/organizations/{organizationId}/disabled";
const CHANNEL: &str = "/platform/v1/channels/{channelId}";
const BAR: &str = "/platform/v1/channels/{channelId}/bar";
const CAMPAIGN: &str = "/platform/v1/drops/campaigns/{campaignId}";
const DISABLED_CAMPAIGN: &str = "/platform/v1/drops/campaigns/{campaignId}/disabled";
const APPLICATION: &str = "/platform/v1/applications/{clientId}";
const APPLICATION_SECRET: &str = "/platform/v1/applications/{clientId}/secrets/{secretId}";
const APPLICATION_SECRETS: &str = "/platform/v1/applications/{clientId}/secrets";
const APPLICATION_TOKENS: &str = "/platform/v1/applications/{clientId}/tokens";
const APPLICATION_QUOTA: &str = "/platform/v1/applications/{clientId}/quota";
const DISABLED_APPLICATION: &str = "/platform/v1/applications/{clientId}/disabled";
const WEBHOOK: &str = "/platform/v1/applications/{clientId}/webhook";
const WEBHOOK_SECRETS: &str = "/platform/v1/applications/{clientId}/webhook/secrets";
const WEBHOOK_SECRET: &str = "/platform/v1/applications/{clientId}/webhook/secrets/{secretId}";
const WEBHOOK_RESEND: &str = "/platform/v1/applications/{clientId}/webhook/resend";
/// Placeholders in paths for ids of the fixture.
const FIXTURE_SECRET: &str = "secret-of-the-fixture";
const FIXTURE_MESSAGE: &str = "message-of-the-fixture";
const SECRET_OF_BOT: &str = "secret-of-the-bot";
const PENDING_SECRET: &str = "pending-secret";
const FIXTURE_REQUEST: &str = "request-of-the-fixture";

const SESSION: &str = "/platform/v1/sessions/{sessionKey}";
const LISTENER: &str = "/open/v1/drops/webhook/listener";
const RESTRICT: &str = "/open/v1/restrict-channels";
const RESTRICT_TEMPORARILY: &str = "/open/v1/temporary-restrict-channels";

/// All endpoints of the router, except the pages of the sign-in.
pub static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
    let endpoints = web::endpoints().into_iter().filter(|endpoint| endpoint.path != "/account-interlock");
    endpoints.map(Endpoint::from).collect()
});

impl From<web::Endpoint> for Endpoint {
    fn from(endpoint: web::Endpoint) -> Self {
        let web::Endpoint { method, path, security, scope, needs_body } = endpoint;
        let mode = match security {
            Security::Client if scope == Some(Scope::Drops) => Mode::Drops,
            Security::Client => Mode::Client,
            Security::User => Mode::User(scope),
            Security::Operator(_) => Mode::Operator,
            Security::None => Mode::Body,
        };
        Self { method, path, query: query(method, path), mode, reads_body: needs_body }
    }
}

/// The query of a good request.
fn query(method: &str, path: &str) -> &'static str {
    match (method, path) {
        ("GET", "/open/v1/channels") => "channelIds=haneul",
        ("GET", "/open/v1/channels/followers") => "page=0",
        ("GET", "/open/v1/channels/subscribers") => "sort=LONGER",
        ("GET", "/open/v1/categories/search") => "query=a",
        (
            "GET",
            "/open/v1/lives"
            | "/platform/v1/organizations"
            | "/platform/v1/applications"
            | "/platform/v1/application-load"
            | "/platform/v1/applications/{clientId}/webhook/deliveries"
            | "/platform/v1/sessions"
            | "/platform/v1/channels"
            | "/platform/v1/operators"
            | MEMBERS
            | REVIEW_REQUESTS
            | "/platform/v1/drops/campaigns",
        ) => "size=20",
        // Entries of other requests come in an order of their own.
        ("GET", "/platform/v1/audit-log") => "subject=nothing",
        // All keys on one page: those of one millisecond have a random order.
        ("GET", "/platform/v1/keys") => "size=100",
        ("POST", path) if path.starts_with("/open/v1/sessions/events/") => "sessionKey={sessionKey}",
        ("GET", "/open/v1/drops/reward-claims") => "page.size=20",
        ("GET", RESTRICT) => "size=30",
        _ => "",
    }
}

impl Endpoint {
    /// The path with ids filled in.
    pub fn path(&self) -> String {
        let client = match self.path {
            // Deleting a missing webhook is no error, and keeps the webhook that other tests need.
            WEBHOOK if self.method == "DELETE" => "bot",
            path if path.contains("/webhook") => "webhook-owner",
            // Deleting a missing application is no error, and keeps the application that other tests need.
            APPLICATION if self.method == "DELETE" => "unknown",
            // The application that other tests need keeps its quotas.
            DISABLED_APPLICATION | APPLICATION_QUOTA => "spare",
            APPLICATION_SECRETS | APPLICATION_TOKENS if self.method == "DELETE" => "spare",
            _ => "bot",
        };
        let secret = match self.path {
            WEBHOOK_SECRET => PENDING_SECRET,
            _ if self.method == "DELETE" => "unknown",
            APPLICATION_SECRET => SECRET_OF_BOT,
            _ => FIXTURE_SECRET,
        };
        // An unneeded channel or campaign is deleted or barred, because other tests need the fixture's.
        let channel = match self.path {
            CHANNEL | MEMBER if self.method == "DELETE" => "unknown",
            MEMBER => "byeol",
            BAR => "spare-person",
            _ => "haneul",
        };
        let campaign = match self.path {
            CAMPAIGN if self.method == "DELETE" => "unknown",
            DISABLED_CAMPAIGN => "lighthouse",
            _ if self.reads_body => "another",
            _ => "voyage",
        };
        let organization = match self.path {
            ORGANIZATION if self.method == "DELETE" => "unknown",
            DISABLED_ORGANIZATION => "webhook-owner",
            MEMBER | MEMBERS => "reviewed",
            _ => "games",
        };
        self.path
            .replace("{secretId}", secret)
            .replace("{messageId}", FIXTURE_MESSAGE)
            // The viewer has no consent, so withdrawing it does not affect other tests.
            .replace("consents/{clientId}/{channelId}", "consents/bot/byeol")
            // Ending a missing session is no error, and keeps the session of the test.
            .replace("{sessionKey}", "unknown")
            .replace("{channelId}", channel)
            .replace("{managerChannelId}", "byeol")
            .replace("{followerChannelId}", "byeol")
            // An existing campaign is not changed.
            .replace("{campaignId}", campaign)
            .replace("{clientId}", client)
            .replace("{categoryId}", "talk")
            .replace("{organizationId}", organization)
            .replace("{requestId}", FIXTURE_REQUEST)
            // Revoking a missing key is no error.
            .replace("{keyId}", "unknown")
    }

    /// Path and query of a good request.
    pub fn target(&self, session_key: &str) -> String {
        match self.query {
            "" if self.path == SESSION && self.method != "DELETE" => {
                self.path.replace("{sessionKey}", session_key)
            }
            "" => self.path(),
            query => format!("{}?{}", self.path(), query.replace("{sessionKey}", session_key)),
        }
    }

    /// The body of a good request; `Null` if the endpoint reads none. For `Mode::Body` it contains the
    /// credentials.
    pub fn body(&self, fixture: &Fixture) -> Value {
        let proof = |more: Value| {
            let mut body =
                json!({ "clientId": fixture.app.client_id, "clientSecret": fixture.app.client_secret });
            body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            body
        };
        match self.path {
            "/auth/v1/token" => {
                proof(json!({ "grantType": "refresh_token", "refreshToken": fixture.tokens.refresh }))
            }
            "/auth/v1/token/revoke" | "/auth/v1/revoke" => proof(json!({ "token": "unknown" })),
            "/open/v1/chats/send" => json!({ "message": "안녕" }),
            "/open/v1/chats/notice" if self.reads_body => json!({ "message": "공지" }),
            "/open/v1/chats/settings" if self.reads_body => json!({
                "chatAvailableCondition": "NONE", "chatAvailableGroup": "ALL", "minFollowerMinute": 0,
                "allowSubscriberInFollowerMode": true, "chatSlowModeSec": 0, "chatEmojiMode": false,
            }),
            "/open/v1/chats/blind-message" => json!({
                "chatChannelId": "chat-haneul", "messageTime": World::START_MS, "senderChannelId": "gureum",
            }),
            RESTRICT if self.reads_body => json!({ "targetChannelId": "gureum" }),
            RESTRICT_TEMPORARILY => json!({ "targetChannelId": "gureum", "chatChannelId": "chat-haneul" }),
            ORGANIZATION if self.reads_body => json!({ "organizationName": "게임즈" }),
            MEMBER if self.reads_body => json!({ "role": "viewer" }),
            REVIEW_REQUESTS if self.reads_body => json!({
                "channelId": "haneul", "kind": "organization", "organizationId": "reviewed", "message": "부탁드립니다.",
            }),
            // The same decision again is no error.
            REVIEW_REQUEST => json!({ "decision": "refuse" }),
            APPLICATION_QUOTA if self.reads_body => json!({ "percent": 50 }),
            // The secret does not expire.
            APPLICATION_SECRET if self.reads_body => json!({}),
            APPLICATION if self.reads_body => json!({
                "name": "bot", "redirectUris": [fixture.app.redirect_uri],
                "scopes": domain::ScopeSet::of_users().iter().map(Scope::name).collect::<Vec<_>>(),
            }),
            CHANNEL if self.reads_body => json!({ "channelName": "하늘 🚀" }),
            MANAGER if self.reads_body => json!({ "userRole": "STREAMING_CHAT_MANAGER" }),
            // All fields of these bodies are optional, so an empty object is valid.
            "/open/v1/lives/setting" | "/platform/v1/channels/{channelId}/live" if self.reads_body => {
                json!({})
            }
            "/platform/v1/categories/{categoryId}" => {
                json!({ "categoryType": "ETC", "categoryValue": "토크" })
            }
            "/platform/v1/channels/{channelId}/chats" => {
                json!({ "senderChannelId": "byeol", "message": "안녕" })
            }
            "/platform/v1/channels/{channelId}/donations" => {
                json!({ "donationType": "CHAT", "payAmount": "1" })
            }
            "/platform/v1/channels/{channelId}/subscriptions" => {
                json!({ "subscriberChannelId": "byeol", "tierNo": 1, "tierName": "팬", "month": 1 })
            }
            "/open/v1/drops/reward-claims" if self.reads_body => {
                json!({ "claimIds": ["unknown"], "fulfillmentState": "FULFILLED" })
            }
            "/open/v1/drops/webhook/listener/attempts" => json!({ "waitSeconds": 0 }),
            "/open/v1/drops/webhook/listener/attempts/{messageId}" => {
                json!({ "number": 1, "status": 200, "durationMs": 1 })
            }
            "/platform/v1/drops/watching" => {
                json!({ "channelId": "haneul", "viewerChannelId": "byeol", "minutes": 1 })
            }
            "/platform/v1/drops/campaigns/{campaignId}" if self.reads_body => json!({
                "campaignName": "다음 항해", "organizationId": "publisher", "categoryId": "star-voyage",
                "rewards": [{ "rewardId": "compass", "rewardName": "나침반" }],
            }),
            "/platform/v1/channels/{channelId}/operator-role" if self.reads_body => json!({ "role": "read" }),
            "/platform/v1/keys" => json!({ "name": "support", "role": "read" }),
            WEBHOOK if self.reads_body => json!({}),
            WEBHOOK_RESEND => json!({ "from": "2026-07-01T00:00:00Z", "to": "2026-07-02T00:00:00Z" }),
            "/platform/v1/drops/claims" => json!({
                "campaignId": "voyage", "rewardId": fixture.publisher.next_reward(), "channelId": "haneul",
            }),
            // One line.
            "/platform/v1/events" => {
                json!({ "kind": "chat", "channelId": "haneul", "senderChannelId": "byeol", "message": "안녕" })
            }
            _ => Value::Null,
        }
    }

    /// Prepares the world so that a good request succeeds, also repeatedly: some endpoints need a row to
    /// exist, or not to exist.
    pub async fn prepare(&self, world: &World, fixture: &Fixture) {
        if self.path.starts_with(LISTENER) {
            let begin = Request::post(LISTENER);
            let app = &fixture.publisher.app;
            world.send(begin.client(&app.client_id, &app.client_secret)).await.content();
            return;
        }
        match (self.method, self.path) {
            ("POST", WEBHOOK_SECRETS) => return forget_pending_secrets(world).await,
            ("DELETE", WEBHOOK_SECRET) => {
                forget_pending_secrets(world).await;
                return fixture.webhook_owner.add_pending_secret(world).await;
            }
            _ => {}
        }
        let undo = match (self.method, self.path) {
            (_, "/open/v1/chats/blind-message") => None,
            ("POST", RESTRICT | RESTRICT_TEMPORARILY) => Some("DELETE"),
            ("DELETE", RESTRICT | RESTRICT_TEMPORARILY) => Some("POST"),
            _ => return,
        };
        let channel = Request::put("/platform/v1/channels/gureum").json(&json!({ "channelName": "구름" }));
        world.operator(channel).await.content();
        match undo {
            // The answer is ignored: there may be nothing to undo, or the token may lack the scope.
            Some(method) => drop(world.send(Self { method, ..*self }.good(fixture, "")).await),
            None => {
                let message = json!({ "senderChannelId": "gureum", "message": "안녕" });
                world.happen("haneul", "chats", &message).await.content();
            }
        }
    }

    /// A request with the headers of its mode, and nothing else.
    pub fn proven(&self, fixture: &Fixture, target: &str) -> Request {
        let target = target.replace(FIXTURE_SECRET, &fixture.webhook_owner.secret_id);
        let target = target.replace(SECRET_OF_BOT, &fixture.secret_id);
        let target = target.replace(FIXTURE_REQUEST, &fixture.review_request_id);
        let target = target.replace(PENDING_SECRET, &fixture.webhook_owner.pending_secret());
        let request =
            Request::new(self.method, target.replace(FIXTURE_MESSAGE, &fixture.webhook_owner.message_id));
        match self.mode {
            Mode::Client => request.client(&fixture.app.client_id, &fixture.app.client_secret),
            Mode::Drops => {
                request.client(&fixture.publisher.app.client_id, &fixture.publisher.app.client_secret)
            }
            Mode::User(_) => request.bearer(&fixture.tokens.access),
            Mode::Body => request,
            Mode::Operator => request.bearer(testkit::World::OPERATOR_KEY),
        }
    }

    /// A request that succeeds.
    pub fn good(&self, fixture: &Fixture, session_key: &str) -> Request {
        self.with_body(fixture, self.proven(fixture, &self.target(session_key)))
    }

    /// The request with the endpoint's good body.
    pub fn with_body(&self, fixture: &Fixture, request: Request) -> Request {
        match self.body(fixture) {
            Value::Null => request,
            body => request.json(&body),
        }
    }
}

/// Deletes pending secrets, because a webhook has at most one.
async fn forget_pending_secrets(world: &World) {
    let secrets = format!("{}/secrets", WebhookOwner::WEBHOOK);
    let list = world.operator(Request::get(&secrets)).await.content();
    for secret in list["data"].as_array().expect("data is a list") {
        if secret["state"] == "PENDING" {
            let id = secret["secretId"].as_str().expect("a text");
            world.operator(Request::delete(format!("{secrets}/{id}"))).await.content();
        }
    }
}

/// A session of the streamer, for subscribe calls.
pub async fn session_key(world: &World, fixture: &Fixture) -> (testkit::Socket, String) {
    let socket = world.open_client_session(&fixture.app).await;
    let key = socket.session_key().to_owned();
    (socket, key)
}
