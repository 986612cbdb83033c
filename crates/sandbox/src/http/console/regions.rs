//! The parts of the page that change while it is open.

use askama::Template;
use serde_json::Value;
use service::ClockMode;

use super::chat::Chat;
use super::handle::Console;
use super::html::write;
use super::record::{plain, short_time, shortened};
use super::texts::{Texts, texts};
use super::view::View;
use crate::http::answer::Problem;
use crate::overview::{ApplicationEntry, Overview, SessionEntry, WebhookEntry};
use crate::scenario_runs::ScenarioRun;
use crate::timeline::Happened;
use crate::world_host::MAIN_WORLD;

/// Maximum number of what becomes due next.
const DUE_MAX: usize = 8;

/// The parts by their ids in the page.
pub(super) struct Regions {
    parts: Vec<(&'static str, String)>,
    /// Who and what can be chosen in forms.
    pub choices: Choices,
}

/// Who and what can be chosen in forms.
pub(super) struct Choices {
    pub people: Vec<(String, String)>,
    pub applications: Vec<(String, String)>,
    pub sessions: Vec<(String, String)>,
    pub campaigns: Vec<(String, String)>,
    pub scopes: Vec<&'static str>,
}

#[derive(Template)]
#[template(path = "console/now.html")]
struct Now {
    at: String,
    shown: String,
    rate: f64,
    mode: &'static str,
}

#[derive(Template)]
#[template(path = "console/due.html")]
struct Due {
    t: &'static Texts,
    entries: Vec<DueEntry>,
}

struct DueEntry {
    at: String,
    shown: String,
    what: &'static str,
    ids: String,
}

#[derive(Template)]
#[template(path = "console/people.html")]
struct People {
    t: &'static Texts,
    people: Vec<Person>,
}

struct Person {
    channel_id: String,
    name: String,
    initial: String,
    /// The number of viewers, if the channel is on air.
    viewers: Option<i64>,
}

#[derive(Template)]
#[template(path = "console/applications.html")]
struct Applications<'a> {
    t: &'static Texts,
    applications: &'a [ApplicationEntry],
}

#[derive(Template)]
#[template(path = "console/webhooks.html")]
struct Webhooks<'a> {
    t: &'static Texts,
    webhooks: &'a [WebhookEntry],
}

#[derive(Template)]
#[template(path = "console/faults.html")]
struct Faults {
    t: &'static Texts,
    rules: Vec<FaultRow>,
}

struct FaultRow {
    id: String,
    hits: String,
    effect: String,
    matches: String,
}

#[derive(Template)]
#[template(path = "console/worlds.html")]
struct Worlds {
    t: &'static Texts,
    worlds: Vec<WorldView>,
    snapshots: Vec<String>,
}

struct WorldView {
    id: String,
    base_url: String,
    now: String,
    /// Whether the page is that of this world.
    is_this: bool,
    /// Whether it is the world that the process began with, which cannot be deleted.
    is_main: bool,
}

#[derive(Template)]
#[template(path = "console/runs.html")]
struct Runs {
    t: &'static Texts,
    runs: Vec<ScenarioRun>,
}

#[derive(Template)]
#[template(path = "console/options.html")]
struct Options<'a> {
    options: &'a [(String, String)],
}

impl Regions {
    /// Writes every part for a view.
    pub async fn of(console: &Console, view: &View) -> Result<Self, Problem> {
        let t = texts(view.language);
        let sandbox = console.sandbox();
        let starting = || Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts");
        let overview = Overview::of(sandbox, sandbox.parts().ok_or_else(starting)?).await?;
        let due = sandbox.next_due(DUE_MAX as i64).await?;
        let due: Vec<Happened> = due.iter().take(DUE_MAX).map(Happened::from).collect();
        let faults = console.content("/sandbox/v1/faults").await;
        let choices = Choices::of(&overview);
        let mut parts = vec![
            ("now", write(&now(console, t))?),
            ("due", write(&Due { t, entries: due.iter().map(due_entry).collect() })?),
            ("people-list", write(&People { t, people: people(&overview) })?),
            ("application-list", write(&Applications { t, applications: &overview.applications })?),
            ("chat-view", write(&Chat::of(t, &overview, sandbox.log(), view))?),
            ("webhook-list", write(&Webhooks { t, webhooks: &overview.webhooks })?),
            ("options-people", write(&Options { options: &choices.people })?),
            ("options-applications", write(&Options { options: &choices.applications })?),
            ("options-sessions", write(&Options { options: &choices.sessions })?),
        ];
        if let Some(faults) = faults {
            parts.push(("fault-list", write(&Faults { t, rules: fault_rows(t, &faults) })?));
        }
        if let Some(worlds) = console.content("/sandbox/v1/worlds").await {
            let snapshots = console.content("/sandbox/v1/snapshots").await.unwrap_or_default();
            parts.push(("world-list", write(&Worlds::of(t, &worlds, &snapshots, &overview.base_url))?));
        }
        parts.push(("run-list", write(&Runs { t, runs: sandbox.runs().list() })?));
        Ok(Self { parts, choices })
    }

    /// The part with this id; `None` if this build does not have it.
    pub fn get(&self, id: &str) -> Option<&str> {
        self.parts.iter().find(|(name, _)| *name == id).map(|(_, html)| html.as_str())
    }

    /// The ids and the parts.
    pub fn into_parts(self) -> Vec<(&'static str, String)> {
        self.parts
    }
}

impl Worlds {
    fn of(t: &'static Texts, worlds: &Value, snapshots: &Value, base_url: &str) -> Self {
        let list = |value: &Value| value["data"].as_array().cloned().unwrap_or_default();
        let world = |world: Value| WorldView {
            is_this: world["baseUrl"] == base_url,
            is_main: world["worldId"] == MAIN_WORLD,
            id: plain(&world["worldId"]),
            base_url: plain(&world["baseUrl"]),
            now: short_time(&plain(&world["now"])),
        };
        let names = list(snapshots).iter().map(|snapshot| plain(&snapshot["name"])).collect();
        Self { t, worlds: list(worlds).into_iter().map(world).collect(), snapshots: names }
    }
}

impl Choices {
    fn of(overview: &Overview) -> Self {
        let people = overview.people.iter();
        let applications =
            overview.applications.iter().filter(|application| application.deleted_at.is_none());
        let connected = overview.sessions.iter().filter(|session| session.disconnected_at.is_none());
        let mut scopes: Vec<&'static str> =
            applications.clone().flat_map(|a| a.scopes.iter().copied()).collect();
        scopes.sort_unstable();
        scopes.dedup();
        Self {
            people: people
                .map(|person| {
                    (person.channel_id.clone(), format!("{} · {}", person.channel_name, person.channel_id))
                })
                .collect(),
            applications: applications.map(|a| (a.client_id.clone(), a.client_id.clone())).collect(),
            sessions: connected.map(|s| (s.session_key.clone(), session_label(s))).collect(),
            campaigns: overview.campaigns.iter().map(|c| (c.campaign_id.clone(), c.name.clone())).collect(),
            scopes,
        }
    }
}

fn session_label(session: &SessionEntry) -> String {
    let owner = session.channel_id.as_deref().unwrap_or("–");
    format!("{owner} · {} · {}", session.client_id, session.session_key)
}

fn now(console: &Console, t: &'static Texts) -> Now {
    let clock = console.sandbox().clock();
    let (at, mode) = (clock.now().rfc3339(), clock.mode());
    let name = match mode {
        ClockMode::Real => t.mode_real,
        ClockMode::Frozen => t.mode_frozen,
        ClockMode::Scaled(_) => t.mode_scaled,
    };
    let shown = at.get(..19).unwrap_or(&at).replace('T', " ");
    Now { at, shown, rate: mode.rate(), mode: name }
}

fn due_entry(due: &Happened) -> DueEntry {
    let at = due.at.rfc3339();
    let ids: Vec<String> = due.ids.values().map(plain).collect();
    DueEntry { shown: short_time(&at), at, what: due.what, ids: ids.join(" · ") }
}

fn people(overview: &Overview) -> Vec<Person> {
    let viewers = |channel: &str| {
        let live = overview.lives.iter().find(|live| live.channel_id == channel);
        live.map(|live| live.concurrent_user_count)
    };
    let person = |person: &crate::overview::PersonEntry| Person {
        viewers: viewers(&person.channel_id),
        channel_id: person.channel_id.clone(),
        initial: person.channel_name.chars().next().into_iter().flat_map(char::to_uppercase).collect(),
        name: person.channel_name.clone(),
    };
    overview.people.iter().map(person).collect()
}

fn fault_rows(t: &Texts, faults: &Value) -> Vec<FaultRow> {
    let rules = faults["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |rule: &Value| {
        let limits = ["nth", "times", "probability"].into_iter().filter_map(|name| {
            let value = rule.get(name).filter(|value| !value.is_null())?;
            Some(format!("{name} {value}"))
        });
        let matches = facts(&rule["match"]);
        let matches = if matches.is_empty() { t.everything_matches.to_owned() } else { matches };
        FaultRow {
            id: plain(&rule["id"]),
            hits: plain(&rule["hits"]),
            effect: shortened(&rule.get("profile").map_or_else(|| facts(&rule["do"]), plain)),
            matches: shortened(&std::iter::once(matches).chain(limits).collect::<Vec<_>>().join(" · ")),
        }
    };
    rules.iter().map(row).collect()
}

/// The fields of an object in short.
pub(super) fn facts(value: &Value) -> String {
    let Value::Object(fields) = value else { return plain(value) };
    let given = fields.iter().filter(|(_, value)| !value.is_null());
    let fact = |(name, value): (&String, &Value)| match value {
        Value::Bool(true) => name.clone(),
        Value::Object(_) => format!("{name} ({})", facts(value)),
        other => format!("{name} {}", plain(other)),
    };
    given.map(fact).collect::<Vec<_>>().join(" · ")
}
