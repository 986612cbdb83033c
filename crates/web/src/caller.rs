//! The caller and its permissions. Handlers get them only from these extractors (`docs/spec/rest.md#checks`).
//!
//! Each extractor makes the checks in that order: 401, then 429, then 403. The later arguments of a handler
//! are only read if these checks pass.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use domain::application::Application;
use domain::audit::Actor;
use domain::operator_key::OperatorRole;
use domain::refusal::{Credential, CredentialFault, TokenFault};
use domain::scope::Scope;
use domain::secret::OperatorKey;
use domain::token::Caller;
use domain::usage::UsageKind;
use domain::{ApplicationSecretId, ChannelId, ClientId, Profile, Refusal};
use http::{HeaderMap, Method, header, request::Parts};
use service::credentials::ProvenApplication;
use service::drops::Publisher;
use service::quotas::Counted;
use service::{Holder, Service};

use crate::deletion::Deletion;
use crate::envelope::Failure;
use crate::failures::Failed;
use crate::quota::{self, Charged, Extra, Standard};
use crate::usage::CountedRequest;
use crate::{ClientAddress, RequestId, Web};

const CLIENT_ID: &str = "client-id";
const CLIENT_SECRET: &str = "client-secret";

/// A scope as a type, so that a handler's signature names it.
pub trait NeedsScope: Send {
    /// The scope; `None` if any user token is enough.
    const SCOPE: Option<Scope>;
}

/// The scopes that endpoints name. Those of events are named by
/// [`EventType::scope`](domain::event::EventType::scope).
pub mod scope {
    use domain::scope::Scope;

    use super::NeedsScope;

    macro_rules! scopes {
        ($($(#[$doc:meta])* $name:ident = $scope:expr;)+) => {$(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $name {}
            impl NeedsScope for $name {
                const SCOPE: Option<Scope> = $scope;
            }
        )+};
    }

    scopes! {
        /// Any user token.
        Any = None;
        /// 유저 정보 조회
        UserRead = Some(Scope::UserRead);
        /// 채널 관리자 조회
        ManagerRead = Some(Scope::ManagerRead);
        /// 채널 팔로워 조회
        FollowerRead = Some(Scope::FollowerRead);
        /// 채널 구독자 조회
        SubscriberRead = Some(Scope::SubscriberRead);
        /// 방송 스트림키 조회
        StreamKeyRead = Some(Scope::StreamKeyRead);
        /// 방송 설정 조회
        LiveSettingRead = Some(Scope::LiveSettingRead);
        /// 방송 설정 변경
        LiveSettingWrite = Some(Scope::LiveSettingWrite);
        /// 채팅 메시지 쓰기
        ChatWrite = Some(Scope::ChatWrite);
        /// 채팅 공지 쓰기
        NoticeWrite = Some(Scope::NoticeWrite);
        /// 채팅 설정 조회
        ChatSettingRead = Some(Scope::ChatSettingRead);
        /// 채팅 설정 변경
        ChatSettingWrite = Some(Scope::ChatSettingWrite);
        /// 활동제한 쓰기
        RestrictionWrite = Some(Scope::RestrictionWrite);
        /// 활동제한 조회
        RestrictionRead = Some(Scope::RestrictionRead);
    }
}

/// The holder of an access token that has scope `S`, charged to the user's quota and to `Q`.
pub struct User<S, Q = Standard> {
    /// The application and its user.
    pub caller: Caller,
    holder: Arc<Holder>,
    /// The profile of the answer.
    pub profile: Profile,
    proof: PhantomData<(S, Q)>,
}

impl<S, Q> User<S, Q> {
    /// The user, by the user's channel.
    pub fn channel_id(&self) -> &ChannelId {
        &self.caller.channel_id
    }

    /// The name of the user's channel.
    pub fn channel_name(&self) -> &str {
        &self.holder.channel_name
    }
}

impl<S: NeedsScope, Q: Extra> FromRequestParts<Web> for User<S, Q> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        let token = bearer(&parts.headers, Credential::AccessToken)?;
        let (kind, mut traced) = (S::SCOPE.map_or(UsageKind::User, UsageKind::Scope), None);
        let found = web.service().authenticate_or_trace(token, &mut traced).await;
        if let Some(client_id) = traced {
            charged(parts).count_for(CountedRequest { client_id, channel_id: None, kind, usage: None });
        }
        let holder = found?;
        let caller = &holder.caller;
        charged(parts).count_for(CountedRequest {
            client_id: caller.client_id.clone(),
            channel_id: Some(caller.channel_id.clone()),
            kind,
            usage: holder.usage.clone(),
        });
        quota::charge_user::<Q>(web, &charged(parts), caller)?;
        if let Some(scope) = S::SCOPE {
            caller.needs(scope)?;
            web.service().note_scope_use(&caller.client_id);
        }
        note_deletion(parts, web, &caller.client_id);
        let profile = web.profile(caller.profile);
        Ok(Self { caller: caller.clone(), holder, profile, proof: PhantomData })
    }
}

/// An authenticated application, charged to its quota and to `Q`.
pub struct Client<Q = Standard> {
    /// The application.
    pub application: Application,
    /// The secret that authenticated it.
    pub secret_id: ApplicationSecretId,
    /// The profile of the answer.
    pub profile: Profile,
    proof: PhantomData<Q>,
}

impl<Q: Extra> FromRequestParts<Web> for Client<Q> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        Self::counted_as(UsageKind::Client, parts, web).await
    }
}

impl<Q: Extra> Client<Q> {
    /// The application of a request that is counted as this kind.
    async fn counted_as(kind: UsageKind, parts: &Parts, web: &Web) -> Result<Self, Failure> {
        let (id, secret) = client_headers(&parts.headers)?;
        let proven = web.service().authenticate_client(id, secret).await;
        if proven.as_ref().is_err_and(|error| error.refusal() == Refusal::InvalidClient) {
            web.count_failure(Failed::ClientSecret, client_address(parts));
        }
        let ProvenApplication { application, secret_id, usage, .. } = Arc::unwrap_or_clone(proven?);
        let client_id = application.client_id.clone();
        charged(parts).count_for(CountedRequest { client_id, channel_id: None, kind, usage });
        note_deletion(parts, web, &application.client_id);
        quota::charge_client::<Q>(web, &charged(parts), &application)?;
        let profile = web.profile(application.profile);
        Ok(Self { application, secret_id, profile, proof: PhantomData })
    }
}

/// An application that may use drops: it has the scope, and its organization is verified
/// (`docs/spec/drops.md#access`).
#[derive(Debug)]
pub struct DropsClient(pub Publisher);

impl FromRequestParts<Web> for DropsClient {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        let client = Client::<Standard>::counted_as(UsageKind::Scope(Scope::Drops), parts, web).await?;
        let application = client.application;
        if !application.may_use_drops() {
            let has_scope = application.scopes.contains(Scope::Drops);
            let why = if has_scope { Refusal::OrganizationNotVerified } else { Refusal::DropsScope };
            return Err(why.into());
        }
        web.service().note_scope_use(&application.client_id);
        let organization = application.organization.ok_or(Refusal::OrganizationNotVerified)?;
        Ok(Self(Publisher {
            client_id: application.client_id,
            organization_id: organization.organization_id,
        }))
    }
}

/// The operator of the platform, with an operator key whose role allows the method.
pub struct Operator(KeyHolder);

impl Operator {
    /// The service, for calls that the audit log reports.
    pub(crate) fn service(self) -> Service {
        self.0.service()
    }

    /// The role that a call with this method needs.
    pub(crate) fn role(method: &Method) -> OperatorRole {
        if method.is_safe() { OperatorRole::Read } else { OperatorRole::Write }
    }
}

impl FromRequestParts<Web> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        let needed = Self::role(&parts.method);
        operator_with(needed, parts, web).await.map(Self)
    }
}

/// The operator, with an operator key of the role `admin`.
pub struct Administrator(KeyHolder);

impl Administrator {
    /// The service, for calls that the audit log reports.
    pub(crate) fn service(self) -> Service {
        self.0.service()
    }
}

impl FromRequestParts<Web> for Administrator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        operator_with(OperatorRole::Admin, parts, web).await.map(Self)
    }
}

/// The holder of an operator key, with the request.
struct KeyHolder {
    web: Web,
    actor: Actor,
    role: OperatorRole,
    request: Option<RequestId>,
}

impl KeyHolder {
    fn service(self) -> Service {
        let request = self.request.map(|id| id.to_string()).unwrap_or_default();
        self.web.service().acting_as(self.actor, Some(self.role), request)
    }
}

async fn operator_with(needed: OperatorRole, parts: &Parts, web: &Web) -> Result<KeyHolder, Failure> {
    let token = bearer(&parts.headers, Credential::OperatorKey)?;
    // The right key is accepted regardless of earlier failures from its address.
    match actor_of(token, web).await? {
        Some((role, actor)) if role >= needed => {
            let request = parts.extensions.get().copied();
            return Ok(KeyHolder { web: web.clone(), actor, role, request });
        }
        Some(_) => return Err(Refusal::RoleMissing(needed).into()),
        None => {}
    }
    let client = client_address(parts);
    web.count_failure(Failed::OperatorKey, client);
    let fault = match web.service().authenticate_user(token).await {
        Ok(_) => TokenFault::WrongKind(Credential::OperatorKey),
        Err(_) => TokenFault::OperatorKey,
    };
    let refusal = Refusal::InvalidToken(fault);
    Err(quota::failed(web, &charged(parts), Counted::OperatorKeys, client, refusal).into())
}

/// The role of a presented operator key, and the actor that it stands for; `None` if it is none. The
/// configured key has all roles.
async fn actor_of(token: &str, web: &Web) -> Result<Option<(OperatorRole, Actor)>, Failure> {
    let Some(presented) = OperatorKey::presented(token) else { return Ok(None) };
    let configured = &web.config().operator_keys;
    if configured.iter().any(|key| key.matches(&presented.hash())) {
        return Ok(Some((OperatorRole::Admin, Actor::ConfiguredKey)));
    }
    Ok(web.service().operator_key_actor(&presented).await?)
}

impl<S, Q> fmt::Debug for User<S, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("User").field(&self.caller.channel_id).finish()
    }
}

impl<Q> fmt::Debug for Client<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.application.client_id).finish()
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operator")
    }
}

impl fmt::Debug for Administrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Administrator")
    }
}

/// Notes the deletion date of an unused application, which each of its answers carries.
fn note_deletion(parts: &Parts, web: &Web, client_id: &ClientId) {
    if let Some(deletion) = parts.extensions.get::<Deletion>() {
        deletion.note(web, client_id);
    }
}

/// The charges of a request; `finish` adds them to every request.
pub(crate) fn charged(parts: &Parts) -> Charged {
    parts.extensions.get::<Charged>().cloned().unwrap_or_default()
}

fn client_address(parts: &Parts) -> Option<ClientAddress> {
    parts.extensions.get().copied()
}

/// The bearer token, which must be of this kind.
fn bearer(headers: &HeaderMap, want: Credential) -> Result<&str, Refusal> {
    let unauthorized = |fault: fn(Credential) -> CredentialFault| Refusal::Unauthorized(fault(want));
    let Some(text) = header_text(headers, header::AUTHORIZATION.as_str()) else {
        let other = headers.contains_key(CLIENT_ID) || headers.contains_key(CLIENT_SECRET);
        let fault = if other { CredentialFault::WrongKind } else { CredentialFault::Missing };
        return Err(unauthorized(fault));
    };
    let parts = text.split_once(' ').map(|(scheme, token)| (scheme, token.trim()));
    match parts {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() => Ok(token),
        _ => Err(unauthorized(CredentialFault::Malformed)),
    }
}

/// Client id and secret.
fn client_headers(headers: &HeaderMap) -> Result<(&str, &str), Refusal> {
    let (id, secret) = (header_text(headers, CLIENT_ID), header_text(headers, CLIENT_SECRET));
    let fault = match (id, secret) {
        (Some(id), Some(secret)) => return Ok((id, secret)),
        (None, None) if headers.contains_key(header::AUTHORIZATION) => CredentialFault::WrongKind,
        (None, None) => CredentialFault::Missing,
        _ => CredentialFault::Malformed,
    };
    Err(Refusal::Unauthorized(fault(Credential::Client)))
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}
