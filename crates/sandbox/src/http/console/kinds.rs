//! How the console names triggers and their fields, and which control each field has.

use domain::Language;

use crate::http::trigger::{Field, FieldType, Kind};

/// The groups of triggers, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Events,
    Channel,
    Access,
    Connection,
    Other,
}

impl Group {
    pub const ALL: [Self; 5] = [Self::Events, Self::Channel, Self::Access, Self::Connection, Self::Other];
}

/// What a field is typed or chosen with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// A person; without a choice the first one.
    FirstPerson,
    /// A person; without a choice the last one.
    LastPerson,
    /// A person, without a default.
    Person,
    /// An application; without a choice the oldest one.
    Application,
    /// An application, without a default.
    AnyApplication,
    Session,
    Scope,
    Campaign,
    Choice(&'static [&'static str]),
    Number,
    Flag,
    Text,
}

/// The close reasons of sessions.
pub(super) const CLOSE_REASONS: &[&str] = &[
    "evicted",
    "server_shutdown",
    "slow_consumer",
    "write_timeout",
    "ping_timeout",
    "transport_closed",
    "client_goodbye",
    "protocol_error",
    "packet_flood",
    "message_too_big",
    "over_limit",
    "gap",
    "node_dead",
    "revoked",
    "internal_error",
];

/// (name, group, Korean, English)
const KINDS: &[(&str, Group, &str, &str)] = &[
    ("chat", Group::Events, "채팅", "Chat"),
    ("donation", Group::Events, "후원", "Donation"),
    ("subscription", Group::Events, "구독", "Subscription"),
    ("storm", Group::Events, "대량 발생", "Storm"),
    ("follow", Group::Channel, "팔로우", "Follow"),
    ("unfollow", Group::Channel, "언팔로우", "Unfollow"),
    ("restrict", Group::Channel, "활동 제한", "Restrict"),
    ("chat-settings", Group::Channel, "채팅 설정", "Chat settings"),
    ("live", Group::Channel, "방송 시작", "Go live"),
    ("live-end", Group::Channel, "방송 종료", "End live"),
    ("watch", Group::Channel, "시청", "Watch"),
    ("claim", Group::Channel, "보상 받기", "Claim"),
    ("webhook", Group::Channel, "웹훅 주소", "Webhook"),
    ("dead-letter", Group::Channel, "배달 실패", "Dead letter"),
    ("disable-webhook", Group::Channel, "웹훅 중지", "Disable webhook"),
    ("revoke-consent", Group::Access, "동의 철회", "Withdraw consent"),
    ("remove-scope", Group::Access, "권한 제거", "Remove scope"),
    ("expire", Group::Access, "만료", "Expire"),
    ("exhaust-quota", Group::Access, "쿼터 소진", "Use up quota"),
    ("close-session", Group::Connection, "세션 종료", "Close session"),
    ("cut-connection", Group::Connection, "연결 끊기", "Cut connection"),
    ("restart", Group::Connection, "재시작", "Restart"),
];

/// (name, Korean, English)
const FIELDS: &[(&str, &str, &str)] = &[
    ("channel", "채널", "Channel"),
    ("to", "채널", "Channel"),
    ("from", "보낸 사람", "From"),
    ("message", "메시지", "Message"),
    ("anonymous", "익명", "Anonymous"),
    ("amount", "금액 (원)", "Amount (won)"),
    ("type", "종류", "Type"),
    ("tier", "등급", "Tier"),
    ("month", "구독 개월", "Months"),
    ("target", "대상", "Who"),
    ("title", "제목", "Title"),
    ("category", "카테고리 ID", "Category id"),
    ("viewers", "시청자 수", "Viewers"),
    ("viewer", "시청자", "Viewer"),
    ("minutes", "분", "Minutes"),
    ("campaign", "캠페인", "Campaign"),
    ("reward", "보상 ID", "Reward id"),
    ("client", "앱", "Application"),
    ("user", "사용자", "User"),
    ("scope", "권한 범위", "Scope"),
    ("session", "세션", "Session"),
    ("reason", "종료 이유", "Reason"),
    ("what", "무엇", "What"),
    ("rate", "초당 이벤트", "Events per second"),
    ("duration", "지속 시간", "Duration"),
    ("mix", "비율", "Mix"),
    ("seed", "시드", "Seed"),
    ("emojis", "이모지 (JSON)", "Emojis (JSON)"),
    ("badges", "배지 주소", "Badges"),
    ("tierName", "등급 이름", "Tier name"),
    ("since", "첫 구독일", "First day"),
    ("temporary", "1분 동안만", "For a minute"),
    ("tags", "태그", "Tags"),
    ("adult", "성인 방송", "For adults"),
    ("thumbnail", "섬네일 주소", "Thumbnail"),
    ("claim", "수령 ID", "Claim id"),
    ("silent", "반쯤 열린 채로", "Half open"),
    ("wait", "기다리는 시간", "Wait"),
    ("for", "지속 시간", "For"),
    ("token", "토큰, 코드 또는 URL", "Token, code or URL"),
    ("slowMode", "느린 모드 (초)", "Slow mode (s)"),
    ("group", "말할 수 있는 사람", "Who may speak"),
    ("followerMinutes", "팔로우 기간 (분)", "Followed for (min)"),
    ("subscribersExempt", "구독자 예외", "Subscribers exempt"),
    ("emojiMode", "이모지만", "Emojis only"),
    ("condition", "본인 확인", "Condition"),
    ("url", "주소", "Address"),
    ("tamper", "변조", "Tamper"),
    ("duplicate", "두 번", "Twice"),
    ("late", "늦게", "Late"),
    ("cut", "끊기", "Cut"),
];

/// Fields that few need. They are folded.
const FOLDED: &[&str] = &[
    "emojis",
    "badges",
    "tierName",
    "since",
    "tags",
    "adult",
    "thumbnail",
    "claim",
    "reward",
    "category",
    "type",
    "mix",
    "seed",
    "token",
    "wait",
    "followerMinutes",
    "subscribersExempt",
    "condition",
    "tamper",
    "duplicate",
    "late",
    "cut",
];

/// The field's value at first, if it is not empty.
const VALUES: &[(&str, &str, &str)] = &[
    ("chat", "message", "안녕하세요 👋"),
    ("donation", "message", "응원합니다!"),
    ("donation", "amount", "1000"),
    ("subscription", "tier", "1"),
    ("subscription", "month", "1"),
    ("live", "viewers", "128"),
    ("watch", "minutes", "30"),
    ("storm", "rate", "20"),
    ("storm", "duration", "3s"),
];

/// The group of a kind.
pub(super) fn group(kind: &Kind) -> Group {
    KINDS.iter().find(|(name, ..)| *name == kind.name).map_or(Group::Other, |(_, group, ..)| *group)
}

/// The name of a kind for people.
pub(super) fn label(kind: &Kind, language: Language) -> &'static str {
    let found = KINDS.iter().find(|(name, ..)| *name == kind.name);
    found.map_or(kind.name, |(_, _, korean, english)| language.pick(korean, english))
}

/// The name of a field for people.
pub(super) fn field_label(field: &'static str, language: Language) -> &'static str {
    let found = FIELDS.iter().find(|(name, ..)| *name == field);
    found.map_or(field, |(_, korean, english)| language.pick(korean, english))
}

/// The control of a field.
pub(super) fn control(kind: &Kind, field: &Field) -> Control {
    match (kind.name, field.name) {
        ("close-session" | "cut-connection" | "expire", "user") | ("storm", "from") => Control::Person,
        ("close-session" | "cut-connection" | "expire", "client") => Control::AnyApplication,
        (_, "channel" | "to" | "user") => Control::FirstPerson,
        (_, "from" | "target" | "viewer") => Control::LastPerson,
        (_, "client") => Control::Application,
        (_, "session") => Control::Session,
        (_, "scope") => Control::Scope,
        (_, "campaign") => Control::Campaign,
        ("donation", "type") => Control::Choice(&["CHAT", "VIDEO"]),
        ("subscription", "tier") => Control::Choice(&["1", "2"]),
        ("expire", "what") => Control::Choice(&["access-token", "refresh-token", "code", "session-url"]),
        (_, "reason") => Control::Choice(CLOSE_REASONS),
        (_, "amount") => Control::Number,
        _ => match field.takes {
            FieldType::Number => Control::Number,
            FieldType::Flag => Control::Flag,
            FieldType::Text | FieldType::Duration | FieldType::Object | FieldType::List => Control::Text,
        },
    }
}

/// Whether a field is folded.
pub(super) fn is_folded(field: &str) -> bool {
    FOLDED.contains(&field)
}

/// The value of a field at first.
pub(super) fn value(kind: &Kind, field: &str) -> &'static str {
    VALUES.iter().find(|(of, name, _)| *of == kind.name && *name == field).map_or("", |(_, _, value)| value)
}
