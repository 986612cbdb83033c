//! Compares the sessions and subscriptions of this node's shards, the router, with those in the store, for
//! `stagedoor doctor --deep`.
//!
//! The two sides are never read at the same time, and a change reaches the shard after its commit. So a
//! difference counts when it is still there after some looks, each after the node had its turn to reconcile.

use std::collections::HashSet;

use domain::SessionKey;
use service::Error;
use service::routed_sessions::{RoutedSession, RouterComparison, RouterDifference};

use crate::config::RECONCILE_EVERY;
use crate::context::Context;
use crate::fanout::Shards;

/// Sessions that are read together.
const PAGE: usize = 500;
/// Maximum number of sessions that are looked at again.
const SUSPECTS_MAX: usize = 1_000;
/// How often a session with a difference is looked at again.
const LOOKS: u32 = 4;
/// Maximum number of differences that are named.
const NAMED_MAX: usize = 100;

/// The sessions that differ at the first look.
#[derive(Default)]
struct FirstLook {
    sessions: u64,
    subscriptions: u64,
    suspects: Vec<SessionKey>,
    are_more: bool,
}

impl FirstLook {
    fn suspect(&mut self, key: &SessionKey) {
        if self.suspects.len() < SUSPECTS_MAX {
            self.suspects.push(key.clone());
        } else {
            self.are_more = true;
        }
    }
}

/// Compares all sessions, and those that differ again.
pub(crate) async fn compare(context: &Context, shards: &Shards) -> Result<RouterComparison, Error> {
    let FirstLook { sessions, subscriptions, mut suspects, are_more } = first_look(context, shards).await?;
    let mut differences = Vec::new();
    for _ in 0..LOOKS {
        if suspects.is_empty() {
            break;
        }
        context.clock().sleep(RECONCILE_EVERY).await;
        differences.clear();
        for key in suspects.drain(..) {
            differences.extend(difference(context, shards, &key).await?);
        }
        suspects.extend(differences.iter().map(|found: &RouterDifference| found.session_key.clone()));
    }
    // When there were too many suspects, those that were not looked at again differ as likely as the others.
    let are_more = !differences.is_empty() && (are_more || differences.len() > NAMED_MAX);
    differences.truncate(NAMED_MAX);
    let empty = RouterComparison::empty(context.service.node());
    Ok(RouterComparison { sessions, subscriptions, differences, are_more, ..empty })
}

async fn first_look(context: &Context, shards: &Shards) -> Result<FirstLook, Error> {
    let (mut look, mut stored_keys) = (FirstLook::default(), HashSet::new());
    let mut after = SessionKey::stored(String::new());
    loop {
        let page = context.service.routed_sessions(&after, PAGE as i64).await?;
        let Some(last) = page.last() else { break };
        after = last.session_key.clone();
        let keys: Vec<_> = page.iter().map(|session| session.session_key.clone()).collect();
        let routed = shards.subscriptions(&keys).await;
        for (RoutedSession { session_key, subscriptions }, routed) in page.iter().zip(routed) {
            look.sessions += 1;
            look.subscriptions += subscriptions.len() as u64;
            if RouterDifference::between(session_key, Some(subscriptions), routed.as_deref()).is_some() {
                look.suspect(session_key);
            }
        }
        stored_keys.extend(keys);
    }
    for session in shards.sessions().await {
        if !stored_keys.contains(session.key()) {
            look.suspect(session.key());
        }
    }
    Ok(look)
}

/// The difference of one session now.
async fn difference(
    context: &Context,
    shards: &Shards,
    key: &SessionKey,
) -> Result<Option<RouterDifference>, Error> {
    let stored = context.service.routed_session(key).await?;
    let routed = shards.subscriptions(std::slice::from_ref(key)).await.pop().flatten();
    let stored = stored.as_ref().map(|session| session.subscriptions.as_slice());
    Ok(RouterDifference::between(key, stored, routed.as_deref()))
}
