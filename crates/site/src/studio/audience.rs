//! `/studio/followers` and `/studio/subscribers`: who follows the channel, and who subscribes to it.

use askama::Template;
use domain::ChannelId;
use domain::channel::{Follower, Manager, Subscriber, SubscriberSort};
use domain::limits::FOLLOWER_LIST_SIZE_DEFAULT;
use service::Page;
use web::pages::{Area, Lang, Moment, Shell, filters};
use web::{PageAnswer, Visitor};

use crate::studio::at;
use crate::studio::chat_row::role_name;
use crate::studio::desk::{Desk, StudioAt};
use crate::studio::frame::StudioPlace;
use crate::studio::nav::StudioNav;

/// People on one page.
const PAGE_SIZE: i64 = FOLLOWER_LIST_SIZE_DEFAULT;

/// A follower or a subscriber.
#[derive(Debug)]
struct AudienceRow<'a> {
    id: &'a str,
    name: &'a str,
    since: Moment,
    /// What the person is in the channel. Managers are not restricted.
    role: Option<&'static str>,
    /// Months, number and name of the tier of a subscriber.
    subscription: Option<(i64, i64, &'a str)>,
}

#[derive(Debug, Template)]
#[template(path = "site/studio/audience.html")]
struct AudiencePage<'a> {
    shell: Shell<'a>,
    nav: StudioNav,
    place: StudioPlace,
    /// Its address.
    path: String,
    t: &'static AudienceTexts,
    sort: SubscriberSort,
    rows: Vec<AudienceRow<'a>>,
    total: i64,
    /// The page that restricts people, for those who may.
    restrict: Option<String>,
    previous: Option<String>,
    next: Option<String>,
}

impl AudiencePage<'_> {
    fn title(&self) -> &'static str {
        self.place.label(self.shell.lang)
    }

    fn is_of_subscribers(&self) -> bool {
        self.place == StudioPlace::Subscribers
    }

    fn is_longest_first(&self) -> bool {
        self.sort == SubscriberSort::Longer
    }
}

/// The page that the address names; the first one for what is no number.
fn page_of(visitor: &Visitor) -> Page {
    let number = visitor.request().parameter("page").and_then(|page| page.parse::<i32>().ok());
    Page { size: PAGE_SIZE, page: i64::from(number.unwrap_or(0).max(0)) }
}

impl<'a> AudiencePage<'a> {
    fn new(desk: &'a Desk, place: StudioPlace, rows: Vec<AudienceRow<'a>>, total: i64) -> Self {
        let visitor = &desk.visitor;
        Self {
            shell: visitor.shell(Area::Studio),
            nav: StudioNav::at(place, desk),
            place,
            path: desk.path(place.path()),
            t: texts(visitor.lang()),
            sort: SubscriberSort::Recent,
            rows,
            total,
            restrict: desk.may_see(StudioPlace::Restrictions),
            previous: None,
            next: None,
        }
    }

    /// Adds the links to the pages beside this one.
    fn between(mut self, page: Page, query: &str) -> Self {
        let path = self.path.clone();
        let href = |number: i64| format!("{path}?page={number}{query}");
        self.previous = (page.page > 0).then(|| href(page.page - 1));
        self.next = ((page.page + 1) * page.size < self.total).then(|| href(page.page + 1));
        self
    }
}

/// The name of a person's role.
fn role_of(managers: &[Manager], person: &ChannelId, lang: Lang) -> Option<&'static str> {
    let manager = managers.iter().find(|manager| manager.channel_id == *person)?;
    Some(role_name(manager.role, lang))
}

/// `GET /studio/followers`: the newest first.
pub(crate) async fn followers(StudioAt { desk, .. }: StudioAt<at::Followers>) -> PageAnswer {
    let visitor = &desk.visitor;
    let page = page_of(visitor);
    let found = visitor.web().service().followers(desk.channel_id.clone(), page, true).await?;
    let managers = visitor.web().service().managers(desk.channel_id.clone()).await?;
    let (now, lang) = (visitor.now(), visitor.lang());
    let row = |follower: &'_ Follower| Moment::of(follower.created_at, now, lang);
    let rows = found.items.iter().map(|follower| AudienceRow {
        id: follower.channel_id.as_str(),
        name: &follower.name,
        since: row(follower),
        role: role_of(&managers, &follower.channel_id, lang),
        subscription: None,
    });
    let total = found.total.unwrap_or_default();
    let answer = AudiencePage::new(&desk, StudioPlace::Followers, rows.collect(), total);
    visitor.page(&answer.between(page, ""))
}

/// `GET /studio/subscribers`: the newest first, or with `sort=LONGER` the longest.
pub(crate) async fn subscribers(StudioAt { desk, .. }: StudioAt<at::Subscribers>) -> PageAnswer {
    let visitor = &desk.visitor;
    let page = page_of(visitor);
    let sort = visitor.request().parameter("sort").and_then(|sort| SubscriberSort::parse(&sort).ok());
    let sort = sort.unwrap_or_default();
    let found = visitor.web().service().subscribers(desk.channel_id.clone(), sort, page, true).await?;
    let managers = visitor.web().service().managers(desk.channel_id.clone()).await?;
    let (now, lang) = (visitor.now(), visitor.lang());
    let since = |subscriber: &'_ Subscriber| Moment::of(subscriber.created_at, now, lang);
    let rows = found.items.iter().map(|subscriber| AudienceRow {
        id: subscriber.channel_id.as_str(),
        name: &subscriber.name,
        since: since(subscriber),
        role: role_of(&managers, &subscriber.channel_id, lang),
        subscription: Some((subscriber.month, subscriber.tier_no, subscriber.tier_name.as_str())),
    });
    let total = found.total.unwrap_or_default();
    let answer = AudiencePage::new(&desk, StudioPlace::Subscribers, rows.collect(), total);
    let query = if sort == SubscriberSort::Longer { "&sort=LONGER" } else { "" };
    visitor.page(&AudiencePage { sort, ..answer.between(page, query) })
}

#[derive(Debug)]
struct AudienceTexts {
    total: &'static str,
    person: &'static str,
    followed: &'static str,
    subscribed: &'static str,
    months: &'static str,
    tier: &'static str,
    order: &'static str,
    newest: &'static str,
    longest: &'static str,
    no_followers: &'static str,
    no_subscribers: &'static str,
    none_about: &'static str,
    back: &'static str,
    deeds: &'static str,
    restrict: &'static str,
    promote: &'static str,
}

fn texts(lang: Lang) -> &'static AudienceTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: AudienceTexts = AudienceTexts {
    total: "모두",
    person: "사용자",
    followed: "팔로우한 날",
    subscribed: "구독한 날",
    months: "구독 개월",
    tier: "티어",
    order: "순서",
    newest: "최근 구독 순",
    longest: "오래 구독한 순",
    no_followers: "아직 팔로워가 없습니다.",
    no_subscribers: "아직 구독자가 없습니다.",
    none_about: "생기면 여기에 표시됩니다.",
    back: "첫 페이지로",
    deeds: "동작",
    restrict: "활동 제한",
    promote: "매니저로",
};

const EN: AudienceTexts = AudienceTexts {
    total: "Total",
    person: "Person",
    followed: "Followed",
    subscribed: "Subscribed",
    months: "Months",
    tier: "Tier",
    order: "Order",
    newest: "Newest first",
    longest: "Longest first",
    no_followers: "Nobody follows you yet.",
    no_subscribers: "Nobody subscribes yet.",
    none_about: "The first one is listed here.",
    back: "To the first page",
    deeds: "Actions",
    restrict: "Restrict",
    promote: "Make a manager",
};
