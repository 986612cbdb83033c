//! Who asks for a page, and the forms that they post. Handlers of pages get both only from these extractors.

use std::fmt;
use std::sync::OnceLock;

use askama::Template;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use domain::audit::Actor;
use domain::operator_key::OperatorRole;
use domain::secret::{BrowserToken, SecretHash};
use domain::{ChannelId, Timestamp};
use http::StatusCode;
use http::request::Parts;
use service::Service;
use service::form_drafts::{FormDraft, FormOrigin};

use crate::Web;
use crate::browser::{Browser, Renewed};
use crate::cookies::has_draft;
use crate::envelope::Failure;
use crate::form_again::{Again, PostedForm, is_kept, show_again, with_draft};
use crate::form_fields::FormFields;
use crate::page_request::PageRequest;
use crate::pages::{
    Account, Area, Flash, Lang, PageProblem, ProviderButton, Shell, alone_policy, local_page, open_folds,
    site_policy, with_next,
};
use crate::problems::problem_answer;
use crate::providers::{proof, provider_buttons};
use crate::quota::block;

/// Stands between the proof of a form and its seal, which says for whom it was made.
const SEAL: char = '.';

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
    renewed: Renewed,
    /// The proof of the form that signs out.
    sign_out: OnceLock<String>,
    /// The page of the form that was posted.
    form_page: Option<String>,
    /// What was typed into a form of this page before the sign-in ended.
    draft: Option<FormDraft>,
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
        let renewed = parts.extensions.get::<Renewed>().cloned().unwrap_or_default();
        let draft = match &browser.person {
            Some((channel, _)) if request.is_get() && has_draft(&request.headers) => {
                web.service().form_draft(channel, &request.path_and_query()).await?
            }
            _ => None,
        };
        let (sign_out, form_page) = (OnceLock::new(), None);
        Ok(Self { web: web.clone(), request, browser, renewed, sign_out, form_page, draft })
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
        provider_buttons(&self.web, self.lang(), self.browser_token())
    }

    /// The token of the browser.
    pub fn browser_token(&self) -> &BrowserToken {
        self.renewed.token().unwrap_or(&self.browser.token)
    }

    /// Gives the browser another token, with every answer to this request.
    pub fn renew_browser(&self, token: BrowserToken) {
        self.renewed.set(token, self.request.https);
    }

    /// The layout of a page with navigation.
    pub fn shell(&self, area: Area) -> Shell<'_> {
        let account = match &self.browser.person {
            Some((_, name)) => {
                let is_operator = self.browser.operator_role.is_some();
                let proof_of = || proof(self.browser_token(), SIGN_OUT).as_str().to_owned();
                Account::Person { name, sign_out: self.sign_out.get_or_init(proof_of), is_operator }
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
        let mut csrf = proof(self.browser_token(), path).as_str().to_owned();
        if let Some(channel_id) = self.channel_id().cloned() {
            let origin = FormOrigin { channel_id, page: self.page_of_forms() };
            csrf.push(SEAL);
            csrf.push_str(&self.web.service().seal_form(path, &origin));
        }
        FormTarget { csrf, action }
    }

    /// The page that shows the forms of this answer.
    fn page_of_forms(&self) -> String {
        self.form_page.clone().unwrap_or_else(|| self.request.path_and_query())
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
        let mut html = page.render().map_err(|_| service::Error::Internal("a page could not be rendered"))?;
        if let Some(draft) = &self.draft {
            html = with_draft(&html, draft, self.lang());
        }
        let html = open_folds(html);
        let mut response = self.request.page(html, policy, self.browser.new_token());
        if self.draft.is_some() {
            self.request.set_draft_cookie(&mut response, false);
        }
        Ok(response)
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
        self.signed_in_with(token, next, None).await
    }

    /// As [`signed_in`](Self::signed_in), with a notice on the next page.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn signed_in_with(&self, token: &BrowserToken, next: &str, flash: Option<Flash>) -> PageAnswer {
        self.web.service().sign_out(self.browser_token()).await?;
        Ok(self.request.redirect(local_page(next).unwrap_or("/"), flash, Some(token)))
    }

    /// Ends the sign-in of this browser, which gets a new token.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn signed_out(&self, location: &str) -> PageAnswer {
        self.web.service().sign_out(self.browser_token()).await?;
        let token = Browser::fresh(&self.web).token;
        Ok(self.request.redirect(local_page(location).unwrap_or("/"), Some(Flash::SignedOut), Some(&token)))
    }

    fn problem(&self, problem: PageProblem) -> Response {
        problem_answer(&self.web, &self.request, problem)
    }

    /// Leads to the sign-in and from there back to the form, with what was typed. Only a form that a page
    /// of ours made for this person is kept.
    async fn sign_in_again(&self, origin: FormOrigin, fields: &FormFields) -> Response {
        let FormOrigin { channel_id, page } = origin;
        let location = with_next(SIGN_IN, &page);
        let action = self.request.path().to_owned();
        let draft = FormDraft { action, page, fields: kept(fields) };
        if let Err(error) = self.web.service().keep_form_draft(&channel_id, draft).await {
            return Failure::from(error).into_response();
        }
        let mut response = self.request.redirect(&location, Some(Flash::SignInEnded), None);
        self.request.set_draft_cookie(&mut response, true);
        response
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
    /// The service, for calls that the audit log reports as the person's.
    pub fn service(&self) -> Service {
        let actor = Actor::Person(self.channel_id.clone());
        let request_id = self.visitor.request.id.to_string();
        self.visitor.web.service().acting_as(actor, None, request_id)
    }

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
    match request.is_get() {
        true => with_next(SIGN_IN, &request.path_and_query()),
        false => SIGN_IN.to_owned(),
    }
}

impl FromRequest<Web> for Posted {
    type Rejection = Response;

    /// A form of another site, of another page, or of a browser without the cookie is refused.
    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        Self::read(request, web, false).await
    }
}

impl Posted {
    /// A form of a page that `needs_person` leads to the sign-in when that has ended.
    async fn read(request: Request, web: &Web, needs_person: bool) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let visitor = Visitor::of(&parts, web).await.map_err(|error| Failure::from(error).into_response())?;
        let fields = FormFields::read(&parts.headers, body).await;
        let fields = fields.map_err(|_| visitor.problem(PageProblem::FormUnreadable))?;
        let (given, seal) = fields.text("csrf").split_once(SEAL).unwrap_or((fields.text("csrf"), ""));
        let given = SecretHash::stored(given.to_owned());
        let is_own =
            !visitor.browser.new && proof(&visitor.browser.token, visitor.request.path()).matches(&given);
        let origin = web.service().open_form(visitor.request.path(), seal);
        let is_theirs = origin.as_ref().is_some_and(|one| Some(&one.channel_id) == visitor.channel_id());
        match (fields.too_large(), origin) {
            (Some(field), origin) => {
                let page = origin.map_or_else(|| visitor.request.path_and_query(), |origin| origin.page);
                let shown = if is_own || is_theirs { kept(&fields) } else { Vec::new() };
                Err(show_again(web, &parts, &page, &shown, Again::TooLarge(field)).await)
            }
            (None, origin) if is_own => {
                let form_page = origin.map(|origin| origin.page);
                let page = form_page.clone().unwrap_or_else(|| visitor.request.path_and_query());
                PostedForm::keep(parts, page, kept(&fields));
                Ok(Self { visitor: Visitor { form_page, ..visitor }, fields })
            }
            (None, Some(origin)) if is_theirs => {
                Err(show_again(web, &parts, &origin.page, &kept(&fields), Again::Expired).await)
            }
            (None, Some(origin)) if needs_person && !visitor.is_signed_in() => {
                Err(visitor.sign_in_again(origin, &fields).await)
            }
            (None, _) => Err(visitor.problem(PageProblem::FormExpired)),
        }
    }
}

/// The fields of a form that may be shown again.
fn kept(fields: &FormFields) -> Vec<(String, String)> {
    let too_large = fields.too_large();
    let kept = fields.pairs().filter(|(name, _)| is_kept(name) && Some(*name) != too_large);
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl FromRequest<Web> for PostedBy {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let Posted { visitor, fields } = Posted::read(request, web, true).await?;
        if !visitor.is_signed_in() {
            let seal = fields.text("csrf").split_once(SEAL).map_or("", |(_, seal)| seal);
            if let Some(origin) = web.service().open_form(visitor.request.path(), seal) {
                return Err(visitor.sign_in_again(origin, &fields).await);
            }
        }
        let person = Person::signed_in(visitor).map_err(|first| *first)?;
        Ok(Self { person, fields })
    }
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("path", &self.request.path()).finish_non_exhaustive()
    }
}
