//! `/studio`: what happens on the channel now.

use askama::Template;
use domain::channel::Channel;
use service::lives::LiveOnAir;
use web::PageAnswer;
use web::pages::{Area, Lang, Shell, filters};

use crate::studio::at;
use crate::studio::chat_row::ChatRow;
use crate::studio::desk::{Desk, StudioAt};
use crate::studio::frame::StudioPlace;
use crate::studio::nav::StudioNav;

/// Messages on the page.
const MESSAGES_SHOWN: i64 = 5;

#[derive(Debug, Template)]
#[template(path = "site/studio/overview.html")]
struct StudioPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static StudioTexts,
    channel: &'a Channel,
    live: Option<&'a LiveOnAir>,
    rows: Vec<ChatRow<'a>>,
    /// The addresses of other pages, if the role opens them.
    broadcast: Option<String>,
    chat: String,
}

impl StudioPage<'_> {
    fn title(&self) -> &'static str {
        self.nav.label
    }
}

/// `GET /studio`.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::Overview>) -> PageAnswer {
    let Desk { visitor, channel_id, .. } = &desk;
    let service = visitor.web().service();
    let channel = service.channel(channel_id).await?;
    let live = service.live_on_air(channel_id).await?;
    let messages = service.latest_messages(channel_id, None, MESSAGES_SHOWN).await?;
    visitor.page(&StudioPage {
        shell: visitor.shell(Area::Studio),
        nav: StudioNav::at(StudioPlace::Overview, &desk),
        t: texts(visitor.lang()),
        channel: &channel,
        broadcast: desk.may_see(StudioPlace::Broadcast),
        chat: desk.path(StudioPlace::Chat.path()),
        live: live.as_ref(),
        rows: messages.iter().map(|message| ChatRow::new(message, channel_id, visitor)).collect(),
    })
}

#[derive(Debug)]
struct StudioTexts {
    channel_id: &'static str,
    lead: &'static str,
    live: &'static str,
    on_air: &'static str,
    off_air: &'static str,
    off_air_about: &'static str,
    adult: &'static str,
    viewers: &'static str,
    followers: &'static str,
    broadcast: &'static str,
    chat: &'static str,
    open_chat: &'static str,
    no_chat: &'static str,
    gone: &'static str,
    hidden: &'static str,
}

fn texts(lang: Lang) -> &'static StudioTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: StudioTexts = StudioTexts {
    lead: "방송과 채팅을 관리합니다.",
    channel_id: "채널 ID",
    live: "방송 상태",
    on_air: "방송 중",
    off_air: "방송 중이 아닙니다.",
    off_air_about: "방송 프로그램에서 스트림 키로 방송을 시작하면 여기에 표시됩니다.",
    adult: "연령 제한",
    viewers: "시청자",
    followers: "팔로워",
    broadcast: "방송 설정 바꾸기",
    chat: "최근 채팅",
    open_chat: "채팅 열기",
    no_chat: "아직 채팅이 없습니다.",
    gone: "탈퇴한 사용자",
    hidden: "숨긴 메시지",
};

const EN: StudioTexts = StudioTexts {
    lead: "The broadcast and its chat.",
    channel_id: "Channel id",
    live: "Broadcast",
    on_air: "On air",
    off_air: "Not on air.",
    off_air_about: "Start your broadcasting program with the stream key. Then the broadcast is shown here.",
    adult: "Adults only",
    viewers: "Viewers",
    followers: "Followers",
    broadcast: "Change the broadcast setting",
    chat: "Latest chat",
    open_chat: "Open the chat",
    no_chat: "Nobody has written yet.",
    gone: "Somebody who left",
    hidden: "Hidden message",
};
