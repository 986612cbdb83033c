//! What the forms of accounts have in common.

use domain::Refusal;
use web::pages::{FieldErrors, Lang};
use web::{Failure, Visitor};

/// The page behind a link that proves an e-mail address.
pub(crate) const EMAIL_PROOF: &str = "/account/email/proof";
/// The form that asks for such a link.
pub(crate) const EMAIL_LINK: &str = "/account/email/link";

/// The address of the page behind links that prove an e-mail address.
pub(crate) fn proof_page(visitor: &Visitor) -> String {
    format!("{}{EMAIL_PROOF}", visitor.web().config().base_url)
}

/// Puts what is wrong at its field. Anything else becomes an error page.
///
/// # Errors
/// The error, if it is about no field.
pub(crate) fn at_field(error: service::Error, lang: Lang) -> Result<FieldErrors, Failure> {
    let Refusal::Invalid(invalid) = error.refusal() else { return Err(error.into()) };
    let mut errors = FieldErrors::default();
    errors.add_invalid(&invalid, lang);
    Ok(errors)
}

/// The words where an account without a password confirms a change.
#[derive(Debug)]
pub(crate) struct ConfirmWords {
    pub recent: &'static str,
    pub again: &'static str,
}

/// The words in this language.
pub(crate) fn confirm_words(lang: Lang) -> &'static ConfirmWords {
    const KO: ConfirmWords = ConfirmWords {
        recent: "로그인한 지 10분이 지났다면 먼저 다시 로그인해야 합니다.",
        again: "다시 로그인",
    };
    const EN: ConfirmWords = ConfirmWords {
        recent: "If you signed in more than ten minutes ago, sign in again first.",
        again: "Sign in again",
    };
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}
