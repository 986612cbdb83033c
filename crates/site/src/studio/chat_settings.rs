//! `/studio/chat-settings`: who may speak in the chat, and how.

use askama::Template;
use domain::Invalid;
use domain::chat_settings::{
    ChatSettings, ChatSettingsChange, Condition, Group, MIN_FOLLOWER_MINUTES, SLOW_MODE_SECONDS,
};
use web::pages::{Area, FieldErrors, Flash, Lang, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer};

use crate::forms::at_field;
use crate::studio::at;
use crate::studio::desk::{Desk, PostedAt, StudioAt};
use crate::studio::frame::{StudioChoice, StudioPlace};
use crate::studio::nav::StudioNav;

const CHAT_SETTINGS: &str = StudioPlace::ChatSettings.path();
const MINUTES_PER_HOUR: i64 = 60;
const MINUTES_PER_DAY: i64 = 24 * MINUTES_PER_HOUR;

fn choices<V>(
    values: impl IntoIterator<Item = (V, String)>,
    value: impl Fn(&V) -> String,
    is_selected: impl Fn(&V) -> bool,
) -> Vec<StudioChoice> {
    let choice = |(of, label)| StudioChoice { value: value(&of), is_selected: is_selected(&of), label };
    values.into_iter().map(choice).collect()
}

#[derive(Debug, Template)]
#[template(path = "site/studio/chat_settings.html")]
struct ChatSettingsPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static ChatSettingsTexts,
    form: FormTarget,
    settings: ChatSettings,
    errors: FieldErrors,
}

impl ChatSettingsPage<'_> {
    fn title(&self) -> &'static str {
        StudioPlace::ChatSettings.label(self.shell.lang)
    }

    fn groups(&self) -> Vec<StudioChoice> {
        let names = [
            (Group::All, self.t.all),
            (Group::Follower, self.t.follower),
            (Group::Subscriber, self.t.subscriber),
            (Group::Manager, self.t.manager),
        ];
        let values = names.map(|(group, label)| (group, label.to_owned()));
        choices(values, |group| group.name().to_owned(), |group| *group == self.settings.group)
    }

    fn conditions(&self) -> Vec<StudioChoice> {
        let names = [(Condition::None, self.t.no_condition), (Condition::RealName, self.t.real_name)];
        let values = names.map(|(condition, label)| (condition, label.to_owned()));
        choices(values, |value| value.name().to_owned(), |value| *value == self.settings.condition)
    }

    fn follower_minutes(&self) -> Vec<StudioChoice> {
        let lang = self.shell.lang;
        let values = MIN_FOLLOWER_MINUTES.map(|minutes| (minutes, minutes_text(minutes, lang)));
        choices(values, i64::to_string, |minutes| *minutes == self.settings.min_follower_minute)
    }

    fn slow_mode_seconds(&self) -> Vec<StudioChoice> {
        let lang = self.shell.lang;
        let values = SLOW_MODE_SECONDS.map(|seconds| (seconds, seconds_text(seconds, lang)));
        choices(values, i64::to_string, |seconds| *seconds == self.settings.slow_mode_sec)
    }
}

fn page(desk: &Desk, settings: ChatSettings, errors: FieldErrors) -> ChatSettingsPage<'_> {
    let visitor = &desk.visitor;
    ChatSettingsPage {
        shell: visitor.shell(Area::Studio),
        nav: StudioNav::at(StudioPlace::ChatSettings, desk),
        t: texts(visitor.lang()),
        form: desk.form(CHAT_SETTINGS),
        settings,
        errors,
    }
}

/// `GET /studio/chat-settings`.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::ChatSettings>) -> PageAnswer {
    let settings = desk.visitor.web().service().chat_settings(&desk.channel_id).await?;
    desk.visitor.page(&page(&desk, settings, FieldErrors::default()))
}

/// `POST /studio/chat-settings`.
pub(crate) async fn submit(PostedAt { desk, fields, .. }: PostedAt<at::ChatSettings>) -> PageAnswer {
    let visitor = &desk.visitor;
    let (service, channel, lang) = (visitor.web().service(), &desk.channel_id, visitor.lang());
    let mut errors = FieldErrors::default();
    let change = change_of(&fields, &mut errors, lang);
    if errors.is_empty() {
        match service.change_chat_settings(channel, change).await {
            Ok(()) => return Ok(desk.redirect(CHAT_SETTINGS, Some(Flash::Saved))),
            Err(error) => errors = at_field(error, lang)?,
        }
    }
    let typed = change.applied_to(service.chat_settings(channel).await?);
    visitor.form_again(&page(&desk, typed, errors))
}

/// The settings of the form. A wrong value becomes an error at its field. A box that is not checked is not
/// sent.
fn change_of(fields: &FormFields, errors: &mut FieldErrors, lang: Lang) -> ChatSettingsChange {
    let number = |field| fields.text(field).parse::<i64>().ok();
    let mut change = ChatSettingsChange {
        condition: errors.keep(Condition::parse(fields.text("chatAvailableCondition")), lang),
        group: errors.keep(Group::parse(fields.text("chatAvailableGroup")), lang),
        allow_subscriber_in_follower_mode: Some(fields.is_checked("allowSubscriberInFollowerMode")),
        emoji_mode: Some(fields.is_checked("chatEmojiMode")),
        ..ChatSettingsChange::default()
    };
    // -1 is no allowed value: the rule refuses what is no number, too.
    let minutes = Some(number("minFollowerMinute").unwrap_or(-1));
    let minutes = ChatSettingsChange { min_follower_minute: minutes, ..Default::default() };
    change.min_follower_minute =
        checked(minutes, errors, lang).and_then(|minutes| minutes.min_follower_minute);
    let seconds = Some(number("chatSlowModeSec").unwrap_or(-1));
    let seconds = ChatSettingsChange { slow_mode_sec: seconds, ..Default::default() };
    change.slow_mode_sec = checked(seconds, errors, lang).and_then(|seconds| seconds.slow_mode_sec);
    change
}

fn checked(change: ChatSettingsChange, errors: &mut FieldErrors, lang: Lang) -> Option<ChatSettingsChange> {
    let checked: Result<(), Invalid> = change.check();
    errors.keep(checked.map(|()| change), lang)
}

fn minutes_text(minutes: i64, lang: Lang) -> String {
    let (count, (ko, en)) = match minutes {
        0 => return lang.pick("팔로우하면 바로", "As soon as they follow").to_owned(),
        1..MINUTES_PER_HOUR => (minutes, ("분", "minute")),
        MINUTES_PER_HOUR..MINUTES_PER_DAY => (minutes / MINUTES_PER_HOUR, ("시간", "hour")),
        _ => (minutes / MINUTES_PER_DAY, ("일", "day")),
    };
    counted(count, ko, en, lang)
}

fn seconds_text(seconds: i64, lang: Lang) -> String {
    match seconds {
        0 => lang.pick("끔", "Off").to_owned(),
        1..60 => counted(seconds, "초", "second", lang),
        _ => counted(seconds / 60, "분", "minute", lang),
    }
}

fn counted(count: i64, ko: &str, en: &str, lang: Lang) -> String {
    match lang {
        Lang::Ko => format!("{count}{ko}"),
        Lang::En => format!("{count} {en}{}", if count == 1 { "" } else { "s" }),
    }
}

#[derive(Debug)]
struct ChatSettingsTexts {
    lead: &'static str,
    group: &'static str,
    all: &'static str,
    follower: &'static str,
    subscriber: &'static str,
    manager: &'static str,
    follower_minutes: &'static str,
    follower_minutes_hint: &'static str,
    allow_subscriber: &'static str,
    condition: &'static str,
    no_condition: &'static str,
    real_name: &'static str,
    slow_mode: &'static str,
    slow_mode_hint: &'static str,
    emoji: &'static str,
    emoji_hint: &'static str,
    save: &'static str,
}

fn texts(lang: Lang) -> &'static ChatSettingsTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ChatSettingsTexts = ChatSettingsTexts {
    lead: "다음 메시지부터 적용됩니다. 스트리머와 매니저에게는 적용되지 않습니다.",
    group: "채팅할 수 있는 사람",
    all: "모두",
    follower: "팔로워",
    subscriber: "구독자",
    manager: "매니저",
    follower_minutes: "팔로우한 기간",
    follower_minutes_hint: "팔로워만 채팅할 수 있을 때, 이만큼 팔로우한 사람만 채팅할 수 있습니다.",
    allow_subscriber: "팔로워만 채팅할 수 있을 때 구독자도 허용",
    condition: "본인인증",
    no_condition: "필요 없음",
    real_name: "본인인증한 사람만",
    slow_mode: "저속 모드",
    slow_mode_hint: "한 사람의 메시지 사이의 시간입니다.",
    emoji: "이모티콘만 허용",
    emoji_hint: "글자가 있는 메시지를 받지 않습니다.",
    save: "저장",
};

const EN: ChatSettingsTexts = ChatSettingsTexts {
    lead: "They apply from the next message on, to everybody but you and your managers.",
    group: "Who may chat",
    all: "Everybody",
    follower: "Followers",
    subscriber: "Subscribers",
    manager: "Managers",
    follower_minutes: "Following for",
    follower_minutes_hint: "When only followers may chat, they must have followed for this long.",
    allow_subscriber: "When only followers may chat, allow subscribers too",
    condition: "Real name",
    no_condition: "Not needed",
    real_name: "Only people with a verified real name",
    slow_mode: "Slow mode",
    slow_mode_hint: "The time between two messages of one person.",
    emoji: "Emojis only",
    emoji_hint: "Messages with other characters are refused.",
    save: "Save",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allowed_number_has_words_of_its_own() {
        for lang in [Lang::Ko, Lang::En] {
            let minutes: std::collections::BTreeSet<_> =
                MIN_FOLLOWER_MINUTES.iter().map(|minutes| minutes_text(*minutes, lang)).collect();
            let seconds: std::collections::BTreeSet<_> =
                SLOW_MODE_SECONDS.iter().map(|seconds| seconds_text(*seconds, lang)).collect();
            assert_eq!((minutes.len(), seconds.len()), (MIN_FOLLOWER_MINUTES.len(), SLOW_MODE_SECONDS.len()));
        }
        assert_eq!(minutes_text(1_440, Lang::En), "1 day");
        assert_eq!(minutes_text(259_200, Lang::Ko), "180일");
        assert_eq!(seconds_text(300, Lang::En), "5 minutes");
    }
}
