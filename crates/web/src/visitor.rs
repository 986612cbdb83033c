//! Who asks for a page, and the forms that they post. Handlers of pages get both only from these extractors.

use std::fmt;

use askama::Template;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use domain::application::percent_encode;
use domain::operator_key::OperatorRole;
use domain::secret::{BrowserToken, SecretHash};
use domain::{ChannelId, Timestamp};
use http::StatusCode;
use http::request::Parts;
use service::Service;

use crate::Web;
use crate::browser::Browser;
use crate::envelope::Failure;
use crate::form_fields::FormFields;
use crate::page_request::PageRequest;
use crate::pages::{
    Account, Area, Flash, Lang, PageProblem, ProviderButton, Shell, alone_policy, local_page, site_policy,
};
use crate::problems::problem_answer;
use crate::providers::{proof, provider_buttons};
use crate::quota::block;

/// The page that signs people in.
pub const SIGN_IN: &str = "/sign-in";
/// The page that asks for the code of a sign-in's second step.
pub const SIGN_IN_CODE: &str = "/sign-in/code";
/// The address of the form that signs people out.
pub const SIGN_OUT: &str = "/sign-out";

/// The answer of a page's handler. A refusal becomes an error page.
pub type PageAnswer = Result<Response, Failure>;

/// Anybody who asks for a page.
pub struct Visitor {
    web: Web,
    request: PageRequest,
    browser: Browser,
    sign_out: String,
}

/// A person who is signed in. Anybody else is led to the page that signs people in, and from there back.
#[derive(Debug)]
pub struct Person {
    /// The request and its browser.
    pub visitor: Visitor,
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub name: String,
    /// What the person may do on the operator pages.
    pub operator_role: Option<OperatorRole>,
}

/// A form that its own page posted, with or without a sign-in.
#[derive(Debug)]
pub struct Posted {
    /// Who posted it.
    pub visitor: Visitor,
    /// Its fields.
    pub fields: FormFields,
}

/// A form of a person who is signed in.
#[derive(Debug)]
pub struct PostedBy {
    /// Who posted it.
    pub person: Person,
    /// Its fields.
    pub fields: FormFields,
}

/// Where a form goes, and the proof that its own page posts it.
#[derive(Clone, Debug)]
pub struct FormTarget {
    /// The address.
    pub action: String,
    /// The value of the field `csrf`.
    pub csrf: String,
}

impl Visitor {
    async fn of(parts: &Parts, web: &Web) -> Result<Self, service::Error> {
        let request = PageRequest::of(parts, web);
        let browser = Browser::of(web, &request).await?;
        let sign_out = proof(&browser.token, SIGN_OUT).as_str().to_owned();
        Ok(Self { web: web.clone(), request, browser, sign_out })
    }

    /// The service and its configuration.
    pub fn web(&self) -> &Web {
        &self.web
    }

    /// The service, for what checks a password or makes one: the address of the visitor pays for it.
    pub fn service(&self) -> Service {
        self.web.service().asked_from(block(self.request.client))
    }

    /// The request.
    pub fn request(&self) -> &PageRequest {
        &self.request
    }

    /// The language of the page.
    pub fn lang(&self) -> Lang {
        self.request.lang()
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.web.service().clock().now()
    }

    /// Whether a person is signed in.
    pub fn is_signed_in(&self) -> bool {
        self.browser.person.is_some()
    }

    /// The channel of the signed-in person.
    pub fn channel_id(&self) -> Option<&ChannelId> {
        self.browser.person.as_ref().map(|(channel, _)| channel)
    }

    /// The buttons of the providers at which people can sign in.
    pub fn providers(&self) -> Vec<ProviderButton<'_>> {
        provider_buttons(&self.web, self.lang(), &self.browser.token)
    }

    /// The token of the browser.
    pub fn browser_token(&self) -> &BrowserToken {
        &self.browser.token
    }

    /// The layout of a page with navigation.
    pub fn shell(&self, area: Area) -> Shell<'_> {
        let account = match &self.browser.person {
            Some((_, name)) => {
                let is_operator = self.browser.operator_role.is_some();
                Account::Person { name, sign_out: &self.sign_out, is_operator }
            }
            None => Account::SignedOut,
        };
        let flash = self.request.flash();
        Shell { is_alone: false, account, area, flash, ..self.request.shell(&self.web) }
    }

    /// The layout of a page that stands for itself.
    pub fn shell_alone(&self) -> Shell<'_> {
        Shell { is_alone: true, account: Account::Unknown, ..self.shell(Area::Elsewhere) }
    }

    /// A form that may be posted to this address.
    pub fn form(&self, action: impl Into<String>) -> FormTarget {
        let action = action.into();
        let path = action.split('?').next().unwrap_or_default();
        FormTarget { csrf: proof(&self.browser.token, path).as_str().to_owned(), action }
    }

    /// A name for a form of this page, so that it takes effect once.
    pub fn form_id(&self) -> String {
        self.request.id.to_string()
    }

    /// The answer with a page.
    ///
    /// # Errors
    /// A failure of the service when the template fails.
    pub fn page(&self, page: &impl Template) -> PageAnswer {
        self.with_policy(page, &site_policy())
    }

    /// The answer with a page that stands for itself, without a script.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    pub fn page_alone(&self, page: &impl Template) -> PageAnswer {
        self.with_policy(page, &alone_policy(None))
    }

    /// The answer with a form whose fields are wrong: 422.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    pub fn form_again(&self, page: &impl Template) -> PageAnswer {
        let mut response = self.page(page)?;
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        Ok(response)
    }

    /// As [`form_again`](Self::form_again), for a page that stands for itself.
    ///
    /// # Errors
    /// As [`page`](Self::page).
    pub fn form_again_alone(&self, page: &impl Template) -> PageAnswer {
        let mut response = self.page_alone(page)?;
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        Ok(response)
    }

    fn with_policy(&self, page: &impl Template, policy: &str) -> PageAnswer {
        let html = page.render().map_err(|_| service::Error::Internal("a page could not be rendered"))?;
        Ok(self.request.page(html, policy, self.browser.new_token()))
    }

    /// Leads to another page after a form, where the notice is shown. `location` is one of this origin.
    pub fn redirect(&self, location: &str, flash: Option<Flash>) -> Response {
        self.request.redirect(local_page(location).unwrap_or("/"), flash, None)
    }

    /// Gives the browser the token of a sign-in, and leads to the next page. The new token replaces the old
    /// one, so a token planted in the browser earlier is worthless.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn signed_in(&self, token: &BrowserToken, next: &str) -> PageAnswer {
        self.web.service().sign_out(&self.browser.token).await?;
        Ok(self.request.redirect(local_page(next).unwrap_or("/"), None, Some(token)))
    }

    /// Ends the sign-in of this browser, which gets a new token.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn signed_out(&self, location: &str) -> PageAnswer {
        self.web.service().sign_out(&self.browser.token).await?;
        let token = Browser::fresh(&self.web).token;
        Ok(self.request.redirect(local_page(location).unwrap_or("/"), Some(Flash::SignedOut), Some(&token)))
    }

    fn problem(&self, problem: PageProblem) -> Response {
        problem_answer(&self.web, &self.request, problem)
    }
}

impl FromRequestParts<Web> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        Ok(Self::of(parts, web).await?)
    }
}

impl FromRequestParts<Web> for Person {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Response> {
        let visitor = Visitor::of(parts, web).await.map_err(|error| Failure::from(error).into_response())?;
        Self::signed_in(visitor).map_err(|first| *first)
    }
}

impl Person {
    fn signed_in(visitor: Visitor) -> Result<Self, Box<Response>> {
        match visitor.browser.person.clone() {
            Some((channel_id, name)) => {
                let operator_role = visitor.browser.operator_role;
                Ok(Self { visitor, channel_id, name, operator_role })
            }
            None => Err(Box::new(visitor.request.redirect(&sign_in_first(&visitor.request), None, None))),
        }
    }
}

/// The page that signs in and leads back.
fn sign_in_first(request: &PageRequest) -> String {
    let mut location = SIGN_IN.to_owned();
    if request.is_get() {
        location.push_str("?next=");
        percent_encode(&request.path_and_query(), &mut location);
    }
    location
}

impl FromRequest<Web> for Posted {
    type Rejection = Response;

    /// A form of another site, of another page, or of a browser without the cookie is refused.
    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let visitor = Visitor::of(&parts, web).await.map_err(|error| Failure::from(error).into_response())?;
        let fields = FormFields::read(&parts.headers, body).await;
        let fields = fields.map_err(|_| visitor.problem(PageProblem::InvalidParameter("form")))?;
        let given = SecretHash::stored(fields.text("csrf").to_owned());
        let is_own =
            !visitor.browser.new && proof(&visitor.browser.token, visitor.request.path()).matches(&given);
        if !is_own {
            return Err(visitor.problem(PageProblem::FormExpired));
        }
        Ok(Self { visitor, fields })
    }
}

impl FromRequest<Web> for PostedBy {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let Posted { visitor, fields } = Posted::from_request(request, web).await?;
        let person = Person::signed_in(visitor).map_err(|first| *first)?;
        Ok(Self { person, fields })
    }
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("path", &self.request.path()).finish_non_exhaustive()
    }
}
