//! What `stagedoor doctor --deep` says about the routers of the nodes: the sessions and subscriptions in
//! their memory, beside those in the store.

use backup::living_nodes;
use commands::node_router::compare_router;
use commands::{CommandFailure, secret};
use domain::Timestamp;
use serde_json::{Value, json};
use store::Target;

use super::backup::failure;

/// The name of the sentence.
pub(super) const NAME: &str = "router";

const SENTENCE: &str = "Each node remembers the sessions and subscriptions that the store lists for it.";

/// What to do about each kind of difference.
pub const MENDS: [(&str, &str, &str); 3] = [
    (
        "not-routed",
        "connected in the store, unknown to its node",
        "End it, so that its client connects again: DELETE /platform/v1/sessions/{sessionKey}",
    ),
    (
        "not-stored",
        "known to its node, not connected in the store",
        "Restart the node. Its clients connect again",
    ),
    (
        "subscriptions",
        "other subscriptions on its node than in the store",
        "End it, so that its client connects and subscribes again: DELETE /platform/v1/sessions/{sessionKey}",
    ),
];

/// The comparisons of the nodes.
#[derive(Debug, Default)]
pub(super) struct RouterFinding {
    /// The answers of the nodes that were asked.
    compared: Vec<Value>,
    /// The nodes that are alive and were not asked.
    missing: Vec<String>,
}

impl RouterFinding {
    /// Asks these nodes.
    pub(super) async fn of(
        nodes: &[String],
        operator_key: Option<&str>,
        target: &Target,
        now: Timestamp,
    ) -> Result<Self, CommandFailure> {
        let mut found = Self::default();
        if !nodes.is_empty() {
            let key = secret("STAGEDOOR_OPERATOR_KEY", operator_key);
            let key = key.map_err(CommandFailure::Usage)?.ok_or_else(|| {
                CommandFailure::Usage(
                    "--node needs the operator key: give STAGEDOOR_OPERATOR_KEY or \
                     STAGEDOOR_OPERATOR_KEY_FILE"
                        .to_owned(),
                )
            })?;
            for node in nodes {
                found.compared.push(compare_router(node, &key).await?);
            }
        }
        let asked: Vec<_> = found.compared.iter().filter_map(|node| node["nodeId"].as_str()).collect();
        let living = living_nodes(target, now).await.map_err(failure)?;
        found.missing = living.into_iter().filter(|node| !asked.contains(&node.as_str())).collect();
        Ok(found)
    }

    fn differences(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.compared
            .iter()
            .flat_map(|node| list(&node["differences"]).map(move |difference| (&node["nodeId"], difference)))
    }

    /// Whether no node differs. What was not compared does not count.
    pub(super) fn is_true(&self) -> bool {
        self.differences().next().is_none()
    }

    pub(super) fn as_json(&self) -> Value {
        let with_mend = |(node, difference): (&Value, &Value)| {
            let (_, about, mend) = mend_of(difference);
            let mut named = difference.clone();
            named["nodeId"] = node.clone();
            named["about"] = about.into();
            named["mend"] = mend.into();
            named
        };
        json!({ "name": NAME, "sentence": SENTENCE, "ok": self.is_true(),
            "compared": self.compared.iter().map(|node| json!({ "nodeId": node["nodeId"],
                "sessions": node["sessions"], "subscriptions": node["subscriptions"] })).collect::<Vec<_>>(),
            "notCompared": self.missing,
            "differences": self.differences().map(with_mend).collect::<Vec<_>>(),
            "more": self.compared.iter().any(|node| node["areMore"] == true) })
    }

    pub(super) fn as_text(&self) -> String {
        let state = match (self.is_true(), self.compared.is_empty()) {
            (false, _) => "BROKEN",
            (true, false) => "ok",
            (true, true) => "-",
        };
        let mut text = format!("{state:<7} {NAME:<22} {SENTENCE}\n");
        for node in &self.compared {
            let of = |name: &str| node[name].to_string();
            let id = node["nodeId"].as_str().unwrap_or_default();
            text += &format!(
                "          node {id}: {} sessions, {} subscriptions compared\n",
                of("sessions"),
                of("subscriptions")
            );
        }
        for (node, difference) in self.differences() {
            let (_, about, mend) = mend_of(difference);
            let (node, key) = (node.as_str().unwrap_or_default(), difference["sessionKey"].as_str());
            text += &format!("          {} on node {node}: {about}\n", key.unwrap_or_default());
            for (side, name) in [("the store", "onlyStored"), ("the node", "onlyRouted")] {
                for each in list(&difference[name]) {
                    let of = |name: &str| each[name].as_str().unwrap_or_default().to_owned();
                    text +=
                        &format!("            only {side} has {} of {}\n", of("eventType"), of("channelId"));
                }
            }
            text += &format!("        To mend it: {mend}\n");
        }
        match (self.compared.is_empty(), self.missing.is_empty()) {
            (true, true) => text += "          not compared: no node is running\n",
            (_, false) => {
                text += &format!(
                    "          not compared: node {}. Give the address of each node with --node, and the operator \
                     key\n",
                    self.missing.join(", node ")
                );
            }
            (false, true) => {}
        }
        text
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn mend_of(difference: &Value) -> (&'static str, &'static str, &'static str) {
    let of_kind = MENDS.into_iter().find(|(kind, _, _)| difference["kind"] == *kind);
    of_kind.unwrap_or(("unknown", "differs", "Upgrade this program"))
}
