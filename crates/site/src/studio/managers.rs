//! `/studio/managers`: the people who have a role in the channel.

use askama::Template;
use domain::channel::{Manager, UserRole};
use domain::limits::MANAGERS_MAX;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, Refusal, Rule};
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, Person, PostedBy};

use crate::forms::at_field;
use crate::studio::chat_row::role_name;
use crate::studio::frame::{StudioChoice, StudioNav, StudioPlace};

const MANAGERS: &str = StudioPlace::Managers.path();
/// The form that takes a role back.
pub(crate) const REMOVE: &str = "/studio/managers/remove";

/// A person with a role.
#[derive(Debug)]
struct ManagerRow<'a> {
    id: &'a str,
    name: &'a str,
    role: &'static str,
    since: Moment,
    is_owner: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/studio/managers.html")]
struct ManagersPage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    t: &'static ManagerTexts,
    rows: Vec<ManagerRow<'a>>,
    form: FormTarget,
    remove: FormTarget,
    /// The id and the role that were typed.
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
    fn new(person: &'a Person, managers: &'a [Manager], errors: FieldErrors) -> Self {
        let visitor = &person.visitor;
        let (now, lang) = (visitor.now(), visitor.lang());
        let row = |manager: &'a Manager| ManagerRow {
            id: manager.channel_id.as_str(),
            name: &manager.name,
            role: role_name(manager.role, lang),
            since: Moment::of(manager.created_at, now, lang),
            is_owner: manager.role == UserRole::StreamingChannelOwner,
        };
        Self {
            shell: visitor.shell(Area::Studio),
            nav: StudioNav::at(StudioPlace::Managers, visitor),
            t: texts(lang),
            rows: managers.iter().map(row).collect(),
            form: visitor.form(MANAGERS),
            remove: visitor.form(REMOVE),
            target: "",
            role: "",
            errors,
        }
    }
}

/// `GET /studio/managers`.
pub(crate) async fn show(person: Person) -> PageAnswer {
    let managers = person.visitor.web().service().managers(person.channel_id.clone()).await?;
    person.visitor.page(&ManagersPage::new(&person, &managers, FieldErrors::default()))
}

/// `POST /studio/managers`: gives a role, or changes it.
pub(crate) async fn give(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let (target, role) = (fields.text("managerChannelId"), fields.text("userRole"));
    match given(&person, target, role).await {
        Ok(()) => Ok(visitor.redirect(MANAGERS, Some(Flash::RoleGiven))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let managers = visitor.web().service().managers(person.channel_id.clone()).await?;
            let page = ManagersPage::new(&person, &managers, errors);
            visitor.form_again(&ManagersPage { target, role, ..page })
        }
    }
}

async fn given(person: &Person, target: &str, role: &str) -> Result<(), service::Error> {
    let target = ChannelId::parse("managerChannelId", target.trim())?;
    let role = UserRole::parse_given(role)?;
    let service = person.visitor.web().service();
    let given = service.put_manager(person.channel_id.clone(), target, role).await;
    given.map_err(|error| match error.refusal() {
        Refusal::NotFound(Resource::Channel) => Invalid::new("managerChannelId", Rule::KnownChannel).into(),
        _ => error,
    })
}

/// `POST /studio/managers/remove`: takes a role back.
pub(crate) async fn remove(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let not_found = |_| Refusal::NotFound(Resource::Channel);
    let target = ChannelId::parse("managerChannelId", fields.text("managerChannelId")).map_err(not_found)?;
    visitor.web().service().delete_manager(person.channel_id.clone(), target).await?;
    Ok(visitor.redirect(MANAGERS, Some(Flash::RoleRemoved)))
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
    target: &'static str,
    target_hint: &'static str,
    give: &'static str,
    full: &'static str,
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
    lead: "매니저는 채팅 설정과 제한의 영향을 받지 않고, 제한할 수 없습니다.",
    person: "사용자",
    role: "역할",
    since: "맡은 날",
    action: "동작",
    remove: "역할 해제",
    remove_question: "채팅 설정과 제한이 이 사람에게도 적용됩니다.",
    add: "역할 주기",
    target: "채널 ID",
    target_hint: "이미 역할이 있으면 새 역할로 바뀝니다.",
    give: "역할 주기",
    full: "{}명까지 정할 수 있습니다.",
};

const EN: ManagerTexts = ManagerTexts {
    lead: "Managers are exempt from the chat settings, and cannot be restricted.",
    person: "Person",
    role: "Role",
    since: "Since",
    action: "Action",
    remove: "Take the role back",
    remove_question: "The chat settings then apply to this person too.",
    add: "Give a role",
    target: "Channel id",
    target_hint: "Who has a role already gets the new one.",
    give: "Give the role",
    full: "A channel has up to {} managers.",
};
