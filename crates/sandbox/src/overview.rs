//! What a sandbox holds: people, applications, lives, sessions, campaigns and webhooks, in one answer.

use std::collections::BTreeMap;

use domain::delivery::DeliveryState;
use domain::secret::ClientSecret;
use domain::session::Subscription;
use domain::{ClientId, Refusal, Scope, Timestamp};
use form_urlencoded::byte_serialize;
use schemars::JsonSchema;
use serde::Serialize;
use service::deliveries::DeliveryQuery;
use service::{Error, Service, SessionFilter};

use crate::catch_address::for_browser;
use crate::sandbox::{Parts, Sandbox};
use crate::time_text::{optional_rfc3339, rfc3339};

/// Maximum number of people, and of applications.
const ENTRIES_MAX: i64 = 100;
/// Maximum number of applications.
const APPLICATIONS_MAX: usize = 100;
/// Maximum number of connected sessions, of lives, and of campaigns.
const SESSIONS_MAX: i64 = 100;
/// Maximum number of ended sessions.
const ENDED_MAX: i64 = 10;
/// Maximum number of messages of a webhook.
const MESSAGES_MAX: i64 = 10;
/// The state of the sign-in links.
const STATE: &str = "console";

/// What a sandbox holds. Each list has the first 100 entries.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Overview {
    /// The base URL for clients.
    pub base_url: String,
    /// The mark of the latest record.
    pub mark: u64,
    /// Those who can sign in.
    pub people: Vec<PersonEntry>,
    /// The applications, oldest first.
    pub applications: Vec<ApplicationEntry>,
    /// The channels on air, most viewers first.
    pub lives: Vec<LiveEntry>,
    /// The connected sessions, newest first, and the last ended ones.
    pub sessions: Vec<SessionEntry>,
    /// The campaigns of drops.
    pub campaigns: Vec<CampaignEntry>,
    /// The webhooks with their latest messages.
    pub webhooks: Vec<WebhookEntry>,
}

/// A person who can sign in.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PersonEntry {
    pub channel_id: String,
    pub channel_name: String,
    pub login: String,
}

/// An application. A secret is known if the sandbox has made it at its start.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplicationEntry {
    pub client_id: String,
    pub name: String,
    pub organization: Option<String>,
    pub client_secret: Option<String>,
    pub redirect_uris: Vec<String>,
    pub scopes: Vec<&'static str>,
    /// The address of a sign-in. Its redirect address is the page of the sandbox, if that is registered.
    pub sign_in_url: Option<String>,
    #[serde(serialize_with = "optional_rfc3339")]
    #[schemars(with = "Option<String>")]
    pub disabled_at: Option<Timestamp>,
    #[serde(serialize_with = "optional_rfc3339")]
    #[schemars(with = "Option<String>")]
    pub deleted_at: Option<Timestamp>,
}

/// A channel on air.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LiveEntry {
    pub channel_id: String,
    pub live_title: String,
    pub concurrent_user_count: i64,
    #[serde(serialize_with = "rfc3339")]
    #[schemars(with = "String")]
    pub opened_at: Timestamp,
}

/// A session of a socket.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionEntry {
    pub session_key: String,
    pub client_id: String,
    /// The user; not given for a session of the application.
    pub channel_id: Option<String>,
    #[serde(serialize_with = "rfc3339")]
    #[schemars(with = "String")]
    pub connected_at: Timestamp,
    #[serde(serialize_with = "optional_rfc3339")]
    #[schemars(with = "Option<String>")]
    pub disconnected_at: Option<Timestamp>,
    pub close_reason: Option<String>,
    pub subscribed_events: Vec<Subscription>,
}

/// A campaign of drops.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CampaignEntry {
    pub campaign_id: String,
    pub name: String,
}

/// The webhook of an application.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookEntry {
    pub client_id: String,
    /// The address; not given if a listener fetches the messages.
    pub url: Option<String>,
    /// Why messages are on hold.
    pub disabled_reason: Option<&'static str>,
    /// The latest messages, newest first.
    pub messages: Vec<MessageEntry>,
}

/// A message to a webhook.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageEntry {
    pub message_id: String,
    /// The claim that it reports; left out for a test message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<String>,
    pub state: &'static str,
    pub attempts: i64,
    /// When the next attempt is due.
    #[serde(serialize_with = "optional_rfc3339")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
    #[serde(serialize_with = "rfc3339")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// What came of the last attempt: a status or a failure.
    pub last_result: Option<String>,
}

impl Overview {
    /// Collects what the sandbox holds now.
    pub async fn of(sandbox: &Sandbox, parts: &Parts) -> Result<Self, Error> {
        let Parts { service, base_url, .. } = parts;
        let mark = sandbox.log().mark();
        let applications = applications(service, base_url, &sandbox.client_secrets()).await?;
        let people = service.people(ENTRIES_MAX).await?.into_iter().map(|person| PersonEntry {
            channel_id: person.channel_id.to_string(),
            channel_name: person.channel_name,
            login: person.login,
        });
        Ok(Self {
            base_url: base_url.clone(),
            mark,
            people: people.collect(),
            lives: lives(service).await?,
            sessions: sessions(service).await?,
            campaigns: campaigns(service).await?,
            webhooks: webhooks(service, &applications).await?,
            applications,
        })
    }
}

async fn applications(
    service: &Service,
    base_url: &str,
    secrets: &BTreeMap<String, ClientSecret>,
) -> Result<Vec<ApplicationEntry>, Error> {
    let mut entries = Vec::new();
    for life in service.applications_by_age().await?.into_iter().take(APPLICATIONS_MAX) {
        let client_id = &life.application.client_id;
        let redirect_uris = match service.application_details(client_id).await {
            Ok(details) => details.redirect_uris,
            Err(error) => or_absent(error).map(|()| Vec::new())?,
        };
        entries.push(ApplicationEntry {
            client_id: client_id.to_string(),
            client_secret: secrets.get(client_id.as_str()).map(|secret| secret.expose().to_owned()),
            sign_in_url: for_browser(&redirect_uris).map(|uri| sign_in_url(base_url, client_id, uri)),
            name: life.application.name,
            organization: life.application.organization.map(|organization| organization.name),
            redirect_uris,
            scopes: life.application.scopes.iter().map(Scope::name).collect(),
            disabled_at: life.disabled_at,
            deleted_at: life.deleted_at,
        });
    }
    Ok(entries)
}

/// The address of the sign-in of an application.
pub(crate) fn sign_in_url(base_url: &str, client_id: &ClientId, redirect_uri: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let (client_id, redirect_uri) = (encoded(client_id.as_str()), encoded(redirect_uri));
    format!("{base_url}/account-interlock?clientId={client_id}&redirectUri={redirect_uri}&state={STATE}")
}

async fn lives(service: &Service) -> Result<Vec<LiveEntry>, Error> {
    // The cursor of a page is bound to the caller. There is no further page here.
    let caller = ClientId::stored(STATE.to_owned());
    let page = service.lives(&caller, SESSIONS_MAX, None).await?;
    let entry = |live: service::lives::LiveListing| LiveEntry {
        channel_id: live.channel_id.to_string(),
        live_title: live.title,
        concurrent_user_count: live.concurrent_user_count,
        opened_at: live.opened_at,
    };
    Ok(page.lives.into_iter().map(entry).collect())
}

async fn sessions(service: &Service) -> Result<Vec<SessionEntry>, Error> {
    let mut entries = Vec::new();
    for (connected, limit) in [(true, SESSIONS_MAX), (false, ENDED_MAX)] {
        let filter = SessionFilter { connected: Some(connected), ..SessionFilter::default() };
        let page = service.list_sessions(filter, limit, None).await?;
        entries.extend(page.sessions.into_iter().map(|session| SessionEntry {
            session_key: session.session_key.to_string(),
            client_id: session.owner.client_id().to_string(),
            channel_id: session.owner.channel_id().map(ToString::to_string),
            connected_at: session.connected_at,
            disconnected_at: session.disconnected_at,
            close_reason: session.close_reason,
            subscribed_events: session.subscribed_events,
        }));
    }
    Ok(entries)
}

async fn campaigns(service: &Service) -> Result<Vec<CampaignEntry>, Error> {
    let page = service.campaigns(None, SESSIONS_MAX, None).await?;
    let entry = |campaign: service::organizations::CampaignListing| CampaignEntry {
        campaign_id: campaign.campaign_id.to_string(),
        name: campaign.name,
    };
    Ok(page.items.into_iter().map(entry).collect())
}

async fn webhooks(service: &Service, applications: &[ApplicationEntry]) -> Result<Vec<WebhookEntry>, Error> {
    let mut entries = Vec::new();
    for application in applications {
        let client_id = ClientId::stored(application.client_id.clone());
        let webhook = match service.webhook_details(&client_id).await {
            Ok(details) => details.webhook,
            Err(error) => {
                or_absent(error)?;
                continue;
            }
        };
        entries.push(WebhookEntry {
            client_id: application.client_id.clone(),
            url: webhook.url,
            disabled_reason: webhook.disabled.map(|disabled| disabled.reason.name()),
            messages: messages(service, &client_id).await?,
        });
    }
    Ok(entries)
}

async fn messages(service: &Service, client_id: &ClientId) -> Result<Vec<MessageEntry>, Error> {
    let page = match service.webhook_deliveries(client_id, DeliveryQuery::default(), MESSAGES_MAX, None).await
    {
        Ok(page) => page,
        Err(error) => return or_absent(error).map(|()| Vec::new()),
    };
    let mut entries = Vec::new();
    for message in page.deliveries {
        let attempts = match service.webhook_delivery(client_id, &message.message_id).await {
            Ok(details) => details.attempts,
            Err(error) => or_absent(error).map(|()| Vec::new())?,
        };
        let result = attempts.first().and_then(|attempt| {
            let status = attempt.status.map(|status| status.to_string());
            status.or_else(|| attempt.failure.map(|failure| failure.name().to_owned()))
        });
        entries.push(MessageEntry {
            message_id: message.message_id.to_string(),
            claim_id: message.claim_id.map(|claim| claim.to_string()),
            state: message.state.name(),
            attempts: message.attempts,
            due_at: (message.state == DeliveryState::Waiting).then_some(message.due_at),
            created_at: message.created_at,
            last_result: result,
        });
    }
    Ok(entries)
}

/// Passes an error on, unless what was read has been deleted meanwhile.
fn or_absent(error: Error) -> Result<(), Error> {
    match error.refusal() {
        Refusal::NotFound(_) => Ok(()),
        _ => Err(error),
    }
}
