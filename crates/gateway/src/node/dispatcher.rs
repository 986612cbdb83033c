//! Dispatches deliveries of the bus to the shards, and runs the shards.

use std::ffi::CString;
use std::sync::Arc;

use bus::{Delivery, Message, Subscriber};
use domain::Timestamp;
use service::lost_events::Lost;
use socketio::CloseReason;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::lost_events::LostEvents;
use super::reconcile;
use super::registry::Registry;
use crate::config::{COMMAND_EVENTS_MAX, GAP_LOOKUP_TIMEOUT};
use crate::context::Context;
use crate::fanout::{Command, Encoded, Inbox, ShardThread, Shards};
use crate::metrics::add;

/// The dispatcher of a node.
pub(crate) struct Dispatcher {
    context: Arc<Context>,
    shards: Arc<Shards>,
    registry: Arc<Registry>,
    lost_events: LostEvents,
    /// Wakes the reconciliation, so that it reads the store at once.
    reconcile_now: Notify,
}

/// The receiving ends of the bus and of the shards. [`Dispatcher::run`] consumes them.
pub(crate) struct Receivers {
    pub(crate) bus: Subscriber,
    pub(crate) inboxes: Vec<Inbox>,
}

impl Dispatcher {
    pub(crate) fn new(context: Arc<Context>, shards: Arc<Shards>, registry: Arc<Registry>) -> Self {
        let lost_events = LostEvents::new(context.clone(), shards.clone());
        Self { context, shards, registry, lost_events, reconcile_now: Notify::new() }
    }

    /// Dispatches until the bus ends. The shards stop when this future is dropped.
    ///
    /// # Panics
    /// When a shard panics.
    pub(crate) async fn run(&self, receivers: Receivers) {
        let Receivers { mut bus, inboxes } = receivers;
        // Dropping `_running` stops the threads, because a thread cannot be aborted like a task.
        let (_running, stopped) = watch::channel(());
        let mut threads: JoinSet<()> = JoinSet::new();
        for (number, thread) in ShardThread::all(&self.context, &self.shards, inboxes).into_iter().enumerate()
        {
            start_thread(&mut threads, number, thread, stopped.clone());
        }
        let dispatching = async {
            let mut deliveries = Vec::with_capacity(COMMAND_EVENTS_MAX);
            while bus.next_many(&mut deliveries, COMMAND_EVENTS_MAX).await {
                self.dispatch_all(deliveries.drain(..)).await;
            }
        };
        tokio::select! {
            () = dispatching => {}
            () = self.lost_events.poll() => {}
            () = reconcile::run(&self.context, &self.shards, &self.reconcile_now) => {}
            ended = threads.join_next() => {
                // While this future runs, a shard ends only by a panic. The panic is passed on.
                if let Some(Err(error)) = ended && let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }

    /// Dispatches deliveries in their order. Adjacent events become one command.
    async fn dispatch_all(&self, deliveries: impl Iterator<Item = Delivery>) {
        let mut events = Vec::new();
        for delivery in deliveries {
            if let Delivery::Message(Message::Event(event)) = delivery {
                events.push(Arc::new(Encoded::new(event)));
            } else {
                self.send_events(std::mem::take(&mut events)).await;
                self.dispatch(delivery).await;
            }
        }
        self.send_events(events).await;
    }

    pub(crate) async fn dispatch(&self, delivery: Delivery) {
        match delivery {
            Delivery::Message(message) => self.on_message(message).await,
            Delivery::Lost(channel) => {
                self.lost_events.close_subscribed_to(Lost::Channels(vec![channel])).await;
            }
            Delivery::Gap { since } => self.on_gap(since).await,
        }
    }

    async fn send_events(&self, events: Vec<Arc<Encoded>>) {
        if events.is_empty() {
            return;
        }
        self.lost_events.wait_until_known().await;
        self.shards.send_to_all(|| Command::Events(events.clone())).await;
    }

    async fn on_message(&self, message: Message) {
        match message {
            Message::Event(event) => self.send_events(vec![Arc::new(Encoded::new(event))]).await,
            Message::SessionChanged { session_key, change, .. } => {
                let command = Command::Change(Box::new((session_key.clone(), change)));
                self.shards.send(&session_key, command).await;
            }
            // If the session has not joined its shard yet, the reconciliation finds it.
            Message::SessionEvicted { session_key, .. } => {
                let command = Command::End(session_key.clone(), CloseReason::Evicted);
                self.shards.send(&session_key, command).await;
            }
            Message::NodeDeclaredDead { .. } => self.on_declared_dead().await,
        }
    }

    /// Closes every session, because the other nodes declared this node dead and ended its sessions in the
    /// store.
    pub(crate) async fn on_declared_dead(&self) {
        self.registry.on_declared_dead();
        for session in self.shards.sessions().await {
            session.end(CloseReason::NodeDead);
        }
    }

    /// Closes the sessions that may have missed an event, before any later event is delivered. Then it wakes
    /// the reconciliation, for changes that may have been lost.
    async fn on_gap(&self, since: Timestamp) {
        tracing::warn!(
            since_ms = since.as_millis(),
            "messages may have been lost on the bus: closing the affected sessions"
        );
        let lost = tokio::select! {
            events = self.context.service.events_since(since) => events.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to read the missed events: closing every session with a subscription");
                Lost::Everything
            }),
            () = self.context.clock().sleep(GAP_LOOKUP_TIMEOUT) => Lost::Everything,
        };
        // Counted after the lookup, because a later event is not part of the gap.
        add(&self.context.counters.gaps, 1);
        self.lost_events.close_subscribed_to(lost).await;
        self.reconcile_now.notify_one();
    }
}

/// Starts the thread of a shard. It stops when the sender of `stopped` is dropped.
fn start_thread(
    threads: &mut JoinSet<()>,
    number: usize,
    shard: ShardThread,
    mut stopped: watch::Receiver<()>,
) {
    let runtime = Handle::current();
    threads.spawn_blocking(move || {
        name_thread(number);
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = stopped.changed() => {}
                () = shard.run() => {}
            }
        });
    });
}

/// Names the thread of a shard, for tools such as `top -H` and `stagedoor-load`.
fn name_thread(shard: usize) {
    if let Ok(name) = CString::new(format!("shard-{shard}")) {
        // The name is only for tools, so an error is ignored.
        let _ = rustix::thread::set_name(&name);
    }
}
