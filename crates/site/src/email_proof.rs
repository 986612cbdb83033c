//! `/account/email/proof`: the link that proves an e-mail address, and the form that asks for one.

use askama::Template;
use domain::limits::EMAIL_BYTES_MAX;
use web::pages::{Flash, Lang, Shell, filters};
use web::{FormTarget, PageAnswer, Posted, PostedBy, Visitor};

use crate::account::ACCOUNT;
use crate::forms::{EMAIL_PROOF, proof_page};

#[derive(Template)]
#[template(path = "site/email_proof.html")]
struct EmailProofPage<'a> {
    shell: Shell<'a>,
    t: &'static ProofTexts,
    form: FormTarget,
    token: &'a str,
    /// The address, if the link is valid and not used here yet.
    email: Option<String>,
    is_done: bool,
}

impl EmailProofPage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }
}

fn page<'a>(visitor: &'a Visitor, token: &'a str) -> EmailProofPage<'a> {
    let mut shell = visitor.shell_alone();
    shell.language_href = None;
    let email = visitor.web().service().address_of_proof(token);
    let email = email.filter(|email| email.len() <= EMAIL_BYTES_MAX);
    EmailProofPage {
        shell,
        t: texts(visitor.lang()),
        form: visitor.form(EMAIL_PROOF),
        token,
        email,
        is_done: false,
    }
}

/// `GET /account/email/proof?token=`. A program that only opens the link proves nothing.
pub(crate) async fn show(visitor: Visitor) -> PageAnswer {
    let token = visitor.request().parameter("token").unwrap_or_default();
    visitor.page_alone(&page(&visitor, &token))
}

/// `POST /account/email/proof`.
pub(crate) async fn submit(Posted { visitor, fields }: Posted) -> PageAnswer {
    let token = fields.text("token");
    let is_done = visitor.web().service().prove_email(token).await?;
    let email = None;
    let page = EmailProofPage { is_done, email, ..page(&visitor, token) };
    if is_done { visitor.page_alone(&page) } else { visitor.form_again_alone(&page) }
}

/// `POST /account/email/link`: sends a link to the address of the account.
pub(crate) async fn send(PostedBy { person, .. }: PostedBy) -> PageAnswer {
    let visitor = &person.visitor;
    let (service, lang) = (visitor.web().service(), visitor.lang());
    service.send_email_proof(&person.channel_id, &proof_page(visitor), lang.into()).await?;
    Ok(visitor.redirect(ACCOUNT, Some(Flash::EmailProofSent)))
}

struct ProofTexts {
    title: &'static str,
    about: &'static str,
    prove: &'static str,
    done: &'static str,
    invalid: &'static str,
    account: &'static str,
}

fn texts(lang: Lang) -> &'static ProofTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: ProofTexts = ProofTexts {
    title: "이메일 확인",
    about: "이 주소로 보안 알림과 비밀번호 재설정 링크를 받습니다:",
    prove: "내 주소가 맞습니다",
    done: "이메일을 확인했습니다.",
    invalid: "기한이 지났거나 더 쓰지 않는 주소의 링크입니다. 내 계정 화면에서 새 링크를 받아 주세요.",
    account: "내 계정으로",
};

const EN: ProofTexts = ProofTexts {
    title: "Confirm your e-mail address",
    about: "You get security notices and links to a new password at:",
    prove: "This is my address",
    done: "Your address is confirmed.",
    invalid: "This link is too old, or for an address that you no longer use. Get a new one on the page of your account.",
    account: "Your account",
};
