//! Events in bulk: one on each line, each with the effect of its single call.
//!
//! The body is read while it arrives. While the service runs one batch of lines, the next batch is read, up
//! to the maximum size of a batch; then the peer waits. So a body may have any size, and the lines that
//! arrive while a batch runs share the next batch's sync.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::extract::{FromRequest, Request};
use domain::{CategoryId, ChannelId, Invalid, Language, Refusal};
use schemars::JsonSchema;
use serde::Serialize;
use service::Service;
use service::bulk::{BATCH_MAX, ChannelEvent, Entry, EntryOutcome, KeyedEntry};
use service::channel_events::{Donation, PaidSubscription};
use service::drops::RewardRequest;
use service::idempotency::IdempotencyKey;
use service::lives::LiveReport;
use service::watching::WatchingReport;

use crate::caller::Operator;
use crate::contract::routes::DescribeInput;
use crate::contract::{Operation, Summary};
use crate::envelope::{Answer, Success};
use crate::input::union::tagged;
use crate::input::values::{id, text};
use crate::input::{Body, Fields, Form, FormOf, JsonForm, optional, record, required};
use crate::language::Spoken;
use crate::platform::categories::PutCategory;
use crate::platform::channel_events::PostChat;
use crate::platform::channels::PutChannel;
use crate::platform::lines::{Line, Lines};
use crate::platform::relations::{PutFollower, PutManager};
use crate::{KeepPlace, Web};

/// How long a peer may take to send the next part of its body.
const CHUNK_DEADLINE: Duration = Duration::from_secs(10);
/// Initial capacity: most bodies have no more lines.
const LINES_USUAL: usize = 16;
/// Maximum number of refused lines that an answer lists. The answer counts all of them.
const REFUSED_LISTED_MAX: usize = 1_000;

/// What became of the lines.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Lines that took effect.
    accepted: u64,
    /// Lines that did not, the first 1,000 of them.
    refused: Vec<RefusedLine>,
    /// How many did not.
    refused_count: u64,
}

/// A line that changed nothing, with the answer of its single call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RefusedLine {
    /// Its number, from 1.
    line: u64,
    /// The status of its single call.
    code: u16,
    /// The message of its single call.
    message: String,
    /// The `Stagedoor-Reason` of its single call.
    reason: String,
}

/// A body that is read while it arrives, for as long as it takes. The sender is already authenticated as the
/// operator, because a handler's body comes after its other arguments.
pub struct Upload(axum::body::Body);

impl FromRequest<Web> for Upload {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &Web) -> Result<Self, Infallible> {
        request.extensions().get().inspect(|place: &&KeepPlace| place.keep());
        Ok(Self(request.into_body()))
    }
}

impl DescribeInput for Upload {
    fn describe(operation: &mut Operation) {
        let key = text().about("Like the header `Idempotency-Key` of the single call.");
        operation.takes_lines(&line().shape().and(optional("idempotencyKey", key).shape()));
    }
}

pub(crate) const REPORT: Summary =
    Summary::new("reportEvents", "Many happenings, one a line", "이벤트 일괄 등록");

/// `POST /platform/v1/events`: NDJSON, one entry on each line. Blank lines are skipped. Lines take effect in
/// their order, and a refused line does not affect the others. When the store fails, the lines from there on
/// are refused: with 503 if its disk is full, with 429 if other transactions block for too long, else with
/// 500. If no line was accepted before, the whole request is refused.
pub async fn report(operator: Operator, Spoken(language): Spoken, Upload(body): Upload) -> Answer<Tally> {
    let service = operator.service();
    let mut lines = Lines::new(body, CHUNK_DEADLINE);
    let mut waiting: VecDeque<Numbered> = VecDeque::with_capacity(LINES_USUAL);
    let mut running: Option<Running> = None;
    let mut tally = Tally::default();
    let mut lost_to: Option<Refusal> = None;
    loop {
        if let Some(refusal) = &lost_to {
            tally.add(waiting.drain(..).map(|line| lost(line, refusal)), language);
        } else if running.is_none() && !waiting.is_empty() {
            let next = waiting.iter().map(|(_, line)| line.as_ref().ok());
            let length = service.batch_length(next);
            let batch = waiting.drain(..length).collect();
            running = Some(Box::pin(run(service.clone(), batch)));
        }
        tokio::select! {
            biased;
            (outcomes, error) = finish(&mut running), if running.is_some() => {
                running = None;
                if let Some(error) = error {
                    if tally.accepted == 0 {
                        return Err(error.into());
                    }
                    if !matches!(error, service::Error::Refused(_)) {
                        service.log_failure("the store failed in the middle of a bulk request", &error);
                    }
                    lost_to = Some(error.refusal());
                }
                tally.add(outcomes, language);
            }
            () = lines.more(|line| waiting.push_back(numbered(line))),
                if !lines.ended() && waiting.len() < BATCH_MAX => {}
            else => return Ok(Success(tally)),
        }
    }
}

/// A line's number, and its entry or refusal.
type Numbered = (u64, Result<KeyedEntry, Refusal>);

/// The outcome of each line of a batch, and the failure of the store, if any.
type BatchResult = (Vec<(u64, EntryOutcome)>, Option<service::Error>);

type Running = Pin<Box<dyn Future<Output = BatchResult> + Send>>;

async fn finish(running: &mut Option<Running>) -> BatchResult {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}

async fn run(service: Service, batch: Vec<Numbered>) -> BatchResult {
    let mut reported = Vec::with_capacity(batch.len());
    let mut results = Vec::with_capacity(batch.len());
    for (number, line) in batch {
        results.push((number, line.map(|line| reported.push(line)).err()));
    }
    let count = reported.len();
    let (outcomes, error) = match service.report(reported).await {
        Ok(outcomes) => (outcomes, None),
        Err(error) => (vec![Some(error.refusal()); count], Some(error)),
    };
    let open = results.iter_mut().filter(|(_, outcome)| outcome.is_none());
    open.zip(outcomes).for_each(|((_, result), outcome)| *result = outcome);
    (results, error)
}

fn lost((number, line): Numbered, refusal: &Refusal) -> (u64, EntryOutcome) {
    (number, Some(line.err().unwrap_or_else(|| refusal.clone())))
}

impl Tally {
    fn add(&mut self, outcomes: impl IntoIterator<Item = (u64, EntryOutcome)>, language: Language) {
        for (line, outcome) in outcomes {
            let Some(refusal) = outcome else {
                self.accepted += 1;
                continue;
            };
            self.refused_count += 1;
            if self.refused.len() < REFUSED_LISTED_MAX {
                let refusal = of_line(refusal);
                let (code, message) = (refusal.status(), refusal.message(language).into_owned());
                self.refused.push(RefusedLine { line, code, message, reason: refusal.reason().to_string() });
            }
        }
    }
}

/// The refusal for a line, which has the idempotency key as a field instead of a header.
fn of_line(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Invalid(Invalid { field: "Idempotency-Key", rule }) => {
            Invalid::new("idempotencyKey", rule).into()
        }
        refusal => refusal,
    }
}

fn numbered(Line { number, text }: Line) -> Numbered {
    (number, text.and_then(|text| read(&text)).map_err(Refusal::from))
}

fn read(text: &str) -> Result<KeyedEntry, Invalid> {
    let fields = Fields::parse(text)?;
    let (id, entry) = line().read(&fields)?;
    let name = fields.str("kind")?;
    let key = match fields.optional_str("idempotencyKey")? {
        None => fields.optional_str("key")?,
        key => key,
    };
    // A fast hash of the request is stored with its key. It must not contain a password, which could be
    // guessed from the hash.
    let request = match &entry {
        Entry::Channel(_, Some(_)) => Cow::Owned(fields.without("password")),
        _ => Cow::Borrowed(text),
    };
    let operation = || format!("event {name} {id}");
    let key = key.map(|key| IdempotencyKey::parse(operation(), key, &request)).transpose()?;
    Ok(KeyedEntry { entry, key })
}

/// The entry of a line, and the id of its subject.
fn line() -> impl JsonForm<Out = (String, Entry)> {
    tagged!("kind", {
        "channel" => (channel_id(), PutChannel::form()).map(|(channel, body)| {
            let id = channel.to_string();
            let (record, credentials) = body.record(channel);
            (id, Entry::Channel(record, credentials))
        }),
        "category" => (required("categoryId", id(CategoryId::parse)), PutCategory::form())
            .map(|(id, body)| (id.to_string(), Entry::Category(body.category(id)))),
        "chat" => on_channel(PostChat::form().map(|chat| ChannelEvent::Chat(chat.into()))),
        "donation" => on_channel(Donation::form().map(ChannelEvent::Donation)),
        "subscription" => on_channel(PaidSubscription::form().map(ChannelEvent::Subscription)),
        "follow" => on_channel((follower(), PutFollower::form()).map(|(follower, body)| {
            ChannelEvent::Follow { follower, created: body.created }
        })),
        "unfollow" => on_channel(record!(ChannelEvent::Unfollow { follower: follower() })),
        "manager" => on_channel((manager(), PutManager::form()).map(|(manager, body)| {
            ChannelEvent::Manager { manager, role: body.user_role }
        })),
        "unmanager" => on_channel(record!(ChannelEvent::Unmanager { manager: manager() })),
        "live" => on_channel(LiveReport::form().map(ChannelEvent::Live)),
        "liveEnd" => on_channel(().map(|()| ChannelEvent::LiveEnd)),
        // These kinds name the channel themselves.
        "claim" => on_channel(RewardRequest::form().map(ChannelEvent::Claim)),
        "watching" => on_channel(WatchingReport::form().map(ChannelEvent::Watching)),
    })
}

/// An event on the channel that the line names.
fn on_channel(form: impl JsonForm<Out = ChannelEvent>) -> impl JsonForm<Out = (String, Entry)> {
    (channel_id(), form).map(|(channel, event)| (channel.to_string(), Entry::Event(channel, event)))
}

fn channel_id() -> impl JsonForm<Out = ChannelId> {
    required("channelId", id(ChannelId::parse))
}

fn follower() -> impl JsonForm<Out = ChannelId> {
    required("followerChannelId", id(ChannelId::parse))
}

fn manager() -> impl JsonForm<Out = ChannelId> {
    required("managerChannelId", id(ChannelId::parse))
}
