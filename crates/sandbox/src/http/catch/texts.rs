//! The texts of the pages that catch redirects.

use crate::http::bilingual::bilingual;

bilingual! {
/// The texts of these pages in one language.
CatchTexts {
    tag: "ko", "en";
    other_tag: "en", "ko";
    other_language: "English", "한국어";
    about: "리디렉션 받기", "Redirect catcher";
    console: "콘솔", "Console";
    copy: "복사", "Copy";
    copied: "복사함", "Copied";
    application: "앱", "Application";
    again: "다시 로그인하기", "Begin another sign-in";

    start_title: "리디렉션 받기", "Catch a redirect";
    start_about: "아직 서버가 없는 앱의 리디렉션 주소입니다. 코드를 보여 주고, 토큰으로 교환하고, 그 요청을 보여 줍니다.", "This page is a redirect address for applications that have no server yet. It shows the code, exchanges it, and shows the request that did it.";
    start_address: "리디렉션 주소", "Redirect address";
    start_register: "로그인을 시작하면 이 주소가 앱에 등록됩니다.", "A sign-in registers this address for the application.";
    start_button: "로그인 시작", "Begin a sign-in";
    start_none: "앱이 아직 없습니다. 월드 파일이나 플랫폼 API로 먼저 만들어 주세요.", "There is no application yet. Make one with a world file or the platform API first.";

    caught_title: "코드가 도착했습니다", "The redirect brought a code";
    caught_about: "여러분의 서버도 로그인 뒤에 이 값을 받습니다. 코드는 한 번만, 10분 동안 쓸 수 있습니다.", "Your server gets the same values after a sign-in. The code works once, for 10 minutes.";
    state_same: "state가 이 페이지가 보낸 값과 같습니다.", "The state is the one that this page sent.";
    state_differs: "state가 이 페이지가 보낸 값과 다릅니다. 다른 사람이 시작한 로그인일 수 있으므로 앱은 이 리디렉션을 거절해야 합니다.", "The state is not the one that this page sent. An application must refuse this redirect: somebody else may have begun the sign-in.";
    state_unknown: "이 페이지에서 시작한 로그인이 아니어서 state를 확인할 수 없습니다. 앱은 자신이 보낸 값과 비교하고, 다르면 거절해야 합니다.", "The state cannot be checked, because the sign-in was not begun on this page. An application compares it with the one that it sent, and refuses any other.";
    exchange: "코드를 토큰으로 교환", "Exchange the code";

    refused_title: "오류가 도착했습니다", "The redirect brought an error";
    refused_denied: "사용자가 동의하지 않았습니다. 앱은 이유를 알리고 다시 시도할 길을 줍니다.", "The user did not allow it. An application says so, and offers to try again.";

    bought_title: "토큰을 받았습니다", "The code bought tokens";
    bought_about: "액세스 토큰은 하루 동안 쓸 수 있습니다. 리프레시 토큰은 30일 동안, 한 번만 쓸 수 있습니다.", "The access token works for a day. The refresh token works once, for 30 days.";
    not_bought_title: "코드가 거절되었습니다", "The code was refused";
    request: "보낸 요청", "The request";
    answer: "답", "The answer";
    next: "이제 할 일", "What to do next";
    next_call: "이 토큰으로 API를 부릅니다.", "Call the API with this token:";

    failed_title: "할 수 없습니다", "That did not work";
    needs_key: "먼저 터미널에서 stagedoor open으로 콘솔을 열고, 이 페이지를 새로 고쳐 주세요.", "Open the console in this browser first: run stagedoor open in a terminal. Then come back to this page.";
}
}
