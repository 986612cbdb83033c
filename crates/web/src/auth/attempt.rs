//! An attempt to sign in with a password.

use domain::secret::BrowserToken;

use super::guesses::Guess;
use crate::Web;
use crate::failures::Failed;
use crate::page_request::PageRequest;
use crate::pages::SignInError;

/// Checks a password within the limits on guessing, and gives the browser's new token. The inner error is
/// what the page says.
///
/// # Errors
/// When the store fails.
pub async fn try_password(
    web: &Web,
    request: &PageRequest,
    login: &str,
    password: &str,
) -> Result<Result<BrowserToken, SignInError>, service::Error> {
    let guess = match Guess::begin(web, &request.charged, login, request.client).await {
        Ok(guess) => guess,
        Err(refusal) => return limited(web, request, refusal.into()).map(Err),
    };
    let service = web.service().asked_from(guess.block);
    match service.sign_in(login, password, guess.known).await {
        Ok(Some(token)) => {
            guess.succeeded();
            Ok(Ok(token))
        }
        Ok(None) => {
            web.count_failure(Failed::Password, request.client);
            Ok(Err(SignInError::WrongLoginOrPassword))
        }
        Err(error) => {
            guess.refund();
            limited(web, request, error).map(Err)
        }
    }
}

/// What the page says when a limit refused the attempt.
fn limited(web: &Web, request: &PageRequest, error: service::Error) -> Result<SignInError, service::Error> {
    let limited = SignInError::limited(&error.refusal()).ok_or(error)?;
    web.count_failure(Failed::SignInLimited, request.client);
    Ok(limited)
}
