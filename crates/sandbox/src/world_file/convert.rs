//! The entries of a world file as the service takes them.

use domain::account::Email;
use domain::application::{Organization, Presentation, RedirectUri};
use domain::channel::UserRole;
use domain::chat_settings::{ChatSettingsChange, Condition, Group};
use domain::drops::{Campaign, Period, Reward};
use domain::live::{Category, CategoryChoice, CategoryType};
use domain::member::MemberRole;
use domain::operator_key::OperatorRole;
use domain::quota::QuotaShare;
use domain::secret::WebhookSecret;
use domain::{
    CampaignId, CategoryId, ChannelId, ClaimId, ClientId, Invalid, Language, OrganizationId, Profile,
    RewardId, Scope, ScopeSet, Timestamp,
};
use service::ChannelRecord;
use service::applications::{ApplicationRecord, NewLogo};
use service::broadcast_settings::SettingChange;
use service::channel_events::PaidSubscription;
use service::channels::LoginCredentials;
use service::drops::RewardRequest;
use service::lives::{LiveReport, LiveStart};

use super::mistake::{Converted, WorldFileError, date, id, secret_text, unknown_scope};
use super::model::{
    ApplicationItem, BroadcastItem, CampaignItem, CategoryItem, ChatItem, ClaimItem, FollowItem, LiveItem,
    ManagerItem, MemberItem, OrganizationItem, PASSWORD, PersonItem, RewardItem, SubscriptionItem,
};

/// How a person signs in.
pub(super) enum SignIn {
    /// With a password.
    Password(LoginCredentials),
    /// With the password of a hash.
    Hash { login: String, password_hash: String, email: Option<String> },
    /// The person cannot.
    Never,
}

/// What a person has besides the channel.
pub(super) struct PersonParts {
    pub record: ChannelRecord,
    pub sign_in: SignIn,
    pub role: Option<OperatorRole>,
    pub setting: Option<SettingChange>,
    pub chat: Option<ChatSettingsChange>,
    pub live: Option<(LiveReport, LiveStart)>,
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
        let sign_in = self.sign_in(path)?;
        let role = self.role(path)?;
        let setting = self.broadcast_setting.as_ref();
        let setting = setting.map(|entry| entry.convert(&format!("{path}.broadcastSetting"))).transpose()?;
        let chat = self.chat_settings.as_ref();
        let chat = chat.map(|entry| entry.convert(&format!("{path}.chatSettings"))).transpose()?;
        let live = self.live.as_ref();
        let live = live.map(|entry| entry.convert(&format!("{path}.live"))).transpose()?;
        Ok(PersonParts { record, sign_in, role, setting, chat, live })
    }

    fn role(&self, path: &str) -> Converted<Option<OperatorRole>> {
        let Some(name) = &self.operator_role else { return Ok(None) };
        let wrong = |rule: &str| WorldFileError::new(format!("{path}.operatorRole"), rule);
        if !self.can_sign_in {
            return Err(wrong("must not be given together with canSignIn: false"));
        }
        OperatorRole::from_name(name).map(Some).ok_or_else(|| wrong("must be one of read, write, admin"))
    }

    fn sign_in(&self, path: &str) -> Converted<SignIn> {
        let conflict = |field: &str, other: &str| {
            let rule = format!("must not be given together with {other}");
            Err(WorldFileError::new(format!("{path}.{field}"), rule))
        };
        if self.email_proven && self.email.is_none() {
            let rule = "must be given together with email";
            return Err(WorldFileError::new(format!("{path}.emailProven"), rule));
        }
        if let Some(email) = &self.email {
            id(path, Email::parse(email))?;
            if !self.can_sign_in {
                return conflict("email", "canSignIn: false");
            }
        }
        let login = self.login().to_owned();
        match (&self.password, &self.password_hash) {
            (Some(_), Some(_)) => conflict("passwordHash", "password"),
            (Some(_), None) if !self.can_sign_in => conflict("password", "canSignIn: false"),
            (None, Some(_)) if !self.can_sign_in => conflict("passwordHash", "canSignIn: false"),
            (None, None) if !self.can_sign_in => Ok(SignIn::Never),
            (None, Some(hash)) if service::is_password_hash(hash) => {
                Ok(SignIn::Hash { login, password_hash: hash.clone(), email: self.email.clone() })
            }
            (None, Some(_)) => {
                let rule = "must be a hash of Argon2id in PHC form, of at most 64 MiB and 10 passes";
                Err(WorldFileError::new(format!("{path}.passwordHash"), rule))
            }
            (password, None) => {
                let password = password.as_deref().unwrap_or(PASSWORD).to_owned();
                Ok(SignIn::Password(LoginCredentials { login, password, email: self.email.clone() }))
            }
        }
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
    fn convert(&self, path: &str) -> Converted<(LiveReport, LiveStart)> {
        if self.live_id.is_some_and(|live_id| live_id < 1) {
            return Err(WorldFileError::new(format!("{path}.liveId"), "must be an integer from 1"));
        }
        let opened_at = date(path, "openDate", self.open_date.as_deref())?;
        let report = LiveReport {
            title: self.live_title.clone(),
            thumbnail_image_url: self.live_thumbnail_image_url.clone(),
            concurrent_user_count: self.concurrent_user_count,
            adult: self.adult,
            category: category(path, self.category_id.as_deref())?,
            tags: self.tags.clone(),
        };
        Ok((report, LiveStart { live_id: self.live_id, opened_at }))
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

impl MemberItem {
    pub(super) fn convert(&self, path: &str) -> Converted<(ChannelId, MemberRole, Option<Timestamp>)> {
        let channel = id(path, ChannelId::parse("channelId", &self.channel_id))?;
        let role = id(path, MemberRole::parse(&self.role))?;
        Ok((channel, role, date(path, "createdDate", self.created_date.as_deref())?))
    }
}

impl ApplicationItem {
    /// The part of the quotas that it has, if it is not all.
    pub(super) fn quota_share(&self, path: &str) -> Converted<Option<QuotaShare>> {
        let Some(percent) = self.quota_percent else { return Ok(None) };
        let wrong = |rule: &str| WorldFileError::new(format!("{path}.quotaPercent"), rule);
        if !self.quota {
            return Err(wrong("must not be given together with quota: false"));
        }
        QuotaShare::percent(percent).map(Some).ok_or_else(|| wrong("must be a number from 1 to 100"))
    }

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
        let owner = self.owner_channel_id.as_deref();
        let owner = owner.map(|name| id(path, ChannelId::parse("ownerChannelId", name))).transpose()?;
        if owner.is_some() && organization.is_some() {
            let rule = "must not be given together with organizationId";
            return Err(WorldFileError::new(format!("{path}.ownerChannelId"), rule));
        }
        self.quota_share(path)?;
        Ok(ApplicationRecord {
            client_id: id(path, ClientId::parse("clientId", &self.client_id))?,
            name: self.name.clone().unwrap_or_else(|| self.client_id.clone()),
            organization_id: organization.map(|parsed| id(path, parsed)).transpose()?,
            owner,
            redirect_uris: uris.collect::<Result<_, _>>()?,
            scopes: self.scopes(path)?,
            profile: profile.transpose()?,
            quota: self.quota,
            presentation: Presentation::default(),
            logo: NewLogo::Kept,
        })
    }

    fn scopes(&self, path: &str) -> Converted<ScopeSet> {
        let Some(names) = &self.scopes else {
            let drops = self.organization_id.as_ref().map(|_| Scope::Drops);
            return Ok(ScopeSet::of_users().iter().chain(drops).collect());
        };
        let scopes = names.iter().enumerate().map(|(index, name)| {
            let rule = || WorldFileError::new(format!("{path}.scopes[{index}]"), unknown_scope(name));
            Scope::from_name_or_key(name).ok_or_else(rule)
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
    pub(super) fn convert(
        &self,
        path: &str,
    ) -> Converted<(ChannelId, ChannelId, UserRole, Option<Timestamp>)> {
        let channel = id(path, ChannelId::parse("channelId", &self.channel_id))?;
        let manager = id(path, ChannelId::parse("managerChannelId", &self.manager_channel_id))?;
        let role = id(path, UserRole::parse_given(&self.user_role))?;
        Ok((channel, manager, role, date(path, "createdDate", self.created_date.as_deref())?))
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
    /// When it was claimed, and when it last changed, if the file says so.
    pub(super) fn times(&self, path: &str) -> Converted<Option<(Timestamp, Timestamp)>> {
        let claimed = date(path, "claimedDate", self.claimed_date.as_deref())?;
        let updated = date(path, "updatedDate", self.updated_date.as_deref())?;
        match (claimed, updated) {
            (None, Some(_)) => {
                Err(WorldFileError::new(format!("{path}.updatedDate"), "must stand beside claimedDate"))
            }
            (claimed, updated) => Ok(claimed.map(|claimed| (claimed, updated.unwrap_or(claimed)))),
        }
    }

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
