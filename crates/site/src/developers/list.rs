//! `/developers`: the applications and organizations of a person.

use askama::Template;
use domain::member::MemberRole;
use domain::{ClientId, OrganizationId};
use service::application_offers::ReceivedOffer;
use service::organization_invitations::ReceivedInvitation;
use service::organization_members::Membership;
use service::organizations::ListPage;
use service::owned_applications::PersonApplication;
use web::pages::{AppFace, Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy, Visitor};

use super::access::{client_id_of, is_cursor};
use super::find_words::{FindWords, find_words};
use super::frame::{address, role_name};
use super::paths::{DECLINED, DEVELOPERS, NEW_ORGANIZATION, REGISTER};
use super::state::AppState;
use crate::forms::at_field;

/// Applications on one page.
const PAGE_SIZE: i64 = 20;

struct AppLine<'a> {
    name: &'a str,
    href: String,
    logo: Option<String>,
    organization: Option<&'a str>,
    scopes: usize,
    last_used: Option<Moment>,
    state: AppState,
}

struct OrganizationLine<'a> {
    name: &'a str,
    href: String,
    role: &'static str,
    is_verified: bool,
    is_disabled: bool,
}

/// An invitation to an organization.
struct InvitationLine<'a> {
    name: &'a str,
    role: &'static str,
    form: FormTarget,
}

/// An application that is offered to the person.
struct OfferLine<'a> {
    name: &'a str,
    /// The name of its organization, or of its owner.
    from: Option<&'a str>,
    form: FormTarget,
}

#[derive(Template)]
#[template(path = "site/developers/list.html")]
struct DevelopersPage<'a> {
    shell: Shell<'a>,
    t: &'static ListTexts,
    find: &'static FindWords,
    apps: Vec<AppLine<'a>>,
    organizations: Vec<OrganizationLine<'a>>,
    invitations: Vec<InvitationLine<'a>>,
    decline_all: FormTarget,
    offers: Vec<OfferLine<'a>>,
    /// Ids and names of the organizations that can own an application.
    owners: Vec<(&'a str, &'a str)>,
    register: &'static str,
    new_organization: &'static str,
    first: Option<String>,
    next: Option<String>,
    errors: FieldErrors,
}

impl DevelopersPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

/// What the page is made of.
struct ListContent {
    found: ListPage<PersonApplication>,
    is_first: bool,
    memberships: Vec<Membership>,
    invitations: Vec<ReceivedInvitation>,
    offers: Vec<ReceivedOffer>,
}

impl ListContent {
    async fn read(person: &Person, cursor: Option<&str>) -> Result<Self, service::Error> {
        let (service, channel_id) = (person.visitor.web().service(), &person.channel_id);
        Ok(Self {
            found: service.applications_of_person(channel_id, PAGE_SIZE, cursor).await?,
            is_first: cursor.is_none(),
            memberships: service.memberships(channel_id).await?,
            invitations: service.invitations_of_person(channel_id).await?,
            offers: service.application_offers_of_person(channel_id).await?,
        })
    }

    fn page<'a>(&'a self, visitor: &'a Visitor, errors: FieldErrors) -> DevelopersPage<'a> {
        let lang = visitor.lang();
        let may_own = self.memberships.iter().filter(|one| one.role >= MemberRole::Developer);
        let organization =
            |one: &'a Membership| (one.organization.organization_id.as_str(), one.organization.name.as_str());
        let next = self.found.next.as_ref();
        DevelopersPage {
            shell: visitor.shell(Area::Developers),
            t: texts(lang),
            find: find_words(lang),
            apps: self.found.items.iter().map(|item| app_line(visitor, item)).collect(),
            organizations: self.memberships.iter().map(|one| organization_line(one, lang)).collect(),
            invitations: self.invitations.iter().map(|one| invitation_line(visitor, one)).collect(),
            decline_all: visitor.form(DECLINED),
            offers: self.offers.iter().map(|offer| offer_line(visitor, offer)).collect(),
            owners: may_own.map(organization).collect(),
            register: REGISTER,
            new_organization: NEW_ORGANIZATION,
            first: (!self.is_first).then(|| DEVELOPERS.to_owned()),
            next: next.map(|next| format!("{DEVELOPERS}?next={next}")),
            errors,
        }
    }
}

/// `GET /developers`. `next` is the cursor of a further page.
pub(crate) async fn show(person: Person) -> PageAnswer {
    let visitor = &person.visitor;
    let cursor = visitor.request().parameter("next");
    match ListContent::read(&person, cursor.as_deref()).await {
        // A cursor of another person or of an older key begins again.
        Err(error) if is_cursor(&error.refusal()) => Ok(visitor.redirect(DEVELOPERS, None)),
        content => visitor.page(&content?.page(visitor, FieldErrors::default())),
    }
}

/// `POST /developers/offers/{clientId}`: accepts or declines the offer of an application.
pub(super) async fn answer_offer(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let client_id = client_id_of(&id)?;
    let (visitor, service) = (&person.visitor, person.service());
    let accepted = match fields.text("answer") {
        "accept" => accept(&person, &client_id, fields.text("organizationId")).await,
        "decline" => {
            service.decline_application_offer(&person.channel_id, &client_id).await?;
            return Ok(visitor.redirect(DEVELOPERS, Some(Flash::Saved)));
        }
        _ => return Ok(visitor.redirect(DEVELOPERS, None)),
    };
    match accepted {
        Ok(()) => Ok(visitor.redirect(&address(client_id.as_str(), ""), Some(Flash::AppHandedOver))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            visitor.form_again(&ListContent::read(&person, None).await?.page(visitor, errors))
        }
    }
}

/// Accepts an offer for an organization, or for the person when none is chosen.
async fn accept(person: &Person, client_id: &ClientId, chosen: &str) -> Result<(), service::Error> {
    let to = match chosen {
        "" => None,
        chosen => Some(OrganizationId::parse("organizationId", chosen)?),
    };
    person.service().accept_application_offer(&person.channel_id, client_id, to).await
}

fn app_line<'a>(visitor: &Visitor, item: &'a PersonApplication) -> AppLine<'a> {
    let (now, lang) = (visitor.now(), visitor.lang());
    let application = &item.life.application;
    AppLine {
        name: &application.name,
        href: address(application.client_id.as_str(), ""),
        logo: AppFace::of(application).logo,
        organization: application.organization.as_ref().map(|organization| organization.name.as_str()),
        scopes: application.scopes.iter().count(),
        last_used: item.life.last_use().map(|at| Moment::of(at, now, lang)),
        state: AppState::of(&item.life, now, lang),
    }
}

fn organization_line(membership: &Membership, lang: Lang) -> OrganizationLine<'_> {
    let organization = &membership.organization;
    OrganizationLine {
        name: &organization.name,
        href: format!("{DEVELOPERS}/organizations/{}", organization.organization_id),
        role: role_name(membership.role, lang),
        is_verified: organization.verified,
        is_disabled: membership.disabled_at.is_some(),
    }
}

fn invitation_line<'a>(visitor: &Visitor, invitation: &'a ReceivedInvitation) -> InvitationLine<'a> {
    let id = &invitation.organization_id;
    InvitationLine {
        name: &invitation.organization_name,
        role: role_name(invitation.role, visitor.lang()),
        form: visitor.form(format!("{DEVELOPERS}/organizations/{id}/invitation")),
    }
}

fn offer_line<'a>(visitor: &Visitor, offer: &'a ReceivedOffer) -> OfferLine<'a> {
    OfferLine {
        name: &offer.application_name,
        from: offer.organization_name.as_deref().or(offer.owner_name.as_deref()),
        form: visitor.form(format!("{DEVELOPERS}/offers/{}", offer.client_id)),
    }
}

struct ListTexts {
    title: &'static str,
    lead: &'static str,
    apps: &'static str,
    app: &'static str,
    state: &'static str,
    scopes: &'static str,
    last_used: &'static str,
    never_used: &'static str,
    open: &'static str,
    register: &'static str,
    no_apps: &'static str,
    no_apps_about: &'static str,
    organizations: &'static str,
    organizations_about: &'static str,
    no_organizations: &'static str,
    new_organization: &'static str,
    role: &'static str,
    verified: &'static str,
    not_verified: &'static str,
    disabled: &'static str,
    invitations: &'static str,
    invited_as: &'static str,
    accept: &'static str,
    decline: &'static str,
    decline_question: &'static str,
    decline_all: &'static str,
    decline_all_question: &'static str,
    offers: &'static str,
    offers_about: &'static str,
    offered_by: &'static str,
    new_owner: &'static str,
    me: &'static str,
    decline_offer_question: &'static str,
}

fn texts(lang: Lang) -> &'static ListTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ListTexts = ListTexts {
    title: "개발자 센터",
    lead: "앱을 등록하고 권한과 시크릿을 관리합니다. 조직을 만들면 여러 사람이 함께 앱을 관리할 수 있습니다.",
    apps: "내 앱",
    app: "앱",
    state: "상태",
    scopes: "권한",
    last_used: "마지막 사용",
    never_used: "아직 없음",
    open: "열기",
    register: "앱 등록",
    no_apps: "등록한 앱이 없습니다.",
    no_apps_about: "앱을 등록하면 바로 클라이언트 ID와 시크릿을 받습니다.",
    organizations: "조직",
    organizations_about: "드롭스를 쓰려면 인증된 조직이 필요합니다.",
    no_organizations: "속한 조직이 없습니다.",
    new_organization: "조직 만들기",
    role: "역할",
    verified: "인증됨",
    not_verified: "인증되지 않음",
    disabled: "운영자가 사용 중지",
    invitations: "받은 초대",
    invited_as: "초대받은 역할:",
    accept: "수락",
    decline: "거절",
    decline_question: "다시 받으려면 조직에서 새로 초대해야 합니다.",
    decline_all: "모두 거절",
    decline_all_question: "받은 초대를 모두 거절합니다. 다시 받으려면 각 조직에서 새로 초대해야 합니다.",
    offers: "넘겨받을 수 있는 앱",
    offers_about: "수락하면 앱의 소유자가 됩니다. 지금까지의 시크릿은 이전 소유자도 알고 있으니, 수락한 뒤 새로 바꿔 주세요.",
    offered_by: "지금 소유자:",
    new_owner: "새 소유자",
    me: "나",
    decline_offer_question: "다시 받으려면 지금 소유자가 새로 넘겨야 합니다.",
};

const EN: ListTexts = ListTexts {
    title: "Developer center",
    lead: "Register apps and manage their scopes and secrets. In an organization several people manage apps together.",
    apps: "Your apps",
    app: "App",
    state: "State",
    scopes: "Scopes",
    last_used: "Last used",
    never_used: "Not yet",
    open: "Open",
    register: "Register an app",
    no_apps: "You have no app yet.",
    no_apps_about: "Register one, and you get its client id and its secret at once.",
    organizations: "Organizations",
    organizations_about: "Drops (드롭스) require a verified organization.",
    no_organizations: "You are in no organization.",
    new_organization: "Create an organization",
    role: "Role",
    verified: "Verified",
    not_verified: "Not verified",
    disabled: "Disabled by the operator",
    invitations: "Invitations",
    invited_as: "Invited as:",
    accept: "Accept",
    decline: "Decline",
    decline_question: "Then the organization has to invite you again.",
    decline_all: "Decline all",
    decline_all_question: "This declines every invitation. Then each organization has to invite you again.",
    offers: "Apps offered to you",
    offers_about: "If you accept, you are the owner. The owner before knows the secrets of today: replace them then.",
    offered_by: "Owner now:",
    new_owner: "New owner",
    me: "Me",
    decline_offer_question: "Then the owner has to offer it again.",
};
