//! The state of a run after its set-up.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::cli::{Cli, Via};
use crate::clock::Clock;
use crate::crowd::each;
use crate::http::{Client, Origin};
use crate::plan::SessionPlan;
use crate::publish_calls::{PublishCall, PublishCalls};
use crate::setup::Population;
use crate::shared::Shared;
use crate::sockets::session_url;
use crate::stats::Times;
use crate::world::World;

/// The target of the load.
#[derive(Clone)]
pub(crate) enum Target {
    Stagedoor(Rc<World>),
    Peer(Origin),
}

impl Target {
    /// The address of REST and sockets.
    pub(crate) fn base(&self) -> &Origin {
        match self {
            Self::Stagedoor(world) => &world.base,
            Self::Peer(origin) => origin,
        }
    }
}

/// The population of a peer. A peer needs no set-up, only channel names as long as those in Stagedoor.
pub(crate) fn peer_population(channels: u32) -> Population {
    let run = format!("load-{:x}", Clock::unix_millis());
    Population {
        applications: Vec::new(),
        channels: (0..channels).map(|number| format!("{run}-{number}")).collect(),
        viewer: format!("{run}-viewer"),
        tokens: HashMap::new(),
    }
}

/// A run after its set-up.
pub(crate) struct PreparedRun {
    pub(crate) shared: Arc<Shared>,
    pub(crate) plans: Vec<SessionPlan>,
    /// The channel that sends viewers' messages.
    pub(crate) viewer: String,
    /// `Bearer …`, by application and channel.
    pub(crate) tokens: Rc<HashMap<(u32, u32), String>>,
}

impl PreparedRun {
    /// The calls that publish messages, and their address.
    pub(crate) fn publish_calls(&self, target: &Target, cli: &Cli) -> (Origin, PublishCalls) {
        let sender = self.viewer.clone();
        let world = match target {
            Target::Peer(origin) => return (origin.clone(), PublishCalls::Peer { sender }),
            Target::Stagedoor(world) => world,
        };
        let authorization = format!("Bearer {}", world.operator_key);
        match cli.via {
            Via::Open => (world.base.clone(), PublishCalls::Single(self.streamer_calls())),
            Via::Platform if cli.batch > 1 => {
                (world.platform.clone(), PublishCalls::Bulk { authorization, sender })
            }
            Via::Platform => {
                let publish_call = |id: &String| PublishCall {
                    path: format!("/platform/v1/channels/{id}/chats"),
                    authorization: authorization.clone(),
                    sender: Some(sender.clone()),
                };
                (
                    world.platform.clone(),
                    PublishCalls::Single(self.shared.channels.iter().map(publish_call).collect()),
                )
            }
        }
    }

    /// The calls with which each channel's own streamer publishes.
    fn streamer_calls(&self) -> Vec<PublishCall> {
        let mut tokens = HashMap::new();
        for ((_, channel), token) in self.tokens.iter() {
            tokens.entry(*channel).or_insert(token);
        }
        let publish_call = |channel: u32| PublishCall {
            path: "/open/v1/chats/send".to_owned(),
            authorization: tokens.get(&channel).map(|token| (*token).clone()).unwrap_or_default(),
            sender: None,
        };
        (0..self.shared.channels.len() as u32).map(publish_call).collect()
    }

    /// Fetches the URL of every session, `concurrency` at once, and measures each call. A session whose call
    /// failed fetches its URL when it is opened.
    pub(crate) async fn fetch_urls(&self, concurrency: usize) -> (Vec<Option<String>>, Times) {
        let clock = self.shared.clock;
        let urls = Rc::new(RefCell::new(vec![None; self.plans.len()]));
        let times = Rc::new(RefCell::new(Times::default()));
        let (shared, found, taken) = (self.shared.clone(), urls.clone(), times.clone());
        let work = async move |client: &mut Client, plan: SessionPlan| {
            let started = clock.now();
            match session_url(&shared, plan, client).await {
                Ok(url) => {
                    taken.borrow_mut().record(started, clock.now());
                    found.borrow_mut()[plan.number as usize] = Some(url);
                }
                Err(kind) => shared.errors.count(&kind),
            }
        };
        each(self.plans.clone(), concurrency, || Client::new(self.shared.base.clone(), clock), work).await;
        (urls.take(), times.take())
    }

    /// The URLs of a peer's sessions.
    pub(crate) fn peer_urls(&self, peer: &Origin) -> Vec<Option<String>> {
        let url = |plan: &SessionPlan| Some(format!("http://{}/socket.io/?room={}", peer.host, plan.channel));
        self.plans.iter().map(url).collect()
    }
}
