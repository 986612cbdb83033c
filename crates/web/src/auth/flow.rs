//! Decides the next step of a sign-in from the query, the form and the browser alone.

use domain::application::with_query;
use domain::limits::STATE_BYTES_MAX;
use domain::secret::{BrowserToken, SecretHash};
use domain::{Invalid, Refusal, Rule};
use service::sign_in::{BadSignIn, SignInRequest};

use crate::browser::Browser;
use crate::input::Pairs;
use crate::pages::{PageProblem, SignInError};

/// The query parameter that requests the sign-in page although a person is signed in.
pub(super) const SWITCH: &str = "switch";

/// Why a sign-in stops.
pub(super) enum Stop {
    /// The sign-in page is shown again, with this login and this reason.
    Retry { login: String, error: SignInError },
    /// An error page is shown.
    Problem(PageProblem),
    /// The service failed.
    Failed(service::Error),
}

impl Stop {
    /// Shows the sign-in page again.
    pub fn retry(login: &str, error: SignInError) -> Self {
        Self::Retry { login: login.to_owned(), error }
    }
}

impl From<PageProblem> for Stop {
    fn from(problem: PageProblem) -> Self {
        Self::Problem(problem)
    }
}

impl From<BadSignIn> for Stop {
    fn from(bad: BadSignIn) -> Self {
        Self::Problem(match bad {
            BadSignIn::UnknownClient => PageProblem::UnknownApplication,
            BadSignIn::UnregisteredRedirect => PageProblem::RedirectNotRegistered,
        })
    }
}

impl From<service::Error> for Stop {
    fn from(error: service::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<askama::Error> for Stop {
    fn from(_: askama::Error) -> Self {
        Self::Failed(service::Error::Internal("a sign-in page could not be rendered"))
    }
}

/// The parameters of an application's request.
pub(super) struct Parameters<'q> {
    /// The id of the application.
    pub client_id: &'q str,
    /// The redirect address.
    pub redirect_uri: &'q str,
    /// The `state`, which the redirect repeats.
    pub state: &'q str,
}

/// The three parameters of an application's request. Each must occur once.
pub(super) fn parameters(query: &Pairs) -> Result<Parameters<'_>, Stop> {
    let client_id = parameter(query, "clientId")?;
    let redirect_uri = parameter(query, "redirectUri")?;
    let state = parameter(query, "state")?;
    if state.len() > STATE_BYTES_MAX {
        return Err(PageProblem::InvalidParameter("state").into());
    }
    Ok(Parameters { client_id, redirect_uri, state })
}

fn parameter<'p>(pairs: &'p Pairs, name: &'static str) -> Result<&'p str, PageProblem> {
    pairs.text(name).map_err(|Invalid { rule, .. }| match rule {
        Rule::Once => PageProblem::RepeatedParameter(name),
        _ => PageProblem::MissingParameter(name),
    })
}

/// Whether the consent page comes first: a person is signed in, and the query does not request another
/// person.
pub(super) fn begins_with_consent(query: &Pairs, browser: &Browser) -> bool {
    browser.person.is_some() && !matches!(query.optional(SWITCH), Ok(Some(_)))
}

/// The action of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'f> {
    /// Signs the browser out.
    SignOut,
    /// Allows or denies the consent.
    Decide(&'f str),
    /// Signs in as a person of the sandbox, by login.
    Pick(&'f str),
    /// Signs in with a password.
    TryPassword { login: &'f str, password: &'f str },
}

/// The action of this browser's form. A form of another site, of another request, or of a browser without the
/// cookie is refused.
pub(super) fn step<'f>(
    form: &'f Pairs,
    request: &SignInRequest,
    browser: &Browser,
    sandbox: bool,
) -> Result<Step<'f>, Stop> {
    let proof = field(form, "csrf")?.unwrap_or("");
    if browser.new || !csrf(&browser.token, request).matches(&SecretHash::stored(proof.to_owned())) {
        return Err(PageProblem::FormExpired.into());
    }
    requested_step(form, sandbox)
}

/// The action of a form with a valid CSRF proof.
fn requested_step(form: &Pairs, sandbox: bool) -> Result<Step<'_>, Stop> {
    if field(form, "sign_out")?.is_some() {
        return Ok(Step::SignOut);
    }
    if let Some(decision) = field(form, "decision")? {
        return Ok(Step::Decide(decision));
    }
    if let Some(login) = field(form, "person")?.filter(|_| sandbox) {
        return Ok(Step::Pick(login));
    }
    let (login, password) = (field(form, "login")?.unwrap_or(""), field(form, "password")?.unwrap_or(""));
    if login.is_empty() || password.is_empty() {
        return Err(Stop::retry(login, SignInError::Missing));
    }
    Ok(Step::TryPassword { login, password })
}

fn field<'f>(form: &'f Pairs, name: &'static str) -> Result<Option<&'f str>, Stop> {
    form.optional(name).map_err(|_| PageProblem::RepeatedParameter(name).into())
}

/// The person's decision about a consent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The application may act for the person.
    Allow,
    /// The application may not act for the person.
    Deny,
}

impl Decision {
    /// Reads the form field `decision`.
    pub fn parse(text: &str) -> Result<Self, Stop> {
        match text {
            "allow" => Ok(Self::Allow),
            "deny" => Ok(Self::Deny),
            _ => Err(PageProblem::InvalidParameter("decision").into()),
        }
    }
}

/// How a sign-in stops when the service refuses the consent.
pub(super) fn no_consent(error: service::Error) -> Stop {
    match error.refusal() {
        Refusal::InvalidToken(_) => Stop::retry("", SignInError::Expired),
        Refusal::NotFound(_) => PageProblem::UnknownApplication.into(),
        _ => error.into(),
    }
}

/// The redirect address of an allowed sign-in.
pub(super) fn allowed(request: &SignInRequest, code: &str) -> String {
    with_query(&request.redirect_uri, &[("code", code), ("state", &request.state)])
}

/// The redirect address of a denied sign-in.
pub(super) fn denied(request: &SignInRequest) -> String {
    with_query(&request.redirect_uri, &[("error", "access_denied"), ("state", &request.state)])
}

/// The CSRF proof of a form. Only a browser with the cookie can have it. It is valid for one request of one
/// application, with the scopes that the page showed.
pub(super) fn csrf(token: &BrowserToken, request: &SignInRequest) -> SecretHash {
    let SignInRequest { application, redirect_uri, state } = request;
    let (token, client_id, scopes) =
        (token.hash(), &application.client_id, application.user_scopes().to_stored());
    SecretHash::of(&format!("{}\n{client_id}\n{scopes}\n{redirect_uri}\n{state}", token.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_action_of_a_form_counts() {
        let check = |form: &str, sandbox, expected: Step<'_>| {
            let form = Pairs::parse(form).expect("readable");
            assert_eq!(requested_step(&form, sandbox).ok(), Some(expected));
        };
        let password = Step::TryPassword { login: "a", password: "b" };
        check("sign_out=1&decision=allow&login=a&password=b", false, Step::SignOut);
        check("decision=allow&person=a", true, Step::Decide("allow"));
        check("person=a&login=a&password=b", true, Step::Pick("a"));
        check("person=a&login=a&password=b", false, password);
    }

    #[test]
    fn a_form_without_login_or_password_is_shown_again() {
        for form in ["login=a", "login=a&password=", ""] {
            let form = Pairs::parse(form).expect("readable");
            let stop = requested_step(&form, false).err();
            assert!(matches!(stop, Some(Stop::Retry { error: SignInError::Missing, .. })));
        }
        let twice = Pairs::parse("login=a&login=b").expect("readable");
        let stop = requested_step(&twice, false).err();
        assert!(matches!(stop, Some(Stop::Problem(PageProblem::RepeatedParameter("login")))));
    }

    #[test]
    fn a_decision_is_allow_or_deny() {
        assert_eq!(Decision::parse("allow").ok(), Some(Decision::Allow));
        assert_eq!(Decision::parse("deny").ok(), Some(Decision::Deny));
        assert!(matches!(
            Decision::parse("Allow"),
            Err(Stop::Problem(PageProblem::InvalidParameter("decision")))
        ));
    }
}
