//! `/developers/applications/{clientId}/webhook/deliveries`: the messages to a webhook.

use askama::Template;
use domain::application::percent_encode;
use domain::delivery::DeliveryState;
use domain::limits::{DELIVERY_PAGE_SIZE_DEFAULT, WEBHOOK_DELIVERIES_KEPT_MS};
use domain::member::MemberRole;
use domain::webhook::MessageKind;
use domain::{ClientId, Invalid, Refusal, Rule};
use service::deliveries::{Delivery, DeliveryPage, DeliveryQuery};
use web::pages::{Area, Flash, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy, Visitor};

use super::access::living_application;
use super::frame::{AppFrame, AppTab, address};
use super::webhook_texts::{DeliveryTexts, delivery_texts};
use crate::webhook_words::{delivery_state, message_kind};

/// The end of the page's path.
pub(super) const END: &str = "/webhook/deliveries";
/// The value of the filter that shows test messages only.
const TESTS: &str = "tests";

/// A message in the list.
struct DeliveryRow {
    href: String,
    message_id: String,
    kind: &'static str,
    is_test: bool,
    claim_id: Option<String>,
    state: (&'static str, &'static str),
    attempts: i64,
    created: Moment,
    next_attempt: Option<Moment>,
}

impl DeliveryRow {
    fn new(delivery: &Delivery, list: &str, visitor: &Visitor) -> Self {
        let lang = visitor.lang();
        let moment = |at| Moment::of(at, visitor.now(), lang);
        let kind = MessageKind::about(delivery.claim_id.as_ref());
        Self {
            href: format!("{list}/{}", delivery.message_id),
            message_id: delivery.message_id.to_string(),
            kind: message_kind(kind, lang),
            is_test: kind == MessageKind::Test,
            claim_id: delivery.claim_id.as_ref().map(ToString::to_string),
            state: delivery_state(delivery.state, lang),
            attempts: delivery.attempts,
            created: moment(delivery.created_at),
            next_attempt: next_attempt(delivery).map(moment),
        }
    }
}

/// When the next attempt of a message is due.
pub(super) fn next_attempt(delivery: &Delivery) -> Option<domain::Timestamp> {
    (delivery.state == DeliveryState::Waiting && !delivery.in_flight).then_some(delivery.due_at)
}

/// A part of the list.
struct FilterLink {
    href: String,
    label: &'static str,
    is_here: bool,
}

#[derive(Template)]
#[template(path = "site/developers/deliveries.html")]
struct DeliveriesPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static DeliveryTexts,
    list: String,
    back: String,
    filters: Vec<FilterLink>,
    /// The id that was searched and not found.
    missing: Option<String>,
    rows: Vec<DeliveryRow>,
    first: Option<String>,
    next: Option<String>,
    /// The form that sends everything again that was given up.
    resend: Option<FormTarget>,
}

impl DeliveriesPage<'_> {
    fn title(&self) -> &'static str {
        self.t.list
    }
}

/// `GET …/webhook/deliveries?show=&id=&next=`.
pub(super) async fn list(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Viewer).await?;
    let visitor = &person.visitor;
    let (service, t) = (visitor.web().service(), delivery_texts(visitor.lang()));
    let client_id = &application.details.life.application.client_id;
    let list = address(client_id.as_str(), END);
    let parameter = |name| visitor.request().parameter(name).unwrap_or_default();
    let (shown, searched, cursor) = (parameter("show"), parameter("id"), parameter("next"));
    let searched = searched.trim();
    if !searched.is_empty()
        && let Some(message) = service.find_delivery(client_id, searched).await?
    {
        return Ok(visitor.redirect(&format!("{list}/{message}"), None));
    }
    let page = match read(visitor, client_id, &shown, &cursor).await {
        // A cursor of another list or of an older key begins again.
        Err(error) if is_cursor(&error.refusal()) => return Ok(visitor.redirect(&list, None)),
        page => page?,
    };
    let is_dead = shown == DeliveryState::Dead.name();
    let may_resend = is_dead && !page.deliveries.is_empty() && application.role >= MemberRole::Developer;
    let link = |(value, label): (&str, &'static str)| FilterLink {
        href: if value.is_empty() { list.clone() } else { format!("{list}?show={value}") },
        label,
        is_here: value == shown,
    };
    visitor.page(&DeliveriesPage {
        shell: visitor.shell(Area::Developers),
        frame: AppFrame::new(visitor, &application, AppTab::Webhook),
        t,
        back: address(client_id.as_str(), "/webhook"),
        filters: filters(t).into_iter().map(link).collect(),
        missing: Some(searched.to_owned()).filter(|searched| !searched.is_empty()),
        rows: page.deliveries.iter().map(|delivery| DeliveryRow::new(delivery, &list, visitor)).collect(),
        first: (!cursor.is_empty()).then(|| further(&list, &shown, "")),
        next: page.next.map(|next| further(&list, &shown, &next)),
        resend: may_resend.then(|| visitor.form(list.clone())),
        list,
    })
}

/// Each part of the list: the value of the parameter, and its name.
const fn filters(t: &DeliveryTexts) -> [(&'static str, &'static str); 5] {
    [
        ("", t.all),
        (DeliveryState::Waiting.name(), t.waiting),
        (DeliveryState::Delivered.name(), t.delivered),
        (DeliveryState::Dead.name(), t.dead),
        (TESTS, t.tests),
    ]
}

async fn read(
    visitor: &Visitor,
    client_id: &ClientId,
    shown: &str,
    cursor: &str,
) -> Result<DeliveryPage, service::Error> {
    let service = visitor.web().service();
    let cursor = Some(cursor).filter(|cursor| !cursor.is_empty());
    if shown == TESTS {
        return service.test_messages(client_id, DELIVERY_PAGE_SIZE_DEFAULT, cursor).await;
    }
    let query = DeliveryQuery { state: DeliveryState::from_name(shown), ..DeliveryQuery::default() };
    service.webhook_deliveries(client_id, query, DELIVERY_PAGE_SIZE_DEFAULT, cursor).await
}

fn is_cursor(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Invalid(Invalid { rule: Rule::Cursor, .. }))
}

/// The address of another page of the list.
fn further(list: &str, shown: &str, next: &str) -> String {
    let mut address = format!("{list}?show=");
    percent_encode(shown, &mut address);
    if !next.is_empty() {
        address.push_str("&next=");
        percent_encode(next, &mut address);
    }
    address
}

/// `POST …/webhook/deliveries`: sends the messages again that were given up.
pub(super) async fn resend(PathId(id): PathId, PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let visitor = &person.visitor;
    let client_id = &application.details.life.application.client_id;
    let now = visitor.now();
    let (from, until) = (now.plus_ms(-WEBHOOK_DELIVERIES_KEPT_MS), now.plus_ms(1));
    let service = person.service();
    service.resend_deliveries(client_id, DeliveryState::Dead, from, until).await?;
    Ok(visitor.redirect(&address(client_id.as_str(), END), Some(Flash::Done)))
}
