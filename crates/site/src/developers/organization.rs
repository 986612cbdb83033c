//! `/developers/organizations/{organizationId}`: members, invitations and verification of an organization.

use askama::Template;
use domain::mail::MailKind;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::review::{ReviewState, ReviewSubject};
use domain::{ChannelId, OrganizationId, Refusal, ReviewRequestId};
use service::organization_members::{Member, Membership};
use web::pages::{Area, FieldErrors, Flash, Lang, Moment, Shell, filters};
use web::{Failure, FormTarget, PageAnswer, PathId, PathIds, Person, PostedBy, Visitor};

use super::access::{notify, organization, organization_id_of};
use super::frame::role_name;
use super::paths::{DEVELOPERS, NEW_ORGANIZATION};
use super::scopes::{RequestLine, RequestTexts, finish_withdrawal, request_line, request_texts};
use crate::confirmed::Confirmed;
use crate::forms::at_field;
use crate::question::{Question, is_sure};

/// Members on the page: all of them.
const MEMBERS_SHOWN: i64 = domain::limits::ORGANIZATION_MEMBERS_MAX;

struct MemberLine<'a> {
    name: &'a str,
    role: MemberRole,
    role_name: &'static str,
    since: Moment,
    is_me: bool,
    form: FormTarget,
}

struct SentInvitation<'a> {
    login: &'a str,
    role: &'static str,
    since: Moment,
}

#[derive(Template)]
#[template(path = "site/developers/organization.html")]
struct OrganizationPage<'a> {
    shell: Shell<'a>,
    t: &'static OrganizationTexts,
    r: &'static RequestTexts,
    name: &'a str,
    typed_name: &'a str,
    organization_id: &'a str,
    is_verified: bool,
    is_disabled: bool,
    is_admin: bool,
    is_pending: bool,
    roles: [(MemberRole, &'static str); 3],
    members: Vec<MemberLine<'a>>,
    invitations: Vec<SentInvitation<'a>>,
    requests: Vec<RequestLine>,
    rename: FormTarget,
    verification: FormTarget,
    invite: FormTarget,
    login: &'a str,
    errors: FieldErrors,
}

impl OrganizationPage<'_> {
    fn title(&self) -> &str {
        self.name
    }
}

/// What the page is made of.
struct Parts {
    membership: Membership,
    members: Vec<Member>,
    invitations: Vec<service::organization_invitations::Invitation>,
    requests: Vec<service::review_requests::ReviewRequest>,
}

impl Parts {
    async fn read(person: &Person, membership: Membership) -> Result<Self, service::Error> {
        let service = person.visitor.web().service();
        let id = &membership.organization.organization_id;
        let is_admin = membership.role >= MemberRole::Admin;
        Ok(Self {
            members: service.organization_members(id, MEMBERS_SHOWN, None).await?.items,
            invitations: if is_admin { service.invitations(id).await? } else { Vec::new() },
            requests: if is_admin { service.review_requests_of_organization(id).await? } else { Vec::new() },
            membership,
        })
    }
}

/// The address of an organization's page. `end` begins with a slash.
fn address(id: &OrganizationId, end: &str) -> String {
    format!("{DEVELOPERS}/organizations/{id}{end}")
}

impl<'a> OrganizationPage<'a> {
    fn new(person: &'a Person, parts: &'a Parts) -> Self {
        let (visitor, lang) = (&person.visitor, person.visitor.lang());
        let organization = &parts.membership.organization;
        let id = &organization.organization_id;
        let member = |member: &'a Member| MemberLine {
            name: &member.channel_name,
            role: member.role,
            role_name: role_name(member.role, lang),
            since: Moment::of(member.created_at, visitor.now(), lang),
            is_me: member.channel_id == person.channel_id,
            form: visitor.form(address(id, &format!("/members/{}", member.channel_id))),
        };
        let requests = parts.requests.iter().map(|request| {
            request_line(request, visitor, address(id, &format!("/requests/{}", request.request_id)))
        });
        Self {
            shell: visitor.shell(Area::Developers),
            t: texts(lang),
            r: request_texts(lang),
            name: &organization.name,
            typed_name: &organization.name,
            organization_id: id.as_str(),
            is_verified: organization.verified,
            is_disabled: parts.membership.disabled_at.is_some(),
            is_admin: parts.membership.role >= MemberRole::Admin,
            is_pending: parts.requests.iter().any(|one| one.state == ReviewState::Pending),
            roles: MemberRole::ALL.map(|role| (role, role_name(role, lang))),
            members: parts.members.iter().map(member).collect(),
            invitations: parts
                .invitations
                .iter()
                .map(|invitation| SentInvitation {
                    login: &invitation.login,
                    role: role_name(invitation.role, lang),
                    since: Moment::of(invitation.created_at, visitor.now(), lang),
                })
                .collect(),
            requests: requests.collect(),
            rename: visitor.form(address(id, "")),
            verification: visitor.form(address(id, "/verification")),
            invite: visitor.form(address(id, "/invitations")),
            login: "",
            errors: FieldErrors::default(),
        }
    }
}

/// The form of a new organization.
#[derive(Template)]
#[template(path = "site/developers/new_organization.html")]
struct NewOrganizationPage<'a> {
    shell: Shell<'a>,
    t: &'static OrganizationTexts,
    form: FormTarget,
    typed_name: &'a str,
    errors: FieldErrors,
}

impl NewOrganizationPage<'_> {
    fn title(&self) -> &'static str {
        self.t.new
    }
}

impl<'a> NewOrganizationPage<'a> {
    fn new(visitor: &'a Visitor) -> Self {
        Self {
            shell: visitor.shell(Area::Developers),
            t: texts(visitor.lang()),
            form: visitor.form(NEW_ORGANIZATION),
            typed_name: "",
            errors: FieldErrors::default(),
        }
    }
}

/// `GET /developers/new-organization`.
pub(super) async fn show_new(person: Person) -> PageAnswer {
    person.visitor.page(&NewOrganizationPage::new(&person.visitor))
}

/// `POST /developers/new-organization`.
pub(super) async fn make(PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let name = fields.text("organizationName").trim();
    match person.service().make_organization(&person.channel_id, name.to_owned()).await {
        Ok(id) => Ok(visitor.redirect(&address(&id, ""), Some(Flash::Saved))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let page = NewOrganizationPage::new(visitor);
            visitor.form_again(&NewOrganizationPage { typed_name: name, errors, ..page })
        }
    }
}

/// `GET /developers/organizations/{organizationId}`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let membership = organization(&person, &id, MemberRole::Viewer).await?;
    let parts = Parts::read(&person, membership).await?;
    person.visitor.page(&OrganizationPage::new(&person, &parts))
}

/// `POST /developers/organizations/{organizationId}`: another name.
pub(super) async fn rename(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let membership = organization(&person, &id, MemberRole::Admin).await?;
    let name = fields.text("organizationName").trim();
    let id = membership.organization.organization_id.clone();
    let service = person.service();
    let renamed = service.rename_organization(&person.channel_id, &id, name.to_owned()).await;
    answer(&person, membership, renamed, Flash::Saved, ("", name)).await
}

/// `POST …/verification`: asks the operator to verify the organization.
pub(super) async fn apply(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let membership = organization(&person, &id, MemberRole::Admin).await?;
    let subject = ReviewSubject::Verification(membership.organization.organization_id.clone());
    let service = person.service();
    let message = fields.text("message").trim();
    let asked = service.submit_review_request(&person.channel_id, subject, message).await.map(drop);
    let name = membership.organization.name.clone();
    answer(&person, membership, asked, Flash::Requested, ("", &name)).await
}

/// `POST …/requests/{requestId}`: withdraws a request about the organization.
pub(super) async fn withdraw(PathIds(id, request): PathIds, PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let membership = organization(&person, &id, MemberRole::Admin).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let id = &membership.organization.organization_id;
    let not_found = || Refusal::NotFound(Resource::ReviewRequest);
    let request = ReviewRequestId::parse("requestId", &request).map_err(|_| not_found())?;
    let requests = service.review_requests_of_organization(id).await?;
    if !requests.iter().any(|one| one.request_id == request) {
        return Err(not_found().into());
    }
    let withdrawn = service.withdraw_review_request(&person.channel_id, &request).await;
    finish_withdrawal(visitor, withdrawn, &address(id, ""))
}

/// `POST …/invitations`: invites a login, or takes an invitation back.
pub(super) async fn invite(
    PathId(id): PathId,
    Confirmed(PostedBy { person, fields }): Confirmed<PostedBy>,
) -> PageAnswer {
    let membership = organization(&person, &id, MemberRole::Admin).await?;
    let id = membership.organization.organization_id.clone();
    let service = person.service();
    let name = membership.organization.name.clone();
    let login = fields.text("login").trim();
    if fields.is_checked("takeBack") {
        let taken = service.take_invitation_back(&person.channel_id, &id, login).await;
        return answer(&person, membership, taken, Flash::Saved, ("", &name)).await;
    }
    let invited = match MemberRole::parse(fields.text("role")) {
        Ok(role) => service.invite_member(&person.channel_id, &id, login, role).await,
        Err(invalid) => Err(invalid.into()),
    };
    if invited.is_ok() {
        notify(&person, MailKind::MemberChanged).await?;
    }
    answer(&person, membership, invited, Flash::Invited, (login, &name)).await
}

/// `POST /developers/invitations`: declines every invitation of the person.
pub(super) async fn decline_invitations(PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    person.service().decline_invitations(&person.channel_id).await?;
    Ok(visitor.redirect(DEVELOPERS, Some(Flash::Saved)))
}

/// `POST …/invitation`: accepts or declines an invitation.
pub(super) async fn answer_invitation(
    PathId(id): PathId,
    PostedBy { person, fields }: PostedBy,
) -> PageAnswer {
    let id = organization_id_of(&id)?;
    let (visitor, service) = (&person.visitor, person.service());
    let accepts = match fields.text("answer") {
        "accept" => true,
        "decline" => false,
        _ => return Ok(visitor.redirect(DEVELOPERS, None)),
    };
    service.answer_invitation(&person.channel_id, &id, accepts).await?;
    let next = if accepts { address(&id, "") } else { DEVELOPERS.to_owned() };
    Ok(visitor.redirect(&next, Some(Flash::Saved)))
}

/// `POST …/members/{channelId}`: another role, or none. Every member may leave.
pub(super) async fn change_member(
    PathIds(id, member): PathIds,
    Confirmed(PostedBy { person, fields }): Confirmed<PostedBy>,
) -> PageAnswer {
    let not_found = || Refusal::NotFound(Resource::Organization);
    let member = ChannelId::parse("channelId", &member).map_err(|_| not_found())?;
    let is_me = member == person.channel_id;
    let needed = if is_me { MemberRole::Viewer } else { MemberRole::Admin };
    let membership = organization(&person, &id, needed).await?;
    let id = membership.organization.organization_id.clone();
    let name = membership.organization.name.clone();
    let (visitor, service) = (&person.visitor, person.service());
    if fields.is_checked("remove") {
        let removed = service.remove_member(&person.channel_id, &id, &member).await;
        if removed.is_ok() {
            notify(&person, MailKind::MemberChanged).await?;
        }
        if removed.is_ok() && is_me {
            return Ok(visitor.redirect(DEVELOPERS, Some(Flash::Saved)));
        }
        return answer(&person, membership, removed, Flash::Saved, ("", &name)).await;
    }
    let role = MemberRole::parse(fields.text("role"));
    if let (Ok(role), false) = (&role, is_sure(&fields)) {
        let members = service.organization_members(&id, MEMBERS_SHOWN, None).await?.items;
        if let Some(member) = members.iter().find(|one| one.channel_id == member && one.role != *role) {
            return role_question(member, *role, &id, visitor.lang()).ask(visitor, &fields);
        }
    }
    let changed = match role {
        Ok(role) => service.change_member(&person.channel_id, &id, &member, role).await,
        Err(invalid) => Err(invalid.into()),
    };
    if changed.is_ok() {
        notify(&person, MailKind::MemberChanged).await?;
    }
    answer(&person, membership, changed, Flash::Saved, ("", &name)).await
}

/// What another role means for a member.
fn role_question(member: &Member, role: MemberRole, id: &OrganizationId, lang: Lang) -> Question {
    let (name, before, after) = (&member.channel_name, role_name(member.role, lang), role_name(role, lang));
    let t = texts(lang);
    Question {
        title: match lang {
            Lang::Ko => format!("{name} 님의 역할을 ‘{before}’에서 ‘{after}’(으)로 바꿀까요?"),
            Lang::En => format!("Change the role of {name} from {before} to {after}?"),
        },
        effects: vec![
            match role {
                MemberRole::Admin => t.becomes_admin,
                MemberRole::Developer => t.becomes_developer,
                MemberRole::Viewer => t.becomes_viewer,
            }
            .to_owned(),
        ],
        yes: t.change_role,
        back: address(id, ""),
    }
}

/// Leads back to the organization, or shows it with what is wrong. `login` and `name` were typed.
async fn answer(
    person: &Person,
    membership: Membership,
    done: Result<(), service::Error>,
    flash: Flash,
    (login, name): (&str, &str),
) -> Result<axum::response::Response, Failure> {
    let visitor = &person.visitor;
    match done {
        Ok(()) => {
            let id = &membership.organization.organization_id;
            Ok(visitor.redirect(&address(id, ""), Some(flash)))
        }
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let parts = Parts::read(person, membership).await?;
            let page = OrganizationPage::new(person, &parts);
            visitor.form_again(&OrganizationPage { login, typed_name: name, errors, ..page })
        }
    }
}

struct OrganizationTexts {
    history: &'static str,
    becomes_admin: &'static str,
    becomes_developer: &'static str,
    becomes_viewer: &'static str,
    change_role: &'static str,
    new: &'static str,
    new_lead: &'static str,
    up: &'static str,
    name: &'static str,
    name_hint: &'static str,
    make: &'static str,
    cancel: &'static str,
    id: &'static str,
    verified: &'static str,
    not_verified: &'static str,
    disabled: &'static str,
    members: &'static str,
    member: &'static str,
    role: &'static str,
    since: &'static str,
    me: &'static str,
    change: &'static str,
    remove: &'static str,
    remove_question: &'static str,
    leave: &'static str,
    leave_question: &'static str,
    roles_about: &'static str,
    invite: &'static str,
    invite_about: &'static str,
    login: &'static str,
    login_hint: &'static str,
    invitations: &'static str,
    take_back: &'static str,
    take_back_question: &'static str,
    verification: &'static str,
    verification_about: &'static str,
    verification_pending: &'static str,
    message: &'static str,
    message_hint: &'static str,
    apply: &'static str,
    rename: &'static str,
    save: &'static str,
}

fn texts(lang: Lang) -> &'static OrganizationTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: OrganizationTexts = OrganizationTexts {
    history: "변경 기록 보기",
    becomes_admin: "이제부터 구성원을 초대하고 내보내며, 조직의 앱을 옮기고 삭제할 수 있습니다.",
    becomes_developer: "이제부터 조직의 앱을 바꾸고 시크릿을 만들 수 있습니다. 구성원과 조직은 바꿀 수 없습니다.",
    becomes_viewer: "이제부터 조직의 앱을 보기만 할 수 있습니다.",
    change_role: "역할 바꾸기",
    new: "조직 만들기",
    new_lead: "조직의 앱은 구성원이 함께 관리합니다. 인증을 받으면 드롭스를 신청할 수 있습니다.",
    up: "개발자 센터",
    name: "조직 이름",
    name_hint: "접근을 허용할지 묻는 화면에 앱과 함께 표시됩니다. 인증을 신청한 뒤에는 바꿀 수 없습니다.",
    make: "조직 만들기",
    cancel: "취소",
    id: "조직 ID",
    verified: "인증된 조직",
    not_verified: "인증되지 않음",
    disabled: "운영자가 사용 중지",
    members: "구성원",
    member: "이름",
    role: "역할",
    since: "들어온 날",
    me: "나",
    change: "역할 바꾸기",
    remove: "내보내기",
    remove_question: "내보낸 사람은 이 조직과 앱을 더 볼 수 없습니다.",
    leave: "조직 나가기",
    leave_question: "다시 들어오려면 새로 초대받아야 합니다.",
    roles_about: "관리자는 모든 일을, 개발자는 앱과 시크릿을 관리합니다. 보기 전용은 확인만 합니다.",
    invite: "초대하기",
    invite_about: "초대받은 사람은 개발자 센터에서 7일 안에 수락할 수 있습니다. 그 아이디가 있는지는 알려 주지 않습니다.",
    login: "아이디",
    login_hint: "로그인할 때 쓰는 아이디",
    invitations: "보낸 초대",
    take_back: "초대 취소",
    take_back_question: "이 사람은 초대를 수락할 수 없게 됩니다.",
    verification: "조직 인증",
    verification_about: "운영자가 조직을 확인하면 인증된 조직으로 표시되고, 드롭스를 신청할 수 있습니다.",
    verification_pending: "운영자가 심사하고 있습니다.",
    message: "조직 소개",
    message_hint: "회사 이름과 등록 번호, 연락처처럼 확인에 필요한 내용을 적어 주세요.",
    apply: "인증 신청",
    rename: "이름 바꾸기",
    save: "저장",
};

const EN: OrganizationTexts = OrganizationTexts {
    history: "History of changes",
    becomes_admin: "From now on they can invite and remove members, and move and delete the organization’s apps.",
    becomes_developer: "From now on they can change the organization’s apps and make secrets. They cannot change members or the organization.",
    becomes_viewer: "From now on they can only look at the organization’s apps.",
    change_role: "Change the role",
    new: "Create an organization",
    new_lead: "Its members manage its apps together. Once it is verified, its apps can apply for drops (드롭스).",
    up: "Developer center",
    name: "Name of the organization",
    name_hint: "People see it with the app when they are asked to allow access. It is fixed once you apply for verification.",
    make: "Create the organization",
    cancel: "Cancel",
    id: "Id of the organization",
    verified: "Verified organization",
    not_verified: "Not verified",
    disabled: "Disabled by the operator",
    members: "Members",
    member: "Name",
    role: "Role",
    since: "Member since",
    me: "you",
    change: "Change the role",
    remove: "Remove",
    remove_question: "This person sees neither the organization nor its apps any more.",
    leave: "Leave the organization",
    leave_question: "To come back you need a new invitation.",
    roles_about: "Admins do everything, developers manage apps and secrets, viewers only see them.",
    invite: "Invite",
    invite_about: "The person can accept in the developer center within 7 days. You are not told whether the username exists.",
    login: "Username",
    login_hint: "With which the person signs in",
    invitations: "Invitations",
    take_back: "Take it back",
    take_back_question: "The person can no longer accept it.",
    verification: "Verification",
    verification_about: "When the operator has checked the organization, it is shown as verified and can apply for drops.",
    verification_pending: "The operator is reviewing it.",
    message: "About the organization",
    message_hint: "What it takes to check it: the company, its registration number, how to reach you.",
    apply: "Apply for verification",
    rename: "Change the name",
    save: "Save",
};
