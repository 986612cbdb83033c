//! Channels, as the platform reports them.

use axum::extract::State;
use domain::limits::NAME_CHARS_MAX;
use domain::{ChannelId, Invalid, Rule};
use service::ChannelRecord;
use service::channels::Credentials;

use crate::Web;
use crate::caller::Operator;
use crate::contract::shape::{Shape, chars, flag, optional, required, text, web_address};
use crate::envelope::{Answer, NOTHING};
use crate::input::{Body, Fields, Json};
use crate::platform::ChannelPath;

/// What a channel is told to be.
pub struct PutChannel {
    name: String,
    image_url: Option<String>,
    verified_mark: bool,
    real_name_verified: bool,
    credentials: Option<Credentials>,
}

impl Body for PutChannel {
    fn shape() -> Shape {
        let credential = || text().about("`login` and `password` come together.");
        Shape::of([
            required("channelName", chars(1, NAME_CHARS_MAX)),
            optional("channelImageUrl", web_address()),
            optional("verifiedMark", flag().default(false)),
            optional("realNameVerified", flag().default(false)),
            optional("login", credential()),
            optional("password", credential()),
        ])
    }

    fn read(fields: &Fields) -> Result<Self, Invalid> {
        let credentials = match (fields.optional_text("login")?, fields.optional_text("password")?) {
            (Some(login), Some(password)) => Some(Credentials { login, password }),
            (None, None) => None,
            (Some(_), None) => return Err(Invalid::new("login", Rule::Together("password"))),
            (None, Some(_)) => return Err(Invalid::new("password", Rule::Together("login"))),
        };
        Ok(Self {
            name: fields.text("channelName")?,
            image_url: fields.optional_text("channelImageUrl")?,
            verified_mark: fields.flag("verifiedMark")?,
            real_name_verified: fields.flag("realNameVerified")?,
            credentials,
        })
    }
}

impl PutChannel {
    pub(super) fn record(self, channel_id: ChannelId) -> (ChannelRecord, Option<Credentials>) {
        let Self { name, image_url, verified_mark, real_name_verified, credentials } = self;
        (ChannelRecord { channel_id, name, image_url, verified_mark, real_name_verified }, credentials)
    }
}

/// `PUT /platform/v1/channels/{channelId}`: makes or replaces a channel; with login and password its person can sign in.
pub async fn put(
    _: Operator,
    State(web): State<Web>,
    ChannelPath(channel_id): ChannelPath,
    Json(body): Json<PutChannel>,
) -> Answer<()> {
    let (record, credentials) = body.record(channel_id);
    web.service().put_channel(record, credentials).await?;
    Ok(NOTHING)
}
