//! The fault rules of a sandbox, in the order of their creation.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use service::attempt_faults::AttemptFault;
use tokio::task::AbortHandle;

use crate::fault::{Effect, Facts, MessageEffect, RequestEffect, Rule, RuleState};
use crate::network::{NetworkProfile, NetworkState};

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
    /// Until when the service is away, on the monotonic clock.
    away_until: Duration,
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
    /// When it was added, on the monotonic clock.
    pub began: Duration,
    /// Works for the rule, and ends with it.
    task: Option<AbortHandle>,
}

/// What a network does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// It arrives after this time.
    After(Duration),
    /// Its connection is lost after this time.
    LostAfter(Duration),
    /// It waits until the rule is gone.
    Held,
}

impl FaultRules {
    /// Adds a rule; `None` if there are [`RULES_MAX`].
    pub fn add(&self, rule: Rule, now: Duration) -> Option<KeptRule> {
        self.with(|kept| {
            if kept.rules.len() >= RULES_MAX {
                return None;
            }
            kept.added += 1;
            let (id, state) = (format!("fault-{}", kept.added), rule.begin());
            let added = KeptRule { id, state, rule, began: now, task: None };
            kept.rules.push(added.clone());
            Some(added)
        })
    }

    /// The service answers no call of a client until then, on the monotonic clock.
    pub fn go_away(&self, until: Duration) {
        self.with(|kept| kept.away_until = kept.away_until.max(until));
    }

    /// Whether the service answers no call of a client.
    pub fn is_away(&self, now: Duration) -> bool {
        self.with(|kept| now < kept.away_until)
    }

    /// The rules.
    pub fn list(&self) -> Vec<KeptRule> {
        self.with(|kept| kept.rules.clone())
    }

    /// Whether there is a rule with this id.
    pub fn has(&self, id: &str) -> bool {
        self.with(|kept| kept.rules.iter().any(|rule| rule.id == id))
    }

    /// Removes a rule. Returns whether there was one.
    pub fn remove(&self, id: &str) -> bool {
        self.with(|kept| {
            let removed = kept.rules.iter().position(|rule| rule.id == id);
            removed.map(|at| kept.rules.remove(at).end()).is_some()
        })
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.with(|kept| kept.rules.drain(..).for_each(KeptRule::end));
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

    /// Gives a rule its task. The task ends at once if the rule is gone.
    pub fn attach(&self, id: &str, task: AbortHandle) {
        self.with(|kept| match kept.rules.iter_mut().find(|rule| rule.id == id) {
            Some(rule) => rule.task = Some(task),
            None => task.abort(),
        });
    }

    /// Counts a hit of a rule.
    pub fn count_hit(&self, id: &str) {
        self.with(|kept| {
            kept.rules.iter_mut().filter(|rule| rule.id == id).for_each(|rule| rule.state.hits += 1);
        });
    }

    /// What the first network of a caller does to a request, with the id of its rule and its profile. A lost
    /// request is a hit.
    pub fn pass_request(
        &self,
        request: Facts<'_>,
        now: Duration,
    ) -> Option<(String, &'static NetworkProfile, Passage)> {
        self.with(|kept| {
            let KeptRule { id, rule, state, began, .. } = network_of(kept, request.client_id, request.user)?;
            let profile = rule.effect.network()?;
            let at = now.saturating_sub(*began);
            let (network, end) = profile.state(rule.seed, at);
            let passage = match network {
                NetworkState::Up => Passage::After(rule.latency(state)?),
                NetworkState::Silent => {
                    end.map_or(Passage::Held, |end| Passage::LostAfter(end.saturating_sub(at)))
                }
                NetworkState::Down => Passage::LostAfter(Duration::ZERO),
            };
            state.hits += u64::from(network != NetworkState::Up);
            Some((id.clone(), profile, passage))
        })
    }

    /// The latency of the first network of a session.
    pub fn latency(&self, client_id: &str, user: Option<&str>) -> Option<Duration> {
        self.with(|kept| {
            let KeptRule { rule, state, .. } = network_of(kept, Some(client_id), user)?;
            rule.latency(state)
        })
    }

    fn decide<T>(&self, facts: Facts<'_>, effect_of: fn(&Effect) -> Option<T>) -> Option<(String, T)> {
        self.with(|kept| {
            kept.rules.iter_mut().find_map(|KeptRule { id, rule, state, .. }| {
                let effect = effect_of(&rule.effect)?;
                rule.decide(state, facts).then(|| (id.clone(), effect))
            })
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut RuleList) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeptRule {
    fn end(self) {
        if let Some(task) = self.task {
            task.abort();
        }
    }
}

/// The first network that a caller or the owner of a session is behind.
fn network_of<'a>(
    kept: &'a mut RuleList,
    client_id: Option<&str>,
    user: Option<&str>,
) -> Option<&'a mut KeptRule> {
    kept.rules
        .iter_mut()
        .find(|kept| kept.rule.effect.network().is_some() && kept.rule.matching.fits_caller(client_id, user))
}
