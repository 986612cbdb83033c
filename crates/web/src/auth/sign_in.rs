//! The authorization address: sign in, consent, and the redirect with the code
//! (`docs/spec/authorization.md#sign-in`).
//!
//! There is one address, `/account-interlock`. Its query is the application's request and stays the same
//! throughout. `GET` shows the next page. `POST` takes a form and answers with the page after it, or with the
//! redirect. The forms need no script. [`flow`](super::flow) decides the next step, and
//! [`pages`](super::pages) renders it.

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use domain::limits::STATE_BYTES_MAX;
use domain::secret::BrowserToken;
use http::{HeaderMap, header};
use service::Purpose;
use service::sign_in::SignInRequest;

use super::flow::{self, Browser, Decision, Step, Stop};
use super::guesses::Guess;
use super::pages::{self, Pages};
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::failures::Failed;
use crate::input::shape::{Shape, non_empty_text, one_of, optional, required, text};
use crate::input::{Pairs, read_body};
use crate::pages::{Lang, PageProblem, SeededPerson, SignInError};
use crate::quota::Charged;
use crate::{ClientAddress, RequestId, SecureOrigin, Web};

/// People that the sandbox's sign-in page lists.
const PEOPLE_LISTED: i64 = 20;

pub(crate) const SHOW: Summary = Summary::new(
    "showSignIn",
    "Show the page that signs in or asks for consent",
    "로그인 또는 동의 페이지 표시",
);

/// `GET /account-interlock`: the sign-in page, or the consent page if a person is signed in.
pub async fn show(State(web): State<Web>, Extension(id): Extension<RequestId>, request: Request) -> Response {
    let visit = Visit::new(&web, &id, &request, None);
    visit.show().await.unwrap_or_else(|stop| visit.stop_page(stop))
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
    answer.unwrap_or_else(|stop| visit.stop_page(stop))
}

/// Describes the address for the documents: its query, and the form that its pages post. Only the pages of
/// the sign-in read the whole request themselves.
impl DescribeInput for Request {
    fn describe(operation: &mut Operation) {
        operation.query.extend([
            required("clientId", non_empty_text().about("The application.")),
            required(
                "redirectUri",
                non_empty_text().about("Byte for byte one of those registered for the application."),
            ),
            required(
                "state",
                non_empty_text()
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

/// One request to the address, and the facts about its browser.
struct Visit<'a> {
    web: &'a Web,
    id: &'a RequestId,
    query: String,
    headers: HeaderMap,
    client: Option<ClientAddress>,
    https: bool,
    lang: Lang,
}

impl<'a> Visit<'a> {
    fn new(web: &'a Web, id: &'a RequestId, request: &Request, client: Option<ClientAddress>) -> Self {
        let query = request.uri().query().unwrap_or("").to_owned();
        let https = request.extensions().get::<SecureOrigin>().is_some()
            || web.config().base_url.starts_with("https://");
        let headers = request.headers().clone();
        let mut visit = Self { web, id, query, headers, client, https, lang: Lang::default() };
        visit.lang = visit.choose_lang(None);
        visit
    }

    /// The language of the form, else of the query, else of the browser.
    fn choose_lang(&self, form: Option<&str>) -> Lang {
        let pairs = Pairs::parse(&self.query).ok();
        let wanted = form.or(pairs.as_ref().and_then(|pairs| pairs.optional("lang").ok().flatten()));
        let accepted = self.headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Lang::choose(wanted, accepted)
    }

    fn pages(&self) -> Pages<'_> {
        Pages { lang: self.lang, query: &self.query, https: self.https, id: self.id }
    }

    /// The page of a sign-in that stops. Only [`Self::submit`] shows the sign-in page again.
    fn stop_page(&self, stop: Stop) -> Response {
        match stop {
            Stop::Problem(problem) => self.pages().problem(problem),
            Stop::Failed(error) => self.pages().failure(error),
            Stop::Retry { .. } => self.pages().problem(PageProblem::FormExpired),
        }
    }

    async fn show(&self) -> Result<Response, Stop> {
        let query = self.query()?;
        let request = self.request(&query).await?;
        let browser = self.browser().await?;
        match flow::begins_with_consent(&query, &browser) {
            true => self.pages().consent(&request, &browser),
            false => self.sign_in_page(&request, &browser, "", None).await,
        }
    }

    async fn submit(&self, form: &Pairs, charged: &Charged) -> Result<Response, Stop> {
        let request = self.request(&self.query()?).await?;
        let browser = self.browser().await?;
        match self.act(form, charged, &request, &browser).await {
            Err(Stop::Retry { login, error }) => {
                self.sign_in_page(&request, &browser, &login, Some(error)).await
            }
            answer => answer,
        }
    }

    /// Runs the action of the form.
    async fn act(
        &self,
        form: &Pairs,
        charged: &Charged,
        request: &SignInRequest,
        browser: &Browser,
    ) -> Result<Response, Stop> {
        match flow::step(form, request, browser, self.web.config().sandbox)? {
            Step::SignOut => self.sign_out(request, browser).await,
            Step::Decide(decision) => self.decide(request, browser, decision).await,
            Step::Pick(login) => {
                let wrong = || Stop::retry(login, SignInError::WrongLoginOrPassword);
                let token = self.web.service().sign_in_as(login).await?.ok_or_else(wrong)?;
                self.signed_in(request, browser, token).await
            }
            Step::TryPassword { login, password } => {
                let token = self.try_password(charged, login, password).await?;
                self.signed_in(request, browser, token).await
            }
        }
    }

    /// Checks a password and returns the browser's new token.
    async fn try_password(
        &self,
        charged: &Charged,
        login: &str,
        password: &str,
    ) -> Result<BrowserToken, Stop> {
        let limited = |error| {
            self.web.count_failure(Failed::SignInLimited, self.client);
            Err(Stop::retry(login, error))
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
                guess.succeeded();
                Ok(token)
            }
            Ok(None) => {
                self.web.count_failure(Failed::Password, self.client);
                Err(Stop::retry(login, SignInError::WrongLoginOrPassword))
            }
            Err(error) => {
                guess.refund();
                match error.refusal().retry_after_s() {
                    Some(retry_after_seconds) => limited(SignInError::Busy { retry_after_seconds }),
                    None => Err(error.into()),
                }
            }
        }
    }

    fn query(&self) -> Result<Pairs, Stop> {
        Pairs::parse(&self.query).map_err(|_| PageProblem::InvalidParameter("query").into())
    }

    /// The application's request, which must name a registered application and redirect address.
    async fn request(&self, query: &Pairs) -> Result<SignInRequest, Stop> {
        let flow::Parameters { client_id, redirect_uri, state } = flow::parameters(query)?;
        Ok(self.web.service().sign_in_request(client_id, redirect_uri, state).await??)
    }

    /// The browser that the cookie names, or a new one.
    async fn browser(&self) -> Result<Browser, Stop> {
        match pages::browser_token(&self.headers, self.https) {
            Some(token) => self.browser_of(token, false).await,
            None => Ok(self.new_browser()),
        }
    }

    async fn browser_of(&self, token: BrowserToken, new: bool) -> Result<Browser, Stop> {
        let person = self.web.service().signed_in(&token).await?;
        Ok(Browser { token, new, person: person.map(|person| (person.channel_id, person.channel_name)) })
    }

    fn new_browser(&self) -> Browser {
        let token = BrowserToken::generate(self.web.service().entropy().bytes(Purpose::Browser));
        Browser { token, new: true, person: None }
    }

    /// The consent page with a new browser token. The new token replaces the old one, so a token planted in
    /// the browser earlier is worthless.
    async fn signed_in(
        &self,
        request: &SignInRequest,
        before: &Browser,
        token: BrowserToken,
    ) -> Result<Response, Stop> {
        self.web.service().sign_out(&before.token).await?;
        self.pages().consent(request, &self.browser_of(token, true).await?)
    }

    /// Signs the browser out. The sign-in page then comes with a new token, without a person.
    async fn sign_out(&self, request: &SignInRequest, browser: &Browser) -> Result<Response, Stop> {
        self.web.service().sign_out(&browser.token).await?;
        self.sign_in_page(request, &self.new_browser(), "", None).await
    }

    async fn decide(
        &self,
        request: &SignInRequest,
        browser: &Browser,
        decision: &str,
    ) -> Result<Response, Stop> {
        let Some((user, _)) = &browser.person else {
            return Err(Stop::retry("", SignInError::Expired));
        };
        let location = match Decision::parse(decision)? {
            Decision::Allow => {
                let code = self.web.service().consent(request, user).await.map_err(flow::no_consent)?;
                flow::allowed(request, code.expose())
            }
            Decision::Deny => flow::denied(request),
        };
        Ok(pages::redirect(&location))
    }

    async fn sign_in_page(
        &self,
        request: &SignInRequest,
        browser: &Browser,
        login: &str,
        error: Option<SignInError>,
    ) -> Result<Response, Stop> {
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
        self.pages().sign_in(request, browser, login, error, &people.collect::<Vec<_>>())
    }
}
