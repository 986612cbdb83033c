//! Korean for the texts that the sandbox API has in English: descriptions of triggers, of their fields and of
//! networks, words of the record, and why a session missed an event.

use domain::Language;

/// (English, Korean)
const TEXTS: &[(&str, &str)] = &[
    (
        "how long to wait for a session, in real time, as in 5s; default: not at all",
        "세션을 기다릴 실제 시간. 예: 5s. 기본값: 기다리지 않음",
    ),
    (
        "how long to wait for a subscribed session, in real time; default: none is needed",
        "구독한 세션을 기다릴 실제 시간. 기본값: 세션이 없어도 됨",
    ),
    (
        "how long, on the sandbox's clock, as in 10s; default: until the next one is free",
        "샌드박스 시계로 얼마 동안. 예: 10s. 기본값: 다음 한 번이 비워질 때까지",
    ),
    // What triggers do.
    ("a viewer posts a chat message", "시청자가 채팅을 보냅니다"),
    ("a viewer donates to a channel", "시청자가 채널에 후원합니다"),
    ("a viewer subscribes to a channel", "시청자가 채널을 구독합니다"),
    ("a viewer follows a channel", "시청자가 채널을 팔로우합니다"),
    ("a viewer stops following a channel", "시청자가 팔로우를 그만둡니다"),
    ("a channel restricts another one in its chat", "채널이 자기 채팅에서 다른 채널의 활동을 제한합니다"),
    ("a channel goes on air, or changes its live", "채널이 방송을 시작하거나, 진행 중인 방송을 바꿉니다"),
    ("a channel goes off air", "채널이 방송을 끝냅니다"),
    (
        "a viewer watches a live, which counts for drops",
        "시청자가 방송을 봅니다. 시청 시간은 드롭스에 쌓입니다",
    ),
    ("a viewer claims a reward", "시청자가 보상을 받습니다"),
    ("a user withdraws the consent to an application", "사용자가 앱에 준 동의를 철회합니다"),
    ("an application loses a scope", "앱이 권한 범위 하나를 잃습니다"),
    ("a channel changes the settings of its chat", "채널이 채팅 설정을 바꿉니다"),
    (
        "the service restarts: sessions end with server_shutdown, and no call is answered for a while",
        "서비스를 다시 시작합니다: 세션이 server_shutdown으로 끝나고, 한동안 요청에 답하지 않습니다",
    ),
    (
        "the webhook of an application gets an address, and is enabled",
        "앱의 웹훅에 주소를 정하고, 웹훅을 켭니다",
    ),
    (
        "a viewer claims a reward, and its message fails until it is a dead letter; moves the clock",
        "시청자가 보상을 받고, 그 메시지의 배달이 끝내 실패합니다. 시계가 앞으로 갑니다",
    ),
    (
        "the messages to a webhook fail for five days, and it is disabled; moves the clock",
        "웹훅의 메시지가 닷새 동안 실패하고, 웹훅이 중지됩니다. 시계가 앞으로 갑니다",
    ),
    (
        "codes, tokens or session URLs end now; the clock stays",
        "코드, 토큰, 세션 URL이 지금 만료됩니다. 시계는 그대로입니다",
    ),
    ("sessions end", "세션이 끝납니다"),
    ("the connections of sessions are lost without a close frame", "세션의 연결이 종료 프레임 없이 끊깁니다"),
    (
        "the calls of a user through an application use up their quota",
        "앱으로 부르는 사용자의 쿼터가 모두 소진됩니다",
    ),
    (
        "many events for a while; answers at the end, with the percentiles of their latencies",
        "한동안 이벤트가 많이 일어납니다. 끝나면 지연 시간의 백분위수를 답합니다",
    ),
    // What fields hold.
    ("who does it; default: the last person", "하는 사람. 기본값: 마지막 사람"),
    ("who does it; default: any of the other people", "하는 사람. 기본값: 다른 사람 모두"),
    ("who watches; default: the last person", "보는 사람. 기본값: 마지막 사람"),
    ("who is restricted; default: the last person", "제한되는 사람. 기본값: 마지막 사람"),
    ("the channel; default: that of the first person", "채널. 기본값: 첫 번째 사람의 채널"),
    ("the user; default: the first person", "사용자. 기본값: 첫 번째 사람"),
    ("the application; default: the oldest one", "앱. 기본값: 가장 오래된 앱"),
    ("the text", "내용"),
    (
        "emojis in the text, as in {\"smile\":\"https://e.example/smile.png\"}",
        "내용에 든 이모지. 예: {\"smile\":\"https://e.example/smile.png\"}",
    ),
    (
        "the addresses of the sender's badges; default: those of the role",
        "보낸 사람의 배지 주소. 기본값: 역할의 배지",
    ),
    ("true: the donor has no name", "켜면 이름 없이 후원합니다"),
    ("won; default: 1000", "원. 기본값: 1000"),
    ("CHAT or VIDEO; default: CHAT", "CHAT 또는 VIDEO. 기본값: CHAT"),
    ("1 or 2; default: 1", "1 또는 2. 기본값: 1"),
    ("the brand name; default: that of the tier", "등급의 이름. 기본값: 등급의 원래 이름"),
    ("months subscribed; default: 1", "구독한 개월 수. 기본값: 1"),
    ("the first day, as an RFC 3339 time; default: now", "첫 구독일(RFC 3339 시각). 기본값: 지금"),
    ("true: for a minute", "켜면 1분 동안만 제한합니다"),
    ("default: that of the broadcast setting", "기본값: 방송 설정의 제목"),
    (
        "the id of a category; default: that of the broadcast setting",
        "카테고리 ID. 기본값: 방송 설정의 카테고리",
    ),
    ("number of viewers; default: 0", "시청자 수. 기본값: 0"),
    ("default: those of the broadcast setting", "기본값: 방송 설정의 태그"),
    ("true: for adults", "켜면 성인 방송입니다"),
    ("the address of its picture", "그림의 주소"),
    ("default: 1", "기본값: 1"),
    (
        "the id of the campaign; default: the first with a reward that the viewer can claim",
        "캠페인 ID. 기본값: 받을 수 있는 보상이 있는 첫 캠페인",
    ),
    (
        "the id of the reward; default: the first that the viewer can claim",
        "보상 ID. 기본값: 받을 수 있는 첫 보상",
    ),
    ("the id of the claim; default: a new one", "수령 ID. 기본값: 새 ID"),
    (
        "the key or name of the scope, as in chat-read; default: its first one",
        "권한 범위의 키나 이름. 예: chat-read. 기본값: 첫 번째 범위",
    ),
    (
        "seconds between two messages of a viewer: 0 (off), 3, 5, 10, 30, 60, 120 or 300",
        "시청자의 두 메시지 사이 초: 0(끔), 3, 5, 10, 30, 60, 120, 300",
    ),
    (
        "who may speak: ALL, FOLLOWER, MANAGER or SUBSCRIBER",
        "말할 수 있는 사람: ALL, FOLLOWER, MANAGER, SUBSCRIBER",
    ),
    ("minutes that a follower must have followed for", "팔로워가 팔로우한 지 지나야 하는 분"),
    ("true: subscribers need not follow", "켜면 구독자는 팔로우하지 않아도 됩니다"),
    ("true: emojis only", "켜면 이모지만 쓸 수 있습니다"),
    ("NONE or REAL_NAME", "NONE 또는 REAL_NAME"),
    (
        "how long it is away, in real time, up to 10m; default: 2s",
        "멈춰 있는 시간(실제 시간). 최대 10m, 기본값: 2s",
    ),
    ("the application; default: the first that may use drops", "앱. 기본값: 드롭스를 쓸 수 있는 첫 번째 앱"),
    ("the address of the receiver; default: that of the webhook", "수신 서버의 주소. 기본값: 웹훅의 주소"),
    ("as with claim", "보상 받기와 같습니다"),
    (
        "its message has a wrong signature, timestamp or body",
        "메시지의 signature, timestamp, body 가운데 하나가 틀립니다",
    ),
    ("true: its message is sent twice", "켜면 메시지를 두 번 보냅니다"),
    ("its message is sent this much later, as in 3s", "메시지를 이만큼 늦게 보냅니다. 예: 3s"),
    (
        "before: its message is not sent; after: the receiver's answer is lost",
        "before: 메시지를 보내지 않습니다. after: 수신 서버의 답을 잃습니다",
    ),
    (
        "code, access-token, refresh-token or session-url; default: access-token",
        "code, access-token, refresh-token, session-url 중 하나. 기본값: access-token",
    ),
    (
        "those of this user; default without client and token: the first person",
        "이 사용자의 것. 앱과 토큰이 없으면 기본값: 첫 번째 사람",
    ),
    ("those of this application", "이 앱의 것"),
    ("the one: a code, a token, or a session URL", "그것 하나: 코드, 토큰 또는 세션 URL"),
    ("the key of one session; or user, or client", "세션 하나의 키. 또는 사용자나 앱"),
    (
        "the sessions of this user; default without session and client: the first person",
        "이 사용자의 세션. 세션과 앱이 없으면 기본값: 첫 번째 사람",
    ),
    ("the sessions of this application", "이 앱의 세션"),
    (
        "a close reason, as in slow_consumer; default: evicted",
        "종료 이유. 예: slow_consumer. 기본값: evicted",
    ),
    (
        "true: they stay half open, and nothing passes them any more",
        "켜면 반쯤 열린 채로 남고, 더는 아무것도 오가지 않습니다",
    ),
    ("events a second, 1 to 1000; default: 10", "초당 이벤트, 1부터 1000까지. 기본값: 10"),
    ("in real time, up to 10m; default: 10s", "실제 시간으로, 최대 10m. 기본값: 10s"),
    (
        "the weights; default: {\"chat\":8,\"donation\":1,\"subscription\":1}",
        "비율. 기본값: {\"chat\":8,\"donation\":1,\"subscription\":1}",
    ),
    (
        "the same seed gives the same events in the same order; default: 1",
        "시드가 같으면 이벤트도 같습니다. 기본값: 1",
    ),
    // What networks are like.
    (
        "a crowded mobile network: everything arrives, much later",
        "붐비는 이동통신망: 모두 도착하지만 훨씬 늦습니다",
    ),
    (
        "latency that varies, and tunnels: connections fall silent and are lost, then nothing works for seconds",
        "지연이 오르내리고 터널을 지납니다: 연결이 조용해졌다가 끊기고, 몇 초 동안 아무것도 되지 않습니다",
    ),
    (
        "a change of the cell every 15 seconds: connections fall silent for 2 seconds and are lost",
        "15초마다 기지국이 바뀝니다: 연결이 2초 동안 조용해졌다가 끊깁니다",
    ),
    (
        "one long tunnel: sessions fall silent and stay so, and calls wait until the rule is removed",
        "긴 터널: 세션이 조용해진 채로 있고, 규칙을 지울 때까지 요청이 기다립니다",
    ),
    (
        "no network: sessions are lost, and no request is answered",
        "네트워크 없음: 세션이 끊기고, 요청에 답이 없습니다",
    ),
    // Kinds of records.
    ("request", "요청"),
    ("event", "이벤트"),
    ("frame", "프레임"),
    ("delivery", "배달"),
    ("mail", "메일"),
    ("trigger", "트리거"),
    ("clock", "시계"),
    ("due", "예정"),
    ("fault", "장애"),
    // What becomes due.
    ("code.expired", "코드 만료"),
    ("access-token.expired", "액세스 토큰 만료"),
    ("refresh-token.expired", "리프레시 토큰 만료"),
    ("session-url.expired", "세션 URL 만료"),
    ("sign-in.expired", "로그인 만료"),
    ("pending-sign-in.expired", "로그인 코드 입력 시간 만료"),
    ("password-reset.expired", "비밀번호 재설정 링크 만료"),
    ("application-secret.expired", "앱 시크릿 만료"),
    ("webhook-secret.expired", "웹훅 시크릿 만료"),
    ("restriction.ended", "활동 제한 끝"),
    ("campaign.started", "캠페인 시작"),
    ("campaign.ended", "캠페인 끝"),
    ("application.unused-60-days", "60일 미사용 앱 경고"),
    ("application.unused-80-days", "80일 미사용 앱 경고"),
    ("application.unused-89-days", "89일 미사용 앱 경고"),
    ("application.deleted", "미사용 앱 삭제"),
    ("application.purged", "삭제된 앱 정리"),
    ("webhook.attempt", "웹훅 시도"),
    // States of webhook messages, and why a webhook is disabled.
    ("WAITING", "대기"),
    ("DELIVERED", "배달됨"),
    ("DEAD", "배달 실패"),
    ("OPERATOR", "운영자가 중지"),
    ("GONE", "받는 쪽이 410으로 답함"),
    ("FAILING", "5일 동안 모두 실패"),
];

/// (beginning, end, Korean before the rest, Korean after it): why a session missed an event.
const REASONS: &[(&str, &str, &str, &str)] = &[
    ("not subscribed to ", "", "", " 구독 안 함"),
    ("unsubscribed from ", "", "", " 구독 해지"),
    ("the subscription to ", " was revoked", "", " 구독이 취소됨"),
    ("ended: ", "", "종료됨: ", ""),
    ("silent since ", "", "", "부터 침묵"),
    ("dropped by ", "", "유실: ", ""),
    ("sent after the next message by ", "", "다음 메시지 뒤에 보냄: ", ""),
    ("silenced by ", "", "침묵: ", ""),
    ("closed by ", "", "세션 종료: ", ""),
    ("cut by ", "", "연결 끊김: ", ""),
];

/// The text in a language. A text without a translation stays.
pub(super) fn in_language(language: Language, english: &str) -> &str {
    let korean = || TEXTS.iter().find(|(known, _)| *known == english).map(|(_, korean)| *korean);
    match language {
        Language::Korean => korean().unwrap_or(english),
        Language::English => english,
    }
}

/// Why a session missed an event, in a language.
pub(super) fn reason(language: Language, english: &str) -> String {
    if language == Language::English {
        return english.to_owned();
    }
    if let Some((ms, by)) = english.strip_prefix("sent ").and_then(|rest| rest.split_once(" ms late by ")) {
        return format!("{ms} ms 늦게 보냄: {by}");
    }
    let found = REASONS.iter().find_map(|(start, end, before, after)| {
        Some(format!("{before}{}{after}", english.strip_prefix(start)?.strip_suffix(end)?))
    });
    found.unwrap_or_else(|| english.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use service::due::DueKind;

    use super::*;
    use crate::http::trigger::KINDS;
    use crate::network::NetworkProfile;

    #[test]
    fn every_text_of_a_trigger_of_a_network_and_of_what_becomes_due_has_korean() {
        let fields = KINDS.iter().flat_map(|kind| kind.fields.iter().map(|field| field.about));
        let summaries = KINDS.iter().map(|kind| kind.summary);
        let networks = NetworkProfile::all().iter().map(|profile| profile.about);
        let due = DueKind::all().map(DueKind::name);
        let all = fields.chain(summaries).chain(networks).chain(due);
        let missing: BTreeSet<&str> =
            all.filter(|text| in_language(Language::Korean, text) == *text).collect();
        assert!(missing.is_empty(), "{missing:#?}");
        let known: BTreeSet<&str> = TEXTS.iter().map(|(english, _)| *english).collect();
        assert_eq!(known.len(), TEXTS.len(), "each text stands once");
    }

    #[test]
    fn reasons_keep_what_they_name() {
        for (english, korean) in [
            ("not subscribed to CHAT", "CHAT 구독 안 함"),
            ("the subscription to CHAT was revoked", "CHAT 구독이 취소됨"),
            ("ended: evicted", "종료됨: evicted"),
            ("sent 2000 ms late by fault-1", "2000 ms 늦게 보냄: fault-1"),
            ("something else", "something else"),
        ] {
            assert_eq!(reason(Language::Korean, english), korean);
            assert_eq!(reason(Language::English, english), english);
        }
    }
}
