//! `/operator/applications`: applications, searched, shown, disabled, restored and deleted.

use domain::limits::AFFECTED_COUNTED_MAX;
use domain::operator_key::OperatorRole;
use domain::quota::QuotaShare;
use domain::refusal::Resource;
use domain::{ChannelId, ClientId, Refusal};
use service::SessionFilter;
use service::application_life::{ApplicationDetails, ApplicationLife};
use service::application_switch::ApplicationSearch;
use service::leaked_credentials::Affected;
use service::webhooks::WebhookDetails;
use web::pages::{Flash, Lang, scope_with_key};
use web::{OperatorPerson, PageAnswer, PathId, PostedByOperator, Visitor, role};

use super::application_secrets::{leak_acts, secrets_table};
use super::detail::{Act, Choice, Detail};
use super::frame::{Badge, Section, Shown, href, not_found, unknown_action};
use super::list::{ItemList, ListRow, Search, StateLink, nothing_here, searched};
use super::paths::{APPLICATIONS, AUDIT, ORGANIZATIONS, PAGE_SIZE, PEOPLE, WEBHOOKS};
use super::related::sessions_of;
use crate::confirmed::Confirmed;

/// The field of the form with the part of the quotas.
const PERCENT: &str = "percent";
/// The parts of the quotas that the form offers.
const PARTS: [i64; 6] = [100, 50, 25, 10, 5, 1];

const STATES: [&str; 3] = ["", "disabled", "restorable"];

/// `GET /operator/applications?q=&state=&next=`.
pub(super) async fn list(operator: OperatorPerson<role::Read>) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let parameter = |name| visitor.request().parameter(name).unwrap_or_default();
    let (text, state) = (searched(&parameter("q")), parameter("state"));
    let state = STATES.into_iter().find(|known| *known == state).unwrap_or_default();
    let next = visitor.request().parameter("next");
    let (service, next) = (visitor.web().service(), next.as_deref());
    let page = match (state, text.is_empty()) {
        ("disabled", _) => service.search_applications(ApplicationSearch::Disabled, PAGE_SIZE, next).await?,
        ("restorable", _) => {
            service.search_applications(ApplicationSearch::Restorable, PAGE_SIZE, next).await?
        }
        (_, true) => service.search_applications(ApplicationSearch::All, PAGE_SIZE, next).await?,
        (_, false) => service.applications_called(&text, PAGE_SIZE, next).await?,
    };
    let list = ItemList {
        section: Section::Applications,
        lead: lang.pick(
            "이름의 일부나 ID로 찾습니다. 대소문자는 구별하지 않습니다.",
            "Find them by a part of their name, in any case, or by their id.",
        ),
        search: Some(Search::of(&text, lang.pick("이름 또는 ID", "Name or id"), lang)),
        states: states(state, lang),
        headers: vec![
            lang.pick("애플리케이션", "Application"),
            lang.pick("조직", "Organization"),
            lang.pick("등록", "Registered"),
            lang.pick("마지막 사용", "Last used"),
        ],
        rows: page.applications.iter().map(|life| row(life, visitor)).collect(),
        empty: (
            lang.pick("찾은 애플리케이션이 없습니다.", "No application was found."),
            nothing_here(page.next.is_some(), lang),
        ),
        parameters: vec![("q", text), ("state", state.to_owned())],
        is_later: next.is_some(),
        next: page.next,
    };
    list.page(&operator)
}

fn states(here: &str, lang: Lang) -> Vec<StateLink> {
    let label = |state: &str| match state {
        "disabled" => lang.pick("사용 중지됨", "Disabled"),
        "restorable" => lang.pick("복구할 수 있음", "Restorable"),
        _ => lang.pick("모두", "All"),
    };
    let link = |state: &'static str| StateLink {
        href: href(APPLICATIONS, &[("state", state)]),
        label: label(state),
        is_here: state == here,
    };
    STATES.into_iter().map(link).collect()
}

/// What is special about an application.
fn badges(life: &ApplicationLife, lang: Lang) -> Vec<Badge> {
    let disabled = life.disabled_at.map(|_| Badge::new("bad", lang.pick("사용 중지됨", "Disabled")));
    let deleted = life.deleted_at.map(|_| Badge::new("warn", lang.pick("삭제됨", "Deleted")));
    let warned = (!life.notices.is_empty() && life.deleted_at.is_none())
        .then(|| Badge::new("warn", lang.pick("미사용 경고", "Unused")));
    let quota = match life.application.quota {
        QuotaShare::Unlimited => Some(Badge::new("plain", lang.pick("할당량 없음", "No quotas"))),
        share if share.is_lowered() => Some(Badge::new("warn", lang.pick("할당량 낮춤", "Lowered quotas"))),
        QuotaShare::Percent(_) => None,
    };
    [disabled, deleted, warned, quota].into_iter().flatten().collect()
}

fn row(life: &ApplicationLife, visitor: &Visitor) -> ListRow {
    let application = &life.application;
    let organization = application.organization.as_ref();
    ListRow {
        href: format!("{APPLICATIONS}/{}", application.client_id),
        name: application.name.clone(),
        hint: application.client_id.to_string(),
        badges: badges(life, visitor.lang()),
        cells: vec![
            organization.map_or(Shown::Nothing, |organization| Shown::Link {
                href: format!("{ORGANIZATIONS}/{}", organization.organization_id),
                text: organization.name.clone(),
            }),
            Shown::moment(Some(life.created_at), visitor),
            last_use(life, visitor),
        ],
    }
}

/// `GET /operator/applications/{clientId}`.
pub(super) async fn show(operator: OperatorPerson<role::Read>, PathId(id): PathId) -> PageAnswer {
    detail(&operator, &client_id(&id)?).await?.page(&operator)
}

/// `POST /operator/applications/{clientId}`: what the button says.
pub(super) async fn change(
    PathId(id): PathId,
    Confirmed(PostedByOperator { operator, fields }): Confirmed<PostedByOperator<role::Write>>,
) -> PageAnswer {
    let (client_id, service) = (client_id(&id)?, operator.service());
    let visitor = operator.visitor();
    match fields.text("action") {
        "disable" => service.disable_application(&client_id).await?,
        "enable" => service.enable_application(&client_id).await?,
        "restore" => service.restore_application(&client_id).await?,
        "end-tokens" => {
            service.end_application_tokens(&client_id).await?;
            return Ok(visitor.redirect(visitor.request().path(), Some(Flash::TokensEnded)));
        }
        "revoke-secrets" => {
            service.delete_all_secrets(&client_id).await?;
            return Ok(visitor.redirect(visitor.request().path(), Some(Flash::SecretsRevoked)));
        }
        "quota-on" => service.set_application_quota(&client_id, true).await?,
        "quota-off" => service.set_application_quota(&client_id, false).await?,
        "" => {
            let share = fields.text(PERCENT).parse().ok().and_then(QuotaShare::percent);
            service.set_quota_share(&client_id, share.ok_or_else(unknown_action)?).await?;
        }
        "delete" if fields.text("confirm") == client_id.as_str() => {
            service.delete_application(&client_id).await?;
            return Ok(visitor.redirect(APPLICATIONS, Some(Flash::Done)));
        }
        "delete" => {
            let detail = detail(&operator, &client_id).await?;
            return detail.mistyped("delete", &operator).page(&operator);
        }
        _ => return Err(unknown_action().into()),
    }
    Ok(visitor.redirect(visitor.request().path(), Some(Flash::Done)))
}

fn last_use(life: &ApplicationLife, visitor: &Visitor) -> Shown {
    let never = || Shown::Text(visitor.lang().pick("아직 없음", "Not yet").to_owned());
    life.last_use().map_or_else(never, |at| Shown::moment(Some(at), visitor))
}

fn client_id(id: &str) -> Result<ClientId, Refusal> {
    ClientId::parse("clientId", id).map_err(|_| not_found(Resource::Application))
}

/// The webhook of an application, if it has one.
async fn webhook_of(visitor: &Visitor, id: &ClientId) -> Result<Option<WebhookDetails>, service::Error> {
    match visitor.web().service().webhook_details(id).await {
        Ok(details) => Ok(Some(details)),
        Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn detail<R>(operator: &OperatorPerson<R>, id: &ClientId) -> Result<Detail, service::Error> {
    let visitor = operator.visitor();
    let (lang, service) = (visitor.lang(), visitor.web().service());
    let ApplicationDetails { life, redirect_uris } = service.application_details(id).await?;
    let (secrets, affected) = (service.secrets(id).await?, service.affected_by(id).await?);
    let owner = owner(visitor, life.application.owner.as_ref()).await?;
    let webhook = webhook_of(visitor, id).await?;
    let application = &life.application;
    let organization = application.organization.as_ref();
    let scopes: Vec<_> = application.scopes.iter().map(|scope| scope_with_key(scope, lang)).collect();
    let prose = |text: String| if text.is_empty() { Shown::Nothing } else { Shown::Prose(text) };
    let quota = match application.quota {
        QuotaShare::Unlimited => lang.pick("적용 안 함", "Off").to_owned(),
        QuotaShare::Percent(percent) => format!("{percent} %"),
    };
    let facts = vec![
        (
            lang.pick("조직", "Organization"),
            organization.map_or(Shown::Nothing, |organization| Shown::Link {
                href: format!("{ORGANIZATIONS}/{}", organization.organization_id),
                text: organization.name.clone(),
            }),
        ),
        (lang.pick("소유자", "Owner"), owner),
        (lang.pick("토큰이 있는 사람", "People with tokens"), Shown::Text(counted(affected.users))),
        (lang.pick("연결된 세션", "Connected sessions"), Shown::Text(counted(affected.sessions))),
        (lang.pick("할당량", "Quotas"), Shown::Text(quota)),
        (lang.pick("등록", "Registered"), Shown::moment(Some(life.created_at), visitor)),
        (lang.pick("마지막 사용", "Last used"), last_use(&life, visitor)),
        (lang.pick("사용 중지", "Disabled"), Shown::moment(life.disabled_at, visitor)),
        (lang.pick("웹훅", "Webhook"), webhook_fact(webhook.as_ref(), id, lang)),
        (lang.pick("권한", "Scopes"), prose(scopes.join("\n"))),
        (lang.pick("리디렉션 주소", "Redirect addresses"), prose(redirect_uris.join("\n"))),
    ];
    let sessions = SessionFilter { client_id: Some(id.clone()), ..SessionFilter::default() };
    let mut links = Vec::new();
    if operator.role >= OperatorRole::Admin {
        links.push((
            href(AUDIT, &[("subject", id.as_str())]),
            lang.pick("감사 로그에서 보기", "In the audit log"),
        ));
    }
    let acts = if operator.role >= OperatorRole::Write { acts(&life, affected, lang) } else { Vec::new() };
    Ok(Detail {
        section: Section::Applications,
        name: application.name.clone(),
        id: id.to_string(),
        badges: badges(&life, lang),
        facts,
        tables: vec![secrets_table(id, &secrets, visitor), sessions_of(visitor, sessions).await?],
        links,
        once: None,
        form: visitor.form(format!("{APPLICATIONS}/{id}")),
        acts,
        choice: (operator.role >= OperatorRole::Write).then(|| quota_choice(application.quota, id, visitor)),
    })
}

/// The form with the part of the quotas that an application has.
fn quota_choice(share: QuotaShare, id: &ClientId, visitor: &Visitor) -> Choice {
    let lang = visitor.lang();
    let mut parts = PARTS.to_vec();
    let here = match share {
        QuotaShare::Percent(chosen) => Some(i64::from(chosen)),
        QuotaShare::Unlimited => None,
    };
    // A part that was chosen over the platform API may be another one.
    if let Some(chosen) = here
        && !parts.contains(&chosen)
    {
        parts.push(chosen);
        parts.sort_by_key(|percent| -percent);
    }
    Choice {
        form: visitor.form(format!("{APPLICATIONS}/{id}")),
        heading: lang.pick("할당량 비율", "Part of the quotas"),
        about: lang.pick(
            "이 애플리케이션과 그 유저에게 적용되는 모든 할당량을 이 비율로 낮춥니다. 몇 초 안에 모든 노드에 적용되고, 다른 애플리케이션에는 영향이 없습니다.",
            "Every quota of this application and of its users gets this part. All nodes follow within seconds. Other applications do not feel it.",
        ),
        field: PERCENT,
        label: lang.pick("비율", "Part"),
        options: parts
            .into_iter()
            .map(|percent| (percent.to_string(), format!("{percent} %"), here == Some(percent)))
            .collect(),
        button: lang.pick("적용", "Apply"),
    }
}

fn webhook_fact(webhook: Option<&WebhookDetails>, id: &ClientId, lang: Lang) -> Shown {
    let Some(WebhookDetails { webhook, .. }) = webhook else { return Shown::Nothing };
    let text = match (&webhook.disabled, webhook.failing_since) {
        (Some(_), _) => lang.pick("사용 중지됨", "Disabled"),
        (None, Some(_)) => lang.pick("실패 중", "Failing"),
        (None, None) => lang.pick("정상", "Works"),
    };
    Shown::Link { href: format!("{WEBHOOKS}/{id}"), text: text.to_owned() }
}

/// A number that is counted up to a limit.
fn counted(count: i64) -> String {
    if count < AFFECTED_COUNTED_MAX { count.to_string() } else { format!("{AFFECTED_COUNTED_MAX}+") }
}

/// The person who owns an application, by name.
async fn owner(visitor: &Visitor, owner: Option<&ChannelId>) -> Result<Shown, service::Error> {
    let Some(owner) = owner else { return Ok(Shown::Nothing) };
    let name = match visitor.web().service().channel_details(owner).await {
        Ok(channel) => channel.name,
        Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => owner.to_string(),
        Err(error) => return Err(error),
    };
    Ok(Shown::Link { href: format!("{PEOPLE}/{owner}"), text: name })
}

fn acts(life: &ApplicationLife, affected: Affected, lang: Lang) -> Vec<Act> {
    let mut acts: Vec<Act> = leak_acts(affected, lang).into();
    if life.deleted_at.is_some() {
        acts.push(Act::new(
            "restore",
            lang.pick("복구", "Restore"),
            lang.pick(
                "시크릿과 동의, 만료되지 않은 토큰이 다시 유효해집니다.",
                "Its secrets, its consents and its unexpired tokens are valid again.",
            ),
        ));
    }
    acts.push(if life.disabled_at.is_some() {
        Act::new(
            "enable",
            lang.pick("사용 재개", "Enable"),
            lang.pick(
                "시크릿과 만료되지 않은 토큰이 다시 유효해집니다. 유출된 것이 있다면 먼저 토큰과 시크릿을 끝내세요.",
                "Its secrets and its unexpired tokens are valid again. If some were stolen, end tokens and secrets first.",
            ),
        )
    } else {
        Act::danger(
            "disable",
            lang.pick("사용 중지", "Disable"),
            lang.pick(
                "시크릿과 토큰이 바로 거부되고 세션이 끝납니다. 다시 사용하게 할 수 있습니다.",
                "Its secrets and tokens are refused at once, and its sessions end. You can enable it again.",
            ),
        )
    });
    acts.push(if life.application.quota.is_limited() {
        Act::new(
            "quota-off",
            lang.pick("할당량 적용 안 함", "Turn quotas off"),
            lang.pick(
                "이 애플리케이션의 호출은 횟수 때문에 거부되지 않습니다.",
                "Its calls are never refused for their number.",
            ),
        )
    } else {
        Act::new(
            "quota-on",
            lang.pick("할당량 적용", "Turn quotas on"),
            lang.pick(
                "다른 애플리케이션과 같은 할당량이 적용됩니다.",
                "It gets the quotas of every application.",
            ),
        )
    });
    let delete = Act::danger(
        "delete",
        lang.pick("영구 삭제", "Delete for good"),
        lang.pick(
            "시크릿, 동의, 토큰, 세션, 웹훅이 삭제됩니다. 되돌릴 수 없습니다.",
            "Its secrets, consents, tokens, sessions and webhook are deleted. This cannot be undone.",
        ),
    );
    acts.push(delete.typing(life.application.client_id.as_str()));
    acts
}
