//! The rules of a world file: each entry, and how entries name each other.

use std::collections::HashSet;

use domain::Timestamp;
use serde_json::Value;

use super::mistake::{WorldFileError, known, listed, secret_text, set, unique, unknown};
use super::model::{PersonItem, TokenPair, WorldFile};

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
        let clock_rule = || WorldFileError::new("clock", "must be a time as in 2027-01-01T00:00:00Z");
        if self.clock.is_some() && self.clock_time().is_none() {
            return Err(clock_rule());
        }
        self.check_people()?;
        self.check_applications()?;
        self.check_relations()?;
        self.check_drops()?;
        self.check_history()
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
            let live = live.filter(|category| !category.is_empty());
            known(&categories, "category", &format!("{path}.live.categoryId"), live)?;
        }
        let mut numbers = HashSet::new();
        for (path, entry) in listed("people", &self.people) {
            if let Some(number) = entry.live.as_ref().and_then(|live| live.live_id)
                && !numbers.insert(number)
            {
                return Err(WorldFileError::new(format!("{path}.live.liveId"), "is that of another live"));
            }
        }
        Ok(())
    }

    fn check_applications(&self) -> Result<(), WorldFileError> {
        unique("organizations", "organizationId", self.organizations.iter().map(|one| &one.organization_id))?;
        let people = set(self.people.iter().map(|entry| entry.channel_id.as_str()));
        for (path, entry) in listed("organizations", &self.organizations) {
            entry.convert(&path)?;
            let path = format!("{path}.members");
            unique(&path, "channelId", entry.members.iter().map(|member| &member.channel_id))?;
            for (path, member) in listed(&path, &entry.members) {
                member.convert(&path)?;
                known(&people, "person", &format!("{path}.channelId"), Some(&member.channel_id))?;
            }
        }
        let organizations = set(self.organizations.iter().map(|entry| entry.organization_id.as_str()));
        unique("applications", "clientId", self.applications.iter().map(|entry| &entry.client_id))?;
        for (path, entry) in listed("applications", &self.applications) {
            entry.convert(&path)?;
            let organization = entry.organization_id.as_deref();
            known(&organizations, "organization", &format!("{path}.organizationId"), organization)?;
            let owner = entry.owner_channel_id.as_deref();
            known(&people, "person", &format!("{path}.ownerChannelId"), owner)?;
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
            entry.times(&path)?;
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

    /// Checks what happened.
    fn check_history(&self) -> Result<(), WorldFileError> {
        let people = set(self.people.iter().map(|entry| entry.channel_id.as_str()));
        let mut restricted = HashSet::new();
        for (path, entry) in listed("restrictions", &self.restrictions) {
            entry.convert(&path, Timestamp::default())?;
            let (channel, target) = (&entry.channel_id, &entry.restricted_channel_id);
            known(&people, "person", &format!("{path}.channelId"), Some(channel))?;
            known(&people, "person", &format!("{path}.restrictedChannelId"), Some(target))?;
            let place = format!("{path}.restrictedChannelId");
            if channel == target {
                return Err(WorldFileError::new(place, "must be another person"));
            }
            if !restricted.insert((channel, target, entry.end_date.is_some())) {
                return Err(WorldFileError::new(place, "is restricted already"));
            }
        }
        let mut message_ids = HashSet::new();
        for (path, entry) in listed("messages", &self.messages) {
            let row = entry.convert(&path)?;
            known(&people, "person", &format!("{path}.channelId"), Some(&entry.channel_id))?;
            known(&people, "person", &format!("{path}.senderChannelId"), Some(&entry.sender_channel_id))?;
            if !message_ids.insert(row.message_id) {
                let rule = "is that of another message of this sender in this chat";
                return Err(WorldFileError::new(format!("{path}.messageTime"), rule));
            }
        }
        let campaigns = set(self.campaigns.iter().map(|entry| entry.campaign_id.as_str()));
        for (path, entry) in listed("watched", &self.watched) {
            entry.convert(&path)?;
            known(&campaigns, "campaign", &format!("{path}.campaignId"), Some(&entry.campaign_id))?;
            known(&people, "person", &format!("{path}.channelId"), Some(&entry.channel_id))?;
        }
        for (path, entry) in listed("applications", &self.applications) {
            let messages = entry.webhook.iter().flat_map(|webhook| &webhook.messages);
            let mut ids = HashSet::new();
            for (index, message) in messages.enumerate() {
                let path = format!("{path}.webhook.messages[{index}]");
                message.convert(&path)?;
                if !ids.insert(&message.message_id) {
                    return Err(WorldFileError::new(
                        format!("{path}.messageId"),
                        "is that of another message",
                    ));
                }
            }
        }
        Ok(())
    }
}
