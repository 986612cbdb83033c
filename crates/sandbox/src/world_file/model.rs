//! The content of a world file. The fields have the names of the platform API.

use std::collections::BTreeMap;

use domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::{DeliveryItem, MessageItem, RestrictionItem, WatchedItem};

/// The password of a person without one in the file. A sandbox has no secrets to protect.
pub const PASSWORD: &str = "stagedoor";

/// A world: people, applications, and what is between them. Everything is optional.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorldFile {
    /// The time at which the clock of the world stands still. Default: the system's time, and the clock runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The people, streamers first. Each has a channel of the same id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<PersonItem>,
    /// The categories of lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoryItem>,
    /// The organizations of applications and campaigns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organizations: Vec<OrganizationItem>,
    /// The applications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationItem>,
    /// Who follows whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<FollowItem>,
    /// Who pays for a subscription to whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<SubscriptionItem>,
    /// Who has a role in whose channel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<ManagerItem>,
    /// The people who may not send to a channel's chat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrictions: Vec<RestrictionItem>,
    /// The messages of all chats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageItem>,
    /// The campaigns of drops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub campaigns: Vec<CampaignItem>,
    /// The claimed rewards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimItem>,
    /// The minutes that viewers have watched for campaigns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedItem>,
    /// Tokens that are the same at every start, with the consents that they stand on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<TokenPair>,
    /// Whether people get new tokens of the applications for which `tokens` has none. Default: true. An
    /// export has false.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub further_tokens: bool,
}

/// A person and the person's channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PersonItem {
    /// The id of the person and of the channel.
    pub channel_id: String,
    /// The name of the channel.
    pub channel_name: String,
    /// The address of the picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_image_url: Option<String>,
    /// Whether the channel carries the platform's mark.
    #[serde(default, skip_serializing_if = "is_false")]
    pub verified_mark: bool,
    /// Whether the person proved a real name. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub real_name_verified: bool,
    /// The login. Default: the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
    /// The password. Default: `stagedoor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The hash of the password in PHC form (Argon2id), instead of `password`. An export has it where the
    /// sandbox does not know the password, so that the sign-in still works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_hash: Option<String>,
    /// The e-mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Whether the address is proven. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub email_proven: bool,
    /// Whether the person has a login. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub can_sign_in: bool,
    /// What the person may do on the operator pages: read, write or admin. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_role: Option<String>,
    /// The broadcast setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast_setting: Option<BroadcastItem>,
    /// The settings of the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_settings: Option<ChatItem>,
    /// The live, if the channel is on air.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveItem>,
}

/// What the next lives of a channel begin with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BroadcastItem {
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_live_title: Option<String>,
    /// A category of this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category_id: Option<String>,
    /// The tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// The settings of a chat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatItem {
    /// NONE or REAL_NAME.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_available_condition: Option<String>,
    /// ALL, FOLLOWER, MANAGER or SUBSCRIBER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_available_group: Option<String>,
    /// Minutes that a follower must have followed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_follower_minute: Option<i64>,
    /// Whether subscribers may speak without following.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_subscriber_in_follower_mode: Option<bool>,
    /// Seconds between two messages of one viewer; 0 is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_slow_mode_sec: Option<i64>,
    /// Whether messages may contain only emojis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_emoji_mode: Option<bool>,
}

/// A live. What is not given comes from the broadcast setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LiveItem {
    /// The title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_title: Option<String>,
    /// The address of the picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_thumbnail_image_url: Option<String>,
    /// The number of viewers.
    #[serde(default)]
    pub concurrent_user_count: i64,
    /// Whether it is for adults.
    #[serde(default, skip_serializing_if = "is_false")]
    pub adult: bool,
    /// A category of this file. An empty text is none, whatever the broadcast setting has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category_id: Option<String>,
    /// The tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Since when the channel is on air. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_date: Option<String>,
    /// The number of the live. Default: the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_id: Option<i64>,
}

/// A category of lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CategoryItem {
    /// The id.
    pub category_id: String,
    /// GAME, SPORTS or ETC.
    pub category_type: String,
    /// The name.
    pub category_value: String,
    /// The address of the picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poster_image_url: Option<String>,
}

/// An organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OrganizationItem {
    /// The id.
    pub organization_id: String,
    /// The name.
    pub organization_name: String,
    /// Whether it is a verified company. Only its applications may use drops.
    #[serde(default, skip_serializing_if = "is_false")]
    pub verified: bool,
    /// The people who manage its applications in the developer center.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberItem>,
}

/// A member of an organization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberItem {
    /// A person of this file.
    pub channel_id: String,
    /// admin, developer or viewer.
    pub role: String,
    /// Since when. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_date: Option<String>,
}

/// An application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplicationItem {
    /// The client id.
    pub client_id: String,
    /// The name. Default: the client id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client secret. Default: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The addresses that a sign-in may redirect to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
    /// Whether the page of the sandbox that catches redirects, `/sandbox/catch`, is one of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub catch_redirects: bool,
    /// The scopes, by their names. Default: every scope of users, and the scope of drops if the application
    /// has an organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// An organization of this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organization_id: Option<String>,
    /// A person of this file who owns the application, if no organization does. Default: the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_channel_id: Option<String>,
    /// The spelling of answers: documented or observed. Default: that of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether quotas apply to it. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub quota: bool,
    /// The part of each quota that it has, in percent: 1 to 100. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_percent: Option<i64>,
    /// Its webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookItem>,
}

/// The webhook of an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookItem {
    /// The address. Without it, `stagedoor webhook listen` fetches the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The secret that signs. Default: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether messages are sent. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub enabled: bool,
    /// The messages to it, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<DeliveryItem>,
}

/// A follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FollowItem {
    /// The channel.
    pub channel_id: String,
    /// Who follows it.
    pub follower_channel_id: String,
    /// Since when. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_date: Option<String>,
}

/// A paid subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscriptionItem {
    /// The channel.
    pub channel_id: String,
    /// Who subscribes.
    pub subscriber_channel_id: String,
    /// 1 or 2.
    #[serde(default = "one")]
    pub tier_no: i64,
    /// The name of the tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier_name: Option<String>,
    /// Months subscribed.
    #[serde(default = "one")]
    pub month: i64,
    /// The first day. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_date: Option<String>,
}

/// A role in a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManagerItem {
    /// The channel.
    pub channel_id: String,
    /// Who has the role.
    pub manager_channel_id: String,
    /// STREAMING_CHANNEL_MANAGER, STREAMING_CHAT_MANAGER or STREAMING_SETTLEMENT_MANAGER.
    pub user_role: String,
    /// Since when. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_date: Option<String>,
}

/// A campaign of drops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CampaignItem {
    /// The id.
    pub campaign_id: String,
    /// The name.
    pub campaign_name: String,
    /// An organization of this file.
    pub organization_id: String,
    /// A category of this file.
    pub category_id: String,
    /// The first moment. Default: no beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// The first moment after it. Default: no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// The channels whose lives count. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_ids: Option<Vec<String>>,
    /// The rewards.
    pub rewards: Vec<RewardItem>,
}

/// A reward of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RewardItem {
    /// The id, within the campaign.
    pub reward_id: String,
    /// The name.
    pub reward_name: String,
    /// Minutes to watch before it can be claimed.
    #[serde(default)]
    pub watch_minutes: i64,
}

/// A claimed reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimItem {
    /// A campaign of this file.
    pub campaign_id: String,
    /// A reward of the campaign.
    pub reward_id: String,
    /// Who claimed it.
    pub channel_id: String,
    /// The id of the claim. Default: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<String>,
    /// Whether the publisher fulfilled it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fulfilled: bool,
    /// When it was claimed. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_date: Option<String>,
    /// When its state last changed. Default: claimedDate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_date: Option<String>,
}

/// A pair of tokens that an application has for a person.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenPair {
    /// The person.
    pub channel_id: String,
    /// The application. It needs a redirect address.
    pub client_id: String,
    /// The access token: 16 to 512 printable ASCII characters. It lives 1 day.
    pub access_token: String,
    /// The refresh token, of the same form. It lives 30 days and works once.
    pub refresh_token: String,
}

impl std::fmt::Debug for TokenPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenPair({}, {})", self.channel_id, self.client_id)
    }
}

impl Default for WorldFile {
    fn default() -> Self {
        Self {
            clock: None,
            people: Vec::new(),
            categories: Vec::new(),
            organizations: Vec::new(),
            applications: Vec::new(),
            follows: Vec::new(),
            subscriptions: Vec::new(),
            managers: Vec::new(),
            restrictions: Vec::new(),
            messages: Vec::new(),
            campaigns: Vec::new(),
            claims: Vec::new(),
            watched: Vec::new(),
            tokens: Vec::new(),
            further_tokens: true,
        }
    }
}

impl WorldFile {
    /// The time at which the clock of the world stands still.
    pub fn clock_time(&self) -> Option<Timestamp> {
        self.clock.as_deref().and_then(Timestamp::parse_rfc3339)
    }

    /// The entries of people by their ids.
    pub(crate) fn people_by_id(&self) -> BTreeMap<&str, &PersonItem> {
        self.people.iter().map(|person| (person.channel_id.as_str(), person)).collect()
    }
}

impl PersonItem {
    /// The login of the person.
    pub fn login(&self) -> &str {
        self.login.as_deref().unwrap_or(&self.channel_id)
    }

    /// The password of the person, if the file has it.
    pub fn password(&self) -> Option<&str> {
        let is_in_file = self.can_sign_in && self.password_hash.is_none();
        is_in_file.then(|| self.password.as_deref().unwrap_or(PASSWORD))
    }
}

fn yes() -> bool {
    true
}

fn one() -> i64 {
    1
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !*value
}
