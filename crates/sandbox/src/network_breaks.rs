//! Breaks the connections of sessions when the network of a rule breaks.

use crate::fault::{DEFAULT_SEED, Effect, Matching, Rule};
use crate::fault_rules::KeptRule;
use crate::log::RecordKind;
use crate::network::{NetworkProfile, NetworkState};
use crate::sandbox::{Parts, Sandbox};

/// The names of the network profiles.
pub fn network_names() -> Vec<&'static str> {
    NetworkProfile::all().iter().map(|profile| profile.name).collect()
}

/// Puts all applications behind the network of a name.
///
/// # Errors
/// There is no such network, or there are too many rules.
pub fn use_network(sandbox: &Sandbox, name: &str) -> Result<(), String> {
    let profile = NetworkProfile::from_name(name).ok_or_else(|| format!("no network is called {name}"))?;
    let rule = Rule {
        matching: Matching::default(),
        nth: None,
        probability: None,
        times: None,
        seed: DEFAULT_SEED,
        effect: Effect::Network(profile),
    };
    add_rule(sandbox, rule).map(drop).ok_or_else(|| "there are too many fault rules".to_owned())
}

/// Adds a rule. A network begins now. `None` if there are too many rules.
pub(crate) fn add_rule(sandbox: &Sandbox, rule: Rule) -> Option<KeptRule> {
    let now = sandbox.monotonic();
    let profile = rule.effect.network();
    let added = sandbox.faults().add(rule, now)?;
    if let (Some(profile), Some(node)) = (profile, sandbox.parts()) {
        let task = tokio::spawn(run(sandbox.clone(), node.clone(), added.clone(), profile));
        sandbox.faults().attach(&added.id, task.abort_handle());
    }
    Some(added)
}

/// What happens to the sessions of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    Silence,
    Loss,
}

/// Follows the network until its last break, until the rule is removed, or until the node stops.
async fn run(sandbox: Sandbox, node: Parts, added: KeptRule, profile: &'static NetworkProfile) {
    let mut before = NetworkState::Up;
    loop {
        let at = node.service.clock().monotonic().saturating_sub(added.began);
        let (state, end) = profile.state(added.rule.seed, at);
        let broken = match (before, state) {
            (_, NetworkState::Silent) => Some(Break::Silence),
            // A network without an outage works again at once. The connections are lost.
            (_, NetworkState::Down) | (NetworkState::Silent, NetworkState::Up) => Some(Break::Loss),
            (_, NetworkState::Up) => None,
        };
        if let Some(broken) = broken {
            apply(&sandbox, &node, &added, profile, broken).await;
        }
        let Some(end) = end else { return };
        before = state;
        tokio::select! {
            () = node.service.clock().sleep_until(added.began + end) => {}
            () = sandbox.log().ended() => return,
        }
    }
}

/// Breaks the sessions behind the network.
async fn apply(sandbox: &Sandbox, node: &Parts, added: &KeptRule, profile: &NetworkProfile, broken: Break) {
    let sockets = sandbox.sockets();
    for (key, mut fields) in sockets.of(&added.rule.matching) {
        let (effect, is_hit) = match broken {
            Break::Silence => {
                sockets.on_silenced(&key, &added.id);
                ("silence", node.gateway.silence_session(&key).await)
            }
            Break::Loss => ("cut", node.gateway.cut_session(&key).await),
        };
        if is_hit {
            sandbox.faults().count_hit(&added.id);
            fields.insert("fault".to_owned(), added.id.as_str().into());
            fields.insert("do".to_owned(), profile.fault(effect));
            sockets.record(RecordKind::Fault, fields);
        }
    }
}
