//! `/operator/webhooks`: webhooks that fail or are disabled, with their last messages.

use domain::delivery::DeliveryState;
use domain::limits::WEBHOOK_DELIVERIES_KEPT_MS;
use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::{ClientId, Refusal};
use service::deliveries::DeliveryQuery;
use service::webhooks::{TroubledWebhook, Webhook, WebhookDetails};
use web::pages::{Flash, Lang};
use web::{OperatorPerson, PageAnswer, PathId, PostedByOperator, Visitor, role};

use super::detail::{Act, Detail, DetailTable};
use super::frame::{Badge, Section, Shown, href, not_found, unknown_action};
use super::list::{ItemList, ListRow};
use super::paths::{APPLICATIONS, AUDIT, PAGE_SIZE, WEBHOOKS};
use crate::webhook_words::{delivery_state, disabled_reason, outcome, webhook_state, without_query};

/// Dead letters and waiting messages that the page of a webhook shows.
const MESSAGES_SHOWN: i64 = 10;

/// `GET /operator/webhooks?next=`.
pub(super) async fn list(operator: OperatorPerson<role::Read>) -> PageAnswer {
    let visitor = operator.visitor();
    let lang = visitor.lang();
    let next = visitor.request().parameter("next");
    let page = visitor.web().service().webhooks_in_trouble(PAGE_SIZE, next.as_deref()).await?;
    let list = ItemList {
        section: Section::Webhooks,
        lead: lang.pick(
            "전송에 실패하고 있거나 사용 중지된 웹훅입니다. 다른 웹훅은 애플리케이션에서 볼 수 있습니다.",
            "Webhooks that fail or are disabled. The others are found from their applications.",
        ),
        search: None,
        states: Vec::new(),
        headers: vec![
            lang.pick("애플리케이션", "Application"),
            lang.pick("실패 시작", "Failing since"),
            lang.pick("사용 중지", "Disabled"),
        ],
        rows: page.items.iter().map(|item| row(item, visitor)).collect(),
        empty: (
            lang.pick("문제 있는 웹훅이 없습니다.", "No webhook is in trouble."),
            lang.pick(
                "전송에 실패하기 시작하면 여기에 표시됩니다.",
                "Those that begin to fail are listed here.",
            ),
        ),
        parameters: Vec::new(),
        is_later: next.is_some(),
        next: page.next,
    };
    list.page(&operator)
}

fn row(item: &TroubledWebhook, visitor: &Visitor) -> ListRow {
    let lang = visitor.lang();
    let badge = match item.disabled {
        Some(disabled) => Badge::new("bad", disabled_reason(disabled.reason, lang)),
        None => Badge::new("warn", lang.pick("실패 중", "Failing")),
    };
    ListRow {
        href: format!("{WEBHOOKS}/{}", item.client_id),
        name: item.name.clone(),
        hint: item.client_id.to_string(),
        badges: vec![badge],
        cells: vec![
            Shown::moment(item.failing_since, visitor),
            Shown::moment(item.disabled.map(|disabled| disabled.since), visitor),
        ],
    }
}

/// `GET /operator/webhooks/{clientId}`.
pub(super) async fn show(operator: OperatorPerson<role::Read>, PathId(id): PathId) -> PageAnswer {
    detail(&operator, &client_id(&id)?).await?.page(&operator)
}

/// `POST /operator/webhooks/{clientId}`: what the button says.
pub(super) async fn change(
    PathId(id): PathId,
    PostedByOperator { operator, fields }: PostedByOperator<role::Write>,
) -> PageAnswer {
    let (client_id, service) = (client_id(&id)?, operator.service());
    let visitor = operator.visitor();
    match fields.text("action") {
        "resume" => service.switch_webhook(&client_id, true).await?,
        "pause" => service.switch_webhook(&client_id, false).await?,
        "resend" => {
            let now = visitor.now();
            let (from, until) = (now.plus_ms(-WEBHOOK_DELIVERIES_KEPT_MS), now.plus_ms(1));
            service.resend_deliveries(&client_id, DeliveryState::Dead, from, until).await?;
        }
        _ => return Err(unknown_action().into()),
    }
    Ok(visitor.redirect(visitor.request().path(), Some(Flash::Done)))
}

fn client_id(id: &str) -> Result<ClientId, Refusal> {
    ClientId::parse("clientId", id).map_err(|_| not_found(Resource::Webhook))
}

async fn detail<R>(operator: &OperatorPerson<R>, id: &ClientId) -> Result<Detail, service::Error> {
    let visitor = operator.visitor();
    let (lang, service) = (visitor.lang(), visitor.web().service());
    let WebhookDetails { webhook, notices } = service.webhook_details(id).await?;
    let name = service.application(id).await?.map_or_else(|| id.to_string(), |found| found.name);
    let mut links = vec![(format!("{APPLICATIONS}/{id}"), lang.pick("애플리케이션", "Application"))];
    if operator.role >= OperatorRole::Admin {
        links.push((
            href(AUDIT, &[("subject", id.as_str())]),
            lang.pick("감사 로그에서 보기", "In the audit log"),
        ));
    }
    let notices = DetailTable {
        id: "notices",
        heading: lang.pick("소유자에게 알린 일", "What its owner was told"),
        headers: vec![lang.pick("알림", "Notice"), lang.pick("시각", "When")],
        rows: notices
            .iter()
            .map(|notice| {
                vec![Shown::Code(notice.kind.clone()), Shown::moment(Some(notice.given_at), visitor)]
            })
            .collect(),
        empty: lang.pick("없습니다.", "Nothing."),
    };
    Ok(Detail {
        section: Section::Webhooks,
        name,
        id: id.to_string(),
        badges: badges(&webhook, lang),
        facts: facts(&webhook, visitor),
        tables: vec![messages(visitor, id).await?, notices],
        links,
        once: None,
        form: visitor.form(format!("{WEBHOOKS}/{id}")),
        acts: if operator.role >= OperatorRole::Write { acts(&webhook, lang) } else { Vec::new() },
        choice: None,
    })
}

fn badges(webhook: &Webhook, lang: Lang) -> Vec<Badge> {
    let (kind, text) = webhook_state(webhook, lang);
    let state = Badge::new(kind, text);
    let idle = (!webhook.receives)
        .then(|| Badge::new("plain", lang.pick("드롭스를 쓸 수 없음", "May not use drops")));
    [Some(state), idle].into_iter().flatten().collect()
}

fn facts(webhook: &Webhook, visitor: &Visitor) -> Vec<(&'static str, Shown)> {
    let lang = visitor.lang();
    let listener = lang.pick("수신 프로그램이 가져감", "A listener fetches them");
    let address = webhook.url.as_deref().map(without_query);
    let address = address.map_or(Shown::Text(listener.to_owned()), |url| Shown::Code(url.to_owned()));
    vec![
        (lang.pick("주소", "Address"), address),
        (lang.pick("실패 시작", "Failing since"), Shown::moment(webhook.failing_since, visitor)),
        (
            lang.pick("사용 중지", "Disabled"),
            Shown::moment(webhook.disabled.map(|disabled| disabled.since), visitor),
        ),
        (lang.pick("등록", "Registered"), Shown::moment(Some(webhook.created_at), visitor)),
        (lang.pick("바뀜", "Changed"), Shown::moment(Some(webhook.changed_at), visitor)),
    ]
}

/// The newest dead letters and waiting messages, each with what its last attempt came to.
async fn messages(visitor: &Visitor, id: &ClientId) -> Result<DetailTable, service::Error> {
    let (lang, service) = (visitor.lang(), visitor.web().service());
    let mut rows = Vec::new();
    for state in [DeliveryState::Dead, DeliveryState::Waiting] {
        let query = DeliveryQuery { state: Some(state), ..DeliveryQuery::default() };
        for delivery in service.webhook_deliveries(id, query, MESSAGES_SHOWN, None).await?.deliveries {
            let attempts = service.webhook_delivery(id, &delivery.message_id).await?.attempts;
            let (kind, text) = delivery_state(state, lang);
            let state = Badge::new(kind, text);
            rows.push(vec![
                Shown::Code(delivery.message_id.to_string()),
                Shown::Badge(state),
                Shown::Text(delivery.attempts.to_string()),
                attempts.first().map_or(Shown::Nothing, |attempt| Shown::Text(outcome(attempt, lang))),
                Shown::moment(Some(delivery.created_at), visitor),
            ]);
        }
    }
    Ok(DetailTable {
        id: "messages",
        heading: lang.pick("전달되지 않은 메시지", "Messages that were not delivered"),
        headers: vec![
            lang.pick("메시지", "Message"),
            lang.pick("상태", "State"),
            lang.pick("시도", "Attempts"),
            lang.pick("마지막 결과", "Last outcome"),
            lang.pick("작성", "Written"),
        ],
        rows,
        empty: lang.pick("없습니다.", "There is none."),
    })
}

fn acts(webhook: &Webhook, lang: Lang) -> Vec<Act> {
    let switch = if webhook.disabled.is_some() {
        Act::new(
            "resume",
            lang.pick("사용 재개", "Enable"),
            lang.pick("기다리던 메시지를 바로 보냅니다.", "Waiting messages are sent at once."),
        )
    } else {
        Act::danger(
            "pause",
            lang.pick("사용 중지", "Disable"),
            lang.pick(
                "재개할 때까지 메시지를 보내지 않습니다.",
                "No message is sent until it is enabled again.",
            ),
        )
    };
    let resend = Act::new(
        "resend",
        lang.pick("포기한 메시지 다시 보내기", "Send what was given up again"),
        lang.pick(
            "최근 30일 동안 포기한 메시지를 오래된 것부터 10,000개까지 다시 보냅니다.",
            "Sends the messages that were given up within 30 days again, oldest first, up to 10,000.",
        ),
    );
    vec![switch, resend]
}
