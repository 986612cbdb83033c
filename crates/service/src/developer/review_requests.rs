//! Requests that the operator decides: made and withdrawn by people, listed and decided by the operator.

use domain::audit::AuditAction;
use domain::limits::{REVIEW_REQUESTS_KEPT, REVIEW_TEXT_CHARS_MAX};
use domain::member::MemberRole;
use domain::refusal::Resource;
use domain::review::{Decision, ReviewKind, ReviewState, ReviewSubject};
use domain::{
    ChannelId, ClientId, Invalid, OrganizationId, Refusal, ReviewRequestId, Rule, Scope, Timestamp, invalid,
};
use serde_json::json;
use store::Tx;
pub use store::queries::review_requests::ReviewRequest;
use store::queries::review_requests::{Decided, NewReviewRequest, ReviewEnd};

use crate::developer::organization_members::{lock, require_member};
use crate::developer::owned_applications::authorize;
use crate::identity::application_life::irrecoverable_since;
use crate::identity::organizations::ListPage;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// What the operator decides about a request.
#[derive(Clone, Debug)]
pub struct ReviewDecision {
    /// The decision.
    pub decision: Decision,
    /// What there is to say about it. The people who asked read it.
    pub note: Option<String>,
    /// Who decides, as the operator's systems name them.
    pub decided_by: String,
}

impl Service {
    /// Asks the operator for something. While such a request is pending, this is that request.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the subject is not the person's: a verification takes an admin of the
    /// organization, scopes take a developer of the application. `Invalid` naming `message`, or
    /// `organizationId` or `scopes` when there is nothing to grant.
    pub async fn submit_review_request(
        &self,
        person: &ChannelId,
        subject: ReviewSubject,
        message: &str,
    ) -> Result<ReviewRequestId, Error> {
        invalid::text("message", message, 1, REVIEW_TEXT_CHARS_MAX)?;
        let new = NewReviewRequest {
            request_id: ReviewRequestId::generate(self.now(), self.random(Purpose::Developer)),
            subject,
            requested_by: person.clone(),
            message: message.to_owned(),
        };
        self.write(async move |work: &mut Work<'_>| {
            let request_id = submit(work, &new).await?;
            let details = json!({ "requestId": request_id, "kind": new.subject.kind().name() });
            match (new.subject.client_id(), new.subject.organization_id()) {
                (Some(id), _) => work.audit_with(AuditAction::ReviewAdd, id, details).await?,
                (None, Some(id)) => work.audit_with(AuditAction::ReviewAdd, id, details).await?,
                (None, None) => {}
            }
            Ok(request_id)
        })
        .await
    }

    /// Withdraws a pending request. It needs the role that making the request needs.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the request is not the person's; `Invalid` naming `requestId` when it is
    /// not pending.
    pub async fn withdraw_review_request(
        &self,
        person: &ChannelId,
        id: &ReviewRequestId,
    ) -> Result<(), Error> {
        let (person, id) = (person.clone(), id.clone());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let request = work.review_request(&id).await?.ok_or_else(not_found)?;
            let allowed = match (&request.client_id, &request.organization_id) {
                (Some(client), _) => {
                    authorize(work, &person, client, MemberRole::Developer, now).await.map(drop)
                }
                (None, Some(organization)) => {
                    require_member(work, &person, organization, MemberRole::Admin).await.map(drop)
                }
                (None, None) => Err(not_found()),
            };
            allowed.map_err(|error| match error {
                Error::Refused(_) => not_found(),
                error => error,
            })?;
            if !work.withdraw_review_request(&id, now).await? {
                return Err(Invalid::new("requestId", Rule::Pending).into());
            }
            let details = json!({ "requestId": id });
            match (&request.client_id, &request.organization_id) {
                (Some(id), _) => work.audit_with(AuditAction::ReviewWithdraw, id, details).await?,
                (None, Some(id)) => work.audit_with(AuditAction::ReviewWithdraw, id, details).await?,
                (None, None) => {}
            }
            Ok(())
        })
        .await
    }

    /// The requests about an application, the newest first.
    pub async fn review_requests_of_application(
        &self,
        client_id: &ClientId,
    ) -> Result<Vec<ReviewRequest>, Error> {
        let client_id = client_id.clone();
        self.read(async move |tx: &mut Tx| {
            Ok(tx.review_requests_of_application(&client_id, REVIEW_REQUESTS_KEPT).await?)
        })
        .await
    }

    /// The requests about an organization itself, the newest first.
    pub async fn review_requests_of_organization(
        &self,
        id: &OrganizationId,
    ) -> Result<Vec<ReviewRequest>, Error> {
        let id = id.clone();
        self.read(async move |tx: &mut Tx| {
            Ok(tx.review_requests_of_organization(&id, REVIEW_REQUESTS_KEPT).await?)
        })
        .await
    }

    /// The requests in a state, the oldest first, for the operator.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list or filter.
    pub async fn review_requests(
        &self,
        state: ReviewState,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<ReviewRequest>, Error> {
        let context = serde_json::json!(["review-requests", state.name()]).to_string();
        let after = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let items = self
            .read(async move |tx: &mut Tx| Ok(tx.review_requests(state, &after, size + 1).await?))
            .await?;
        let (items, next) = self.page(&context, items, size, |item| item.request_id.to_string());
        Ok(ListPage { items, next })
    }

    /// One request, for the operator.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such request.
    pub async fn review_request(&self, id: &ReviewRequestId) -> Result<ReviewRequest, Error> {
        let id = id.clone();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.review_request(&id).await?)).await?;
        found.ok_or_else(not_found)
    }

    /// Decides a request, with effect at once. Of several decisions the first one counts. The same decision
    /// again is no error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when there is no such request; `Invalid` naming `note`, or `decision` when the
    /// request is decided otherwise or withdrawn, or asks for drops without a verified organization.
    pub async fn decide_review_request(
        &self,
        id: &ReviewRequestId,
        decision: ReviewDecision,
    ) -> Result<(), Error> {
        if let Some(note) = &decision.note {
            invalid::text("note", note, 1, REVIEW_TEXT_CHARS_MAX)?;
        }
        let (id, state) = (id.clone(), decision.decision.state());
        let request_id = id.clone();
        let is_new = self.write(async move |work: &mut Work<'_>| decide(work, &id, &decision).await).await?;
        if is_new {
            tracing::info!(%request_id, state = state.name(), "request decided");
        }
        Ok(())
    }
}

fn not_found() -> Error {
    Refusal::NotFound(Resource::ReviewRequest).into()
}

pub(crate) async fn submit(work: &mut Work<'_>, new: &NewReviewRequest) -> Result<ReviewRequestId, Error> {
    let (now, person) = (work.now(), &new.requested_by);
    let granted = |field| Error::from(Invalid::new(field, Rule::NotGranted));
    match &new.subject {
        ReviewSubject::Verification(id) => {
            // The lock keeps the name that the operator is going to verify.
            lock(work, id).await?;
            let membership = require_member(work, person, id, MemberRole::Admin).await?;
            if membership.organization.verified {
                return Err(granted("organizationId"));
            }
        }
        subject @ (ReviewSubject::Drops(client_id) | ReviewSubject::Scopes(client_id, _)) => {
            let owned = authorize(work, person, client_id, MemberRole::Developer, now).await?;
            let application = owned.life.application;
            if subject.scopes().iter().all(|scope| application.scopes.contains(scope)) {
                return Err(granted("scopes"));
            }
            let is_verified = application.organization.is_some_and(|organization| organization.verified);
            if subject.scopes().contains(Scope::Drops) && !is_verified {
                return Err(Invalid::new("scopes", Rule::VerifiedOrganization).into());
            }
        }
    }
    if work.insert_review_request(new, now, REVIEW_REQUESTS_KEPT).await? {
        return Ok(new.request_id.clone());
    }
    let requests = match (new.subject.organization_id(), new.subject.client_id()) {
        (Some(id), _) => work.review_requests_of_organization(id, REVIEW_REQUESTS_KEPT).await?,
        (None, Some(id)) => work.review_requests_of_application(id, REVIEW_REQUESTS_KEPT).await?,
        (None, None) => Vec::new(),
    };
    let kind = new.subject.kind();
    let pending = requests.into_iter().find(|one| one.kind == kind && one.state == ReviewState::Pending);
    Ok(pending.ok_or(Error::Internal("the pending request is gone"))?.request_id)
}

/// Gives `false` if the request had this decision already.
async fn decide(work: &mut Work<'_>, id: &ReviewRequestId, decision: &ReviewDecision) -> Result<bool, Error> {
    let (now, state) = (work.now(), decision.decision.state());
    // The subject is locked before its requests, as where a request is made or withdrawn with its subject.
    let request = work.review_request(id).await?.ok_or_else(not_found)?;
    match (&request.client_id, &request.organization_id) {
        (Some(client_id), _) => work.lock_application(client_id).await?,
        (None, Some(organization_id)) => work.lock_organization(organization_id).await?,
        (None, None) => false,
    };
    let details = json!({ "requestId": id, "kind": request.kind.name(), "state": state.name() });
    match (&request.client_id, &request.organization_id) {
        (Some(id), _) => work.audit_with(AuditAction::ReviewDecide, id, details).await?,
        (None, Some(id)) => work.audit_with(AuditAction::ReviewDecide, id, details).await?,
        (None, None) => {}
    }
    let end = ReviewEnd { state, decided_by: &decision.decided_by, note: decision.note.as_deref() };
    match work.decide_review_request(id, &end, now).await? {
        Some(decided) if decision.decision == Decision::Approve => {
            grant(work, &decided, now).await.map(|()| true)
        }
        Some(_) => Ok(true),
        None => {
            let request = work.review_request(id).await?.ok_or_else(not_found)?;
            match request.state == state {
                true => Ok(false),
                false => Err(Invalid::new("decision", Rule::Pending).into()),
            }
        }
    }
}

async fn grant(work: &mut Work<'_>, decided: &Decided, now: Timestamp) -> Result<(), Error> {
    let gone = Error::Internal("a request is about nothing");
    match (decided.kind, &decided.organization_id, &decided.client_id) {
        (ReviewKind::Organization, Some(id), _) => {
            work.verify_organization(id).await?;
        }
        (ReviewKind::Drops | ReviewKind::Scopes, _, Some(client_id)) => {
            let life = work.application_life(client_id, irrecoverable_since(now)).await?;
            let life = life.ok_or(Refusal::NotFound(Resource::Application))?;
            let is_verified = life.application.organization.is_some_and(|one| one.verified);
            if decided.scopes.contains(Scope::Drops) && !is_verified {
                return Err(Invalid::new("decision", Rule::VerifiedOrganization).into());
            }
            work.grant_application_scopes(client_id, decided.scopes).await?;
        }
        _ => return Err(gone),
    }
    Ok(())
}
