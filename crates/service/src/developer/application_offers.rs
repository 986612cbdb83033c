//! Offers of applications to other people: made by an admin for a login, accepted by its person.

use domain::account::check_named_login;
use domain::audit::AuditAction;
use domain::limits::OFFER_LIFETIME_MS;
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::{ChannelId, ClientId, OrganizationId, Refusal, Timestamp};
use store::Tx;
pub use store::queries::application_offers::{ReceivedOffer, SentOffer};

use crate::developer::application_fate::give_away;
use crate::developer::owned_applications::authorize;
use crate::developer::registration::{check_owner, lock_owned};
use crate::identity::application_life::irrecoverable_since;
use crate::work::Work;
use crate::{Error, Service};

impl Service {
    /// Offers an application to the person with a login, for an admin of it. It replaces the offer before.
    /// The login need not exist: the answer is the same.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is no admin; `Invalid` naming `login`.
    pub async fn offer_application(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        login: &str,
    ) -> Result<(), Error> {
        check_named_login(login)?;
        let (person, client_id, login) = (person.clone(), client_id.clone(), login.to_owned());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            lock_owned(work, &person, &client_id, MemberRole::Admin).await?;
            work.put_application_offer(&client_id, &login, now).await?;
            Ok(work.audit(AuditAction::ApplicationOffer, &client_id).await?)
        })
        .await
    }

    /// Takes the offer of an application back, for an admin of it. A missing one is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the person is no admin.
    pub async fn take_application_offer_back(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
    ) -> Result<(), Error> {
        let (person, client_id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            authorize(work, &person, &client_id, MemberRole::Admin, now).await?;
            work.delete_application_offer(&client_id).await?;
            Ok(work.audit(AuditAction::ApplicationOfferTakeBack, &client_id).await?)
        })
        .await
    }

    /// The offer of an application.
    pub async fn application_offer(&self, client_id: &ClientId) -> Result<Option<SentOffer>, Error> {
        let (client_id, since) = (client_id.clone(), expired_since(self.now()));
        self.read(async move |tx: &mut Tx| Ok(tx.application_offer(&client_id, since).await?)).await
    }

    /// The offers to a person.
    pub async fn application_offers_of_person(
        &self,
        person: &ChannelId,
    ) -> Result<Vec<ReceivedOffer>, Error> {
        let (person, since) = (person.clone(), expired_since(self.now()));
        self.read(async move |tx: &mut Tx| Ok(tx.application_offers_of_person(&person, since).await?)).await
    }

    /// Accepts an offer. The application goes to the person, or to an organization in which the person is a
    /// developer. As when an owner hands it over, the scope of drops and pending requests end.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such offer; `Invalid` naming `organizationId` when the new
    /// owner cannot have it.
    pub async fn accept_application_offer(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
        to: Option<OrganizationId>,
    ) -> Result<(), Error> {
        let (person, client_id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // The locks in the order in which an owner hands an application over.
            check_owner(work, &person, to.as_ref()).await?;
            if !work.lock_application(&client_id).await? {
                return Err(not_found());
            }
            if !work.take_application_offer(&client_id, &person, expired_since(now)).await? {
                return Err(not_found());
            }
            let found = work.application_access(&client_id, &person, irrecoverable_since(now)).await?;
            let (life, _) = found.ok_or_else(not_found)?;
            give_away(work, &life.application, &person, to.as_ref(), now).await
        })
        .await?;
        Ok(())
    }

    /// Declines an offer.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such offer.
    pub async fn decline_application_offer(
        &self,
        person: &ChannelId,
        client_id: &ClientId,
    ) -> Result<(), Error> {
        let (person, client_id) = (person.clone(), client_id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            match work.take_application_offer(&client_id, &person, expired_since(now)).await? {
                true => Ok(work.audit(AuditAction::ApplicationOfferDecline, &client_id).await?),
                false => Err(not_found()),
            }
        })
        .await
    }
}

fn not_found() -> Error {
    Refusal::NotFound(Resource::Application).into()
}

/// Offers that were made at this time or earlier have expired.
fn expired_since(now: Timestamp) -> Timestamp {
    now.plus_ms(-OFFER_LIFETIME_MS)
}
