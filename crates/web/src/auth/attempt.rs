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
    let limited = |error| {
        web.count_failure(Failed::SignInLimited, request.client);
        Ok(Err(error))
    };
    let guess = match Guess::begin(web, &request.charged, login, request.client).await {
        Ok(guess) => guess,
        Err(refusal) => {
            let retry_after_seconds = refusal.retry_after_s().unwrap_or(1);
            return limited(SignInError::TooManyAttempts { retry_after_seconds });
        }
    };
    match web.service().sign_in(login, password, guess.known).await {
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
            match error.refusal().retry_after_s() {
                Some(retry_after_seconds) => limited(SignInError::Busy { retry_after_seconds }),
                None => Err(error),
            }
        }
    }
}
