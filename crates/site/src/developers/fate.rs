//! `/developers/applications/{clientId}/manage`: disable, enable, hand over, offer, delete, restore.

use askama::Template;
use domain::OrganizationId;
use domain::mail::MailKind;
use domain::member::MemberRole;
use service::application_offers::SentOffer;
use service::owned_applications::DeveloperApplication;
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy};

use super::access::{application, living_application, notify};
use super::frame::{AppFrame, AppTab, address};
use super::paths::DEVELOPERS;
use crate::confirmed::Confirmed;
use crate::forms::at_field;
use crate::question::{Question, is_sure};

/// The end of the page's path.
const END: &str = "/manage";
/// The choice of the person as the new owner. No organization has such an id.
const ME: &str = "/me";

#[derive(Template)]
#[template(path = "site/developers/manage.html")]
struct ManagePage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static ManageTexts,
    is_deleted: bool,
    is_disabled: bool,
    is_barred: bool,
    /// Whether the person may delete it and hand it over.
    is_admin: bool,
    disabled: FormTarget,
    owner: FormTarget,
    deleted: FormTarget,
    /// Values and names of possible new owners.
    owners: Vec<(String, String)>,
    offer: FormTarget,
    /// The login to which it is offered, and since when.
    offered: Option<(String, Moment)>,
    /// The login that was typed.
    login: &'a str,
    errors: FieldErrors,
}

impl ManagePage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> ManagePage<'a> {
    async fn new(person: &'a Person, application: &'a DeveloperApplication) -> Result<Self, service::Error> {
        let (visitor, lang) = (&person.visitor, person.visitor.lang());
        let (life, t) = (&application.details.life, texts(lang));
        let app = &life.application;
        let client_id = app.client_id.as_str();
        let now_of = app.organization.as_ref().map(|organization| &organization.organization_id);
        let memberships = visitor.web().service().memberships(&person.channel_id).await?;
        let organizations = memberships
            .into_iter()
            .filter(|one| one.role >= MemberRole::Developer)
            .map(|one| one.organization)
            .filter(|organization| now_of != Some(&organization.organization_id))
            .map(|organization| (organization.organization_id.to_string(), organization.name));
        let me = now_of.map(|_| (ME.to_owned(), t.me.to_owned()));
        let is_admin = application.role >= MemberRole::Admin;
        let offered = match is_admin {
            true => visitor.web().service().application_offer(&app.client_id).await?,
            false => None,
        };
        let since = |offer: SentOffer| (offer.login, Moment::of(offer.created_at, visitor.now(), lang));
        Ok(Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Manage),
            t,
            is_deleted: life.deleted_at.is_some(),
            is_disabled: life.is_disabled_by_owner,
            is_barred: life.is_disabled_by_operator,
            is_admin,
            disabled: visitor.form(address(client_id, "/disabled")),
            owner: visitor.form(address(client_id, "/owner")),
            deleted: visitor.form(address(client_id, "/deleted")),
            owners: me.into_iter().chain(organizations).collect(),
            offer: visitor.form(address(client_id, "/offer")),
            offered: offered.map(since),
            login: "",
            errors: FieldErrors::default(),
        })
    }
}

/// `GET …/manage`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = application(&person, &id, MemberRole::Developer).await?;
    person.visitor.page(&ManagePage::new(&person, &application).await?)
}

/// `POST …/disabled`: disables or enables the application.
pub(super) async fn switch(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let flash = match fields.text("state") {
        "enabled" => {
            service.enable_application_of_owner(&person.channel_id, client_id).await?;
            Some(Flash::AppEnabled)
        }
        "disabled" => {
            service.disable_application_of_owner(&person.channel_id, client_id).await?;
            Some(Flash::AppDisabled)
        }
        _ => None,
    };
    Ok(visitor.redirect(&address(client_id.as_str(), END), flash))
}

/// `POST …/owner`: hands the application over.
pub(super) async fn hand_over(
    PathId(id): PathId,
    Confirmed(PostedBy { person, fields }): Confirmed<PostedBy>,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Admin).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let chosen = fields.text("organizationId");
    let to = if chosen == ME {
        Ok(None)
    } else {
        OrganizationId::parse("organizationId", chosen).map(Some).map_err(service::Error::from)
    };
    let page = ManagePage::new(&person, &application).await?;
    let name = page.owners.iter().find(|(value, _)| value == chosen).map(|(_, name)| name.clone());
    if let Some(name) = name.filter(|_| !is_sure(&fields)) {
        let question = owner_question(&application, &name, visitor.lang());
        return question.ask(visitor, &fields);
    }
    let handed_over = match to {
        Ok(to) => service.hand_over_application(&person.channel_id, client_id, to).await,
        Err(error) => Err(error),
    };
    match handed_over {
        Ok(()) => {
            notify(&person, MailKind::ApplicationOffered).await?;
            Ok(visitor.redirect(&address(client_id.as_str(), END), Some(Flash::AppHandedOver)))
        }
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            visitor.form_again(&ManagePage { errors, ..page })
        }
    }
}

/// What another owner means.
fn owner_question(application: &DeveloperApplication, to: &str, lang: Lang) -> Question {
    let app = &application.details.life.application;
    let t = texts(lang);
    Question {
        title: match lang {
            Lang::Ko => format!("‘{}’ 앱을 ‘{to}’(으)로 옮길까요?", app.name),
            Lang::En => format!("Move “{}” to “{to}”?", app.name),
        },
        effects: vec![t.owner_effect.to_owned(), t.owner_members.to_owned()],
        yes: t.hand_over,
        back: address(app.client_id.as_str(), END),
    }
}

/// `POST …/offer`: offers the application to a login, or takes the offer back.
pub(super) async fn offer(
    PathId(id): PathId,
    Confirmed(PostedBy { person, fields }): Confirmed<PostedBy>,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Admin).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let back = address(client_id.as_str(), END);
    if fields.is_checked("takeBack") {
        service.take_application_offer_back(&person.channel_id, client_id).await?;
        return Ok(visitor.redirect(&back, Some(Flash::Saved)));
    }
    let login = fields.text("login").trim();
    match service.offer_application(&person.channel_id, client_id, login).await {
        Ok(()) => {
            notify(&person, MailKind::ApplicationOffered).await?;
            Ok(visitor.redirect(&back, Some(Flash::AppOffered)))
        }
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let page = ManagePage::new(&person, &application).await?;
            visitor.form_again(&ManagePage { login, errors, ..page })
        }
    }
}

/// `POST …/deleted`: deletes the application, or restores it.
pub(super) async fn delete_or_restore(
    PathId(id): PathId,
    PostedBy { person, fields }: PostedBy,
) -> PageAnswer {
    let application = application(&person, &id, MemberRole::Admin).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    if fields.is_checked("restore") {
        service.restore_application_of_owner(&person.channel_id, client_id).await?;
        return Ok(visitor.redirect(&address(client_id.as_str(), ""), Some(Flash::AppRestored)));
    }
    let name = fields.text("name");
    match service.delete_application_of_owner(&person.channel_id, client_id, name).await {
        Ok(()) => Ok(visitor.redirect(DEVELOPERS, Some(Flash::AppDeleted))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            visitor.form_again(&ManagePage { errors, ..ManagePage::new(&person, &application).await? })
        }
    }
}

struct ManageTexts {
    title: &'static str,
    disable: &'static str,
    disable_question: &'static str,
    disable_about: &'static str,
    enable: &'static str,
    enable_about: &'static str,
    barred: &'static str,
    owner: &'static str,
    owner_about: &'static str,
    new_owner: &'static str,
    no_owner: &'static str,
    me: &'static str,
    hand_over: &'static str,
    owner_effect: &'static str,
    owner_members: &'static str,
    offer: &'static str,
    offer_about: &'static str,
    offer_to: &'static str,
    offer_hint: &'static str,
    offered: &'static str,
    take_back: &'static str,
    take_back_question: &'static str,
    delete: &'static str,
    delete_about: &'static str,
    name: &'static str,
    name_hint: &'static str,
    restore: &'static str,
    restore_about: &'static str,
    back: &'static str,
    only_admins: &'static str,
}

fn texts(lang: Lang) -> &'static ManageTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ManageTexts = ManageTexts {
    title: "앱 관리",
    disable: "사용 중지",
    disable_question: "연결된 세션이 모두 바로 끝납니다.",
    disable_about: "시크릿과 토큰이 바로 거부되고 모든 세션이 끝납니다. 아무것도 지워지지 않으며, 언제든 다시 켤 수 있습니다.",
    enable: "다시 사용",
    enable_about: "시크릿과 만료되지 않은 토큰을 다시 쓸 수 있습니다.",
    barred: "운영자가 이 앱을 사용 중지했습니다. 운영자만 다시 켤 수 있습니다.",
    owner: "소유자 바꾸기",
    owner_about: "내가 개발자나 관리자인 조직으로 옮기거나 내 앱으로 가져올 수 있습니다. 드롭스 권한과 심사 중인 신청은 취소됩니다.",
    new_owner: "새 소유자",
    no_owner: "옮길 수 있는 조직이 없습니다.",
    me: "나",
    hand_over: "소유자 바꾸기",
    owner_effect: "드롭스 권한은 바로 없어지고, 심사 중인 신청은 취소됩니다. 사용자의 허용과 토큰은 그대로입니다.",
    owner_members: "지금 소유한 조직의 구성원은 더 이상 이 앱을 볼 수 없고, 새 소유자 쪽 구성원이 시크릿을 만들고 앱을 바꿀 수 있습니다.",
    offer: "다른 사람에게 넘기기",
    offer_about: "그 사람이 7일 안에 개발자 센터에서 수락하면 그 사람이나 그 사람의 조직이 새 소유자가 됩니다. 수락하기 전까지는 바뀌지 않습니다. 그 아이디가 있는지는 알려 주지 않습니다.",
    offer_to: "받을 사람의 아이디",
    offer_hint: "로그인할 때 쓰는 아이디. 넘긴 뒤에는 되돌릴 수 없습니다.",
    offered: "수락을 기다리는 아이디",
    take_back: "넘기기 취소",
    take_back_question: "이 사람은 앱을 받을 수 없게 됩니다.",
    delete: "앱 삭제",
    delete_about: "시크릿과 토큰, 세션이 바로 끝납니다. 30일 안에는 복구할 수 있고, 그 뒤에는 모든 데이터가 지워집니다.",
    name: "확인을 위해 앱 이름을 입력해 주세요",
    name_hint: "이 앱의 이름:",
    restore: "앱 복구",
    restore_about: "시크릿과 허용, 만료되지 않은 토큰이 함께 돌아옵니다.",
    back: "취소",
    only_admins: "앱을 옮기거나 삭제하는 것은 조직 관리자만 할 수 있습니다.",
};

const EN: ManageTexts = ManageTexts {
    title: "Manage the app",
    disable: "Disable the app",
    disable_question: "All its sessions end at once.",
    disable_about: "Secrets and tokens are refused at once, and all sessions end. Nothing is deleted. You can enable it at any time.",
    enable: "Enable the app",
    enable_about: "Its secrets and its unexpired tokens work again.",
    barred: "The operator has disabled this app. Only the operator can enable it.",
    owner: "Change the owner",
    owner_about: "Move it to an organization in which you are a developer or an admin, or make it your own. Its drops scope and its pending requests end.",
    new_owner: "New owner",
    no_owner: "There is no organization to move it to.",
    me: "Me",
    hand_over: "Change the owner",
    owner_effect: "The app loses drops at once, and its pending requests end. What people allowed it, and its tokens, stay.",
    owner_members: "Members of the organization that owns it now can no longer see it. Those of the new owner can make secrets and change it.",
    offer: "Offer it to another person",
    offer_about: "If the person accepts in the developer center within 7 days, the person or an organization of theirs is the new owner. Until then nothing changes. You are not told whether the username exists.",
    offer_to: "Username of the new owner",
    offer_hint: "With which the person signs in. Once it is accepted, you cannot take it back.",
    offered: "Offered to the username",
    take_back: "Take it back",
    take_back_question: "The person can no longer accept it.",
    delete: "Delete the app",
    delete_about: "Its secrets, tokens and sessions end at once. For 30 days you can restore it. Then all its data is deleted.",
    name: "Enter the name of the app to confirm",
    name_hint: "The name of this app:",
    restore: "Restore the app",
    restore_about: "Its secrets, consents and unexpired tokens come back.",
    back: "Cancel",
    only_admins: "Only admins of the organization move or delete its apps.",
};
