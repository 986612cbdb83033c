//! A running node: starts the store, the bus, the service and the listeners, and stops them in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use backup::archive::{ArchiveSettings, Archiver};
use bus::{Bus, LocalBus, NatsBus};
use domain::NodeId;
use domain::secret::OperatorKey;
use gateway::Gateway;
use http_server::hosts::HostFilter;
use http_server::listener::{Edges, Phase};
use http_server::proxies::Proxies;
use http_server::terminator;
use sandbox::{Api, FixedHosts, Parts, Sandbox, Surroundings};
use service::connection_tests::Prober;
use service::nodes::{Membership, Roles};
use service::{Clock, Entropy, Purpose, SandboxClock, Service, ServiceDeps};
use store::log_archive::LogArchive;
use store::{Options, Store, StoreError, Target};
use telemetry::ExportFigures;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use upstream::{ProviderSettings, Upstreams};
use web::{Served, SignInProvider, Web};

use crate::config::{BusSettings, Footprint, Settings, StoreSettings};
use crate::descriptors::Room;
use crate::front::{BothEdges, Front};
use crate::mail;
use crate::metrics::NodeMetrics;
use crate::store_checks;
use crate::store_start::open_when_reached;
use crate::webhooks::{self, Webhooks};

/// Deadline for closing the sockets. REST continues during that time.
const DRAIN_WITHIN: Duration = Duration::from_secs(3);
/// Deadline for running requests: a little longer than the store's deadline for one request.
const REQUESTS_GRACE: Duration = Duration::from_millis(3_250);
/// Deadline for deregistering the node and closing the store.
const CLOSE_WITHIN: Duration = Duration::from_millis(1_500);
/// Deadline for the last segments of the archive.
const ARCHIVE_WITHIN: Duration = Duration::from_millis(1_500);
/// Deadline for closing the sockets of a world that is replaced. Nothing of it is kept.
const REPLACE_WITHIN: Duration = Duration::from_millis(50);

/// The sources of time and randomness, and the sandbox that steers them.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub entropy: Entropy,
    /// Only of `stagedoor dev`.
    pub sandbox: Option<Sandbox>,
    /// The counters of the export to a collector; `None` without one.
    pub exported: Option<Arc<ExportFigures>>,
}

impl Environment {
    /// The system's clock and randomness.
    pub fn system() -> Self {
        Self { clock: Clock::system(), entropy: Entropy::system(), sandbox: None, exported: None }
    }

    /// A sandbox with this clock and this randomness.
    pub fn sandbox(clock: SandboxClock, entropy: Entropy) -> Self {
        let sandbox = Some(Sandbox::new(clock.clone()));
        Self { clock: Clock::sandbox(clock), entropy, sandbox, exported: None }
    }
}

/// A running node.
pub struct Node {
    front: Front,
    base_url: String,
    settings: Settings,
    service: Service,
    /// `None` on a node without the role gateway.
    gateway: Option<Gateway>,
    /// Only of `stagedoor dev`.
    sandbox: Option<Sandbox>,
    /// `None` on a node without the role jobs.
    webhooks: Option<Webhooks>,
    /// The jobs and the gateway's tasks. Dropping the set ends them.
    background: JoinSet<()>,
    /// While the log of the store is archived.
    archiver: Option<Archiver>,
}

/// The parts of a node that may not be had. Nothing serves yet.
struct Prepared {
    service: Service,
    gateway: Option<Gateway>,
    webhooks: Option<Webhooks>,
    /// The sender of mail.
    background: JoinSet<()>,
    base_url: String,
    upstreams: Upstreams,
    /// Makes the connections of tests.
    prober: Arc<dyn Prober>,
    sockets_max: usize,
    archiver: Option<Archiver>,
}

/// A node that failed to start, with its listeners.
pub(crate) struct NotStarted {
    pub front: Front,
    pub error: String,
}

impl Node {
    /// Opens the store, listens, and serves. Requests are answered when this returns.
    ///
    /// # Errors
    /// A sentence for the operator: for example, the address is in use, or the store cannot be opened.
    pub async fn start(settings: Settings, environment: Environment) -> Result<Self, String> {
        // First of all, because an occupied address is the usual mistake.
        let front = Front::reserve(&settings)?;
        Self::start_behind(front, settings, environment).await.map_err(|not_started| not_started.error)
    }

    /// Opens the store, and serves behind these listeners.
    ///
    /// # Errors
    /// As [`start`](Self::start), with the listeners.
    pub(crate) async fn start_behind(
        mut front: Front,
        settings: Settings,
        environment: Environment,
    ) -> Result<Self, NotStarted> {
        match Prepared::new(&mut front, &settings, &environment).await {
            Ok(prepared) => Ok(Self::serve(front, settings, environment, prepared)),
            Err(error) => Err(NotStarted { front, error }),
        }
    }

    /// Serves behind these listeners.
    fn serve(mut front: Front, settings: Settings, environment: Environment, prepared: Prepared) -> Self {
        let Prepared { service, gateway, webhooks, mut background, base_url, .. } = prepared;
        let Prepared { upstreams, prober, sockets_max, archiver, .. } = prepared;
        let address = front.address();
        let node_metrics = NodeMetrics {
            gateway: gateway.clone(),
            webhooks: webhooks.as_ref().map(Webhooks::metrics),
            service: service.clone(),
            upstreams: upstreams.clone(),
            exported: environment.exported.clone(),
            store: settings.store.name(),
            certificate: settings.https.as_ref().map(|https| https.certificate.clone()),
            archive: archiver.as_ref().map(Archiver::figures),
            started_at: environment.clock.now(),
        };
        let web = Web::new(
            service.clone(),
            web_config(&settings, &base_url),
            Arc::new(node_metrics),
            &site::paths(),
        );
        spawn_jobs(&mut background, &service, gateway.as_ref());
        if let Some(https) = &settings.https {
            background.spawn(https.certificate.clone().watch(environment.clock.clone()));
        }
        let served = match (settings.roles.web, front.platform_address()) {
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
                address,
                fixed_hosts: fixed_hosts(&settings, address),
            };
            let surroundings = Surroundings {
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
            web: web::router(web.clone(), served, site::routes(upstreams.clone(), prober.clone())),
            entropy: environment.entropy.clone(),
            proxies: Arc::new(Proxies::new(
                settings.trusted_proxies.clone(),
                proxy_protocol,
                environment.clock.clone(),
            )),
            hosts: hosts.clone(),
            tls: settings.terminator().cloned(),
            language: settings.language,
            door: None,
        };
        let both = BothEdges {
            open: edges(gateway.clone(), served, settings.proxy_protocol),
            platform: edges(None, Served::Platform, false),
        };
        front.open(both, gateway.clone(), environment.clock.clone(), sockets_max, REQUESTS_GRACE);
        Self {
            front,
            base_url,
            settings,
            service,
            gateway,
            sandbox: environment.sandbox,
            webhooks,
            background,
            archiver,
        }
    }

    /// The address that the node listens on.
    pub fn address(&self) -> SocketAddr {
        self.front.address()
    }

    /// The URL of the node for clients.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The URL of the platform API.
    pub fn platform_url(&self) -> String {
        let (own, scheme) = (self.front.platform_address(), self.settings.scheme());
        own.map_or_else(|| self.base_url.clone(), |address| format!("{scheme}://{address}"))
    }

    /// The settings of the node.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The fixed hosts of a sandbox with TLS.
    pub fn fixed_hosts(&self) -> Option<FixedHosts> {
        fixed_hosts(&self.settings, self.front.address())
    }

    /// The service of the node.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The gateway, on a node with that role.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// The sandbox, of `stagedoor dev`.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Ends everything behind the listeners at once: the sockets, the jobs, the store. Requests wait until
    /// another node stands behind the listeners. Only for a sandbox, whose database is replaced then.
    pub(crate) async fn retire(mut self) -> (Front, Settings) {
        self.front.shut().await;
        if let Some(sandbox) = &self.sandbox {
            sandbox.log().end();
        }
        if let Some(gateway) = &self.gateway {
            gateway.close_at_once(REPLACE_WITHIN).await;
        }
        drop(self.webhooks.take());
        self.background.shutdown().await;
        if tokio::time::timeout(CLOSE_WITHIN, self.service.close()).await.is_err() {
            tracing::warn!("failed to close the store of a replaced world before the deadline");
        }
        (self.front, self.settings)
    }

    /// Stops in steps. First `/health/ready` fails, and the node serves for the drain delay. Then the sockets
    /// are closed while REST continues. Then no connection is accepted, and running requests and webhook
    /// attempts are finished. Last, the store is closed, and the archive gets the rest. In every case this
    /// takes less than 8 seconds beyond the delay, less than 10 with an archive.
    pub async fn stop(mut self) {
        self.front.set_phase(Phase::Draining);
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
        self.front.set_phase(Phase::Closing);
        let webhooks = self.webhooks.take();
        let sending = async {
            if let Some(webhooks) = webhooks {
                webhooks.stop(REQUESTS_GRACE).await;
            }
        };
        tokio::join!(sending, self.front.ended());
        self.background.shutdown().await;
        let leave = async {
            if let Err(error) = self.service.flush_all_uses().await {
                tracing::warn!(%error, "failed to record the last uses of applications");
            }
            if let Err(error) = self.service.flush_usage().await {
                tracing::warn!(%error, "failed to record the last requests of applications");
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
        if let Some(archiver) = self.archiver.take() {
            archiver.stop(ARCHIVE_WITHIN).await;
        }
    }
}

impl Prepared {
    /// Opens the store, and listens. Connections wait until something serves.
    async fn new(front: &mut Front, settings: &Settings, environment: &Environment) -> Result<Self, String> {
        if environment.entropy.is_seeded() && !settings.sandbox {
            return Err("only a sandbox may have a seed: its tokens can be guessed".to_owned());
        }
        let room = match settings.terminator() {
            Some(_) => Room::claim().divided(terminator::DESCRIPTORS),
            None => Room::claim(),
        };
        let (store, alone) = open_store(settings, environment).await?;
        let log = store.log_archive();
        front.listen()?;
        let address = front.address();
        let own_url = || format!("{}://{address}", settings.scheme());
        let base_url = settings.base_url.clone().unwrap_or_else(own_url);
        let node = NodeId::generate(environment.clock.now(), environment.entropy.bytes(Purpose::Node));
        let bus = open_bus(&settings.bus, &node, environment).await?;
        let session_base = session_base(settings, &base_url, address);
        let service = service(settings, environment, store, bus, node, session_base);
        service.serve_pictures_at(&base_url);
        if let Err(refused) = check_store(&service, settings).await {
            service.close().await;
            return Err(refused);
        }
        let archive = prepare_archive(&service, settings, environment, log).await?;
        service.prepare_partitions().await;
        join(&service, alone).await?;

        let gateway = settings.roles.gateway.then(|| {
            let sessions_max = room.sessions_max;
            Gateway::new(service.clone(), gateway_config(settings, sessions_max))
        });
        let webhooks = match settings.roles.jobs {
            true => Some(Webhooks::start(&service, room.webhooks_max)?),
            false => None,
        };
        let mut background = JoinSet::new();
        mail::spawn(&mut background, &service, settings, environment.sandbox.as_ref())?;
        let upstreams = Upstreams::new(settings.upstreams.clone())?;
        let prober = webhooks::prober(&service)?;
        settings.expected_store.mark()?;
        // Last, so that a node that cannot start begins nothing.
        let archiver = archive.map(|(log, settings)| Archiver::start(log, settings));
        Ok(Self {
            archiver,
            service,
            gateway,
            webhooks,
            background,
            base_url,
            upstreams,
            prober,
            sockets_max: room.sockets_max,
        })
    }
}

/// The archive of the log, if there is one. Refuses the place of another store.
async fn prepare_archive(
    service: &Service,
    settings: &Settings,
    environment: &Environment,
    log: Option<Arc<LogArchive>>,
) -> Result<Option<(Arc<LogArchive>, ArchiveSettings)>, String> {
    let Some((archive, log)) = settings.archive.as_ref().zip(log) else { return Ok(None) };
    match archive.prepare(&log, service, &environment.entropy).await {
        Ok(prepared) => Ok(Some((log, prepared))),
        Err(refused) => {
            service.close().await;
            Err(refused)
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

/// Refuses a store of another command, and one whose secrets another service key has sealed.
async fn check_store(service: &Service, settings: &Settings) -> Result<(), String> {
    store_checks::check_origin(service, settings.sandbox).await?;
    store_checks::check_service_key(service, &settings.expected_store).await
}

/// Opens the store. The flag is whether only this process uses it.
async fn open_store(settings: &Settings, environment: &Environment) -> Result<(Store, bool), String> {
    let (target, alone) = match &settings.store {
        StoreSettings::Sqlite { path } => {
            settings.expected_store.check_folder(path)?;
            let folder = path.parent().unwrap_or(path);
            temporary_folder::make_private(folder)
                .map_err(|error| format!("--data {}: {error}", folder.display()))?;
            (Target::Sqlite { path: path.clone() }, true)
        }
        StoreSettings::Postgres { url } => (Target::Postgres { url: url.clone() }, false),
    };
    let options = match settings.footprint {
        Footprint::Whole => Options::default(),
        Footprint::Small => Options { sqlite_readers: 1, sqlite_sync: false, ..Options::default() },
    };
    let log_archiving = settings.archive.as_ref().map(|archive| archive.log(&environment.clock));
    let existing = settings.expected_store.exists();
    let options = Options { deadline: settings.store_deadline, log_archiving, existing, ..options };
    let opened = match settings.sandbox {
        true => Store::open(target, options).await,
        false => open_when_reached(target, options, &environment.clock).await,
    };
    let opened = opened.map_err(|error| match error {
        StoreError::NoStore => settings.expected_store.missing(&settings.store),
        error => error.to_string(),
    });
    Ok((opened?, alone))
}

async fn open_bus(
    settings: &BusSettings,
    node: &NodeId,
    environment: &Environment,
) -> Result<Arc<dyn Bus>, String> {
    let BusSettings::Nats { access, prefix } = settings else {
        return Ok(Arc::new(LocalBus::default()));
    };
    let Environment { clock, entropy, .. } = environment.clone();
    let options = bus::Options {
        access: access.clone(),
        prefix: prefix.clone(),
        node: node.clone(),
        now: Box::new(move || clock.now()),
        random: Box::new(move || u64::from_ne_bytes(entropy.bytes(Purpose::Jitter))),
    };
    let bus = NatsBus::connect(options).await.map_err(|error| error.to_string())?;
    Ok(Arc::new(bus))
}

/// The URL of this node's sockets for clients, if it has the role gateway.
fn session_base(settings: &Settings, base_url: &str, address: SocketAddr) -> Option<String> {
    let Settings { roles, session_base, .. } = settings;
    // The base URL does not lead to a node without REST.
    let own_url = || format!("{}://{address}", settings.scheme());
    let default = || if roles.web { base_url.to_owned() } else { own_url() };
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
    let Environment { clock, entropy, sandbox, .. } = environment.clone();
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
        accounts: settings.accounts,
        developers: settings.developers,
        retention: settings.retention,
        password_cost: settings.password_cost,
        socket_faults: sandbox.as_ref().map(Sandbox::socket_faults),
        webhook_faults: sandbox.as_ref().map(Sandbox::webhook_faults),
    })
}

/// The fixed hosts of a sandbox, by the address that it listens on; `None` without TLS.
fn fixed_hosts(settings: &Settings, address: SocketAddr) -> Option<FixedHosts> {
    let tls = settings.tls.as_ref()?;
    let lines = tls.lines.iter().map(|line| (line.host().to_owned(), line.address()));
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
    if let Some(name) = &settings.network
        && let Err(error) = sandbox::use_network(sandbox, name)
    {
        tracing::warn!(%error, "failed to put the applications behind a network");
    }
    Some(Api::new(sandbox.clone(), operator_key, web::documents::openapi, surroundings))
}

fn gateway_config(settings: &Settings, sessions_max: usize) -> gateway::Config {
    let mut config = gateway::Config { language: settings.language, sessions_max, ..Default::default() };
    if let Some(ping_times) = settings.ping_times {
        [config.ping_interval, config.ping_timeout] = ping_times;
    }
    match settings.footprint {
        Footprint::Whole => config,
        Footprint::Small => gateway::Config { shards: 1, ..config },
    }
}

fn web_config(settings: &Settings, base_url: &str) -> web::Config {
    web::Config {
        language: settings.language,
        base_url: base_url.to_owned(),
        operator_keys: settings
            .operator_key
            .iter()
            .chain(&settings.other_operator_key)
            .map(OperatorKey::hash)
            .collect(),
        sandbox: settings.sandbox,
        brand: settings.brand.clone(),
        providers: settings.upstreams.iter().map(sign_in_provider).collect(),
    }
}

fn sign_in_provider(settings: &ProviderSettings) -> SignInProvider {
    SignInProvider { name: settings.name.clone(), labels: settings.labels.clone() }
}

fn spawn_jobs(background: &mut JoinSet<()>, service: &Service, gateway: Option<&Gateway>) {
    let Roles { web, gateway: sockets, jobs } = service.roles();
    let (declared_dead, mut notices) = mpsc::channel(1);
    background.spawn(jobs::heartbeat(service.clone(), declared_dead));
    if jobs {
        background.spawn(jobs::sweep(service.clone()));
        background.spawn(jobs::retire_unused_applications(service.clone()));
        if service.has_other_key() {
            background.spawn(jobs::renew_seals(service.clone()));
        }
    }
    if web {
        background.spawn(jobs::warm_up(service.clone()));
        background.spawn(jobs::flush_uses(service.clone()));
        background.spawn(jobs::watch_credentials(service.clone()));
    }
    if web || sockets {
        background.spawn(jobs::flush_usage(service.clone()));
    }
    background.spawn(jobs::measure_store(service.clone()));
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
