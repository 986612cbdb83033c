//! `/studio/stream-key`: shows the key of the broadcasting program when it is asked for, and replaces it.

use askama::Template;
use domain::mail::MailKind;
use web::pages::{Area, Flash, Lang, Shell, filters};
use web::{FormTarget, PageAnswer};

use crate::confirmed::Confirmed;
use crate::studio::at;
use crate::studio::desk::{Desk, PostedAt, StudioAt};
use crate::studio::frame::StudioPlace;
use crate::studio::nav::StudioNav;

const STREAM_KEY: &str = StudioPlace::StreamKey.path();
/// The form that replaces the key.
pub(crate) const REPLACE: &str = "/studio/stream-key/replace";

/// It has no `Debug`: it may contain the key.
#[derive(Template)]
#[template(path = "site/studio/stream_key.html")]
struct StreamKeyPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static StreamKeyTexts,
    /// The key, in the answer to the form that asks for it.
    key: Option<String>,
    form: FormTarget,
    replace: FormTarget,
}

impl StreamKeyPage<'_> {
    fn title(&self) -> &'static str {
        StudioPlace::StreamKey.label(self.shell.lang)
    }
}

fn page(desk: &Desk, key: Option<String>) -> StreamKeyPage<'_> {
    let visitor = &desk.visitor;
    StreamKeyPage {
        shell: visitor.shell(Area::Studio),
        nav: StudioNav::at(StudioPlace::StreamKey, desk),
        t: texts(visitor.lang()),
        key,
        form: desk.form(STREAM_KEY),
        replace: desk.form(REPLACE),
    }
}

/// `GET /studio/stream-key`. It does not show the key.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::StreamKey>) -> PageAnswer {
    desk.visitor.page(&page(&desk, None))
}

/// `POST /studio/stream-key`: shows the key on this one page.
pub(crate) async fn reveal(
    Confirmed(PostedAt { desk, .. }): Confirmed<PostedAt<at::StreamKey>>,
) -> PageAnswer {
    let (service, lang) = (desk.visitor.web().service(), desk.visitor.lang());
    let key = service.stream_key(&desk.channel_id).await?;
    service.notify(&desk.channel_id, MailKind::StreamKeyShown, lang.into()).await?;
    desk.visitor.page(&page(&desk, Some(key.expose().to_owned())))
}

/// `POST /studio/stream-key/replace`: makes a new key. The old one is invalid at once.
pub(crate) async fn replace(
    Confirmed(PostedAt { desk, .. }): Confirmed<PostedAt<at::StreamKey>>,
) -> PageAnswer {
    let (service, lang) = (desk.visitor.web().service(), desk.visitor.lang());
    service.reissue_stream_key(&desk.channel_id, None).await?;
    service.notify(&desk.channel_id, MailKind::StreamKeyReplaced, lang.into()).await?;
    Ok(desk.redirect(STREAM_KEY, Some(Flash::StreamKeyReplaced)))
}

struct StreamKeyTexts {
    lead: &'static str,
    key: &'static str,
    hidden: &'static str,
    show: &'static str,
    note: &'static str,
    hide: &'static str,
    replace: &'static str,
    question: &'static str,
    about: &'static str,
    keep: &'static str,
}

fn texts(lang: Lang) -> &'static StreamKeyTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: StreamKeyTexts = StreamKeyTexts {
    lead: "방송 프로그램에 넣는 키입니다. 이 키를 아는 사람은 누구나 내 채널로 방송할 수 있습니다.",
    key: "스트림 키",
    hidden: "화면을 공유하고 있지 않은지 확인하고 보기를 눌러 주세요.",
    show: "키 보기",
    note: "다른 사람에게 보여 주지 마세요. 이 페이지를 벗어나면 다시 숨깁니다.",
    hide: "숨기기",
    replace: "새 키로 바꾸기",
    question: "스트림 키를 새로 만들까요?",
    about: "지금 키는 바로 쓸 수 없게 됩니다. 방송 프로그램에 새 키를 넣어야 합니다.",
    keep: "그대로 두기",
};

const EN: StreamKeyTexts = StreamKeyTexts {
    lead: "The key for your broadcasting program. Whoever has it can broadcast on your channel.",
    key: "Stream key",
    hidden: "Make sure that you are not sharing your screen.",
    show: "Show the key",
    note: "Show it to nobody. It is hidden again when you leave this page.",
    hide: "Hide it",
    replace: "Replace the key",
    question: "Replace the stream key?",
    about: "The present key is invalid at once. Your broadcasting program needs the new one.",
    keep: "Cancel",
};
