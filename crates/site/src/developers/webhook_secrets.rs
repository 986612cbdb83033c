//! `/developers/applications/{clientId}/webhook/secrets`: the secrets that sign the messages to a webhook.
//! They stand on the page of the webhook.

use domain::WebhookSecretId;
use domain::mail::MailKind;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::{Invalid, Refusal, Rule};
use web::pages::Flash;
use web::{PageAnswer, PathId, PathIds, PostedBy};

use super::access::living_application;
use super::frame::address;
use super::register::key;
use super::webhook::{END, WebhookPage};
use crate::confirmed::Confirmed;
use crate::forms::at_field;

/// `POST …/webhook/secrets`: a new secret, which is shown once. The one that signs goes on.
pub(super) async fn add(
    PathId(id): PathId,
    Confirmed(PostedBy { person, fields }): Confirmed<PostedBy>,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let visitor = &person.visitor;
    let client_id = &application.details.life.application.client_id;
    let key = key(&person, &format!("make a webhook secret of {client_id}"), &fields);
    match person.service().add_webhook_secret(client_id, None, key).await {
        Ok((_, secret)) => {
            let (service, lang) = (visitor.web().service(), visitor.lang());
            service.notify(&person.channel_id, MailKind::WebhookSecretMade, lang.into()).await?;
            WebhookPage::with_secret(&person, &application, &secret).await
        }
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            WebhookPage::with_errors(&person, &application, errors).await
        }
    }
}

/// `POST …/webhook/secrets/{secretId}`: lets a secret sign from now on, or deletes it.
pub(super) async fn change(
    PathIds(id, secret_id): PathIds,
    PostedBy { person, fields }: PostedBy,
) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Developer).await?;
    let (visitor, service) = (&person.visitor, person.service());
    let client_id = &application.details.life.application.client_id;
    let secret_id = WebhookSecretId::parse("secretId", &secret_id)
        .map_err(|_| Refusal::NotFound(Resource::WebhookSecret))?;
    let changed = match fields.text("action") {
        "activate" => service.activate_webhook_secret(client_id, &secret_id).await.map(|_| Flash::Saved),
        "delete" => service.delete_webhook_secret(client_id, &secret_id).await.map(|()| Flash::SecretRevoked),
        _ => Err(Invalid::new("action", Rule::OneOf(&["activate", "delete"])).into()),
    };
    match changed {
        Ok(flash) => Ok(visitor.redirect(&address(client_id.as_str(), END), Some(flash))),
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            WebhookPage::with_errors(&person, &application, errors).await
        }
    }
}
