//! Finds what an id names, among what a person may see in the developer center.

use domain::drops::RewardClaim;
use domain::member::MemberRole;
use domain::{ChannelId, ClaimId, ClientId, DeliveryId, MessageId, OrganizationId, SessionKey};
use store::Tx;
use store::queries::chat_log::LoggedMessage;

use crate::developer::usage_counters::RefusedRequest;
use crate::{Error, Service};

/// What an id names.
#[derive(Clone, Debug)]
pub enum FoundById {
    /// An application of the person.
    Application(ClientId),
    /// An organization of the person.
    Organization(OrganizationId),
    /// A session of such an application.
    Session(ClientId, SessionKey),
    /// A message to the webhook of such an application.
    Delivery(ClientId, DeliveryId),
    /// A refused request of such an application, which this node remembers.
    Request(ClientId, RefusedRequest),
    /// A claim of a reward of such an organization.
    Claim(OrganizationId, RewardClaim),
    /// A message in the chat of the person.
    Message(LoggedMessage),
}

impl Service {
    /// Finds what an id names. `None` if nothing has this id, or only what the person may not see.
    ///
    /// # Errors
    /// The store fails.
    pub async fn find_by_id(&self, person: &ChannelId, text: &str) -> Result<Option<FoundById>, Error> {
        // All ids have the same form, so one check rules most texts out.
        let Ok(client_id) = ClientId::parse("id", text) else { return Ok(None) };
        if self.sees(person, &client_id).await? {
            return Ok(Some(FoundById::Application(client_id)));
        }
        let organization = OrganizationId::stored(text.to_owned());
        if settled(self.membership(person, &organization, MemberRole::Viewer).await)?.is_some() {
            return Ok(Some(FoundById::Organization(organization)));
        }
        if let Some((client_id, request)) = self.refused_request(text)
            && self.sees(person, &client_id).await?
        {
            return Ok(Some(FoundById::Request(client_id, request)));
        }
        let key = SessionKey::stored(text.to_owned());
        if let Some(session) = settled(self.session_details(&key).await)?
            && self.sees(person, session.owner.client_id()).await?
        {
            return Ok(Some(FoundById::Session(session.owner.client_id().clone(), key)));
        }
        if let Some(found) = self.claim_or_message(person, text).await? {
            return Ok(Some(found));
        }
        self.delivery_of_person(person, DeliveryId::stored(text.to_owned())).await
    }

    /// Whether the application is one of the person's.
    async fn sees(&self, person: &ChannelId, client_id: &ClientId) -> Result<bool, Error> {
        let found = self.application_of_person(person, client_id, MemberRole::Viewer).await;
        Ok(settled(found)?.is_some())
    }

    async fn claim_or_message(&self, person: &ChannelId, text: &str) -> Result<Option<FoundById>, Error> {
        let (claim_id, message_id) = (ClaimId::stored(text.to_owned()), MessageId::stored(text.to_owned()));
        let owner = person.clone();
        let (claim, message) = self
            .read(async move |tx: &mut Tx| {
                let owners = tx.claim_owners(std::slice::from_ref(&claim_id)).await?;
                let claim = match owners.into_iter().next() {
                    Some((_, organization)) => tx.claim(&claim_id).await?.map(|claim| (organization, claim)),
                    None => None,
                };
                Ok::<_, Error>((claim, tx.logged_message(&owner, &message_id).await?))
            })
            .await?;
        if let Some((organization, claim)) = claim
            && settled(self.membership(person, &organization, MemberRole::Viewer).await)?.is_some()
        {
            return Ok(Some(FoundById::Claim(organization, claim)));
        }
        Ok(message.map(FoundById::Message))
    }

    async fn delivery_of_person(
        &self,
        person: &ChannelId,
        message_id: DeliveryId,
    ) -> Result<Option<FoundById>, Error> {
        let (owner, message) = (person.clone(), message_id.clone());
        let found = self
            .read(async move |tx: &mut Tx| {
                Ok::<_, Error>(tx.application_with_delivery(&owner, &message).await?)
            })
            .await?;
        let Some(client_id) = found else { return Ok(None) };
        let is_seen = self.sees(person, &client_id).await?;
        Ok(is_seen.then_some(FoundById::Delivery(client_id, message_id)))
    }
}

/// `None` for what does not exist, or is not the person's.
fn settled<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.refusal().status() == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
