//! Forms that are shown again by this side, without their handlers: those that are too large, those that
//! were opened before the browser's token changed, those that were too many, and those whose sign-in had
//! ended, when the person is signed in again. Nothing is done with them: the person presses again.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use domain::Refusal;
use domain::quota::QuotaName;
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode, header};
use service::form_drafts::FormDraft;
use tower::ServiceExt;

use crate::page_request::PageRequest;
use crate::pages::{Lang, PageProblem, Typed, refill};
use crate::problems::problem_answer;
use crate::quota::Charged;
use crate::{ClientAddress, RequestId, SecureOrigin, Web};

/// Maximum length of a page that is read to fill a form in, in bytes. Pages are far smaller.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Fields that are never kept or shown again: secrets, and proofs of the form.
pub(crate) fn is_kept(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !["password", "secret", "token", "code", "csrf", "arrival", "confirm"]
        .iter()
        .any(|part| name.contains(part))
}

/// Why a form is shown again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again<'a> {
    /// This field made it larger than 64 KiB.
    TooLarge(&'a str),
    /// The browser has another token since: the person signed in, or proved who they are, in another tab.
    Expired,
    /// It is refused until the person has waited.
    Early(PageProblem),
}

impl Again<'_> {
    const fn problem(self) -> PageProblem {
        match self {
            Self::TooLarge(_) => PageProblem::FormTooLarge,
            Self::Expired => PageProblem::FormExpired,
            Self::Early(problem) => problem,
        }
    }

    fn notice(self, lang: Lang) -> Cow<'static, str> {
        match self {
            Self::TooLarge(_) => lang
                .pick(
                    "입력한 내용이 너무 커서 아무것도 바뀌지 않았습니다.",
                    "The form was too large, so nothing has been changed.",
                )
                .into(),
            Self::Expired => lang
                .pick(
                    "마지막 로그인이나 본인 확인보다 먼저 연 화면이라 아무것도 바뀌지 않았습니다. 입력한 내용을 \
                     확인하고 다시 눌러 주세요.",
                    "You opened this page before your last sign-in or confirmation, so nothing has been changed. \
                     Check what you typed, and press again.",
                )
                .into(),
            Self::Early(problem) => {
                let nothing = lang.pick(
                    "요청이 너무 많아 아무것도 바뀌지 않았습니다.",
                    "There were too many requests, so nothing has been changed.",
                );
                format!("{nothing} {}", problem.next_step(lang)).into()
            }
        }
    }

    fn wrong(&self, lang: Lang) -> Option<(&str, &'static str)> {
        let text = lang.pick(
            "너무 큽니다. 글을 줄이거나 더 작은 파일을 골라 주세요.",
            "This is too large. Shorten the text, or choose a smaller file.",
        );
        match self {
            Self::TooLarge(field) => Some((field, text)),
            Self::Expired | Self::Early(_) => None,
        }
    }
}

/// The form of a request, once it was read. If its handler refuses it for a time, it is shown again.
#[derive(Clone, Debug, Default)]
pub(crate) struct PostedForm(Arc<OnceLock<Kept>>);

#[derive(Debug)]
struct Kept {
    parts: Parts,
    page: String,
    fields: Vec<(String, String)>,
}

impl PostedForm {
    /// Keeps a form of this page until its request is answered.
    pub fn keep(mut parts: Parts, page: String, fields: Vec<(String, String)>) {
        // The request holds the place of the form, so the form must not hold it.
        if let Some(Self(place)) = parts.extensions.remove() {
            // A request has one form.
            let _ = place.set(Kept { parts, page, fields });
        }
    }

    /// The form with what was typed, if it was one registration or link too many. The refusals of other
    /// forms stay cheap: floods of sign-ins and confirmations must not cost a page each.
    pub async fn show_again(&self, web: &Web, refusal: &Refusal) -> Option<Response> {
        let Refusal::TooManyRequests { quota: QuotaName::Accounts, .. } = refusal else { return None };
        let Kept { parts, page, fields } = self.0.get()?;
        Some(show_again(web, parts, page, fields, Again::Early(PageProblem::of(refusal))).await)
    }
}

/// The page of a posted form with what was typed, made by a GET within this process; an error page where
/// there is no such page. `fields` is empty for a form that cannot be shown to come from our page.
pub(crate) async fn show_again(
    web: &Web,
    parts: &Parts,
    page: &str,
    fields: &[(String, String)],
    again: Again<'_>,
) -> Response {
    let request = PageRequest::of(parts, web);
    let lang = request.lang();
    let problem = || problem_answer(web, &request, again.problem());
    let Some(shown) = get(web, parts, page).await else { return problem() };
    let (mut head, body) = shown.into_parts();
    let Ok(bytes) = to_bytes(body, PAGE_BYTES_MAX).await else { return problem() };
    let Ok(html) = String::from_utf8(bytes.into()) else { return problem() };
    let (notice, wrong) = (again.notice(lang), again.wrong(lang));
    let html = refill(&html, &Typed { action: parts.uri.path(), fields, notice: &notice, wrong });
    head.status = StatusCode::from_u16(again.problem().status()).unwrap_or(StatusCode::BAD_REQUEST);
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers
        .extend(again.problem().retry_after_seconds().map(|seconds| (header::RETRY_AFTER, seconds.into())));
    let mut response = (head, html).into_response();
    response.extensions_mut().insert(again.problem().reason());
    response
}

/// The answer to a GET with the headers of a request, if it is a page.
async fn get(web: &Web, parts: &Parts, page: &str) -> Option<Response> {
    let mut request = Request::builder().method(Method::GET).uri(page).body(Body::empty()).ok()?;
    *request.headers_mut() = plain_headers(&parts.headers);
    copy::<RequestId>(parts, &mut request);
    copy::<ClientAddress>(parts, &mut request);
    copy::<SecureOrigin>(parts, &mut request);
    copy::<Charged>(parts, &mut request);
    let Ok(response) = web.pages()?.clone().oneshot(request).await;
    (response.status() == StatusCode::OK).then_some(response)
}

/// Gives a request what the listener and the layers found out about another one.
fn copy<T: Clone + Send + Sync + 'static>(from: &Parts, to: &mut Request<Body>) {
    if let Some(fact) = from.extensions.get::<T>() {
        to.extensions_mut().insert(fact.clone());
    }
}

/// The headers of a form without those of its body.
fn plain_headers(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

/// The page with what was kept of a form on it.
pub(crate) fn with_draft(html: &str, draft: &FormDraft, lang: Lang) -> String {
    let FormDraft { action, fields, .. } = draft;
    let notice = lang.pick(
        "로그인이 끝나 있어서 아무것도 바뀌지 않았습니다. 입력한 내용을 확인하고 다시 눌러 주세요.",
        "Your sign-in had ended, so nothing has been changed. Check what you typed, and press again.",
    );
    refill(html, &Typed { action, fields, notice, wrong: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_kept() {
        for name in
            ["password", "newPassword", "currentPassword", "code", "csrf", "token", "clientSecret", "confirm"]
        {
            assert!(!is_kept(name), "{name}");
        }
        for name in ["name", "redirectUris", "message", "scopes", "organizationId", "login", "url"] {
            assert!(is_kept(name), "{name}");
        }
    }
}
