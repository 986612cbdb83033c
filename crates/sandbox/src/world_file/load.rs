//! Writes a world file into an empty service, through the operations of the platform API.

use std::collections::BTreeMap;

use domain::application::RedirectUri;
use domain::drops::{FulfillmentState, Period};
use domain::secret::{AccessToken, ClientSecret, RefreshToken, WebhookSecret};
use domain::{ChannelId, ClientId, OrganizationId, Refusal, Rule};
use service::drops::Publisher;
use service::sign_in::SignInRequest;
use service::{Error, SandboxClock, Service};

use super::convert::SignIn;
use super::mistake::{Converted, WorldFileError, listed};
use super::model::{ApplicationItem, TokenPair, WebhookItem, WorldFile};

/// The state of a sign-in. No page checks it.
const STATE: &str = "sandbox";

impl WorldFile {
    /// Whether the service has the world already. Applications are written last, so an existing application
    /// shows that all parts exist.
    ///
    /// # Errors
    /// The service failed.
    pub async fn is_in(&self, service: &Service) -> Result<bool, Error> {
        if let Some(last) = self.applications.last() {
            return Ok(service.application(&ClientId::stored(last.client_id.clone())).await?.is_some());
        }
        match self.people.last() {
            Some(last) => {
                Ok(service.channel_details(&ChannelId::stored(last.channel_id.clone())).await.is_ok())
            }
            None => Ok(true),
        }
    }

    /// Writes everything that lasts. Every step can be repeated, so a crash meanwhile does no harm. Then
    /// follows [`begin`](Self::begin). The clock, which should stand still, moves by a millisecond for each
    /// person, because people are listed by the time of their creation.
    ///
    /// # Errors
    /// The first entry that the service refuses.
    pub async fn load(&self, service: &Service, clock: &SandboxClock) -> Result<(), WorldFileError> {
        for (path, entry) in listed("categories", &self.categories) {
            of(&path, service.put_category(entry.convert(&path)?).await)?;
        }
        self.load_people(service, clock).await?;
        self.load_relations(service).await?;
        self.load_chats(service).await?;
        for (path, entry) in listed("organizations", &self.organizations) {
            let organization = entry.convert(&path)?;
            let organization_id = organization.organization_id.clone();
            of(&path, service.put_organization(organization).await)?;
            for (path, member) in listed(&format!("{path}.members"), &entry.members) {
                let (channel, role, since) = member.convert(&path)?;
                let put = service.put_organization_member(&organization_id, &channel, role, since);
                of(&path, put.await)?;
            }
        }
        self.load_drops(service).await
    }

    /// Writes campaigns and claims. Claims of the file need no watched minutes, and their campaign may have
    /// ended.
    async fn load_drops(&self, service: &Service) -> Result<(), WorldFileError> {
        for (path, entry) in listed("campaigns", &self.campaigns) {
            let mut open = entry.convert(&path)?;
            open.period = Period::default();
            open.rewards.iter_mut().for_each(|reward| reward.watch_minutes = 0);
            of(&path, service.put_campaign(open).await)?;
        }
        for (path, entry) in listed("claims", &self.claims) {
            let claim = match service.claim_reward(entry.convert(&path)?, None).await {
                Err(error) if is_repeated_claim(&error) => continue,
                outcome => of(&path, outcome)?,
            };
            let campaign = self.campaigns.iter().find(|one| one.campaign_id == entry.campaign_id);
            if let Some(campaign) = campaign.filter(|_| entry.fulfilled) {
                let publisher = Publisher {
                    client_id: ClientId::stored(STATE.to_owned()),
                    organization_id: OrganizationId::stored(campaign.organization_id.clone()),
                };
                let (ids, state) = (vec![claim.claim_id.to_string()], FulfillmentState::Fulfilled);
                of(&path, service.update_claims(&publisher, ids, state).await)?;
            }
            if let Some((claimed_at, updated_at)) = entry.times(&path)? {
                of(&path, service.set_claim_times(&claim.claim_id, claimed_at, updated_at).await)?;
            }
        }
        for (path, entry) in listed("campaigns", &self.campaigns) {
            of(&path, service.put_campaign(entry.convert(&path)?).await)?;
        }
        for (path, entry) in listed("watched", &self.watched) {
            let (campaign, viewer, minutes) = entry.convert(&path)?;
            of(&path, service.write_watched_row(&campaign, &viewer, minutes).await)?;
        }
        Ok(())
    }

    /// Writes what begins now: lives, applications and the tokens of the file. `catch_address` is that of the
    /// page that catches redirects, if there is one; `secrets` are the client secrets by client id.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub async fn begin(
        &self,
        service: &Service,
        catch_address: Option<&RedirectUri>,
        secrets: &BTreeMap<String, String>,
    ) -> Result<(), WorldFileError> {
        self.load_lives(service).await?;
        for (path, entry) in listed("applications", &self.applications) {
            entry.load(&path, service, catch_address).await?;
        }
        self.ensure_secrets(service, secrets).await?;
        for (path, pair) in listed("tokens", &self.tokens) {
            of(&path, pair.load(service).await)?;
        }
        Ok(())
    }

    /// Gives each application its secret, unless it has it.
    ///
    /// # Errors
    /// The service failed.
    pub async fn ensure_secrets(
        &self,
        service: &Service,
        secrets: &BTreeMap<String, String>,
    ) -> Result<(), WorldFileError> {
        for (path, entry) in listed("applications", &self.applications) {
            let client_id = ClientId::stored(entry.client_id.clone());
            let secret = secrets.get(&entry.client_id).and_then(|secret| ClientSecret::presented(secret));
            if let Some(secret) = secret
                && service.application(&client_id).await.is_ok_and(|found| found.is_some())
            {
                of(&path, service.ensure_secret(&client_id, &secret).await)?;
            }
        }
        Ok(())
    }

    /// Writes the lives. Those with a number come first, so that the others get further numbers.
    async fn load_lives(&self, service: &Service) -> Result<(), WorldFileError> {
        for numbered in [true, false] {
            for (path, entry) in listed("people", &self.people) {
                let parts = entry.convert(&path)?;
                if let Some((report, start)) = parts.live
                    && start.live_id.is_some() == numbered
                {
                    let put = service.put_live_since(&parts.record.channel_id, report, start).await;
                    of(&format!("{path}.live"), put)?;
                }
            }
        }
        Ok(())
    }

    /// Writes restrictions and messages.
    async fn load_chats(&self, service: &Service) -> Result<(), WorldFileError> {
        for (path, entry) in listed("restrictions", &self.restrictions) {
            let (channel, row) = entry.convert(&path, service.clock().now())?;
            of(&path, service.write_restriction_row(&channel, row).await)?;
        }
        let messages = listed("messages", &self.messages).map(|(path, entry)| entry.convert(&path));
        of("messages", service.write_message_rows(messages.collect::<Result<_, _>>()?).await)
    }

    async fn load_people(&self, service: &Service, clock: &SandboxClock) -> Result<(), WorldFileError> {
        for (path, entry) in listed("people", &self.people) {
            let parts = entry.convert(&path)?;
            let channel = parts.record.channel_id.clone();
            let put = match parts.sign_in {
                SignIn::Password(credentials) => service.put_channel(parts.record, Some(credentials)).await,
                SignIn::Hash { login, password_hash, email } => {
                    let email = email.as_deref();
                    service.put_channel_with_hash(parts.record, login, password_hash, email).await
                }
                SignIn::Never => service.put_channel(parts.record, None).await,
            };
            of(&path, put)?;
            if let Some(email) = entry.email.as_ref().filter(|_| entry.email_proven) {
                of(&path, service.write_proven_email(&channel, email).await)?;
            }
            if let Some(role) = parts.role {
                of(&path, service.put_operator_role(&channel, role).await)?;
            }
            clock.advance_to(clock.now().plus_ms(1));
            if let Some(setting) = parts.setting {
                let place = format!("{path}.broadcastSetting");
                of(&place, service.change_broadcast_setting(&channel, setting).await)?;
            }
            if let Some(chat) = parts.chat {
                let place = format!("{path}.chatSettings");
                of(&place, service.change_chat_settings(&channel, chat).await)?;
            }
        }
        Ok(())
    }

    async fn load_relations(&self, service: &Service) -> Result<(), WorldFileError> {
        for (path, entry) in listed("follows", &self.follows) {
            let (channel, follower, since) = entry.convert(&path)?;
            of(&path, service.follow(channel, follower, since).await)?;
        }
        for (path, entry) in listed("subscriptions", &self.subscriptions) {
            let (channel, paid) = entry.convert(&path)?;
            of(&path, service.subscribe_paid(&channel, paid, None).await)?;
        }
        for (path, entry) in listed("managers", &self.managers) {
            let (channel, manager, role, since) = entry.convert(&path)?;
            let since = since.unwrap_or(service.clock().now());
            of(&path, service.put_manager_since(channel, manager, role, since).await)?;
        }
        Ok(())
    }
}

impl ApplicationItem {
    async fn load(
        &self,
        path: &str,
        service: &Service,
        catch_address: Option<&RedirectUri>,
    ) -> Result<(), WorldFileError> {
        let mut record = self.convert(path)?;
        record.redirect_uris.extend(catch_address.filter(|_| self.catch_redirects).cloned());
        let client_id = record.client_id.clone();
        of(path, service.put_application(record).await)?;
        if let Some(share) = self.quota_share(path)? {
            of(path, service.set_quota_share(&client_id, share).await)?;
        }
        match &self.webhook {
            Some(webhook) => {
                let path = format!("{path}.webhook");
                of(&path, load_webhook(service, &client_id, webhook).await)?;
                for (index, message) in webhook.messages.iter().enumerate() {
                    let path = format!("{path}.messages[{index}]");
                    of(&path, service.write_delivery_row(&client_id, message.convert(&path)?).await)?;
                }
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Makes a webhook whose only secret is that of the file, if the file has one.
async fn load_webhook(service: &Service, client_id: &ClientId, entry: &WebhookItem) -> Result<(), Error> {
    service.put_webhook(client_id, entry.url.as_deref(), Some(entry.enabled)).await?;
    let Some(secret) = &entry.secret else { return Ok(()) };
    let made = service.webhook_secrets(client_id).await?;
    let given = WebhookSecret::given(secret)?;
    let (added, _) = service.add_webhook_secret(client_id, Some(given), None).await?;
    service.activate_webhook_secret(client_id, &added.secret_id).await?;
    for secret in made {
        service.delete_webhook_secret(client_id, &secret.secret_id).await?;
    }
    Ok(())
}

impl TokenPair {
    /// Signs the person in without the pages, and issues the tokens of the file.
    async fn load(&self, service: &Service) -> Result<(), Error> {
        const GONE: Error = Error::Internal("the application of a token is gone");
        let client_id = ClientId::stored(self.client_id.clone());
        let application = service.application(&client_id).await?.ok_or(GONE)?;
        let redirect_uri =
            service.application_details(&client_id).await?.redirect_uris.into_iter().next().ok_or(GONE)?;
        let request = SignInRequest { application, redirect_uri, state: STATE.to_owned() };
        let code = service.consent(&request, &ChannelId::stored(self.channel_id.clone())).await?;
        let tokens =
            AccessToken::presented(&self.access_token).zip(RefreshToken::presented(&self.refresh_token));
        let (access, refresh) = tokens.ok_or(GONE)?;
        service.exchange_code_for(&request.application, code.expose(), STATE, access, refresh).await?;
        Ok(())
    }
}

/// The outcome of the entry at `path`.
fn of<T>(path: &str, outcome: Result<T, Error>) -> Converted<T> {
    outcome.map_err(|error| WorldFileError::refused(path, &error))
}

/// An interrupted start has already claimed the reward.
fn is_repeated_claim(error: &Error) -> bool {
    matches!(error, Error::Refused(Refusal::Invalid(invalid)) if matches!(invalid.rule, Rule::Claimed | Rule::Taken))
}
