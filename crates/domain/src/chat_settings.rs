//! Chat settings, and who may say what under them (`docs/spec/chat.md#settings`,
//! `docs/spec/chat.md#viewers`).

use crate::chat::Emojis;
use crate::limits::{MINUTE_MS, SECOND_MS};
use crate::restriction::RestrictionStatus;
use crate::{Invalid, Rule, Timestamp};

/// The values of `minFollowerMinute`.
pub const MIN_FOLLOWER_MINUTES: [i64; 13] =
    [0, 5, 10, 30, 60, 1_440, 10_080, 43_200, 86_400, 129_600, 172_800, 216_000, 259_200];
/// The values of `chatSlowModeSec`; 0 is off.
pub const SLOW_MODE_SECONDS: [i64; 8] = [0, 3, 5, 10, 30, 60, 120, 300];

/// `chatAvailableCondition`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    #[default]
    None,
    /// Only viewers who proved a real name.
    RealName,
}

/// `chatAvailableGroup`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Group {
    /// Everybody.
    #[default]
    All,
    /// Followers.
    Follower,
    /// Managers.
    Manager,
    /// Subscribers.
    Subscriber,
}

macro_rules! named {
    ($type:ident, $field:literal, $($variant:ident = $name:literal),+) => {
        impl $type {
            /// The names on the wire.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name on the wire and in the store.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// # Errors
            /// `Invalid` naming the field.
            pub fn parse(name: &str) -> Result<Self, Invalid> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(Invalid::new($field, Rule::OneOf(Self::NAMES))),
                }
            }
        }
    };
}
named!(Condition, "chatAvailableCondition", None = "NONE", RealName = "REAL_NAME");
named!(
    Group,
    "chatAvailableGroup",
    All = "ALL",
    Follower = "FOLLOWER",
    Manager = "MANAGER",
    Subscriber = "SUBSCRIBER"
);

/// The settings of one chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChatSettings {
    /// What viewers must have proved.
    pub condition: Condition,
    /// The viewers that may speak.
    pub group: Group,
    /// Minutes that a follower must have followed for, one of [`MIN_FOLLOWER_MINUTES`].
    pub min_follower_minute: i64,
    /// Whether follower mode exempts subscribers, also those that do not follow.
    pub allow_subscriber_in_follower_mode: bool,
    /// Seconds between two messages of one viewer, one of [`SLOW_MODE_SECONDS`].
    pub slow_mode_sec: i64,
    /// Whether messages may contain only emojis.
    pub emoji_mode: bool,
}

/// A change of settings. Only the given fields change.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChatSettingsChange {
    /// See [`ChatSettings`].
    pub condition: Option<Condition>,
    /// See [`ChatSettings`].
    pub group: Option<Group>,
    /// See [`ChatSettings`].
    pub min_follower_minute: Option<i64>,
    /// See [`ChatSettings`].
    pub allow_subscriber_in_follower_mode: Option<bool>,
    /// See [`ChatSettings`].
    pub slow_mode_sec: Option<i64>,
    /// See [`ChatSettings`].
    pub emoji_mode: Option<bool>,
}

impl ChatSettingsChange {
    /// # Errors
    /// `Invalid` naming the number that is not one of its allowed values.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.min_follower_minute.is_some_and(|minutes| !MIN_FOLLOWER_MINUTES.contains(&minutes)) {
            return Err(Invalid::new("minFollowerMinute", Rule::OneOfNumbers(&MIN_FOLLOWER_MINUTES)));
        }
        if self.slow_mode_sec.is_some_and(|seconds| !SLOW_MODE_SECONDS.contains(&seconds)) {
            return Err(Invalid::new("chatSlowModeSec", Rule::OneOfNumbers(&SLOW_MODE_SECONDS)));
        }
        Ok(())
    }

    /// The settings after this change.
    pub fn applied_to(self, settings: ChatSettings) -> ChatSettings {
        ChatSettings {
            condition: self.condition.unwrap_or(settings.condition),
            group: self.group.unwrap_or(settings.group),
            min_follower_minute: self.min_follower_minute.unwrap_or(settings.min_follower_minute),
            allow_subscriber_in_follower_mode: self
                .allow_subscriber_in_follower_mode
                .unwrap_or(settings.allow_subscriber_in_follower_mode),
            slow_mode_sec: self.slow_mode_sec.unwrap_or(settings.slow_mode_sec),
            emoji_mode: self.emoji_mode.unwrap_or(settings.emoji_mode),
        }
    }
}

/// The facts about a viewer who wants to speak.
#[derive(Clone, Copy, Debug, Default)]
pub struct Viewer {
    /// Whether the viewer proved a real name.
    pub real_name_verified: bool,
    /// Since when the viewer follows the channel.
    pub following_since: Option<Timestamp>,
    /// Whether the viewer subscribes to the channel.
    pub subscriber: bool,
    /// The viewer's restrictions.
    pub restriction: RestrictionStatus,
}

/// Why a viewer may not speak: 403, and the message names the rule and the seconds left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatRefusal {
    /// The viewer is under an activity restriction.
    Restricted,
    /// The viewer is temporarily restricted.
    TemporarilyRestricted {
        /// Seconds left.
        left_s: i64,
    },
    /// The viewer must prove a real name first.
    RealName,
    /// Followers only.
    Follower,
    /// The viewer has not followed for long enough.
    FollowerMinutes {
        /// Seconds left.
        left_s: i64,
    },
    /// Managers only.
    Manager,
    /// Subscribers only.
    Subscriber,
    /// Emojis only.
    Emoji,
    /// The viewer's last message is too recent.
    SlowMode {
        /// Seconds left.
        left_s: i64,
    },
}

impl ChatRefusal {
    /// The value of `rule` in a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restricted => "restricted",
            Self::TemporarilyRestricted { .. } => "temporarily-restricted",
            Self::RealName => "real-name",
            Self::Follower => "follower",
            Self::FollowerMinutes { .. } => "follower-minutes",
            Self::Manager => "manager",
            Self::Subscriber => "subscriber",
            Self::Emoji => "emoji",
            Self::SlowMode { .. } => "slow-mode",
        }
    }

    /// The rule and the seconds left, in Korean and in English.
    pub fn texts(self) -> (String, String) {
        let seconds = |ko: &str, en: &str, left: i64| {
            (format!("{ko} ({left}초 남음)"), format!("{en} ({left} s left)"))
        };
        let plain = |ko: &str, en: &str| (ko.to_owned(), en.to_owned());
        match self {
            Self::Restricted => plain("활동제한된 사용자입니다.", "You are restricted in this channel."),
            Self::TemporarilyRestricted { left_s } => {
                seconds("임시제한된 사용자입니다.", "You are temporarily restricted.", left_s)
            }
            Self::RealName => plain("본인인증이 필요한 채팅입니다.", "This chat needs a verified real name."),
            Self::Follower => plain("팔로워만 채팅할 수 있습니다.", "Only followers may chat."),
            Self::FollowerMinutes { left_s } => seconds(
                "팔로우한 지 일정 시간이 지나야 채팅할 수 있습니다.",
                "Followers may chat once they have followed for long enough.",
                left_s,
            ),
            Self::Manager => plain("매니저만 채팅할 수 있습니다.", "Only managers may chat."),
            Self::Subscriber => plain("구독자만 채팅할 수 있습니다.", "Only subscribers may chat."),
            Self::Emoji => plain("이모티콘만 사용할 수 있습니다.", "Only emojis may be used."),
            Self::SlowMode { left_s } => seconds("저속 모드입니다.", "The chat is in slow mode.", left_s),
        }
    }

    /// Seconds until the same message is allowed, if time alone helps.
    pub const fn left_s(self) -> Option<i64> {
        match self {
            Self::TemporarilyRestricted { left_s }
            | Self::FollowerMinutes { left_s }
            | Self::SlowMode { left_s } => Some(left_s),
            _ => None,
        }
    }
}

/// Whether a viewer may send `text` now. The streamer and managers are exempt. The database decides slow mode
/// in the statement that records the message's time; see [`slow_mode_left`].
///
/// # Errors
/// [`ChatRefusal`]: restrictions first, then the viewer's group, then the text.
pub fn may_speak(
    settings: &ChatSettings,
    viewer: &Viewer,
    text: &str,
    emojis: &Emojis,
    now: Timestamp,
) -> Result<(), ChatRefusal> {
    if viewer.restriction.restricted {
        return Err(ChatRefusal::Restricted);
    }
    if let Some(until) = viewer.restriction.until.filter(|until| *until > now) {
        return Err(ChatRefusal::TemporarilyRestricted { left_s: seconds_between(now, until) });
    }
    if settings.condition == Condition::RealName && !viewer.real_name_verified {
        return Err(ChatRefusal::RealName);
    }
    match settings.group {
        Group::All => {}
        Group::Follower => follower_mode(settings, viewer, now)?,
        Group::Manager => return Err(ChatRefusal::Manager),
        Group::Subscriber if !viewer.subscriber => return Err(ChatRefusal::Subscriber),
        Group::Subscriber => {}
    }
    if settings.emoji_mode && !only_emojis(text, emojis) {
        return Err(ChatRefusal::Emoji);
    }
    Ok(())
}

fn follower_mode(settings: &ChatSettings, viewer: &Viewer, now: Timestamp) -> Result<(), ChatRefusal> {
    if settings.allow_subscriber_in_follower_mode && viewer.subscriber {
        return Ok(());
    }
    let since = viewer.following_since.ok_or(ChatRefusal::Follower)?;
    let from = since.plus_ms(settings.min_follower_minute * MINUTE_MS);
    if now < from {
        return Err(ChatRefusal::FollowerMinutes { left_s: seconds_between(now, from) });
    }
    Ok(())
}

/// The refusal of a message that comes too soon after the viewer's last one. The wait is never longer than
/// the setting, although a node with a fast clock may have recorded the last message.
pub fn slow_mode_left(settings: &ChatSettings, last_message_at: Timestamp, now: Timestamp) -> ChatRefusal {
    let next = last_message_at.plus_ms(settings.slow_mode_sec * SECOND_MS);
    ChatRefusal::SlowMode { left_s: seconds_between(now, next).min(settings.slow_mode_sec) }
}

/// Rounded up, and at least one.
fn seconds_between(now: Timestamp, then: Timestamp) -> i64 {
    ((then.as_millis() - now.as_millis() + SECOND_MS - 1) / SECOND_MS).max(1)
}

/// Whether a text consists of the platform's emojis (identifiers that the platform sent with the text),
/// Unicode emojis and spaces.
fn only_emojis(text: &str, emojis: &Emojis) -> bool {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let known = emojis.keys().filter(|id| rest.starts_with(id.as_str())).map(String::len).max();
        match known {
            Some(length) => rest = &rest[length..],
            None if first.is_whitespace() || is_emoji_part(first) => rest = &rest[first.len_utf8()..],
            None => return false,
        }
    }
    true
}

/// Pictographs, and the code points that join and colour them. Digits, `#` and `*` are not, though they can
/// begin a keycap.
fn is_emoji_part(c: char) -> bool {
    matches!(c,
        '\u{1F000}'..='\u{1FAFF}'
        | '\u{2600}'..='\u{27BF}'
        | '\u{2B00}'..='\u{2BFF}'
        | '\u{2190}'..='\u{21FF}'
        | '\u{2300}'..='\u{23FF}'
        | '\u{25A0}'..='\u{25FF}'
        | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{00A9}' | '\u{00AE}'
        | '\u{200D}' | '\u{FE0F}' | '\u{20E3}'
        | '\u{E0020}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000_000_000;

    fn now() -> Timestamp {
        Timestamp::from_millis(NOW)
    }

    fn check(settings: ChatSettings, viewer: Viewer, text: &str, expected: Result<(), ChatRefusal>) {
        let emojis = [("{:hi:}".to_owned(), "https://e/hi.png".to_owned())].into();
        assert_eq!(
            may_speak(&settings, &viewer, text, &emojis, now()),
            expected,
            "{settings:?} {viewer:?} {text}"
        );
    }

    #[test]
    fn follower_minutes_at_each_boundary() {
        for minutes in MIN_FOLLOWER_MINUTES {
            let settings =
                ChatSettings { group: Group::Follower, min_follower_minute: minutes, ..Default::default() };
            let since = |ms: i64| Viewer { following_since: Some(now().plus_ms(-ms)), ..Default::default() };
            check(settings, since(minutes * MINUTE_MS), "hi", Ok(()));
            check(settings, Viewer::default(), "hi", Err(ChatRefusal::Follower));
            if minutes > 0 {
                let refusal = ChatRefusal::FollowerMinutes { left_s: 1 };
                check(settings, since(minutes * MINUTE_MS - 1), "hi", Err(refusal));
                let refusal = ChatRefusal::FollowerMinutes { left_s: minutes * 60 };
                check(settings, since(0), "hi", Err(refusal));
            }
        }
    }

    #[test]
    fn subscribers_are_exempt_from_follower_mode_only_if_the_setting_allows_it() {
        let viewer = Viewer { subscriber: true, ..Default::default() };
        let settings = |allow| ChatSettings {
            group: Group::Follower,
            min_follower_minute: 5,
            allow_subscriber_in_follower_mode: allow,
            ..Default::default()
        };
        check(settings(true), viewer, "hi", Ok(()));
        check(settings(false), viewer, "hi", Err(ChatRefusal::Follower));
    }

    #[test]
    fn groups_and_conditions_decide_who_may_speak() {
        let group = |group| ChatSettings { group, ..Default::default() };
        let subscriber = Viewer { subscriber: true, ..Default::default() };
        check(group(Group::All), Viewer::default(), "hi", Ok(()));
        check(group(Group::Manager), subscriber, "hi", Err(ChatRefusal::Manager));
        check(group(Group::Subscriber), Viewer::default(), "hi", Err(ChatRefusal::Subscriber));
        check(group(Group::Subscriber), subscriber, "hi", Ok(()));
        let real_name = ChatSettings { condition: Condition::RealName, ..Default::default() };
        check(real_name, Viewer::default(), "hi", Err(ChatRefusal::RealName));
        check(real_name, Viewer { real_name_verified: true, ..Default::default() }, "hi", Ok(()));
    }

    #[test]
    fn restrictions_come_before_settings_and_end_on_time() {
        let restricted = |restricted, until: Option<i64>| Viewer {
            restriction: RestrictionStatus { restricted, until: until.map(|ms| now().plus_ms(ms)) },
            ..Default::default()
        };
        let managers = ChatSettings { group: Group::Manager, ..Default::default() };
        check(managers, restricted(true, None), "hi", Err(ChatRefusal::Restricted));
        let settings = ChatSettings::default();
        check(
            settings,
            restricted(false, Some(1)),
            "hi",
            Err(ChatRefusal::TemporarilyRestricted { left_s: 1 }),
        );
        check(
            settings,
            restricted(false, Some(60_000)),
            "hi",
            Err(ChatRefusal::TemporarilyRestricted { left_s: 60 }),
        );
        check(settings, restricted(false, Some(0)), "hi", Ok(()));
    }

    #[test]
    fn emoji_mode_allows_emojis_and_spaces() {
        let settings = ChatSettings { emoji_mode: true, ..Default::default() };
        for text in ["👋🏽 👨‍👩‍👧‍👦", "{:hi:}{:hi:} ❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
        {
            check(settings, Viewer::default(), text, Ok(()));
        }
        for text in ["hi", "👋 hi", "{:no:}", "1", "ㅋㅋ"] {
            check(settings, Viewer::default(), text, Err(ChatRefusal::Emoji));
        }
    }

    #[test]
    fn slow_mode_returns_the_remaining_wait() {
        let settings = ChatSettings { slow_mode_sec: 10, ..Default::default() };
        let left = |ms: i64| slow_mode_left(&settings, now().plus_ms(-ms), now());
        assert_eq!(left(0), ChatRefusal::SlowMode { left_s: 10 });
        assert_eq!(left(9_999), ChatRefusal::SlowMode { left_s: 1 });
        assert_eq!(left(9_000), ChatRefusal::SlowMode { left_s: 1 });
        assert_eq!(left(8_999), ChatRefusal::SlowMode { left_s: 2 });
        assert_eq!(left(-500), ChatRefusal::SlowMode { left_s: 10 });
    }

    #[test]
    fn a_change_affects_only_the_given_settings() {
        let none = ChatSettingsChange::default();
        let all = ChatSettingsChange {
            condition: Some(Condition::RealName),
            group: Some(Group::Manager),
            min_follower_minute: Some(60),
            allow_subscriber_in_follower_mode: Some(true),
            slow_mode_sec: Some(30),
            emoji_mode: Some(true),
        };
        let full = ChatSettings {
            condition: Condition::RealName,
            group: Group::Manager,
            min_follower_minute: 60,
            allow_subscriber_in_follower_mode: true,
            slow_mode_sec: 30,
            emoji_mode: true,
        };
        assert_eq!(none.applied_to(ChatSettings::default()), ChatSettings::default());
        assert_eq!(none.applied_to(full), full);
        assert_eq!(all.applied_to(ChatSettings::default()), full);
    }

    #[test]
    fn the_longest_slow_mode_is_the_limit_of_the_sweep() {
        let longest = SLOW_MODE_SECONDS.into_iter().max().expect("there are values");
        assert_eq!(longest * SECOND_MS, crate::limits::SLOW_MODE_MAX_MS);
    }

    #[test]
    fn only_the_allowed_numbers_can_be_set() {
        let minutes =
            |minutes| ChatSettingsChange { min_follower_minute: Some(minutes), ..Default::default() };
        let slow = |seconds| ChatSettingsChange { slow_mode_sec: Some(seconds), ..Default::default() };
        for allowed in MIN_FOLLOWER_MINUTES {
            assert!(minutes(allowed).check().is_ok());
        }
        for allowed in SLOW_MODE_SECONDS {
            assert!(slow(allowed).check().is_ok());
        }
        assert!(minutes(1).check().is_err() && minutes(-5).check().is_err() && slow(1).check().is_err());
    }
}
