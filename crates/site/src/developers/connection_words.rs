//! The results of a connection test in words.

use domain::Timestamp;
use domain::probe::{ProbeFault, ProbeStep, Probed, ProbedStep, TlsFault};
use web::pages::Lang;

use crate::webhook_words::{answered, send_failure};

/// Names of a certificate that are shown, and their characters.
const NAMES_SHOWN: usize = 5;
const NAME_CHARS_SHOWN: usize = 100;

/// What a request came to: the kind of its notice, and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub kind: &'static str,
    pub text: String,
}

impl Verdict {
    fn new(kind: &'static str, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// A step on the page.
pub(super) struct StepRow {
    pub name: &'static str,
    pub text: String,
    /// The kind of its badge.
    pub kind: &'static str,
    pub took_ms: i64,
}

/// A step with its result. An HTTP answer is as good as what it means.
pub(super) fn step_row(step: &ProbedStep, probed: &Probed, verdict: &Verdict, lang: Lang) -> StepRow {
    let text = match (&step.fault, step.step, probed.status) {
        (Some(fault), ..) => fault_text(fault, lang),
        (None, ProbeStep::Http, Some(status)) => status.to_string(),
        (None, ..) => lang.pick("성공", "Done").to_owned(),
    };
    let kind = match (&step.fault, step.step) {
        (Some(_), _) => "bad",
        (None, ProbeStep::Http) => verdict.kind,
        (None, _) => "good",
    };
    StepRow { name: step_name(step.step, lang), text, kind, took_ms: step.took_ms }
}

const fn step_name(step: ProbeStep, lang: Lang) -> &'static str {
    match step {
        ProbeStep::Name => lang.pick("이름 찾기", "Name looked up"),
        ProbeStep::Address => lang.pick("주소 확인", "Address judged"),
        ProbeStep::Tcp => lang.pick("TCP 연결", "TCP connection"),
        ProbeStep::Tls => lang.pick("TLS와 인증서", "TLS and certificate"),
        ProbeStep::Http => lang.pick("HTTP 응답", "HTTP answer"),
    }
}

fn fault_text(fault: &ProbeFault, lang: Lang) -> String {
    match fault {
        ProbeFault::Judged(fault) => lang.pick(fault.korean(), fault.english()).to_owned(),
        ProbeFault::Send(failure) => send_failure(*failure, lang).to_owned(),
        ProbeFault::Tls(fault) => tls_text(fault, lang),
    }
}

fn tls_text(fault: &TlsFault, lang: Lang) -> String {
    let date = |at: &Option<Timestamp>| at.and_then(|at| at.rfc3339().get(..10).map(str::to_owned));
    match fault {
        TlsFault::Expired(at) => dated(lang.pick("인증서가 만료됨", "The certificate has expired"), date(at)),
        TlsFault::NotYetValid(at) => dated(
            lang.pick("인증서의 유효 기간이 시작되지 않음", "The certificate is not valid yet"),
            date(at),
        ),
        TlsFault::OtherName(names) => {
            let shown = |name: &String| name.chars().take(NAME_CHARS_SHOWN).collect::<String>();
            let names = names.iter().take(NAMES_SHOWN).map(shown).collect::<Vec<_>>().join(", ");
            let text = lang.pick("인증서가 다른 이름의 것임", "The certificate is for another name");
            dated(text, Some(names).filter(|names| !names.is_empty()))
        }
        TlsFault::Untrusted => lang
            .pick(
                "신뢰할 수 있는 기관이 발급한 인증서가 아니거나, 중간 인증서가 빠져 있음",
                "No trusted authority has issued the certificate, or an intermediate certificate is missing",
            )
            .to_owned(),
        TlsFault::NotTls => lang.pick("TLS로 응답하지 않음", "The answer is not TLS").to_owned(),
        TlsFault::Other => lang.pick("TLS 연결에 실패함", "The TLS handshake failed").to_owned(),
    }
}

fn dated(text: &str, about: Option<String>) -> String {
    about.map_or_else(|| text.to_owned(), |about| format!("{text}: {about}"))
}

/// What the answer to a webhook message with a right signature means.
pub(super) fn right_verdict(probed: &Probed, lang: Lang) -> Verdict {
    match probed.status {
        None => unreached(lang),
        Some(_) if probed.is_accepted() => {
            Verdict::new("good", lang.pick("메시지를 받았습니다.", "It accepted the message."))
        }
        Some(status) => Verdict::new("bad", answered(status, lang)),
    }
}

/// What the answer to one with a wrong signature means. A refusal proves something only if the right
/// message was accepted: a receiver that fails refuses everything.
pub(super) fn wrong_verdict(probed: &Probed, right_accepted: bool, lang: Lang) -> Verdict {
    match probed.status {
        None => unreached(lang),
        Some(_) if probed.is_accepted() => Verdict::new(
            "bad",
            lang.pick(
                "서명이 틀린 메시지를 받았습니다. 누구나 거짓 메시지를 보낼 수 있습니다. 서명을 확인해 주세요.",
                "It accepted a message with a wrong signature, so anybody can send it false ones. Verify the signature.",
            ),
        ),
        Some(status @ 500..) => Verdict::new("bad", answered(status, lang)),
        Some(_) if right_accepted => Verdict::new(
            "good",
            lang.pick("서명이 틀린 메시지를 거절했습니다.", "It refused the message with the wrong signature."),
        ),
        Some(_) => Verdict::new(
            "warn",
            lang.pick(
                "서명이 맞는 메시지도 받지 않았으므로, 서명을 확인하는지 알 수 없습니다.",
                "It did not accept the message with the right signature either, so this does not show whether it verifies signatures.",
            ),
        ),
    }
}

/// What the answer of a redirect address means.
pub(super) fn redirect_verdict(probed: &Probed, lang: Lang) -> Verdict {
    match probed.status {
        None => unreached(lang),
        Some(status @ (404 | 500..)) => Verdict::new(
            if status >= 500 { "bad" } else { "warn" },
            lang.pick(
                "주소에 연결되지만 오류로 응답합니다. 로그인이 끝난 사람의 브라우저가 이 주소로 갑니다.",
                "It is reached, but it answers with an error. Browsers are led here after the sign-in.",
            ),
        ),
        Some(_) => Verdict::new(
            "good",
            lang.pick(
                "연결됩니다. 코드가 없는 요청이므로 4xx 응답도 괜찮습니다.",
                "It is reached. The request has no code, so an answer of 4xx is fine, too.",
            ),
        ),
    }
}

/// What the answer of the socket means.
pub(super) fn socket_verdict(probed: &Probed, lang: Lang) -> Verdict {
    match probed.status {
        None => unreached(lang),
        Some(401) => Verdict::new(
            "good",
            lang.pick(
                "세션 소켓이 응답합니다. 세션이 없는 요청이므로 401이 맞습니다.",
                "The socket answers. 401 is right, because the request has no session.",
            ),
        ),
        Some(status) => Verdict::new(
            if status >= 500 { "bad" } else { "warn" },
            lang.pick(
                "세션 소켓이 아닌 것이 응답합니다. 운영자에게 문의해 주세요.",
                "Something else than the socket answers. Ask the operator.",
            ),
        ),
    }
}

fn unreached(lang: Lang) -> Verdict {
    Verdict::new("bad", lang.pick("응답을 받지 못했습니다.", "There was no answer."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Probed {
        Probed { steps: Vec::new(), status: Some(status) }
    }

    #[test]
    fn a_receiver_that_accepts_a_wrong_signature_is_a_problem() {
        let right = |status| right_verdict(&answer(status), Lang::En).kind;
        assert_eq!([right(204), right(503), right(302)], ["good", "bad", "bad"]);
        let wrong = |status| wrong_verdict(&answer(status), true, Lang::En).kind;
        assert_eq!([wrong(204), wrong(401), wrong(503)], ["bad", "good", "bad"]);
        assert_eq!(wrong_verdict(&Probed::default(), true, Lang::En).kind, "bad");
    }

    #[test]
    fn a_refusal_proves_nothing_when_the_right_message_was_refused() {
        let wrong = |status| wrong_verdict(&answer(status), false, Lang::En).kind;
        assert_eq!([wrong(401), wrong(500), wrong(200)], ["warn", "bad", "bad"]);
    }

    #[test]
    fn an_http_error_has_a_red_badge() {
        let step = ProbedStep { step: ProbeStep::Http, took_ms: 1, fault: None };
        for (status, redirect, socket) in
            [(200, "good", "warn"), (401, "good", "good"), (404, "warn", "warn"), (500, "bad", "bad")]
        {
            let probed = answer(status);
            let verdict = redirect_verdict(&probed, Lang::En);
            assert_eq!(step_row(&step, &probed, &verdict, Lang::En).kind, redirect, "{status}");
            assert_eq!(socket_verdict(&probed, Lang::En).kind, socket, "{status}");
        }
        let failed = answer(500);
        assert_eq!(step_row(&step, &failed, &right_verdict(&failed, Lang::En), Lang::En).kind, "bad");
    }

    #[test]
    fn a_certificate_says_what_is_wrong_with_it() {
        let check = |fault: TlsFault, english: &str| assert_eq!(tls_text(&fault, Lang::En), english);
        let at = Timestamp::from_millis(1_784_385_132_345);
        check(TlsFault::Expired(Some(at)), "The certificate has expired: 2026-07-18");
        check(TlsFault::Expired(None), "The certificate has expired");
        check(
            TlsFault::OtherName(vec!["a.example".to_owned(), "b.example".to_owned()]),
            "The certificate is for another name: a.example, b.example",
        );
        let long = tls_text(&TlsFault::OtherName(vec!["x".repeat(10_000); 50]), Lang::En);
        assert!(long.len() < 600);
    }
}
