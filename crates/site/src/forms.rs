//! What the forms of accounts have in common.

use domain::Refusal;
use web::Failure;
use web::pages::{FieldErrors, Lang};

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
