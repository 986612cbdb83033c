//! `/studio/managers`: the people who have a role in the channel.

use askama::Template;
use domain::channel::{Manager, UserRole};
use domain::limits::MANAGERS_MAX;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, Refusal, Rule};
use service::organizations::ListPage;
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{FormFields, FormTarget, PageAnswer};

use crate::confirmed::Confirmed;
use crate::forms::at_field;
use crate::studio::at;
use crate::studio::chat_row::role_name;
use crate::studio::desk::{Desk, PostedAt, StudioAt};
use crate::studio::frame::{StudioChoice, StudioPlace, is_cursor};
use crate::studio::nav::StudioNav;
use crate::studio::people::{Named, PeopleTexts, PersonChoice, named, people_texts};

const MANAGERS: &str = StudioPlace::Managers.path();
/// Managers on one page.
const PAGE_SIZE: i64 = 30;
/// The form that takes a role back.
pub(crate) const REMOVE: &str = "/studio/managers/remove";

/// A person with a role.
#[derive(Debug)]
struct ManagerRow<'a> {
    id: &'a str,
    name: &'a str,
    role: &'static str,
    since: Moment,
}

#[derive(Debug, Template)]
#[template(path = "site/studio/managers.html")]
struct ManagersPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static ManagerTexts,
    rows: Vec<ManagerRow<'a>>,
    first: Option<String>,
    next: Option<String>,
    form: FormTarget,
    remove: FormTarget,
    p: &'static PeopleTexts,
    /// The people to choose from, where several have the name that was typed.
    people: Vec<PersonChoice>,
    /// The name or id and the role that were typed.
    target: &'a str,
    role: &'a str,
    errors: FieldErrors,
}

impl ManagersPage<'_> {
    fn title(&self) -> &'static str {
        StudioPlace::Managers.label(self.shell.lang)
    }

    fn roles(&self) -> Vec<StudioChoice> {
        let choice = |role: UserRole| StudioChoice {
            value: role.name().to_owned(),
            label: role_name(role, self.shell.lang).to_owned(),
            is_selected: role.name() == self.role,
        };
        UserRole::GIVEN.into_iter().map(choice).collect()
    }
}

impl<'a> ManagersPage<'a> {
    fn new(desk: &'a Desk, managers: &'a ListPage<Manager>, errors: FieldErrors) -> Self {
        let visitor = &desk.visitor;
        let (now, lang) = (visitor.now(), visitor.lang());
        let row = |manager: &'a Manager| ManagerRow {
            id: manager.channel_id.as_str(),
            name: &manager.name,
            role: role_name(manager.role, lang),
            since: Moment::of(manager.created_at, now, lang),
        };
        Self {
            shell: visitor.shell(Area::Studio),
            nav: StudioNav::at(StudioPlace::Managers, desk),
            t: texts(lang),
            rows: managers.items.iter().map(row).collect(),
            first: None,
            next: managers.next.as_ref().map(|next| format!("{MANAGERS}?next={next}")),
            form: desk.form(MANAGERS),
            remove: desk.form(REMOVE),
            p: people_texts(lang),
            people: Vec::new(),
            target: "",
            role: "",
            errors,
        }
    }
}

/// `GET /studio/managers`. `next` is the cursor of a further page, `person` is put into the form.
pub(crate) async fn show(StudioAt { desk, .. }: StudioAt<at::Managers>) -> PageAnswer {
    let cursor = desk.visitor.request().parameter("next");
    let service = desk.visitor.web().service();
    let managers = match service.managers_by_day(&desk.channel_id, PAGE_SIZE, cursor.as_deref()).await {
        // A cursor of another list begins again.
        Err(error) if is_cursor(&error) => return Ok(desk.redirect(MANAGERS, None)),
        managers => managers?,
    };
    let first = cursor.is_some().then(|| MANAGERS.to_owned());
    let person = desk.visitor.request().parameter("person").unwrap_or_default();
    let page = ManagersPage::new(&desk, &managers, FieldErrors::default());
    desk.visitor.page(&ManagersPage { first, target: &person, ..page })
}

/// `POST /studio/managers`: gives a role, or changes it.
pub(crate) async fn give(
    Confirmed(PostedAt { desk, fields, .. }): Confirmed<PostedAt<at::Managers>>,
) -> PageAnswer {
    let visitor = &desk.visitor;
    let (target, role) = (fields.text("managerChannelId"), fields.text("userRole"));
    let (errors, people) = match given(&desk, &fields).await {
        Ok(None) => return Ok(desk.redirect(MANAGERS, Some(Flash::RoleGiven))),
        Ok(Some(people)) => {
            let mut errors = FieldErrors::default();
            errors.add("managerChannelId", people_texts(visitor.lang()).several);
            (errors, people)
        }
        Err(error) => (at_field(error, visitor.lang())?, Vec::new()),
    };
    let managers = visitor.web().service().managers_by_day(&desk.channel_id, PAGE_SIZE, None).await?;
    let page = ManagersPage::new(&desk, &managers, errors);
    visitor.form_again(&ManagersPage { target, role, people, ..page })
}

/// Gives the role, or gives the people of whom one has to be chosen.
async fn given(desk: &Desk, fields: &FormFields) -> Result<Option<Vec<PersonChoice>>, service::Error> {
    let role = UserRole::parse_given(fields.text("userRole"))?;
    let service = desk.visitor.web().service();
    let target = match named(service, fields, "managerChannelId", desk.visitor.lang()).await? {
        Named::Channel(target) => target,
        Named::OneOf(people) => return Ok(Some(people)),
    };
    let given = service.put_manager(desk.channel_id.clone(), target, role).await;
    given.map(|()| None).map_err(|error| match error.refusal() {
        Refusal::NotFound(Resource::Channel) => Invalid::new("managerChannelId", Rule::KnownChannel).into(),
        _ => error,
    })
}

/// `POST /studio/managers/remove`: takes a role back.
pub(crate) async fn remove(PostedAt { desk, fields, .. }: PostedAt<at::Managers>) -> PageAnswer {
    let visitor = &desk.visitor;
    let not_found = |_| Refusal::NotFound(Resource::Channel);
    let target = ChannelId::parse("managerChannelId", fields.text("managerChannelId")).map_err(not_found)?;
    visitor.web().service().delete_manager(desk.channel_id.clone(), target).await?;
    Ok(desk.redirect(MANAGERS, Some(Flash::RoleRemoved)))
}

#[derive(Debug)]
struct ManagerTexts {
    lead: &'static str,
    person: &'static str,
    role: &'static str,
    since: &'static str,
    action: &'static str,
    remove: &'static str,
    remove_question: &'static str,
    add: &'static str,
    target_hint: &'static str,
    give: &'static str,
    full: &'static str,
    none: &'static str,
    none_about: &'static str,
}

impl ManagerTexts {
    fn most(&self) -> String {
        self.full.replace("{}", &MANAGERS_MAX.to_string())
    }
}

fn texts(lang: Lang) -> &'static ManagerTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ManagerTexts = ManagerTexts {
    lead: "매니저에게는 채팅 설정과 활동 제한이 적용되지 않습니다.",
    person: "사용자",
    role: "역할",
    since: "맡은 날",
    action: "동작",
    remove: "역할 해제",
    remove_question: "채팅 설정과 제한이 이 사람에게도 적용됩니다.",
    add: "역할 주기",
    target_hint: "이미 역할이 있으면 새 역할로 바뀝니다.",
    give: "역할 주기",
    full: "{}명까지 정할 수 있습니다.",
    none: "역할을 준 사람이 없습니다.",
    none_about: "역할을 받은 사람은 자기 스튜디오에서 이 채널을 열 수 있습니다.",
};

const EN: ManagerTexts = ManagerTexts {
    lead: "Managers are exempt from the chat settings, and cannot be restricted.",
    person: "Person",
    role: "Role",
    since: "Since",
    action: "Action",
    remove: "Remove the role",
    remove_question: "The chat settings then apply to this person too.",
    add: "Give a role",
    target_hint: "Who has a role already gets the new one.",
    give: "Give the role",
    full: "A channel has up to {} managers.",
    none: "Nobody has a role.",
    none_about: "Who gets one can open this channel in their own studio.",
};
