//! `/developers/applications/{clientId}/scopes`: what an application asks people for, and requests about it.

use askama::Template;
use domain::member::MemberRole;
use domain::review::{ReviewKind, ReviewState, ReviewSubject};
use domain::{Refusal, ReviewRequestId, Scope, ScopeSet, refusal::Resource};
use service::consents::CountedUsers;
use service::owned_applications::DeveloperApplication;
use service::registration::ScopeChoice;
use service::review_requests::ReviewRequest;
use web::pages::{
    Area, FieldErrors, Flash, Lang, Moment, ScopeLine, Shell, filters, scope_label, scope_with_key,
};
use web::{FormFields, FormTarget, PageAnswer, PathId, PathIds, Person, PostedBy, Visitor};

use super::access::living_application;
use super::frame::{AppFrame, AppTab, address};
use crate::forms::at_field;
use crate::question::{Question, is_sure};

/// The end of the page's path.
const END: &str = "/scopes";

/// A scope that can be chosen.
struct ScopeOption<'a> {
    key: &'static str,
    /// Its name in the language of the page.
    label: &'static str,
    scope: ScopeLine<'a>,
    is_chosen: bool,
    is_pending: bool,
}

/// A request to the operator.
pub(super) struct RequestLine {
    pub what: String,
    pub kind: &'static str,
    pub state: &'static str,
    pub created: Moment,
    pub message: String,
    pub note: Option<String>,
    /// The form that withdraws it, while it is pending.
    pub withdraw: Option<FormTarget>,
}

#[derive(Template)]
#[template(path = "site/developers/scopes.html")]
struct ScopesPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static ScopeTexts,
    r: &'static RequestTexts,
    form: FormTarget,
    drops_form: FormTarget,
    choices: Vec<ScopeOption<'a>>,
    is_reviewed: bool,
    message: &'a str,
    has_drops: bool,
    may_apply: bool,
    requests: Vec<RequestLine>,
    errors: FieldErrors,
    drops_errors: FieldErrors,
}

impl ScopesPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

impl<'a> ScopesPage<'a> {
    async fn new(person: &'a Person, application: &'a DeveloperApplication) -> Result<Self, service::Error> {
        let (visitor, lang) = (&person.visitor, person.visitor.lang());
        let service = visitor.web().service();
        let app = &application.details.life.application;
        let client_id = app.client_id.as_str();
        let requests = service.review_requests_of_application(&app.client_id).await?;
        let is_pending =
            |kind| requests.iter().any(|one| one.kind == kind && one.state == ReviewState::Pending);
        let pending: ScopeSet = requests
            .iter()
            .filter(|one| one.state == ReviewState::Pending)
            .flat_map(|one| one.scopes.iter())
            .collect();
        let choice = |scope: Scope| ScopeOption {
            key: scope.key(),
            label: scope_label(scope, lang),
            scope: ScopeLine::new(scope.name(), lang),
            is_chosen: app.scopes.contains(scope),
            is_pending: pending.contains(scope),
        };
        let is_verified = app.organization.as_ref().is_some_and(|organization| organization.verified);
        let has_drops = app.scopes.contains(Scope::Drops);
        let line = |request: &ReviewRequest| {
            let end = format!("/requests/{}", request.request_id);
            request_line(request, visitor, address(client_id, &end))
        };
        Ok(Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Scopes),
            t: texts(lang),
            r: request_texts(lang),
            form: visitor.form(address(client_id, END)),
            drops_form: visitor.form(address(client_id, "/drops")),
            choices: ScopeSet::of_users().iter().map(choice).collect(),
            is_reviewed: service.developer_settings().reviews_scopes,
            message: "",
            has_drops,
            may_apply: is_verified && !has_drops && !is_pending(ReviewKind::Drops),
            requests: requests.iter().map(line).collect(),
            errors: FieldErrors::default(),
            drops_errors: FieldErrors::default(),
        })
    }
}

/// A request in a list. `withdraw` is the address of the form that withdraws it.
pub(super) fn request_line(request: &ReviewRequest, visitor: &Visitor, withdraw: String) -> RequestLine {
    let lang = visitor.lang();
    let (kind, state) = match request.state {
        ReviewState::Pending => ("warn", lang.pick("심사 중", "Pending")),
        ReviewState::Approved => ("good", lang.pick("승인됨", "Approved")),
        ReviewState::Refused => ("bad", lang.pick("거절됨", "Refused")),
        ReviewState::Withdrawn => ("plain", lang.pick("취소함", "Withdrawn")),
    };
    let what = match request.kind {
        ReviewKind::Organization => lang.pick("조직 인증", "Verification").to_owned(),
        ReviewKind::Drops => lang.pick("드롭스", "Drops (드롭스)").to_owned(),
        ReviewKind::Scopes => {
            let scopes = request.scopes.iter().map(|scope| scope_with_key(scope, lang));
            scopes.collect::<Vec<_>>().join(", ")
        }
    };
    RequestLine {
        what,
        kind,
        state,
        created: Moment::of(request.created_at, visitor.now(), lang),
        message: request.message.clone(),
        note: request.note.clone(),
        withdraw: (request.state == ReviewState::Pending).then(|| visitor.form(withdraw)),
    }
}

/// `GET …/scopes`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    person.visitor.page(&ScopesPage::new(&person, &application).await?)
}

/// The chosen scopes of a form, which has none for drops.
fn chosen(fields: &FormFields) -> ScopeSet {
    let keys = fields.all("scopes");
    ScopeSet::of_users().iter().filter(|scope| keys.contains(&scope.key())).collect()
}

/// `POST …/scopes`: chooses scopes.
pub(super) async fn submit(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let drops = application.details.life.application.scopes.and([Scope::Drops].into_iter().collect());
    let scopes: ScopeSet = chosen(&fields).iter().chain(drops.iter()).collect();
    let message = fields.text("message").trim();
    let removed = application.details.life.application.scopes.without(scopes);
    if !removed.is_empty() && !is_sure(&fields) {
        let losers = service.users_with_any_of(client_id, removed).await?;
        let back = address(client_id.as_str(), END);
        return removal_question(removed, losers, back, visitor.lang()).ask(visitor, &fields);
    }
    match service.choose_scopes(&person.channel_id, client_id, scopes, message).await {
        Ok(choice) => {
            let flash = match choice {
                ScopeChoice::Done => Flash::Saved,
                ScopeChoice::Requested => Flash::Requested,
            };
            Ok(visitor.redirect(&address(client_id.as_str(), END), Some(flash)))
        }
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let mut page = ScopesPage { errors, message, ..ScopesPage::new(&person, &application).await? };
            for choice in &mut page.choices {
                choice.is_chosen = scopes.iter().any(|scope| scope.key() == choice.key);
            }
            visitor.form_again(&page)
        }
    }
}

/// What a removal of scopes means.
fn removal_question(removed: ScopeSet, losers: CountedUsers, back: String, lang: Lang) -> Question {
    let names: Vec<_> = removed.iter().map(|scope| ScopeLine::new(scope.name(), lang).description).collect();
    let CountedUsers { users, is_all } = losers;
    let text = match (lang, users, is_all) {
        (Lang::Ko, 0, true) => "아직 허용한 사용자가 없습니다.".to_owned(),
        (Lang::En, 0, true) => "Nobody has allowed it yet.".to_owned(),
        (Lang::Ko, _, true) => format!("허용한 사용자 {users}명이 바로 잃습니다."),
        (Lang::En, 1, true) => "1 person has allowed it, and loses it at once.".to_owned(),
        (Lang::En, _, true) => format!("{users} people have allowed it, and lose it at once."),
        (Lang::Ko, _, false) => format!("허용한 사용자 {users}명 이상이 바로 잃습니다."),
        (Lang::En, _, false) => format!("At least {users} people have allowed it, and lose it at once."),
    };
    let t = texts(lang);
    Question {
        title: t.removal.to_owned(),
        effects: vec![names.join(", "), text, t.removal_about.to_owned()],
        yes: t.remove_them,
        back,
    }
}

/// `POST …/drops`: asks for the scope of drops, or takes it away.
pub(super) async fn apply_for_drops(PathId(id): PathId, PostedBy { person, fields }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let app = &application.details.life.application;
    let back = address(app.client_id.as_str(), END);
    if fields.is_checked("remove") {
        let kept = app.scopes.without([Scope::Drops].into_iter().collect());
        service.choose_scopes(&person.channel_id, &app.client_id, kept, "").await?;
        return Ok(visitor.redirect(&back, Some(Flash::Saved)));
    }
    let subject = ReviewSubject::Drops(app.client_id.clone());
    match service.submit_review_request(&person.channel_id, subject, fields.text("message").trim()).await {
        Ok(_) => Ok(visitor.redirect(&back, Some(Flash::Requested))),
        Err(error) => {
            let drops_errors = at_field(error, visitor.lang())?;
            visitor.form_again(&ScopesPage { drops_errors, ..ScopesPage::new(&person, &application).await? })
        }
    }
}

/// `POST …/requests/{requestId}`: withdraws a request about the application.
pub(super) async fn withdraw(PathIds(id, request): PathIds, PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let not_found = || Refusal::NotFound(Resource::ReviewRequest);
    let request = ReviewRequestId::parse("requestId", &request).map_err(|_| not_found())?;
    let requests = service.review_requests_of_application(client_id).await?;
    if !requests.iter().any(|one| one.request_id == request) {
        return Err(not_found().into());
    }
    let withdrawn = service.withdraw_review_request(&person.channel_id, &request).await;
    let back = address(client_id.as_str(), END);
    finish_withdrawal(visitor, withdrawn, &back)
}

/// Leads back after a withdrawal. A request that was decided meanwhile is shown as it is.
pub(super) fn finish_withdrawal(
    visitor: &Visitor,
    withdrawn: Result<(), service::Error>,
    back: &str,
) -> PageAnswer {
    match withdrawn {
        Ok(()) => Ok(visitor.redirect(back, Some(Flash::RequestWithdrawn))),
        Err(error) if matches!(error.refusal(), Refusal::Invalid(_)) => Ok(visitor.redirect(back, None)),
        Err(error) => Err(error.into()),
    }
}

struct ScopeTexts {
    title: &'static str,
    removal: &'static str,
    removal_about: &'static str,
    remove_them: &'static str,
    lead: &'static str,
    lead_reviewed: &'static str,
    choose: &'static str,
    acts: &'static str,
    pending: &'static str,
    message: &'static str,
    message_hint: &'static str,
    save: &'static str,
    drops: &'static str,
    drops_about: &'static str,
    drops_has: &'static str,
    drops_needs: &'static str,
    drops_message: &'static str,
    drops_hint: &'static str,
    apply: &'static str,
    remove_drops: &'static str,
    remove_drops_question: &'static str,
}

/// The words of lists of requests.
pub(super) struct RequestTexts {
    pub title: &'static str,
    pub created: &'static str,
    pub message: &'static str,
    pub note: &'static str,
    pub withdraw: &'static str,
    pub withdraw_question: &'static str,
}

pub(super) fn request_texts(lang: Lang) -> &'static RequestTexts {
    match lang {
        Lang::Ko => &REQUEST_KO,
        Lang::En => &REQUEST_EN,
    }
}

const REQUEST_KO: RequestTexts = RequestTexts {
    title: "심사 신청",
    created: "신청한 날",
    message: "신청 사유",
    note: "운영자 답변",
    withdraw: "신청 취소",
    withdraw_question: "심사를 받으려면 다시 신청해야 합니다.",
};

const REQUEST_EN: RequestTexts = RequestTexts {
    title: "Requests to the operator",
    created: "Made",
    message: "Reason",
    note: "The operator’s note",
    withdraw: "Withdraw",
    withdraw_question: "For a decision you have to ask again.",
};

fn texts(lang: Lang) -> &'static ScopeTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ScopeTexts = ScopeTexts {
    title: "권한",
    removal: "이 권한을 뺄까요?",
    removal_about: "이 권한으로 한 이벤트 구독도 바로 끝납니다. 나중에 다시 더하면 사용자가 다시 허용해야 합니다.",
    remove_them: "빼고 저장",
    lead: "앱이 사용자에게 요청할 권한입니다. 필요한 것만 고르세요. 빼면 바로 적용되고, 더하면 사용자가 다시 허용해야 합니다.",
    lead_reviewed: "이 서버에서는 새 권한을 운영자가 심사합니다. 빼는 것은 바로 적용됩니다.",
    choose: "요청할 권한",
    acts: "변경",
    pending: "심사 중",
    message: "새 권한이 필요한 이유",
    message_hint: "새 권한을 더할 때만 필요합니다. 운영자가 읽습니다.",
    save: "저장",
    drops: "드롭스",
    drops_about: "시청 보상을 지급하는 게임과 서비스를 위한 권한입니다. 인증된 조직의 앱만 신청할 수 있습니다.",
    drops_has: "이 앱은 드롭스를 쓸 수 있습니다.",
    drops_needs: "먼저 앱을 인증된 조직으로 옮겨 주세요. 조직 인증은 조직 페이지에서 신청합니다.",
    drops_message: "드롭스를 어떻게 쓸 계획인가요?",
    drops_hint: "게임 이름과 출시 시기, 지급할 보상을 알려 주세요.",
    apply: "드롭스 신청",
    remove_drops: "드롭스 권한 빼기",
    remove_drops_question: "앱은 드롭스를 바로 쓸 수 없게 되고, 다시 쓰려면 새로 신청해야 합니다.",
};

const EN: ScopeTexts = ScopeTexts {
    title: "Scopes",
    removal: "Remove these scopes?",
    removal_about: "Subscriptions to events that need them end at once, too. If you add them again later, people have to allow them again.",
    remove_them: "Remove and save",
    lead: "What the app asks people for. Choose only what it needs. Taking one away has effect at once; after adding one, people have to allow it again.",
    lead_reviewed: "On this server the operator reviews new scopes. Taking one away has effect at once.",
    choose: "Scopes to ask for",
    acts: "Acts",
    pending: "Under review",
    message: "Why the app needs the new scopes",
    message_hint: "Only for new scopes. The operator reads it.",
    save: "Save",
    drops: "Drops (드롭스)",
    drops_about: "For games and services that reward viewers. Only an app of a verified organization can apply.",
    drops_has: "This app may use drops.",
    drops_needs: "Move the app to a verified organization first. An organization applies for verification on its own page.",
    drops_message: "How do you plan to use drops?",
    drops_hint: "Name the game, its release and the rewards.",
    apply: "Apply for drops",
    remove_drops: "Stop using drops",
    remove_drops_question: "The app loses drops at once. To have them again you have to apply again.",
};
