//! A rule in the form of the sandbox API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::Service;

use super::effect::{Meant, NewEffect};
use crate::fault::{DEFAULT_SEED, EVENT_NAMES, Effect, Matching, Rule};
use crate::fault_rules::KeptRule;
use crate::http::answer::Problem;
use crate::http::names;
use crate::network::NetworkProfile;

/// Maximum length of a text of a rule, in characters.
const TEXT_CHARS_MAX: usize = 512;

/// A rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewRule {
    /// The requests or messages that it means. Default: all.
    #[serde(default, rename = "match")]
    matching: NewMatching,
    /// Begins with the `nth` of these. Without `times` it affects only that one.
    nth: Option<u64>,
    /// The share of these that is affected, from 0 to 1.
    probability: Option<f64>,
    /// Maximum number of affected ones.
    times: Option<u64>,
    /// The seed of the decisions by probability.
    seed: Option<u64>,
    /// What happens.
    #[serde(rename = "do")]
    effect: Option<NewEffect>,
    /// The name of a network profile, instead of `do`: the requests and the sockets pass this network.
    profile: Option<String>,
}

/// The requests or messages that a rule means.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewMatching {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<String>,
    /// A trigger sets it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    claim_id: Option<String>,
}

/// Checks a rule.
pub(super) fn checked(rule: NewRule) -> Result<Rule, Problem> {
    let NewRule { matching, nth, probability, times, seed, effect, profile } = rule;
    for (field, number) in [("nth", nth), ("times", times)] {
        if number == Some(0) {
            return Err(Problem::invalid(field, "must be at least 1"));
        }
    }
    if probability.is_some_and(|probability| !(0.0..=1.0).contains(&probability)) {
        return Err(Problem::invalid("probability", "must be a number from 0 to 1"));
    }
    let matching = matching_of(matching)?;
    let meant = match &matching {
        Matching { webhook: Some(_), .. } => Meant::Attempts,
        Matching { event: Some(_), .. } | Matching { channel_id: Some(_), .. } => Meant::Messages,
        _ => Meant::Any,
    };
    let effect = match (effect, profile) {
        (Some(effect), None) => effect.checked(meant)?,
        (None, Some(name)) => Effect::Network(network(&name)?),
        (Some(_), Some(_)) => return Err(Problem::invalid("profile", "does not go with do")),
        (None, None) => return Err(Problem::invalid("do", "must be given, or profile")),
    };
    check_together(&matching, &effect)?;
    let choice = [("nth", nth.is_some()), ("times", times.is_some()), ("probability", probability.is_some())];
    if let (Effect::Network(_), Some((field, _))) = (&effect, choice.into_iter().find(|(_, given)| *given)) {
        return Err(Problem::invalid(field, "does not go with profile"));
    }
    let seed = seed.unwrap_or(DEFAULT_SEED);
    Ok(Rule { matching, nth, probability, times, seed, effect })
}

fn matching_of(matching: NewMatching) -> Result<Matching, Problem> {
    let NewMatching { client_id, user, method, path, event, channel_id, webhook, claim_id } = matching;
    let texts = [
        ("clientId", &client_id),
        ("user", &user),
        ("method", &method),
        ("path", &path),
        ("channelId", &channel_id),
        ("webhook", &webhook),
    ];
    for (field, text) in texts {
        if text.as_ref().is_some_and(|text| text.is_empty() || text.chars().count() > TEXT_CHARS_MAX) {
            let rule = format!("must be 1 to {TEXT_CHARS_MAX} characters");
            return Err(Problem::invalid(&format!("match.{field}"), rule));
        }
    }
    if let Some(path) = &path {
        let exact = path.strip_suffix('*').unwrap_or(path);
        if exact == "/sandbox" || exact.starts_with("/sandbox/") || path == "/" {
            let rule = "must be a path of the service: no rule hits the sandbox's own calls and pages";
            return Err(Problem::invalid("match.path", rule));
        }
        if !path.starts_with('/') || exact.contains('*') {
            let rule = "must be a path like /open/v1/lives, or its beginning and *, like /open/v1/*";
            return Err(Problem::invalid("match.path", rule));
        }
    }
    if event.as_ref().is_some_and(|event| !EVENT_NAMES.contains(&event.as_str())) {
        return Err(Problem::invalid("match.event", format!("must be one of {}", EVENT_NAMES.join(", "))));
    }
    let method = method.map(|method| method.to_ascii_uppercase());
    Ok(Matching { client_id, user, method, path, event, channel_id, webhook, claim_id })
}

/// Checks that what a rule means can suffer what it does.
fn check_together(matching: &Matching, effect: &Effect) -> Result<(), Problem> {
    let Matching { user, method, path, event, channel_id, webhook, .. } = matching;
    let of_requests = [("match.method", method), ("match.path", path)];
    let of_messages = [("match.event", event), ("match.channelId", channel_id)];
    let (wrong, rule) = match effect {
        Effect::Request(_) => (of_messages.to_vec(), "does not go with a fault of requests"),
        Effect::Message(_) => (of_requests.to_vec(), "does not go with a fault of socket messages"),
        Effect::Attempt(_) => {
            let wrong = [&of_requests[..], &of_messages, &[("match.user", user)]].concat();
            (wrong, "does not go with a fault of webhooks")
        }
        Effect::Network(_) => {
            let wrong = [&of_requests[..], &of_messages, &[("match.webhook", webhook)]].concat();
            (wrong, "does not go with profile")
        }
    };
    if let Some((field, _)) = wrong.into_iter().find(|(_, value)| value.is_some()) {
        return Err(Problem::invalid(field, rule));
    }
    if event.as_deref() == Some("SYSTEM/connected") && channel_id.is_some() {
        return Err(Problem::invalid(
            "match.channelId",
            "does not go with SYSTEM/connected, which has no channel",
        ));
    }
    Ok(())
}

impl Rule {
    /// The rule with the ids of the people, applications, channels and webhooks that it names.
    ///
    /// # Errors
    /// A name is unknown, or the name of several.
    pub(super) async fn with_ids(mut self, service: &Service) -> Result<Self, Problem> {
        let Matching { client_id, user, channel_id, webhook, .. } = &mut self.matching;
        if let Some(name) = client_id {
            *name = names::application(service, "match.clientId", name).await?.client_id.to_string();
        }
        if let Some(name) = webhook {
            *name = names::webhook(service, "match.webhook", name).await?;
        }
        for (field, name) in [("match.user", user), ("match.channelId", channel_id)] {
            if let Some(name) = name {
                *name = names::channel(service, field, name).await?.to_string();
            }
        }
        Ok(self)
    }
}

fn network(name: &str) -> Result<&'static NetworkProfile, Problem> {
    NetworkProfile::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = NetworkProfile::all().iter().map(|profile| profile.name).collect();
        Problem::invalid("profile", format!("must be one of {}", names.join(", ")))
    })
}

/// A rule as the sandbox API shows it.
pub(super) fn shown(KeptRule { id, rule, state, .. }: &KeptRule) -> Value {
    let Rule { matching, nth, probability, times, seed, effect } = rule;
    let Matching { client_id, user, method, path, event, channel_id, webhook, claim_id } = matching.clone();
    if let Some(profile) = effect.network() {
        let matching = NewMatching { client_id, user, ..NewMatching::default() };
        let name = profile.name;
        return json!({ "id": id, "hits": state.hits, "match": matching, "seed": seed, "profile": name });
    }
    json!({
        "id": id,
        "hits": state.hits,
        "match": NewMatching { client_id, user, method, path, event, channel_id, webhook, claim_id },
        "nth": nth,
        "probability": probability,
        "times": times,
        "seed": seed,
        "do": effect.to_json(),
    })
}
