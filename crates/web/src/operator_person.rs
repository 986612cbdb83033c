//! The people who may use the operator pages. Handlers of these pages get their reader only from these
//! extractors, whose type names the role.
//!
//! Who is not signed in is led to the sign-in. A person without a role gets 404, as for a page that does not
//! exist. A role that is too low gets 403.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use domain::audit::Actor;
use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use http::request::Parts;
use service::Service;

use crate::Web;
use crate::envelope::Failure;
use crate::form_fields::FormFields;
use crate::visitor::{Person, PostedBy, Visitor};

/// An operator role as a type, so that a handler's signature names it.
pub trait NeedsRole: Send {
    /// The role.
    const ROLE: OperatorRole;
}

/// The roles of operators.
pub mod role {
    use domain::operator_key::OperatorRole;

    use super::NeedsRole;

    macro_rules! roles {
        ($($(#[$doc:meta])* $name:ident;)+) => {$(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $name {}
            impl NeedsRole for $name {
                const ROLE: OperatorRole = OperatorRole::$name;
            }
        )+};
    }

    roles! {
        /// Sees.
        Read;
        /// Changes.
        Write;
        /// Manages keys and roles, and reads the audit log.
        Admin;
    }
}

/// A person whose operator role allows `R`.
pub struct OperatorPerson<R> {
    /// The person.
    pub person: Person,
    /// The role, which may allow more than `R`.
    pub role: OperatorRole,
    proof: PhantomData<R>,
}

/// A form of a person whose operator role allows `R`.
#[derive(Debug)]
pub struct PostedByOperator<R> {
    /// Who posted it.
    pub operator: OperatorPerson<R>,
    /// Its fields.
    pub fields: FormFields,
}

impl<R: NeedsRole> OperatorPerson<R> {
    fn of(person: Person) -> Result<Self, Box<Response>> {
        let refused = |refusal: Refusal| Box::new(Failure::from(refusal).into_response());
        match person.operator_role {
            Some(role) if role >= R::ROLE => Ok(Self { person, role, proof: PhantomData }),
            Some(_) => Err(refused(Refusal::RoleMissing(R::ROLE))),
            None => Err(refused(Refusal::NotFound(Resource::Path))),
        }
    }
}

impl<R> OperatorPerson<R> {
    /// The request and its browser.
    pub fn visitor(&self) -> &Visitor {
        &self.person.visitor
    }

    /// The service, for calls that the audit log reports as the person's.
    pub fn service(&self) -> Service {
        let visitor = self.visitor();
        let actor = Actor::Person(self.person.channel_id.clone());
        let request_id = visitor.request().id.to_string();
        visitor.web().service().acting_as(actor, Some(self.role), request_id)
    }
}

impl<R: NeedsRole> FromRequestParts<Web> for OperatorPerson<R> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Response> {
        Self::of(Person::from_request_parts(parts, web).await?).map_err(|refused| *refused)
    }
}

impl<R: NeedsRole> FromRequest<Web> for PostedByOperator<R> {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let PostedBy { person, fields } = PostedBy::from_request(request, web).await?;
        Ok(Self { operator: OperatorPerson::of(person).map_err(|refused| *refused)?, fields })
    }
}

impl<R> fmt::Debug for OperatorPerson<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OperatorPerson").field(&self.person.channel_id).field(&self.role).finish()
    }
}
