//! A storm: many events for a while, by the operations of the single events.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::ChannelId;
use domain::chat::{DonationType, Emojis, MessageText};
use domain::event::EventType;
use serde_json::{Map, Value, json};
use service::Service;
use service::channel_events::{Donation, PaidSubscription};

use super::events::TIER_NAMES;
use super::fields::GivenFields;
use super::input::{Input, Outcome, outcome};
use crate::fault::DEFAULT_SEED;
use crate::http::answer::Problem;
use crate::log::{NewRecord, RecordKind};
use crate::random::draw;

/// Maximum number of events a second.
const RATE_MAX: i64 = 1_000;
const RATE: i64 = 10;
/// Maximum length of a storm, in real time.
const DURATION_MAX: Duration = Duration::from_secs(600);
const DURATION: Duration = Duration::from_secs(10);
/// Maximum weight of a kind in the mix.
const WEIGHT_MAX: u64 = 1_000;
/// How often the progress is recorded.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How long a storm may last beyond its duration, if the service is slower than the rate.
const OVERRUN_MAX: Duration = Duration::from_secs(10);
/// Maximum number of different errors in the answer.
const ERRORS_MAX: usize = 20;
/// The kinds, with their weights without `mix`.
const KINDS: [(&str, u64); 3] = [("chat", 8), ("donation", 1), ("subscription", 1)];

/// What a storm consists of.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    rate: u32,
    duration: Duration,
    /// In the order of [`KINDS`].
    weights: [u64; 3],
    seed: u64,
}

/// One event of a storm.
#[derive(Clone, Debug, PartialEq)]
struct Planned {
    /// An index of [`KINDS`].
    kind: usize,
    /// From 0 to below 1: who does it, and how much.
    who: f64,
    amount: f64,
}

/// What came of the events so far.
#[derive(Debug, Default)]
struct Tally {
    sent: [u64; 3],
    errors: BTreeMap<String, u64>,
    failed: u64,
    /// From the moment at which an event was to be triggered to its publication, in microseconds.
    took_us: Vec<u64>,
}

/// Many events for a while. Answers at the end.
pub(super) async fn storm(input: Input) -> Result<Outcome, Problem> {
    let plan = read_storm(&input)?;
    let channel = input.streamer("channel").await?;
    let viewers = viewers(&input, &channel).await?;
    let _only = input
        .sandbox
        .storming()
        .ok_or_else(|| Problem::new(http::StatusCode::CONFLICT, "a storm is running: wait for its end"))?;
    let mut sessions = Map::new();
    for event in EventType::ALL {
        sessions.insert(event.name().to_owned(), input.subscribed(event, &channel).await?.into());
    }
    let clock = input.service.clock().clone();
    let began = clock.monotonic();
    let (tally, unsent) = blow(&input, &plan, &channel, &viewers).await;
    let lasted = clock.monotonic().saturating_sub(began);
    Ok(outcome(summary(&plan, &channel, sessions, tally, unsent, lasted)))
}

/// Triggers the events at their times, one after the other: their order, and so what each of them finds, is
/// decided by the seed alone. Returns what came of them, and how many were not triggered in time.
async fn blow(input: &Input, plan: &Plan, channel: &ChannelId, viewers: &[ChannelId]) -> (Tally, u64) {
    let clock = input.service.clock();
    let began = clock.monotonic();
    let (mut tally, mut random, mut reported) = (Tally::default(), plan.seed, began);
    let total = plan.total();
    for number in 0..total {
        let at = began + plan.offset(number);
        clock.sleep_until(at).await;
        let now = clock.monotonic();
        if now > began + plan.duration + OVERRUN_MAX {
            return (tally, total - number);
        }
        if now >= reported + PROGRESS_EVERY {
            reported = now;
            progress(input, number, total, &tally);
        }
        let planned = plan.draw(&mut random);
        let who = viewers[pick(planned.who, viewers.len())].clone();
        let outcome = let_happen(&input.service, channel, who, &planned, number).await;
        tally.add(planned.kind, outcome, clock.monotonic().saturating_sub(at));
    }
    progress(input, total, total, &tally);
    (tally, 0)
}

/// Records how far a storm is.
fn progress(input: &Input, triggered: u64, total: u64, tally: &Tally) {
    let fields = outcome(json!({
        "trigger": "storm", "triggered": triggered, "of": total, "errors": tally.failed,
    }));
    let at = input.sandbox.clock().now();
    input.sandbox.log().add(NewRecord { at, kind: RecordKind::Trigger, fields });
}

async fn let_happen(
    service: &Service,
    channel: &ChannelId,
    who: ChannelId,
    planned: &Planned,
    number: u64,
) -> Result<(), Problem> {
    let text = format!("storm {number}");
    match planned.kind {
        0 => {
            let text = MessageText::parse(text).map_err(service::Error::from)?;
            service.post_chat(channel, &who, text, Emojis::new(), None).await?;
        }
        1 => {
            let donation = Donation {
                donation_type: DonationType::Chat,
                donator: Some(who),
                pay_amount: (1_000 * (1 + pick(planned.amount, 100))).to_string(),
                donation_text: text,
                emojis: Emojis::new(),
            };
            service.donate(channel, donation, None).await?;
        }
        _ => {
            let tier = pick(planned.amount, TIER_NAMES.len());
            let paid = PaidSubscription {
                subscriber: who,
                tier_no: if tier == 0 { 1 } else { 2 },
                tier_name: TIER_NAMES[tier].to_owned(),
                month: 1 + (planned.amount * 24.0) as i64,
                created: None,
            };
            service.subscribe_paid(channel, paid, None).await?;
        }
    }
    Ok(())
}

impl Plan {
    fn total(&self) -> u64 {
        let ms = u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX);
        (u64::from(self.rate).saturating_mul(ms) / 1_000).max(1)
    }

    /// When an event is triggered, after the beginning.
    fn offset(&self, number: u64) -> Duration {
        Duration::from_nanos(number.saturating_mul(1_000_000_000) / u64::from(self.rate))
    }

    /// The next event. The same seed draws the same events.
    fn draw(&self, random: &mut u64) -> Planned {
        let all: u64 = self.weights.iter().sum();
        let mut drawn = draw(random) * all as f64;
        let kind = self.weights.iter().position(|weight| {
            drawn -= *weight as f64;
            drawn < 0.0
        });
        Planned { kind: kind.unwrap_or(0), who: draw(random), amount: draw(random) }
    }
}

impl Tally {
    fn add(&mut self, kind: usize, outcome: Result<(), Problem>, took: Duration) {
        match outcome {
            Ok(()) => {
                self.sent[kind] += 1;
                self.took_us.push(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            }
            Err(problem) => {
                self.failed += 1;
                let text = problem.to_string();
                if self.errors.len() < ERRORS_MAX || self.errors.contains_key(&text) {
                    *self.errors.entry(text).or_default() += 1;
                }
            }
        }
    }
}

fn summary(
    plan: &Plan,
    channel: &ChannelId,
    sessions: Map<String, Value>,
    mut tally: Tally,
    unsent: u64,
    lasted: Duration,
) -> Value {
    tally.took_us.sort_unstable();
    let ms = |us: u64| us as f64 / 1_000.0;
    let percentile = |percent: usize| {
        let rank = (tally.took_us.len() * percent).div_ceil(100).max(1) - 1;
        tally.took_us.get(rank).copied().map(ms)
    };
    let counts = KINDS.iter().zip(tally.sent).map(|((name, _), count)| ((*name).to_owned(), count.into()));
    json!({
        "channelId": channel,
        "seed": plan.seed,
        "rate": plan.rate,
        "events": tally.sent.iter().sum::<u64>(),
        "counts": counts.collect::<Map<String, Value>>(),
        "sessions": sessions,
        "failed": tally.failed,
        "errors": tally.errors,
        "unsent": unsent,
        "tookMs": lasted.as_millis() as u64,
        "latencyMs": {
            "p50": percentile(50),
            "p95": percentile(95),
            "p99": percentile(99),
            "max": tally.took_us.last().copied().map(ms),
        },
    })
}

/// An index below `count`.
fn pick(drawn: f64, count: usize) -> usize {
    ((drawn * count as f64) as usize).min(count.saturating_sub(1))
}

/// The plan of a storm.
pub(super) fn read_storm(fields: &GivenFields) -> Result<Plan, Problem> {
    let rate = fields.integer("rate").unwrap_or(RATE);
    let rate = u32::try_from(rate).ok().filter(|rate| (1..=RATE_MAX).contains(&i64::from(*rate)));
    let rule = format!("must be a number of events a second from 1 to {RATE_MAX}");
    let rate = rate.ok_or_else(|| Problem::invalid("rate", rule))?;
    let duration = fields.span("duration").unwrap_or(DURATION);
    if duration.is_zero() || duration > DURATION_MAX {
        return Err(Problem::invalid("duration", "must be a duration like 10s, of at most 10m"));
    }
    let seed = fields.integer("seed").map(u64::try_from);
    let seed = seed.transpose().map_err(|_| Problem::invalid("seed", "must be a whole number from 0 on"))?;
    let seed = seed.unwrap_or(DEFAULT_SEED);
    Ok(Plan { rate, duration, weights: weights(fields)?, seed })
}

/// The weights of `mix`: an object, or its text, as in `{"chat":8,"donation":1}`.
fn weights(fields: &GivenFields) -> Result<[u64; 3], Problem> {
    let Some(mix) = fields.object("mix") else { return Ok(KINDS.map(|(_, weight)| weight)) };
    let mut weights = [0; 3];
    for (name, weight) in &mix {
        let field = format!("mix.{name}");
        let names = KINDS.map(|(name, _)| name).join(", ");
        let kind = KINDS.iter().position(|(known, _)| known == name);
        let kind = kind.ok_or_else(|| Problem::invalid(&field, format!("must be one of {names}")))?;
        let rule = format!("must be a whole number from 0 to {WEIGHT_MAX}");
        let weight = weight.as_u64().filter(|weight| *weight <= WEIGHT_MAX);
        weights[kind] = weight.ok_or_else(|| Problem::invalid(&field, rule))?;
    }
    if weights.iter().all(|weight| *weight == 0) {
        return Err(Problem::invalid("mix", "must have a weight above 0"));
    }
    Ok(weights)
}

/// The people who do it: one, or all besides the owner of the channel.
async fn viewers(input: &Input, channel: &ChannelId) -> Result<Vec<ChannelId>, Problem> {
    if input.text("from").is_some() {
        return Ok(vec![input.viewer("from", channel).await?]);
    }
    let people = input.people_besides(channel).await?;
    if people.is_empty() {
        return Err(Problem::invalid("from", "must name a channel, because there is no second person yet"));
    }
    Ok(people)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let weights = [8, 1, 1];
        Plan { rate: 50, duration: Duration::from_secs(2), weights, seed: 7 }
    }

    #[test]
    fn a_storm_has_its_rate_for_its_duration() {
        let storm = plan();
        assert_eq!((storm.total(), storm.offset(50)), (100, Duration::from_secs(1)));
        let short = Plan { rate: 1, duration: Duration::from_millis(10), ..plan() };
        assert_eq!(short.total(), 1);
    }

    #[test]
    fn the_same_seed_draws_the_same_mix() {
        let drawn = |storm: &Plan| {
            let mut random = storm.seed;
            (0..1_000).map(|_| storm.draw(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(&plan()), drawn(&plan()));
        assert_ne!(drawn(&plan()), drawn(&Plan { seed: 8, ..plan() }));
        let chats = drawn(&plan()).iter().filter(|planned| planned.kind == 0).count();
        assert!((750..=850).contains(&chats), "{chats}");
        let donations = drawn(&Plan { weights: [0, 1, 0], ..plan() });
        assert!(donations.iter().all(|planned| planned.kind == 1));
    }

    #[test]
    fn a_summary_has_percentiles_and_counts() {
        let mut tally = Tally::default();
        (1..=100).for_each(|ms| tally.add(0, Ok(()), Duration::from_millis(ms)));
        tally.add(1, Err(Problem::invalid("x", "y")), Duration::ZERO);
        let channel = ChannelId::stored("a".to_owned());
        let summary = summary(&plan(), &channel, Map::new(), tally, 0, Duration::from_secs(2));
        assert_eq!(summary["latencyMs"], json!({ "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0 }));
        assert_eq!((&summary["counts"]["chat"], &summary["failed"]), (&json!(100), &json!(1)));
        assert_eq!(summary["errors"], json!({ "400 x: y": 1 }));
    }
}
