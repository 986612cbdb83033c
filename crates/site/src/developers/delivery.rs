//! `/developers/applications/{clientId}/webhook/deliveries/{messageId}`: one message to a webhook, with its
//! attempts.

use askama::Template;
use domain::delivery::DeliveryState;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::webhook::MessageKind;
use domain::{DeliveryId, Refusal};
use service::deliveries::{AttemptRecord, DeliveryDetails};
use service::owned_webhooks::ShownRequest;
use web::pages::{Area, Flash, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, PathIds, Person, PostedBy, Visitor};

use super::access::living_application;
use super::deliveries::{END, next_attempt};
use super::frame::{AppFrame, AppTab, address};
use super::webhook_texts::{DeliveryTexts, delivery_texts};
use crate::webhook_words::{delivery_state, message_kind, outcome};

/// An attempt.
struct AttemptRow {
    number: i64,
    /// With its milliseconds.
    began: Moment,
    duration_ms: i64,
    outcome: String,
    is_success: bool,
    answer: String,
    /// Where its request is shown.
    href: String,
    is_shown: bool,
}

#[derive(Template)]
#[template(path = "site/developers/delivery.html")]
struct DeliveryDetailsPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static DeliveryTexts,
    back: String,
    here: &'a str,
    message_id: String,
    kind: &'static str,
    claim_id: Option<String>,
    state: (&'static str, &'static str),
    in_flight: bool,
    is_waiting: bool,
    attempts: i64,
    created: Moment,
    next_attempt: Option<Moment>,
    rows: Vec<AttemptRow>,
    /// The attempt whose request is shown, and the request if it is known.
    request: Option<(i64, Option<ShownRequest>)>,
    data: String,
    resend: Option<FormTarget>,
}

impl DeliveryDetailsPage<'_> {
    fn title(&self) -> &'static str {
        self.t.one
    }
}

impl AttemptRow {
    fn new(attempt: &AttemptRecord, shown: Option<i64>, visitor: &Visitor) -> Self {
        Self {
            number: attempt.number,
            began: Moment::of(attempt.began_at, visitor.now(), visitor.lang()),
            duration_ms: attempt.duration_ms,
            outcome: outcome(attempt, visitor.lang()),
            is_success: attempt.status.is_some_and(|status| (200..300).contains(&status)),
            answer: attempt.excerpt.trim().to_owned(),
            href: format!("{}?attempt={}#request", visitor.request().path(), attempt.number),
            is_shown: shown == Some(attempt.number),
        }
    }
}

/// `GET …/webhook/deliveries/{messageId}?attempt=`.
pub(super) async fn show(PathIds(id, message_id): PathIds, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Viewer).await?;
    let (visitor, lang) = (&person.visitor, person.visitor.lang());
    let (service, client_id) = (visitor.web().service(), &application.details.life.application.client_id);
    let details = service.webhook_delivery(client_id, &message_id_of(&message_id)?).await?;
    let DeliveryDetails { delivery, attempts } = details;
    let chosen = visitor.request().parameter("attempt").and_then(|number| number.parse::<i64>().ok());
    let chosen = attempts.iter().find(|attempt| Some(attempt.number) == chosen).or(attempts.first());
    let number = chosen.map(|attempt| attempt.number);
    let moment = |at| Moment::of(at, visitor.now(), lang);
    visitor.page(&DeliveryDetailsPage {
        shell: visitor.shell(Area::Developers),
        frame: AppFrame::new(visitor, &application, AppTab::Webhook),
        t: delivery_texts(lang),
        back: address(client_id.as_str(), END),
        here: visitor.request().path(),
        message_id: delivery.message_id.to_string(),
        kind: message_kind(MessageKind::about(delivery.claim_id.as_ref()), lang),
        claim_id: delivery.claim_id.as_ref().map(ToString::to_string),
        state: delivery_state(delivery.state, lang),
        in_flight: delivery.in_flight,
        is_waiting: delivery.state == DeliveryState::Waiting,
        attempts: delivery.attempts,
        created: moment(delivery.created_at),
        next_attempt: next_attempt(&delivery).map(moment),
        rows: attempts.iter().map(|attempt| AttemptRow::new(attempt, number, visitor)).collect(),
        request: chosen.map(|attempt| (attempt.number, service.shown_request(&delivery, attempt))),
        resend: (application.role >= MemberRole::Developer).then(|| visitor.form(visitor.request().path())),
        data: delivery.data,
    })
}

/// `POST …/webhook/deliveries/{messageId}`: sends it again.
pub(super) async fn resend(
    PathIds(id, message_id): PathIds,
    PostedBy { person, .. }: PostedBy,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let visitor = &person.visitor;
    let client_id = &application.details.life.application.client_id;
    person.service().resend_delivery(client_id, &message_id_of(&message_id)?).await?;
    Ok(visitor.redirect(visitor.request().path(), Some(Flash::Done)))
}

fn message_id_of(text: &str) -> Result<DeliveryId, Refusal> {
    DeliveryId::parse("messageId", text).map_err(|_| Refusal::NotFound(Resource::Delivery))
}
