//! The fault rules of a sandbox, in the order of their creation.

use std::sync::{Mutex, PoisonError};

use jobs::webhooks::AttemptFault;

use crate::fault::{Effect, Facts, MessageEffect, RequestEffect, Rule, RuleState};

/// Maximum number of rules.
pub(crate) const RULES_MAX: usize = 100;

/// The rules and their states.
#[derive(Debug, Default)]
pub(crate) struct FaultRules(Mutex<RuleList>);

#[derive(Debug, Default)]
struct RuleList {
    rules: Vec<KeptRule>,
    /// Number of rules ever added.
    added: u64,
}

/// A rule with its id and its state.
#[derive(Clone, Debug)]
pub(crate) struct KeptRule {
    /// The id, as in `fault-1`.
    pub id: String,
    /// The rule.
    pub rule: Rule,
    /// Its state.
    pub state: RuleState,
}

impl FaultRules {
    /// Adds a rule; `None` if there are [`RULES_MAX`].
    pub fn add(&self, rule: Rule) -> Option<KeptRule> {
        self.with(|kept| {
            if kept.rules.len() >= RULES_MAX {
                return None;
            }
            kept.added += 1;
            let added = KeptRule { id: format!("fault-{}", kept.added), state: rule.begin(), rule };
            kept.rules.push(added.clone());
            Some(added)
        })
    }

    /// The rules.
    pub fn list(&self) -> Vec<KeptRule> {
        self.with(|kept| kept.rules.clone())
    }

    /// Removes a rule. Returns whether there was one.
    pub fn remove(&self, id: &str) -> bool {
        self.with(|kept| {
            let before = kept.rules.len();
            kept.rules.retain(|rule| rule.id != id);
            kept.rules.len() < before
        })
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.with(|kept| kept.rules.clear());
    }

    /// The id and the effect of the first rule that affects a request.
    pub fn decide_request(&self, request: Facts<'_>) -> Option<(String, RequestEffect)> {
        self.decide(request, Effect::on_request)
    }

    /// The id and the effect of the first rule that affects a message.
    pub fn decide_message(&self, message: Facts<'_>) -> Option<(String, MessageEffect)> {
        self.decide(message, Effect::on_message)
    }

    /// The id and the fault of the first rule that affects an attempt at a webhook.
    pub fn decide_attempt(&self, attempt: Facts<'_>) -> Option<(String, AttemptFault)> {
        self.decide(attempt, Effect::on_attempt)
    }

    fn decide<T>(&self, facts: Facts<'_>, effect_of: fn(&Effect) -> Option<T>) -> Option<(String, T)> {
        self.with(|kept| {
            kept.rules.iter_mut().find_map(|KeptRule { id, rule, state }| {
                let effect = effect_of(&rule.effect)?;
                rule.decide(state, facts).then(|| (id.clone(), effect))
            })
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut RuleList) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
