//! The answers of a sign-in: pages and the redirect, with their headers.

use askama::Template;
use axum::response::Response;
use domain::application::{Organization, origin_of, percent_encode};
use domain::{ClientId, Refusal, ScopeSet};
use http::{StatusCode, header};
use service::sign_in::SignInRequest;

use super::flow::{SWITCH, Stop, csrf};
use crate::Web;
use crate::browser::Browser;
use crate::envelope::Cause;
use crate::input::Pairs;
use crate::page_request::PageRequest;
use crate::pages::{
    AppFace, ConsentPage, PageProblem, ScopeLine, SeededPerson, SignInError, SignInPage, alone_policy,
};
use crate::problems::problem_answer;
use crate::providers::provider_buttons;

/// The address of every page.
pub(super) const PATH: &str = "/account-interlock";

/// The application in the address of a sign-in.
pub fn client_of_sign_in(page: &str) -> Option<ClientId> {
    let (_, query) = page.split_once('?').filter(|(path, _)| *path == PATH)?;
    let client_id = Pairs::parse(query).ok()?.text("clientId").ok()?.to_owned();
    Some(ClientId::stored(client_id))
}

/// Renders the pages of one request.
pub(super) struct Pages<'a> {
    /// The service and its brand.
    pub web: &'a Web,
    /// The request.
    pub request: &'a PageRequest,
}

impl Pages<'_> {
    /// The page that asks for login and password.
    pub fn sign_in(
        &self,
        request: &SignInRequest,
        browser: &Browser,
        login: &str,
        error: Option<SignInError>,
        people: &[SeededPerson<'_>],
    ) -> Result<Response, Stop> {
        let (action, proof) = (action(request), csrf(&browser.token, request));
        let providers = provider_buttons(self.web, self.request.lang(), &browser.token);
        let page = SignInPage {
            shell: self.request.shell(self.web),
            application_name: Some(&request.application.name),
            action: &action,
            hidden: &[("csrf", proof.as_str())],
            login,
            error,
            people,
            has_registration: self.web.service().account_settings().registration,
            has_passwords: self.web.service().account_settings().passwords,
            providers: &providers,
            next: &action,
        };
        let mut response = self.page(page.render()?, request, browser);
        if let Some(retry_after_seconds) = error.and_then(SignInError::retry_after_seconds) {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert(header::RETRY_AFTER, retry_after_seconds.into());
        }
        if let Some(reason) = error.and_then(SignInError::reason) {
            response.extensions_mut().insert(reason);
        }
        Ok(response)
    }

    /// The page that asks for consent.
    /// `known` are the scopes that the person allowed before.
    pub fn consent(
        &self,
        request: &SignInRequest,
        browser: &Browser,
        known: Option<ScopeSet>,
    ) -> Result<Response, Stop> {
        let lang = self.request.lang();
        let scopes = request.application.user_scopes().iter().map(|scope| ScopeLine {
            is_known: known.is_some_and(|known| known.contains(scope)),
            ..ScopeLine::new(scope.name(), lang)
        });
        let organization = request.application.organization.as_ref();
        let origin = origin_of(&request.redirect_uri);
        let (action, proof) = (action(request), csrf(&browser.token, request));
        let page = ConsentPage {
            shell: self.request.shell(self.web),
            application_name: &request.application.name,
            face: AppFace::of(&request.application),
            is_returning: known.is_some(),
            organization: organization.map(|organization| organization.name.as_str()),
            verified: organization.is_some_and(|Organization { verified, .. }| *verified),
            person_name: browser.person.as_ref().map_or("", |(_, name)| name),
            person_image: None,
            scopes: &scopes.collect::<Vec<_>>(),
            redirect_host: origin.split_once("://").map_or(origin, |(_, host)| host),
            action: &action,
            hidden: &[("csrf", proof.as_str())],
            switch_account_href: &format!("{action}&{SWITCH}=1"),
        };
        Ok(self.page(page.render()?, request, browser))
    }

    /// The page for a failure of the service. The cause goes to the log.
    pub fn failure(&self, error: service::Error) -> Response {
        let mut response = self.problem(match error.refusal() {
            Refusal::DiskFull => PageProblem::DiskFull,
            refusal @ Refusal::TooManyRequests { .. } => return self.problem(PageProblem::of(&refusal)),
            _ => PageProblem::ServerError,
        });
        response.extensions_mut().insert(Cause(error));
        response
    }

    /// The page for a problem of the request.
    pub fn problem(&self, problem: PageProblem) -> Response {
        problem_answer(self.web, self.request, problem)
    }

    /// A page with its content security policy. The policy allows the form to end only at the validated
    /// redirect address.
    fn page(&self, html: String, request: &SignInRequest, browser: &Browser) -> Response {
        let policy = alone_policy(Some(origin_of(&request.redirect_uri)));
        self.request.page(html, &policy, browser.new_token())
    }
}

/// The address of the form: its query has only the parameters of the application's request.
fn action(request: &SignInRequest) -> String {
    let mut action = format!("{PATH}?clientId={}&redirectUri=", request.application.client_id);
    percent_encode(&request.redirect_uri, &mut action);
    action.push_str("&state=");
    percent_encode(&request.state, &mut action);
    action
}
