//! Forms that need a fresh proof (`docs/accounts.md#fresh-proof`): of who did not sign in within ten minutes
//! a page asks for it, and keeps what was typed.

use askama::Template;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::ChannelId;
use domain::upstream::UpstreamIdentity;
use service::upstream::PendingForm;
use upstream::{Provider, Upstreams};
use web::pages::{Area, FieldErrors, Lang, Shell, filters};
use web::{
    Failure, FormFields, FormTarget, PageAnswer, PostedBy, PostedByOperator, Visitor, Web, check_guess,
};

use crate::account::ACCOUNT;
use crate::forms::at_field;
use crate::provider_problem::{Attempt, ProviderProblem, problem_page};
use crate::providers::label;

/// The form with which a person without a password goes to a provider for the proof.
pub(crate) const CONFIRM_UPSTREAM: &str = "/account/confirm/{name}";

/// Fields of the page's own.
const PASSWORD: &str = "confirmPassword";
pub(crate) const CODE: &str = "confirmCode";

/// A form of a person with a fresh proof.
#[derive(Debug)]
pub(crate) struct Confirmed<P>(pub P);

/// A posted form, and who posted it.
pub(crate) trait OfPerson {
    fn visitor(&self) -> &Visitor;
    fn channel(&self) -> &ChannelId;
    fn fields(&self) -> &FormFields;
}

impl OfPerson for PostedBy {
    fn visitor(&self) -> &Visitor {
        &self.person.visitor
    }

    fn channel(&self) -> &ChannelId {
        &self.person.channel_id
    }

    fn fields(&self) -> &FormFields {
        &self.fields
    }
}

impl<R> OfPerson for PostedByOperator<R> {
    fn visitor(&self) -> &Visitor {
        self.operator.visitor()
    }

    fn channel(&self) -> &ChannelId {
        &self.operator.person.channel_id
    }

    fn fields(&self) -> &FormFields {
        &self.fields
    }
}

impl<P> FromRequest<Web> for Confirmed<P>
where
    P: OfPerson + FromRequest<Web, Rejection = Response> + Send + Sync,
{
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let upstreams = request.extensions().get::<Upstreams>().cloned();
        let posted = P::from_request(request, web).await?;
        match ask(posted.visitor(), posted.channel(), posted.fields(), upstreams.as_ref()).await {
            Ok(None) => Ok(Self(posted)),
            Ok(Some(page)) => Err(page),
            Err(failure) => Err(failure.into_response()),
        }
    }
}

/// The page that asks for a proof: `None` if there is one, or the form brought it.
async fn ask(
    visitor: &Visitor,
    channel: &ChannelId,
    fields: &FormFields,
    upstreams: Option<&Upstreams>,
) -> Result<Option<Response>, Failure> {
    let (service, browser) = (visitor.service(), visitor.browser_token());
    if service.is_confirmed(channel, browser).await? {
        return Ok(None);
    }
    let (password, code) = (fields.text(PASSWORD), fields.text(CODE));
    let mut status = StatusCode::FORBIDDEN;
    let mut errors = FieldErrors::default();
    if !password.is_empty() {
        let confirmed = service.confirm(channel, browser, password, code);
        match check_guess(visitor.web(), visitor.request(), channel, confirmed).await {
            Ok(token) => {
                visitor.renew_browser(token);
                return Ok(None);
            }
            Err(error) => errors = at_field(error, visitor.lang())?,
        }
        status = StatusCode::UNPROCESSABLE_ENTITY;
    }
    let action = visitor.request().path();
    let kept = fields.pairs().filter(|(name, _)| ![PASSWORD, CODE, "csrf"].contains(name));
    let kept: Vec<_> = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let page = ConfirmPage { errors, ..ConfirmPage::new(visitor, channel, action, &kept, upstreams).await? };
    let mut response = visitor.page(&page)?;
    *response.status_mut() = status;
    Ok(Some(response))
}

/// A provider at which a person without a password proves to own the account.
struct ProviderForm<'a> {
    label: &'a str,
    form: FormTarget,
}

/// The page that asks for the proof.
#[derive(Template)]
#[template(path = "site/confirm.html")]
pub(crate) struct ConfirmPage<'a> {
    shell: Shell<'a>,
    t: &'static ConfirmTexts,
    form: FormTarget,
    /// What was typed.
    kept: &'a [(String, String)],
    has_password: bool,
    has_second_step: bool,
    providers: Vec<ProviderForm<'a>>,
    /// Whether the proof is there, so that only the form is missing.
    is_proven: bool,
    pub errors: FieldErrors,
}

impl ConfirmPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }

    /// The way back without the change: the first page of the part to which the form belongs.
    fn up(&self) -> &str {
        let end = self.form.action[1..].find('/').map_or(self.form.action.len(), |end| end + 1);
        &self.form.action[..end]
    }
}

impl<'a> ConfirmPage<'a> {
    pub(crate) async fn new(
        visitor: &'a Visitor,
        channel: &ChannelId,
        action: &str,
        kept: &'a [(String, String)],
        upstreams: Option<&'a Upstreams>,
    ) -> Result<Self, service::Error> {
        let service = visitor.web().service();
        let account = service.account(channel).await?;
        let linked = match account.has_password {
            true => Vec::new(),
            false => service.linked_providers(channel).await?,
        };
        let is_linked = |name: &str| linked.iter().any(|linked| linked.provider == name);
        let providers = upstreams.into_iter().flat_map(Upstreams::iter);
        let providers = providers.filter(|provider| is_linked(&provider.settings().name)).map(|provider| {
            let path = CONFIRM_UPSTREAM.replace("{name}", &provider.settings().name);
            ProviderForm { label: label(provider, visitor.lang()), form: visitor.form(path) }
        });
        Ok(Self {
            shell: visitor.shell(Area::Elsewhere),
            t: texts(visitor.lang()),
            form: visitor.form(action),
            kept,
            has_password: account.has_password,
            has_second_step: account.two_factor_since.is_some(),
            providers: providers.collect(),
            is_proven: false,
            errors: FieldErrors::default(),
        })
    }
}

/// The person came back from the provider: the page that goes on with the form.
pub(crate) async fn came_back(
    visitor: &Visitor,
    provider: &Provider,
    identity: &UpstreamIdentity,
    pending: &PendingForm,
) -> PageAnswer {
    let Some(channel) = visitor.channel_id() else {
        return problem_page(visitor, provider, ProviderProblem::Expired, Attempt::to(ACCOUNT));
    };
    let service = visitor.web().service();
    let Some(token) = service.confirm_upstream(channel, visitor.browser_token(), identity).await? else {
        return problem_page(visitor, provider, ProviderProblem::OtherAccount, Attempt::to(ACCOUNT));
    };
    visitor.renew_browser(token);
    let page = ConfirmPage::new(visitor, channel, &pending.action, &pending.fields, None).await?;
    visitor.page(&ConfirmPage { is_proven: true, ..page })
}

struct ConfirmTexts {
    title: &'static str,
    lead: &'static str,
    proven: &'static str,
    password: &'static str,
    code: &'static str,
    code_hint: &'static str,
    go_on: &'static str,
    cancel: &'static str,
    no_way: &'static str,
    again: &'static str,
}

fn texts(lang: Lang) -> &'static ConfirmTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ConfirmTexts = ConfirmTexts {
    title: "본인 확인",
    lead: "중요한 변경이라 본인인지 다시 확인합니다. 입력한 내용은 그대로 이어집니다. 확인은 10분 동안 유효합니다.",
    proven: "확인했습니다. 하던 일을 계속해 주세요.",
    password: "현재 비밀번호",
    code: "인증 코드",
    code_hint: "앱에 표시된 코드나 복구 코드",
    go_on: "계속",
    cancel: "취소",
    no_way: "로그인한 지 10분이 지났습니다. 다시 로그인한 뒤 처음부터 해 주세요.",
    again: "다시 로그인",
};

const EN: ConfirmTexts = ConfirmTexts {
    title: "Confirm that it is you",
    lead: "This change matters, so we ask again. What you typed is kept. The confirmation is good for ten minutes.",
    proven: "Confirmed. Go on with what you were doing.",
    password: "Current password",
    code: "Code",
    code_hint: "The code that the app shows, or a recovery code",
    go_on: "Continue",
    cancel: "Cancel",
    no_way: "You signed in more than ten minutes ago. Sign in again, then start over.",
    again: "Sign in again",
};
