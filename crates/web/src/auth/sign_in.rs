//! The authorization address: sign in, consent, and the redirect with the code
//! (`docs/spec/authorization.md#sign-in`).
//!
//! One address, `/account-interlock`, whose query is the application's request and stays the same throughout. `GET` shows
//! the page that comes next; `POST` takes a form and answers with the page after it, or with the redirect. Plain forms:
//! nothing here needs a script.

use askama::Template;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::application::{Organization, origin_of, percent_encode, with_query};
use domain::limits::{BROWSER_SESSION_LIFETIME_MS, STATE_BYTES_MAX};
use domain::secret::{BrowserToken, SecretHash};
use domain::{ChannelId, Invalid, Refusal, Rule};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use service::sign_in::{BadSignIn, SignInRequest};

use crate::auth::guesses::Guess;
use crate::contract::routes::Take;
use crate::contract::{Operation, Summary};
use crate::envelope::Cause;
use crate::failures::{self, Failed};
use crate::input::shape::{Shape, one_of, optional, required, some_text, text};
use crate::input::{Pairs, read_body};
use crate::pages::{
    ConsentPage, ErrorPage, Lang, PageProblem, ScopeLine, SeededPerson, SignInError, SignInPage,
    content_security_policy, language_href,
};
use crate::quota::Charged;
use crate::{ClientAddress, RequestId, Web};

const PATH: &str = "/account-interlock";
const COOKIE: &str = "stagedoor_browser";
/// Its name under https: a browser keeps it only from this very host, and only over https, so no other host of the domain
/// can plant one.
const HOST_COOKIE: &str = "__Host-stagedoor_browser";
/// The query parameter that asks for the sign-in page although somebody is signed in.
const SWITCH: &str = "switch";
/// People that the sandbox's sign-in page lists.
const PEOPLE_LISTED: i64 = 20;

pub(crate) const SHOW: Summary = Summary::new(
    "showSignIn",
    "Show the page that signs in or asks for consent",
    "로그인 또는 동의 페이지 표시",
);

/// `GET /account-interlock`: the sign-in page, or the consent page for whoever is signed in.
pub async fn show(State(web): State<Web>, Extension(id): Extension<RequestId>, request: Request) -> Response {
    let visit = Visit::new(&web, &id, &request, None);
    visit.show().await.unwrap_or_else(|problem| visit.problem_page(problem))
}

pub(crate) const SUBMIT: Summary =
    Summary::new("submitSignIn", "Sign in, allow or deny", "로그인, 허용 또는 거부");

/// `POST /account-interlock`: a sign-in or a decision.
pub async fn submit(
    State(web): State<Web>,
    Extension(id): Extension<RequestId>,
    Extension(charged): Extension<Charged>,
    client: Option<Extension<ClientAddress>>,
    request: Request,
) -> Response {
    let mut visit = Visit::new(&web, &id, &request, client.map(|Extension(client)| client));
    let form = read_body(request.into_body()).await.and_then(|body| Pairs::parse(&body));
    let answer = match &form {
        Ok(form) => {
            visit.lang = visit.choose_lang(form.optional("lang").ok().flatten());
            visit.submit(form, &charged).await
        }
        Err(_) => Err(PageProblem::InvalidParameter("form").into()),
    };
    answer.unwrap_or_else(|problem| visit.problem_page(problem))
}

/// The address for the documents: its query, and the form that its pages post. Only the pages of the sign-in take a request
/// whole.
impl Take for Request {
    fn describe(operation: &mut Operation) {
        operation.query.extend([
            required("clientId", some_text().about("The application.")),
            required(
                "redirectUri",
                some_text().about("Byte for byte one of those registered for the application."),
            ),
            required(
                "state",
                some_text()
                    .max_chars(STATE_BYTES_MAX)
                    .about("Comes back in the redirect. At most 1,024 bytes."),
            ),
            optional("lang", one_of(&Lang::ALL.map(Lang::tag)).about("Left out: as `Accept-Language` says.")),
        ]);
        if operation.method == "POST" {
            let form = Shape::of([
                required("csrf", text().about("From the page.")),
                optional("login", text()),
                optional("password", text()),
                optional("decision", one_of(&["allow", "deny"])),
                optional("sign_out", text().about("Ends the browser's session; any value.")),
            ]);
            operation.body = Some((&["application/x-www-form-urlencoded"], form.schema()));
        }
    }
}

/// One request to the address, and what it says about the browser.
struct Visit<'a> {
    web: &'a Web,
    id: &'a RequestId,
    query: String,
    headers: HeaderMap,
    client: Option<ClientAddress>,
    lang: Lang,
}

/// Why there is no page to show but that of a problem, and the cause of one of ours.
struct Problem(PageProblem, Option<service::Error>);

impl From<PageProblem> for Problem {
    fn from(problem: PageProblem) -> Self {
        Self(problem, None)
    }
}

impl From<service::Error> for Problem {
    fn from(error: service::Error) -> Self {
        let problem = match error.refusal() {
            Refusal::DiskFull => PageProblem::DiskFull,
            _ => PageProblem::ServerError,
        };
        Self(problem, Some(error))
    }
}

impl From<askama::Error> for Problem {
    fn from(_: askama::Error) -> Self {
        service::Error::Internal("a sign-in page could not be rendered").into()
    }
}

/// Who holds the browser: a token that its forms are bound to, and the person signed in with it.
struct Browser {
    token: BrowserToken,
    /// Whether the browser has yet to be told its token.
    new: bool,
    person: Option<(ChannelId, String)>,
}

impl<'a> Visit<'a> {
    fn new(web: &'a Web, id: &'a RequestId, request: &Request, client: Option<ClientAddress>) -> Self {
        let query = request.uri().query().unwrap_or("").to_owned();
        let mut visit =
            Self { web, id, query, headers: request.headers().clone(), client, lang: Lang::default() };
        visit.lang = visit.choose_lang(None);
        visit
    }

    /// The form's language, else the query's, else the browser's.
    fn choose_lang(&self, form: Option<&str>) -> Lang {
        let pairs = Pairs::parse(&self.query).ok();
        let wanted = form.or(pairs.as_ref().and_then(|pairs| pairs.optional("lang").ok().flatten()));
        let accepted = self.headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Lang::choose(wanted, accepted)
    }

    async fn show(&self) -> Result<Response, Problem> {
        let asked = self.asked().await?;
        let browser = self.browser().await?;
        let switch =
            Pairs::parse(&self.query).is_ok_and(|pairs| matches!(pairs.optional(SWITCH), Ok(Some(_))));
        match &browser.person {
            Some(_) if !switch => self.consent_page(&asked, &browser),
            _ => self.sign_in_page(&asked, &browser, "", None).await,
        }
    }

    async fn submit(&self, form: &Pairs, charged: &Charged) -> Result<Response, Problem> {
        let asked = self.asked().await?;
        let field =
            |name| form.optional(name).map_err(|_| Problem::from(PageProblem::RepeatedParameter(name)));
        let browser = self.browser().await?;
        let proof = field("csrf")?.unwrap_or("");
        // A form of another site, of another request, or of a browser that kept no cookie: nothing is done with it.
        if browser.new || !csrf(&browser.token, &asked).matches(&SecretHash::stored(proof.to_owned())) {
            return Err(PageProblem::FormExpired.into());
        }
        if field("sign_out")?.is_some() {
            return self.sign_out(&asked, &browser).await;
        }
        if let Some(decision) = field("decision")? {
            return self.decide(&asked, &browser, decision).await;
        }
        if let Some(login) = field("person")?.filter(|_| self.web.config().sandbox) {
            let token = self.web.service().sign_in_as(login).await?;
            return self.signed_in(&asked, token, login).await;
        }
        let (login, password) = (field("login")?.unwrap_or(""), field("password")?.unwrap_or(""));
        if login.is_empty() || password.is_empty() {
            return self.sign_in_page(&asked, &browser, login, Some(SignInError::Missing)).await;
        }
        match self.try_password(charged, login, password).await? {
            Ok(token) => self.signed_in(&asked, token, login).await,
            Err(error) => self.sign_in_page(&asked, &browser, login, Some(error)).await,
        }
    }

    /// Tries a password: the browser's token, or none where it is wrong, or why it was not looked at.
    async fn try_password(
        &self,
        charged: &Charged,
        login: &str,
        password: &str,
    ) -> Result<Result<Option<BrowserToken>, SignInError>, Problem> {
        let limited = |error| {
            failures::count(self.web, Failed::SignInLimited, self.client);
            Ok(Err(error))
        };
        let guess = match Guess::begin(self.web, charged, login, self.client).await {
            Ok(guess) => guess,
            Err(refusal) => {
                let retry_after_seconds = refusal.retry_after_s().unwrap_or(1);
                return limited(SignInError::TooManyAttempts { retry_after_seconds });
            }
        };
        match self.web.service().sign_in(login, password, guess.known).await {
            Ok(Some(token)) => {
                guess.was_right();
                Ok(Ok(Some(token)))
            }
            Ok(None) => {
                failures::count(self.web, Failed::Password, self.client);
                Ok(Ok(None))
            }
            Err(error) => {
                guess.give_back();
                match error.refusal().retry_after_s() {
                    Some(retry_after_seconds) => limited(SignInError::Busy { retry_after_seconds }),
                    None => Err(error.into()),
                }
            }
        }
    }

    /// The request of the application, from the query: all three parameters, once each, and registered.
    async fn asked(&self) -> Result<SignInRequest, Problem> {
        let pairs = Pairs::parse(&self.query).map_err(|_| PageProblem::InvalidParameter("query"))?;
        let client_id = parameter(&pairs, "clientId")?;
        let redirect_uri = parameter(&pairs, "redirectUri")?;
        let state = parameter(&pairs, "state")?;
        if state.len() > STATE_BYTES_MAX {
            return Err(PageProblem::InvalidParameter("state").into());
        }
        let asked = self.web.service().sign_in_request(client_id, redirect_uri, state).await?;
        asked.map_err(|bad| match bad {
            BadSignIn::UnknownClient => PageProblem::UnknownApplication.into(),
            BadSignIn::UnregisteredRedirect => PageProblem::RedirectNotRegistered.into(),
        })
    }

    async fn browser(&self) -> Result<Browser, Problem> {
        match self.cookie().and_then(BrowserToken::presented) {
            Some(token) => {
                let person = self.web.service().signed_in(&token).await?;
                let person = person.map(|person| (person.channel_id, person.channel_name));
                Ok(Browser { token, new: false, person })
            }
            None => {
                let token = BrowserToken::generate(self.web.service().entropy().bytes());
                Ok(Browser { token, new: true, person: None })
            }
        }
    }

    /// After a try to sign in: the consent page for a new token, which takes the place of the one before, so that a
    /// token planted in the browser earlier is worth nothing.
    async fn signed_in(
        &self,
        asked: &SignInRequest,
        token: Option<BrowserToken>,
        login: &str,
    ) -> Result<Response, Problem> {
        let Some(token) = token else {
            let browser = self.browser().await?;
            return self.sign_in_page(asked, &browser, login, Some(SignInError::WrongLoginOrPassword)).await;
        };
        if let Some(before) = self.cookie().and_then(BrowserToken::presented) {
            self.web.service().sign_out(&before).await?;
        }
        let person = self.web.service().signed_in(&token).await?;
        let person = person.map(|person| (person.channel_id, person.channel_name));
        self.consent_page(asked, &Browser { token, new: true, person })
    }

    /// Signs the browser out. The page that asks who it is now comes with a token that nobody is signed in with.
    async fn sign_out(&self, asked: &SignInRequest, browser: &Browser) -> Result<Response, Problem> {
        self.web.service().sign_out(&browser.token).await?;
        let token = BrowserToken::generate(self.web.service().entropy().bytes());
        self.sign_in_page(asked, &Browser { token, new: true, person: None }, "", None).await
    }

    async fn decide(
        &self,
        asked: &SignInRequest,
        browser: &Browser,
        decision: &str,
    ) -> Result<Response, Problem> {
        let Some((user, _)) = &browser.person else {
            return self.sign_in_page(asked, browser, "", Some(SignInError::Expired)).await;
        };
        let state = asked.state.as_str();
        match decision {
            "allow" => {
                let code = match self.web.service().consent(asked, user).await {
                    Ok(code) => code,
                    Err(error) => match error.refusal() {
                        Refusal::InvalidToken(_) => {
                            return self.sign_in_page(asked, browser, "", Some(SignInError::Expired)).await;
                        }
                        Refusal::NotFound(_) => return Err(PageProblem::UnknownApplication.into()),
                        _ => return Err(error.into()),
                    },
                };
                Ok(redirect(&with_query(&asked.redirect_uri, &[("code", code.expose()), ("state", state)])))
            }
            "deny" => Ok(redirect(&with_query(
                &asked.redirect_uri,
                &[("error", "access_denied"), ("state", state)],
            ))),
            _ => Err(PageProblem::InvalidParameter("decision").into()),
        }
    }

    async fn sign_in_page(
        &self,
        asked: &SignInRequest,
        browser: &Browser,
        login: &str,
        error: Option<SignInError>,
    ) -> Result<Response, Problem> {
        let listed = if self.web.config().sandbox {
            self.web.service().people(PEOPLE_LISTED).await?
        } else {
            Vec::new()
        };
        let people = listed.iter().map(|person| SeededPerson {
            login: &person.login,
            channel_name: &person.channel_name,
            description: "",
        });
        let (action, proof) = (action(asked), csrf(&browser.token, asked));
        let page = SignInPage {
            lang: self.lang,
            language_href: Some(&self.language_href()),
            application_name: &asked.application.name,
            action: &action,
            hidden: &[("csrf", proof.as_str())],
            login,
            error,
            people: &people.collect::<Vec<_>>(),
        };
        let mut response = self.page(page.render()?, Some(asked), Some(browser));
        if let Some(retry_after_seconds) = error.and_then(SignInError::retry_after_seconds) {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response.headers_mut().insert(header::RETRY_AFTER, retry_after_seconds.into());
        }
        if let Some(reason) = error.and_then(SignInError::reason) {
            response.extensions_mut().insert(reason);
        }
        Ok(response)
    }

    fn consent_page(&self, asked: &SignInRequest, browser: &Browser) -> Result<Response, Problem> {
        let lang = self.lang;
        let scopes = asked.application.user_scopes().iter().map(|scope| ScopeLine::new(scope.name(), lang));
        let organization = asked.application.organization.as_ref();
        let origin = origin_of(&asked.redirect_uri);
        let (action, proof) = (action(asked), csrf(&browser.token, asked));
        let page = ConsentPage {
            lang,
            language_href: Some(&self.language_href()),
            application_name: &asked.application.name,
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
        Ok(self.page(page.render()?, Some(asked), Some(browser)))
    }

    fn problem_page(&self, Problem(problem, cause): Problem) -> Response {
        let page = ErrorPage {
            lang: self.lang,
            language_href: None,
            problem,
            retry_href: None,
            request_id: &self.id.to_string(),
        };
        let mut response = self.page(page.render().unwrap_or_default(), None, None);
        *response.status_mut() =
            StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.extensions_mut().insert(problem.reason());
        if let Some(seconds) = problem.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(cause) = cause {
            response.extensions_mut().insert(Cause(cause));
        }
        response
    }

    /// A page with its policy; the policy lets the form end at the validated redirect address, and nowhere else.
    fn page(&self, html: String, asked: Option<&SignInRequest>, browser: Option<&Browser>) -> Response {
        let policy = content_security_policy(asked.map(|asked| origin_of(&asked.redirect_uri)));
        let mut response = html.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        keep_private(headers);
        if let Some(browser) = browser.filter(|browser| browser.new)
            && let Ok(cookie) = HeaderValue::from_str(&self.set_cookie(&browser.token))
        {
            headers.insert(header::SET_COOKIE, cookie);
        }
        response
    }

    fn set_cookie(&self, token: &BrowserToken) -> String {
        // The prefix asks for the whole path.
        let (name, path, secure) = match self.is_https() {
            true => (HOST_COOKIE, "/", "; Secure"),
            false => (COOKIE, PATH, ""),
        };
        let age = BROWSER_SESSION_LIFETIME_MS / 1_000;
        format!("{name}={}; Path={path}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}", token.expose())
    }

    fn cookie(&self) -> Option<&str> {
        cookie(&self.headers, if self.is_https() { HOST_COOKIE } else { COOKIE })
    }

    fn is_https(&self) -> bool {
        self.web.config().base_url.starts_with("https://")
    }

    fn language_href(&self) -> String {
        language_href(PATH, Some(&self.query), self.lang.other())
    }
}

fn parameter<'p>(pairs: &'p Pairs, name: &'static str) -> Result<&'p str, PageProblem> {
    pairs.text(name).map_err(|Invalid { rule, .. }| match rule {
        Rule::Once => PageProblem::RepeatedParameter(name),
        _ => PageProblem::MissingParameter(name),
    })
}

/// What a form must carry to count: nobody without the browser's cookie can make it up, and it is good for this request
/// of this application only, with the scopes that its page showed.
fn csrf(token: &BrowserToken, asked: &SignInRequest) -> SecretHash {
    let SignInRequest { application, redirect_uri, state } = asked;
    let (token, client_id, scopes) =
        (token.hash(), &application.client_id, application.user_scopes().to_stored());
    SecretHash::of(&format!("{}\n{client_id}\n{scopes}\n{redirect_uri}\n{state}", token.as_str()))
}

/// The address again, with nothing in its query but the application's request.
fn action(asked: &SignInRequest) -> String {
    let mut action = format!("{PATH}?clientId={}&redirectUri=", asked.application.client_id);
    percent_encode(&asked.redirect_uri, &mut action);
    action.push_str("&state=");
    percent_encode(&asked.state, &mut action);
    action
}

/// 303, so that the browser follows with a GET; the address carries a code, so it is kept out of caches and referrers.
fn redirect(location: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    match HeaderValue::from_str(location) {
        Ok(location) => drop(response.headers_mut().insert(header::LOCATION, location)),
        Err(_) => {
            let cause = service::Error::Internal("a registered redirect address does not fit into a header");
            response.extensions_mut().insert(Cause(cause));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
    }
    keep_private(response.headers_mut());
    response
}

fn keep_private(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}
