//! The parts of the page that change while it is open.

use askama::Template;
use domain::Language;
use serde_json::Value;
use service::ClockMode;

use super::chat::Chat;
use super::handle::Console;
use super::html::write;
use super::korean::in_language;
use super::networks::Networks;
use super::record::{plain, short_time, shortened};
use super::texts::Texts;
use super::view::View;
use super::worlds::Worlds;
use crate::http::answer::Problem;
use crate::overview::{ApplicationEntry, Overview, SessionEntry, WebhookEntry};
use crate::scenario_runs::ScenarioRun;
use crate::timeline::Happened;

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
    /// The id of the button. It stays that of this entry while others come and go.
    id: String,
    at: String,
    shown: String,
    what: String,
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
    language: Language,
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
        let t = Texts::of(view.language);
        let sandbox = console.sandbox();
        let starting = || Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "the sandbox still starts");
        let overview = Overview::of(sandbox, sandbox.parts().ok_or_else(starting)?).await?;
        let due = sandbox.next_due(DUE_MAX as i64).await?;
        let due: Vec<Happened> = due.iter().take(DUE_MAX).map(Happened::from).collect();
        let faults = console.content("/sandbox/v1/faults").await;
        let choices = Choices::of(&overview);
        let mut parts = vec![
            ("now", write(&now(console, t))?),
            ("due", write(&Due { t, entries: due_entries(view.language, &due) })?),
            ("people-list", write(&People { t, people: people(&overview) })?),
            ("application-list", write(&Applications { t, applications: &overview.applications })?),
            ("chat-view", write(&Chat::of(t, &overview, sandbox.log(), view))?),
            ("webhook-list", write(&Webhooks { t, language: view.language, webhooks: &overview.webhooks })?),
            ("options-people", write(&Options { options: &choices.people })?),
            ("options-applications", write(&Options { options: &choices.applications })?),
            ("options-sessions", write(&Options { options: &choices.sessions })?),
        ];
        if let Some(faults) = faults {
            let rules = faults["data"].as_array().map(Vec::as_slice).unwrap_or_default();
            parts.push(("fault-list", write(&Faults { t, rules: fault_rows(t, rules) })?));
            parts.push(("network-list", write(&Networks::of(t, view.language, rules))?));
        }
        if let Some(worlds) = console.content("/sandbox/v1/worlds").await {
            let snapshots = console.content("/sandbox/v1/snapshots").await.unwrap_or_default();
            let worlds = Worlds::of(t, &worlds, &snapshots, &overview.base_url);
            parts.push(("options-worlds", write(&Options { options: &worlds.options() })?));
            parts.push(("world-list", write(&worlds)?));
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

fn due_entries(language: Language, due: &[Happened]) -> Vec<DueEntry> {
    let entry = |(place, one): (usize, &Happened)| {
        let is_same = |other: &&Happened| (other.at, other.what) == (one.at, one.what);
        let number = due.iter().take(place).filter(is_same).count();
        let (at, ids) = (one.at.rfc3339(), one.ids.values().map(plain).collect::<Vec<_>>());
        DueEntry {
            id: format!("due-{}-{at}-{number}", one.what),
            shown: short_time(&at),
            at,
            what: in_language(language, one.what).to_owned(),
            ids: ids.join(" · "),
        }
    };
    due.iter().enumerate().map(entry).collect()
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

/// The rules that are no networks.
fn fault_rows(t: &Texts, rules: &[Value]) -> Vec<FaultRow> {
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
            effect: shortened(&facts(&rule["do"])),
            matches: shortened(&std::iter::once(matches).chain(limits).collect::<Vec<_>>().join(" · ")),
        }
    };
    rules.iter().filter(|rule| rule.get("profile").is_none()).map(row).collect()
}

/// The fields of an object in short.
pub(super) fn facts(value: &Value) -> String {
    let Value::Object(fields) = value else { return plain(value) };
    let mut given: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
    // The options of an effect follow it.
    given.sort_by_key(|(name, _)| matches!(name.as_str(), "message" | "retryAfter" | "when"));
    let fact = |(name, value): (&String, &Value)| match value {
        Value::Bool(true) => name.clone(),
        Value::Object(_) => format!("{name} ({})", facts(value)),
        other => format!("{name} {}", plain(other)),
    };
    given.into_iter().map(fact).collect::<Vec<_>>().join(" · ")
}
