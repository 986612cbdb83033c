//! `GET /sandbox/v1/explain`: what an id or a word is.

use axum::extract::{RawQuery, State};
use http::StatusCode;

use super::answer::{Answer, Content, Problem};
use super::names;
use crate::explain::{self, Explanation};
use crate::sandbox::Sandbox;

/// Maximum length of an id or a word, in characters.
const WHAT_CHARS_MAX: usize = 200;

/// `GET /sandbox/v1/explain?what=…`.
pub(super) async fn show(State(sandbox): State<Sandbox>, RawQuery(query): RawQuery) -> Answer<Explanation> {
    let what = what(query.as_deref().unwrap_or_default())?;
    let starting = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts: try again");
    let service = &sandbox.parts().ok_or_else(starting)?.service;
    let unknown = || {
        let message = format!(
            "what: nothing is known of {what}: no id that is stored or recorded, no name, no event, no reason, no \
             message of a refusal, no close reason or code"
        );
        Problem::new(StatusCode::NOT_FOUND, message)
    };
    if let Some(explained) = explain::explain(&sandbox, service, &what).await? {
        return Ok(Content(explained));
    }
    // People and applications have names besides their ids.
    let id = match names::channel(service, "what", &what).await {
        Ok(id) => id.to_string(),
        Err(_) => match names::application(service, "what", &what).await {
            Ok(application) => application.client_id.to_string(),
            Err(_) => return Err(unknown()),
        },
    };
    explain::explain(&sandbox, service, &id).await?.map(Content).ok_or_else(unknown)
}

fn what(query: &str) -> Result<String, Problem> {
    let mut what = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "what" => what = Some(value.trim().to_owned()),
            name => return Err(Problem::invalid(name, "is no parameter of this call")),
        }
    }
    let fits = |what: &String| {
        (1..=WHAT_CHARS_MAX).contains(&what.chars().count()) && !what.chars().any(char::is_control)
    };
    let rule = format!("must be an id or a word of 1 to {WHAT_CHARS_MAX} characters");
    what.filter(fits).ok_or_else(|| Problem::invalid("what", rule))
}
