//! The authorization address: sign in, consent, and the redirect with the code
//! (`docs/spec/authorization.md#sign-in`).
//!
//! There is one address, `/account-interlock`. Its query is the application's request and stays the same
//! throughout. `GET` shows the next page. `POST` takes a form and answers with the page after it, or with the
//! redirect. The forms need no script. [`flow`](super::flow) decides the next step, and
//! [`pages`](super::pages) renders it.

use axum::extract::{Request, State};
use axum::response::Response;
use domain::limits::STATE_BYTES_MAX;
use domain::secret::BrowserToken;
use service::sign_in::SignInRequest;

use super::attempt::try_password;
use super::flow::{self, Decision, Step, Stop};
use super::pages::Pages;
use crate::Web;
use crate::browser::Browser;
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::form_fields::FormFields;
use crate::input::Pairs;
use crate::input::shape::{Shape, non_empty_text, one_of, optional, required, text};
use crate::page_request::{PageRequest, code_page, see_other};
use crate::pages::{Lang, PageProblem, SeededPerson, SignInError};

/// People that the sandbox's sign-in page lists.
const PEOPLE_LISTED: i64 = 20;

pub(crate) const SHOW: Summary = Summary::new(
    "showSignIn",
    "Show the page that signs in or asks for consent",
    "로그인 또는 동의 페이지 표시",
);

/// `GET /account-interlock`: the sign-in page, or the consent page if a person is signed in.
pub async fn show(State(web): State<Web>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let visit = Visit { web: &web, request: PageRequest::of(&parts, &web) };
    visit.show().await.unwrap_or_else(|stop| visit.stop_page(stop))
}

pub(crate) const SUBMIT: Summary =
    Summary::new("submitSignIn", "Sign in, allow or deny", "로그인, 허용 또는 거부");

/// `POST /account-interlock`: a sign-in or a decision.
pub async fn submit(State(web): State<Web>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut visit = Visit { web: &web, request: PageRequest::of(&parts, &web) };
    let answer = match FormFields::read(&parts.headers, body).await {
        // The forms of the sign-in hold nothing that is long.
        Ok(form) if form.too_large().is_some() => Err(PageProblem::FormUnreadable.into()),
        Ok(form) => {
            let form = form.into_pairs();
            visit.request.choose_lang(form.optional("lang").ok().flatten());
            visit.submit(&form).await
        }
        Err(_) => Err(PageProblem::FormUnreadable.into()),
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
    request: PageRequest,
}

impl Visit<'_> {
    fn pages(&self) -> Pages<'_> {
        Pages { web: self.web, request: &self.request }
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
        let browser = Browser::of(self.web, &self.request).await?;
        match flow::begins_with_consent(&query, &browser) {
            true => self.consent(&request, &browser).await,
            false => self.sign_in_page(&request, &browser, "", None).await,
        }
    }

    async fn submit(&self, form: &Pairs) -> Result<Response, Stop> {
        let request = self.request(&self.query()?).await?;
        let browser = Browser::of(self.web, &self.request).await?;
        match self.act(form, &request, &browser).await {
            Err(Stop::Retry { login, error }) => {
                self.sign_in_page(&request, &browser, &login, Some(error)).await
            }
            answer => answer,
        }
    }

    /// Runs the action of the form.
    async fn act(&self, form: &Pairs, request: &SignInRequest, browser: &Browser) -> Result<Response, Stop> {
        match flow::step(form, request, browser, self.web.config().sandbox)? {
            Step::SignOut => self.sign_out(request, browser).await,
            Step::Decide(decision) => self.decide(request, browser, decision).await,
            Step::Pick(login) => {
                let wrong = || Stop::retry(login, SignInError::WrongLoginOrPassword);
                let token = self.web.service().sign_in_as(login).await?.ok_or_else(wrong)?;
                self.signed_in(request, browser, token).await
            }
            Step::TryPassword { login, password } => {
                let tried = try_password(self.web, &self.request, login, password).await?;
                let token = tried.map_err(|error| Stop::retry(login, error))?;
                self.signed_in(request, browser, token).await
            }
        }
    }

    fn query(&self) -> Result<Pairs, Stop> {
        Pairs::parse(&self.request.query).map_err(|_| PageProblem::InvalidParameter("query").into())
    }

    /// The application's request, which must name a registered application and redirect address.
    async fn request(&self, query: &Pairs) -> Result<SignInRequest, Stop> {
        let flow::Parameters { client_id, redirect_uri, state } = flow::parameters(query)?;
        Ok(self.web.service().sign_in_request(client_id, redirect_uri, state).await??)
    }

    /// The consent page, with what the person allowed the application before.
    async fn consent(&self, request: &SignInRequest, browser: &Browser) -> Result<Response, Stop> {
        let client_id = &request.application.client_id;
        let known = match &browser.person {
            Some((person, _)) => self.web.service().consented_scopes(client_id, person).await?,
            None => None,
        };
        self.pages().consent(request, browser, known)
    }

    /// The consent page with a new browser token, or the page of the second step. The new token replaces the
    /// old one, so a token planted in the browser earlier is worthless.
    async fn signed_in(
        &self,
        request: &SignInRequest,
        before: &Browser,
        token: BrowserToken,
    ) -> Result<Response, Stop> {
        self.web.service().sign_out(&before.token).await?;
        let browser = Browser::with(self.web, &self.request, token, true).await?;
        if browser.person.is_none() {
            // The sign-in has a second step.
            let location = code_page(&self.request.path_and_query());
            return Ok(self.request.redirect(&location, None, Some(&browser.token)));
        }
        self.consent(request, &browser).await
    }

    /// Signs the browser out. The sign-in page then comes with a new token, without a person.
    async fn sign_out(&self, request: &SignInRequest, browser: &Browser) -> Result<Response, Stop> {
        self.web.service().sign_out(&browser.token).await?;
        self.sign_in_page(request, &Browser::fresh(self.web), "", None).await
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
        Ok(see_other(&location))
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
            description: &person.login,
        });
        self.pages().sign_in(request, browser, login, error, &people.collect::<Vec<_>>())
    }
}
