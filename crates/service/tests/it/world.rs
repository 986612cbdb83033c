//! The world of these tests, and checks of the results of calls.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bus::{Delivery, Message, Subscriber};
use domain::event::Event;
use domain::session::ChangeKind;
use domain::{Refusal, Scope, ScopeSet, SessionKey};
use service::Error;
use testkit::{ServiceSetup, patiently};

pub use testkit::{REDIRECT, START_MS, STATE, ServiceWorld as World, client_owner, record, user_owner};

/// Runs the body on both engines.
pub async fn both<Fut>(body: impl FnMut(World) -> Fut)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    testkit::both(ServiceSetup::default(), body).await;
}

/// Every scope that users can consent to, except one.
pub fn all_scopes_but(lost: Scope) -> ScopeSet {
    ScopeSet::of_users().without([lost].into_iter().collect())
}

/// The refusal behind an error, which must not be the store's.
pub fn refusal(error: Error) -> Refusal {
    match error {
        Error::Refused(refusal) => refusal,
        error => panic!("the service failed: {error}"),
    }
}

/// The refusal of a call that must have been refused.
pub fn refused<T>(outcome: Result<T, Error>) -> Refusal {
    match outcome {
        Ok(_) => panic!("it must be refused"),
        Err(error) => refusal(error),
    }
}

/// Runs the tasks at once and returns the result of each, refusals included, in the order of the tasks.
/// The store must not fail.
pub async fn at_once<T, Fut>(tasks: impl Iterator<Item = Fut>) -> Vec<Result<T, Refusal>>
where
    T: Send + 'static,
    Fut: Future<Output = Result<T, Error>> + Send + 'static,
{
    let running: Vec<_> = tasks.map(tokio::spawn).collect();
    let mut outcomes = Vec::new();
    for task in running {
        outcomes.push(task.await.unwrap().map_err(refusal));
    }
    outcomes
}

/// Returns the successful results. All other results must be this refusal.
pub fn winners<T>(outcomes: Vec<Result<T, Refusal>>, others: &Refusal) -> Vec<T> {
    outcomes
        .into_iter()
        .filter_map(|outcome| outcome.map_err(|refusal| assert_eq!(refusal, *others)).ok())
        .collect()
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    patiently("it happens in time", future).await
}

/// Returns the messages that the bus has delivered to a subscriber so far.
pub async fn received(bus: &mut Subscriber) -> Vec<Message> {
    let mut messages = Vec::new();
    // Tokio makes a task that has received many messages without a pause wait, even if more messages are
    // ready.
    tokio::task::yield_now().await;
    // The local bus delivers before a publisher returns, so the messages are already there.
    while let Ok(Some(delivery)) = tokio::time::timeout(Duration::ZERO, bus.next()).await {
        match delivery {
            Delivery::Message(message) => messages.push(message),
            Delivery::Lost(_) | Delivery::Gap { .. } => panic!("the local bus loses nothing"),
        }
    }
    messages
}

/// The changes among messages, as session, version and kind.
pub fn changes_among(messages: &[Message]) -> Vec<(SessionKey, i64, ChangeKind)> {
    let change = |message: &Message| match message {
        Message::SessionChanged { session_key, change, .. } => {
            Some((session_key.clone(), change.version, change.kind))
        }
        Message::Event(_) | Message::SessionEvicted { .. } | Message::NodeDeclaredDead { .. } => None,
    };
    messages.iter().filter_map(change).collect()
}

/// The channel events among messages.
pub fn events_among(messages: &[Message]) -> Vec<Arc<Event>> {
    let event = |message: &Message| match message {
        Message::Event(event) => Some(event.clone()),
        _ => None,
    };
    messages.iter().filter_map(event).collect()
}
