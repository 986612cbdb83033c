//! Signing in and out without an application's request.

use axum::http::{HeaderValue, StatusCode, header};
use web::pages::{SeededPerson, SignInError, SignInPage};
use web::{PageAnswer, Posted, SIGN_IN, Visitor, code_page, try_password};

use crate::account::ACCOUNT;

/// Where a sign-in leads without `next`, and signing out.
const HOME: &str = "/";
/// People that the page of a sandbox lists.
const PEOPLE_LISTED: i64 = 20;

/// `GET /sign-in`. With `next` it leads to that page, with `again` also a person who is signed in signs in.
pub(crate) async fn show(visitor: Visitor) -> PageAnswer {
    let is_again = visitor.request().parameter("again").is_some();
    if visitor.is_signed_in() && !is_again {
        return Ok(visitor.redirect(&next(&visitor), None));
    }
    page(&visitor, "", None).await
}

/// `POST /sign-in`. The limits on failures are those of the sign-in of applications.
pub(crate) async fn submit(Posted { visitor, fields }: Posted) -> PageAnswer {
    let web = visitor.web();
    let (picked, login, password) = (fields.text("person"), fields.text("login"), fields.text("password"));
    let (login, tried) = if web.config().sandbox && !picked.is_empty() {
        let token = web.service().sign_in_as(picked).await?;
        (picked, token.ok_or(SignInError::WrongLoginOrPassword))
    } else if login.is_empty() || password.is_empty() {
        (login, Err(SignInError::Missing))
    } else {
        (login, try_password(web, visitor.request(), login, password).await?)
    };
    match tried {
        Ok(token) if web.service().awaits_code(&token).await? => {
            visitor.signed_in(&token, &code_page(&next(&visitor))).await
        }
        Ok(token) => visitor.signed_in(&token, &next(&visitor)).await,
        Err(error) => page(&visitor, login, Some(error)).await,
    }
}

/// `POST /sign-out`: ends the sign-in of this browser.
pub(crate) async fn sign_out(Posted { visitor, .. }: Posted) -> PageAnswer {
    // In a sandbox the start page is the console, which is not for people.
    visitor.signed_out(if visitor.web().config().sandbox { SIGN_IN } else { HOME }).await
}

/// The page after the sign-in.
fn next(visitor: &Visitor) -> String {
    let home = if visitor.web().config().sandbox { ACCOUNT } else { HOME };
    visitor.request().parameter("next").unwrap_or_else(|| home.to_owned())
}

async fn page(visitor: &Visitor, login: &str, error: Option<SignInError>) -> PageAnswer {
    let web = visitor.web();
    let listed = match web.config().sandbox {
        true => web.service().people(PEOPLE_LISTED).await?,
        false => Vec::new(),
    };
    let people = listed.iter().map(|person| SeededPerson {
        login: &person.login,
        channel_name: &person.channel_name,
        description: &person.login,
    });
    let form = visitor.form(SIGN_IN);
    let action = visitor.request().path_and_query();
    let (providers, next) = (visitor.providers(), next(visitor));
    let page = SignInPage {
        shell: visitor.shell_alone(),
        application_name: None,
        action: &action,
        hidden: &[("csrf", &form.csrf)],
        login,
        error,
        people: &people.collect::<Vec<_>>(),
        has_registration: web.service().account_settings().registration,
        has_passwords: web.service().account_settings().passwords,
        providers: &providers,
        next: &next,
    };
    let mut response = visitor.page_alone(&page)?;
    if let Some(seconds) = error.and_then(SignInError::retry_after_seconds) {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(reason) = error.and_then(SignInError::reason) {
        response.extensions_mut().insert(reason);
    }
    Ok(response)
}
