//! `/operator/requests`: what people ask for, to be approved or refused: the verification of an organization,
//! drops and further scopes for an application.

use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::review::{Decision, ReviewKind, ReviewState};
use domain::{Refusal, ReviewRequestId};
use service::review_requests::{ReviewDecision, ReviewRequest};
use web::pages::{Flash, Lang, scope_with_key};
use web::{OperatorPerson, PageAnswer, PathId, PostedByOperator, Visitor, role};

use super::detail::{Act, Detail};
use super::frame::{Badge, Section, Shown, href, not_found, unknown_action};
use super::list::{ItemList, ListRow, StateLink};
use super::paths::{APPLICATIONS, ORGANIZATIONS, PAGE_SIZE, PEOPLE, REQUESTS};

/// `GET /operator/requests?state=&next=`.
pub(super) async fn list(operator: OperatorPerson<role::Read>) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let state = visitor.request().parameter("state").unwrap_or_default();
    let state = ReviewState::from_name(&state).unwrap_or(ReviewState::Pending);
    let next = visitor.request().parameter("next");
    let page = visitor.web().service().review_requests(state, PAGE_SIZE, next.as_deref()).await?;
    let list = ItemList {
        section: Section::Requests,
        lead: lang.pick(
            "조직의 인증과 애플리케이션의 권한에 대한 요청입니다. 오래된 것부터 표시합니다.",
            "Requests for the verification of organizations and for scopes of applications, the oldest first.",
        ),
        search: None,
        states: states(state, lang),
        headers: vec![
            lang.pick("대상", "About"),
            lang.pick("요청", "Asks for"),
            lang.pick("요청한 사람", "Asked by"),
            lang.pick("요청한 때", "Asked"),
        ],
        rows: page.items.iter().map(|request| row(request, visitor)).collect(),
        empty: (
            lang.pick("요청이 없습니다.", "There is no request."),
            lang.pick("개발자가 요청하면 여기에 표시됩니다.", "Those that developers make are listed here."),
        ),
        parameters: vec![("state", state.name().to_owned())],
        is_later: next.is_some(),
        next: page.next,
    };
    list.page(&operator)
}

fn states(here: ReviewState, lang: Lang) -> Vec<StateLink> {
    let link = |state: ReviewState| StateLink {
        href: href(REQUESTS, &[("state", state.name())]),
        label: state_name(state, lang),
        is_here: state == here,
    };
    ReviewState::ALL.into_iter().map(link).collect()
}

const fn state_name(state: ReviewState, lang: Lang) -> &'static str {
    match state {
        ReviewState::Pending => lang.pick("결정 전", "Pending"),
        ReviewState::Approved => lang.pick("승인함", "Approved"),
        ReviewState::Refused => lang.pick("거절함", "Refused"),
        ReviewState::Withdrawn => lang.pick("취소됨", "Withdrawn"),
    }
}

const fn kind_name(kind: ReviewKind, lang: Lang) -> &'static str {
    match kind {
        ReviewKind::Organization => lang.pick("조직 인증", "Verification"),
        ReviewKind::Drops => lang.pick("드롭스", "Drops"),
        ReviewKind::Scopes => lang.pick("권한 추가", "Further scopes"),
    }
}

/// The name of what a request is about. The name of an application or an organization that was deleted is
/// gone.
fn subject(request: &ReviewRequest) -> String {
    let names = [&request.application_name, &request.organization_name];
    let id = request.client_id.as_ref().map(ToString::to_string);
    names.into_iter().flatten().next().cloned().or(id).unwrap_or_default()
}

fn row(request: &ReviewRequest, visitor: &Visitor) -> ListRow {
    let lang = visitor.lang();
    ListRow {
        href: format!("{REQUESTS}/{}", request.request_id),
        name: subject(request),
        hint: String::new(),
        badges: Vec::new(),
        cells: vec![
            Shown::Text(kind_name(request.kind, lang).to_owned()),
            Shown::Link {
                href: format!("{PEOPLE}/{}", request.requested_by),
                text: request.requested_by_name.clone(),
            },
            Shown::moment(Some(request.created_at), visitor),
        ],
    }
}

/// `GET /operator/requests/{requestId}`.
pub(super) async fn show(operator: OperatorPerson<role::Read>, PathId(id): PathId) -> PageAnswer {
    detail(&operator, &request_id(&id)?).await?.page(&operator)
}

/// `POST /operator/requests/{requestId}`: the decision. The first one counts.
pub(super) async fn decide(
    PathId(id): PathId,
    PostedByOperator { operator, fields }: PostedByOperator<role::Write>,
) -> PageAnswer {
    let request_id = request_id(&id)?;
    let action = fields.text("action");
    let decision = match action {
        "approve" => Decision::Approve,
        "refuse" => Decision::Refuse,
        _ => return Err(unknown_action().into()),
    };
    let note = Some(fields.text("note").trim().to_owned()).filter(|note| !note.is_empty());
    let decided_by = operator.person.channel_id.to_string();
    let decided = operator
        .service()
        .decide_review_request(&request_id, ReviewDecision { decision, note, decided_by })
        .await;
    let visitor = operator.visitor();
    match decided {
        Ok(()) => Ok(visitor.redirect(REQUESTS, Some(Flash::Done))),
        Err(error) => {
            let Refusal::Invalid(invalid) = error.refusal() else { return Err(error.into()) };
            let text = invalid.rule.text(visitor.lang().into()).into_owned();
            let detail = detail(&operator, &request_id).await?;
            if detail.acts.is_empty() {
                return Err(error.into());
            }
            detail.refused(action, &text).page(&operator)
        }
    }
}

fn request_id(id: &str) -> Result<ReviewRequestId, Refusal> {
    ReviewRequestId::parse("requestId", id).map_err(|_| not_found(Resource::ReviewRequest))
}

async fn detail<R>(operator: &OperatorPerson<R>, id: &ReviewRequestId) -> Result<Detail, service::Error> {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let request = visitor.web().service().review_request(id).await?;
    let may_decide = operator.role >= OperatorRole::Write && request.state == ReviewState::Pending;
    let kind = match request.state {
        ReviewState::Pending => "warn",
        ReviewState::Approved => "good",
        ReviewState::Refused => "bad",
        ReviewState::Withdrawn => "plain",
    };
    Ok(Detail {
        section: Section::Requests,
        name: subject(&request),
        id: id.to_string(),
        badges: vec![Badge::new(kind, state_name(request.state, lang))],
        facts: facts(&request, visitor),
        tables: Vec::new(),
        links: Vec::new(),
        once: None,
        form: visitor.form(format!("{REQUESTS}/{id}")),
        acts: if may_decide { acts(lang) } else { Vec::new() },
        choice: None,
    })
}

fn facts(request: &ReviewRequest, visitor: &Visitor) -> Vec<(&'static str, Shown)> {
    let lang = visitor.lang();
    let link = |path: &str, id: Option<String>, name: Option<&String>| match (id, name) {
        (Some(id), Some(name)) => Shown::Link { href: format!("{path}/{id}"), text: name.clone() },
        _ => Shown::Nothing,
    };
    let client_id = request.client_id.as_ref().map(ToString::to_string);
    let organization_id = request.organization_id.as_ref().map(ToString::to_string);
    let scopes: Vec<_> = request.scopes.iter().map(|scope| scope_with_key(scope, lang)).collect();
    let mut facts = vec![
        (lang.pick("요청", "Asks for"), Shown::Text(kind_name(request.kind, lang).to_owned())),
        (
            lang.pick("애플리케이션", "Application"),
            link(APPLICATIONS, client_id, request.application_name.as_ref()),
        ),
        (
            lang.pick("조직", "Organization"),
            link(ORGANIZATIONS, organization_id, request.organization_name.as_ref()),
        ),
        (
            lang.pick("요청한 사람", "Asked by"),
            link(PEOPLE, Some(request.requested_by.to_string()), Some(&request.requested_by_name)),
        ),
        (lang.pick("요청한 때", "Asked"), Shown::moment(Some(request.created_at), visitor)),
    ];
    if !scopes.is_empty() {
        facts.push((lang.pick("권한", "Scopes"), Shown::Prose(scopes.join(", "))));
    }
    facts.push((lang.pick("이유", "Why"), Shown::Prose(request.message.clone())));
    if request.decided_at.is_some() {
        facts.push((lang.pick("결정한 때", "Decided"), Shown::moment(request.decided_at, visitor)));
        let by = request.decided_by.clone();
        facts.push((lang.pick("결정한 사람", "Decided by"), by.map_or(Shown::Nothing, Shown::Text)));
        let note = request.note.clone();
        facts.push((lang.pick("남긴 말", "Note"), note.map_or(Shown::Nothing, Shown::Prose)));
    }
    facts
}

fn acts(lang: Lang) -> Vec<Act> {
    let note = lang.pick("요청한 사람이 읽을 말 (선택)", "What the person who asked reads (optional)");
    let approve = Act::new(
        "approve",
        lang.pick("승인", "Approve"),
        lang.pick("바로 적용됩니다.", "It takes effect at once."),
    );
    let refuse = Act::danger(
        "refuse",
        lang.pick("거절", "Refuse"),
        lang.pick("이유를 남기면 요청한 사람이 고칠 수 있습니다.", "With a reason the person can do better."),
    );
    vec![approve.with_note(note), refuse.with_note(note)]
}
