//! What comes next in a sign-in: decided from the query, the form and the browser alone.

use domain::application::with_query;
use domain::limits::STATE_BYTES_MAX;
use domain::secret::{BrowserToken, SecretHash};
use domain::{ChannelId, Invalid, Refusal, Rule};
use service::sign_in::{BadSignIn, SignInRequest};

use crate::input::Pairs;
use crate::pages::{PageProblem, SignInError};

/// The query parameter that asks for the sign-in page although a person is signed in.
pub(super) const SWITCH: &str = "switch";

/// Why a sign-in does not go on.
pub(super) enum Stop {
    /// The sign-in page is shown once more, with this login and this reason.
    Again { login: String, error: SignInError },
    /// A page says what is wrong.
    Problem(PageProblem),
    /// The service failed.
    Failed(service::Error),
}

impl Stop {
    /// The sign-in page once more.
    pub fn again(login: &str, error: SignInError) -> Self {
        Self::Again { login: login.to_owned(), error }
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

/// A browser: a token that its forms are bound to, and the person signed in with it.
pub(super) struct Browser {
    /// The token.
    pub token: BrowserToken,
    /// Whether the browser has yet to receive its token.
    pub new: bool,
    /// The person, with the name of the channel.
    pub person: Option<(ChannelId, String)>,
}

/// The request of an application, as its query says it.
pub(super) struct Parameters<'q> {
    /// Which application.
    pub client_id: &'q str,
    /// Where the sign-in is to end.
    pub redirect_uri: &'q str,
    /// What comes back in the redirect.
    pub state: &'q str,
}

/// The three parameters of an application's request, once each.
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

/// Whether the consent page is shown first: a person is signed in, and the query does not ask for another
/// person.
pub(super) fn begins_with_consent(query: &Pairs, browser: &Browser) -> bool {
    browser.person.is_some() && !matches!(query.optional(SWITCH), Ok(Some(_)))
}

/// What a form asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'f> {
    /// The browser is signed out.
    SignOut,
    /// The person allows or denies.
    Decide(&'f str),
    /// A person of the sandbox is picked by login.
    Pick(&'f str),
    /// A password is tried.
    TryPassword { login: &'f str, password: &'f str },
}

/// What the form of this browser asks for. A form of another site, of another request, or of a browser that
/// kept no cookie asks for nothing.
pub(super) fn step<'f>(
    form: &'f Pairs,
    asked: &SignInRequest,
    browser: &Browser,
    sandbox: bool,
) -> Result<Step<'f>, Stop> {
    let proof = field(form, "csrf")?.unwrap_or("");
    if browser.new || !csrf(&browser.token, asked).matches(&SecretHash::stored(proof.to_owned())) {
        return Err(PageProblem::FormExpired.into());
    }
    wish(form, sandbox)
}

/// What a form with a good proof asks for.
fn wish(form: &Pairs, sandbox: bool) -> Result<Step<'_>, Stop> {
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
        return Err(Stop::again(login, SignInError::Missing));
    }
    Ok(Step::TryPassword { login, password })
}

fn field<'f>(form: &'f Pairs, name: &'static str) -> Result<Option<&'f str>, Stop> {
    form.optional(name).map_err(|_| PageProblem::RepeatedParameter(name).into())
}

/// What a person decided.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The application may act for the person.
    Allow,
    /// It may not.
    Deny,
}

impl Decision {
    /// Reads the field of the form.
    pub fn parse(text: &str) -> Result<Self, Stop> {
        match text {
            "allow" => Ok(Self::Allow),
            "deny" => Ok(Self::Deny),
            _ => Err(PageProblem::InvalidParameter("decision").into()),
        }
    }
}

/// What a consent that the service refused leads to.
pub(super) fn no_consent(error: service::Error) -> Stop {
    match error.refusal() {
        Refusal::InvalidToken(_) => Stop::again("", SignInError::Expired),
        Refusal::NotFound(_) => PageProblem::UnknownApplication.into(),
        _ => error.into(),
    }
}

/// Where an allowed sign-in ends.
pub(super) fn allowed(asked: &SignInRequest, code: &str) -> String {
    with_query(&asked.redirect_uri, &[("code", code), ("state", &asked.state)])
}

/// Where a denied sign-in ends.
pub(super) fn denied(asked: &SignInRequest) -> String {
    with_query(&asked.redirect_uri, &[("error", "access_denied"), ("state", &asked.state)])
}

/// What a form must carry to count. Nobody without the browser's cookie can make it up, and it is good for
/// this request of this application only, with the scopes that its page showed.
pub(super) fn csrf(token: &BrowserToken, asked: &SignInRequest) -> SecretHash {
    let SignInRequest { application, redirect_uri, state } = asked;
    let (token, client_id, scopes) =
        (token.hash(), &application.client_id, application.user_scopes().to_stored());
    SecretHash::of(&format!("{}\n{client_id}\n{scopes}\n{redirect_uri}\n{state}", token.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_asks_for_one_thing_and_the_first_of_several_counts() {
        let check = |form: &str, sandbox, expected: Step<'_>| {
            let form = Pairs::parse(form).expect("readable");
            assert_eq!(wish(&form, sandbox).ok(), Some(expected));
        };
        let password = Step::TryPassword { login: "a", password: "b" };
        check("sign_out=1&decision=allow&login=a&password=b", false, Step::SignOut);
        check("decision=allow&person=a", true, Step::Decide("allow"));
        check("person=a&login=a&password=b", true, Step::Pick("a"));
        check("person=a&login=a&password=b", false, password);
    }

    #[test]
    fn a_form_without_login_or_password_is_shown_once_more() {
        for form in ["login=a", "login=a&password=", ""] {
            let form = Pairs::parse(form).expect("readable");
            let stop = wish(&form, false).err();
            assert!(matches!(stop, Some(Stop::Again { error: SignInError::Missing, .. })));
        }
        let twice = Pairs::parse("login=a&login=b").expect("readable");
        let stop = wish(&twice, false).err();
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
