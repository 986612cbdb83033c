//! `/operator`: the nodes, what waits, what needs a decision, and how long rows are kept.

use askama::Template;
use domain::Timestamp;
use domain::retention::{RETENTION_TABLE, Retained, Retention};
use domain::review::ReviewState;
use service::overview::{Backlog, COUNTED_MAX, Overview};
use web::pages::{Area, Lang, Moment, Shell, filters};
use web::{OperatorPerson, PageAnswer, role};

use super::frame::{Badge, Frame, Section, href};
use super::load::{LoadPart, load_part};
use super::paths::{APPLICATIONS, PEOPLE, REQUESTS, WEBHOOKS};

/// A heartbeat older than this is late, in milliseconds: two and a half heartbeats.
const LATE_MS: i64 = 12_500;

/// How far pending requests are counted.
const PENDING_COUNTED: i64 = 50;

/// A node in the table.
struct NodeRow {
    name: String,
    roles: String,
    version: String,
    started: Moment,
    seen: Moment,
    badges: Vec<Badge>,
}

/// A number with what it counts.
struct Figure {
    number: String,
    label: &'static str,
    about: &'static str,
    href: Option<String>,
    /// Whether an operator should look at it.
    needs_a_look: bool,
}

/// A kind of rows that are deleted when they are old.
struct RetentionRow {
    name: &'static str,
    label: &'static str,
    kept: String,
    /// Whether the operator chose another time than the default.
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "site/operator/overview.html")]
struct OverviewPage<'a> {
    shell: Shell<'a>,
    frame: Frame,
    t: &'static OverviewTexts,
    figures: Vec<Figure>,
    load: LoadPart,
    nodes: Vec<NodeRow>,
    retention: Vec<RetentionRow>,
}

impl OverviewPage<'_> {
    fn title(&self) -> &'static str {
        Section::Overview.title(self.shell.lang)
    }
}

/// `GET /operator`.
pub(super) async fn show(operator: OperatorPerson<role::Read>) -> PageAnswer {
    let visitor = operator.visitor();
    let (lang, now) = (visitor.lang(), visitor.now());
    let service = visitor.web().service();
    let overview = service.overview().await?;
    let pending = service.review_requests(ReviewState::Pending, PENDING_COUNTED, None).await?;
    let pending = (pending.items.len(), pending.next.is_some());
    visitor.page(&OverviewPage {
        shell: visitor.shell(Area::Operator),
        frame: Frame::new(&operator, Section::Overview),
        t: texts(lang),
        figures: figures(&overview, pending, lang),
        load: load_part(visitor).await?,
        nodes: nodes(&overview, service.node().as_str(), now, lang),
        retention: retention(service.retention(), lang),
    })
}

/// The requests that wait for a decision: how many there are, and whether there are more.
fn requests((count, has_more): (usize, bool), lang: Lang) -> Figure {
    Figure {
        number: if has_more { format!("{count}+") } else { count.to_string() },
        label: lang.pick("결정할 요청", "Requests to decide"),
        about: lang.pick("조직 인증과 애플리케이션의 권한", "Verifications, and scopes of applications"),
        href: Some(REQUESTS.to_owned()),
        needs_a_look: count > 0,
    }
}

fn figures(overview: &Overview, pending: (usize, bool), lang: Lang) -> Vec<Figure> {
    let figure = |what: Backlog| {
        let (label, about) = words(what, lang);
        let count = overview.count(what);
        let is_capped = count >= COUNTED_MAX;
        Figure {
            number: if is_capped { format!("{COUNTED_MAX}+") } else { count.to_string() },
            label,
            about,
            href: place(what),
            needs_a_look: count > 0 && matches!(what, Backlog::WebhooksInTrouble | Backlog::LostEvents),
        }
    };
    let counted = [
        Backlog::WebhooksInTrouble,
        Backlog::WaitingDeliveries,
        Backlog::LostEvents,
        Backlog::UnpublishedEvents,
        Backlog::Mails,
        Backlog::DisabledApplications,
        Backlog::RestorableApplications,
        Backlog::BarredChannels,
    ];
    let mut figures = vec![requests(pending, lang)];
    figures.extend(counted.into_iter().map(figure));
    // What needs a look comes first, and what is nothing last.
    figures.sort_by_key(|figure| (!figure.needs_a_look, figure.number == "0"));
    figures
}

/// Where the counted things are listed.
fn place(what: Backlog) -> Option<String> {
    match what {
        Backlog::WebhooksInTrouble => Some(WEBHOOKS.to_owned()),
        Backlog::DisabledApplications => Some(href(APPLICATIONS, &[("state", "disabled")])),
        Backlog::RestorableApplications => Some(href(APPLICATIONS, &[("state", "restorable")])),
        Backlog::BarredChannels => Some(href(PEOPLE, &[("state", "barred")])),
        _ => None,
    }
}

const fn words(what: Backlog, lang: Lang) -> (&'static str, &'static str) {
    let (ko, en) = match what {
        Backlog::WebhooksInTrouble => (
            ("문제 있는 웹훅", "전송에 실패하고 있거나 사용 중지됨"),
            ("Webhooks in trouble", "They fail, or are disabled"),
        ),
        Backlog::WaitingDeliveries => (
            ("기다리는 웹훅 메시지", "아직 전달되지 않음"),
            ("Waiting webhook messages", "Not delivered yet"),
        ),
        Backlog::LostEvents => (
            ("잃어버린 이벤트", "최근 한 시간. 세션은 gap으로 닫혔음"),
            ("Lost events", "Within the last hour. Their sessions were closed with gap"),
        ),
        Backlog::UnpublishedEvents => (
            ("발행 확인 전 이벤트 묶음", "잠시 있는 것은 정상"),
            ("Unconfirmed batches of events", "A few for a moment are normal"),
        ),
        Backlog::Mails => {
            (("기다리는 메일", "메일 훅으로 보낼 메시지"), ("Waiting e-mails", "For the mail hook"))
        }
        Backlog::DisabledApplications => {
            (("사용 중지된 애플리케이션", "운영자가 중지함"), ("Disabled applications", "By an operator"))
        }
        Backlog::RestorableApplications => (
            ("복구할 수 있는 애플리케이션", "사용하지 않아 삭제됨. 30일 동안 복구 가능"),
            ("Restorable applications", "Deleted for want of use, for 30 days"),
        ),
        Backlog::BarredChannels => {
            (("이용 정지된 사람", "삭제 중인 사람 포함"), ("Barred people", "With those being deleted"))
        }
    };
    match lang {
        Lang::Ko => ko,
        Lang::En => en,
    }
}

fn nodes(overview: &Overview, own: &str, now: Timestamp, lang: Lang) -> Vec<NodeRow> {
    let row = |node: &service::overview::NodeListing| {
        let mut badges = Vec::new();
        if node.node_id.as_str() == own {
            badges.push(Badge::new("plain", lang.pick("이 페이지를 보낸 노드", "This page’s node")));
        }
        if now.as_millis() - node.seen_at.as_millis() > LATE_MS {
            badges.push(Badge::new("bad", lang.pick("응답 없음", "Silent")));
        } else if node.roles.split(' ').any(|role| role == "gateway") && node.session_base.is_none() {
            badges.push(Badge::new("warn", lang.pick("새 세션 없음", "No new sessions")));
        }
        NodeRow {
            name: node.node_id.to_string(),
            roles: node.roles.clone(),
            version: node.version.clone(),
            started: Moment::of(node.started_at, now, lang),
            seen: Moment::of(node.seen_at, now, lang),
            badges,
        }
    };
    overview.nodes.iter().map(row).collect()
}

fn retention(retention: &Retention, lang: Lang) -> Vec<RetentionRow> {
    let row = |rule: &domain::retention::RetentionRule| RetentionRow {
        name: rule.name,
        label: retained(rule.of, lang),
        kept: match lang {
            Lang::Ko => format!("{}일", retention.days(rule.of)),
            Lang::En => format!("{} days", retention.days(rule.of)),
        },
        is_chosen: retention.kept_ms(rule.of) != rule.default_ms,
    };
    RETENTION_TABLE.iter().map(row).collect()
}

const fn retained(of: Retained, lang: Lang) -> &'static str {
    match of {
        Retained::ChatMessages => lang.pick("채팅 메시지", "Chat messages"),
        Retained::Donations => lang.pick("후원", "Donations"),
        Retained::EndedSessions => lang.pick("끝난 세션", "Ended sessions"),
        Retained::WebhookMessages => lang.pick("웹훅 메시지와 시도", "Webhook messages, with their attempts"),
        Retained::ClaimChanges => lang.pick("리워드 지급 상태의 변경", "Changes of claims"),
        Retained::ApplicationRequests => {
            lang.pick("애플리케이션의 일별 요청 수", "Requests of applications, by day")
        }
        Retained::AuditLog => lang.pick("감사 로그", "Audit log"),
    }
}

/// The words of the page.
struct OverviewTexts {
    lead: &'static str,
    counts: &'static str,
    nodes: &'static str,
    node: &'static str,
    roles: &'static str,
    version: &'static str,
    started: &'static str,
    seen: &'static str,
    look: &'static str,
    retention: &'static str,
    retention_about: &'static str,
    rows: &'static str,
    option: &'static str,
    kept: &'static str,
    chosen: &'static str,
}

fn texts(lang: Lang) -> &'static OverviewTexts {
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}

const KO: OverviewTexts = OverviewTexts {
    lead: "노드의 상태와 기다리고 있는 일입니다. 숫자는 1,000까지만 셉니다.",
    counts: "기다리는 일",
    nodes: "노드",
    node: "노드",
    roles: "역할",
    version: "버전",
    started: "시작",
    seen: "마지막 신호",
    look: "확인 필요",
    retention: "보관 기간",
    retention_about: "이보다 오래된 데이터는 삭제됩니다. 노드의 옵션 --retain으로 바꿉니다.",
    rows: "데이터",
    option: "옵션의 이름",
    kept: "기간",
    chosen: "직접 정함",
};

const EN: OverviewTexts = OverviewTexts {
    lead: "The state of the nodes, and what is pending. Numbers are counted up to 1,000.",
    counts: "Pending",
    nodes: "Nodes",
    node: "Node",
    roles: "Roles",
    version: "Version",
    started: "Started",
    seen: "Last heartbeat",
    look: "Needs a look",
    retention: "Retention",
    retention_about: "Older data is deleted. The option --retain of a node changes the times.",
    rows: "Data",
    option: "Name in the option",
    kept: "Kept for",
    chosen: "Chosen",
};
