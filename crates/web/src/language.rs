//! The language of answers.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use domain::Language;
use http::request::Parts;
use http::{HeaderMap, header};

use crate::Web;

/// The language that `Accept-Language` prefers, else the configured language of the node.
#[derive(Clone, Copy, Debug)]
pub struct Spoken(pub Language);

impl FromRequestParts<Web> for Spoken {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Infallible> {
        Ok(Self(preferred(&parts.headers).unwrap_or(web.config().language)))
    }
}

/// The language that `Accept-Language` prefers.
pub(crate) fn preferred(headers: &HeaderMap) -> Option<Language> {
    headers.get(header::ACCEPT_LANGUAGE).and_then(|accepted| Language::preferred(accepted.to_str().ok()?))
}
