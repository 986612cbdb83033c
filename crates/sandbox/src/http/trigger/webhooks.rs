//! What happens to webhooks and their messages.

use std::time::Duration;

use domain::address_fault::AddressFault;
use domain::application::Application;
use domain::delivery::DeliveryState;
use domain::outbound::{Reach, WebhookUrl};
use domain::{CampaignId, ClaimId, ClientId, Invalid, Refusal, Rule, Scope};
use serde_json::{Value, json};
use service::Purpose;
use service::deliveries::{Delivery, DeliveryQuery};
use service::drops::RewardRequest;
use service::webhooks::Webhook;

use super::channels;
use super::fields::{GivenFields, wrong};
use super::input::{Input, Outcome, outcome, spelled};
use crate::clock::MoveError;
use crate::fault::{self, DEFAULT_SEED, Effect, Matching};
use crate::fault_rules::RULES_MAX;
use crate::http::answer::Problem;
use crate::http::clock::until_happened;
use crate::http::faults::attempt_effect;
use crate::network_breaks::add_rule;
use crate::timeline::Happened;

/// The consequences of attempts (`docs/sandbox/time.md#moving-it`).
const DEAD: &str = "webhook.dead";
const DISABLED: &str = "webhook.disabled";
/// The fields of a claim that say what happens to its message.
const MESSAGE_FIELDS: [&str; 4] = ["tamper", "duplicate", "late", "cut"];
/// How often a message is looked for whose attempt is under way, and the pause between two looks, in real
/// time.
const LOOKS_MAX: u32 = 40;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of the newest messages among which that of a new claim is searched.
const MESSAGES_SEARCHED: i64 = 100;
/// How an application gets a webhook.
const MAKES_ONE: &str = "`stagedoor trigger webhook --url URL` gives an application one with an address, and `stagedoor \
                         webhook listen --client-id ID --forward-to URL` one without";
/// Maximum number of dead letters until a webhook is disabled. Five days of failure take five.
const DEAD_LETTERS_MAX: usize = 10;

/// The address of a receiver, as in `http://127.0.0.1:3000/hook`; which of them the sandbox reaches, the
/// service knows.
const REACH: Reach = Reach { loopback: true, private: true };
const ADDRESS_RULE: &str =
    "must be an address that begins with https://, or with http:// if the receiver is on this machine";

/// The address of the receiver, if one is given.
pub(super) fn read_webhook(fields: &GivenFields) -> Result<Option<String>, Problem> {
    let Some(url) = fields.text("url") else { return Ok(None) };
    match WebhookUrl::parse(&url, REACH) {
        Ok(_) => Ok(Some(url)),
        Err(Invalid { rule: Rule::WebhookAddress(AddressFault::Scheme), .. }) => {
            Err(Problem::invalid("url", ADDRESS_RULE))
        }
        Err(invalid) => Err(wrong(&invalid, &[])),
    }
}

/// The webhook of an application gets an address, and is enabled. Without an address the webhook keeps its
/// own.
pub(super) async fn webhook(input: Input) -> Result<Outcome, Problem> {
    let url = read_webhook(&input)?;
    let client_id = client_of_claims(&input).await?;
    let Some(url) = url else {
        let switched = input.service.switch_webhook(&client_id, true).await;
        let none = |_| Problem::invalid("url", ADDRESS_RULE);
        switched.map_err(none)?;
        let webhook = input.service.webhook_details(&client_id).await?.webhook;
        return Ok(outcome(json!({ "clientId": client_id, "url": webhook.url })));
    };
    let put = input.service.put_webhook(&client_id, Some(&url), Some(true)).await;
    let (details, secret) = put.map_err(|error| spelled(error, &[]))?;
    Ok(outcome(json!({
        "clientId": client_id,
        "url": details.webhook.url,
        "secret": secret.map(|secret| secret.expose().to_owned()),
    })))
}

/// What happens to the message of a claim, by the fields `tamper`, `duplicate`, `late` and `cut`.
pub(super) fn read_message(fields: &GivenFields) -> Result<Option<Effect>, Problem> {
    let is_given = |value: &&Value| !matches!(value, Value::Null | Value::Bool(false));
    let given: Vec<(&str, &Value)> = MESSAGE_FIELDS
        .into_iter()
        .filter_map(|name| Some((name, fields.0.get(name).filter(is_given)?)))
        .collect();
    if let [(one, _), (other, _), ..] = given[..] {
        return Err(Problem::invalid(other, format!("does not go with {one}")));
    }
    let effect = given.into_iter().next().map(|(name, value)| attempt_effect(name, value.clone()));
    effect.transpose()
}

/// A viewer claims a reward. The fields `tamper`, `duplicate`, `late` and `cut` say what happens to its
/// message.
pub(super) async fn claim(input: Input) -> Result<Outcome, Problem> {
    let effect = read_message(&input)?;
    let wanted = channels::wanted(&input).await?;
    let Some(effect) = effect else { return channels::claim(&input, wanted).await };
    let receiver = receiver(&input, &wanted.campaign_id).await?;
    sending(&input, &receiver).await?;
    let (mut claimed, rule) = claim_with(&input, wanted, &receiver, effect, Some(1)).await?;
    claimed.insert("fault".to_owned(), rule.into());
    Ok(claimed)
}

/// Claims a reward, with a rule for the message about this claim alone. Returns the id of the rule too. A
/// refused claim leaves no rule.
async fn claim_with(
    input: &Input,
    wanted: RewardRequest,
    receiver: &ClientId,
    effect: Effect,
    times: Option<u64>,
) -> Result<(Outcome, String), Problem> {
    let new =
        || ClaimId::generate(input.service.clock().now(), input.service.entropy().bytes(Purpose::Claim));
    let claim_id = wanted.claim_id.clone().unwrap_or_else(new);
    let matching = Matching {
        webhook: Some(receiver.to_string()),
        claim_id: Some(claim_id.to_string()),
        ..Matching::default()
    };
    let rule = add(input, matching, effect, times)?;
    let claimed = channels::claim(input, RewardRequest { claim_id: Some(claim_id), ..wanted }).await;
    match claimed {
        Ok(claimed) => Ok((claimed, rule)),
        Err(problem) => {
            input.sandbox.faults().remove(&rule);
            Err(problem)
        }
    }
}

/// A viewer claims a reward, no attempt reaches the receiver, and the message becomes a dead letter. Moves
/// the clock.
pub(super) async fn dead_letter(input: Input) -> Result<Outcome, Problem> {
    let wanted = channels::wanted(&input).await?;
    let receiver = receiver(&input, &wanted.campaign_id).await?;
    attempted(&input, &receiver).await?;
    let (mut claimed, rule) = claim_with(&input, wanted, &receiver, not_sent()?, None).await?;
    let dead = fail_until_dead(&input, &receiver, claimed["claimId"].as_str()).await;
    input.sandbox.faults().remove(&rule);
    claimed.insert("messageId".to_owned(), dead?.into());
    Ok(at_now(&input, claimed))
}

/// Waits until the message about a claim is dead, and returns its id. Older messages may disable the webhook
/// before.
async fn fail_until_dead(input: &Input, receiver: &ClientId, claim: Option<&str>) -> Result<String, Problem> {
    let query = DeliveryQuery::default();
    let page = input.service.webhook_deliveries(receiver, query, MESSAGES_SEARCHED, None).await?;
    let of_claim = |message: &&Delivery| message.claim_id.as_ref().map(ClaimId::as_str) == claim;
    let message = page.deliveries.iter().find(of_claim);
    let gone = || Problem::unmet("client", format!("{receiver} got no message about the claim"));
    let message = message.ok_or_else(gone)?.message_id.clone();
    let is_about =
        |one: &Happened, name: &str, id: &str| one.ids.get(name).is_some_and(|found| *found == *id);
    until(input, receiver, |one| match one.what {
        DEAD => is_about(one, "messageId", message.as_str()),
        DISABLED => is_about(one, "clientId", receiver.as_str()),
        _ => false,
    })
    .await?;
    let state = input.service.webhook_delivery(receiver, &message).await?.delivery.state;
    let waits = || {
        format!(
            "the webhook of {receiver} was disabled on the way, because every attempt failed. The claim {} is made, \
             and its message {message} waits: `stagedoor trigger webhook --client {receiver}` enables the webhook, \
             and the message is sent at its next attempt, within a day. `stagedoor trigger dead-letter` then \
             needs another claim",
            claim.unwrap_or_default()
        )
    };
    if state == DeliveryState::Dead {
        Ok(message.to_string())
    } else {
        Err(Problem::unmet("client", waits()))
    }
}

/// No attempt reaches the receiver for five days, and the webhook is disabled. Moves the clock.
pub(super) async fn disable_webhook(input: Input) -> Result<Outcome, Problem> {
    let client_id = client_of_claims(&input).await?;
    attempted(&input, &client_id).await?;
    let matching = Matching { webhook: Some(client_id.to_string()), ..Matching::default() };
    let rule = add(&input, matching, not_sent()?, None)?;
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
            None => {
                let wanted = channels::wanted(input).await?;
                let receives = receivers(input, &wanted.campaign_id).await?.contains(client_id);
                let why = || {
                    format!(
                        "{client_id} gets no claims of {}, which the viewer can claim",
                        wanted.campaign_id
                    )
                };
                if !receives {
                    return Err(Problem::unmet("client", why()));
                }
                channels::claim(input, wanted).await?;
            }
        }
        let is_of_it = |one: &Happened| one.ids.get("clientId").is_some_and(|id| *id == *client_id.as_str());
        until(input, client_id, |one| matches!(one.what, DEAD | DISABLED) && is_of_it(one)).await?;
        if input.service.webhook_details(client_id).await?.webhook.disabled.is_some() {
            return Ok(());
        }
    }
    Err(Problem::unmet("client", "the webhook was not disabled after five days of failure"))
}

/// Moves the clock from attempt to attempt until something awaited happens. The first attempt may be under
/// way.
async fn until(
    input: &Input,
    client_id: &ClientId,
    is_awaited: impl Fn(&Happened) -> bool,
) -> Result<(), Problem> {
    for _ in 0..LOOKS_MAX {
        match until_happened(&input.sandbox, &is_awaited).await {
            Ok((_, true)) => return Ok(()),
            Ok((_, false)) | Err(MoveError::NothingAhead) => input.service.clock().sleep(LOOK_EVERY).await,
            Err(error) => return Err(error.into()),
        }
    }
    sending(input, client_id).await?;
    Err(Problem::unmet("client", format!("no message is on its way to the webhook of {client_id}")))
}

/// The applications whose webhooks get the claims of a campaign.
async fn receivers(input: &Input, campaign: &CampaignId) -> Result<Vec<ClientId>, Problem> {
    let owner = input.service.campaign(campaign.clone()).await?.organization_id;
    let mut found = Vec::new();
    for application in applications_of_claims(input).await? {
        let is_owned = application.organization.is_some_and(|one| one.organization_id == owner);
        let webhook = input.service.webhook_details(&application.client_id).await;
        if is_owned && webhook.is_ok_and(|details| details.webhook.receives) {
            found.push(application.client_id);
        }
    }
    Ok(found)
}

/// The first application whose webhook gets the claims of a campaign.
async fn receiver(input: &Input, campaign: &CampaignId) -> Result<ClientId, Problem> {
    let found = receivers(input, campaign).await?;
    for client_id in &found {
        if sending(input, client_id).await.is_ok() {
            return Ok(client_id.clone());
        }
    }
    let none =
        || Problem::unmet("campaign", format!("no webhook gets the claims of {campaign}: {MAKES_ONE}"));
    found.into_iter().next().ok_or_else(none)
}

/// The webhook of an application, if its messages are on their way. The refusal says what to do.
async fn sending(input: &Input, client_id: &ClientId) -> Result<Webhook, Problem> {
    let webhook = match input.service.webhook_details(client_id).await {
        Ok(details) => details.webhook,
        Err(error) if matches!(error.refusal(), Refusal::NotFound(_)) => {
            return Err(Problem::unmet("client", format!("{client_id} has no webhook: {MAKES_ONE}")));
        }
        Err(error) => return Err(error.into()),
    };
    if webhook.disabled.is_some() {
        let enables = format!("`stagedoor trigger webhook --client {client_id}` enables it");
        return Err(Problem::unmet("client", format!("the webhook of {client_id} is disabled: {enables}")));
    }
    Ok(webhook)
}

/// Checks that attempts at the webhook of an application are made: it is enabled, and has an address or a
/// listener.
async fn attempted(input: &Input, client_id: &ClientId) -> Result<(), Problem> {
    let webhook = sending(input, client_id).await?;
    if webhook.url.is_none() && !input.service.has_listener(&webhook.webhook_id) {
        let neither =
            format!("the webhook of {client_id} has neither an address nor a listener: {MAKES_ONE}");
        return Err(Problem::unmet("client", neither));
    }
    Ok(())
}

/// The rule that no attempt is sent.
fn not_sent() -> Result<Effect, Problem> {
    attempt_effect("cut", "before".into())
}

/// Adds a rule for attempts, and returns its id.
fn add(input: &Input, matching: Matching, effect: Effect, times: Option<u64>) -> Result<String, Problem> {
    let rule = fault::Rule { matching, nth: None, probability: None, times, seed: DEFAULT_SEED, effect };
    let full = || Problem::unmet("body", format!("there are {RULES_MAX} fault rules already: remove some"));
    add_rule(&input.sandbox, rule).map(|added| added.id).ok_or_else(full)
}

/// The application of the field `client`; without it the first that may use drops.
async fn client_of_claims(input: &Input) -> Result<ClientId, Problem> {
    if let Some(client_id) = input.given_application("client").await? {
        return Ok(client_id);
    }
    let first = applications_of_claims(input).await?.into_iter().next();
    let none = || Problem::unmet("client", "no application may use drops");
    first.map(|application| application.client_id).ok_or_else(none)
}

/// The applications that may use drops.
async fn applications_of_claims(input: &Input) -> Result<Vec<Application>, Problem> {
    let listed = input.service.applications_by_age().await?;
    let living = listed.into_iter().filter(|life| life.deleted_at.is_none()).map(|life| life.application);
    Ok(living.filter(|application| application.scopes.contains(Scope::Drops)).collect())
}

/// The outcome with the time of the clock.
fn at_now(input: &Input, mut outcome: Outcome) -> Outcome {
    outcome.insert("now".to_owned(), input.sandbox.clock().now().rfc3339().into());
    outcome
}
