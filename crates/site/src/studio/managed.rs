//! `/studio/channels`: the channels in which other people gave the person a role.

use askama::Template;
use domain::channel::UserRole;
use service::relations::ManagedChannel;
use web::PageAnswer;
use web::pages::{Area, Lang, Moment, Shell, filters};

use crate::studio::at;
use crate::studio::chat_row::role_name;
use crate::studio::desk::{Desk, StudioAt};
use crate::studio::frame::{StudioPlace, is_cursor};
use crate::studio::nav::StudioNav;

const CHANNELS: &str = StudioPlace::Channels.path();
/// Channels on one page.
const PAGE_SIZE: i64 = 30;

/// A channel in the list.
#[derive(Debug)]
struct ManagedRow<'a> {
    id: &'a str,
    /// Its name. Untrusted.
    name: &'a str,
    role: &'static str,
    since: Moment,
    /// The address of its studio, if the role opens one.
    href: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "site/studio/managed.html")]
struct ManagedPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static ManagedTexts,
    rows: Vec<ManagedRow<'a>>,
    first: Option<String>,
    next: Option<String>,
}

impl ManagedPage<'_> {
    fn title(&self) -> &'static str {
        StudioPlace::Channels.label(self.shell.lang)
    }
}

/// `GET /studio/channels`. `next` is the cursor of a further page.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::Channels>) -> PageAnswer {
    let visitor = &desk.visitor;
    let cursor = visitor.request().parameter("next");
    let service = visitor.web().service();
    let found = match service.managed_channels(&desk.channel_id, PAGE_SIZE, cursor.as_deref()).await {
        // A cursor of another list begins again.
        Err(error) if is_cursor(&error) => return Ok(desk.redirect(CHANNELS, None)),
        found => found?,
    };
    visitor.page(&ManagedPage {
        shell: visitor.shell(Area::Studio),
        nav: StudioNav::at(StudioPlace::Channels, &desk),
        t: texts(visitor.lang()),
        rows: found.items.iter().map(|managed| row(managed, &desk)).collect(),
        first: cursor.is_some().then(|| CHANNELS.to_owned()),
        next: found.next.map(|next| format!("{CHANNELS}?next={next}")),
    })
}

fn row<'a>(managed: &'a ManagedChannel, desk: &Desk) -> ManagedRow<'a> {
    let (now, lang) = (desk.visitor.now(), desk.visitor.lang());
    let opens = managed.role != UserRole::StreamingSettlementManager;
    ManagedRow {
        id: managed.channel_id.as_str(),
        name: &managed.name,
        role: role_name(managed.role, lang),
        since: Moment::of(managed.created_at, now, lang),
        href: opens.then(|| format!("{CHANNELS}/{}", managed.channel_id)),
    }
}

#[derive(Debug)]
struct ManagedTexts {
    lead: &'static str,
    channel: &'static str,
    role: &'static str,
    since: &'static str,
    open: &'static str,
    none: &'static str,
    none_about: &'static str,
}

fn texts(lang: Lang) -> &'static ManagedTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ManagedTexts = ManagedTexts {
    lead: "다른 스트리머가 나에게 역할을 준 채널입니다. 역할에 따라 볼 수 있는 페이지가 다릅니다.",
    channel: "채널",
    role: "역할",
    since: "맡은 날",
    open: "스튜디오 열기",
    none: "맡은 채널이 없습니다.",
    none_about: "스트리머가 스튜디오에서 역할을 주면 여기에 표시됩니다.",
};

const EN: ManagedTexts = ManagedTexts {
    lead: "Channels in which the streamer gave you a role. The role decides which pages you see.",
    channel: "Channel",
    role: "Role",
    since: "Since",
    open: "Open the studio",
    none: "You manage no channel.",
    none_about: "When a streamer gives you a role in the studio, the channel is listed here.",
};
