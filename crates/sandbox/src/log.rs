//! The bounded record of what happened in a sandbox, in order: requests and answers, events, frames, webhook
//! deliveries, moves of the clock, triggers and faults. No record holds a secret.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use domain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::time_text;

/// Maximum number of kept records. The oldest ones are dropped first.
pub const RECORDS_MAX: usize = 20_000;
/// Maximum size of the fields of all kept records, in bytes of JSON.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// A REST call, or a request of a page or a socket, with its answer.
    Request,
    /// An event on its way to one session, or the reason why the session did not receive it.
    Event,
    /// A message on a socket, in either direction.
    Frame,
    /// An attempt to deliver a webhook message.
    Delivery,
    /// A message to a person, without a mail hook. Its link is shown, because nothing else sends it.
    Mail,
    /// Something that became due as the clock moved.
    Due,
    /// The clock was moved, or runs in another mode.
    Clock,
    /// Something was triggered.
    Trigger,
    /// A fault was injected.
    Fault,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The position in the log. A later record has a higher mark.
    pub mark: u64,
    /// When it happened, on the sandbox's clock.
    #[serde(serialize_with = "time_text::rfc3339")]
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Its kind.
    pub kind: RecordKind,
    /// What happened, by names that depend on the kind.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A record before it is in the log.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// When it happened, on the sandbox's clock.
    pub at: Timestamp,
    /// Its kind.
    pub kind: RecordKind,
    /// What happened.
    pub fields: Map<String, Value>,
}

/// The record of what happened. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Log(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    kept: Mutex<Kept>,
    /// The mark of the latest record.
    latest: watch::Sender<u64>,
    /// Whether no further record is awaited, because the node stops.
    has_ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Kept {
    records: VecDeque<Packed>,
    bytes: usize,
}

/// A kept record. Its fields are text, which takes a third of the memory of a map.
#[derive(Clone, Debug)]
struct Packed {
    mark: u64,
    at: Timestamp,
    kind: RecordKind,
    /// A JSON object.
    fields: Arc<str>,
}

impl Packed {
    fn unpack(&self) -> Arc<Record> {
        // The text was made from a map of the same type.
        let fields = serde_json::from_str(&self.fields).unwrap_or_default();
        Arc::new(Record { mark: self.mark, at: self.at, kind: self.kind, fields })
    }
}

impl Default for Log {
    fn default() -> Self {
        let (latest, has_ended) = (watch::Sender::new(0), watch::Sender::new(false));
        Self(Arc::new(Shared { kept: Mutex::default(), latest, has_ended }))
    }
}

impl Log {
    /// Adds a record, and returns its mark.
    pub fn add(&self, record: NewRecord) -> u64 {
        let NewRecord { at, kind, fields } = record;
        // A map of JSON values always has a text.
        let fields: Arc<str> = serde_json::to_string(&fields).unwrap_or_default().into();
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = *self.0.latest.borrow() + 1;
        kept.bytes += fields.len();
        kept.records.push_back(Packed { mark, at, kind, fields });
        while kept.records.len() > RECORDS_MAX || kept.bytes > RECORD_BYTES_MAX {
            let Some(oldest) = kept.records.pop_front() else { break };
            kept.bytes -= oldest.fields.len();
        }
        // Under the lock, so that marks are in the order of the records.
        self.0.latest.send_replace(mark);
        mark
    }

    /// The mark of the latest record; 0 before the first one.
    pub fn mark(&self) -> u64 {
        *self.0.latest.borrow()
    }

    /// The kept records after a mark, oldest first.
    pub fn after(&self, mark: u64) -> Vec<Arc<Record>> {
        let packed: Vec<Packed> = {
            let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = kept.records.partition_point(|record| record.mark <= mark);
            kept.records.range(begin..).cloned().collect()
        };
        packed.iter().map(Packed::unpack).collect()
    }

    /// Changes with every record. The value is the mark of the latest one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.latest.subscribe()
    }

    /// Ends all waits for records, because the node stops.
    pub fn end(&self) {
        self.0.has_ended.send_replace(true);
    }

    /// Returns when the log [ends](Self::end).
    pub async fn ended(&self) {
        // The log has the sender, so the wait cannot fail.
        let _ = self.0.has_ended.subscribe().wait_for(|ended| *ended).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> NewRecord {
        let fields = Map::from_iter([("text".to_owned(), Value::from(text))]);
        NewRecord { at: Timestamp::from_millis(0), kind: RecordKind::Trigger, fields }
    }

    #[test]
    fn records_are_found_after_a_mark() {
        let log = Log::default();
        let first = log.add(record("one"));
        log.add(record("two"));
        let marks = |after| log.after(after).iter().map(|record| record.mark).collect::<Vec<_>>();
        assert_eq!((first, marks(0), marks(first), marks(2)), (1, vec![1, 2], vec![2], vec![]));
        let json = serde_json::to_value(&*log.after(1)[0]).expect("JSON");
        let expected = serde_json::json!({
            "mark": 2, "at": "1970-01-01T00:00:00.000Z", "kind": "trigger", "text": "two",
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn the_oldest_records_are_dropped_first() {
        let log = Log::default();
        let large = "x".repeat(RECORD_BYTES_MAX / 4);
        (0..5).for_each(|_| _ = log.add(record(&large)));
        let marks: Vec<u64> = log.after(0).iter().map(|record| record.mark).collect();
        assert_eq!(marks, [3, 4, 5]);
        let log = Log::default();
        (0..=RECORDS_MAX).for_each(|_| _ = log.add(record("")));
        assert_eq!(log.after(0).len(), RECORDS_MAX);
    }
}
