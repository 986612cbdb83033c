//! A running node: starts the store, the bus, the service and the listeners, and stops them in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, LocalBus, NatsBus};
use domain::NodeId;
use gateway::Gateway;
use sandbox::{Api, FixedHosts, Parts, Sandbox, Surroundings};
use service::nodes::{Membership, Roles};
use service::{Clock, ClockMode, Entropy, SandboxClock, Service, ServiceDeps};
use store::{Options, Store, StoreError, Target};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use web::{Served, Web};

use crate::config::{BusSettings, Settings, StoreSettings};
use crate::connections::Connections;
use crate::descriptors::Room;
use crate::hosts::HostFilter;
use crate::listener::{self, Edges, Phase};
use crate::metrics::NodeMetrics;
use crate::proxies::Proxies;
use crate::reserved::Reserved;
use crate::tls;
use crate::webhooks::Webhooks;

/// Deadline for closing the sockets. REST continues during that time.
const DRAIN_WITHIN: Duration = Duration::from_secs(3);
/// Deadline for running requests: a little longer than the store's deadline for one request.
const REQUESTS_GRACE: Duration = Duration::from_millis(3_250);
/// Deadline for deregistering the node and closing the store.
const CLOSE_WITHIN: Duration = Duration::from_millis(1_500);

/// The sources of time and randomness, and the sandbox that steers them.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub entropy: Entropy,
    /// Only of `stagedoor dev`.
    pub sandbox: Option<Sandbox>,
}

impl Environment {
    /// The system's clock and randomness.
    pub fn system() -> Self {
        Self { clock: Clock::system(), entropy: Entropy::system(), sandbox: None }
    }

    /// A sandbox whose clock shows the system's time and runs as fast.
    pub fn sandbox() -> Self {
        let clock = SandboxClock::new(Clock::system().now(), ClockMode::Real);
        let sandbox = Some(Sandbox::new(clock.clone()));
        Self { clock: Clock::sandbox(clock), entropy: Entropy::system(), sandbox }
    }
}

/// A running node.
pub struct Node {
    address: SocketAddr,
    platform_address: Option<SocketAddr>,
    base_url: String,
    settings: Settings,
    service: Service,
    /// `None` on a node without the role gateway.
    gateway: Option<Gateway>,
    /// Only of `stagedoor dev`.
    sandbox: Option<Sandbox>,
    /// `None` on a node without the role jobs.
    webhooks: Option<Webhooks>,
    phase: watch::Sender<Phase>,
    /// One listener, or two if the platform API has its own.
    listeners: JoinSet<()>,
    /// The jobs and the gateway's tasks. Dropping the set ends them.
    background: JoinSet<()>,
}

impl Node {
    /// Opens the store, listens, and serves. Requests are answered when this returns.
    ///
    /// # Errors
    /// A sentence for the operator: for example, the address is in use, or the store cannot be opened.
    pub async fn start(settings: Settings, environment: Environment) -> Result<Self, String> {
        // First of all, because an occupied address is the usual mistake. Until `listen` the system refuses
        // connections.
        let reserved = Reserved::new("--listen", settings.listen)?;
        let platform = settings.platform_listen.map(|listen| Reserved::new("--platform-listen", listen));
        let platform = platform.transpose()?;
        let room = match settings.tls {
            Some(_) => Room::claim().divided(tls::DESCRIPTORS),
            None => Room::claim(),
        };
        let (store, alone) = open_store(&settings).await?;
        let address = reserved.address;
        let listener = reserved.listen()?;
        let platform_address = platform.as_ref().map(|reserved| reserved.address);
        let platform = platform.map(Reserved::listen).transpose()?;
        let base_url = settings.base_url.clone().unwrap_or_else(|| format!("http://{address}"));
        let node = NodeId::generate(environment.clock.now(), environment.entropy.bytes());
        let bus = open_bus(&settings.bus, &node, &environment).await?;
        let session_base = session_base(&settings, &base_url, address);
        let service = service(&settings, &environment, store, bus, node, session_base);
        service.serve_pictures_at(&base_url);
        check_origin(&service, settings.sandbox).await?;
        join(&service, alone).await?;

        let gateway = settings.roles.gateway.then(|| {
            let sessions_max = room.sessions_max;
            let config = gateway::Config { language: settings.language, sessions_max, ..Default::default() };
            Gateway::new(service.clone(), config)
        });
        let webhooks = match settings.roles.jobs {
            true => {
                let fault_point = environment.sandbox.as_ref().map(Sandbox::webhook_faults);
                Some(Webhooks::start(&service, room.webhooks_max, fault_point)?)
            }
            false => None,
        };
        let node_metrics = NodeMetrics {
            gateway: gateway.clone(),
            webhooks: webhooks.as_ref().map(Webhooks::metrics),
            service: service.clone(),
            store: settings.store.name(),
            started_at: environment.clock.now(),
        };
        let web = Web::new(service.clone(), web_config(&settings, &base_url), Arc::new(node_metrics));
        let mut background = JoinSet::new();
        spawn_jobs(&mut background, &service, gateway.as_ref());
        let (phase, phases) = watch::channel(Phase::Serving);
        let served = match (settings.roles.web, &platform) {
            (false, _) => Served::Health,
            (true, Some(_)) => Served::Open,
            (true, None) => Served::All,
        };
        let hosts = Arc::new(HostFilter::new(settings.hosts.clone(), environment.clock.clone()));
        let sandbox = gateway.clone().and_then(|gateway| {
            let settler = webhooks.as_ref().map(Webhooks::settler);
            let parts = Parts {
                service: service.clone(),
                gateway,
                settler,
                base_url: base_url.clone(),
                fixed_hosts: fixed_hosts(&settings, address),
            };
            let surroundings = Surroundings {
                is_local: address.ip().to_canonical().is_loopback(),
                is_secure: base_url.starts_with("https://"),
                sign_in_cookie: web::sign_in_cookie,
            };
            sandbox_api(&environment, &settings, parts, surroundings)
        });
        let edges = |gateway, served, proxy_protocol| Edges {
            gateway,
            // The platform API's own listener has no pages.
            sandbox: match served {
                Served::Platform => sandbox.clone().map(Api::without_console),
                _ => sandbox.clone(),
            },
            web: web::router(web.clone(), served),
            entropy: environment.entropy.clone(),
            proxies: Arc::new(Proxies::new(
                settings.trusted_proxies.clone(),
                proxy_protocol,
                environment.clock.clone(),
            )),
            hosts: hosts.clone(),
            tls: settings.tls.as_ref().map(|tls| tls.terminator.clone()),
            language: settings.language,
        };
        let connections = Connections::new(gateway.clone(), environment.clock.clone(), room.sockets_max);
        let mut listeners = JoinSet::new();
        let open = edges(gateway.clone(), served, settings.proxy_protocol);
        let serve = |listener, edges| {
            listener::serve(listener, connections.clone(), edges, phases.clone(), REQUESTS_GRACE)
        };
        listeners.spawn(serve(listener, open));
        if let Some(listener) = platform {
            listeners.spawn(serve(listener, edges(None, Served::Platform, false)));
        }
        Ok(Self {
            address,
            platform_address,
            base_url,
            settings,
            service,
            gateway,
            sandbox: environment.sandbox,
            webhooks,
            phase,
            listeners,
            background,
        })
    }

    /// The address that the node listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the node for clients.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The URL of the platform API.
    pub fn platform_url(&self) -> String {
        self.platform_address.map_or_else(|| self.base_url.clone(), |address| format!("http://{address}"))
    }

    /// The settings of the node.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The fixed hosts of a sandbox with TLS.
    pub fn fixed_hosts(&self) -> Option<FixedHosts> {
        fixed_hosts(&self.settings, self.address)
    }

    /// The service of the node.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The gateway, on a node with that role.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// The sandbox; `None` outside of `stagedoor dev`.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Stops in steps. First `/health/ready` fails, and the node serves for the drain delay. Then the sockets
    /// are closed while REST continues. Then no connection is accepted, and running requests and webhook
    /// attempts are finished. Last, the store is closed. In every case this takes less than 8 seconds beyond
    /// the delay.
    pub async fn stop(mut self) {
        let _ = self.phase.send(Phase::Draining);
        if let Some(sandbox) = &self.sandbox {
            sandbox.log().end();
        }
        let retiring = self.service.retire();
        self.background.spawn(async move {
            if let Err(error) = retiring.await {
                tracing::warn!(%error, "failed to announce that this node stops");
            }
        });
        self.service.clock().sleep(self.settings.drain_delay).await;
        if let Some(gateway) = &self.gateway {
            gateway.drain(DRAIN_WITHIN).await;
        }
        let _ = self.phase.send(Phase::Closing);
        let webhooks = self.webhooks.take();
        let sending = async {
            if let Some(webhooks) = webhooks {
                webhooks.stop(REQUESTS_GRACE).await;
            }
        };
        let serving = async { while self.listeners.join_next().await.is_some() {} };
        tokio::join!(sending, serving);
        self.background.shutdown().await;
        let leave = async {
            if let Err(error) = self.service.flush_all_uses().await {
                tracing::warn!(%error, "failed to record the last uses of applications");
            }
            if let Err(error) = self.service.settle_events().await {
                tracing::warn!(%error, "failed to settle the event outbox: another node takes it over");
            }
            if let Err(error) = self.service.leave().await {
                tracing::warn!(%error, "failed to deregister the node");
            }
            self.service.close().await;
        };
        if tokio::time::timeout(CLOSE_WITHIN, leave).await.is_err() {
            tracing::warn!("failed to close the store before the deadline: acknowledged writes are safe");
        }
    }
}

/// Registers the node. On a full disk the node serves reads, and registers when there is room.
async fn join(service: &Service, alone: bool) -> Result<(), String> {
    match service.join(alone).await {
        Ok(0) => {}
        Ok(ended) => tracing::info!(ended, "recorded the end of the sessions of dead nodes"),
        Err(service::Error::Store(StoreError::DiskFull)) => {
            tracing::error!(
                "the disk of the database is full: reads are answered, writes are refused until there is room"
            );
            service.join_later(alone);
        }
        Err(error) => return Err(format!("the store failed: {error}")),
    }
    Ok(())
}

/// Refuses a store that another command created: `dev` refuses that of `serve`, and the reverse.
async fn check_origin(service: &Service, sandbox: bool) -> Result<(), String> {
    let (command, other) = if sandbox { ("dev", "serve") } else { ("serve", "dev") };
    let made_by = service.claim_store(command).await.map_err(|error| format!("the store failed: {error}"))?;
    if made_by == command {
        return Ok(());
    }
    service.close().await;
    Err(format!(
        "the store was made by `stagedoor {other}`: give `stagedoor {command}` another folder (--data) or database \
         (--database-url)"
    ))
}

/// Opens the store. The flag is whether only this process uses it.
async fn open_store(settings: &Settings) -> Result<(Store, bool), String> {
    let (target, alone) = match &settings.store {
        StoreSettings::Sqlite { path } => {
            let folder = path.parent().unwrap_or(path);
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("--data {}: {error}", folder.display()))?;
            (Target::Sqlite { path: path.clone() }, true)
        }
        StoreSettings::Postgres { url } => (Target::Postgres { url: url.clone() }, false),
    };
    let options = Options { deadline: settings.store_deadline, ..Options::default() };
    let store = Store::open(target, options).await.map_err(|error| error.to_string())?;
    Ok((store, alone))
}

async fn open_bus(
    settings: &BusSettings,
    node: &NodeId,
    environment: &Environment,
) -> Result<Arc<dyn Bus>, String> {
    let BusSettings::Nats { address, prefix } = settings else {
        return Ok(Arc::new(LocalBus::default()));
    };
    let Environment { clock, entropy, .. } = environment.clone();
    let options = bus::Options {
        address: address.clone(),
        prefix: prefix.clone(),
        node: node.clone(),
        now: Box::new(move || clock.now()),
        random: Box::new(move || u64::from_ne_bytes(entropy.bytes())),
    };
    let bus = NatsBus::connect(options).await.map_err(|error| error.to_string())?;
    Ok(Arc::new(bus))
}

/// The URL of this node's sockets for clients, if it has the role gateway.
fn session_base(settings: &Settings, base_url: &str, address: SocketAddr) -> Option<String> {
    let Settings { roles, session_base, .. } = settings;
    // The base URL does not lead to a node without REST.
    let default = || if roles.web { base_url.to_owned() } else { format!("http://{address}") };
    roles.gateway.then(|| session_base.clone().unwrap_or_else(default))
}

fn service(
    settings: &Settings,
    environment: &Environment,
    store: Store,
    bus: Arc<dyn Bus>,
    node: NodeId,
    session_base: Option<String>,
) -> Service {
    let Environment { clock, entropy, sandbox } = environment.clone();
    Service::new(ServiceDeps {
        store,
        bus,
        node,
        clock,
        entropy,
        profile: settings.profile,
        quotas: settings.quotas,
        key: settings.service_key.clone(),
        membership: Membership { roles: settings.roles, session_base },
        webhooks: settings.webhooks.clone(),
        password_cost: settings.password_cost,
        socket_faults: sandbox.map(|sandbox| sandbox.socket_faults()),
    })
}

/// The fixed hosts of a sandbox, by the address that it listens on; `None` without TLS.
fn fixed_hosts(settings: &Settings, address: SocketAddr) -> Option<FixedHosts> {
    let tls = settings.tls.as_ref()?;
    let lines = tls.lines.iter().map(|line| (line.host.clone(), line.address));
    Some(FixedHosts::new(tls.authority.clone(), address.port(), lines))
}

/// Connects the sandbox of the environment, if there is one, to the node.
fn sandbox_api(
    environment: &Environment,
    settings: &Settings,
    parts: Parts,
    surroundings: Surroundings,
) -> Option<Api> {
    let sandbox = environment.sandbox.as_ref()?;
    let operator_key = settings.operator_key.as_ref()?.hash();
    sandbox.attach(parts);
    Some(Api::new(sandbox.clone(), operator_key, web::documents::openapi, surroundings))
}

fn web_config(settings: &Settings, base_url: &str) -> web::Config {
    web::Config {
        language: settings.language,
        base_url: base_url.to_owned(),
        operator_key: settings.operator_key.as_ref().map(domain::secret::OperatorKey::hash),
        sandbox: settings.sandbox,
    }
}

fn spawn_jobs(background: &mut JoinSet<()>, service: &Service, gateway: Option<&Gateway>) {
    let Roles { web, gateway: sockets, jobs } = service.roles();
    let (declared_dead, mut notices) = mpsc::channel(1);
    background.spawn(jobs::heartbeat(service.clone(), declared_dead));
    if jobs {
        background.spawn(jobs::sweep(service.clone()));
        background.spawn(jobs::retire_unused_applications(service.clone()));
    }
    if web {
        background.spawn(jobs::warm_up(service.clone()));
        background.spawn(jobs::flush_uses(service.clone()));
        background.spawn(jobs::watch_credentials(service.clone()));
    }
    if service.has_event_outbox() {
        background.spawn(jobs::settle_events(service.clone()));
        if jobs || sockets {
            background.spawn(jobs::take_over_events(service.clone()));
        }
    }
    if let Some(gateway) = gateway.cloned() {
        background.spawn(gateway.clone().run());
        background.spawn(async move {
            while notices.recv().await.is_some() {
                gateway.on_declared_dead().await;
            }
        });
    }
}
