//! The rules of a world file, and its entries as the service takes them.

use std::collections::HashSet;
use std::fmt;
use std::hash::Hash;

use domain::application::{Organization, RedirectUri};
use domain::channel::UserRole;
use domain::chat_settings::{ChatSettingsChange, Condition, Group};
use domain::drops::{Campaign, Period, Reward};
use domain::live::{Category, CategoryChoice, CategoryType};
use domain::secret::WebhookSecret;
use domain::{
    CampaignId, CategoryId, ChannelId, ClaimId, ClientId, Invalid, Language, OrganizationId, Profile,
    RewardId, Scope, ScopeSet, Timestamp,
};
use serde_json::Value;
use service::ChannelRecord;
use service::applications::ApplicationRecord;
use service::broadcast_settings::SettingChange;
use service::channel_events::PaidSubscription;
use service::channels::LoginCredentials;
use service::drops::RewardRequest;
use service::lives::LiveReport;

use super::model::{
    ApplicationItem, BroadcastItem, CampaignItem, CategoryItem, ChatItem, ClaimItem, FollowItem, LiveItem,
    ManagerItem, OrganizationItem, PersonItem, RewardItem, SubscriptionItem, TokenPair, WorldFile,
};
use super::position::position;

/// Minimum length of a secret and of a token in a world file, in characters.
const SECRET_CHARS_MIN: usize = 16;
/// Maximum length of them.
const SECRET_CHARS_MAX: usize = 512;

/// A mistake in a world file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct WorldFileError {
    /// The field, as in `people[0].login`; empty if the text cannot be read.
    pub path: String,
    /// The rule. It continues the sentence that begins with the field.
    pub rule: String,
    /// Line and column, from 1.
    pub position: Option<(u64, u64)>,
}

impl fmt::Display for WorldFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.rule)
    }
}

impl WorldFileError {
    /// A value that breaks a rule.
    pub(super) fn new(path: impl Into<String>, rule: impl fmt::Display) -> Self {
        Self { path: path.into(), rule: rule.to_string(), position: None }
    }

    /// A text that is no world file.
    pub(super) fn unreadable(error: &serde_saphyr::Error) -> Self {
        let position = error.location().map(|place| (place.line(), place.column()));
        // The message ends with the position.
        let text = error.to_string();
        let end = text.rfind(" at line ").filter(|_| position.is_some()).unwrap_or(text.len());
        let rule = match &text[..end] {
            "expected sequence start" => "must be a list, whose entries begin with `- `",
            "expected mapping start" => "must be fields, as in `name: value`",
            rule => rule,
        };
        Self { path: String::new(), rule: rule.to_owned(), position }
    }

    /// The error with its position in a text.
    pub fn located_in(self, text: &str) -> Self {
        Self { position: position(text, &self.path), ..self }
    }

    /// A refusal of the service about the entry at `path`.
    pub(super) fn refused(path: &str, error: &service::Error) -> Self {
        match error.refusal() {
            domain::Refusal::Invalid(invalid) => Self::broken(path, &invalid),
            refusal => Self::new(path, refusal.message(Language::English)),
        }
    }

    fn broken(path: &str, invalid: &Invalid) -> Self {
        Self::new(format!("{path}.{}", invalid.field), invalid.rule.text(Language::English))
    }
}

/// An entry as the service takes it, or the mistake.
pub(super) type Converted<T> = Result<T, WorldFileError>;

/// What a person has besides the channel.
pub(super) struct PersonParts {
    pub record: ChannelRecord,
    pub credentials: LoginCredentials,
    pub setting: Option<SettingChange>,
    pub chat: Option<ChatSettingsChange>,
    pub live: Option<LiveReport>,
}

impl WorldFile {
    /// Reads a world file from JSON.
    ///
    /// # Errors
    /// The first mistake, with its path.
    pub fn from_json(json: Value) -> Result<Self, WorldFileError> {
        let file: Self = serde_path_to_error::deserialize(json).map_err(|error| {
            let path = error.path().to_string();
            WorldFileError::new(if path == "." { "" } else { &path }, error.inner())
        })?;
        file.check()?;
        Ok(file)
    }

    /// Checks every entry, and that entries name each other rightly.
    pub(super) fn check(&self) -> Result<(), WorldFileError> {
        self.check_people()?;
        self.check_applications()?;
        self.check_relations()?;
        self.check_drops()
    }

    fn check_people(&self) -> Result<(), WorldFileError> {
        unique("categories", "categoryId", self.categories.iter().map(|entry| &entry.category_id))?;
        for (path, entry) in listed("categories", &self.categories) {
            entry.convert(&path)?;
        }
        unique("people", "channelId", self.people.iter().map(|entry| &entry.channel_id))?;
        unique("people", "login", self.people.iter().map(PersonItem::login))?;
        let categories = set(self.categories.iter().map(|entry| entry.category_id.as_str()));
        for (path, entry) in listed("people", &self.people) {
            entry.convert(&path)?;
            let setting = entry.broadcast_setting.as_ref().and_then(|setting| setting.category_id.as_deref());
            known(&categories, "category", &format!("{path}.broadcastSetting.categoryId"), setting)?;
            let live = entry.live.as_ref().and_then(|live| live.category_id.as_deref());
            known(&categories, "category", &format!("{path}.live.categoryId"), live)?;
        }
        Ok(())
    }

    fn check_applications(&self) -> Result<(), WorldFileError> {
        unique("organizations", "organizationId", self.organizations.iter().map(|one| &one.organization_id))?;
        for (path, entry) in listed("organizations", &self.organizations) {
            entry.convert(&path)?;
        }
        let organizations = set(self.organizations.iter().map(|entry| entry.organization_id.as_str()));
        unique("applications", "clientId", self.applications.iter().map(|entry| &entry.client_id))?;
        for (path, entry) in listed("applications", &self.applications) {
            entry.convert(&path)?;
            let organization = entry.organization_id.as_deref();
            known(&organizations, "organization", &format!("{path}.organizationId"), organization)?;
        }
        Ok(())
    }

    fn check_relations(&self) -> Result<(), WorldFileError> {
        let people = set(self.people.iter().map(|entry| entry.channel_id.as_str()));
        let pair = |path: &str, channel: &str, field: &str, other: &str| {
            known(&people, "person", &format!("{path}.channelId"), Some(channel))?;
            known(&people, "person", &format!("{path}.{field}"), Some(other))?;
            match channel == other {
                true => Err(WorldFileError::new(format!("{path}.{field}"), "must be another person")),
                false => Ok(()),
            }
        };
        for (path, entry) in listed("follows", &self.follows) {
            entry.convert(&path)?;
            pair(&path, &entry.channel_id, "followerChannelId", &entry.follower_channel_id)?;
        }
        for (path, entry) in listed("subscriptions", &self.subscriptions) {
            entry.convert(&path)?;
            pair(&path, &entry.channel_id, "subscriberChannelId", &entry.subscriber_channel_id)?;
        }
        for (path, entry) in listed("managers", &self.managers) {
            entry.convert(&path)?;
            pair(&path, &entry.channel_id, "managerChannelId", &entry.manager_channel_id)?;
        }
        self.check_tokens(&people)
    }

    fn check_tokens(&self, people: &HashSet<&str>) -> Result<(), WorldFileError> {
        let mut tokens = HashSet::new();
        for (path, TokenPair { channel_id, client_id, access_token, refresh_token }) in
            listed("tokens", &self.tokens)
        {
            known(people, "person", &format!("{path}.channelId"), Some(channel_id))?;
            let application =
                self.applications.iter().find(|application| application.client_id == *client_id);
            let has_address = application
                .map(|application| application.catch_redirects || !application.redirect_uris.is_empty());
            let path_of = |field: &str| format!("{path}.{field}");
            match has_address {
                None => {
                    return Err(WorldFileError::new(path_of("clientId"), unknown("application", client_id)));
                }
                Some(false) => {
                    return Err(WorldFileError::new(path_of("clientId"), "must have a redirect address"));
                }
                Some(true) => {}
            }
            for (field, token) in [("accessToken", access_token), ("refreshToken", refresh_token)] {
                secret_text(&path_of(field), token)?;
                if !tokens.insert(token) {
                    return Err(WorldFileError::new(path_of(field), "must differ from every other token"));
                }
            }
        }
        Ok(())
    }

    fn check_drops(&self) -> Result<(), WorldFileError> {
        let organizations = set(self.organizations.iter().map(|entry| entry.organization_id.as_str()));
        let categories = set(self.categories.iter().map(|entry| entry.category_id.as_str()));
        let people = set(self.people.iter().map(|entry| entry.channel_id.as_str()));
        unique("campaigns", "campaignId", self.campaigns.iter().map(|entry| &entry.campaign_id))?;
        for (path, entry) in listed("campaigns", &self.campaigns) {
            entry.convert(&path)?;
            let organization = Some(entry.organization_id.as_str());
            known(&organizations, "organization", &format!("{path}.organizationId"), organization)?;
            known(&categories, "category", &format!("{path}.categoryId"), Some(&entry.category_id))?;
            for (index, channel) in entry.channel_ids.iter().flatten().enumerate() {
                known(&people, "person", &format!("{path}.channelIds[{index}]"), Some(channel))?;
            }
        }
        for (path, entry) in listed("claims", &self.claims) {
            entry.convert(&path)?;
            known(&people, "person", &format!("{path}.channelId"), Some(&entry.channel_id))?;
            let campaign = self.campaigns.iter().find(|campaign| campaign.campaign_id == entry.campaign_id);
            let unknown_campaign = || unknown("campaign", &entry.campaign_id);
            let campaign = campaign
                .ok_or_else(|| WorldFileError::new(format!("{path}.campaignId"), unknown_campaign()))?;
            let rewards = set(campaign.rewards.iter().map(|reward| reward.reward_id.as_str()));
            known(&rewards, "reward", &format!("{path}.rewardId"), Some(&entry.reward_id))?;
        }
        Ok(())
    }
}

impl PersonItem {
    pub(super) fn convert(&self, path: &str) -> Converted<PersonParts> {
        let record = ChannelRecord {
            channel_id: id(path, ChannelId::parse("channelId", &self.channel_id))?,
            name: self.channel_name.clone(),
            image_url: self.channel_image_url.clone(),
            verified_mark: self.verified_mark,
            real_name_verified: self.real_name_verified,
        };
        let credentials = LoginCredentials {
            login: self.login().to_owned(),
            password: self.password().to_owned(),
            email: None,
        };
        let setting = self.broadcast_setting.as_ref();
        let setting = setting.map(|entry| entry.convert(&format!("{path}.broadcastSetting"))).transpose()?;
        let chat = self.chat_settings.as_ref();
        let chat = chat.map(|entry| entry.convert(&format!("{path}.chatSettings"))).transpose()?;
        let live = self.live.as_ref();
        let live = live.map(|entry| entry.convert(&format!("{path}.live"))).transpose()?;
        Ok(PersonParts { record, credentials, setting, chat, live })
    }
}

impl BroadcastItem {
    fn convert(&self, path: &str) -> Converted<SettingChange> {
        Ok(SettingChange {
            title: self.default_live_title.clone(),
            category_type: None,
            category: category(path, self.category_id.as_deref())?,
            tags: (!self.tags.is_empty()).then(|| self.tags.clone()),
        })
    }
}

impl ChatItem {
    fn convert(&self, path: &str) -> Converted<ChatSettingsChange> {
        let change = ChatSettingsChange {
            condition: parsed(path, self.chat_available_condition.as_deref(), Condition::parse)?,
            group: parsed(path, self.chat_available_group.as_deref(), Group::parse)?,
            min_follower_minute: self.min_follower_minute,
            allow_subscriber_in_follower_mode: self.allow_subscriber_in_follower_mode,
            slow_mode_sec: self.chat_slow_mode_sec,
            emoji_mode: self.chat_emoji_mode,
        };
        change.check().map_err(|invalid| WorldFileError::broken(path, &invalid))?;
        Ok(change)
    }
}

impl LiveItem {
    fn convert(&self, path: &str) -> Converted<LiveReport> {
        Ok(LiveReport {
            title: self.live_title.clone(),
            thumbnail_image_url: self.live_thumbnail_image_url.clone(),
            concurrent_user_count: self.concurrent_user_count,
            adult: self.adult,
            category: category(path, self.category_id.as_deref())?,
            tags: self.tags.clone(),
        })
    }
}

impl CategoryItem {
    pub(super) fn convert(&self, path: &str) -> Converted<Category> {
        let category = Category {
            category_id: id(path, CategoryId::parse("categoryId", &self.category_id))?,
            category_type: id(path, CategoryType::parse(&self.category_type))?,
            category_value: self.category_value.clone(),
            poster_image_url: self.poster_image_url.clone(),
        };
        id(path, category.check())?;
        Ok(category)
    }
}

impl OrganizationItem {
    pub(super) fn convert(&self, path: &str) -> Converted<Organization> {
        Ok(Organization {
            organization_id: id(path, OrganizationId::parse("organizationId", &self.organization_id))?,
            name: self.organization_name.clone(),
            verified: self.verified,
        })
    }
}

impl ApplicationItem {
    pub(super) fn convert(&self, path: &str) -> Converted<ApplicationRecord> {
        if let Some(secret) = &self.client_secret {
            secret_text(&format!("{path}.clientSecret"), secret)?;
        }
        if let Some(secret) = self.webhook.as_ref().and_then(|webhook| webhook.secret.as_deref()) {
            id(&format!("{path}.webhook"), WebhookSecret::given(secret))?;
        }
        let uris = self.redirect_uris.iter().enumerate().map(|(index, uri)| {
            let place = format!("{path}.redirectUris[{index}]");
            let rule = |invalid: Invalid| invalid.rule.text(Language::English).into_owned();
            RedirectUri::parse(uri).map_err(|invalid| WorldFileError::new(place, rule(invalid)))
        });
        let wrong_profile =
            || WorldFileError::new(format!("{path}.profile"), "must be documented or observed");
        let profile = self.profile.as_deref().map(|name| Profile::from_name(name).ok_or_else(wrong_profile));
        let organization = self.organization_id.as_deref();
        let organization = organization.map(|name| OrganizationId::parse("organizationId", name));
        Ok(ApplicationRecord {
            client_id: id(path, ClientId::parse("clientId", &self.client_id))?,
            name: self.name.clone().unwrap_or_else(|| self.client_id.clone()),
            organization_id: organization.map(|parsed| id(path, parsed)).transpose()?,
            redirect_uris: uris.collect::<Result<_, _>>()?,
            scopes: self.scopes(path)?,
            profile: profile.transpose()?,
            quota: self.quota,
        })
    }

    fn scopes(&self, path: &str) -> Converted<ScopeSet> {
        let Some(names) = &self.scopes else {
            let drops = self.organization_id.as_ref().map(|_| Scope::Drops);
            return Ok(ScopeSet::of_users().iter().chain(drops).collect());
        };
        let scopes = names.iter().enumerate().map(|(index, name)| {
            let rule = || WorldFileError::new(format!("{path}.scopes[{index}]"), unknown_scope(name));
            Scope::from_name(name).ok_or_else(rule)
        });
        scopes.collect()
    }
}

impl FollowItem {
    pub(super) fn convert(&self, path: &str) -> Converted<(ChannelId, ChannelId, Option<Timestamp>)> {
        let channel = id(path, ChannelId::parse("channelId", &self.channel_id))?;
        let follower = id(path, ChannelId::parse("followerChannelId", &self.follower_channel_id))?;
        Ok((channel, follower, date(path, "createdDate", self.created_date.as_deref())?))
    }
}

impl SubscriptionItem {
    pub(super) fn convert(&self, path: &str) -> Converted<(ChannelId, PaidSubscription)> {
        let usual = if self.tier_no == 2 { "열혈팬" } else { "팬" };
        let paid = PaidSubscription {
            subscriber: id(path, ChannelId::parse("subscriberChannelId", &self.subscriber_channel_id))?,
            tier_no: self.tier_no,
            tier_name: self.tier_name.clone().unwrap_or_else(|| usual.to_owned()),
            month: self.month,
            created: date(path, "createdDate", self.created_date.as_deref())?,
        };
        Ok((id(path, ChannelId::parse("channelId", &self.channel_id))?, paid))
    }
}

impl ManagerItem {
    pub(super) fn convert(&self, path: &str) -> Converted<(ChannelId, ChannelId, UserRole)> {
        let channel = id(path, ChannelId::parse("channelId", &self.channel_id))?;
        let manager = id(path, ChannelId::parse("managerChannelId", &self.manager_channel_id))?;
        Ok((channel, manager, id(path, UserRole::parse_given(&self.user_role))?))
    }
}

impl CampaignItem {
    pub(super) fn convert(&self, path: &str) -> Converted<Campaign> {
        let channels = self.channel_ids.as_ref().map(|ids| {
            ids.iter().map(|one| id(path, ChannelId::parse("channelIds", one))).collect::<Result<Vec<_>, _>>()
        });
        let reward = |entry: &RewardItem| {
            Ok(Reward {
                reward_id: id(path, RewardId::parse("rewards", &entry.reward_id))?,
                name: entry.reward_name.clone(),
                watch_minutes: entry.watch_minutes,
            })
        };
        let campaign = Campaign {
            campaign_id: id(path, CampaignId::parse("campaignId", &self.campaign_id))?,
            name: self.campaign_name.clone(),
            organization_id: id(path, OrganizationId::parse("organizationId", &self.organization_id))?,
            category_id: self.category_id.clone(),
            period: Period {
                start: date(path, "startDate", self.start_date.as_deref())?,
                end: date(path, "endDate", self.end_date.as_deref())?,
            },
            channels: channels.transpose()?,
            rewards: self.rewards.iter().map(reward).collect::<Result<_, _>>()?,
        };
        id(path, campaign.check())?;
        Ok(campaign)
    }
}

impl ClaimItem {
    pub(super) fn convert(&self, path: &str) -> Converted<RewardRequest> {
        let claim_id = self.claim_id.as_deref().map(|claim| ClaimId::parse("claimId", claim));
        Ok(RewardRequest {
            campaign_id: id(path, CampaignId::parse("campaignId", &self.campaign_id))?,
            reward_id: id(path, RewardId::parse("rewardId", &self.reward_id))?,
            channel_id: id(path, ChannelId::parse("channelId", &self.channel_id))?,
            claim_id: claim_id.map(|parsed| id(path, parsed)).transpose()?,
        })
    }
}

/// The entries of a list with their paths.
pub(super) fn listed<'a, T>(list: &'a str, entries: &'a [T]) -> impl Iterator<Item = (String, &'a T)> {
    entries.iter().enumerate().map(move |(index, entry)| (format!("{list}[{index}]"), entry))
}

/// A value of the entry at `path` that a rule of the service checked.
fn id<T>(path: &str, checked: Result<T, Invalid>) -> Converted<T> {
    checked.map_err(|invalid| WorldFileError::broken(path, &invalid))
}

fn parsed<T>(
    path: &str,
    name: Option<&str>,
    parse: impl Fn(&str) -> Result<T, Invalid>,
) -> Converted<Option<T>> {
    name.map(|name| id(path, parse(name))).transpose()
}

fn category(path: &str, name: Option<&str>) -> Converted<CategoryChoice> {
    id(path, CategoryChoice::parse(name))
}

fn date(path: &str, field: &str, text: Option<&str>) -> Converted<Option<Timestamp>> {
    let rule = || WorldFileError::new(format!("{path}.{field}"), "must be a time as in 2027-01-01T00:00:00Z");
    text.map(|text| Timestamp::parse_rfc3339(text).ok_or_else(rule)).transpose()
}

fn secret_text(path: &str, text: &str) -> Result<(), WorldFileError> {
    let fits = (SECRET_CHARS_MIN..=SECRET_CHARS_MAX).contains(&text.len());
    if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let rule =
        format!("must be {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX} printable ASCII characters without spaces");
    Err(WorldFileError::new(path, rule))
}

fn unique<T: Hash + Eq + fmt::Display>(
    list: &str,
    field: &str,
    values: impl Iterator<Item = T>,
) -> Result<(), WorldFileError> {
    let mut seen = std::collections::HashMap::new();
    for (index, value) in values.enumerate() {
        let rule = |first: &usize| format!("is that of {list}[{first}], too");
        if let Some(rule) = seen.get(&value).map(rule) {
            return Err(WorldFileError::new(format!("{list}[{index}].{field}"), rule));
        }
        seen.insert(value, index);
    }
    Ok(())
}

fn set<'a>(ids: impl Iterator<Item = &'a str>) -> HashSet<&'a str> {
    ids.collect()
}

fn known(names: &HashSet<&str>, what: &str, path: &str, name: Option<&str>) -> Result<(), WorldFileError> {
    match name {
        Some(name) if !names.contains(name) => Err(WorldFileError::new(path, unknown(what, name))),
        _ => Ok(()),
    }
}

fn unknown(what: &str, name: &str) -> String {
    format!("there is no {what} {name} in this file")
}

fn unknown_scope(name: &str) -> String {
    format!("there is no scope {name}: see docs/spec/authorization.md")
}
