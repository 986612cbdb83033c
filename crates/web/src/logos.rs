//! `GET /pictures/applications/{clientId}`: the logos of applications, without authentication.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use domain::refusal::Resource;
use domain::{ClientId, Refusal};
use http::{HeaderValue, header};

use crate::Web;
use crate::envelope::Failure;
use crate::path::PathId;

/// The paths of the logos, with their method.
pub(crate) const PATHS: [(&str, &str); 1] = [("/pictures/applications/{clientId}", "GET")];

/// The routes.
pub(crate) fn paths() -> Router<Web> {
    Router::new().route(PATHS[0].0, get(show))
}

/// A new logo has another address: pages add its version.
async fn show(State(web): State<Web>, PathId(id): PathId) -> Result<Response, Failure> {
    let client_id = ClientId::parse("clientId", &id)?;
    let logo = web.service().application_logo(&client_id).await?;
    let bytes = logo.as_ref().and_then(|logo| Some((logo.media_type(), logo.bytes()?)));
    let (media_type, bytes) = bytes.ok_or(Refusal::NotFound(Resource::Path))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    Ok((headers, bytes).into_response())
}
