//! The applications that cause the most load, on the first page of the operator.

use service::application_usage::{ApplicationLoad, LoadBy};
use web::Visitor;
use web::pages::Lang;

use super::frame::href;
use super::paths::{APPLICATIONS, OVERVIEW};

/// Applications that are shown.
const SHOWN: i64 = 10;
/// The minutes to choose from. The first is shown without a choice.
const MINUTES: [i64; 3] = [5, 1, 60];

/// A column that the applications can be ordered by.
struct Order {
    by: LoadBy,
    name: &'static str,
    label: [&'static str; 2],
}

/// The columns. The first is the order without a choice.
const ORDERS: [Order; 3] = [
    Order { by: LoadBy::Requests, name: "requests", label: ["요청", "Requests"] },
    Order { by: LoadBy::Refused, name: "refused", label: ["거부된 요청", "Refused"] },
    Order { by: LoadBy::Events, name: "events", label: ["받은 이벤트", "Events"] },
];

/// A link to another choice.
pub(super) struct LoadLink {
    pub href: String,
    pub label: String,
    pub is_here: bool,
}

/// The table, with the links above it.
pub(super) struct LoadPart {
    pub heading: &'static str,
    pub about: &'static str,
    pub application: &'static str,
    /// The headers of the numbers.
    pub headers: Vec<&'static str>,
    pub links: Vec<LoadLink>,
    pub rows: Vec<LoadRow>,
    pub empty: &'static str,
}

/// An application.
pub(super) struct LoadRow {
    pub href: String,
    /// Untrusted.
    pub name: String,
    pub id: String,
    pub numbers: [String; 3],
}

impl From<ApplicationLoad> for LoadRow {
    fn from(load: ApplicationLoad) -> Self {
        Self {
            href: format!("{APPLICATIONS}/{}", load.client_id),
            name: load.name,
            id: load.client_id.to_string(),
            numbers: [load.requests, load.refused, load.events].map(|number| number.to_string()),
        }
    }
}

/// The load in the minutes and the order of the query `minutes=&by=`.
pub(super) async fn load_part(visitor: &Visitor) -> Result<LoadPart, service::Error> {
    let lang = visitor.lang();
    let parameter = |name| visitor.request().parameter(name).unwrap_or_default();
    let (minutes, by) = (parameter("minutes"), parameter("by"));
    let minutes = MINUTES.into_iter().find(|known| known.to_string() == minutes).unwrap_or(MINUTES[0]);
    let order = ORDERS.iter().find(|known| known.name == by).unwrap_or(&ORDERS[0]);
    let heaviest = visitor.web().service().heaviest_applications(order.by, minutes, SHOWN).await?;
    Ok(LoadPart {
        heading: lang.pick("부하가 큰 애플리케이션", "Applications by load"),
        about: lang.pick(
            "모든 노드의 합계입니다. 애플리케이션의 페이지에서 할당량을 낮추거나 사용을 중지할 수 있습니다.",
            "Over all nodes. The page of an application lowers its quotas, or disables it.",
        ),
        application: lang.pick("애플리케이션", "Application"),
        headers: ORDERS.iter().map(|order| order.label(lang)).collect(),
        links: links(minutes, order.name, lang),
        rows: heaviest.into_iter().map(LoadRow::from).collect(),
        empty: lang.pick("이 시간에는 없습니다.", "None in this time."),
    })
}

impl Order {
    const fn label(&self, lang: Lang) -> &'static str {
        lang.pick(self.label[0], self.label[1])
    }
}

fn links(minutes: i64, by: &str, lang: Lang) -> Vec<LoadLink> {
    let link = |to: i64, by: &str, label: String, is_here: bool| {
        let to = to.to_string();
        LoadLink { href: format!("{}#load", href(OVERVIEW, &[("minutes", &to), ("by", by)])), label, is_here }
    };
    let windows = MINUTES.into_iter().map(|each| {
        let label = match lang {
            Lang::Ko => format!("{each}분"),
            Lang::En if each == 1 => "1 minute".to_owned(),
            Lang::En => format!("{each} minutes"),
        };
        link(each, by, label, each == minutes)
    });
    let orders = ORDERS.iter().map(|order| {
        let label = match lang {
            Lang::Ko => format!("{} 순", order.label(lang)),
            Lang::En => format!("By {}", order.label(lang).to_lowercase()),
        };
        link(minutes, order.name, label, order.name == by)
    });
    windows.chain(orders).collect()
}
