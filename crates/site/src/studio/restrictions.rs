//! `/studio/restrictions`: who may not chat, until released or for a minute.

use askama::Template;
use domain::chat::chat_channel_id;
use domain::limits::{RESTRICTION_LIST_SIZE_MAX, SECOND_MS};
use domain::{ChannelId, Timestamp};
use service::restrictions::{ChatTarget, RestrictedChannel, TemporaryRestriction};
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer};

use crate::studio::at;
use crate::studio::desk::{Desk, PostedAt, StudioAt};
use crate::studio::frame::{StudioPlace, refused};
use crate::studio::nav::StudioNav;
use crate::studio::people::{Named, PeopleTexts, PersonChoice, named, people_texts};

const RESTRICTIONS: &str = StudioPlace::Restrictions.path();
/// The form that ends a restriction.
pub(crate) const LIFT: &str = "/studio/restrictions/lift";
/// The value of `duration` for a minute.
const MINUTE: &str = "minute";

/// A restricted channel in the list.
#[derive(Debug)]
struct RestrictedRow<'a> {
    id: &'a str,
    name: &'a str,
    since: Moment,
}

/// A channel that is restricted for a minute.
#[derive(Debug)]
struct BrieflyRestrictedRow<'a> {
    id: &'a str,
    name: &'a str,
    left: String,
}

#[derive(Debug, Template)]
#[template(path = "site/studio/restrictions.html")]
struct RestrictionsPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static RestrictionTexts,
    rows: Vec<RestrictedRow<'a>>,
    brief: Vec<BrieflyRestrictedRow<'a>>,
    first: Option<String>,
    next: Option<String>,
    form: FormTarget,
    lift: FormTarget,
    p: &'static PeopleTexts,
    /// The people to choose from, where several have the name that was typed.
    people: Vec<PersonChoice>,
    /// The name or id that was typed.
    target: &'a str,
    is_minute: bool,
    errors: FieldErrors,
}

impl RestrictionsPage<'_> {
    fn title(&self) -> &'static str {
        StudioPlace::Restrictions.label(self.shell.lang)
    }
}

/// What a page shows.
struct RestrictionContent {
    channels: Vec<RestrictedChannel>,
    brief: Vec<TemporaryRestriction>,
    is_first: bool,
    next: Option<String>,
}

impl RestrictionContent {
    async fn read(desk: &Desk) -> Result<Self, service::Error> {
        const SIZE: i64 = RESTRICTION_LIST_SIZE_MAX;
        let service = desk.visitor.web().service();
        let cursor = desk.visitor.request().parameter("next");
        let page = service.restricted_by_person(&desk.channel_id, SIZE, cursor.as_deref()).await?;
        let brief = service.temporarily_restricted(&desk.channel_id, SIZE).await?;
        Ok(Self { channels: page.channels, brief, is_first: cursor.is_none(), next: page.next })
    }

    fn page<'a>(&'a self, desk: &'a Desk, target: &'a str, errors: FieldErrors) -> RestrictionsPage<'a> {
        let visitor = &desk.visitor;
        let (now, lang) = (visitor.now(), visitor.lang());
        let row = |channel: &'a RestrictedChannel| RestrictedRow {
            id: channel.channel_id.as_str(),
            name: &channel.channel_name,
            since: Moment::of(channel.created_at, now, lang),
        };
        let here = desk.path(RESTRICTIONS);
        let brief = |channel: &'a TemporaryRestriction| BrieflyRestrictedRow {
            id: channel.channel_id.as_str(),
            name: &channel.channel_name,
            left: seconds_left(channel.ends_at, now, lang),
        };
        RestrictionsPage {
            shell: visitor.shell(Area::Studio),
            nav: StudioNav::at(StudioPlace::Restrictions, desk),
            t: texts(lang),
            rows: self.channels.iter().map(row).collect(),
            brief: self.brief.iter().map(brief).collect(),
            first: (!self.is_first).then(|| here.clone()),
            next: self.next.as_ref().map(|next| format!("{here}?next={next}")),
            form: desk.form(RESTRICTIONS),
            lift: desk.form(LIFT),
            p: people_texts(lang),
            people: Vec::new(),
            target,
            is_minute: false,
            errors,
        }
    }
}

fn seconds_left(ends_at: Timestamp, now: Timestamp, lang: Lang) -> String {
    let seconds = ((ends_at.as_millis() - now.as_millis() + SECOND_MS - 1) / SECOND_MS).max(1);
    match lang {
        Lang::Ko => format!("{seconds}초 남음"),
        Lang::En => format!("{seconds} seconds left"),
    }
}

/// `GET /studio/restrictions`. `next` is the cursor of the page before, `person` is put into the form.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::Restrictions>) -> PageAnswer {
    let content = RestrictionContent::read(&desk).await?;
    let person = desk.visitor.request().parameter("person").unwrap_or_default();
    desk.visitor.page(&content.page(&desk, &person, FieldErrors::default()))
}

/// `POST /studio/restrictions`: restricts a channel until it is released, or for a minute.
pub(crate) async fn restrict(PostedAt { desk, fields, .. }: PostedAt<at::Restrictions>) -> PageAnswer {
    let visitor = &desk.visitor;
    let target = fields.text("targetChannelId");
    let is_minute = fields.text("duration") == MINUTE;
    let flash = if is_minute { Flash::ChannelRestrictedForAMinute } else { Flash::ChannelRestricted };
    let (errors, people) = match restricted(&desk, &fields, is_minute).await {
        Ok(None) => return Ok(desk.redirect(RESTRICTIONS, Some(flash))),
        Ok(Some(people)) => {
            let mut errors = FieldErrors::default();
            errors.add("targetChannelId", people_texts(visitor.lang()).several);
            (errors, people)
        }
        Err(error) => (refused(error, visitor.lang())?, Vec::new()),
    };
    let content = RestrictionContent::read(&desk).await?;
    let page = content.page(&desk, target, errors);
    visitor.form_again(&RestrictionsPage { is_minute, people, ..page })
}

/// Restricts a person, or gives the people of whom one has to be chosen.
async fn restricted(
    desk: &Desk,
    fields: &FormFields,
    is_minute: bool,
) -> Result<Option<Vec<PersonChoice>>, service::Error> {
    let service = desk.visitor.web().service();
    let target = match named(service, fields, "targetChannelId", desk.visitor.lang()).await? {
        Named::Channel(target) => target,
        Named::OneOf(people) => return Ok(Some(people)),
    };
    match is_minute {
        true => {
            let chat = ChatTarget { target, chat_channel_id: chat_channel_id(&desk.channel_id) };
            service.restrict_temporarily(&desk.channel_id, chat).await?;
        }
        false => service.restrict(&desk.channel_id, target).await?,
    }
    Ok(None)
}

/// `POST /studio/restrictions/lift`: ends a restriction of that `duration`.
pub(crate) async fn lift(PostedAt { desk, fields, .. }: PostedAt<at::Restrictions>) -> PageAnswer {
    let visitor = &desk.visitor;
    match lifted(&desk, fields.text("targetChannelId"), fields.text("duration")).await {
        Ok(()) => Ok(desk.redirect(RESTRICTIONS, Some(Flash::RestrictionLifted))),
        Err(error) => {
            let errors = refused(error, visitor.lang())?;
            let content = RestrictionContent::read(&desk).await?;
            visitor.form_again(&content.page(&desk, "", errors))
        }
    }
}

async fn lifted(desk: &Desk, target: &str, duration: &str) -> Result<(), service::Error> {
    let service = desk.visitor.web().service();
    if duration == MINUTE {
        return service.release_temporarily(&desk.channel_id, chat_target(desk, target)?).await;
    }
    service.release(&desk.channel_id, ChannelId::parse("targetChannelId", target)?).await
}

fn chat_target(desk: &Desk, target: &str) -> Result<ChatTarget, service::Error> {
    let target = ChannelId::parse("targetChannelId", target.trim())?;
    Ok(ChatTarget { target, chat_channel_id: chat_channel_id(&desk.channel_id) })
}

#[derive(Debug)]
struct RestrictionTexts {
    lead: &'static str,
    add: &'static str,
    target_hint: &'static str,
    duration: &'static str,
    until_lifted: &'static str,
    minute: &'static str,
    restrict: &'static str,
    brief: &'static str,
    channel: &'static str,
    since: &'static str,
    action: &'static str,
    lift: &'static str,
    none: &'static str,
    none_about: &'static str,
}

fn texts(lang: Lang) -> &'static RestrictionTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: RestrictionTexts = RestrictionTexts {
    lead: "제한한 사용자는 이 채널에서 채팅할 수 없습니다. 매니저는 제한되지 않습니다.",
    add: "제한하기",
    target_hint: "채팅에서는 메시지 옆의 버튼으로 바로 제한할 수 있습니다.",
    duration: "기간",
    until_lifted: "해제할 때까지",
    minute: "1분. 최근 1분의 메시지도 숨깁니다.",
    restrict: "제한하기",
    brief: "1분 제한 중",
    channel: "사용자",
    since: "제한한 날",
    action: "동작",
    lift: "해제",
    none: "제한한 사용자가 없습니다.",
    none_about: "여기나 채팅에서 제한한 사용자가 표시됩니다.",
};

const EN: RestrictionTexts = RestrictionTexts {
    lead: "People who may not chat in this channel. Managers cannot be restricted.",
    add: "Restrict somebody",
    target_hint: "In the chat, each message has a button for its author.",
    duration: "For how long",
    until_lifted: "Until you lift it",
    minute: "A minute. The messages of the last minute are hidden too.",
    restrict: "Restrict",
    brief: "Restricted for a minute",
    channel: "Person",
    since: "Since",
    action: "Action",
    lift: "Lift",
    none: "Nobody is restricted.",
    none_about: "Whom you restrict here or in the chat is listed here.",
};
