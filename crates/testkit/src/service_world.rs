//! Services on one store, with their bus and a clock that stands still until it is moved.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, LocalBus};
use domain::application::{Application, Presentation, RedirectUri};
use domain::event::EventType;
use domain::limits::SESSION_LIST_SIZE_MAX;
use domain::secret::AuthCode;
use domain::session::{ChangeKind, SessionListing, SessionOwner};
use domain::token::Caller;
use domain::{ChannelId, ClientId, NodeId, Profile, ScopeSet, SessionKey, Timestamp};
use service::applications::{ApplicationRecord, NewLogo};
use service::nodes::{Membership, Roles};
use service::sign_in::SignInRequest;
use service::tokens::IssuedTokens;
use service::{
    AccountSettings, ChannelRecord, Clock, Entropy, Error, ManualClock, Page, PasswordCost, Service,
    ServiceDeps,
};
use store::testing::{Fresh, Level};
use store::{Options, Store, Tx};

/// The redirect address of every application.
pub const REDIRECT: &str = "https://app.example/callback";
/// The `state` of every sign-in.
pub const STATE: &str = "the state";
/// When the manual clock of a world starts, in milliseconds: 2026-07-18T14:32:12.345Z.
pub const START_MS: i64 = 1_784_385_132_345;
/// The node of a world's first service.
const NODE: &str = "node-a";

/// A service and what it shares with further nodes. Clones are the same world.
#[derive(Clone)]
pub struct ServiceWorld {
    /// The service of the first node.
    pub service: Service,
    /// Moves the clock. Without effect on the system's clock.
    pub manual_clock: ManualClock,
    /// The store.
    pub store: Store,
    bus: Arc<dyn Bus>,
    clock: Clock,
}

/// The settings of a [`ServiceWorld`]. By default: a local bus of its own and a manual clock.
#[derive(Clone, Default)]
pub struct ServiceSetup {
    /// The bus.
    pub bus: Option<Arc<dyn Bus>>,
    /// Whether the clock is the system's.
    pub system_clock: bool,
}

impl Level for ServiceSetup {
    type World = ServiceWorld;

    async fn start(&self, fresh: &Fresh) -> ServiceWorld {
        ServiceWorld::new(self.clone(), fresh.open(Options::default()).await)
    }

    async fn stop(world: ServiceWorld) {
        world.store.close().await;
    }
}

/// A clock at [`START_MS`].
pub(crate) fn manual_clock() -> (Clock, ManualClock) {
    Clock::manual(Timestamp::from_millis(START_MS))
}

impl ServiceWorld {
    /// A world on a store.
    pub fn new(setup: ServiceSetup, store: Store) -> Self {
        let (clock, manual_clock) = manual_clock();
        let clock = if setup.system_clock { Clock::system() } else { clock };
        let bus = setup.bus.unwrap_or_else(|| Arc::new(LocalBus::default()));
        let service = service_of(&store, &bus, &clock, NODE, 1);
        Self { service, manual_clock, store, bus, clock }
    }

    /// A world on a store and a bus, with a manual clock.
    pub fn over(store: Store, bus: Arc<dyn Bus>) -> Self {
        Self::new(ServiceSetup { bus: Some(bus), ..ServiceSetup::default() }, store)
    }

    /// Another node on the same store, bus and clock.
    pub fn node(&self, name: &str) -> Service {
        // Nodes draw from seeds of their own, or they would make the same ids.
        let seed = name.bytes().fold(2, |seed, byte| seed * 31 + u64::from(byte));
        service_of(&self.store, &self.bus, &self.clock, name, seed)
    }

    /// Another node on the same store and clock, with a bus of its own that leads nowhere.
    pub fn node_of(&self, name: &str, membership: Membership) -> Service {
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::default());
        service_as(&self.store, &bus, &self.clock, (name, 3), membership)
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, ms: u64) {
        self.manual_clock.advance(Duration::from_millis(ms));
    }

    /// An application with every scope that users can consent to.
    pub async fn application(&self, id: &str) -> Application {
        self.application_with(id, ScopeSet::of_users()).await
    }

    /// Makes an application, or gives it other scopes.
    pub async fn application_with(&self, id: &str, scopes: ScopeSet) -> Application {
        self.service.put_application(record(id, scopes)).await.unwrap();
        self.service.application(&ClientId::stored(id.to_owned())).await.unwrap().unwrap()
    }

    /// A channel, whose owner is the user of that id.
    pub async fn user(&self, id: &str) -> ChannelId {
        let channel_id = ChannelId::stored(id.to_owned());
        let name = format!("{id}'s channel");
        let record = ChannelRecord {
            channel_id: channel_id.clone(),
            name,
            image_url: None,
            verified_mark: false,
            real_name_verified: false,
        };
        self.service.put_channel(record, None).await.unwrap();
        channel_id
    }

    /// A code, from a consent given now.
    pub async fn code(&self, application: &Application, user: &ChannelId) -> AuthCode {
        let request = SignInRequest {
            application: application.clone(),
            redirect_uri: REDIRECT.to_owned(),
            state: STATE.to_owned(),
        };
        self.service.consent(&request, user).await.unwrap()
    }

    /// A pair of tokens, from a sign-in made now.
    pub async fn tokens(&self, application: &Application, user: &ChannelId) -> IssuedTokens {
        let code = self.code(application, user).await;
        self.service.exchange_code(application, code.expose(), STATE).await.unwrap()
    }

    /// A caller, from a sign-in made now.
    pub async fn caller(&self, application: &Application, user: &ChannelId) -> Caller {
        let tokens = self.tokens(application, user).await;
        self.service.authenticate_user(tokens.access.expose()).await.unwrap().caller.clone()
    }

    /// Whether an access token opens anything.
    pub async fn lives(&self, tokens: &IssuedTokens) -> bool {
        match self.service.authenticate_user(tokens.access.expose()).await {
            Ok(_) => true,
            Err(error) => {
                assert!(
                    matches!(&error, Error::Refused(refusal) if refusal.kind() == "invalid_token"),
                    "{error}"
                );
                false
            }
        }
    }

    /// A connected session.
    pub async fn connect(&self, owner: &SessionOwner) -> SessionKey {
        let url = self.service.issue_session_url(owner.clone()).await.unwrap();
        self.service.connect_session(url.expose()).await.unwrap().session_key
    }

    /// The changes of a session so far, whose numbers must be 1, 2, 3, …
    pub async fn changes(&self, key: &SessionKey) -> Vec<(ChangeKind, EventType, String)> {
        let changes = self.service.session_changes(key, 0).await.unwrap();
        let versions: Vec<i64> = changes.iter().map(|change| change.version).collect();
        assert_eq!(versions, (1..=changes.len() as i64).collect::<Vec<_>>(), "numbered without a gap");
        let parts = |change: domain::session::SessionChange| {
            let subscription = change.subscription;
            (change.kind, subscription.event_type, subscription.channel_id.as_str().to_owned())
        };
        changes.into_iter().map(parts).collect()
    }

    /// The first page of an owner's sessions.
    pub async fn listed(&self, owner: &SessionOwner) -> Vec<SessionListing> {
        self.page(owner, SESSION_LIST_SIZE_MAX, 0).await
    }

    /// A page of an owner's sessions.
    pub async fn page(&self, owner: &SessionOwner, size: i64, page: i64) -> Vec<SessionListing> {
        self.service.sessions(owner.clone(), Page { size, page }, false).await.unwrap().sessions
    }

    /// What is connected, of an owner's first page.
    pub async fn connected(&self, owner: &SessionOwner) -> usize {
        self.listed(owner).await.iter().filter(|session| session.disconnected_at.is_none()).count()
    }

    /// The number that a query returns.
    pub async fn count(&self, sql: &'static str) -> i64 {
        let counted: Result<i64, store::StoreError> =
            self.store.read(async move |tx: &mut Tx| tx.query_one(sql, &[]).await?.get(0)).await;
        counted.unwrap()
    }
}

fn service_of(store: &Store, bus: &Arc<dyn Bus>, clock: &Clock, node: &str, seed: u64) -> Service {
    let membership = Membership { roles: Roles::ALL, session_base: Some(format!("http://{node}")) };
    service_as(store, bus, clock, (node, seed), membership)
}

fn service_as(
    store: &Store,
    bus: &Arc<dyn Bus>,
    clock: &Clock,
    (node, seed): (&str, u64),
    membership: Membership,
) -> Service {
    Service::new(ServiceDeps {
        store: store.clone(),
        bus: bus.clone(),
        clock: clock.clone(),
        entropy: Entropy::seeded(seed),
        node: NodeId::stored(node.to_owned()),
        profile: Profile::Documented,
        quotas: false,
        key: domain::seal::ServiceKey::new([7; 32]),
        membership,
        webhooks: Default::default(),
        accounts: AccountSettings { registration: true, sends_mail: true, ..Default::default() },
        developers: Default::default(),
        retention: Default::default(),
        password_cost: PasswordCost::LEAST,
        socket_faults: None,
        webhook_faults: None,
    })
}

/// The record of an application of the tests.
pub fn record(id: &str, scopes: ScopeSet) -> ApplicationRecord {
    ApplicationRecord {
        client_id: ClientId::stored(id.to_owned()),
        name: format!("application {id}"),
        organization_id: None,
        owner: None,
        redirect_uris: vec![RedirectUri::parse(REDIRECT).unwrap()],
        scopes,
        profile: None,
        quota: true,
        presentation: Presentation::default(),
        logo: NewLogo::default(),
    }
}

/// The owner of an application's client sessions.
pub fn client_owner(application: &Application) -> SessionOwner {
    SessionOwner::Client { client_id: application.client_id.clone() }
}

/// The owner of a user's sessions.
pub fn user_owner(application: &Application, user: &ChannelId) -> SessionOwner {
    SessionOwner::User { client_id: application.client_id.clone(), channel_id: user.clone() }
}
