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
    pub is_fine: bool,
    pub took_ms: i64,
}

/// A step with its result.
pub(super) fn step_row(step: &ProbedStep, probed: &Probed, lang: Lang) -> StepRow {
    let text = match (&step.fault, step.step, probed.status) {
        (Some(fault), ..) => fault_text(fault, lang),
        (None, ProbeStep::Http, Some(status)) => status.to_string(),
        (None, ..) => lang.pick("성공", "Done").to_owned(),
    };
    StepRow { name: step_name(step.step, lang), text, is_fine: step.fault.is_none(), took_ms: step.took_ms }
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

/// What the answer to a webhook message means.
pub(super) fn webhook_verdict(probed: &Probed, is_good: bool, lang: Lang) -> Verdict {
    let Some(status) = probed.status else { return unreached(lang) };
    match (is_good, probed.is_accepted()) {
        (true, true) => Verdict::new("good", lang.pick("메시지를 받았습니다.", "It accepted the message.")),
        (true, false) => Verdict::new("bad", answered(status, lang)),
        (false, false) => Verdict::new(
            "good",
            lang.pick("서명이 틀린 메시지를 거절했습니다.", "It refused the message with the wrong signature."),
        ),
        (false, true) => Verdict::new(
            "bad",
            lang.pick(
                "서명이 틀린 메시지를 받았습니다. 누구나 거짓 메시지를 보낼 수 있습니다. 서명을 확인해 주세요.",
                "It accepted a message with a wrong signature, so anybody can send it false ones. Verify the signature.",
            ),
        ),
    }
}

/// What the answer of a redirect address means.
pub(super) fn redirect_verdict(probed: &Probed, lang: Lang) -> Verdict {
    match probed.status {
        None => unreached(lang),
        Some(404 | 500..) => Verdict::new(
            "warn",
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
        Some(_) => Verdict::new(
            "warn",
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
        let kind = |status, is_good| webhook_verdict(&answer(status), is_good, Lang::En).kind;
        assert_eq!([kind(204, true), kind(503, true), kind(302, true)], ["good", "bad", "bad"]);
        assert_eq!([kind(204, false), kind(401, false), kind(503, false)], ["bad", "good", "good"]);
        assert_eq!(webhook_verdict(&Probed::default(), false, Lang::En).kind, "bad");
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
