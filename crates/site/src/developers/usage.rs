//! `/developers/applications/{clientId}/usage`: the requests of an application by day and scope, its quotas,
//! its refused requests, and when it is deleted for want of use.

use std::collections::HashMap;

use askama::Template;
use domain::limits::{DAY_MS, UNUSED_APPLICATION_MS};
use domain::member::MemberRole;
use domain::session::SessionDetails;
use domain::usage::{UsageKind, day_of};
use domain::{ChannelId, ClientId, Timestamp};
use service::SessionFilter;
use service::application_usage::RefusedRequest;
use web::pages::{Area, Lang, Moment, Shell, filters};
use web::{PageAnswer, PathId, Person, QuotaFigure, Visitor, quota_figures};

use super::access::living_application;
use super::frame::{AppFrame, AppTab, address};
use super::usage_chart::{UsageChart, thousands};
use super::usage_texts::{UsageTexts, kind_name, quota_words, usage_texts};

/// The end of the page's path.
pub(super) const END: &str = "/usage";
/// The periods that can be chosen, in days. The store keeps the longest.
const PERIODS: [i64; 3] = [7, 30, 90];
const PERIOD_DEFAULT: i64 = 30;
/// Users whose quotas are shown: those with the least left.
const USERS_SHOWN: usize = 10;
/// Connected sessions whose users are asked for.
const SESSIONS_ASKED: i64 = 50;

/// A period that can be chosen.
struct Period {
    label: String,
    href: String,
    is_chosen: bool,
}

/// A quota of the application, or of one of its users.
struct QuotaLine {
    about: &'static str,
    /// The user, and the user's name.
    user: Option<(String, String)>,
    used: u32,
    limit: u32,
    /// Seconds until it is full again.
    full_in_s: u32,
}

/// A refused request.
struct RefusedLine {
    request: RefusedRequest,
    at: Moment,
}

#[derive(Template)]
#[template(path = "site/developers/usage.html")]
struct AppUsagePage<'a> {
    shell: Shell<'a>,
    frame: AppFrame<'a>,
    t: &'static UsageTexts,
    last_used: Option<Moment>,
    deletes: Moment,
    countdown: String,
    periods: Vec<Period>,
    chart: UsageChart,
    is_limited: bool,
    quotas: Vec<QuotaLine>,
    node: String,
    refused: Vec<RefusedLine>,
    /// In a sandbox the console shows every request.
    has_console: bool,
}

impl AppUsagePage<'_> {
    fn title(&self) -> &'static str {
        self.t.title
    }

    fn number(&self, number: &i64) -> String {
        thousands(*number)
    }

    fn name_of(&self, kind: &UsageKind) -> &'static str {
        kind_name(*kind, self.shell.lang)
    }
}

/// `GET …/usage?days=`.
pub(super) async fn show(PathId(id): PathId, person: Person) -> PageAnswer {
    let application = living_application(&person, &id, MemberRole::Viewer).await?;
    let (visitor, service) = (&person.visitor, person.visitor.web().service());
    let (lang, now) = (visitor.lang(), visitor.now());
    let life = &application.details.life;
    let client_id = &life.application.client_id;
    let days = period(visitor);
    let today = day_of(now);
    let since = today.plus_ms(-(days - 1) * DAY_MS);
    let rows = service.usage_of_application(client_id, since).await?;
    let refused = service.refused_requests(client_id);
    let users = users_of(&person, client_id, &refused).await?;
    let figures = quota_figures(visitor.web(), &life.application, &users);
    let is_limited = !figures.is_empty();
    let deletes_at = life.last_used_at.plus_ms(UNUSED_APPLICATION_MS);
    let line = |request: RefusedRequest| RefusedLine { at: Moment::of(request.at, now, lang), request };
    visitor.page(&AppUsagePage {
        shell: visitor.shell(Area::Developers),
        frame: AppFrame::new(visitor, &application, AppTab::Usage),
        t: usage_texts(lang),
        last_used: life.last_use().map(|at| Moment::of(at, now, lang)),
        deletes: Moment::of(deletes_at, now, lang),
        countdown: countdown(deletes_at, now, lang),
        periods: periods(client_id, days, lang),
        chart: UsageChart::of(&rows, since, today),
        is_limited,
        quotas: quota_lines(visitor, figures).await?,
        node: service.node().to_string(),
        refused: refused.into_iter().map(line).collect(),
        has_console: visitor.web().config().sandbox,
    })
}

fn period(visitor: &Visitor) -> i64 {
    let chosen = visitor.request().parameter("days").and_then(|days| days.parse().ok());
    chosen.filter(|days| PERIODS.contains(days)).unwrap_or(PERIOD_DEFAULT)
}

fn periods(client_id: &ClientId, chosen: i64, lang: Lang) -> Vec<Period> {
    let here = address(client_id.as_str(), END);
    let period = |days| Period {
        label: match lang {
            Lang::Ko => format!("{days}일"),
            Lang::En => format!("{days} days"),
        },
        href: format!("{here}?days={days}"),
        is_chosen: days == chosen,
    };
    PERIODS.into_iter().map(period).collect()
}

/// The users whose quotas may be in use: the reader, those with connected sessions, and those of refused
/// requests.
async fn users_of(
    person: &Person,
    client_id: &ClientId,
    refused: &[RefusedRequest],
) -> Result<Vec<ChannelId>, service::Error> {
    let filter = SessionFilter {
        client_id: Some(client_id.clone()),
        connected: Some(true),
        ..SessionFilter::default()
    };
    let page = person.visitor.web().service().list_sessions(filter, SESSIONS_ASKED, None).await?;
    let of_sessions = page.sessions.iter().filter_map(|session: &SessionDetails| session.owner.channel_id());
    let of_requests = refused.iter().filter_map(|request| request.channel_id.as_ref());
    let mut users: Vec<ChannelId> =
        of_sessions.chain(of_requests).chain([&person.channel_id]).cloned().collect();
    users.sort_unstable();
    users.dedup();
    Ok(users)
}

/// The quotas of the application, and those of users that are in use.
async fn quota_lines(visitor: &Visitor, figures: Vec<QuotaFigure>) -> Result<Vec<QuotaLine>, service::Error> {
    let used = |figure: &QuotaFigure| figure.status.limit - figure.status.remaining;
    let (of_users, mut shown): (Vec<_>, Vec<_>) =
        figures.into_iter().partition(|figure| figure.channel_id.is_some());
    let mut of_users: Vec<_> = of_users.into_iter().filter(|figure| used(figure) > 0).collect();
    of_users.sort_by_key(|figure| figure.status.remaining);
    of_users.truncate(USERS_SHOWN);
    shown.extend(of_users);
    let channels = shown.iter().filter_map(|figure| figure.channel_id.clone()).collect();
    let names: HashMap<ChannelId, String> =
        visitor.web().service().session_context(channels, Vec::new()).await?.names;
    let line = |figure: QuotaFigure| QuotaLine {
        about: quota_words(figure.name, figure.channel_id.is_some(), visitor.lang()),
        used: used(&figure),
        limit: figure.status.limit,
        full_in_s: figure.status.reset_s,
        user: figure.channel_id.map(|id| {
            let name = names.get(&id).cloned().unwrap_or_else(|| id.to_string());
            (id.to_string(), name)
        }),
    };
    Ok(shown.into_iter().map(line).collect())
}

/// The days until an unused application is deleted, rounded up.
pub(super) fn countdown(deletes_at: Timestamp, now: Timestamp, lang: Lang) -> String {
    let left_ms = deletes_at.as_millis().saturating_sub(now.as_millis()).max(0);
    let days = (left_ms + DAY_MS - 1) / DAY_MS;
    match lang {
        Lang::Ko => format!("{days}일 뒤"),
        Lang::En if days == 1 => "in 1 day".to_owned(),
        Lang::En => format!("in {days} days"),
    }
}
