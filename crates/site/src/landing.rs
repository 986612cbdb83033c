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
    read: &'static str,
    sample: &'static str,
    places: &'static str,
    documentation: &'static str,
    documentation_about: &'static str,
    apps: &'static str,
    apps_about: &'static str,
    developers: &'static str,
    developers_about: &'static str,
    programs: &'static str,
    programs_about: &'static str,
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
    read: "개발 문서 보기",
    sample: "내 채널에 채팅 메시지 보내기",
    places: "바로 가기",
    documentation: "개발 문서",
    documentation_about: "모든 API와 실시간 이벤트, 웹훅의 필드와 오류를 찾아볼 수 있습니다.",
    apps: "연결된 앱",
    apps_about: "내 계정에 접근할 수 있는 앱을 확인하고, 언제든 접근을 취소할 수 있습니다.",
    developers: "개발자 센터",
    developers_about: "앱을 등록하고 권한과 시크릿, 조직을 관리합니다.",
    programs: "프로그램용 문서",
    programs_about: "코드를 생성하거나 도구에 불러올 수 있는 OpenAPI 문서입니다.",
};

const EN: LandingTexts = LandingTexts {
    title: "The open API for live streaming",
    heading: "Build what moves with the stream.",
    lead: "Bots, overlays and games that hear chat, donations and subscriptions as they happen, and act on the \
           broadcast and its chat.",
    read: "Read the documentation",
    sample: "Send a chat message to your channel",
    places: "Where to go",
    documentation: "Documentation",
    documentation_about: "Every call, realtime event and webhook, with its fields and its errors.",
    apps: "Connected apps",
    apps_about: "See which apps can access your account, and take it back at any time.",
    developers: "Developer center",
    developers_about: "Register apps, and manage their scopes, secrets and organizations.",
    programs: "For programs",
    programs_about: "The OpenAPI document, to generate code from or to load into a tool.",
};
