//! What happens to webhooks and their messages.

use std::time::Duration;

use domain::delivery::DeliveryState;
use domain::{ClientId, Scope};
use serde_json::{Map, Value, json};
use service::deliveries::DeliveryQuery;

use super::channels;
use super::input::{Input, Outcome, outcome, spelled};
use crate::clock::MoveError;
use crate::fault::{DEFAULT_SEED, Effect, Matching, Rule};
use crate::fault_rules::RULES_MAX;
use crate::http::answer::Problem;
use crate::http::clock::until_consequence;
use crate::http::faults::attempt_effect;
use crate::network_breaks::add_rule;

/// The consequences of attempts (`docs/sandbox/time.md#moving-it`).
const DEAD: &str = "webhook.dead";
const DISABLED: &str = "webhook.disabled";
/// The fields of a claim that say what happens to its message.
const MESSAGE_FIELDS: [&str; 4] = ["tamper", "duplicate", "late", "cut"];
/// How often a message is looked for whose attempt is under way, and the pause between two looks, in real
/// time.
const LOOKS_MAX: u32 = 40;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum number of applications that are searched for one with drops.
const APPLICATIONS_MAX: i64 = 100;
/// Maximum number of dead letters until a webhook is disabled. Five days of failure take five.
const DEAD_LETTERS_MAX: usize = 10;

/// The webhook of an application gets an address.
pub(super) async fn webhook(input: Input) -> Result<Outcome, Problem> {
    let client_id = client_of_claims(&input).await?;
    let url =
        input.text("url").ok_or_else(|| Problem::invalid("url", "must be the address of the receiver"))?;
    let put = input.service.put_webhook(&client_id, Some(&url), Some(true)).await;
    let (details, secret) = put.map_err(|error| spelled(error, &[]))?;
    Ok(outcome(json!({
        "clientId": client_id,
        "url": details.webhook.url,
        "secret": secret.map(|secret| secret.expose().to_owned()),
    })))
}

/// A viewer claims a reward. The fields `tamper`, `duplicate`, `late` and `cut` say what happens to its
/// message.
pub(super) async fn claim(input: Input) -> Result<Outcome, Problem> {
    let given = MESSAGE_FIELDS.into_iter().filter_map(|name| Some((name, input.fields.get(name)?)));
    let given: Map<String, Value> = given.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let rule = match given.is_empty() {
        true => None,
        false => Some(add(&input, None, attempt_effect(given)?, Some(1))?),
    };
    let claimed = channels::claim(&input).await;
    if let (Err(_), Some(rule)) = (&claimed, &rule) {
        input.sandbox.faults().remove(rule);
    }
    let mut claimed = claimed?;
    claimed.extend(rule.map(|rule| ("fault".to_owned(), Value::from(rule))));
    Ok(claimed)
}

/// A viewer claims a reward, no attempt reaches the receiver, and the message becomes a dead letter. Moves
/// the clock.
pub(super) async fn dead_letter(input: Input) -> Result<Outcome, Problem> {
    let rule = add(&input, None, not_sent()?, None)?;
    let result = fail_until_dead(&input).await;
    input.sandbox.faults().remove(&rule);
    Ok(at_now(&input, result?))
}

async fn fail_until_dead(input: &Input) -> Result<Outcome, Problem> {
    let claimed = channels::claim(input).await?;
    until(input, &[DEAD]).await?;
    Ok(claimed)
}

/// No attempt reaches the receiver for five days, and the webhook is disabled. Moves the clock.
pub(super) async fn disable_webhook(input: Input) -> Result<Outcome, Problem> {
    let client_id = client_of_claims(&input).await?;
    let rule = add(&input, Some(&client_id), not_sent()?, None)?;
    let result = fail_until_disabled(&input, &client_id).await;
    input.sandbox.faults().remove(&rule);
    result?;
    Ok(at_now(&input, outcome(json!({ "clientId": client_id }))))
}

async fn fail_until_disabled(input: &Input, client_id: &ClientId) -> Result<(), Problem> {
    for _ in 0..DEAD_LETTERS_MAX {
        let page = input.service.webhook_deliveries(client_id, DeliveryQuery::default(), 1, None).await?;
        match page.deliveries.first() {
            Some(newest) if newest.state == DeliveryState::Waiting => {}
            // A message is sent again, because viewers claim each reward once.
            Some(newest) => _ = input.service.resend_delivery(client_id, &newest.message_id).await?,
            None => _ = channels::claim(input).await?,
        }
        if until(input, &[DEAD, DISABLED]).await? == DISABLED {
            return Ok(());
        }
        if input.service.webhook_details(client_id).await?.webhook.disabled.is_some() {
            return Ok(());
        }
    }
    Err(Problem::unmet("client", "the webhook was not disabled after five days of failure"))
}

/// Moves the clock from attempt to attempt until one of them has one of these consequences. The first attempt
/// may be under way.
async fn until(input: &Input, words: &[&'static str]) -> Result<&'static str, Problem> {
    for _ in 0..LOOKS_MAX {
        match until_consequence(&input.sandbox, words).await {
            Ok((_, Some(word))) => return Ok(word),
            Ok((_, None)) | Err(MoveError::NothingAhead) => input.service.clock().sleep(LOOK_EVERY).await,
            Err(error) => return Err(error.into()),
        }
    }
    let none = "no message is on its way to a webhook: `stagedoor trigger webhook --url URL` gives one an address, and \
                `stagedoor webhook listen` fetches messages without one";
    Err(Problem::unmet("client", none))
}

/// The rule that no attempt is sent.
fn not_sent() -> Result<Effect, Problem> {
    attempt_effect(Map::from_iter([("cut".to_owned(), Value::from("before"))]))
}

/// Adds a rule for attempts, and returns its id.
fn add(
    input: &Input,
    webhook: Option<&ClientId>,
    effect: Effect,
    times: Option<u64>,
) -> Result<String, Problem> {
    let matching = Matching { webhook: webhook.map(ToString::to_string), ..Matching::default() };
    let rule = Rule { matching, nth: None, probability: None, times, seed: DEFAULT_SEED, effect };
    let full = || Problem::unmet("body", format!("there are {RULES_MAX} fault rules already: remove some"));
    add_rule(&input.sandbox, rule).map(|added| added.id).ok_or_else(full)
}

/// The application of the field `client`; without it the first that may use drops.
async fn client_of_claims(input: &Input) -> Result<ClientId, Problem> {
    if let Some(client_id) = input.given_application("client").await? {
        return Ok(client_id);
    }
    let page = input.service.applications(None, APPLICATIONS_MAX, None).await?;
    let mut living = page.applications.into_iter().filter(|life| life.deleted_at.is_none());
    let found = living.find(|life| life.application.scopes.contains(Scope::Drops));
    let none = || Problem::unmet("client", "no application may use drops");
    found.map(|life| life.application.client_id).ok_or_else(none)
}

/// The outcome with the time of the clock.
fn at_now(input: &Input, mut outcome: Outcome) -> Outcome {
    outcome.insert("now".to_owned(), input.sandbox.clock().now().rfc3339().into());
    outcome
}
