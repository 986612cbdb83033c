//! A small world on a fresh store: a service, its bus, a clock to move, and the steps that every test begins
//! with.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, Delivery, LocalBus, Message, Subscriber};
use domain::application::{Application, RedirectUri};
use domain::event::{Event, EventType};
use domain::limits::SESSION_LIST_SIZE_MAX;
use domain::secret::AuthCode;
use domain::session::{ChangeKind, SessionListing, SessionOwner};
use domain::token::Caller;
use domain::{ChannelId, ClientId, NodeId, Profile, Refusal, Scope, ScopeSet, SessionKey, Timestamp};
use service::applications::ApplicationRecord;
use service::nodes::{Membership, Roles};
use service::sign_in::SignInRequest;
use service::tokens::IssuedTokens;
use service::{ChannelRecord, Clock, Entropy, Error, ManualClock, Page, PasswordCost, Service, ServiceDeps};
use store::{Store, Tx};

/// Where every application's sign-ins end.
pub const REDIRECT: &str = "https://app.example/callback";
/// The `state` of every sign-in that needs no other.
pub const STATE: &str = "the state";
/// The moment at which every world begins, in milliseconds since the epoch.
pub const BEGINNING: i64 = 1_784_385_132_345;
/// Longer than anything here takes, shorter than a hanging test run.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module. Clones share it.
#[derive(Clone)]
pub struct World {
    pub service: Service,
    pub hand: ManualClock,
    pub store: Store,
    bus: Arc<dyn Bus>,
    clock: Clock,
}

/// Runs the body on both engines.
pub async fn both<Fut>(mut body: impl FnMut(World) -> Fut)
where
    Fut: Future<Output = ()> + Send + 'static,
{
    store::testing::both(|store| body(World::new(store, Arc::new(LocalBus::default())))).await;
}

impl World {
    pub fn new(store: Store, bus: Arc<dyn Bus>) -> Self {
        let (clock, hand) = Clock::manual(Timestamp::from_millis(BEGINNING));
        let service = service_of(&store, &bus, &clock, "node-a", 1);
        Self { service, hand, store, bus, clock }
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

    pub fn advance_ms(&self, ms: u64) {
        self.hand.advance(Duration::from_millis(ms));
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
                assert_eq!(refusal(error).kind(), "invalid_token");
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

    pub async fn page(&self, owner: &SessionOwner, size: i64, page: i64) -> Vec<SessionListing> {
        self.service.sessions(owner.clone(), Page { size, page }, false).await.unwrap().sessions
    }

    /// What is connected, of an owner's first page.
    pub async fn connected(&self, owner: &SessionOwner) -> usize {
        self.listed(owner).await.iter().filter(|session| session.disconnected_at.is_none()).count()
    }

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
        password_cost: PasswordCost::LEAST,
    })
}

/// What an application is told to be.
pub fn record(id: &str, scopes: ScopeSet) -> ApplicationRecord {
    ApplicationRecord {
        client_id: ClientId::stored(id.to_owned()),
        name: format!("application {id}"),
        organization_id: None,
        redirect_uris: vec![RedirectUri::parse(REDIRECT).unwrap()],
        scopes,
        profile: None,
        quota: true,
    }
}

/// Every scope that users can consent to, but one.
pub fn all_scopes_but(lost: Scope) -> ScopeSet {
    ScopeSet::of_users().without([lost].into_iter().collect())
}

pub fn client_owner(application: &Application) -> SessionOwner {
    SessionOwner::Client { client_id: application.client_id.clone() }
}

pub fn user_owner(application: &Application, user: &ChannelId) -> SessionOwner {
    SessionOwner::User { client_id: application.client_id.clone(), channel_id: user.clone() }
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

/// Runs the tasks at once and gives what each came to, refusals included, in their order; the store must not
/// fail.
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

/// How many were let through; all others must have met this refusal.
pub fn winners<T>(outcomes: Vec<Result<T, Refusal>>, others: &Refusal) -> Vec<T> {
    outcomes
        .into_iter()
        .filter_map(|outcome| outcome.map_err(|refusal| assert_eq!(refusal, *others)).ok())
        .collect()
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens in time")
}

/// The messages that a subscriber has been given so far.
pub async fn heard(bus: &mut Subscriber) -> Vec<Message> {
    let mut messages = Vec::new();
    // A task that has received much without a pause is made to wait even for what is there.
    tokio::task::yield_now().await;
    // The local bus has delivered before a publisher returns, so what there is needs no waiting for.
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
