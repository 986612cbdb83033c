//! `/`: what this server is, and where to go.

use askama::Template;
use web::pages::{Area, Lang, Shell, filters};
use web::{PageAnswer, Visitor};

/// The page.
#[derive(Debug, Template)]
#[template(path = "site/landing.html")]
pub(crate) struct LandingPage<'a> {
    pub shell: Shell<'a>,
    pub t: &'static LandingTexts,
    pub base_url: &'a str,
}

impl LandingPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// `GET /`.
pub(crate) async fn show(visitor: Visitor) -> PageAnswer {
    let shell = visitor.shell(Area::Elsewhere);
    visitor.page(&LandingPage { t: texts(shell.lang), shell, base_url: &visitor.web().config().base_url })
}

/// The words of the page.
#[derive(Debug)]
pub(crate) struct LandingTexts {
    title: &'static str,
    heading: &'static str,
    lead: &'static str,
    begin: &'static str,
    to_studio: &'static str,
    sample: &'static str,
    places: &'static str,
    documentation: &'static str,
    documentation_about: &'static str,
    studio: &'static str,
    studio_about: &'static str,
    apps: &'static str,
    apps_about: &'static str,
    developers: &'static str,
    developers_about: &'static str,
}

/// The words in a language.
pub(crate) fn texts(lang: Lang) -> &'static LandingTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: LandingTexts = LandingTexts {
    title: "라이브 방송을 위한 오픈 API",
    heading: "방송과 함께 움직이는 앱을 만드세요.",
    lead: "채팅과 후원, 구독을 실시간으로 받고, 방송 설정과 채팅을 바꾸는 봇과 오버레이, 게임을 만들 수 있습니다.",
    begin: "봇 만들기 시작",
    to_studio: "내 채널 관리",
    sample: "내 채널에 채팅 메시지 보내기",
    places: "바로 가기",
    documentation: "개발 문서",
    documentation_about: "모든 API와 실시간 이벤트, 웹훅의 필드와 오류를 찾아볼 수 있습니다.",
    studio: "스튜디오",
    studio_about: "스트리머는 로그인해서 방송 정보와 채팅, 공지, 활동 제한, 매니저를 관리합니다.",
    apps: "연결된 앱",
    apps_about: "내 계정에 접근할 수 있는 앱을 확인하고, 언제든 접근을 취소할 수 있습니다.",
    developers: "개발자 센터",
    developers_about: "앱을 등록하고 권한과 시크릿, 조직을 관리합니다.",
};

const EN: LandingTexts = LandingTexts {
    title: "The open API for live streaming",
    heading: "Build what moves with the stream.",
    lead: "Bots, overlays and games that hear chat, donations and subscriptions as they happen, and act on the \
           broadcast and its chat.",
    begin: "Build your first bot",
    to_studio: "Manage your channel",
    sample: "Send a chat message to your channel",
    places: "Where to go",
    documentation: "Documentation",
    documentation_about: "Every call, realtime event and webhook, with its fields and its errors.",
    studio: "Studio",
    studio_about: "Streamers sign in to manage the broadcast, the chat, its notice, restrictions and managers.",
    apps: "Connected apps",
    apps_about: "See which apps can access your account, and take it back at any time.",
    developers: "Developer center",
    developers_about: "Register apps, and manage their scopes, secrets and organizations.",
};
