//! `/studio/chat`: the chat of the channel as it flows, its notice, and what a streamer does about messages
//! and their authors.

use askama::Template;
use domain::chat::{MessageText, Notice, chat_channel_id};
use domain::refusal::Resource;
use domain::{ChannelId, MessageId, Refusal, Timestamp};
use service::chat_log::{LoggedMessage, PinnedNotice};
use service::chats::MessagePlace;
use service::restrictions::ChatTarget;
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer};

use crate::studio::at;
use crate::studio::chat_row::ChatRow;
use crate::studio::desk::{Desk, PostedAt, StudioAt};
use crate::studio::frame::{StudioPlace, refused};
use crate::studio::nav::StudioNav;

/// The address by which the script asks for new messages.
pub(crate) const MESSAGES: &str = "/studio/chat/messages";
const CHAT: &str = StudioPlace::Chat.path();
/// Messages on the page, and in one answer to the script.
const MESSAGES_SHOWN: i64 = 50;
/// Messages in the answer to the script after an act: as many as it keeps on the page.
const MESSAGES_KEPT: i64 = 200;

/// The notice above a chat, as it is shown.
type ShownNotice<'a> = Option<(&'a str, Moment)>;

/// The list of messages alone, for the script.
#[derive(Debug, Template)]
#[template(path = "site/studio/chat_rows.html")]
struct ChatRowsPage<'a> {
    t: &'static ChatTexts,
    rows: Vec<ChatRow<'a>>,
    form: FormTarget,
}

/// What an act changes on the page, for the script.
#[derive(Debug, Template)]
#[template(path = "site/studio/chat_changes.html")]
struct ChatChangesPage<'a> {
    t: &'static ChatTexts,
    done: &'static str,
    notice: ShownNotice<'a>,
    rows: Vec<ChatRow<'a>>,
    form: FormTarget,
}

#[derive(Debug, Template)]
#[template(path = "site/studio/chat.html")]
struct ChatPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static ChatTexts,
    rows: Vec<ChatRow<'a>>,
    form: FormTarget,
    /// The addresses of this page and of its messages.
    here: String,
    messages: String,
    notice: ShownNotice<'a>,
    /// The script asks for messages since this time.
    since: i64,
    /// The text of the notice that was refused.
    text: &'a str,
    errors: FieldErrors,
}

impl ChatPage<'_> {
    fn title(&self) -> &'static str {
        StudioPlace::Chat.label(self.shell.lang)
    }
}

/// What a page shows.
struct ChatContent {
    messages: Vec<LoggedMessage>,
    notice: Option<PinnedNotice>,
}

impl ChatContent {
    async fn read(desk: &Desk, limit: i64) -> Result<Self, service::Error> {
        let service = desk.visitor.web().service();
        let messages = service.latest_messages(&desk.channel_id, None, limit).await?;
        Ok(Self { messages, notice: service.notice(&desk.channel_id).await? })
    }

    fn notice(&self, desk: &Desk) -> ShownNotice<'_> {
        let (now, lang) = (desk.visitor.now(), desk.visitor.lang());
        self.notice.as_ref().map(|notice| (notice.content.as_str(), Moment::of(notice.created_at, now, lang)))
    }

    fn page<'a>(&'a self, desk: &'a Desk, text: &'a str, errors: FieldErrors) -> ChatPage<'a> {
        let Desk { visitor, channel_id, .. } = desk;
        ChatPage {
            shell: visitor.shell(Area::Studio),
            nav: StudioNav::at(StudioPlace::Chat, desk),
            t: texts(visitor.lang()),
            rows: rows(&self.messages, desk, channel_id),
            form: desk.form(CHAT),
            here: desk.path(CHAT),
            messages: desk.path(MESSAGES),
            notice: self.notice(desk),
            since: visitor.now().as_millis(),
            text,
            errors,
        }
    }
}

fn rows<'a>(messages: &'a [LoggedMessage], desk: &Desk, channel: &ChannelId) -> Vec<ChatRow<'a>> {
    messages.iter().map(|message| ChatRow::new(message, channel, &desk.visitor)).collect()
}

/// `GET /studio/chat`.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::Chat>) -> PageAnswer {
    let content = ChatContent::read(&desk, MESSAGES_SHOWN).await?;
    desk.visitor.page(&content.page(&desk, "", FieldErrors::default()))
}

/// `GET /studio/chat/messages`: the messages since the time `since` in milliseconds, newest first. The script
/// leaves out those that it shows already.
pub(crate) async fn messages(StudioAt { desk, .. }: StudioAt<at::Chat>) -> PageAnswer {
    let Desk { visitor, channel_id, .. } = &desk;
    let since = visitor.request().parameter("since").and_then(|since| since.parse().ok());
    let since = since.map_or_else(|| visitor.now(), Timestamp::from_millis);
    let found = visitor.web().service().latest_messages(channel_id, Some(since), MESSAGES_SHOWN).await?;
    let rows = rows(&found, &desk, channel_id);
    visitor.page(&ChatRowsPage { t: texts(visitor.lang()), rows, form: desk.form(CHAT) })
}

/// `POST /studio/chat`: what the button `do` names. A browser comes back to the message; the script, which
/// sends `part`, gets what changed.
pub(crate) async fn act(PostedAt { desk, fields, .. }: PostedAt<at::Chat>) -> PageAnswer {
    let visitor = &desk.visitor;
    let errors = match run(&desk, &fields).await {
        Ok(done) if fields.is_checked("part") => return changes(&desk, done).await,
        Ok(done) => return Ok(desk.redirect(&place(&fields), Some(done))),
        Err(error) => refused(error, visitor.lang())?,
    };
    let content = ChatContent::read(&desk, MESSAGES_SHOWN).await?;
    visitor.form_again(&content.page(&desk, fields.text("message"), errors))
}

/// The place on the page where the act was: its message, or the notice.
fn place(fields: &FormFields) -> String {
    match MessageId::parse("messageId", fields.text("messageId")) {
        Ok(id) => format!("{CHAT}#m-{id}"),
        Err(_) => format!("{CHAT}#notice"),
    }
}

async fn changes(desk: &Desk, done: Flash) -> PageAnswer {
    let lang = desk.visitor.lang();
    let content = ChatContent::read(desk, MESSAGES_KEPT).await?;
    desk.visitor.page(&ChatChangesPage {
        t: texts(lang),
        done: done.text(lang),
        notice: content.notice(desk),
        rows: rows(&content.messages, desk, &desk.channel_id),
        form: desk.form(CHAT),
    })
}

async fn run(desk: &Desk, fields: &FormFields) -> Result<Flash, service::Error> {
    let service = desk.visitor.web().service();
    let channel = &desk.channel_id;
    match fields.text("do") {
        "notice" => {
            let text = MessageText::parse(fields.text("message").to_owned())?;
            service.put_notice(channel, Notice::Text(text)).await?;
            Ok(Flash::NoticePut)
        }
        "pin" => {
            service.put_notice(channel, Notice::Message(message_id(fields)?)).await?;
            Ok(Flash::NoticePut)
        }
        "take-down" => {
            service.take_notice_down(channel).await?;
            Ok(Flash::NoticeTakenDown)
        }
        "show" => {
            service.show_message(channel, &message_id(fields)?).await?;
            Ok(Flash::MessageShown)
        }
        "hide" => {
            service.hide_message(channel, message_place(channel, fields)?).await?;
            Ok(Flash::MessageHidden)
        }
        "restrict" => {
            service.restrict(channel, author(fields)?).await?;
            Ok(Flash::ChannelRestricted)
        }
        "restrict-temporarily" => {
            let chat = ChatTarget { target: author(fields)?, chat_channel_id: chat_channel_id(channel) };
            service.restrict_temporarily(channel, chat).await?;
            Ok(Flash::ChannelRestrictedForAMinute)
        }
        "lift" => {
            service.release(channel, author(fields)?).await?;
            Ok(Flash::RestrictionLifted)
        }
        "lift-temporary" => {
            let chat = ChatTarget { target: author(fields)?, chat_channel_id: chat_channel_id(channel) };
            service.release_temporarily(channel, chat).await?;
            Ok(Flash::RestrictionLifted)
        }
        _ => Err(Refusal::NotFound(Resource::Path).into()),
    }
}

fn message_id(fields: &FormFields) -> Result<MessageId, service::Error> {
    Ok(MessageId::parse("messageId", fields.text("messageId")).map_err(|_| no_message())?)
}

fn message_place(channel: &ChannelId, fields: &FormFields) -> Result<MessagePlace, service::Error> {
    let time = fields.text("time").parse().map_err(|_| no_message())?;
    Ok(MessagePlace {
        chat_channel_id: chat_channel_id(channel),
        message_time: Timestamp::from_millis(time),
        sender: author(fields)?,
    })
}

fn author(fields: &FormFields) -> Result<ChannelId, service::Error> {
    Ok(ChannelId::parse("targetChannelId", fields.text("sender")).map_err(|_| no_message())?)
}

/// The refusal of a message that does not exist, or is of another chat: one for both.
fn no_message() -> Refusal {
    Refusal::NotFound(Resource::Message)
}

#[derive(Debug)]
struct ChatTexts {
    lead: &'static str,
    notice: &'static str,
    notice_about: &'static str,
    no_notice: &'static str,
    new_notice: &'static str,
    notice_text: &'static str,
    notice_hint: &'static str,
    put_notice: &'static str,
    take_down: &'static str,
    messages: &'static str,
    refresh: &'static str,
    is_live: &'static str,
    is_paused: &'static str,
    none: &'static str,
    none_about: &'static str,
    gone: &'static str,
    hidden: &'static str,
    pin: &'static str,
    hide: &'static str,
    show: &'static str,
    restrict: &'static str,
    restrict_temporarily: &'static str,
    restricted: &'static str,
    restricted_briefly: &'static str,
    lift: &'static str,
}

fn texts(lang: Lang) -> &'static ChatTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ChatTexts = ChatTexts {
    lead: "최근 메시지를 보고, 공지를 올리고, 메시지를 숨기고, 작성자를 제한합니다.",
    notice: "공지",
    notice_about: "올린 시각",
    no_notice: "올린 공지가 없습니다.",
    new_notice: "새 공지 쓰기",
    notice_text: "공지",
    notice_hint: "1자 이상 100자 이하. 지금 공지를 대신합니다.",
    put_notice: "공지 올리기",
    take_down: "공지 내리기",
    messages: "메시지",
    refresh: "새로 고침",
    is_live: "새 메시지를 2초마다 불러옵니다.",
    is_paused: "목록을 쓰는 동안 새 메시지를 멈춰 두었습니다.",
    none: "아직 채팅이 없습니다.",
    none_about: "시청자가 채팅을 시작하면 여기에 표시됩니다.",
    gone: "탈퇴한 사용자",
    hidden: "숨김",
    pin: "공지로",
    hide: "숨기기",
    show: "다시 보이기",
    restrict: "활동 제한",
    restrict_temporarily: "1분 제한",
    restricted: "활동 제한됨",
    restricted_briefly: "1분 제한 중",
    lift: "제한 해제",
};

const EN: ChatTexts = ChatTexts {
    lead: "Read along, pin a notice, hide messages and restrict their authors.",
    notice: "Notice",
    notice_about: "Since",
    no_notice: "There is no notice.",
    new_notice: "Write a notice",
    notice_text: "Notice",
    notice_hint: "1 to 100 characters. It replaces the present one.",
    put_notice: "Post the notice",
    take_down: "Take it down",
    messages: "Messages",
    refresh: "Refresh",
    is_live: "New messages appear every two seconds.",
    is_paused: "New messages wait while you use the list.",
    none: "Nobody has written yet.",
    none_about: "When your viewers begin to chat, you read it here.",
    gone: "Somebody who left",
    hidden: "Hidden",
    pin: "Pin",
    hide: "Hide",
    show: "Show again",
    restrict: "Restrict",
    restrict_temporarily: "Restrict 1 min",
    restricted: "Restricted",
    restricted_briefly: "Restricted for a minute",
    lift: "Lift restriction",
};
