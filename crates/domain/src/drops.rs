//! Reward claims of drops (`docs/spec/drops.md`).

use std::collections::{BTreeMap, HashSet};

use crate::limits::{CAMPAIGN_CHANNELS_MAX, CAMPAIGN_REWARDS_MAX, NAME_CHARS_MAX, REWARD_WATCH_MINUTES_MAX};
use crate::{CampaignId, ChannelId, ClaimId, Invalid, OrganizationId, RewardId, Rule, Timestamp, invalid};

/// `fulfillmentState`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FulfillmentState {
    /// The viewer claimed the reward.
    Claimed,
    /// The publisher fulfilled the claim.
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

    /// The previous state of a claim that changed to this one. There are only two states.
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

/// The settings of a campaign (the platform API's drops).
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Its id.
    pub campaign_id: CampaignId,
    /// Its name.
    pub name: String,
    /// The organization that owns the claims.
    pub organization_id: OrganizationId,
    /// The category that viewers have to watch.
    pub category_id: String,
    /// When minutes count and rewards can be claimed.
    pub period: Period,
    /// The channels whose lives count, up to 500; `None` for all channels.
    pub channels: Option<Vec<ChannelId>>,
    /// The rewards.
    pub rewards: Vec<Reward>,
}

/// The period of a campaign: from its start to just before its end. A missing start or end leaves that side
/// open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// The first moment of the period.
    pub start: Option<Timestamp>,
    /// The first moment after the period.
    pub end: Option<Timestamp>,
}

impl Period {
    /// A campaign ends after it starts.
    ///
    /// # Errors
    /// `Invalid` naming `endDate`.
    pub fn check(self) -> Result<(), Invalid> {
        match (self.start, self.end) {
            (Some(start), Some(end)) if end <= start => {
                Err(Invalid::new("endDate", Rule::After("startDate")))
            }
            _ => Ok(()),
        }
    }
}

/// A reward of a campaign.
#[derive(Clone, Debug)]
pub struct Reward {
    /// Its id, within the campaign.
    pub reward_id: RewardId,
    /// Its name.
    pub name: String,
    /// Minutes that a viewer must have watched before claiming it; 0 for none.
    pub watch_minutes: i64,
}

impl Campaign {
    /// Checks a campaign: a name, an end after its start, 1 to 100 distinct rewards with a name and a
    /// possible number of minutes, and 1 to 500 channels if any.
    ///
    /// # Errors
    /// `Invalid` naming `campaignName`, `endDate`, `channelIds`, `rewards`, `rewardId`, `rewardName` or
    /// `watchMinutes`.
    pub fn check(&self) -> Result<(), Invalid> {
        invalid::text("campaignName", &self.name, 1, NAME_CHARS_MAX)?;
        self.period.check()?;
        if self.channels.as_ref().is_some_and(|ids| !(1..=CAMPAIGN_CHANNELS_MAX).contains(&ids.len())) {
            return Err(Invalid::new("channelIds", Rule::Items { min: 1, max: CAMPAIGN_CHANNELS_MAX }));
        }
        if !(1..=CAMPAIGN_REWARDS_MAX).contains(&self.rewards.len()) {
            return Err(Invalid::new("rewards", Rule::Items { min: 1, max: CAMPAIGN_REWARDS_MAX }));
        }
        let mut seen = HashSet::new();
        for reward in &self.rewards {
            if !seen.insert(&reward.reward_id) {
                return Err(Invalid::new("rewardId", Rule::Once));
            }
            invalid::text("rewardName", &reward.name, 1, NAME_CHARS_MAX)?;
            if !(0..=REWARD_WATCH_MINUTES_MAX).contains(&reward.watch_minutes) {
                let rule = Rule::Integer { min: 0, max: REWARD_WATCH_MINUTES_MAX };
                return Err(Invalid::new("watchMinutes", rule));
            }
        }
        Ok(())
    }
}

/// The terms of a campaign for a claim, and the viewer's progress.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// When rewards can be claimed.
    pub period: Period,
    /// Minutes that the reward requires.
    pub watch_minutes: i64,
    /// Minutes that the viewer has watched.
    pub watched: i64,
}

impl Terms {
    /// The reason why the viewer cannot claim at `now`, if any.
    pub fn refusal(&self, now: Timestamp) -> Option<ClaimRefusal> {
        let left_minutes = self.watch_minutes - self.watched;
        match self.period {
            Period { start: Some(start), .. } if now < start => Some(ClaimRefusal::NotBegun { start }),
            Period { end: Some(end), .. } if end <= now => Some(ClaimRefusal::Over { end }),
            _ if left_minutes > 0 => Some(ClaimRefusal::Unwatched { left_minutes }),
            _ => None,
        }
    }
}

/// Why a reward cannot be claimed now. The answer is 403, and its message names the rule and the remaining
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimRefusal {
    /// The operator has disabled the campaign.
    Disabled,
    /// The campaign has not begun.
    NotBegun {
        /// When it begins.
        start: Timestamp,
    },
    /// The campaign is over.
    Over {
        /// When it ended.
        end: Timestamp,
    },
    /// The viewer has not watched for long enough.
    Unwatched {
        /// Minutes left.
        left_minutes: i64,
    },
}

impl ClaimRefusal {
    /// The value of `rule` in a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "campaign-disabled",
            Self::NotBegun { .. } => "not-begun",
            Self::Over { .. } => "over",
            Self::Unwatched { .. } => "unwatched",
        }
    }

    /// The rule and the remaining time, in Korean and in English.
    pub fn texts(self) -> (String, String) {
        match self {
            Self::Disabled => {
                ("사용이 중지된 캠페인입니다.".to_owned(), "The campaign is disabled.".to_owned())
            }
            Self::NotBegun { start } => (
                format!("아직 시작하지 않은 캠페인입니다. (시작: {})", start.rfc3339()),
                format!("The campaign has not begun. (It begins at {}.)", start.rfc3339()),
            ),
            Self::Over { end } => (
                format!("종료된 캠페인입니다. (종료: {})", end.rfc3339()),
                format!("The campaign is over. (It ended at {}.)", end.rfc3339()),
            ),
            Self::Unwatched { left_minutes } => (
                format!("시청 시간이 부족한 보상입니다. ({left_minutes}분 남음)"),
                format!("The reward asks for more watching. ({left_minutes} min left)"),
            ),
        }
    }
}

/// The progress of a viewer towards a reward.
#[derive(Clone, Debug)]
pub struct RewardProgress {
    /// The reward.
    pub reward: Reward,
    /// The viewer's claim of it.
    pub claim_id: Option<ClaimId>,
}

/// A claimed reward (`docs/spec/drops.md#claims`).
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
    /// The viewer.
    pub channel_id: ChannelId,
    /// Its state.
    pub state: FulfillmentState,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

/// The result of one claim id in an update, by which the answer groups the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UpdateStatus {
    /// The claim is in the wanted state, now or already before.
    Success,
    /// The text cannot be an id.
    InvalidId,
    /// There is no claim with this id.
    NotFound,
    /// The claim belongs to another organization.
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

    /// The result of an update of a claim. `owner` is the owner of the claim's campaign; `None` if the claim
    /// does not exist.
    pub fn of(owner: Option<&OrganizationId>, caller: &OrganizationId) -> Self {
        match owner {
            None => Self::NotFound,
            Some(owner) if owner != caller => Self::Unauthorized,
            Some(_) => Self::Success,
        }
    }
}

/// Groups the ids of an update by result: the groups in the order of [`UpdateStatus`], the ids of each in the
/// order of the request (`docs/spec/drops.md#update`).
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
            watch_minutes: 0,
        };
        Campaign {
            campaign_id: CampaignId::stored("c".to_owned()),
            name: name.to_owned(),
            organization_id: OrganizationId::stored("o".to_owned()),
            category_id: "g".to_owned(),
            period: Period::default(),
            channels: None,
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

    fn period(start: Option<i64>, end: Option<i64>) -> Period {
        Period { start: start.map(Timestamp::from_millis), end: end.map(Timestamp::from_millis) }
    }

    #[test]
    fn a_campaign_ends_after_it_starts_and_names_some_channels_or_none() {
        let check = |change: &dyn Fn(&mut Campaign), wrong: Option<&str>| {
            let mut campaign = campaign("이름", &[("a", "검")]);
            change(&mut campaign);
            assert_eq!(campaign.check().err().map(|invalid| invalid.field), wrong, "{campaign:?}");
        };
        check(&|campaign| campaign.period = period(Some(5), Some(6)), None);
        check(&|campaign| campaign.period = period(Some(5), Some(5)), Some("endDate"));
        check(&|campaign| campaign.period = period(Some(5), None), None);
        check(&|campaign| campaign.period = period(None, Some(5)), None);
        let channels = |count: usize| Some(vec![ChannelId::stored("c".to_owned()); count]);
        check(&|campaign| campaign.channels = channels(0), Some("channelIds"));
        check(&|campaign| campaign.channels = channels(500), None);
        check(&|campaign| campaign.channels = channels(501), Some("channelIds"));
        for (minutes, wrong) in
            [(-1, Some("watchMinutes")), (0, None), (525_600, None), (525_601, Some("watchMinutes"))]
        {
            check(&|campaign| campaign.rewards[0].watch_minutes = minutes, wrong);
        }
    }

    #[test]
    fn a_reward_can_be_claimed_within_the_period_after_enough_watching() {
        use ClaimRefusal::{NotBegun, Over, Unwatched};
        let at = Timestamp::from_millis;
        let check = |period, watch_minutes, watched, expected| {
            let terms = Terms { period, watch_minutes, watched };
            assert_eq!(terms.refusal(at(10)), expected, "{terms:?}");
        };
        check(period(None, None), 0, 0, None);
        check(period(Some(10), Some(11)), 0, 0, None);
        check(period(Some(11), None), 0, 0, Some(NotBegun { start: at(11) }));
        check(period(None, Some(10)), 0, 0, Some(Over { end: at(10) }));
        check(period(None, None), 30, 30, None);
        check(period(None, None), 30, 31, None);
        check(period(None, None), 30, 29, Some(Unwatched { left_minutes: 1 }));
        check(period(Some(11), None), 30, 0, Some(NotBegun { start: at(11) }));
    }

    #[test]
    fn an_update_of_another_organizations_claim_is_unauthorized() {
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
