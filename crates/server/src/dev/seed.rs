//! The seeded world: three streamers and five viewers with their relations, two applications, a live, a
//! campaign of drops. Every step can be repeated, so a crash during the seeding does no harm. Existing parts
//! are not changed.

use domain::application::{Organization, RedirectUri};
use domain::channel::UserRole;
use domain::drops::{Campaign, Period, Reward};
use domain::live::{Category, CategoryChoice, CategoryType};
use domain::secret::ClientSecret;
use domain::{CampaignId, CategoryId, ChannelId, ClientId, Invalid, OrganizationId, Refusal, RewardId, Rule};
use service::applications::ApplicationRecord;
use service::broadcast_settings::SettingChange;
use service::channel_events::PaidSubscription;
use service::channels::LoginCredentials;
use service::drops::RewardRequest;
use service::lives::LiveReport;
use service::{ChannelRecord, Error, Service};

use super::applications::{APPLICATIONS, ORGANIZATION};
use super::notes::Notes;

/// The password of every seeded person. A sandbox has no secrets to protect.
pub(super) const PASSWORD: &str = "stagedoor";

const IMAGES: &str = "https://images.stagedoor.example";

/// A seeded person and channel. The login is the channel id.
pub(super) struct Person {
    pub channel_id: &'static str,
    pub name: &'static str,
    pub verified: bool,
}

/// Streamers first.
pub(super) const PEOPLE: [Person; 8] = [
    Person { channel_id: "streamer-haneul", name: "하늘", verified: true },
    Person { channel_id: "streamer-bada", name: "바다", verified: false },
    Person { channel_id: "streamer-sol", name: "Sol", verified: false },
    Person { channel_id: "viewer-byeol", name: "별이", verified: false },
    Person { channel_id: "viewer-dal", name: "달님", verified: false },
    Person { channel_id: "viewer-gureum", name: "구름", verified: false },
    Person { channel_id: "viewer-mina", name: "Mina", verified: false },
    Person { channel_id: "viewer-nuri", name: "누리", verified: false },
];

/// (channel, follower)
const FOLLOWS: [(usize, usize); 9] = [(0, 3), (0, 4), (0, 5), (0, 6), (1, 3), (1, 4), (1, 0), (2, 5), (2, 3)];
/// (channel, subscriber, tier, months)
const SUBSCRIPTIONS: [(usize, usize, i64, i64); 4] =
    [(0, 3, 1, 7), (0, 4, 2, 12), (1, 4, 1, 1), (2, 5, 1, 3)];
/// (channel, manager, role)
const MANAGERS: [(usize, usize, UserRole); 3] = [
    (0, 1, UserRole::StreamingChannelManager),
    (0, 3, UserRole::StreamingChatManager),
    (1, 2, UserRole::StreamingSettlementManager),
];
/// (id, type, value)
const CATEGORIES: [(&str, CategoryType, &str); 4] = [
    ("star-voyage", CategoryType::Game, "스타 보이지"),
    ("block-garden", CategoryType::Game, "Block Garden"),
    ("football", CategoryType::Sports, "축구"),
    ("talk", CategoryType::Etc, "토크"),
];
/// (channel, title, category, tags)
const BROADCASTS: [(usize, &str, &str, &[&str]); 3] = [
    (0, "하늘의 첫 항해 🚀", "star-voyage", &["우주", "항해"]),
    (1, "바다와 축구 보기", "football", &["축구", "응원"]),
    (2, "Sol builds a garden", "block-garden", &["building"]),
];

/// The one campaign.
const CAMPAIGN: &str = "first-voyage";
/// (id, name, minutes to watch), of the one campaign
const REWARDS: [(&str, &str, i64); 3] =
    [("compass", "별빛 나침반", 0), ("sail", "은하수 돛", 0), ("lighthouse", "새벽 등대", 30)];

/// Creates the missing parts.
pub(super) async fn seed_world(service: &Service, notes: &Notes) -> Result<(), Error> {
    let last = &PEOPLE[PEOPLE.len() - 1];
    // Applications are created last, so an existing application shows that all parts exist.
    let seeded =
        service.application(&client(APPLICATIONS[APPLICATIONS.len() - 1].client_id)).await?.is_some();
    if !seeded {
        seed_people(service).await?;
        seed_bonds(service).await?;
        seed_categories(service).await?;
        seed_drops(service).await?;
        seed_broadcasts(service).await?;
        tracing::debug!(last = last.channel_id, "seeded the world");
    }
    seed_applications(service, notes).await
}

async fn seed_people(service: &Service) -> Result<(), Error> {
    for person in &PEOPLE {
        let record = ChannelRecord {
            channel_id: channel(person.channel_id),
            name: person.name.to_owned(),
            image_url: Some(format!("{IMAGES}/channels/{}.png", person.channel_id)),
            verified_mark: person.verified,
            real_name_verified: true,
        };
        let credentials =
            LoginCredentials { login: person.channel_id.to_owned(), password: PASSWORD.to_owned() };
        service.put_channel(record, Some(credentials)).await?;
    }
    Ok(())
}

async fn seed_bonds(service: &Service) -> Result<(), Error> {
    for (of, follower) in FOLLOWS {
        service.follow(person(of), person(follower), None).await?;
    }
    for (of, subscriber, tier_no, month) in SUBSCRIPTIONS {
        let tier_name = if tier_no == 1 { "팬" } else { "열혈팬" }.to_owned();
        let paid =
            PaidSubscription { subscriber: person(subscriber), tier_no, tier_name, month, created: None };
        service.subscribe_paid(&person(of), paid, None).await?;
    }
    for (of, manager, role) in MANAGERS {
        service.put_manager(person(of), person(manager), role).await?;
    }
    Ok(())
}

async fn seed_categories(service: &Service) -> Result<(), Error> {
    for (id, category_type, value) in CATEGORIES {
        service
            .put_category(Category {
                category_id: category(id),
                category_type,
                category_value: value.to_owned(),
                poster_image_url: Some(format!("{IMAGES}/categories/{id}.png")),
            })
            .await?;
    }
    Ok(())
}

/// The broadcast settings of every streamer, and one live.
async fn seed_broadcasts(service: &Service) -> Result<(), Error> {
    for (of, title, id, tags) in BROADCASTS {
        let change = SettingChange {
            title: Some(title.to_owned()),
            category_type: None,
            category: CategoryChoice::Of(category(id)),
            tags: Some(tags.iter().map(|tag| (*tag).to_owned()).collect()),
        };
        service.change_broadcast_setting(&person(of), change).await?;
    }
    let live = LiveReport {
        title: None,
        thumbnail_image_url: Some(format!("{IMAGES}/lives/1.png")),
        concurrent_user_count: 128,
        adult: false,
        category: CategoryChoice::Unsaid,
        tags: None,
    };
    service.put_live(&person(0), live).await
}

/// A verified organization with a campaign, of which one reward is claimed.
async fn seed_drops(service: &Service) -> Result<(), Error> {
    let organization_id = OrganizationId::stored(ORGANIZATION.to_owned());
    let name = "모래상자 게임즈".to_owned();
    let organization = Organization { organization_id: organization_id.clone(), name, verified: true };
    service.put_organization(organization).await?;
    let campaign_id = CampaignId::stored(CAMPAIGN.to_owned());
    let reward = |(id, name, watch_minutes): (&str, &str, i64)| Reward {
        reward_id: RewardId::stored(id.to_owned()),
        name: name.to_owned(),
        watch_minutes,
    };
    service
        .put_campaign(Campaign {
            campaign_id: campaign_id.clone(),
            name: "첫 항해".to_owned(),
            organization_id,
            category_id: CATEGORIES[0].0.to_owned(),
            period: Period::default(),
            channels: None,
            rewards: REWARDS.map(reward).to_vec(),
        })
        .await?;
    let request = RewardRequest {
        campaign_id,
        reward_id: RewardId::stored(REWARDS[0].0.to_owned()),
        channel_id: person(3),
        claim_id: None,
    };
    match service.claim_reward(request, None).await {
        // An interrupted seeding has already claimed the reward.
        Err(Error::Refused(Refusal::Invalid(Invalid { rule: Rule::Claimed, .. }))) => Ok(()),
        outcome => outcome.map(drop),
    }
}

async fn seed_applications(service: &Service, notes: &Notes) -> Result<(), Error> {
    for application in &APPLICATIONS {
        let client_id = client(application.client_id);
        if service.application(&client_id).await?.is_none() {
            service
                .put_application(ApplicationRecord {
                    client_id: client_id.clone(),
                    name: application.client_id.to_owned(),
                    organization_id: application.organization.map(|id| OrganizationId::stored(id.to_owned())),
                    redirect_uris: application
                        .redirect_uris()
                        .iter()
                        .map(|uri| RedirectUri::parse(uri))
                        .collect::<Result<_, _>>()?,
                    scopes: application.scopes(),
                    profile: None,
                    quota: true,
                })
                .await?;
        }
        if let Some(secret) =
            notes.client_secrets.get(application.client_id).and_then(|s| ClientSecret::presented(s))
        {
            service.ensure_secret(&client_id, &secret).await?;
        }
    }
    Ok(())
}

fn person(index: usize) -> ChannelId {
    channel(PEOPLE[index].channel_id)
}

fn category(id: &str) -> CategoryId {
    CategoryId::stored(id.to_owned())
}

fn channel(id: &str) -> ChannelId {
    ChannelId::stored(id.to_owned())
}

fn client(id: &str) -> ClientId {
    ClientId::stored(id.to_owned())
}
