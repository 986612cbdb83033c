//! Close reasons in words: what happened, and what the application does about it.

use web::pages::Lang;

/// Name, Korean, English. `docs/close-reasons.md` has the same list.
const WORDS: [(&str, &str, &str); 20] = [
    ("client_goodbye", "앱이 연결을 끊었습니다.", "The app said goodbye."),
    ("transport_closed", "연결이 인사 없이 끊겼습니다.", "The connection ended without a goodbye."),
    ("ping_timeout", "앱이 너무 오래 응답하지 않았습니다.", "The app was silent for too long."),
    (
        "connect_timeout",
        "앱이 핸드셰이크 뒤에 40을 제때 보내지 않았습니다.",
        "The app did not send 40 after the handshake in time.",
    ),
    ("protocol_error", "앱이 소켓 프로토콜을 어겼습니다.", "The app broke the protocol of the socket."),
    ("invalid_utf8", "앱이 UTF-8이 아닌 글을 보냈습니다.", "The app sent text that is not UTF-8."),
    ("message_too_big", "앱이 너무 큰 메시지를 보냈습니다.", "The app sent a message that is too large."),
    ("packet_flood", "앱이 패킷을 너무 많이 보냈습니다.", "The app sent too many packets."),
    (
        "namespace_flood",
        "앱이 없는 네임스페이스에 너무 많이 접속했습니다.",
        "The app asked for too many namespaces that do not exist.",
    ),
    (
        "upgrade_failed",
        "웹소켓으로 바꾸는 데 실패했습니다. 처음부터 웹소켓을 쓰세요.",
        "The move to a websocket failed. Use a websocket from the beginning.",
    ),
    (
        "poll_conflict",
        "한 세션에서 요청 두 개가 동시에 폴링했습니다.",
        "Two requests polled one session at once.",
    ),
    (
        "slow_consumer",
        "앱이 이벤트를 너무 느리게 읽었습니다. 놓친 이벤트는 다시 오지 않습니다.",
        "The app read events too slowly. What it missed does not come again.",
    ),
    (
        "write_timeout",
        "앱으로 보내는 데이터가 너무 오래 막혔습니다.",
        "Data to the app made no progress for too long.",
    ),
    (
        "server_shutdown",
        "서버가 다시 시작했습니다. 앱은 잠시 뒤에 새 세션을 엽니다.",
        "The server restarted. The app opens a new session after a pause.",
    ),
    (
        "node_dead",
        "서버가 멈췄습니다. 앱은 잠시 뒤에 새 세션을 엽니다.",
        "The server died. The app opens a new session after a pause.",
    ),
    (
        "gap",
        "이벤트를 놓쳤을 수 있어 세션을 끝냈습니다. 앱은 새 세션을 엽니다.",
        "Events may be lost, so the session ended. The app opens a new one.",
    ),
    ("over_limit", "연결된 세션이 너무 많았습니다.", "There were too many connected sessions."),
    ("evicted", "운영자나 개발자가 세션을 종료했습니다.", "The operator or a developer ended the session."),
    (
        "revoked",
        "앱, 시크릿 또는 사용자의 허용이 끝났습니다.",
        "The app, its secret or the user’s permission ended.",
    ),
    ("internal_error", "서버에 오류가 있었습니다.", "The server failed."),
];

/// What a close reason means; empty for a reason that this version does not know.
pub(super) fn close_words(reason: &str, lang: Lang) -> &'static str {
    let found = WORDS.iter().find(|(name, ..)| *name == reason);
    found.map_or("", |(_, ko, en)| lang.pick(ko, en))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_close_reason_has_words() {
        let page = include_str!("../../../../docs/close-reasons.md");
        let names: Vec<_> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name))
            .collect();
        let known: Vec<_> = WORDS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, known);
    }
}
