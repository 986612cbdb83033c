//! `/developers/applications/{clientId}/webhook`: the webhook of an application.

use askama::Template;
use domain::delivery::DisabledReason;
use domain::mail::MailKind;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::secret::WebhookSecret;
use domain::webhook_secrets::SecretState;
use domain::{ClientId, Refusal};
use service::owned_applications::DeveloperApplication;
use service::owned_webhooks::{HintedWebhookSecret, TestObstacle};
use service::webhooks::{Webhook, WebhookDetails};
use web::pages::{Area, FieldErrors, Flash, Moment, Shell, filters};
use web::{FormTarget, PageAnswer, PathId, Person, PostedBy, Visitor};

use super::access::{living_application, notify};
use super::frame::{AppFrame, AppTab, address};
use super::webhook_texts::{WebhookTexts, texts};
use crate::confirmed::Confirmed;
use crate::forms::at_field;
use crate::webhook_words::{disabled_reason, webhook_state, without_query};

/// The end of the page's path.
pub(super) const END: &str = "/webhook";

/// The webhook on its page.
struct ShownWebhook {
    /// The kind of the badge, and its text.
    state: (&'static str, &'static str),
    /// The address; `None` where a listener fetches the messages.
    url: Option<String>,
    failing_since: Option<Moment>,
    disabled_since: Option<Moment>,
    created: Moment,
    /// Whether the application gets messages at all.
    receives: bool,
    is_disabled: bool,
    is_disabled_by_operator: bool,
    /// The notices to its owner, with their times.
    notices: Vec<(&'static str, Moment)>,
}

impl ShownWebhook {
    fn new(details: &WebhookDetails, is_developer: bool, visitor: &Visitor) -> Self {
        let WebhookDetails { webhook, notices } = details;
        let lang = visitor.lang();
        let moment = |at| Moment::of(at, visitor.now(), lang);
        // The query may hold a secret of the receiver.
        let url = |url: &str| if is_developer { url.to_owned() } else { without_query(url).to_owned() };
        let notice = |kind: &str| match kind {
            "DISABLED_GONE" => disabled_reason(DisabledReason::Gone, lang),
            _ => disabled_reason(DisabledReason::Failing, lang),
        };
        Self {
            state: webhook_state(webhook, lang),
            url: webhook.url.as_deref().map(url),
            failing_since: webhook.failing_since.map(moment),
            disabled_since: webhook.disabled.map(|disabled| moment(disabled.since)),
            created: moment(webhook.created_at),
            receives: webhook.receives,
            is_disabled: webhook.disabled.is_some(),
            is_disabled_by_operator: is_disabled_by_operator(webhook),
            notices: notices.iter().map(|each| (notice(&each.kind), moment(each.given_at))).collect(),
        }
    }
}

/// A secret of the webhook.
struct SecretRow {
    hint: String,
    state: (&'static str, &'static str),
    signs: bool,
    created: Moment,
    signs_from: Moment,
    ends: Option<Moment>,
    form: FormTarget,
}

impl SecretRow {
    fn new(secret: &HintedWebhookSecret, list: &str, visitor: &Visitor) -> Self {
        let HintedWebhookSecret { details, last_characters } = secret;
        let lang = visitor.lang();
        let moment = |at| Moment::of(at, visitor.now(), lang);
        let state = match details.state {
            SecretState::Signing => ("good", lang.pick("서명 중", "Signs")),
            SecretState::Pending => ("plain", lang.pick("대기 중", "Pending")),
            SecretState::Retiring => ("plain", lang.pick("물러나는 중", "Retiring")),
        };
        Self {
            hint: last_characters.clone().unwrap_or_default(),
            state,
            signs: details.state == SecretState::Signing,
            created: moment(details.created_at),
            signs_from: moment(details.signs_from),
            ends: details.forget_at.map(moment),
            form: visitor.form(format!("{list}/{}", details.secret_id)),
        }
    }
}

#[derive(Template)]
#[template(path = "site/developers/webhook.html")]
pub(super) struct WebhookPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static WebhookTexts,
    webhook: Option<ShownWebhook>,
    is_developer: bool,
    form: FormTarget,
    /// What the field of the address holds.
    url: String,
    test: FormTarget,
    removal: String,
    deliveries: String,
    scopes: String,
    secrets: Vec<SecretRow>,
    has_pending: bool,
    add: FormTarget,
    once: String,
    /// A new secret, shown once.
    made: Option<String>,
    errors: FieldErrors,
}

impl WebhookPage<'_> {
    fn title(&self) -> &'static str {
        self.t.heading
    }
}

impl<'a> WebhookPage<'a> {
    pub(super) async fn new(
        person: &'a Person,
        application: &'a DeveloperApplication,
    ) -> Result<Self, service::Error> {
        let (visitor, lang) = (&person.visitor, person.visitor.lang());
        let client_id = &application.details.life.application.client_id;
        let is_developer = application.role >= MemberRole::Developer;
        let details = find(visitor, client_id).await?;
        let path = |end: &str| address(client_id.as_str(), &format!("{END}{end}"));
        let list = path("/secrets");
        let secrets = match &details {
            Some(_) if is_developer => visitor.web().service().hinted_webhook_secrets(client_id).await?,
            _ => Vec::new(),
        };
        let pending = |secret: &HintedWebhookSecret| secret.details.state == SecretState::Pending;
        let url = details.as_ref().and_then(|details| details.webhook.url.clone());
        Ok(Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Webhook),
            t: texts(lang),
            webhook: details.as_ref().map(|details| ShownWebhook::new(details, is_developer, visitor)),
            is_developer,
            form: visitor.form(path("")),
            url: url.unwrap_or_default(),
            test: visitor.form(path("/test")),
            removal: path("/removal"),
            deliveries: path("/deliveries"),
            scopes: address(client_id.as_str(), "/scopes"),
            has_pending: secrets.iter().any(pending),
            secrets: secrets.iter().map(|secret| SecretRow::new(secret, &list, visitor)).collect(),
            add: visitor.form(list),
            once: visitor.form_id(),
            made: None,
            errors: FieldErrors::default(),
        })
    }
}

impl WebhookPage<'_> {
    /// The answer with a new secret, which is shown once.
    pub(super) async fn with_secret(
        person: &Person,
        application: &DeveloperApplication,
        secret: &WebhookSecret,
    ) -> PageAnswer {
        let made = Some(secret.expose().to_owned());
        let page = WebhookPage { made, ..WebhookPage::new(person, application).await? };
        person.visitor.page(&page)
    }

    /// The answer with what was wrong.
    pub(super) async fn with_errors(
        person: &Person,
        application: &DeveloperApplication,
        errors: FieldErrors,
    ) -> PageAnswer {
        let page = WebhookPage { errors, ..WebhookPage::new(person, application).await? };
        person.visitor.form_again(&page)
    }
}

/// The webhook of an application, if there is one.
async fn find(visitor: &Visitor, client_id: &ClientId) -> Result<Option<WebhookDetails>, service::Error> {
    match visitor.web().service().webhook_details(client_id).await {
        Err(error) if error.refusal() == Refusal::NotFound(Resource::Webhook) => Ok(None),
        found => found.map(Some),
    }
}

fn is_disabled_by_operator(webhook: &Webhook) -> bool {
    webhook.disabled.is_some_and(|disabled| disabled.reason == DisabledReason::Operator)
}

/// `GET …/webhook`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Viewer).await?;
    person.visitor.page(&WebhookPage::new(&person, &application).await?)
}

/// `POST …/webhook`: another address, or the button that enables the webhook.
pub(super) async fn save(
    PathId(id): PathId,
    Confirmed(PostedBy { person, fields }): Confirmed<PostedBy>,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let here = address(client_id.as_str(), END);
    let url = fields.text("url").trim();
    let saved = match fields.is_checked("enable") {
        true => service.enable_webhook_of_owner(client_id).await.map(|()| None),
        false => service.put_webhook(client_id, Some(url), None).await.map(|(_, secret)| secret),
    };
    match saved {
        Ok(None) => Ok(visitor.redirect(&here, Some(Flash::Saved))),
        Ok(Some(secret)) => {
            notify(&person, MailKind::WebhookSecretMade).await?;
            WebhookPage::with_secret(&person, &application, &secret).await
        }
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let page = WebhookPage::new(&person, &application).await?;
            visitor.form_again(&WebhookPage { url: url.to_owned(), errors, ..page })
        }
    }
}

/// `POST …/webhook/test`: writes a test message, and leads to it.
pub(super) async fn test(PathId(id): PathId, PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let visitor = &person.visitor;
    let client_id = &application.details.life.application.client_id;
    let t = texts(visitor.lang());
    let obstacle = match person.service().send_test_message(client_id).await? {
        Ok(message) => {
            let end = format!("{END}/deliveries/{message}");
            return Ok(visitor.redirect(&address(client_id.as_str(), &end), None));
        }
        Err(TestObstacle::Disabled) => t.test_disabled,
        Err(TestObstacle::NotReceiving) => t.not_receiving,
        Err(TestObstacle::TooMany) => t.test_too_many,
    };
    let mut errors = FieldErrors::default();
    errors.add("test", obstacle);
    WebhookPage::with_errors(&person, &application, errors).await
}

/// The last question before a webhook is removed.
#[derive(Template)]
#[template(path = "site/developers/webhook_removal.html")]
struct RemovalPage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static WebhookTexts,
    form: FormTarget,
    back: String,
    errors: FieldErrors,
}

impl RemovalPage<'_> {
    fn title(&self) -> &'static str {
        self.t.remove
    }
}

impl<'a> RemovalPage<'a> {
    fn new(person: &'a Person, application: &'a DeveloperApplication) -> Self {
        let visitor = &person.visitor;
        let client_id = application.details.life.application.client_id.as_str();
        Self {
            shell: visitor.shell(Area::Developers),
            frame: AppFrame::new(visitor, application, AppTab::Webhook),
            t: texts(visitor.lang()),
            form: visitor.form(visitor.request().path()),
            back: address(client_id, END),
            errors: FieldErrors::default(),
        }
    }
}

/// `GET …/webhook/removal`.
pub(super) async fn ask_removal(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    // Without a webhook there is no such page.
    person.visitor.web().service().webhook_details(&application.details.life.application.client_id).await?;
    person.visitor.page(&RemovalPage::new(&person, &application))
}

/// `POST …/webhook/removal`.
pub(super) async fn remove(PathId(id): PathId, PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let visitor = &person.visitor;
    let client_id = &application.details.life.application.client_id;
    match person.service().delete_webhook_of_owner(client_id).await {
        Ok(()) => Ok(visitor.redirect(&address(client_id.as_str(), END), Some(Flash::Done))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            visitor.form_again(&RemovalPage { errors, ..RemovalPage::new(&person, &application) })
        }
    }
}
