//! `POST /sandbox/console/sign-in`: signs the browser in as a person, and leads it to the sign-in of an
//! application.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use domain::ClientId;
use http::{HeaderValue, StatusCode, header};

use super::handle::{Console, FORM_BYTES_MAX, field, read_form};
use crate::catch_address::for_browser;
use crate::http::answer::Problem;
use crate::http::names;
use crate::overview::sign_in_url;

/// Maximum number of people.
const PEOPLE_MAX: i64 = 100;

/// The form's fields are those of the call for tokens: `user` and `client`.
pub(super) async fn sign_in(State(console): State<Console>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    console.check(&parts.method, &parts.headers)?;
    let fields = read_form(body, FORM_BYTES_MAX).await?;
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let service = &console.sandbox().parts().ok_or_else(starting)?.service;
    let channel = names::channel(service, "user", field(&fields, "user")).await?;
    let people = service.people(PEOPLE_MAX).await?;
    let person = people.into_iter().find(|person| person.channel_id == channel);
    let nobody = || Problem::invalid("user", "must be somebody who can sign in");
    let login = person.ok_or_else(nobody)?.login;
    let application = names::application(service, "client", field(&fields, "client")).await?;
    let client_id = ClientId::stored(application.client_id.to_string());
    let redirect_uris = service.application_details(&client_id).await?.redirect_uris;
    let rule = format!("{client_id} needs a redirect address first");
    let redirect_uri = for_browser(&redirect_uris).ok_or_else(|| Problem::invalid("client", rule))?;
    let token = service.sign_in_as(&login).await?.ok_or_else(nobody)?;
    // The form has an origin, whatever way the browser reaches the sandbox.
    let origin = parts.headers.get(header::ORIGIN);
    let is_secure = origin.is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let cookie = (console.surroundings().sign_in_cookie)(&token, is_secure);
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| nobody())?;
    // The address is one of this origin, whatever name the browser reaches it by.
    let target = sign_in_url("", &client_id, redirect_uri);
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&target)).into_response())
}
