//! The ids in a request's path.

use axum::extract::{FromRequestParts, RawPathParams};
use domain::refusal::Resource;
use domain::{ChannelId, Refusal};
use http::request::Parts;

use crate::Web;
use crate::contract::Operation;
use crate::contract::routes::DescribeInput;
use crate::envelope::Failure;

/// The first id of the path, as text.
#[derive(Debug)]
pub struct PathId(pub String);

impl FromRequestParts<Web> for PathId {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let raw = RawPathParams::from_request_parts(parts, &())
            .await
            .map_err(|_| Refusal::NotFound(Resource::Path))?;
        Ok(Self(raw.iter().next().map_or_else(String::new, |(_, value)| value.to_owned())))
    }
}

impl DescribeInput for PathId {
    fn describe(operation: &mut Operation) {
        operation.may_refuse(&[400, 404]);
    }
}

/// The first two ids of the path, as text.
#[derive(Debug)]
pub struct PathIds(pub String, pub String);

impl FromRequestParts<Web> for PathIds {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let (first, second) = two_ids(parts).await?;
        Ok(Self(first, second))
    }
}

/// The two ids of a path, as text.
pub(crate) async fn two_ids(parts: &mut Parts) -> Result<(String, String), Failure> {
    let raw =
        RawPathParams::from_request_parts(parts, &()).await.map_err(|_| Refusal::NotFound(Resource::Path))?;
    let mut ids = raw.iter().map(|(_, id)| id.to_owned());
    match (ids.next(), ids.next()) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(Refusal::NotFound(Resource::Path).into()),
    }
}

/// `{channelId}` of the path.
#[derive(Debug)]
pub struct ChannelPath(pub ChannelId);

impl FromRequestParts<Web> for ChannelPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        let PathId(id) = PathId::from_request_parts(parts, web).await?;
        Ok(Self(ChannelId::parse("channelId", &id)?))
    }
}

impl DescribeInput for ChannelPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}

/// `{channelId}` and the id of the other channel after it in the path.
#[derive(Debug)]
pub struct ChannelPairPath(pub ChannelId, pub ChannelId);

impl FromRequestParts<Web> for ChannelPairPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        const FIELDS: [&str; 3] = ["channelId", "managerChannelId", "followerChannelId"];
        let raw = RawPathParams::from_request_parts(parts, &())
            .await
            .map_err(|_| Refusal::NotFound(Resource::Path))?;
        let mut ids = raw.iter().map(|(name, id)| {
            let field = FIELDS.into_iter().find(|field| *field == name).unwrap_or(FIELDS[0]);
            ChannelId::parse(field, id)
        });
        match (ids.next(), ids.next()) {
            (Some(channel), Some(other)) => Ok(Self(channel?, other?)),
            _ => Err(Refusal::NotFound(Resource::Path).into()),
        }
    }
}

impl DescribeInput for ChannelPairPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}
