//! The texts of the sign-in and consent pages, in each language. The texts of problems are in `problem`,
//! those of scopes in `scopes`.

/// A sentence with a name in the middle, which the template inserts and marks up.
#[derive(Debug)]
pub struct SplitSentence {
    pub before: &'static str,
    pub after: &'static str,
}

/// All texts of the templates.
#[derive(Debug)]
pub struct Texts {
    pub sign_in: &'static str,
    pub sign_in_for: SplitSentence,
    pub sign_in_alone: SplitSentence,
    pub login: &'static str,
    pub password: &'static str,
    pub sign_in_button: &'static str,
    pub people: &'static str,
    pub people_note: &'static str,

    pub consent: &'static str,
    pub consent_question: SplitSentence,
    pub made_by: SplitSentence,
    pub lone_developer: &'static str,
    pub verified: &'static str,
    pub not_verified: &'static str,
    pub not_verified_note: &'static str,
    pub signed_in_as: &'static str,
    pub switch_account: &'static str,
    pub sign_out: &'static str,
    pub acts: &'static str,
    pub acts_note: &'static str,
    pub reads: &'static str,
    pub no_scopes: &'static str,
    pub redirect_to: SplitSentence,
    pub password_stays: &'static str,
    pub allow: &'static str,
    pub deny: &'static str,

    pub next_step: &'static str,
    pub retry: &'static str,
    pub start: &'static str,
    pub for_developers: &'static str,
    pub status: &'static str,
    pub request_id: &'static str,
}

/// Korean.
pub const KO: Texts = Texts {
    sign_in: "로그인",
    sign_in_for: SplitSentence { before: "", after: " 앱에 연결하려면 로그인해 주세요." },
    sign_in_alone: SplitSentence { before: "", after: " 계정으로 계속합니다." },
    login: "아이디",
    password: "비밀번호",
    sign_in_button: "로그인",
    people: "샌드박스 계정으로 바로 로그인",
    people_note: "이 서버는 개발용입니다. 아래 계정은 모두 가상의 계정입니다.",

    consent: "앱 접근 허용",
    consent_question: SplitSentence { before: "", after: " 앱에 접근을 허용할까요?" },
    made_by: SplitSentence { before: "", after: "에서 만든 앱" },
    lone_developer: "개인 개발자가 만든 앱",
    verified: "인증된 기업",
    not_verified: "인증되지 않음",
    not_verified_note: "운영자가 확인하지 않은 앱입니다. 믿을 수 있는 앱인지 확인해 주세요.",
    signed_in_as: "로그인한 계정",
    switch_account: "다른 계정 사용",
    sign_out: "로그아웃",
    acts: "회원님을 대신해 할 수 있는 일",
    acts_note: "이 앱이 회원님의 이름으로 내용을 바꾸거나 행동할 수 있습니다.",
    reads: "확인만 할 수 있는 정보",
    no_scopes: "이 앱은 아무 권한도 요청하지 않습니다.",
    redirect_to: SplitSentence { before: "허용하면 다음 주소로 이동합니다: ", after: "" },
    password_stays: "이 앱은 회원님의 비밀번호를 볼 수 없습니다.",
    allow: "허용",
    deny: "거부",

    next_step: "이렇게 해 보세요",
    retry: "다시 시작",
    start: "처음 화면",
    for_developers: "개발자 안내",
    status: "상태 코드",
    request_id: "요청 번호",
};

/// English.
pub const EN: Texts = Texts {
    sign_in: "Sign in",
    sign_in_for: SplitSentence { before: "Sign in to connect ", after: "." },
    sign_in_alone: SplitSentence { before: "Go on with your ", after: " account." },
    login: "Username",
    password: "Password",
    sign_in_button: "Sign in",
    people: "Sign in with a sandbox account",
    people_note: "This server is for development. All accounts below are made up.",

    consent: "Allow access",
    consent_question: SplitSentence { before: "Allow ", after: " to access your account?" },
    made_by: SplitSentence { before: "Made by ", after: "" },
    lone_developer: "Made by an individual developer",
    verified: "Verified organization",
    not_verified: "Not verified",
    not_verified_note: "The operator has not checked this app. Make sure that you trust it.",
    signed_in_as: "Signed in as",
    switch_account: "Use another account",
    sign_out: "Sign out",
    acts: "What it can do on your behalf",
    acts_note: "The app can change things and act in your name.",
    reads: "What it can only see",
    no_scopes: "This app does not ask for any permission.",
    redirect_to: SplitSentence { before: "If you allow this, you go on to ", after: "." },
    password_stays: "This app cannot see your password.",
    allow: "Allow",
    deny: "Deny",

    next_step: "What you can do",
    retry: "Start again",
    start: "Start page",
    for_developers: "For developers",
    status: "Status code",
    request_id: "Request ID",
};
