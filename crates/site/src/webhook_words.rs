//! Webhooks and their messages in words, for developers and for operators.

use domain::delivery::{DeliveryState, DisabledReason};
use domain::outbound::SendFailure;
use domain::webhook::MessageKind;
use service::deliveries::AttemptRecord;
use service::webhooks::Webhook;
use web::pages::Lang;

/// Why a webhook is disabled.
pub(crate) const fn disabled_reason(reason: DisabledReason, lang: Lang) -> &'static str {
    match reason {
        DisabledReason::Operator => lang.pick("운영자가 중지함", "Switched off by the operator"),
        DisabledReason::Gone => lang.pick("수신자가 410으로 거절", "Its receiver answered 410"),
        DisabledReason::Failing => lang.pick("5일 동안 실패", "Failed for five days"),
    }
}

/// The state of a webhook: the kind of its badge, and the text.
pub(crate) const fn webhook_state(webhook: &Webhook, lang: Lang) -> (&'static str, &'static str) {
    match (webhook.disabled, webhook.failing_since) {
        (Some(disabled), _) => ("bad", disabled_reason(disabled.reason, lang)),
        (None, Some(_)) => ("warn", lang.pick("실패 중", "Failing")),
        (None, None) => ("good", lang.pick("정상", "Works")),
    }
}

/// An address without its query, which may hold a secret.
pub(crate) fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The state of a message: the kind of its badge, and the text.
pub(crate) const fn delivery_state(state: DeliveryState, lang: Lang) -> (&'static str, &'static str) {
    match state {
        DeliveryState::Waiting => ("plain", lang.pick("기다림", "Pending")),
        DeliveryState::Delivered => ("good", lang.pick("전달됨", "Delivered")),
        DeliveryState::Dead => ("bad", lang.pick("포기함", "Gave up")),
    }
}

/// What a message reports.
pub(crate) const fn message_kind(kind: MessageKind, lang: Lang) -> &'static str {
    match kind {
        MessageKind::Claim => lang.pick("보상 획득", "Claim"),
        MessageKind::Test => lang.pick("테스트 메시지", "Test message"),
    }
}

/// What an attempt came to.
pub(crate) fn outcome(attempt: &AttemptRecord, lang: Lang) -> String {
    match (attempt.status, attempt.failure) {
        (Some(status), _) => answered(status, lang),
        (None, Some(failure)) => send_failure(failure, lang).to_owned(),
        (None, None) => String::new(),
    }
}

/// What a status means for a message.
pub(crate) fn answered(status: u16, lang: Lang) -> String {
    let meaning = match status {
        200..=299 => lang.pick("받음", "accepted"),
        300..=399 => {
            lang.pick("다른 주소로 보냄. 리디렉션은 따라가지 않습니다.", "a redirect, which is not followed")
        }
        410 => lang.pick("더 이상 받지 않음", "it takes no more messages"),
        _ => lang.pick("거절", "refused"),
    };
    format!("{status} · {meaning}")
}

/// Why there was no answer.
pub(crate) const fn send_failure(failure: SendFailure, lang: Lang) -> &'static str {
    match failure {
        // One text: which names exist in other networks is not for developers.
        SendFailure::Dns | SendFailure::Address => lang.pick(
            "호스트에 보낼 수 있는 공개 주소가 없음 (이름을 찾을 수 없거나 공개 주소가 아님)",
            "The host has no public address: its name was not found, or leads into another network",
        ),
        SendFailure::Connect => lang.pick("연결되지 않음", "The connection was not accepted"),
        SendFailure::Tls => lang.pick(
            "TLS 실패 (인증서가 신뢰되지 않거나, 다른 이름의 것이거나, 만료됨)",
            "TLS failed: the certificate is not trusted, for another name or expired",
        ),
        SendFailure::Timeout => {
            lang.pick("5초 안에 응답이 없음", "The whole answer did not arrive within 5 seconds")
        }
        SendFailure::Closed => {
            lang.pick("응답 중에 연결이 끊김", "The connection ended before the whole answer")
        }
        SendFailure::Protocol => lang.pick("HTTP 응답이 아님", "The answer was not HTTP, or too large"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_an_address_is_hidden() {
        assert_eq!(without_query("https://a.example/hook?key=1#x"), "https://a.example/hook");
        assert_eq!(without_query("https://a.example/hook"), "https://a.example/hook");
    }

    #[test]
    fn a_status_is_said_with_its_meaning() {
        for (status, english) in [
            (204, "204 · accepted"),
            (301, "301 · a redirect, which is not followed"),
            (410, "410 · it takes no more messages"),
            (503, "503 · refused"),
        ] {
            assert_eq!(answered(status, Lang::En), english);
        }
    }
}
