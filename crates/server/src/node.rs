//! A running node: the store, the bus, the service and its edges, put together and taken apart in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, LocalBus};
use domain::{NodeId, Timestamp};
use gateway::Gateway;
use service::{Clock, Entropy, Parts, Service};
use store::{Options, Store, Target};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use web::{Served, Web};

use crate::config::{Settings, StoreSettings};
use crate::listener::{self, Edges};

/// How long sockets are given to hear that the node stops.
const DRAIN_WITHIN: Duration = Duration::from_secs(4);
/// How long requests are given to finish.
const REQUESTS_GRACE: Duration = Duration::from_secs(7);
/// How long the store is given to take leave and close.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// Where time and randomness come from.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub entropy: Entropy,
}

impl Surroundings {
    /// The system's own.
    pub fn system() -> Self {
        Self { clock: Clock::system(), entropy: Entropy::system() }
    }
}

/// A node that serves.
pub struct Node {
    address: SocketAddr,
    platform_address: Option<SocketAddr>,
    base_url: String,
    settings: Settings,
    service: Service,
    gateway: Gateway,
    stop: watch::Sender<bool>,
    /// One, or two where the platform API has its own.
    listeners: JoinSet<()>,
    /// The jobs, the gateway's ear on the bus, and what joins them; all of them end by being dropped.
    background: JoinSet<()>,
}

impl Node {
    /// Opens the store, listens, and serves. When this returns, requests are answered.
    ///
    /// # Errors
    /// A sentence for the operator: the address is taken, the store cannot be opened.
    pub async fn start(settings: Settings, surroundings: Surroundings) -> Result<Self, String> {
        let (store, alone) = open_store(&settings.store).await?;
        let (listener, address) = bind(settings.listen).await?;
        let platform = match settings.platform_listen {
            Some(listen) => Some(bind(listen).await?),
            None => None,
        };
        let platform_address = platform.as_ref().map(|(_, address)| *address);
        let service = service(&settings, &surroundings, store);
        let ended = service.join(alone).await.map_err(|error| format!("the store failed: {error}"))?;
        if ended > 0 {
            tracing::info!(ended, "sessions of nodes that died were disconnected");
        }

        let base_url = settings.base_url.clone().unwrap_or_else(|| format!("http://{address}"));
        let web = Web::new(service.clone(), web_config(&settings, &base_url));
        let gateway = Gateway::new(
            service.clone(),
            gateway::Config { language: settings.language, ..Default::default() },
        );
        let mut background = JoinSet::new();
        background.spawn(gateway.clone().run());
        spawn_jobs(&mut background, &service, &gateway);
        let (stop, stopping) = watch::channel(false);
        let served = if platform.is_some() { Served::Open } else { Served::All };
        let edges = |gateway, served| Edges {
            gateway,
            web: web::router(web.clone(), served),
            entropy: surroundings.entropy.clone(),
        };
        let mut listeners = JoinSet::new();
        let open = edges(Some(gateway.clone()), served);
        listeners.spawn(listener::serve(listener, open, stopping.clone(), REQUESTS_GRACE));
        if let Some((listener, _)) = platform {
            listeners.spawn(listener::serve(
                listener,
                edges(None, Served::Platform),
                stopping,
                REQUESTS_GRACE,
            ));
        }
        Ok(Self {
            address,
            platform_address,
            base_url,
            settings,
            service,
            gateway,
            stop,
            listeners,
            background,
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients reach it.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Where the platform API is reached.
    pub fn platform_url(&self) -> String {
        self.platform_address.map_or_else(|| self.base_url.clone(), |address| format!("http://{address}"))
    }

    /// What it was told to be.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The service behind its edges.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Its sockets.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Stops: no new work is taken, sockets are told, requests that run are finished, the store is closed. Takes less
    /// than 10 seconds, whatever happens.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        let requests = async { while self.listeners.join_next().await.is_some() {} };
        tokio::join!(self.gateway.drain(DRAIN_WITHIN), requests);
        self.background.shutdown().await;
        let leave = async {
            if let Err(error) = self.service.flush_all_uses().await {
                tracing::warn!(%error, "the last uses of applications were not written");
            }
            if let Err(error) = self.service.leave().await {
                tracing::warn!(%error, "this node could not take its leave");
            }
            self.service.close().await;
        };
        if tokio::time::timeout(CLOSE_WITHIN, leave).await.is_err() {
            tracing::warn!("the store did not close in time; what was acknowledged is safe");
        }
    }
}

async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let failed = |error: std::io::Error| format!("cannot listen on {listen}: {error}");
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// The store, and whether this process has it to itself.
async fn open_store(settings: &StoreSettings) -> Result<(Store, bool), String> {
    let (target, alone) = match settings {
        StoreSettings::Sqlite { path } => {
            let folder = path.parent().unwrap_or(path);
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("--data {}: {error}", folder.display()))?;
            (Target::Sqlite { path: path.clone() }, true)
        }
        StoreSettings::Postgres { url } => (Target::Postgres { url: url.clone() }, false),
    };
    let store = Store::open(target, Options::default()).await.map_err(|error| error.to_string())?;
    Ok((store, alone))
}

fn service(settings: &Settings, surroundings: &Surroundings, store: Store) -> Service {
    let Surroundings { clock, entropy } = surroundings.clone();
    let now: Timestamp = clock.now();
    Service::new(Parts {
        store,
        bus: Arc::new(LocalBus::default()) as Arc<dyn Bus>,
        node: NodeId::generate(now, entropy.bytes()),
        clock,
        entropy,
        profile: settings.profile,
        quotas: settings.quotas,
        key: settings.service_key.clone(),
    })
}

fn web_config(settings: &Settings, base_url: &str) -> web::Config {
    web::Config {
        language: settings.language,
        base_url: base_url.to_owned(),
        session_base: settings.session_base.clone().unwrap_or_else(|| base_url.to_owned()),
        operator_key: settings.operator_key.as_ref().map(domain::secret::OperatorKey::hash),
        sandbox: settings.sandbox,
    }
}

fn spawn_jobs(background: &mut JoinSet<()>, service: &Service, gateway: &Gateway) {
    let (struck_off, mut notices) = mpsc::channel(1);
    background.spawn(jobs::heartbeat(service.clone(), struck_off));
    background.spawn(jobs::sweep(service.clone()));
    background.spawn(jobs::warm_up(service.clone()));
    background.spawn(jobs::flush_uses(service.clone()));
    background.spawn(jobs::look_at_unused_applications(service.clone()));
    background.spawn(jobs::watch_credentials(service.clone()));
    let gateway = gateway.clone();
    background.spawn(async move {
        while notices.recv().await.is_some() {
            gateway.struck_off().await;
        }
    });
}
