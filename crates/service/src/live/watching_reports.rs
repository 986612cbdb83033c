//! A report of watched minutes as the caller gives it, and its result.

use std::slice;

use domain::limits::{WATCHING_MINUTES_MAX, WATCHING_VIEWERS_MAX};
use domain::{CategoryId, ChannelId, Invalid, Rule};
use store::queries::watching::Watched;

/// A report of watched minutes. The minutes are not checked against the clock, because several reports
/// may come at once or late.
#[derive(Clone, Debug)]
pub struct WatchingReport {
    /// The channel of the watched live.
    pub channel_id: ChannelId,
    /// The viewers.
    pub viewers: Viewers,
    /// The number of watched minutes.
    pub minutes: i64,
}

/// The viewers of a report.
#[derive(Clone, Debug)]
pub enum Viewers {
    /// One viewer.
    One(ChannelId),
    /// Up to 100 different viewers.
    Many(Vec<ChannelId>),
}

/// The result of a report of watched minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watching {
    /// Whether the channel was on air.
    pub on_air: bool,
    /// The category of the channel's live.
    pub category_id: Option<CategoryId>,
    /// The total minutes of the viewers in each campaign for which the minutes counted.
    pub watched: Vec<Watched>,
}

impl Viewers {
    pub(crate) fn ids(&self) -> &[ChannelId] {
        match self {
            Self::One(id) => slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }

    pub(crate) fn field(&self) -> &'static str {
        match self {
            Self::One(_) => "viewerChannelId",
            Self::Many(_) => "viewerChannelIds",
        }
    }
}

impl WatchingReport {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if !(1..=WATCHING_VIEWERS_MAX).contains(&self.viewers.ids().len()) {
            let rule = Rule::Items { min: 1, max: WATCHING_VIEWERS_MAX };
            return Err(Invalid::new(self.viewers.field(), rule));
        }
        if !(1..=WATCHING_MINUTES_MAX).contains(&self.minutes) {
            return Err(Invalid::new("minutes", Rule::Integer { min: 1, max: WATCHING_MINUTES_MAX }));
        }
        Ok(())
    }
}
