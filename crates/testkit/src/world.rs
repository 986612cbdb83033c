//! A server in this process, with its store, its clock and its clients.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use domain::client_address::TrustedProxies;
use domain::outbound::Reach;
use domain::seal::ServiceKey;
use domain::secret::OperatorKey;
use domain::{Language, Profile, Timestamp};
use serde_json::json;
use server::{BusSettings, Environment, Footprint, Node, Settings, StoreSettings};
use service::nodes::Roles;
use service::webhooks::WebhookSettings;
use service::{AccountSettings, Clock, DeveloperSettings, Entropy, ManualClock, PasswordCost};
use store::testing::{Fresh, Level, Network, UNHURRIED, Wire, migrated_postgres};
use store::{Options, Store, Target};
use tokio::sync::Mutex;
use upstream::ProviderSettings;
use web::Brand;

use crate::service_world::{START_MS, manual_clock};
use crate::{Api, Browser, ReservedPort, patiently};

/// The settings of a world. By default: profile `documented`, Korean, no quotas, no sandbox, a manual clock,
/// and the store deadline [`UNHURRIED`].
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The service's profile.
    pub profile: Profile,
    /// The language of messages.
    pub language: Language,
    /// Whether quotas are enforced.
    pub quotas: bool,
    /// Whether the sign-in page lists people.
    pub sandbox: bool,
    /// Whether the clock is the system's.
    pub system_clock: bool,
    /// A base address, if it is not the one that the server listens on.
    pub base_url: Option<&'static str>,
    /// The trusted proxies: addresses and networks with commas.
    pub trusted_proxies: &'static str,
    /// Whether these proxies speak the PROXY protocol.
    pub proxy_protocol: bool,
    /// The roles of the server.
    pub roles: Roles,
    /// The drain delay.
    pub drain_delay: Duration,
    /// Deadline of the store for a request.
    pub store_deadline: Duration,
    /// Whether the operator reviews scopes.
    pub reviews_scopes: bool,
    /// The brand of the pages.
    pub brand: fn() -> Brand,
    /// The providers at which people sign in.
    pub upstreams: &'static [ProviderSettings],
    /// Whether accounts have passwords.
    pub passwords: bool,
    /// For how many days after a sign-in tokens can be refreshed.
    pub token_days_max: Option<i64>,
    /// The cost of a password.
    pub password_cost: PasswordCost,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            profile: Profile::Documented,
            language: Language::Korean,
            quotas: false,
            sandbox: false,
            system_clock: false,
            base_url: None,
            trusted_proxies: "",
            proxy_protocol: false,
            roles: Roles::ALL,
            drain_delay: Duration::ZERO,
            store_deadline: UNHURRIED,
            reviews_scopes: false,
            brand: Brand::default,
            upstreams: &[],
            passwords: true,
            token_days_max: None,
            password_cost: PasswordCost::LEAST,
        }
    }
}

impl Setup {
    /// The default with the store deadline of production, for tests of an unreachable store.
    pub fn hurried() -> Self {
        Self { store_deadline: store::DEADLINE, ..Self::default() }
    }
}

/// The database of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A file in a temporary folder.
    Sqlite,
    /// A schema of the server of `STAGEDOOR_TEST_DATABASE_URL`.
    Postgres,
}

/// A running server and its clients. Clones are the same world.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    /// The engine of its database.
    engine: Engine,
    target: Target,
    settings: Settings,
    environment: Environment,
    hand: Option<ManualClock>,
    /// The server has the same address after a restart.
    _port: ReservedPort,
    node: Mutex<Option<Node>>,
    api: Api,
}

/// The counters of a server's sockets.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// Sessions connected now.
    pub sessions: u64,
    /// Sessions opened so far.
    pub opened: u64,
    /// Handshakes refused so far.
    pub refused: u64,
    /// Bytes in send queues now.
    pub queued_bytes: u64,
    closes: Vec<(&'static str, u64)>,
}

impl Sockets {
    /// Sessions that have ended for a reason so far.
    pub fn closed(&self, reason: &str) -> u64 {
        self.closes.iter().find(|(name, _)| *name == reason).map_or(0, |(_, count)| *count)
    }

    /// Sessions that have ended so far.
    pub fn all_closed(&self) -> u64 {
        self.closes.iter().map(|(_, count)| count).sum()
    }
}

/// Interval of moving the clock while a server stops.
const STOPPING_STEP: Duration = Duration::from_millis(5);

impl Level for Setup {
    type World = World;

    fn partitioned_at(&self) -> Option<Timestamp> {
        Some(if self.system_clock { Clock::system().now() } else { Timestamp::from_millis(START_MS) })
    }

    async fn start(&self, fresh: &Fresh) -> World {
        let engine = if fresh.url().is_some() { Engine::Postgres } else { Engine::Sqlite };
        World::start(*self, engine, fresh.target()).await
    }

    async fn stop(world: World) {
        world.stop().await;
    }
}

/// Runs the body on a new world on PostgreSQL, whose connections to the database use a wire that the body can
/// cut.
///
/// # Panics
/// When the body panics; when `STAGEDOOR_TEST_DATABASE_URL` is missing.
pub async fn over_a_wire<F, Fut>(setup: Setup, body: F)
where
    F: FnOnce(World, Arc<Wire>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let fresh = migrated_postgres(setup.partitioned_at()).await;
    let wire = Arc::new(Wire::to(&fresh).await);
    let world = World::start(setup, Engine::Postgres, Target::Postgres { url: wire.url().into() }).await;
    let outcome = tokio::spawn(Box::pin(body(world.clone(), wire.clone()))).await;
    wire.set(Network::Up);
    world.stop().await;
    fresh.remove().await;
    assert!(outcome.is_ok(), "failed: see the panic above");
}

impl World {
    /// When the clock of a world starts, in milliseconds.
    pub const START_MS: i64 = START_MS;

    /// The key of every world's platform API.
    pub const OPERATOR_KEY: &'static str = "the-operator-of-a-test-holds-this-key";

    /// The service key of every world.
    pub const SERVICE_KEY: &'static str = "the service of a test seals with this key";

    async fn start(setup: Setup, engine: Engine, target: Target) -> Self {
        let (clock, hand) = if setup.system_clock {
            (Clock::system(), None)
        } else {
            let (clock, hand) = manual_clock();
            (clock, Some(hand))
        };
        let environment = Environment { clock, entropy: Entropy::system(), sandbox: None, exported: None };
        let port = ReservedPort::take();
        let settings = Settings { listen: port.address(), ..settings(setup, &target) };
        let node = Node::start(settings.clone(), environment.clone()).await.expect("the server starts");
        let api = Api::new(&format!("http://{}", node.address()), Self::OPERATOR_KEY);
        let node = Mutex::new(Some(node));
        Self(Arc::new(Inner { engine, target, settings, environment, hand, _port: port, node, api }))
    }

    /// The engine of its database.
    pub fn engine(&self) -> Engine {
        self.0.engine
    }

    /// Its database.
    pub fn target(&self) -> &Target {
        &self.0.target
    }

    /// A browser without a sign-in.
    pub fn browser(&self) -> Browser {
        Browser::new(self.address())
    }

    /// The address of a picture of the service.
    pub fn picture(&self, name: &str) -> String {
        format!("http://{}/pictures/{name}.png", self.address())
    }

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.0.settings.listen
    }

    /// Moves the clock forward. A test should receive pending messages of sockets before: to the server, a
    /// write takes as long as the clock moves during it.
    ///
    /// # Panics
    /// When the world runs on the system's clock.
    pub fn advance(&self, span: Duration) {
        self.0.hand.as_ref().expect("a clock that can be moved").advance(span);
    }

    /// The time in this world, in milliseconds.
    pub fn now_ms(&self) -> i64 {
        self.0.environment.clock.now().as_millis()
    }

    /// Creates a category.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn category(&self, category_id: &str, value: &str) {
        let body = json!({ "categoryType": "GAME", "categoryValue": value });
        self.put_category(category_id, &body).await.content();
    }

    /// Stops the server as SIGTERM would. Stopping it again does nothing. A manual clock is advanced
    /// meanwhile, because closing the sockets takes some seconds.
    pub async fn stop(&self) {
        let Some(node) = self.0.node.lock().await.take() else { return };
        self.stop_node(node).await;
    }

    /// Stops another node of this world, as [`stop`](Self::stop) does.
    pub async fn stop_node(&self, node: Node) {
        let mut stopping = Box::pin(node.stop());
        patiently("the server stops", async {
            while tokio::time::timeout(STOPPING_STEP, &mut stopping).await.is_err() {
                if let Some(hand) = &self.0.hand {
                    hand.advance(STOPPING_STEP * 20);
                }
            }
        })
        .await;
    }

    /// The counters of the server's sockets.
    ///
    /// # Panics
    /// When the server does not run.
    pub async fn sockets(&self) -> Sockets {
        let node = self.0.node.lock().await;
        let stats = node.as_ref().expect("the server runs").gateway().expect("its sockets").stats();
        Sockets {
            sessions: stats.sessions(),
            opened: stats.opened,
            refused: stats.refused,
            queued_bytes: stats.queued_bytes,
            closes: stats.closes.iter().map(|(reason, count)| (reason.as_str(), *count)).collect(),
        }
    }

    /// Writes the requests and events of applications that the server has counted.
    ///
    /// # Panics
    /// When the server does not run, or its store fails.
    pub async fn settle_usage(&self) {
        let node = self.0.node.lock().await;
        node.as_ref().expect("the server runs").service().flush_usage().await.expect("they are written");
    }

    /// Records a complete backup that began at a time, and lets the server measure its store.
    ///
    /// # Panics
    /// When the server does not run, or its store fails.
    pub async fn record_backup(&self, taken_at: Timestamp) {
        let node = self.0.node.lock().await;
        let service = node.as_ref().expect("the server runs").service();
        let store_id = service.store_id().await.expect("the store answers");
        store::record_backup(&self.0.target, &store_id, taken_at).await.expect("it is recorded");
        service.measure_store().await.expect("it is measured");
    }

    /// Starts the server again, on the same data and at the same address.
    ///
    /// # Panics
    /// When it runs, or does not start.
    pub async fn restart(&self) {
        let mut node = self.0.node.lock().await;
        assert!(node.is_none(), "the server still runs");
        let started = Node::start(self.0.settings.clone(), self.0.environment.clone()).await;
        *node = Some(started.expect("the server starts again"));
    }

    /// Starts another node on the same database and clock. The caller stops it.
    ///
    /// # Panics
    /// When it does not start, as on SQLite, whose file belongs to one node.
    pub async fn another_node(&self) -> (Node, Api) {
        self.another_node_of(Roles::ALL).await
    }

    /// As [`another_node`](Self::another_node), with other roles.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn another_node_of(&self, roles: Roles) -> (Node, Api) {
        self.another_node_with(|settings| settings.roles = roles).await
    }

    /// As [`another_node`](Self::another_node), with other settings.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn another_node_with(&self, change: impl FnOnce(&mut Settings)) -> (Node, Api) {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut settings = Settings { listen, ..self.0.settings.clone() };
        change(&mut settings);
        let node = Node::start(settings, self.0.environment.clone()).await.expect("another node starts");
        let api = Api::new(&format!("http://{}", node.address()), Self::OPERATOR_KEY);
        (node, api)
    }

    /// Opens the store, to check its content. On SQLite the server must be stopped before.
    ///
    /// # Panics
    /// When the server runs on SQLite, or the store cannot be opened.
    pub async fn open_store(&self) -> Store {
        let is_free = self.engine() == Engine::Postgres || self.0.node.lock().await.is_none();
        assert!(is_free, "the server still runs");
        Store::open(self.0.target.clone(), Options::default()).await.expect("the store opens")
    }
}

/// A world can be called like its server.
impl Deref for World {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.0.api
    }
}

/// The settings of a node on a database, with the defaults of a world.
pub fn settings_on(target: &Target) -> Settings {
    settings(Setup::default(), target)
}

pub(crate) fn settings(setup: Setup, target: &Target) -> Settings {
    Settings {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        platform_listen: None,
        listen_socket: None,
        trusted_proxies: TrustedProxies::parse(setup.trusted_proxies).expect("a list"),
        proxy_protocol: setup.proxy_protocol,
        store: match target.clone() {
            Target::Sqlite { path } => StoreSettings::Sqlite { path },
            Target::Postgres { url } => StoreSettings::Postgres { url },
        },
        expected_store: Default::default(),
        store_deadline: setup.store_deadline,
        bus: BusSettings::Local,
        base_url: setup.base_url.map(str::to_owned),
        session_base: None,
        hosts: None,
        tls: None,
        https: None,
        roles: setup.roles,
        drain_delay: setup.drain_delay,
        operator_key: OperatorKey::presented(World::OPERATOR_KEY),
        other_operator_key: None,
        service_key: ServiceKey::of_text(World::SERVICE_KEY),
        sandbox: setup.sandbox,
        ping_times: None,
        network: None,
        profile: setup.profile,
        language: setup.language,
        quotas: setup.quotas,
        // The receivers of tests are on loopback.
        webhooks: WebhookSettings {
            reach: Reach { loopback: true, ..Reach::PUBLIC },
            ..WebhookSettings::default()
        },
        developers: DeveloperSettings { reviews_scopes: setup.reviews_scopes },
        retention: Default::default(),
        accounts: AccountSettings {
            registration: setup.passwords,
            sends_mail: true,
            passwords: setup.passwords,
            token_chain_max_ms: setup.token_days_max.map(|days| days * domain::limits::DAY_MS),
            ..AccountSettings::default()
        },
        upstreams: setup.upstreams.to_vec(),
        mail_hook: None,
        password_cost: setup.password_cost,
        archive: None,
        footprint: Footprint::Whole,
        brand: (setup.brand)(),
    }
}
