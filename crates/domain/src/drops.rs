//! Reward claims of drops (spec sections 2, 3 and 4.6; decisions 5).

use crate::{ChannelId, Invalid, OrganizationId, Rule, Timestamp};

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

/// A claimed reward (spec 2, "Reward claim").
#[derive(Clone, Debug)]
pub struct RewardClaim {
    /// Its id.
    pub claim_id: String,
    /// The campaign.
    pub campaign_id: String,
    /// The reward of the campaign.
    pub reward_id: String,
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
