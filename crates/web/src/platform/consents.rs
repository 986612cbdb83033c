//! Consents of users, withdrawn by the platform.

use axum::extract::{FromRequestParts, RawPathParams};
use domain::refusal::Resource;
use domain::{ChannelId, ClientId, Refusal};
use http::request::Parts;

use crate::Web;
use crate::caller::Operator;
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::envelope::{Answer, Failure, NOTHING};
use crate::path::PathId;

/// `{clientId}` and `{channelId}` of the path.
#[derive(Debug)]
pub struct ConsentPath(ClientId, ChannelId);

impl FromRequestParts<Web> for ConsentPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Web) -> Result<Self, Failure> {
        let raw = RawPathParams::from_request_parts(parts, &())
            .await
            .map_err(|_| Refusal::NotFound(Resource::Path))?;
        let mut ids = raw.iter().map(|(_, value)| value);
        let mut next = || ids.next().unwrap_or_default();
        Ok(Self(ClientId::parse("clientId", next())?, ChannelId::parse("channelId", next())?))
    }
}

impl DescribeInput for ConsentPath {
    fn describe(operation: &mut Operation) {
        PathId::describe(operation);
    }
}

pub(crate) const WITHDRAW: Summary =
    Summary::new("withdrawConsent", "Withdraw a consent", "동의 철회").refuses(&[404]);

/// `DELETE /platform/v1/consents/{clientId}/{channelId}`: revokes the tokens, and sends SYSTEM `revoked`.
pub async fn withdraw(operator: Operator, ConsentPath(client_id, channel_id): ConsentPath) -> Answer<()> {
    operator.service().withdraw_consent(&client_id, &channel_id).await?;
    Ok(NOTHING)
}
