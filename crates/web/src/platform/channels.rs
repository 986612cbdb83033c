//! Channels: reported by the platform, and shown to the operator.

use axum::extract::State;
use domain::limits::{CREDENTIAL_BYTES_MAX, EMAIL_BYTES_MAX, NAME_CHARS_MAX};
use domain::operator_key::OperatorRole;
use domain::{ChannelId, Invalid, Rule, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::ChannelRecord;
use service::channel_admin::{ChannelDetails, ChannelFilter};
use service::channels::LoginCredentials;

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::values::{chars, flag, text, web_address};
use crate::input::{
    Body, Form, Json, JsonForm, Params, Query, QueryForm, optional, record, required, with_default,
};
use crate::path::ChannelPath;
use crate::platform::ListQuery;

/// The properties of a channel.
pub struct PutChannel {
    name: String,
    image_url: Option<String>,
    verified_mark: bool,
    real_name_verified: bool,
    credentials: Option<LoginCredentials>,
}

impl Body for PutChannel {
    fn form() -> impl JsonForm<Out = Self> {
        let credential = |other: &'static str| {
            chars(1, CREDENTIAL_BYTES_MAX).with(move |kind| {
                kind.about(&format!("Comes together with `{other}`. At most {CREDENTIAL_BYTES_MAX} bytes."))
            })
        };
        let email = chars(1, EMAIL_BYTES_MAX).with(|kind| {
            kind.about(
                "Where links to a new password go. Comes together with `login`. Left out: stays as it is.",
            )
        });
        let together = |given| match given {
            (Some(login), Some(password), email) => Ok(Some(LoginCredentials { login, password, email })),
            (None, None, None) => Ok(None),
            (None, None, Some(_)) => Err(Invalid::new("email", Rule::Together("login"))),
            (Some(_), None, _) => Err(Invalid::new("login", Rule::Together("password"))),
            (None, Some(_), _) => Err(Invalid::new("password", Rule::Together("login"))),
        };
        record!(Self {
            credentials: (
                optional("login", credential("password")),
                optional("password", credential("login")),
                optional("email", email),
            )
                .try_map(together),
            name: required("channelName", chars(1, NAME_CHARS_MAX)),
            image_url: optional("channelImageUrl", web_address()),
            verified_mark: with_default("verifiedMark", flag(), false),
            real_name_verified: with_default("realNameVerified", flag(), false),
        })
    }
}

impl PutChannel {
    pub(super) fn record(self, channel_id: ChannelId) -> (ChannelRecord, Option<LoginCredentials>) {
        let Self { name, image_url, verified_mark, real_name_verified, credentials } = self;
        (ChannelRecord { channel_id, name, image_url, verified_mark, real_name_verified }, credentials)
    }
}

pub(crate) const PUT: Summary = Summary::new("putChannel", "Make or replace a channel", "채널 등록");

/// `PUT /platform/v1/channels/{channelId}`: creates or replaces a channel. With login and password its person
/// can sign in.
pub async fn put(
    operator: Operator,
    ChannelPath(channel_id): ChannelPath,
    Json(body): Json<PutChannel>,
) -> Answer<()> {
    let (record, credentials) = body.record(channel_id);
    operator.service().put_channel(record, credentials).await?;
    Ok(NOTHING)
}

/// A channel as the operator sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelAnswer {
    /// The channel, which is also its person.
    channel_id: ChannelId,
    /// Its name.
    channel_name: String,
    /// Its picture.
    channel_image_url: Option<String>,
    /// Whether it carries the platform's mark.
    verified_mark: bool,
    /// Whether its owner proved a real name.
    real_name_verified: bool,
    /// How many follow it.
    follower_count: i64,
    /// What its person signs in with; `null` where nobody can.
    login: Option<String>,
    /// Since when it is there.
    created_date: String,
    /// Since when its person is barred, if so.
    barred_date: Option<String>,
    /// What its person may do on the operator pages: `read`, `write` or `admin`; `null` for nothing.
    operator_role: Option<&'static str>,
}

impl From<ChannelDetails> for ChannelAnswer {
    fn from(details: ChannelDetails) -> Self {
        Self {
            channel_id: details.channel_id,
            channel_name: details.name,
            channel_image_url: details.image_url,
            verified_mark: details.verified_mark,
            real_name_verified: details.real_name_verified,
            follower_count: details.follower_count,
            login: details.login,
            created_date: details.created_at.rfc3339(),
            barred_date: details.barred_at.map(Timestamp::rfc3339),
            operator_role: details.operator_role.map(OperatorRole::name),
        }
    }
}

/// The filter of the channel list.
#[derive(Debug)]
pub struct ChannelsQuery {
    filter: ChannelFilter,
    list: ListQuery,
}

impl Params for ChannelsQuery {
    fn form() -> impl QueryForm<Out = Self> {
        let name = text().about("Those of this very name.");
        let login = text().about("The one whose person has this login. Not together with the other filters.");
        let barred = flag().about("`true`: those that are barred. Not together with the other filters.");
        let filter = |given| match given {
            (None, None, None | Some(false)) => Ok(ChannelFilter::All),
            (Some(name), None, None | Some(false)) => Ok(ChannelFilter::Name(name)),
            (None, Some(login), None | Some(false)) => Ok(ChannelFilter::Login(login)),
            (None, None, Some(true)) => Ok(ChannelFilter::Barred),
            (Some(_), Some(_), _) => Err(Invalid::new("name", Rule::NotTogether("login"))),
            (Some(_), ..) => Err(Invalid::new("name", Rule::NotTogether("barred"))),
            (_, Some(_), _) => Err(Invalid::new("login", Rule::NotTogether("barred"))),
        };
        record!(Self {
            filter: (optional("name", name), optional("login", login), optional("barred", barred))
                .try_map(filter),
            list: ListQuery::form(),
        })
    }
}

pub(crate) const LIST: Summary = Summary::new("listChannels", "Channels by their ids", "채널 목록 조회");

/// `GET /platform/v1/channels`: channels by their ids.
pub async fn list(
    _: Operator,
    State(web): State<Web>,
    Query(query): Query<ChannelsQuery>,
) -> Answer<NextData<ChannelAnswer>> {
    let ChannelsQuery { filter, list: ListQuery { size, next } } = query;
    let page = web.service().list_channels(filter, size, next.as_deref()).await?;
    let items = page.channels.into_iter().map(ChannelAnswer::from).collect();
    Ok(Success(NextData::new(items, page.next)))
}

pub(crate) const SHOW: Summary =
    Summary::new("showChannel", "A channel as the operator sees it", "채널 조회").refuses(&[404]);

/// `GET /platform/v1/channels/{channelId}`: a channel, with the login of its person.
pub async fn show(
    _: Operator,
    State(web): State<Web>,
    ChannelPath(channel_id): ChannelPath,
) -> Answer<ChannelAnswer> {
    Ok(Success(web.service().channel_details(&channel_id).await?.into()))
}

pub(crate) const DELETE: Summary =
    Summary::new("deleteChannel", "Delete a channel with what hangs on it", "채널 삭제");

/// `DELETE /platform/v1/channels/{channelId}`: hides a channel at once, and deletes it with its data.
pub async fn delete(operator: Operator, ChannelPath(channel_id): ChannelPath) -> Answer<()> {
    operator.service().delete_channel(&channel_id).await?;
    Ok(NOTHING)
}

pub(crate) const BAR: Summary =
    Summary::new("barChannel", "Keep a channel's person out, and end what it has", "채널 이용 정지")
        .refuses(&[404]);

/// `PUT /platform/v1/channels/{channelId}/bar`: its person cannot sign in, and the person's tokens, browser
/// sessions and socket sessions end.
pub async fn bar(operator: Operator, ChannelPath(channel_id): ChannelPath) -> Answer<()> {
    operator.service().bar_channel(&channel_id).await?;
    Ok(NOTHING)
}

pub(crate) const UNBAR: Summary =
    Summary::new("unbarChannel", "Let a channel's person sign in again", "채널 이용 정지 해제")
        .refuses(&[404]);

/// `DELETE /platform/v1/channels/{channelId}/bar`: its person can sign in again.
pub async fn unbar(operator: Operator, ChannelPath(channel_id): ChannelPath) -> Answer<()> {
    operator.service().unbar_channel(&channel_id).await?;
    Ok(NOTHING)
}

/// A link with which a person chooses a new password.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordReset {
    /// The address to give to the person. It is shown this once, and works once.
    link: String,
    /// When it stops to work.
    expires_date: String,
}

pub(crate) const RESET_PASSWORD: Summary = Summary::new(
    "issuePasswordReset",
    "Issue a link with which a person chooses a new password",
    "비밀번호 재설정 링크 발급",
)
.refuses(&[404]);

/// `POST /platform/v1/channels/{channelId}/password-reset`: a link for the person of a channel. The password
/// and the browser sessions stay until the person uses the link.
pub async fn reset_password(
    operator: Operator,
    State(web): State<Web>,
    ChannelPath(channel_id): ChannelPath,
) -> Answer<PasswordReset> {
    let page = web.reset_page();
    let issued = operator.service().issue_password_reset(&channel_id, &page, web.config().language).await?;
    Ok(Success(PasswordReset { link: issued.link, expires_date: issued.expires_at.rfc3339() }))
}

pub(crate) const REMOVE_TWO_FACTOR: Summary =
    Summary::new("removeTwoFactor", "Remove the second step of a person's sign-in", "2단계 인증 해제")
        .refuses(&[404]);

/// `DELETE /platform/v1/channels/{channelId}/two-factor`: for a person who lost the device and the recovery
/// codes.
pub async fn remove_two_factor(
    operator: Operator,
    State(web): State<Web>,
    ChannelPath(channel_id): ChannelPath,
) -> Answer<()> {
    operator.service().remove_two_factor(&channel_id, web.config().language).await?;
    Ok(NOTHING)
}

pub(crate) const SIGN_OUT: Summary =
    Summary::new("endBrowserSessions", "Sign every browser of a channel's person out", "브라우저 로그아웃")
        .refuses(&[404]);

/// `DELETE /platform/v1/channels/{channelId}/browser-sessions`: signs its person out of every browser.
pub async fn sign_out(operator: Operator, ChannelPath(channel_id): ChannelPath) -> Answer<()> {
    operator.service().end_browser_sessions(&channel_id).await?;
    Ok(NOTHING)
}
