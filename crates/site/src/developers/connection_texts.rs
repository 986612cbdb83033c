//! The texts of the page of a connection test.

use web::pages::Lang;

/// The texts.
#[derive(Debug)]
pub(super) struct ConnectionTexts {
    pub heading: &'static str,
    pub lead: &'static str,
    pub covered: &'static str,
    pub start: &'static str,
    pub again: &'static str,
    pub about: &'static str,
    pub busy: &'static str,
    pub webhook: &'static str,
    pub redirect: &'static str,
    pub socket: &'static str,
    pub good_message: &'static str,
    pub bad_message: &'static str,
    pub get: &'static str,
    pub step: &'static str,
    pub result: &'static str,
    pub time: &'static str,
    pub no_webhook: &'static str,
    pub no_webhook_address: &'static str,
    pub loopback: &'static str,
    pub other_port: &'static str,
    pub too_long: &'static str,
    pub no_socket: &'static str,
    pub inner_socket: &'static str,
}

/// The texts in this language.
pub(super) fn texts(lang: Lang) -> &'static ConnectionTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ConnectionTexts = ConnectionTexts {
    heading: "연결 테스트",
    lead: "이 서버에서 앱의 웹훅과 리디렉션 주소, 그리고 세션 소켓에 연결해 보고 단계마다 결과를 보여 줍니다.",
    covered: "테스트할 주소",
    start: "연결 테스트 시작",
    again: "다시 테스트하기",
    about: "웹훅에는 테스트 메시지를 두 번 보냅니다. 하나는 서명이 맞고 하나는 일부러 틀립니다. 전송 기록에는 남지 않습니다. 10초가 걸릴 수 있고, 끝난 뒤 10초가 지나면 다시 테스트할 수 있습니다.",
    busy: "이 앱의 테스트가 진행 중이거나 방금 끝났거나, 다른 테스트가 많습니다. 잠시 뒤에 다시 시도해 주세요.",
    webhook: "웹훅",
    redirect: "리디렉션 주소",
    socket: "세션 소켓",
    good_message: "서명이 맞는 메시지",
    bad_message: "서명이 틀린 메시지",
    get: "요청",
    step: "단계",
    result: "결과",
    time: "시간",
    no_webhook: "등록한 웹훅이 없어 테스트하지 않았습니다.",
    no_webhook_address: "주소가 없는 웹훅은 테스트할 수 없습니다. stagedoor webhook listen이 결과를 보여 줍니다.",
    loopback: "로그인하는 사람의 컴퓨터 안 주소입니다. 그 사람의 브라우저만 연결할 수 있으므로 이 서버에서는 테스트할 수 없습니다. 앱을 켠 컴퓨터의 브라우저에서 직접 열어 확인해 주세요.",
    other_port: "443이 아닌 포트는 웹훅과 같은 포트일 때만 테스트합니다. 브라우저에서 직접 열어 확인해 주세요.",
    too_long: "테스트하기에 너무 긴 주소입니다.",
    no_socket: "지금 세션을 받는 서버가 없어 테스트하지 않았습니다.",
    inner_socket: "공개된 https 주소가 아니어서 이 서버에서는 테스트하지 않았습니다. 같은 네트워크의 프로그램만 연결할 수 있습니다.",
};

const EN: ConnectionTexts = ConnectionTexts {
    heading: "Connection test",
    lead: "This server connects to the webhook and the redirect addresses of the app, and to the session socket. It shows the result of each step.",
    covered: "What is tested",
    start: "Start the test",
    again: "Test again",
    about: "The webhook gets two test messages: one with a right signature, and one with a wrong signature on purpose. Neither is in the delivery log. A test may take 10 seconds, and the next one is possible 10 seconds later.",
    busy: "A test of this app runs or has just ended, or there are many others. Try again a little later.",
    webhook: "Webhook",
    redirect: "Redirect address",
    socket: "Session socket",
    good_message: "A message with a right signature",
    bad_message: "A message with a wrong signature",
    get: "Request",
    step: "Step",
    result: "Result",
    time: "Time",
    no_webhook: "There is no webhook, so it was not tested.",
    no_webhook_address: "A webhook without an address cannot be tested. stagedoor webhook listen shows its results.",
    loopback: "It is an address within the machine of the person who signs in. Only the browser of that person connects to it, so this server cannot test it. Open it in a browser on the machine where the app runs.",
    other_port: "A port other than 443 is tested only if the webhook has the same one. Open the address in a browser instead.",
    too_long: "The address is too long to be tested.",
    no_socket: "No server takes sessions at the moment, so it was not tested.",
    inner_socket: "It is no public https address, so this server did not test it. Only programs in the same network connect to it.",
};
