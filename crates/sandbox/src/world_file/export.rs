//! Reads the world of a running service as a world file.

use std::collections::{BTreeMap, HashSet};

use domain::channel::SubscriberSort;
use domain::chat_settings::ChatSettings;
use domain::drops::FulfillmentState;
use domain::quota::QuotaShare;
use domain::{CampaignId, ChannelId, Refusal, Scope, Timestamp};
use service::channel_admin::{ChannelDetails, ChannelFilter};
use service::channels::StoredPassword;
use service::deliveries::DeliveryQuery;
use service::drops::{ClaimFilter, ClaimQuery, Publisher};
use service::lives::LiveListing;
use service::{Error, Page, Service};

use crate::catch_address::is_catch;

use super::history::{DeliveryItem, MessageItem, RestrictionItem, WatchedItem};
use super::model::{
    ApplicationItem, BroadcastItem, CampaignItem, CategoryItem, ChatItem, ClaimItem, FollowItem, LiveItem,
    ManagerItem, MemberItem, OrganizationItem, PASSWORD, PersonItem, RewardItem, SubscriptionItem, TokenPair,
    WebhookItem, WorldFile,
};

/// Number of rows that one query reads.
const PAGE_ROWS: i64 = 100;
/// Maximum number of people whose order is kept.
const PEOPLE_MAX: i64 = 100_000;

/// The secrets of a world that its service has only as hashes.
#[derive(Clone, Default)]
pub struct KnownSecrets {
    /// Passwords by channel id.
    pub passwords: BTreeMap<String, String>,
    /// Client secrets by client id.
    pub client_secrets: BTreeMap<String, String>,
    /// Pairs of tokens.
    pub tokens: Vec<TokenPair>,
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KnownSecrets")
    }
}

impl WorldFile {
    /// The world of a service. What has no way into a file is in `docs/sandbox/worlds.md`.
    ///
    /// # Errors
    /// The service failed.
    pub async fn of(service: &Service, known: &KnownSecrets) -> Result<Self, Error> {
        let mut file = Self { further_tokens: false, ..Self::default() };
        file.read_categories(service).await?;
        file.read_people(service, known).await?;
        file.read_messages(service).await?;
        file.read_drops(service).await?;
        file.read_applications(service, known).await?;
        let (people, applications) = (file.people_by_id(), &file.applications);
        let stands = |pair: &&TokenPair| {
            let application = applications.iter().find(|entry| entry.client_id == pair.client_id);
            people.contains_key(pair.channel_id.as_str())
                && application.is_some_and(|entry| entry.catch_redirects || !entry.redirect_uris.is_empty())
        };
        let mut tokens = Vec::new();
        for pair in known.tokens.iter().filter(stands) {
            // A token that has ended would live again.
            if service.authenticate_user(&pair.access_token).await.is_ok() {
                tokens.push(pair.clone());
            }
        }
        file.tokens = tokens;
        Ok(file)
    }

    async fn read_categories(&mut self, service: &Service) -> Result<(), Error> {
        let mut all = service.categories().await?;
        all.sort_by(|a, b| a.category_id.cmp(&b.category_id));
        self.categories = all
            .iter()
            .map(|category| CategoryItem {
                category_id: category.category_id.to_string(),
                category_type: category.category_type.name().to_owned(),
                category_value: category.category_value.clone(),
                poster_image_url: category.poster_image_url.clone(),
            })
            .collect();
        Ok(())
    }

    async fn read_people(&mut self, service: &Service, known: &KnownSecrets) -> Result<(), Error> {
        let order: BTreeMap<ChannelId, usize> =
            (service.people(PEOPLE_MAX).await?.into_iter().map(|person| person.channel_id))
                .zip(0..)
                .collect();
        let mut channels = all_channels(service).await?;
        channels.sort_by_key(|channel| order.get(&channel.channel_id).copied().unwrap_or(usize::MAX));
        let lives = all_lives(service).await?;
        for channel in channels {
            let id = channel.channel_id.clone();
            self.people.push(person(service, channel, lives.get(&id), known).await?);
            self.read_relations(service, id).await?;
        }
        let Self { people, restrictions, .. } = self;
        // A deleted person may still be restricted for a minute.
        let ids: HashSet<&str> = people.iter().map(|person| person.channel_id.as_str()).collect();
        restrictions.retain(|entry| ids.contains(entry.restricted_channel_id.as_str()));
        Ok(())
    }

    /// Reads the messages of people who exist.
    async fn read_messages(&mut self, service: &Service) -> Result<(), Error> {
        let ids: HashSet<&str> = self.people.iter().map(|person| person.channel_id.as_str()).collect();
        let mut after = None;
        loop {
            let rows = service.message_rows(after.as_ref()).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.message_id.clone());
            let of_people = rows
                .into_iter()
                .filter(|row| ids.contains(row.channel_id.as_str()) && ids.contains(row.sender.as_str()));
            self.messages.extend(of_people.filter_map(MessageItem::of));
        }
    }

    async fn read_watched(&mut self, service: &Service) -> Result<(), Error> {
        let ids: HashSet<&str> = self.people.iter().map(|person| person.channel_id.as_str()).collect();
        for campaign in &self.campaigns {
            let campaign_id = CampaignId::stored(campaign.campaign_id.clone());
            let mut after = None;
            loop {
                let rows = service.watched_rows(&campaign_id, after.as_ref()).await?;
                let Some((last, _)) = rows.last() else { break };
                after = Some(last.clone());
                let of_people = rows.into_iter().filter(|(viewer, _)| ids.contains(viewer.as_str()));
                self.watched.extend(of_people.map(|(viewer, minutes)| WatchedItem {
                    campaign_id: campaign_id.to_string(),
                    channel_id: viewer.to_string(),
                    minutes,
                }));
            }
        }
        Ok(())
    }

    async fn read_relations(&mut self, service: &Service, id: ChannelId) -> Result<(), Error> {
        let channel_id = id.to_string();
        for page in 0.. {
            let page = Page { size: PAGE_ROWS, page };
            let found = service.followers(id.clone(), page, false).await?.items;
            let is_last = (found.len() as i64) < PAGE_ROWS;
            self.follows.extend(found.into_iter().map(|follower| FollowItem {
                channel_id: channel_id.clone(),
                follower_channel_id: follower.channel_id.to_string(),
                created_date: Some(follower.created_at.rfc3339()),
            }));
            if is_last {
                break;
            }
        }
        for page in 0.. {
            let page = Page { size: PAGE_ROWS, page };
            let found = service.subscribers(id.clone(), SubscriberSort::Recent, page, false).await?.items;
            let is_last = (found.len() as i64) < PAGE_ROWS;
            self.subscriptions.extend(found.into_iter().map(|subscriber| SubscriptionItem {
                channel_id: channel_id.clone(),
                subscriber_channel_id: subscriber.channel_id.to_string(),
                tier_no: subscriber.tier_no,
                tier_name: Some(subscriber.tier_name),
                month: subscriber.month,
                created_date: Some(subscriber.created_at.rfc3339()),
            }));
            if is_last {
                break;
            }
        }
        // The first one is the owner.
        self.managers.extend(service.managers(id.clone()).await?.into_iter().skip(1).map(|manager| {
            ManagerItem {
                channel_id: channel_id.clone(),
                manager_channel_id: manager.channel_id.to_string(),
                user_role: manager.role.name().to_owned(),
                created_date: Some(manager.created_at.rfc3339()),
            }
        }));
        let restrictions = service.restriction_rows(&id).await?;
        self.restrictions.extend(restrictions.iter().map(|row| RestrictionItem::of(&id, row)));
        Ok(())
    }

    async fn read_applications(&mut self, service: &Service, known: &KnownSecrets) -> Result<(), Error> {
        let mut next = None;
        loop {
            let page = service.applications(None, PAGE_ROWS, next.as_deref()).await?;
            for life in page.applications.into_iter().filter(|life| life.deleted_at.is_none()) {
                let client_id = &life.application.client_id;
                let redirect_uris = service.application_details(client_id).await?.redirect_uris;
                // The address of the page differs between sandboxes.
                let (pages, redirect_uris): (Vec<_>, Vec<_>) =
                    redirect_uris.into_iter().partition(|uri| is_catch(uri));
                let webhook = webhook(service, client_id).await?;
                let scopes: Vec<Scope> = life.application.scopes.iter().collect();
                let profile = life.application.profile.map(|profile| profile.name().to_owned());
                let organization = life.application.organization.as_ref();
                self.applications.push(ApplicationItem {
                    client_secret: known.client_secrets.get(client_id.as_str()).cloned(),
                    client_id: client_id.to_string(),
                    name: Some(life.application.name.clone()),
                    redirect_uris,
                    catch_redirects: !pages.is_empty(),
                    scopes: Some(scopes.iter().map(|scope| scope.name().to_owned()).collect()),
                    organization_id: organization.map(|owner| owner.organization_id.to_string()),
                    owner_channel_id: life.application.owner.as_ref().map(ToString::to_string),
                    profile,
                    quota: life.application.quota.is_limited(),
                    quota_percent: match life.application.quota {
                        QuotaShare::Percent(percent) if life.application.quota.is_lowered() => {
                            Some(percent.into())
                        }
                        _ => None,
                    },
                    webhook,
                });
            }
            next = page.next;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    async fn read_drops(&mut self, service: &Service) -> Result<(), Error> {
        let mut next = None;
        loop {
            let page = service.organizations(PAGE_ROWS, next.as_deref()).await?;
            for details in page.items {
                let organization = details.organization;
                self.organizations.push(OrganizationItem {
                    members: members(service, &organization.organization_id).await?,
                    organization_id: organization.organization_id.to_string(),
                    organization_name: organization.name,
                    verified: organization.verified,
                });
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        loop {
            let page = service.campaigns(None, PAGE_ROWS, next.as_deref()).await?;
            for listing in page.items {
                let campaign = service.campaign(listing.campaign_id).await?;
                self.campaigns.push(campaign_entry(campaign));
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        for organization in self.organizations.clone() {
            let mut claims = claims(service, &organization.organization_id).await?;
            claims.retain(|claim| {
                let campaign = self.campaigns.iter().find(|entry| entry.campaign_id == claim.campaign_id);
                campaign.is_some_and(|entry| entry.rewards.iter().any(|one| one.reward_id == claim.reward_id))
            });
            self.claims.append(&mut claims);
        }
        self.read_watched(service).await
    }
}

async fn all_channels(service: &Service) -> Result<Vec<ChannelDetails>, Error> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = service.list_channels(ChannelFilter::All, PAGE_ROWS, next.as_deref()).await?;
        all.extend(page.channels);
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
}

async fn all_lives(service: &Service) -> Result<BTreeMap<ChannelId, LiveListing>, Error> {
    // The walk belongs to no application.
    let reader = domain::ClientId::stored("export".to_owned());
    let (mut all, mut next) = (BTreeMap::new(), None);
    loop {
        let page = service.lives(&reader, PAGE_ROWS, next.as_deref()).await?;
        all.extend(page.lives.into_iter().map(|live| (live.channel_id.clone(), live)));
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
}

async fn person(
    service: &Service,
    channel: ChannelDetails,
    live: Option<&LiveListing>,
    known: &KnownSecrets,
) -> Result<PersonItem, Error> {
    let id = &channel.channel_id;
    let setting = service.broadcast_setting(id).await?;
    let title = Some(setting.default_live_title).filter(|title| !title.is_empty());
    let category_id = setting.category.map(|category| category.category_id.to_string());
    let is_set = title.is_some() || category_id.is_some() || !setting.tags.is_empty();
    let setting = BroadcastItem { default_live_title: title, category_id, tags: setting.tags };
    let chat = service.chat_settings(id).await?;
    let mut candidates = vec![PASSWORD.to_owned()];
    candidates.extend(known.passwords.get(id.as_str()).cloned());
    let (stored, email) = service.stored_password(id, candidates).await?;
    let (can_sign_in, password, password_hash) = match stored {
        StoredPassword::None => (false, None, None),
        StoredPassword::Known(password) => (true, Some(password).filter(|word| word != PASSWORD), None),
        StoredPassword::Hash(hash) => (true, None, Some(hash)),
    };
    Ok(PersonItem {
        password,
        password_hash,
        email_proven: email.as_ref().is_some_and(|email| email.is_proven),
        email: email.map(|email| email.email),
        can_sign_in,
        operator_role: channel.operator_role.map(|role| role.name().to_owned()),
        login: channel.login.filter(|login| login != id.as_str()),
        channel_id: id.to_string(),
        channel_name: channel.name,
        channel_image_url: channel.image_url,
        verified_mark: channel.verified_mark,
        real_name_verified: channel.real_name_verified,
        broadcast_setting: is_set.then_some(setting),
        chat_settings: (chat != ChatSettings::default()).then(|| chat_entry(&chat)),
        live: live.map(live_entry),
    })
}

fn chat_entry(settings: &ChatSettings) -> ChatItem {
    ChatItem {
        chat_available_condition: Some(settings.condition.name().to_owned()),
        chat_available_group: Some(settings.group.name().to_owned()),
        min_follower_minute: Some(settings.min_follower_minute),
        allow_subscriber_in_follower_mode: Some(settings.allow_subscriber_in_follower_mode),
        chat_slow_mode_sec: Some(settings.slow_mode_sec),
        chat_emoji_mode: Some(settings.emoji_mode),
    }
}

fn live_entry(live: &LiveListing) -> LiveItem {
    let category_id = live.category.as_ref().map(|category| category.category_id.to_string());
    // An empty text, because a missing one is that of the broadcast setting.
    let category_id = category_id.unwrap_or_default();
    LiveItem {
        live_title: Some(live.title.clone()),
        live_thumbnail_image_url: live.thumbnail_image_url.clone(),
        concurrent_user_count: live.concurrent_user_count,
        adult: live.adult,
        category_id: Some(category_id),
        tags: Some(live.tags.clone()),
        open_date: Some(live.opened_at.rfc3339()),
        live_id: Some(live.live_id),
    }
}

fn campaign_entry(campaign: domain::drops::Campaign) -> CampaignItem {
    let ids = |ids: Vec<ChannelId>| ids.iter().map(ChannelId::to_string).collect();
    CampaignItem {
        campaign_id: campaign.campaign_id.to_string(),
        campaign_name: campaign.name,
        organization_id: campaign.organization_id.to_string(),
        category_id: campaign.category_id,
        start_date: campaign.period.start.map(Timestamp::rfc3339),
        end_date: campaign.period.end.map(Timestamp::rfc3339),
        channel_ids: campaign.channels.map(ids),
        rewards: campaign
            .rewards
            .into_iter()
            .map(|reward| RewardItem {
                reward_id: reward.reward_id.to_string(),
                reward_name: reward.name,
                watch_minutes: reward.watch_minutes,
            })
            .collect(),
    }
}

/// The members of an organization, in the order of their ids.
async fn members(service: &Service, id: &domain::OrganizationId) -> Result<Vec<MemberItem>, Error> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = service.organization_members(id, PAGE_ROWS, next.as_deref()).await?;
        all.extend(page.items.into_iter().map(|member| MemberItem {
            channel_id: member.channel_id.to_string(),
            role: member.role.name().to_owned(),
            created_date: Some(member.created_at.rfc3339()),
        }));
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
}

/// The claims of an organization, in the order of their ids.
async fn claims(service: &Service, organization: &str) -> Result<Vec<ClaimItem>, Error> {
    let publisher = Publisher {
        client_id: domain::ClientId::stored("export".to_owned()),
        organization_id: domain::OrganizationId::stored(organization.to_owned()),
    };
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let query = ClaimQuery { claim_ids: None, filter: ClaimFilter::default(), from, size: PAGE_ROWS };
        let page = service.reward_claims(&publisher, query).await?;
        all.extend(page.claims.into_iter().map(|claim| ClaimItem {
            campaign_id: claim.campaign_id.to_string(),
            reward_id: claim.reward_id.to_string(),
            channel_id: claim.channel_id.to_string(),
            claim_id: Some(claim.claim_id.to_string()),
            fulfilled: claim.state == FulfillmentState::Fulfilled,
            claimed_date: Some(claim.claimed_at.rfc3339()),
            updated_date: Some(claim.updated_at).filter(|at| *at != claim.claimed_at).map(Timestamp::rfc3339),
        }));
        from = page.cursor;
        if from.is_none() {
            // Ids grow with time.
            all.sort_by(|a: &ClaimItem, b| a.claim_id.cmp(&b.claim_id));
            return Ok(all);
        }
    }
}

async fn webhook(service: &Service, client_id: &domain::ClientId) -> Result<Option<WebhookItem>, Error> {
    let details = match service.webhook_details(client_id).await {
        Ok(details) => details,
        Err(Error::Refused(Refusal::NotFound(_))) => return Ok(None),
        Err(error) => return Err(error),
    };
    let secret = service.signing_webhook_secret(client_id).await?;
    let (mut messages, mut cursor) = (Vec::new(), None);
    loop {
        let query = DeliveryQuery::default();
        let page = service.webhook_deliveries(client_id, query, PAGE_ROWS, cursor.as_deref()).await?;
        for delivery in page.deliveries {
            let details = service.webhook_delivery(client_id, &delivery.message_id).await?;
            messages.push(DeliveryItem::of(details));
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(Some(WebhookItem {
        url: details.webhook.url,
        secret: secret.map(|secret| secret.expose().to_owned()),
        enabled: details.webhook.disabled.is_none(),
        messages,
    }))
}
