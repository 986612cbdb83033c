//! Reward claims of drops (spec sections 2, 3 and 4.6; decisions 5).

use std::collections::{BTreeMap, HashSet};

use crate::limits::{CAMPAIGN_REWARDS_MAX, NAME_CHARS_MAX};
use crate::{CampaignId, ChannelId, ClaimId, Invalid, OrganizationId, RewardId, Rule, Timestamp, invalid};

/// `fulfillmentState`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FulfillmentState {
    /// The viewer claimed the reward.
    Claimed,
    /// The publisher gave it.
    Fulfilled,
}

impl FulfillmentState {
    /// The names on the wire.
    pub const NAMES: &'static [&'static str] = &["CLAIMED", "FULFILLED"];

    /// The name on the wire and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claimed => "CLAIMED",
            Self::Fulfilled => "FULFILLED",
        }
    }

    /// The state that a claim was in before it changed to this one: there are two.
    pub const fn other(self) -> Self {
        match self {
            Self::Claimed => Self::Fulfilled,
            Self::Fulfilled => Self::Claimed,
        }
    }

    /// # Errors
    /// `Invalid` naming `fulfillmentState`.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        match name {
            "CLAIMED" => Ok(Self::Claimed),
            "FULFILLED" => Ok(Self::Fulfilled),
            _ => Err(Invalid::new("fulfillmentState", Rule::OneOf(Self::NAMES))),
        }
    }
}

/// What a campaign is told to be (the platform API's drops).
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Its id.
    pub campaign_id: CampaignId,
    /// Its name.
    pub name: String,
    /// Whose claims these are to be.
    pub organization_id: OrganizationId,
    /// What has to be watched.
    pub category_id: String,
    /// What can be claimed.
    pub rewards: Vec<Reward>,
}

/// A reward of a campaign.
#[derive(Clone, Debug)]
pub struct Reward {
    /// Its id, within the campaign.
    pub reward_id: RewardId,
    /// Its name.
    pub name: String,
}

impl Campaign {
    /// A campaign has a name and 1 to 100 rewards, each of them once and named.
    ///
    /// # Errors
    /// `Invalid` naming `campaignName`, `rewards`, `rewardId` or `rewardName`.
    pub fn check(&self) -> Result<(), Invalid> {
        invalid::text("campaignName", &self.name, 1, NAME_CHARS_MAX)?;
        if !(1..=CAMPAIGN_REWARDS_MAX).contains(&self.rewards.len()) {
            return Err(Invalid::new("rewards", Rule::Items { min: 1, max: CAMPAIGN_REWARDS_MAX }));
        }
        let mut seen = HashSet::new();
        for reward in &self.rewards {
            if !seen.insert(&reward.reward_id) {
                return Err(Invalid::new("rewardId", Rule::Once));
            }
            invalid::text("rewardName", &reward.name, 1, NAME_CHARS_MAX)?;
        }
        Ok(())
    }
}

/// A claimed reward (spec 2, "Reward claim").
#[derive(Clone, Debug)]
pub struct RewardClaim {
    /// Its id.
    pub claim_id: ClaimId,
    /// The campaign.
    pub campaign_id: CampaignId,
    /// The reward of the campaign.
    pub reward_id: RewardId,
    /// The campaign's category.
    pub category_id: String,
    /// Its name.
    pub category_name: String,
    /// Who claimed.
    pub channel_id: ChannelId,
    /// Where it stands.
    pub state: FulfillmentState,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

/// What became of one claim id in an update, by which the answer groups them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpdateStatus {
    /// It is in the wanted state now, or was before.
    Success,
    /// That is no id.
    InvalidId,
    /// There is no such claim.
    NotFound,
    /// It is another organization's.
    Unauthorized,
    /// The store failed.
    UpdateFailed,
}

impl UpdateStatus {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::InvalidId => "INVALID_ID",
            Self::NotFound => "NOT_FOUND",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::UpdateFailed => "UPDATE_FAILED",
        }
    }

    /// What an update of a claim means, given who owns its campaign (`None`: there is no such claim).
    pub fn of(owner: Option<&OrganizationId>, caller: &OrganizationId) -> Self {
        match owner {
            None => Self::NotFound,
            Some(owner) if owner != caller => Self::Unauthorized,
            Some(_) => Self::Success,
        }
    }
}

/// Groups the ids of an update by what became of them: the groups in the order of [`UpdateStatus`], the ids of each in
/// the order of the request (spec 4.6).
pub fn grouped(
    ids: Vec<String>,
    status: impl Fn(&ClaimId) -> UpdateStatus,
) -> BTreeMap<UpdateStatus, Vec<String>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for id in ids {
        let status = match ClaimId::parse("claimIds", &id) {
            Ok(id) => status(&id),
            Err(_) => UpdateStatus::InvalidId,
        };
        groups.entry(status).or_default().push(id);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(name: &str, rewards: &[(&str, &str)]) -> Campaign {
        let reward = |(id, name): &(&str, &str)| Reward {
            reward_id: RewardId::stored((*id).to_owned()),
            name: (*name).to_owned(),
        };
        Campaign {
            campaign_id: CampaignId::stored("c".to_owned()),
            name: name.to_owned(),
            organization_id: OrganizationId::stored("o".to_owned()),
            category_id: "g".to_owned(),
            rewards: rewards.iter().map(reward).collect(),
        }
    }

    #[test]
    fn a_campaign_has_a_name_and_1_to_100_rewards_each_once_and_named() {
        let check = |campaign: Campaign, wrong: Option<&str>| {
            assert_eq!(campaign.check().err().map(|invalid| invalid.field), wrong, "{campaign:?}");
        };
        let ids: Vec<String> = (0..101).map(|n| n.to_string()).collect();
        let many: Vec<_> = ids.iter().map(|id| (id.as_str(), "검")).collect();
        check(campaign("이름", &many[..1]), None);
        check(campaign(&"가".repeat(100), &many[..100]), None);
        check(campaign(&"가".repeat(101), &many[..1]), Some("campaignName"));
        check(campaign(" ", &many[..1]), Some("campaignName"));
        check(campaign("이름", &[]), Some("rewards"));
        check(campaign("이름", &many), Some("rewards"));
        check(campaign("이름", &[("a", "검"), ("b", "검")]), None);
        check(campaign("이름", &[("a", "검"), ("a", "방패")]), Some("rewardId"));
        check(campaign("이름", &[("a", "")]), Some("rewardName"));
        check(campaign("이름", &[("a", &"가".repeat(101))]), Some("rewardName"));
    }

    #[test]
    fn an_update_means_what_the_owner_of_the_claim_makes_of_it() {
        let [ours, theirs] = ["ours", "theirs"].map(|id| OrganizationId::stored(id.to_owned()));
        assert_eq!(UpdateStatus::of(Some(&ours), &ours), UpdateStatus::Success);
        assert_eq!(UpdateStatus::of(Some(&theirs), &ours), UpdateStatus::Unauthorized);
        assert_eq!(UpdateStatus::of(None, &ours), UpdateStatus::NotFound);
    }

    #[test]
    fn ids_are_grouped_by_status_and_stay_in_the_order_of_the_request() {
        let ids = ["z", "no id", "missing", "a", "", "theirs", "broken", "missing-2"];
        let groups = grouped(ids.map(str::to_owned).to_vec(), |id| match id.as_str() {
            "missing" | "missing-2" => UpdateStatus::NotFound,
            "theirs" => UpdateStatus::Unauthorized,
            "broken" => UpdateStatus::UpdateFailed,
            _ => UpdateStatus::Success,
        });
        let named: Vec<_> = groups.iter().map(|(status, ids)| (status.name(), ids.join("|"))).collect();
        let expected = [
            ("SUCCESS", "z|a"),
            ("INVALID_ID", "no id|"),
            ("NOT_FOUND", "missing|missing-2"),
            ("UNAUTHORIZED", "theirs"),
            ("UPDATE_FAILED", "broken"),
        ];
        assert_eq!(named, expected.map(|(name, ids)| (name, ids.to_owned())));
    }
}
