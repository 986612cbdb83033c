//! The words of the page about usage.

use domain::quota::QuotaName;
use domain::usage::UsageKind;
use web::pages::{Lang, scope_label};

pub(super) struct UsageTexts {
    pub title: &'static str,
    pub last_used: &'static str,
    pub never_used: &'static str,
    pub deletes: &'static str,
    pub deletes_about: &'static str,
    pub requests: &'static str,
    pub requests_about: &'static str,
    pub periods: &'static str,
    pub total: &'static str,
    pub refused: &'static str,
    pub most: &'static str,
    pub chart: &'static str,
    pub none: &'static str,
    pub none_about: &'static str,
    pub by_kind: &'static str,
    pub kind: &'static str,
    pub by_day: &'static str,
    pub day: &'static str,
    pub quotas: &'static str,
    pub quotas_about: &'static str,
    pub no_quotas: &'static str,
    pub quota: &'static str,
    pub whose: &'static str,
    pub itself: &'static str,
    pub used: &'static str,
    pub full: &'static str,
    pub is_full: &'static str,
    pub in_seconds: &'static str,
    pub refused_requests: &'static str,
    pub refused_about: &'static str,
    pub no_refused: &'static str,
    pub console: &'static str,
    pub at: &'static str,
    pub request: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub user: &'static str,
    pub request_id: &'static str,
    pub node: &'static str,
}

pub(super) fn usage_texts(lang: Lang) -> &'static UsageTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

/// What requests of a kind are.
pub(super) const fn kind_name(kind: UsageKind, lang: Lang) -> &'static str {
    match kind {
        UsageKind::Scope(scope) => scope_label(scope, lang),
        UsageKind::Client => lang.pick("권한이 필요 없는 클라이언트 호출", "Client calls without a scope"),
        UsageKind::User => lang.pick("권한이 필요 없는 유저 호출", "User calls without a scope"),
        UsageKind::Token => lang.pick("토큰 발급과 갱신", "Token calls"),
    }
}

/// What a quota limits, of the application or of one of its users.
pub(super) const fn quota_words(quota: QuotaName, is_users: bool, lang: Lang) -> &'static str {
    match (quota, is_users) {
        (QuotaName::Client, _) => lang.pick("클라이언트 호출", "Client calls"),
        (QuotaName::User, _) => lang.pick("이 앱에서 한 유저의 호출", "Calls of a user in this app"),
        (QuotaName::Token, _) => lang.pick("토큰 호출", "Token calls"),
        (QuotaName::SessionUrls, false) => lang.pick("클라이언트 세션 주소", "Client session addresses"),
        (QuotaName::SessionUrls, true) => {
            lang.pick("한 유저의 세션 주소(모든 앱)", "Session addresses of a user, in all apps")
        }
        (QuotaName::ChatSend, _) => {
            lang.pick("한 유저의 채팅 메시지(모든 앱)", "Chat messages of a user, in all apps")
        }
        (QuotaName::Failures, _) => lang.pick("잘못된 코드와 토큰", "Bad codes and tokens"),
        (QuotaName::Accounts | QuotaName::Address | QuotaName::Studio, _)
        | (QuotaName::Passwords | QuotaName::Pages | QuotaName::Search, _) => quota.name(),
    }
}

const KO: UsageTexts = UsageTexts {
    title: "사용량",
    last_used: "마지막 사용",
    never_used: "아직 없음",
    deletes: "쓰지 않으면 삭제되는 날",
    deletes_about: "권한을 쓰는 호출이 있을 때마다 90일이 다시 시작합니다.",
    requests: "요청",
    requests_about: "권한별로 하루(UTC)에 몇 번 호출했는지 보여 줍니다. 몇 초 늦게 반영될 수 있습니다.",
    periods: "기간",
    total: "요청 수",
    refused: "거절·실패",
    most: "하루 최대",
    chart: "날짜별 요청 수 그래프. 같은 내용이 아래 표에 있습니다.",
    none: "이 기간에는 요청이 없습니다.",
    none_about: "앱이 API를 호출하면 여기에 표시됩니다.",
    by_kind: "권한별 요청",
    kind: "권한",
    by_day: "날짜별 요청",
    day: "날짜(UTC)",
    quotas: "지금 쓴 할당량",
    quotas_about: "할당량은 노드마다 따로 셉니다. 이 노드의 값입니다. 유저는 지금 할당량을 쓴 유저만 표시합니다.",
    no_quotas: "이 앱에는 할당량이 적용되지 않습니다.",
    quota: "할당량",
    whose: "대상",
    itself: "앱",
    used: "사용",
    full: "모두 다시 차는 때",
    is_full: "가득 참",
    in_seconds: "초 뒤",
    refused_requests: "최근에 거절된 요청",
    refused_about: "이 노드가 기억하는 마지막 50개입니다. 노드가 다시 시작하면 사라집니다. 토큰이나 시크릿이 알려지지 않은 요청은 어느 앱의 것인지 알 수 없어 여기에 없습니다.",
    no_refused: "거절된 요청이 없습니다.",
    console: "샌드박스 콘솔에서 모든 요청 보기",
    at: "시각",
    request: "요청",
    status: "상태",
    reason: "이유",
    user: "유저",
    request_id: "요청 ID",
    node: "노드",
};

const EN: UsageTexts = UsageTexts {
    title: "Usage",
    last_used: "Last used",
    never_used: "Not yet",
    deletes: "Deletion for inactivity",
    deletes_about: "Each call that uses a scope begins the 90 days again.",
    requests: "Requests",
    requests_about: "Calls by scope and UTC day. The last seconds may be missing.",
    periods: "Period",
    total: "Requests",
    refused: "Refused or failed",
    most: "Most in a day",
    chart: "Chart of the requests of each day. The tables below have the same numbers.",
    none: "There were no requests in this period.",
    none_about: "They stand here when the app calls the API.",
    by_kind: "Requests by scope",
    kind: "Scope",
    by_day: "Requests by day",
    day: "Day (UTC)",
    quotas: "Quotas in use now",
    quotas_about: "Each node counts by itself. These are the numbers of this node. Of users, only those who use a \
                   quota now are shown.",
    no_quotas: "This app has no quotas.",
    quota: "Quota",
    whose: "Of",
    itself: "The app",
    used: "Used",
    full: "Resets",
    is_full: "All available",
    in_seconds: "s from now",
    refused_requests: "Requests refused lately",
    refused_about: "The last 50 that this node remembers. They are gone when the node restarts. A request whose token \
                    or secret is unknown belongs to no app, so it is not here.",
    no_refused: "No request was refused.",
    console: "See every request in the sandbox console",
    at: "Time",
    request: "Request",
    status: "Status",
    reason: "Reason",
    user: "User",
    request_id: "Request id",
    node: "Node",
};
