//! Organizations and applications (`docs/spec/authorization.md#applications`).

use axum::extract::State;
use domain::application::{Organization, Presentation, REDIRECT_URI_PATTERN, RedirectUri};
use domain::https_url::{HTTPS_URL_PATTERN, HttpsUrl};
use domain::limits::{LOGO_BYTES_MAX, NAME_CHARS_MAX, REDIRECT_URIS_MAX, URL_BYTES_MAX};
use domain::picture::{PICTURE_PATTERN, Picture};
use domain::quota::QuotaShare;
use domain::scope::{Scope, ScopeSet};
use domain::secret::ClientSecret;
use domain::{ChannelId, ClientId, Invalid, OrganizationId, Profile, Rule, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use service::application_life::{ApplicationDetails, ApplicationLife, Notice};
use service::applications::{ApplicationRecord, NewLogo};

use crate::Web;
use crate::caller::Operator;
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::values::{chars, flag, id, list, text, texts};
use crate::input::{Body, Form, Json, JsonForm, Query, optional, record, required, with_default};
use crate::path::PathId;
use crate::platform::{ListQuery, OrganizationListQuery};

const PROFILES: &[&str] = &["documented", "observed"];

/// The properties of an organization.
#[derive(Debug)]
pub struct PutOrganization {
    name: String,
    verified: bool,
}

impl Body for PutOrganization {
    fn form() -> impl JsonForm<Out = Self> {
        let verified = flag().about("Whether it is a verified company, which 드롭스 needs.");
        record!(Self {
            name: required("organizationName", chars(1, NAME_CHARS_MAX)),
            verified: with_default("verified", verified, false),
        })
    }
}

pub(crate) const PUT_ORGANIZATION: Summary =
    Summary::new("putOrganization", "Make or replace an organization", "조직 등록");

/// `PUT /platform/v1/organizations/{organizationId}`: creates or replaces an organization.
pub async fn put_organization(
    operator: Operator,
    PathId(id): PathId,
    Json(body): Json<PutOrganization>,
) -> Answer<()> {
    let organization_id = OrganizationId::parse("organizationId", &id)?;
    let PutOrganization { name, verified } = body;
    operator.service().put_organization(Organization { organization_id, name, verified }).await?;
    Ok(NOTHING)
}

/// The properties of an application.
#[derive(Debug)]
pub struct PutApplication {
    name: String,
    redirect_uris: Vec<RedirectUri>,
    scopes: ScopeSet,
    /// The organization or the person that owns it.
    owner: (Option<OrganizationId>, Option<ChannelId>),
    profile: Option<Profile>,
    quota: bool,
    /// Home page, terms, privacy policy, logo.
    face: (Option<HttpsUrl>, Option<HttpsUrl>, Option<HttpsUrl>, Option<Picture>),
}

impl Body for PutApplication {
    fn form() -> impl JsonForm<Out = Self> {
        let redirect_uri = text()
            .with(|kind| kind.pattern(REDIRECT_URI_PATTERN).max_chars(URL_BYTES_MAX))
            .about("https, or http on loopback; no fragment, user information or wildcard.");
        let redirect_uris = list(redirect_uri.parsed(RedirectUri::parse), 0, REDIRECT_URIS_MAX);
        let scope = |name: &str| Scope::from_name(name).ok_or(Invalid::new("scopes", Rule::KnownScope));
        let profile =
            |name: &str| Profile::from_name(name).ok_or(Invalid::new("profile", Rule::OneOf(PROFILES)));
        let scope_name =
            text().with(|kind| kind.one_of(&Scope::ALL.iter().map(|scope| scope.name()).collect::<Vec<_>>()));
        let profile_names = text().one_of(PROFILES).about("Left out: the service's.");
        let logo = text()
            .with(|kind| kind.pattern(PICTURE_PATTERN).max_chars(LOGO_BYTES_MAX.div_ceil(3) * 4 + 64))
            .about("Shown to people who are asked for consent: PNG, JPEG or WebP, at most 32 KiB.")
            .parsed(|address| Picture::parse("logo", address));
        let page =
            |about| text().with(|kind| kind.pattern(HTTPS_URL_PATTERN).max_chars(URL_BYTES_MAX)).about(about);
        let homepage = page("Its home page.").parsed(|url| HttpsUrl::parse("homepageUrl", url));
        let terms = page("Its terms of use.").parsed(|url| HttpsUrl::parse("termsUrl", url));
        let privacy = page("Its privacy policy.").parsed(|url| HttpsUrl::parse("privacyUrl", url));
        let owner = id(ChannelId::parse).about(
            "The person who owns it. Not together with an organization. Left out of both: the operator.",
        );
        record!(Self {
            name: required("name", chars(1, NAME_CHARS_MAX)),
            redirect_uris: optional("redirectUris", redirect_uris).map(Option::unwrap_or_default),
            scopes: optional("scopes", texts(scope_name.parsed(scope), 0))
                .map(|scopes| scopes.into_iter().flatten().collect()),
            owner: (optional("organizationId", id(OrganizationId::parse)), optional("ownerChannelId", owner),),
            profile: optional("profile", profile_names.parsed(profile)),
            quota: with_default("quota", flag().about("Whether quotas hold for it."), true),
            face: (
                optional("homepageUrl", homepage),
                optional("termsUrl", terms),
                optional("privacyUrl", privacy),
                optional("logo", logo),
            ),
        })
    }
}

/// What comes back when a secret is made, this once.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MadeSecret {
    /// The application.
    client_id: ClientId,
    /// Left out when the application was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
}

impl MadeSecret {
    pub(super) fn new(client_id: ClientId, secret: Option<&ClientSecret>) -> Self {
        Self { client_id, client_secret: secret.map(|secret| secret.expose().to_owned()) }
    }
}

pub(crate) const PUT: Summary =
    Summary::new("putApplication", "Make or replace an application", "애플리케이션 등록");

/// `PUT /platform/v1/applications/{clientId}`: creates, replaces or restores an application. The answer
/// contains `clientSecret` if the application is new.
pub async fn put(
    operator: Operator,
    PathId(id): PathId,
    Json(body): Json<PutApplication>,
) -> Answer<MadeSecret> {
    let client_id = ClientId::parse("clientId", &id)?;
    let PutApplication { name, redirect_uris, scopes, owner, profile, quota, face } = body;
    let (organization_id, owner) = owner;
    let (homepage, terms, privacy, logo) = face;
    let record = ApplicationRecord {
        client_id: client_id.clone(),
        name,
        organization_id,
        owner,
        redirect_uris,
        scopes,
        profile,
        quota,
        presentation: Presentation { homepage, terms, privacy, logo_version: None },
        logo: logo.map_or(NewLogo::Removed, NewLogo::Replaced),
    };
    let secret = operator.service().put_application(record).await?;
    Ok(Success(MadeSecret::new(client_id, secret.as_ref())))
}

/// An application as its operator sees it. It has secrets, but nobody knows them any more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationAnswer {
    /// The application.
    client_id: ClientId,
    /// Its name.
    name: String,
    /// Where its sign-ins may end.
    redirect_uris: Vec<String>,
    /// What it asks for.
    scopes: Vec<&'static str>,
    /// The organization that owns it.
    organization_id: Option<OrganizationId>,
    /// The person who owns it.
    owner_channel_id: Option<ChannelId>,
    /// `null` where it follows the service's.
    profile: Option<&'static str>,
    /// Whether quotas hold for it.
    quota: bool,
    /// The part of each quota that it has, in percent. `null` without quotas.
    quota_percent: Option<u8>,
    /// Its home page.
    homepage_url: Option<String>,
    /// Its terms of use.
    terms_url: Option<String>,
    /// Its privacy policy.
    privacy_url: Option<String>,
    /// Whether it has a logo.
    has_logo: bool,
    /// Since when it is registered.
    created_date: String,
    /// May stay an hour behind while the application is used.
    last_used_date: String,
    /// When it was deleted for want of use or by its owner, if it was.
    deleted_date: Option<String>,
    /// Since when it is disabled, if it is.
    disabled_date: Option<String>,
    /// Who has disabled it: `operator`, `owner`, or both.
    disabled_by: Vec<&'static str>,
    /// Warnings that it was given.
    notices: Vec<NoticeAnswer>,
}

/// A warning that an application was given for want of use.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoticeAnswer {
    /// Which warning.
    kind: String,
    /// When it was given.
    created_date: String,
}

impl From<ApplicationDetails> for ApplicationAnswer {
    fn from(ApplicationDetails { life, redirect_uris }: ApplicationDetails) -> Self {
        let notice =
            |Notice { kind, given_at }: Notice| NoticeAnswer { kind, created_date: given_at.rfc3339() };
        let application = life.application;
        let Presentation { homepage, terms, privacy, logo_version } = application.presentation;
        let disabled_by = [(life.is_disabled_by_operator, "operator"), (life.is_disabled_by_owner, "owner")];
        let url = |url: Option<HttpsUrl>| url.map(|url| url.as_str().to_owned());
        Self {
            homepage_url: url(homepage),
            terms_url: url(terms),
            privacy_url: url(privacy),
            has_logo: logo_version.is_some(),
            client_id: application.client_id,
            name: application.name,
            redirect_uris,
            scopes: application.scopes.iter().map(Scope::name).collect(),
            organization_id: application.organization.map(|organization| organization.organization_id),
            owner_channel_id: application.owner,
            profile: application.profile.map(Profile::name),
            quota: application.quota.is_limited(),
            quota_percent: match application.quota {
                QuotaShare::Unlimited => None,
                QuotaShare::Percent(percent) => Some(percent),
            },
            created_date: life.created_at.rfc3339(),
            last_used_date: life.last_used_at.rfc3339(),
            deleted_date: life.deleted_at.map(Timestamp::rfc3339),
            disabled_date: life.disabled_at.map(Timestamp::rfc3339),
            disabled_by: disabled_by.into_iter().filter(|(is, _)| *is).map(|(_, who)| who).collect(),
            notices: life.notices.into_iter().map(notice).collect(),
        }
    }
}

pub(crate) const SHOW: Summary = Summary::new(
    "showApplication",
    "All that is registered of an application but its secrets",
    "애플리케이션 조회",
)
.refuses(&[404]);

/// `GET /platform/v1/applications/{clientId}`: all registered properties except the secrets, also while the
/// application is deleted and can be restored.
pub async fn show(_: Operator, State(web): State<Web>, PathId(id): PathId) -> Answer<ApplicationAnswer> {
    let client_id = ClientId::parse("clientId", &id)?;
    Ok(Success(web.service().application_details(&client_id).await?.into()))
}

pub(crate) const RESTORE: Summary = Summary::new(
    "restoreApplication",
    "Bring back an application that was deleted for want of use",
    "애플리케이션 복구",
)
.refuses(&[404]);

/// `POST /platform/v1/applications/{clientId}/restore`: restores an application that was deleted because it
/// was unused.
pub async fn restore(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    operator.service().restore_application(&client_id).await?;
    Ok(NOTHING)
}

/// An application in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationListing {
    /// The application.
    client_id: ClientId,
    /// Its name.
    name: String,
    /// What it asks for.
    scopes: Vec<&'static str>,
    /// The organization that owns it.
    organization_id: Option<OrganizationId>,
    /// The person who owns it.
    owner_channel_id: Option<ChannelId>,
    /// Since when it is registered.
    created_date: String,
    /// May stay an hour behind while the application is used.
    last_used_date: String,
    /// When it was deleted for want of use or by its owner, if it was.
    deleted_date: Option<String>,
    /// Since when it is disabled, if it is.
    disabled_date: Option<String>,
}

impl From<ApplicationLife> for ApplicationListing {
    fn from(life: ApplicationLife) -> Self {
        let application = life.application;
        Self {
            client_id: application.client_id,
            name: application.name,
            scopes: application.scopes.iter().map(Scope::name).collect(),
            organization_id: application.organization.map(|organization| organization.organization_id),
            owner_channel_id: application.owner,
            created_date: life.created_at.rfc3339(),
            last_used_date: life.last_used_at.rfc3339(),
            deleted_date: life.deleted_at.map(Timestamp::rfc3339),
            disabled_date: life.disabled_at.map(Timestamp::rfc3339),
        }
    }
}

pub(crate) const LIST_ALL: Summary =
    Summary::new("listApplications", "Applications by their ids", "애플리케이션 목록 조회");

/// `GET /platform/v1/applications`: applications by their ids, also those that can be restored.
pub async fn list_all(
    _: Operator,
    State(web): State<Web>,
    Query(query): Query<OrganizationListQuery>,
) -> Answer<NextData<ApplicationListing>> {
    let OrganizationListQuery { organization_id, list: ListQuery { size, next } } = query;
    let page = web.service().applications(organization_id, size, next.as_deref()).await?;
    let items = page.applications.into_iter().map(ApplicationListing::from).collect();
    Ok(Success(NextData::new(items, page.next)))
}

pub(crate) const DELETE: Summary = Summary::new(
    "deleteApplication",
    "Delete an application for good, with all that hangs on it",
    "애플리케이션 삭제",
);

/// `DELETE /platform/v1/applications/{clientId}`: deletes an application and all its data for good.
pub async fn delete(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    operator.service().delete_application(&client_id).await?;
    Ok(NOTHING)
}

pub(crate) const DISABLE: Summary = Summary::new(
    "disableApplication",
    "Refuse an application's credentials and end its sessions",
    "애플리케이션 사용 중지",
)
.refuses(&[404]);

/// `PUT /platform/v1/applications/{clientId}/disabled`: refuses the application's credentials until it is
/// enabled, and ends its sessions.
pub async fn disable(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    operator.service().disable_application(&client_id).await?;
    Ok(NOTHING)
}

pub(crate) const ENABLE: Summary = Summary::new(
    "enableApplication",
    "Let an application's credentials be good again",
    "애플리케이션 사용 재개",
)
.refuses(&[404]);

/// `DELETE /platform/v1/applications/{clientId}/disabled`: accepts the application's credentials again,
/// unless its owner disabled it, too.
pub async fn enable(operator: Operator, PathId(id): PathId) -> Answer<()> {
    let client_id = ClientId::parse("clientId", &id)?;
    operator.service().enable_application(&client_id).await?;
    Ok(NOTHING)
}
