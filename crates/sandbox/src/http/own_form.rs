//! Forms of pages that show secrets of the sandbox.

use http::{HeaderMap, StatusCode};

use super::access::{Access, is_foreign};
use super::answer::Problem;
use crate::sandbox::{Parts, Sandbox};

/// The parts of the node, for a form of a page of the sandbox. The browser needs the cookie of the console,
/// because the pages show secrets.
///
/// # Errors
/// The form is of another origin, the browser may not post it, or the node still starts.
pub(super) fn own_form<'s>(
    sandbox: &'s Sandbox,
    access: &Access,
    headers: &HeaderMap,
) -> Result<&'s Parts, Problem> {
    if is_foreign(headers) {
        let message = "Origin: web pages of other origins may not do this";
        return Err(Problem::new(StatusCode::FORBIDDEN, message));
    }
    if !access.has_cookie(headers) {
        let message = "open the console first, with `stagedoor open`: this page shows secrets";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, message));
    }
    sandbox.parts().ok_or_else(starting)
}

/// The refusal while the node starts.
pub(super) fn starting() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again")
}
