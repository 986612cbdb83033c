//! Requests that the operator decides. A decision and a withdrawal each are one statement that finds the
//! request pending, so only the first of them counts.

use domain::review::{ReviewKind, ReviewState, ReviewSubject};
use domain::{ChannelId, ClientId, OrganizationId, ReviewRequestId, ScopeSet, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::queries::credential_changes::Dependency;
use crate::{StoreError, Tx, params};

/// Nothing happens while another request of this kind is pending for the subject.
const INSERT: &str = "
    INSERT INTO review_requests
        (request_id, kind, organization_id, client_id, scopes, requested_by, message, state, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8) ON CONFLICT DO NOTHING";

/// Decided requests of a subject beyond the newest ones.
const FORGET: [&str; 2] = [
    "DELETE FROM review_requests WHERE organization_id = $1 AND state <> 'pending' AND request_id NOT IN (
         SELECT request_id FROM review_requests WHERE organization_id = $1
         ORDER BY request_id DESC LIMIT $2)",
    "DELETE FROM review_requests WHERE client_id = $1 AND state <> 'pending' AND request_id NOT IN (
         SELECT request_id FROM review_requests WHERE client_id = $1
         ORDER BY request_id DESC LIMIT $2)",
];

const DECIDE: &str = sql!(
    "UPDATE review_requests SET state = $2, decided_by = $3, decided_at = $4, note = $5
    WHERE request_id = $1 AND state = 'pending' RETURNING ",
    Decided::COLUMNS
);

const WITHDRAW: &str = "
    UPDATE review_requests SET state = 'withdrawn', decided_at = $2
    WHERE request_id = $1 AND state = 'pending'";

const WITHDRAW_OF_APPLICATION: &str = "
    UPDATE review_requests SET state = 'withdrawn', decided_at = $2
    WHERE client_id = $1 AND state = 'pending'";

/// The tables of a listing.
const FROM: &str = "
    FROM review_requests r JOIN channels c ON c.channel_id = r.requested_by
    LEFT JOIN applications a ON a.client_id = r.client_id
    LEFT JOIN organizations o ON o.organization_id = COALESCE(r.organization_id, a.organization_id)";

const BY_STATE: &str = sql!(
    "SELECT ",
    ReviewRequest::COLUMNS,
    FROM,
    " WHERE r.state = $1 AND r.request_id > $2 ORDER BY r.request_id LIMIT $3"
);

const ONE: &str = sql!("SELECT ", ReviewRequest::COLUMNS, FROM, " WHERE r.request_id = $1");

const OF_APPLICATION: &str = sql!(
    "SELECT ",
    ReviewRequest::COLUMNS,
    FROM,
    " WHERE r.client_id = $1 ORDER BY r.request_id DESC LIMIT $2"
);

const OF_ORGANIZATION: &str = sql!(
    "SELECT ",
    ReviewRequest::COLUMNS,
    FROM,
    " WHERE r.organization_id = $1 ORDER BY r.request_id DESC LIMIT $2"
);

const VERIFY: &str = "UPDATE organizations SET verified = TRUE WHERE organization_id = $1";

/// A new request.
#[derive(Clone, Debug)]
pub struct NewReviewRequest {
    /// Its id.
    pub request_id: ReviewRequestId,
    /// What it asks for.
    pub subject: ReviewSubject,
    /// Who asks.
    pub requested_by: ChannelId,
    /// Why.
    pub message: String,
}

/// A request, with the names that a person knows its parts by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRequest {
    /// Its id.
    pub request_id: ReviewRequestId,
    /// Its kind.
    pub kind: ReviewKind,
    /// The application that it is about.
    pub client_id: Option<ClientId>,
    /// The name of that application.
    pub application_name: Option<String>,
    /// The organization that it is about, or that of the application.
    pub organization_id: Option<OrganizationId>,
    /// The name of that organization.
    pub organization_name: Option<String>,
    /// The scopes that it asks for.
    pub scopes: ScopeSet,
    /// Who asked.
    pub requested_by: ChannelId,
    /// The name of that person's channel.
    pub requested_by_name: String,
    /// Why.
    pub message: String,
    /// Its state.
    pub state: ReviewState,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who decided it, as the operator's systems name them.
    pub decided_by: Option<String>,
    /// When it was decided or withdrawn.
    pub decided_at: Option<Timestamp>,
    /// What the operator says about the decision.
    pub note: Option<String>,
}

columns!(ReviewRequest {
    request_id: "r.request_id",
    kind: "r.kind",
    client_id: "r.client_id",
    application_name: "a.name",
    organization_id: "o.organization_id",
    organization_name: "o.organization_name",
    scopes: "r.scopes",
    requested_by: "r.requested_by",
    requested_by_name: "c.channel_name",
    message: "r.message",
    state: "r.state",
    created_at: "r.created_at",
    decided_by: "r.decided_by",
    decided_at: "r.decided_at",
    note: "r.note",
});

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The kind.
    pub kind: ReviewKind,
    /// The organization of a verification.
    pub organization_id: Option<OrganizationId>,
    /// The application that gets scopes.
    pub client_id: Option<ClientId>,
    /// These scopes.
    pub scopes: ScopeSet,
}

columns!(Decided {
    kind: "kind",
    organization_id: "organization_id",
    client_id: "client_id",
    scopes: "scopes",
});

/// How a request ends.
#[derive(Clone, Debug)]
pub struct ReviewEnd<'a> {
    /// The state.
    pub state: ReviewState,
    /// Who decided.
    pub decided_by: &'a str,
    /// What there is to say about it.
    pub note: Option<&'a str>,
}

impl Tx {
    /// Adds a request: `false` if one of this kind is pending for the subject. The oldest decided requests of
    /// the subject are deleted, so that `kept` remain.
    pub async fn insert_review_request(
        &mut self,
        new: &NewReviewRequest,
        now: Timestamp,
        kept: i64,
    ) -> Result<bool, StoreError> {
        let NewReviewRequest { request_id, subject, requested_by, message } = new;
        let (organization_id, client_id) = (subject.organization_id(), subject.client_id());
        let (kind, scopes) = (subject.kind().name(), subject.scopes().to_stored());
        let row = params![request_id, kind, organization_id, client_id, scopes, requested_by, message, now];
        if self.execute(INSERT, row).await? == 0 {
            return Ok(false);
        }
        let [of_organization, of_application] = FORGET;
        match (organization_id, client_id) {
            (Some(id), _) => self.execute(of_organization, params![id, kept]).await?,
            (None, Some(id)) => self.execute(of_application, params![id, kept]).await?,
            (None, None) => 0,
        };
        Ok(true)
    }

    /// Decides a request: `None` if it is not pending.
    pub async fn decide_review_request(
        &mut self,
        id: &ReviewRequestId,
        end: &ReviewEnd<'_>,
        now: Timestamp,
    ) -> Result<Option<Decided>, StoreError> {
        let ReviewEnd { state, decided_by, note } = end;
        self.fetch_optional(DECIDE, params![id, state.name(), *decided_by, now, *note]).await
    }

    /// Withdraws a request: `false` if it is not pending.
    pub async fn withdraw_review_request(
        &mut self,
        id: &ReviewRequestId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(WITHDRAW, params![id, now]).await? > 0)
    }

    /// Withdraws the requests about an application.
    pub async fn withdraw_requests_of_application(
        &mut self,
        client_id: &ClientId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.execute(WITHDRAW_OF_APPLICATION, params![client_id, now]).await?;
        Ok(())
    }

    /// Up to `size` requests in a state after `after`, the oldest first.
    pub async fn review_requests(
        &mut self,
        state: ReviewState,
        after: &str,
        size: i64,
    ) -> Result<Vec<ReviewRequest>, StoreError> {
        self.fetch_all(BY_STATE, params![state.name(), after, size]).await
    }

    /// One request.
    pub async fn review_request(
        &mut self,
        id: &ReviewRequestId,
    ) -> Result<Option<ReviewRequest>, StoreError> {
        self.fetch_optional(ONE, params![id]).await
    }

    /// The newest `size` requests about an application.
    pub async fn review_requests_of_application(
        &mut self,
        client_id: &ClientId,
        size: i64,
    ) -> Result<Vec<ReviewRequest>, StoreError> {
        self.fetch_all(OF_APPLICATION, params![client_id, size]).await
    }

    /// The newest `size` requests about an organization itself.
    pub async fn review_requests_of_organization(
        &mut self,
        id: &OrganizationId,
        size: i64,
    ) -> Result<Vec<ReviewRequest>, StoreError> {
        self.fetch_all(OF_ORGANIZATION, params![id, size]).await
    }

    /// Makes an organization a verified one: `false` if there is none.
    pub async fn verify_organization(&mut self, id: &OrganizationId) -> Result<bool, StoreError> {
        self.credentials_changed(Dependency::Organization(id));
        Ok(self.execute(VERIFY, params![id]).await? > 0)
    }
}
