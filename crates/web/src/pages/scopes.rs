//! The scopes of `docs/spec/authorization.md#scopes` in plain words. The key is the scope's name, which is
//! Korean.

use super::Lang;

/// One scope as the consent page lists it.
#[derive(Debug, Clone, Copy)]
pub struct ScopeLine<'a> {
    /// The scope's name, as [`domain::Scope::name`] gives it.
    pub name: &'a str,
    /// What the scope allows the application, in the language of the page.
    pub description: &'a str,
    /// Whether the application may change something or speak for the person, instead of only reading.
    pub write: bool,
    /// A warning for the person.
    pub warning: Option<&'a str>,
    /// Whether the person allowed it before.
    pub is_known: bool,
}

impl<'a> ScopeLine<'a> {
    /// The line of the scope with this name.
    pub fn new(name: &'a str, lang: Lang) -> Self {
        Self {
            name,
            description: scope_description(name, lang),
            write: scope_acts(name),
            warning: scope_warning(name, lang),
            is_known: false,
        }
    }
}

struct Scope {
    name: &'static str,
    acts: bool,
    ko: &'static str,
    en: &'static str,
}

const fn reads(name: &'static str, ko: &'static str, en: &'static str) -> Scope {
    Scope { name, acts: false, ko, en }
}

const fn acts(name: &'static str, ko: &'static str, en: &'static str) -> Scope {
    Scope { name, acts: true, ko, en }
}

const STREAM_KEY: &str = "방송 스트림키 조회";

/// The scopes in the order of [`domain::Scope::ALL`].
const SCOPES: [Scope; 17] = [
    reads("유저 정보 조회", "내 채널 이름과 채널 ID를 확인합니다.", "See your channel name and channel ID."),
    reads(
        "채널 관리자 조회",
        "내 채널을 관리하는 사람과 그 역할을 확인합니다.",
        "See who manages your channel and in which role.",
    ),
    reads(
        "채널 팔로워 조회",
        "내 채널의 팔로워 목록을 확인합니다.",
        "See the list of people who follow your channel.",
    ),
    reads(
        "채널 구독자 조회",
        "내 채널의 구독자와 구독 기간, 구독 등급을 확인합니다.",
        "See who subscribes to your channel, for how long and at which tier.",
    ),
    reads(STREAM_KEY, "내 방송 스트림키를 확인합니다.", "See your stream key."),
    reads(
        "방송 설정 조회",
        "내 방송의 제목, 카테고리, 태그를 확인합니다.",
        "See the title, category and tags of your broadcast.",
    ),
    acts(
        "방송 설정 변경",
        "내 방송의 제목, 카테고리, 태그를 변경합니다.",
        "Change the title, category and tags of your broadcast.",
    ),
    reads(
        "채팅 메시지 조회",
        "내 채널의 채팅을 실시간으로 확인합니다.",
        "Read your channel’s chat as it happens.",
    ),
    acts(
        "채팅 메시지 쓰기",
        "내 이름으로 채팅 메시지를 보내고, 내 채널의 채팅 메시지를 가립니다.",
        "Send chat messages in your name, and hide messages in your channel’s chat.",
    ),
    acts("채팅 공지 쓰기", "내 채널의 채팅에 공지를 등록합니다.", "Pin a notice in your channel’s chat."),
    reads(
        "채팅 설정 조회",
        "누가 채팅할 수 있는지 등 내 채널의 채팅 설정을 확인합니다.",
        "See your chat settings, such as who may chat.",
    ),
    acts(
        "채팅 설정 변경",
        "누가 채팅할 수 있는지 등 내 채널의 채팅 설정을 변경합니다.",
        "Change your chat settings, such as who may chat.",
    ),
    reads(
        "후원 조회",
        "내 채널이 받는 후원을 실시간으로 확인합니다.",
        "See donations to your channel as they happen.",
    ),
    reads(
        "구독 조회",
        "내 채널의 새로운 구독을 실시간으로 확인합니다.",
        "See new subscriptions to your channel as they happen.",
    ),
    acts(
        "활동제한 쓰기",
        "내 채널에서 다른 사람의 활동을 제한하거나 제한을 해제합니다.",
        "Restrict people in your channel, and lift restrictions.",
    ),
    reads(
        "활동제한 조회",
        "내 채널에서 활동이 제한된 사람의 목록을 확인합니다.",
        "See the list of people restricted in your channel.",
    ),
    acts(
        "드롭스",
        "드롭스 보상 수령 내역을 확인하고 지급 상태를 변경합니다.",
        "See drops reward claims and mark them as delivered.",
    ),
];

fn find(name: &str) -> Option<&'static Scope> {
    SCOPES.iter().find(|scope| scope.name == name)
}

/// What the scope with this (Korean) name allows an application. An unknown name has its own text.
pub fn scope_description(name: &str, lang: Lang) -> &'static str {
    match (find(name), lang) {
        (Some(scope), Lang::Ko) => scope.ko,
        (Some(scope), Lang::En) => scope.en,
        (None, Lang::Ko) => "설명이 준비되지 않은 권한입니다.",
        (None, Lang::En) => "A permission without a description.",
    }
}

/// What the scope allows an application, in a sentence.
pub fn scope_sentence(scope: domain::Scope, lang: Lang) -> &'static str {
    scope_description(scope.name(), lang)
}

/// The scope's name in the language of the page, with its key.
pub fn scope_with_key(scope: domain::Scope, lang: Lang) -> String {
    format!("{} ({})", scope_label(scope, lang), scope.key())
}

/// The scope's name in the language of the page.
pub const fn scope_label(scope: domain::Scope, lang: Lang) -> &'static str {
    use domain::Scope as S;
    match (lang, scope) {
        (Lang::Ko, _) => scope.name(),
        (Lang::En, S::UserRead) => "Read the user",
        (Lang::En, S::ManagerRead) => "Read managers",
        (Lang::En, S::FollowerRead) => "Read followers",
        (Lang::En, S::SubscriberRead) => "Read subscribers",
        (Lang::En, S::StreamKeyRead) => "Read the stream key",
        (Lang::En, S::LiveSettingRead) => "Read the broadcast setting",
        (Lang::En, S::LiveSettingWrite) => "Change the broadcast setting",
        (Lang::En, S::ChatRead) => "Read chat",
        (Lang::En, S::ChatWrite) => "Write chat",
        (Lang::En, S::NoticeWrite) => "Write notices",
        (Lang::En, S::ChatSettingRead) => "Read chat settings",
        (Lang::En, S::ChatSettingWrite) => "Change chat settings",
        (Lang::En, S::DonationRead) => "Read donations",
        (Lang::En, S::SubscriptionRead) => "Read paid subscriptions",
        (Lang::En, S::RestrictionWrite) => "Restrict people",
        (Lang::En, S::RestrictionRead) => "Read restrictions",
        (Lang::En, S::Drops) => "Drops (드롭스)",
    }
}

/// Whether the scope allows an application to change something or to speak for the person. An unknown name
/// counts as such, because too many warnings are safer than too few.
pub fn scope_acts(name: &str) -> bool {
    find(name).is_none_or(|scope| scope.acts)
}

/// A warning about this scope, for scopes that only read but are dangerous.
pub fn scope_warning(name: &str, lang: Lang) -> Option<&'static str> {
    (name == STREAM_KEY).then_some(match lang {
        Lang::Ko => "스트림키를 가진 사람은 누구나 내 채널에서 방송할 수 있습니다. 믿을 수 있는 앱에만 허용해 주세요.",
        Lang::En => "Anyone who has your stream key can broadcast on your channel. Allow this only for apps you trust.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC_SECTION_5: &str = "유저 정보 조회, 채널 관리자 조회, 채널 팔로워 조회, 채널 구독자 조회, \
        방송 스트림키 조회, 방송 설정 조회, 방송 설정 변경, 채팅 메시지 조회, 채팅 메시지 쓰기, 채팅 공지 쓰기, \
        채팅 설정 조회, 채팅 설정 변경, 후원 조회, 구독 조회, 활동제한 쓰기, 활동제한 조회, 드롭스";

    #[test]
    fn every_scope_of_the_specification_is_described_in_both_languages() {
        let names: Vec<_> = SPEC_SECTION_5.split(", ").collect();
        assert_eq!(names, SCOPES.map(|scope| scope.name));
        for lang in Lang::ALL {
            let mut descriptions: Vec<_> = names.iter().map(|name| scope_description(name, lang)).collect();
            assert!(!descriptions.contains(&scope_description("없는 권한", lang)));
            descriptions.sort_unstable();
            descriptions.dedup();
            assert_eq!(descriptions.len(), names.len(), "two scopes read the same in {lang:?}");
        }
    }

    #[test]
    fn only_scopes_that_write_change_or_pay_count_as_acting() {
        for scope in &SCOPES {
            let acts = ["쓰기", "변경", "드롭스"].iter().any(|ending| scope.name.ends_with(ending));
            assert_eq!(scope_acts(scope.name), acts, "{}", scope.name);
        }
        assert!(scope_acts("없는 권한"));
    }

    #[test]
    fn only_the_stream_key_has_a_warning() {
        for lang in Lang::ALL {
            let warned: Vec<_> =
                SCOPES.iter().filter(|scope| scope_warning(scope.name, lang).is_some()).collect();
            assert_eq!(warned.len(), 1);
            assert_eq!(warned[0].name, "방송 스트림키 조회");
        }
    }
}
