//! Who may see a page: the role of a person over its application, or in its organization.

use domain::mail::MailKind;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::{ClientId, Invalid, OrganizationId, Refusal, Rule};
use service::organization_members::Membership;
use service::owned_applications::DeveloperApplication;
use web::{Failure, Person};

/// The application of a page, for a person who has this role over it at least.
///
/// # Errors
/// One refusal for what does not exist and what is not the person's.
pub(super) async fn application(
    person: &Person,
    client_id: &str,
    at_least: MemberRole,
) -> Result<DeveloperApplication, Failure> {
    let client_id = client_id_of(client_id)?;
    let service = person.visitor.web().service();
    Ok(service.application_of_person(&person.channel_id, &client_id, at_least).await?)
}

/// As [`application`], for a page that changes it: not one that is deleted.
///
/// # Errors
/// As [`application`].
pub(super) async fn living_application(
    person: &Person,
    client_id: &str,
    at_least: MemberRole,
) -> Result<DeveloperApplication, Failure> {
    let application = application(person, client_id, at_least).await?;
    match application.details.life.deleted_at {
        None => Ok(application),
        Some(_) => Err(Refusal::NotFound(Resource::Application).into()),
    }
}

/// The organization of a page, for a member who has this role at least.
///
/// # Errors
/// One refusal for what does not exist and what is not the person's.
pub(super) async fn organization(
    person: &Person,
    id: &str,
    at_least: MemberRole,
) -> Result<Membership, Failure> {
    let id = organization_id_of(id)?;
    Ok(person.visitor.web().service().membership(&person.channel_id, &id, at_least).await?)
}

/// Informs a person about what was done with the person's sign-in.
///
/// # Errors
/// When the store fails.
pub(super) async fn notify(person: &Person, kind: MailKind) -> Result<(), service::Error> {
    let (visitor, channel) = (&person.visitor, &person.channel_id);
    visitor.web().service().notify(channel, kind, visitor.lang().into()).await
}

/// The client id in the path of a page.
///
/// # Errors
/// [`Refusal::NotFound`] for a text that is no id.
pub(super) fn client_id_of(text: &str) -> Result<ClientId, Refusal> {
    ClientId::parse("clientId", text).map_err(|_| Refusal::NotFound(Resource::Application))
}

pub(super) fn organization_id_of(text: &str) -> Result<OrganizationId, Refusal> {
    OrganizationId::parse("organizationId", text).map_err(|_| Refusal::NotFound(Resource::Organization))
}

/// Whether the cursor of a list is refused. One of another person or of an older key begins again.
pub(super) fn is_cursor(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Invalid(Invalid { rule: Rule::Cursor, .. }))
}
