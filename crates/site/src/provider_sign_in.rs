//! `/sign-in/upstream/{name}`: sign-in at a provider of the operator (`docs/upstream.md`).
//!
//! The form of the sign-in page leads to the provider over a page of its own, because browsers apply the
//! policy of a form to every redirect after it. The provider sends the browser to the callback. A person
//! without an account gets one, or is asked first.

use askama::Template;
use axum::Extension;
use axum::http::{HeaderValue, header};
use domain::upstream::{UpstreamIdentity, provider_path, redirect_address};
use service::upstream::{LinkOutcome, PendingForm, UpstreamArrival, UpstreamFlow, UpstreamSignIn};
use upstream::{Callback, FlowSecrets, Outcome, Provider, Registration, Upstreams};
use web::pages::{FieldErrors, Flash, Lang, Shell, filters, local_page, with_next};
use web::{FormTarget, PageAnswer, PathId, Posted, SIGN_IN, Visitor, charge_upstream_sign_in, code_page};

use crate::account::ACCOUNT;
use crate::confirmed;
use crate::forms::at_field;
use crate::provider_problem::{Attempt, ProviderProblem, failed, problem_page};
use crate::providers::{find, label};

/// The form that leads to a provider.
pub(crate) const BEGIN_UPSTREAM: &str = "/sign-in/upstream/{name}";
/// Where a provider sends browsers.
pub(crate) const CALLBACK: &str = "/sign-in/upstream/{name}/callback";
/// The form that makes an account.
pub(crate) const NEW_ACCOUNT: &str = "/sign-in/upstream/{name}/account";

/// The page that leads to a provider at once.
#[derive(Debug, Template)]
#[template(path = "site/provider_leave.html")]
pub(crate) struct LeavePage<'a> {
    shell: Shell<'a>,
    t: &'static ProviderTexts,
    label: &'a str,
    address: &'a str,
}

impl LeavePage<'_> {
    fn title(&self) -> &'static str {
        self.t.leave
    }
}

/// The page that asks for the name of a new channel.
#[derive(Debug, Template)]
#[template(path = "site/provider_account.html")]
pub(crate) struct NewAccountPage<'a> {
    shell: Shell<'a>,
    t: &'static ProviderTexts,
    label: &'a str,
    form: FormTarget,
    cancel: String,
    arrival: &'a str,
    channel_name: &'a str,
    errors: FieldErrors,
}

impl NewAccountPage<'_> {
    fn title(&self) -> &'static str {
        self.t.new_account
    }
}

/// `POST /sign-in/upstream/{name}`: leads to the provider.
pub(crate) async fn begin(
    PathId(name): PathId,
    Extension(upstreams): Extension<Upstreams>,
    Posted { visitor, fields }: Posted,
) -> PageAnswer {
    let provider = find(&upstreams, &name)?;
    let next = local_page(fields.text("next")).unwrap_or("/");
    leave(&visitor, provider, Attempt::to(next)).await
}

/// Leads to a provider.
pub(crate) async fn leave(visitor: &Visitor, provider: &Provider, attempt: Attempt<'_>) -> PageAnswer {
    leave_with(visitor, provider, attempt, None).await
}

/// Leads to a provider, with a form that waits for the proof of its person.
pub(crate) async fn leave_with(
    visitor: &Visitor,
    provider: &Provider,
    attempt: Attempt<'_>,
    pending: Option<PendingForm>,
) -> PageAnswer {
    let web = visitor.web();
    charge_upstream_sign_in(web, visitor.request())?;
    let name = &provider.settings().name;
    let (browser, Attempt { next, links }) = (visitor.browser_token(), attempt);
    let asks_again = pending.is_some();
    let (state, flow) = web.service().begin_upstream_flow(name, browser, next, links, pending).await?;
    let UpstreamFlow { nonce, verifier, .. } = flow;
    let secrets = FlowSecrets { state, nonce, verifier, asks_again };
    let redirect = redirect_address(&web.config().base_url, name);
    match provider.begin(&secrets, &redirect, visitor.now()).await {
        Ok(address) => leave_page(visitor, provider, &address),
        Err(failure) => failed(visitor, provider, &failure, attempt),
    }
}

fn leave_page(visitor: &Visitor, provider: &Provider, address: &str) -> PageAnswer {
    let mut shell = visitor.shell_alone();
    shell.language_href = None;
    let (t, label) = (texts(visitor.lang()), label(provider, visitor.lang()));
    let mut response = visitor.page_alone(&LeavePage { shell, t, label, address })?;
    let refresh = HeaderValue::from_str(&format!("0;url={address}"))
        .map_err(|_| service::Error::Internal("the address of a provider does not fit into a header"))?;
    response.headers_mut().insert(header::REFRESH, refresh);
    Ok(response)
}

/// `GET /sign-in/upstream/{name}/callback`: a browser comes back.
pub(crate) async fn callback(
    PathId(name): PathId,
    Extension(upstreams): Extension<Upstreams>,
    visitor: Visitor,
) -> PageAnswer {
    let provider = find(&upstreams, &name)?;
    let (service, request) = (visitor.web().service(), visitor.request());
    let state = request.parameter("state").unwrap_or_default();
    let Some(flow) = service.take_upstream_flow(&name, visitor.browser_token(), &state).await? else {
        return problem_page(&visitor, provider, ProviderProblem::Expired, Attempt::to("/"));
    };
    let UpstreamFlow { nonce, verifier, next, links, pending } = flow;
    let attempt = Attempt { next: &next, links };
    if request.parameter("error").is_some() {
        return problem_page(&visitor, provider, ProviderProblem::Denied, attempt);
    }
    let (code, iss) = (request.parameter("code").unwrap_or_default(), request.parameter("iss"));
    let came = Callback { code: &code, iss: iss.as_deref() };
    let redirect = redirect_address(&visitor.web().config().base_url, &name);
    let secrets = FlowSecrets { state, nonce, verifier, asks_again: pending.is_some() };
    match provider.identify(came, &secrets, &redirect, visitor.now()).await {
        Ok(identity) if pending.is_some() => {
            let pending = pending.ok_or(service::Error::Internal("no form waits"))?;
            confirmed::came_back(&visitor, provider, &identity, &pending).await
        }
        Ok(identity) if links => link(&visitor, provider, &identity, attempt).await,
        Ok(identity) => sign_in(&visitor, provider, identity, &next).await,
        Err(failure) => failed(&visitor, provider, &failure, attempt),
    }
}

/// Signs the browser in, or goes on to a new account.
async fn sign_in(
    visitor: &Visitor,
    provider: &Provider,
    identity: UpstreamIdentity,
    next: &str,
) -> PageAnswer {
    let service = visitor.web().service();
    let known = service.sign_in_upstream(&identity).await?;
    if !matches!(known, UpstreamSignIn::Unknown) {
        return finish(visitor, provider, known, Outcome::SignedIn, next).await;
    }
    let name = identity.channel_name();
    match (provider.settings().registration, &name) {
        (Registration::Closed, _) => {
            problem_page(visitor, provider, ProviderProblem::NoAccount, Attempt::to(next))
        }
        (Registration::Automatic, Some(name)) => {
            let made = service.register_upstream(&identity, name).await?;
            finish(visitor, provider, made, Outcome::Registered, next).await
        }
        _ => {
            let arrival = UpstreamArrival { identity, next: next.to_owned() };
            let proof = service.keep_upstream_arrival(visitor.browser_token(), &arrival).await?;
            let name = name.unwrap_or_default();
            visitor.page_alone(&NewAccountPage {
                arrival: &proof,
                channel_name: &name,
                ..new_account_page(visitor, provider, next)
            })
        }
    }
}

/// The page after a sign-in, or that of its second step.
async fn finish(
    visitor: &Visitor,
    provider: &Provider,
    signed_in: UpstreamSignIn,
    outcome: Outcome,
    next: &str,
) -> PageAnswer {
    match signed_in {
        UpstreamSignIn::SignedIn(token) => {
            provider.count(outcome);
            match visitor.web().service().awaits_code(&token).await? {
                true => visitor.signed_in(&token, &code_page(next)).await,
                false => visitor.signed_in(&token, next).await,
            }
        }
        UpstreamSignIn::Barred => problem_page(visitor, provider, ProviderProblem::Barred, Attempt::to(next)),
        UpstreamSignIn::Unknown => {
            problem_page(visitor, provider, ProviderProblem::NoAccount, Attempt::to(next))
        }
    }
}

/// Links the provider to the account of the signed-in person.
async fn link(
    visitor: &Visitor,
    provider: &Provider,
    identity: &UpstreamIdentity,
    attempt: Attempt<'_>,
) -> PageAnswer {
    let Some(channel) = visitor.channel_id() else {
        return problem_page(visitor, provider, ProviderProblem::Expired, attempt);
    };
    match visitor.web().service().link_upstream(channel, identity, visitor.lang().into()).await? {
        LinkOutcome::Done => {
            provider.count(Outcome::Linked);
            Ok(visitor.redirect(ACCOUNT, Some(Flash::ProviderLinked)))
        }
        LinkOutcome::OtherAccount => problem_page(visitor, provider, ProviderProblem::OtherAccount, attempt),
        LinkOutcome::OtherPerson => problem_page(visitor, provider, ProviderProblem::OtherPerson, attempt),
    }
}

/// `POST /sign-in/upstream/{name}/account`: makes the account of a person who came back.
pub(crate) async fn register(
    PathId(name): PathId,
    Extension(upstreams): Extension<Upstreams>,
    Posted { visitor, fields }: Posted,
) -> PageAnswer {
    let provider = find(&upstreams, &name)?;
    let service = visitor.web().service();
    let (browser, channel_name) = (visitor.browser_token(), fields.text("channelName"));
    let arrival = service.take_upstream_arrival(&name, browser, fields.text("arrival")).await?;
    let Some(arrival) = arrival else {
        return problem_page(&visitor, provider, ProviderProblem::Expired, Attempt::to("/"));
    };
    match service.register_upstream(&arrival.identity, channel_name).await {
        Ok(made) => finish(&visitor, provider, made, Outcome::Registered, &arrival.next).await,
        Err(error) => {
            let errors = at_field(error, visitor.lang())?;
            let proof = service.keep_upstream_arrival(browser, &arrival).await?;
            visitor.form_again_alone(&NewAccountPage {
                arrival: &proof,
                channel_name,
                errors,
                ..new_account_page(&visitor, provider, &arrival.next)
            })
        }
    }
}

fn new_account_page<'a>(visitor: &'a Visitor, provider: &'a Provider, next: &str) -> NewAccountPage<'a> {
    let mut shell = visitor.shell_alone();
    shell.language_href = None;
    NewAccountPage {
        shell,
        t: texts(visitor.lang()),
        label: label(provider, visitor.lang()),
        form: visitor.form(format!("{}/account", provider_path(&provider.settings().name))),
        cancel: with_next(SIGN_IN, next),
        arrival: "",
        channel_name: "",
        errors: FieldErrors::default(),
    }
}

/// The words of the pages.
#[derive(Debug)]
pub(crate) struct ProviderTexts {
    leave: &'static str,
    leave_about: &'static str,
    go_on: &'static str,
    new_account: &'static str,
    new_account_about: &'static str,
    channel_name: &'static str,
    channel_name_hint: &'static str,
    submit: &'static str,
    has_account: &'static str,
    cancel: &'static str,
}

fn texts(lang: Lang) -> &'static ProviderTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ProviderTexts = ProviderTexts {
    leave: "로그인 화면으로 이동",
    leave_about: "아래 계정의 로그인 화면으로 이동합니다. 이동하지 않으면 버튼를 눌러 주세요.",
    go_on: "계속",
    new_account: "새 계정 만들기",
    new_account_about: "이 계정으로 처음 로그인했습니다. 다른 사람에게 보일 채널 이름을 정해 주세요.",
    channel_name: "채널 이름",
    channel_name_hint: "나중에 바꿀 수 있습니다.",
    submit: "계정 만들기",
    has_account: "이미 계정이 있다면 먼저 그 계정으로 로그인한 뒤 내 계정 화면에서 연결해 주세요. 여기서 만들면 새 계정이 됩니다.",
    cancel: "취소",
};

const EN: ProviderTexts = ProviderTexts {
    leave: "On to the sign-in",
    leave_about: "You go on to the sign-in of this account. If nothing happens, press the button.",
    go_on: "Go on",
    new_account: "Create an account",
    new_account_about: "This is your first sign-in with this account. Choose the name of your channel, which others see.",
    channel_name: "Channel name",
    channel_name_hint: "You can change it later.",
    submit: "Create account",
    has_account: "If you have an account already, sign in to it first, and link this one on the page of your account. \
                  What you make here is a new account.",
    cancel: "Cancel",
};
