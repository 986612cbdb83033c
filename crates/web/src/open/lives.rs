//! Lives and broadcast settings (`docs/spec/lives.md`).

use axum::extract::State;
use domain::limits::{LIVE_LIST_SIZE_MAX, LIVE_TITLE_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX};
use domain::live::{CategoryChoice, CategoryType};
use domain::{CategoryId, ChannelId, Profile};
use schemars::JsonSchema;
use serde::Serialize;
use service::broadcast_settings::{BroadcastSetting, SettingChange};
use service::lives::LiveListing;

use crate::Web;
use crate::caller::{Client, User, scope};
use crate::contract::Summary;
use crate::envelope::{Answer, NOTHING, NextData, Success};
use crate::input::shape::Kind;
use crate::input::values::{List, Text, Value, chars, cursor, integer, text, texts};
use crate::input::{Body, Form, Json, JsonForm, Params, Query, QueryForm, optional, record, with_default};
use crate::open::categories::Category;
use crate::pictures::Picture;

/// The query of the live list.
#[derive(Debug)]
pub struct LivesQuery {
    size: i64,
    next: Option<String>,
}

impl Params for LivesQuery {
    fn form() -> impl QueryForm<Out = Self> {
        record!(Self {
            size: with_default("size", integer(1, LIVE_LIST_SIZE_MAX), LIVE_LIST_SIZE_MAX),
            next: optional("next", cursor()),
        })
    }
}

/// A live need not have a category.
const CATEGORY_TYPES_OR_NULL: [Option<&str>; 4] =
    [Some(CategoryType::NAMES[0]), Some(CategoryType::NAMES[1]), Some(CategoryType::NAMES[2]), None];

/// Live (list item).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// The broadcast.
    live_id: i64,
    /// Its title.
    live_title: String,
    /// Its picture, if it has one.
    live_thumbnail_image_url: Option<String>,
    /// How many watch it. The list is ordered by it, highest first.
    concurrent_user_count: i64,
    /// Since when it is on air.
    open_date: String,
    /// Whether it is for adults only.
    adult: bool,
    /// Its tags.
    tags: Vec<String>,
    /// The kind of its category.
    #[schemars(extend("enum" = CATEGORY_TYPES_OR_NULL))]
    category_type: Option<&'static str>,
    /// Its category.
    live_category: Option<CategoryId>,
    /// The name of its category.
    live_category_value: Option<String>,
    /// Whose it is.
    channel_id: ChannelId,
    /// The channel's name.
    channel_name: String,
    /// The channel's picture; one of the service's own when it has none.
    channel_image_url: Option<String>,
}

impl Live {
    fn new(web: &Web, live: LiveListing, profile: Profile) -> Self {
        let category = live.category;
        let picture = live.channel_image_url.unwrap_or_else(|| web.picture(Picture::Channel));
        Self {
            live_id: live.live_id,
            live_title: live.title,
            live_thumbnail_image_url: live.thumbnail_image_url,
            concurrent_user_count: live.concurrent_user_count,
            open_date: live.opened_at.for_profile(profile),
            adult: live.adult,
            tags: live.tags,
            category_type: category.as_ref().map(|category| category.category_type.name()),
            live_category: category.as_ref().map(|category| category.category_id.clone()),
            live_category_value: category.map(|category| category.category_value),
            channel_id: live.channel_id,
            channel_name: live.channel_name,
            channel_image_url: Some(picture),
        }
    }
}

pub(crate) const LIST: Summary =
    Summary::new("getLives", "Who is on air, most viewers first", "라이브 목록 조회");

/// `GET /open/v1/lives`, client mode.
pub async fn list(
    client: Client,
    State(web): State<Web>,
    Query(query): Query<LivesQuery>,
) -> Answer<NextData<Live>> {
    let client_id = &client.application.client_id;
    let page = web.service().lives(client_id, query.size, query.next.as_deref()).await?;
    let item = |live| Live::new(&web, live, client.profile);
    Ok(Success(NextData::new(page.lives.into_iter().map(item).collect(), page.next)))
}

/// Broadcast setting.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// What broadcasts are called. The channel's name until it is changed.
    default_live_title: String,
    /// What they are about.
    category: Option<Category>,
    /// Their tags.
    tags: Vec<String>,
}

impl Setting {
    fn new(web: &Web, setting: BroadcastSetting) -> Self {
        // An empty title is replaced by the channel's name, which a caller can also write back.
        let title = Some(setting.default_live_title).filter(|title| !title.is_empty());
        Self {
            default_live_title: title.unwrap_or(setting.channel_name),
            category: setting.category.as_ref().map(|category| Category::new(web, category)),
            tags: setting.tags,
        }
    }
}

pub(crate) const SETTING: Summary =
    Summary::new("getBroadcastSetting", "The broadcast setting", "방송 설정 조회").refuses(&[404]);

/// `GET /open/v1/lives/setting`, 방송 설정 조회.
pub async fn setting(user: User<scope::LiveSettingRead>, State(web): State<Web>) -> Answer<Setting> {
    let setting = web.service().broadcast_setting(user.channel_id()).await?;
    Ok(Success(Setting::new(&web, setting)))
}

/// The tags of a broadcast: letters, marks and digits of any script. Regular expressions of different
/// languages name these classes differently, so the pattern only excludes ASCII characters.
pub(crate) fn tags() -> Value<List<Text>, impl Fn() -> Kind> {
    const NO_SPECIAL_ASCII: &str = r"^[^\x00-/:-@\[-`{-\x7f]+$";
    let tag = chars(1, TAG_CHARS_MAX)
        .with(|kind| kind.pattern(NO_SPECIAL_ASCII))
        .about("Letters, marks and digits of any script.");
    texts(tag, 0)
        .with(|kind| kind.about(&format!("At most {TAGS_MAX} different ones. Empty: no tags any more.")))
}

/// A change of the broadcast setting. Only the given fields change.
#[derive(Debug)]
pub struct PatchSetting(SettingChange);

impl Body for PatchSetting {
    fn form() -> impl JsonForm<Out = Self> {
        let category_type = text()
            .one_of(CategoryType::NAMES)
            .about("The type of the category: the one in `categoryId`, or the current one.");
        let category = text().about("Empty: no category any more.");
        record!(SettingChange {
            category_type: optional("categoryType", category_type.parsed(CategoryType::parse)),
            title: optional("defaultLiveTitle", chars(1, LIVE_TITLE_CHARS_MAX)),
            category: optional("categoryId", category).try_map(|id| CategoryChoice::parse(id.as_deref())),
            tags: optional("tags", tags()),
        })
        .map(Self)
    }
}

pub(crate) const CHANGE_SETTING: Summary =
    Summary::new("changeBroadcastSetting", "Change what is given of the broadcast setting", "방송 설정 변경")
        .refuses(&[404]);

/// `PATCH /open/v1/lives/setting`, 방송 설정 변경. Also changes the live that is on air.
pub async fn change_setting(
    user: User<scope::LiveSettingWrite>,
    State(web): State<Web>,
    Json(PatchSetting(change)): Json<PatchSetting>,
) -> Answer<()> {
    web.service().change_broadcast_setting(user.channel_id(), change).await?;
    Ok(NOTHING)
}
