//! The network profiles, as the console offers and lists them.

use askama::Template;
use domain::Language;
use serde_json::Value;

use super::korean::in_language;
use super::record::plain;
use super::texts::Texts;
use crate::network::NetworkProfile;

/// (name, Korean, English)
const LABELS: &[(&str, &str, &str)] = &[
    ("slow", "느린 망", "Slow"),
    ("subway", "지하철", "Subway"),
    ("handover", "기지국 이동", "Handover"),
    ("tunnel", "터널", "Tunnel"),
    ("offline", "연결 없음", "Offline"),
];

/// A network profile to choose.
pub(super) struct NetworkView {
    pub name: &'static str,
    pub label: &'static str,
    pub about: &'static str,
}

/// The networks that are in use.
#[derive(Template)]
#[template(path = "console/networks.html")]
pub(super) struct Networks {
    t: &'static Texts,
    rows: Vec<NetworkRow>,
}

struct NetworkRow {
    /// The id of its rule.
    id: String,
    label: String,
    /// The application and the user behind it.
    whose: String,
    hits: String,
}

/// Every profile.
pub(super) fn networks(language: Language) -> Vec<NetworkView> {
    let view = |profile: &NetworkProfile| NetworkView {
        name: profile.name,
        label: label(language, profile.name),
        about: in_language(language, profile.about),
    };
    NetworkProfile::all().iter().map(view).collect()
}

impl Networks {
    /// Those among the fault rules.
    pub fn of(t: &'static Texts, language: Language, rules: &[Value]) -> Self {
        let row = |rule: &Value| {
            let profile = rule.get("profile")?.as_str()?;
            let name = label(language, profile);
            let label = if name == profile { name.to_owned() } else { format!("{name} · {profile}") };
            let named = ["clientId", "user"].into_iter().filter_map(|field| rule["match"].get(field));
            let whose: Vec<String> = named.map(plain).collect();
            let whose = if whose.is_empty() { t.all_applications.to_owned() } else { whose.join(" · ") };
            Some(NetworkRow { id: plain(&rule["id"]), label, whose, hits: plain(&rule["hits"]) })
        };
        Self { t, rows: rules.iter().filter_map(row).collect() }
    }
}

fn label(language: Language, name: &str) -> &str {
    let found = LABELS.iter().find(|(known, ..)| *known == name);
    found.map_or(name, |(_, korean, english)| language.pick(korean, english))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_has_a_name_for_people() {
        for view in networks(Language::Korean) {
            assert_ne!((view.label, view.about), (view.name, view.name));
            assert!(LABELS.iter().any(|(name, ..)| *name == view.name), "{}", view.name);
        }
    }
}
