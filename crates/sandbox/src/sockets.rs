//! The fault point of the sockets: records what happens on them, and decides by the fault rules. It knows the
//! sessions of the node and their subscriptions from the calls of the gateway.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::event::Event;
use domain::session::{ChangeKind, SessionOwner, Subscription};
use domain::{Profile, SessionKey};
use serde_json::{Map, Value, json};
use service::SandboxClock;
use service::fault_points::{Direction, MessageAction, Packet, SocketFaultPoint, SystemMessage};

use crate::fault::{Facts, Matching, MessageEffect, Moment, Subject};
use crate::fault_rules::FaultRules;
use crate::frame;
use crate::log::{Log, NewRecord, RecordKind};

/// How long a reordered message waits for the session's next one.
pub(crate) const REORDER_WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of ended sessions that are remembered.
const ENDED_MAX: usize = 50;

/// The sockets of one node.
#[derive(Debug)]
pub(crate) struct Sockets {
    clock: SandboxClock,
    log: Log,
    rules: Arc<FaultRules>,
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    /// The open sessions, in the order of their opening.
    open: BTreeMap<String, OpenSession>,
    /// The sessions that ended last, with their close reasons.
    ended: VecDeque<(String, OpenSession, &'static str)>,
}

#[derive(Debug)]
struct OpenSession {
    client_id: String,
    user: Option<String>,
    /// What became of each subscription that the session ever had.
    subscriptions: Vec<(Subscription, ChangeKind)>,
    /// A message waits for the next one.
    holds_back: bool,
    /// What made the session silent.
    silenced_by: Option<String>,
}

/// A decision about a message, for its record.
struct Evaluation {
    action: MessageAction,
    /// Why the message is not sent now.
    missed: Option<String>,
    /// The rule that affects it.
    rule: Option<(String, MessageEffect)>,
}

impl Sockets {
    /// The sockets of a sandbox.
    pub fn new(clock: SandboxClock, log: Log, rules: Arc<FaultRules>) -> Self {
        Self { clock, log, rules, sessions: Mutex::default() }
    }

    /// A trigger made a session silent.
    pub fn on_silenced(&self, session: &SessionKey, by: &str) {
        if let Some(session) = self.sessions().open.get_mut(session.as_str()) {
            session.silenced_by.get_or_insert_with(|| by.to_owned());
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open sessions of the owners that a rule means, each with what a record says about it.
    pub fn of(&self, matching: &Matching) -> Vec<(SessionKey, Map<String, Value>)> {
        let sessions = self.sessions();
        let meant = sessions
            .open
            .iter()
            .filter(|(_, session)| matching.fits_caller(Some(&session.client_id), session.user.as_deref()));
        meant.map(|(key, session)| (SessionKey::stored(key.clone()), session.fields(key))).collect()
    }

    /// Records what happened on a socket.
    pub fn record(&self, kind: RecordKind, fields: Map<String, Value>) {
        self.log.add(NewRecord { at: self.clock.now(), kind, fields });
    }

    fn record_frame(&self, session: &SessionKey, fields: Map<String, Value>) {
        let mut record = match self.sessions().open.get(session.as_str()) {
            Some(open) => open.fields(session.as_str()),
            None => fields_of(json!({ "session": session })),
        };
        record.extend(fields);
        self.record(RecordKind::Frame, record);
    }

    /// Decides about a message, and remembers what it does to the session.
    fn evaluate(
        &self,
        session: Option<&mut OpenSession>,
        event: &str,
        channel_id: Option<&str>,
    ) -> Evaluation {
        let send = Evaluation { action: MessageAction::Send, missed: None, rule: None };
        let Some(session) = session else { return send };
        if let Some(by) = &session.silenced_by {
            return Evaluation { missed: Some(format!("silent since {by}")), ..send };
        }
        let subject = Subject::Message { event, channel_id, is_awaited: session.holds_back };
        let facts = Facts { client_id: Some(&session.client_id), user: session.user.as_deref(), subject };
        let Some((rule, effect)) = self.rules.decide_message(facts) else {
            session.holds_back = false;
            return send;
        };
        let (action, missed) = action(effect);
        match effect {
            MessageEffect::Reorder => session.holds_back = true,
            MessageEffect::Silence => session.silenced_by = Some(rule.clone()),
            MessageEffect::Duplicate | MessageEffect::Cut(Moment::After) => session.holds_back = false,
            _ => {}
        }
        let missed = missed.map(|missed| format!("{missed} by {rule}"));
        Evaluation { action, missed, rule: Some((rule, effect)) }
    }

    fn record_fault(&self, (rule, effect): &(String, MessageEffect), about: Map<String, Value>) {
        let mut fields = fields_of(json!({ "fault": rule, "do": effect.to_json() }));
        fields.extend(about);
        self.record(RecordKind::Fault, fields);
    }
}

/// What the gateway does, and why the session misses the message for now.
fn action(effect: MessageEffect) -> (MessageAction, Option<String>) {
    let missed = |why: &str| Some(why.to_owned());
    match effect {
        MessageEffect::Drop => (MessageAction::Drop, missed("dropped")),
        MessageEffect::Duplicate => (MessageAction::Duplicate, None),
        MessageEffect::Reorder => {
            (MessageAction::Reorder(REORDER_WAIT_MAX), missed("sent after the next message"))
        }
        MessageEffect::Late(by) => {
            (MessageAction::Late(by), Some(format!("sent {} ms late", by.as_millis())))
        }
        MessageEffect::Silence => (MessageAction::Silence, missed("silenced")),
        MessageEffect::Close(reason) => (MessageAction::Close(reason.as_str()), missed("closed")),
        MessageEffect::Cut(Moment::Before) => (MessageAction::CutBefore, missed("cut")),
        MessageEffect::Cut(Moment::After) => (MessageAction::CutAfter, None),
    }
}

impl OpenSession {
    fn fields(&self, session: &str) -> Map<String, Value> {
        let mut fields = fields_of(json!({ "session": session, "clientId": self.client_id }));
        if let Some(user) = &self.user {
            fields.insert("user".to_owned(), user.as_str().into());
        }
        fields
    }

    fn state_of(&self, subscription: &Subscription) -> Option<ChangeKind> {
        self.subscriptions.iter().find(|(known, _)| known == subscription).map(|(_, state)| *state)
    }

    fn on_change(&mut self, subscription: &Subscription, state: ChangeKind) {
        match self.subscriptions.iter_mut().find(|(known, _)| known == subscription) {
            Some((_, known)) => *known = state,
            None => self.subscriptions.push((subscription.clone(), state)),
        }
    }

    /// Why the session does not receive an event of this kind and channel; `None` if it does, or if the
    /// channel is none of its business.
    fn misses(&self, event: &Subscription) -> Option<String> {
        let name = event.event_type.name();
        match self.state_of(event) {
            Some(ChangeKind::Subscribed) => None,
            Some(ChangeKind::Unsubscribed) => Some(format!("unsubscribed from {name}")),
            Some(ChangeKind::Revoked) => Some(format!("the subscription to {name} was revoked")),
            None => {
                let is_own = self.user.as_deref() == Some(event.channel_id.as_str());
                let knows = self.subscriptions.iter().any(|(known, _)| known.channel_id == event.channel_id);
                (is_own || knows).then(|| format!("not subscribed to {name}"))
            }
        }
    }
}

impl Sessions {
    /// The sessions that could expect an event and do not receive it, with the reason.
    fn missing(&self, event: &Subscription) -> Vec<Value> {
        let missed = |key: &str, session: &OpenSession, why: String| {
            let mut fields = session.fields(key);
            fields.insert("why".to_owned(), why.into());
            Value::Object(fields)
        };
        let ended = self.ended.iter().filter(|(_, session, _)| {
            session.state_of(event) == Some(ChangeKind::Subscribed) && !self.is_replaced(session, event)
        });
        let ended = ended.map(|(key, session, reason)| missed(key, session, format!("ended: {reason}")));
        let open =
            self.open.iter().filter_map(|(key, session)| Some(missed(key, session, session.misses(event)?)));
        ended.chain(open).collect()
    }

    /// Whether an open session of the same owner receives the event.
    fn is_replaced(&self, ended: &OpenSession, event: &Subscription) -> bool {
        self.open.values().any(|open| {
            (&open.client_id, &open.user) == (&ended.client_id, &ended.user)
                && open.state_of(event) == Some(ChangeKind::Subscribed)
        })
    }
}

impl SocketFaultPoint for Sockets {
    fn on_open(&self, session: &SessionKey, owner: &SessionOwner) {
        let open = OpenSession {
            client_id: owner.client_id().to_string(),
            user: owner.channel_id().map(ToString::to_string),
            subscriptions: Vec::new(),
            holds_back: false,
            silenced_by: None,
        };
        self.sessions().open.insert(session.to_string(), open);
        self.record_frame(session, fields_of(json!({ "event": "opened" })));
    }

    fn on_event(&self, event: &Event, subscribers: &[SessionKey]) -> Vec<MessageAction> {
        let (name, channel) = (event.event_type().name(), event.channel_id.as_str());
        let mut sessions = self.sessions();
        let subscription =
            Subscription { event_type: event.event_type(), channel_id: event.channel_id.clone() };
        let mut missed = sessions.missing(&subscription);
        let (mut actions, mut delivered, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for key in subscribers {
            let mut session = sessions.open.get_mut(key.as_str());
            let evaluation = self.evaluate(session.as_deref_mut(), name, Some(channel));
            let mut fields = session.map(|session| session.fields(key.as_str())).unwrap_or_default();
            if let Some(rule) = evaluation.rule {
                let mut about = fields.clone();
                about.extend(fields_of(json!({ "event": name, "channelId": channel })));
                faults.push((rule, about));
            }
            match evaluation.missed {
                None => delivered.push(key.clone()),
                Some(why) => {
                    fields.insert("why".to_owned(), why.into());
                    missed.push(Value::Object(fields));
                }
            }
            actions.push(evaluation.action);
        }
        // The frames of the event follow its record.
        self.record(
            RecordKind::Event,
            fields_of(json!({
                "event": name,
                "channelId": channel,
                "payload": payload(event),
                "delivered": delivered.len(),
                "sessions": delivered,
                "missed": missed,
            })),
        );
        for (rule, about) in faults {
            self.record_fault(&rule, about);
        }
        actions
    }

    fn on_system(&self, session: &SessionKey, message: SystemMessage<'_>) -> MessageAction {
        let mut sessions = self.sessions();
        let mut open = sessions.open.get_mut(session.as_str());
        let (kind, channel_id) = match message {
            SystemMessage::Connected => ("connected", None),
            SystemMessage::Changed(change) => {
                if let Some(open) = &mut open {
                    open.on_change(&change.subscription, change.kind);
                }
                (change.kind.name(), Some(change.subscription.channel_id.as_str()))
            }
        };
        let event = format!("SYSTEM/{kind}");
        let evaluation = self.evaluate(open.as_deref_mut(), &event, channel_id);
        if let Some(rule) = evaluation.rule {
            let mut about = open.map(|open| open.fields(session.as_str())).unwrap_or_default();
            about.insert("event".to_owned(), event.into());
            about.extend(channel_id.map(|channel| ("channelId".to_owned(), channel.into())));
            self.record_fault(&rule, about);
        }
        evaluation.action
    }

    fn on_packet(&self, session: &SessionKey, direction: Direction, packet: Packet<'_>) {
        let direction = match direction {
            Direction::ToClient => "out",
            Direction::FromClient => "in",
        };
        let mut fields = frame::describe(packet);
        fields.insert("direction".to_owned(), direction.into());
        self.record_frame(session, fields);
    }

    fn latency(&self, session: &SessionKey) -> Option<Duration> {
        let sessions = self.sessions();
        let open = sessions.open.get(session.as_str())?;
        self.rules.latency(&open.client_id, open.user.as_deref())
    }

    fn on_wait_over(&self, session: &SessionKey) {
        if let Some(session) = self.sessions().open.get_mut(session.as_str()) {
            session.holds_back = false;
        }
    }

    fn on_end(&self, session: &SessionKey, reason: &'static str) {
        self.record_frame(session, fields_of(json!({ "event": "ended", "reason": reason })));
        let mut sessions = self.sessions();
        let Some(ended) = sessions.open.remove(session.as_str()) else { return };
        if sessions.ended.len() >= ENDED_MAX {
            sessions.ended.pop_front();
        }
        sessions.ended.push_back((session.to_string(), ended, reason));
    }
}

/// The content of an event, as clients of the documented profile receive it.
fn payload(event: &Event) -> Value {
    // Texts, numbers and lists of them can always be serialized.
    serde_json::to_value(event.payload(Profile::Documented)).unwrap_or_default()
}

fn fields_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
