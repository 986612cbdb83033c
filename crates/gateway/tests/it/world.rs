//! A gateway over a real service on a temporary store, on a real port, with a manual clock.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use bus::{Bus, Interest, LocalBus, Message, Subscriber};
use domain::chat::{Emojis, MessageText};
use domain::event::EventType;
use domain::session::SessionOwner;
use domain::token::Caller;
use domain::{ChannelId, ClientId, NodeId, Profile, ScopeSet, SessionKey, Timestamp};
use gateway::{Config, Gateway, Socket, Stats};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use service::applications::ApplicationRecord;
use service::nodes::{Membership, Roles};
use service::{ChannelRecord, Clock, Entropy, Job, ManualClock, PasswordCost, Service, ServiceDeps};
use socketio::CloseReason;
use store::{Options, Store, Target, Tx};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::task::{AbortHandle, JoinHandle};

use super::client::Address;

/// The redirect address of the test's application.
const REDIRECT: &str = "http://127.0.0.1:9999/callback";
/// Deadline of an expected event, in real time.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct World {
    pub service: Service,
    pub gateway: Gateway,
    pub manual_clock: ManualClock,
    pub address: Address,
    pub running: AbortHandle,
    pub store: Store,
    _folder: tempfile::TempDir,
    listening: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.listening.abort();
        self.running.abort();
    }
}

/// A user who consented to the test's application.
pub struct Person {
    pub channel: ChannelId,
    pub caller: Caller,
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A world with another configuration.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::over(Arc::new(LocalBus::default()), change).await
    }

    /// A world over a bus that the test provides.
    pub async fn over(bus: Arc<dyn Bus>, change: impl FnOnce(&mut Config)) -> Self {
        let (clock, manual_clock) = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
        Self::start(bus, clock, manual_clock, change).await
    }

    /// A world on the system clock: the manual clock has no effect.
    pub async fn in_real_time(bus: Arc<dyn Bus>) -> Self {
        let (_, manual_clock) = Clock::manual(Timestamp::from_millis(0));
        Self::start(bus, Clock::system(), manual_clock, |config| config.shards = 1).await
    }

    async fn start(
        bus: Arc<dyn Bus>,
        clock: Clock,
        manual_clock: ManualClock,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = Target::Sqlite { path: folder.path().join("world.db") };
        let store = Store::open(target, Options::default()).await.expect("the store opens");
        let service = Service::new(ServiceDeps {
            store: store.clone(),
            bus,
            clock,
            entropy: Entropy::seeded(4),
            node: NodeId::stored("node".into()),
            profile: Profile::Documented,
            quotas: false,
            key: domain::seal::ServiceKey::new([7; 32]),
            membership: Membership { roles: Roles::ALL, session_base: Some("http://127.0.0.1".to_owned()) },
            webhooks: Default::default(),
            password_cost: PasswordCost::LEAST,
        });
        service.join(true).await.expect("the node joins");
        put_application(&service, "app", None).await;
        let mut config = Config { shards: 2, ..Config::default() };
        change(&mut config);
        let gateway = Gateway::new(service.clone(), config);
        let running = tokio::spawn(gateway.clone().run()).abort_handle();
        let (address, listening) = listen(gateway.clone()).await;
        Self { service, gateway, manual_clock, address, running, store, _folder: folder, listening }
    }

    /// Stops the gateway's loop and its shards. The HTTP listener continues.
    pub fn stop(&self) {
        self.running.abort();
    }

    /// Makes a user who signs in and consents.
    pub async fn person(&self, name: &str) -> Person {
        self.person_of("app", name).await
    }

    pub async fn person_of(&self, application: &str, name: &str) -> Person {
        let channel = ChannelId::stored(name.to_owned());
        let record = ChannelRecord {
            channel_id: channel.clone(),
            name: format!("{name} 님"),
            image_url: None,
            verified_mark: false,
            real_name_verified: false,
        };
        self.service.put_channel(record, None).await.expect("the channel is made");
        let request = self.service.sign_in_request(application, REDIRECT, "state").await;
        let request = request.expect("the store answers").expect("it is registered");
        let code = self.service.consent(&request, &channel).await.expect("consents");
        let tokens = self.service.exchange_code(&request.application, code.expose(), "state").await;
        let access = tokens.expect("the code is good").access;
        let caller =
            self.service.authenticate_user(access.expose()).await.expect("the token is good").caller.clone();
        Person { channel, caller }
    }

    pub async fn client_url(&self) -> String {
        self.client_url_of("app").await
    }

    pub async fn client_url_of(&self, application: &str) -> String {
        self.url(SessionOwner::Client { client_id: ClientId::stored(application.into()) }).await
    }

    pub async fn user_url(&self, person: &Person) -> String {
        let Caller { client_id, channel_id, .. } = person.caller.clone();
        self.url(SessionOwner::User { client_id, channel_id }).await
    }

    async fn url(&self, owner: SessionOwner) -> String {
        self.service.issue_session_url(owner).await.expect("a URL is issued").expose().to_owned()
    }

    pub async fn subscribe(&self, person: &Person, key: &SessionKey, event: EventType) {
        self.service.subscribe(&person.caller, key, event).await.expect("subscribes");
    }

    pub async fn unsubscribe(&self, person: &Person, key: &SessionKey, event: EventType) {
        self.service.unsubscribe(&person.caller, key, event).await.expect("unsubscribes");
    }

    /// Posts a message of a person in their own chat.
    pub async fn chat(&self, person: &Person, text: &str) {
        let text = MessageText::parse(text.to_owned()).expect("a good message");
        let posted =
            self.service.post_chat(&person.channel, &person.channel, text, Emojis::new(), None).await;
        posted.expect("it is posted");
    }

    pub fn stats(&self) -> Stats {
        self.gateway.stats()
    }

    /// Number of connected sessions in the store.
    pub async fn connected(&self) -> i64 {
        let read = self.store.read(async move |tx: &mut Tx| {
            let sql = "SELECT COUNT(*) FROM sessions WHERE disconnected_at IS NULL";
            tx.query_one(sql, &[]).await?.get::<i64>(0)
        });
        read.await.expect("the store answers")
    }

    /// Close reasons of the ended sessions in the store, sorted.
    pub async fn close_reasons(&self) -> Vec<String> {
        let read = self.store.read(async move |tx: &mut Tx| {
            let sql = "SELECT close_reason FROM sessions WHERE disconnected_at IS NOT NULL ORDER BY 1";
            let rows = tx.query(sql, &[]).await?;
            rows.iter().map(|row| row.get::<String>(0)).collect::<Result<Vec<_>, _>>()
        });
        read.await.expect("the store answers")
    }

    /// The key of the only connected session in the store.
    pub async fn listed_key(&self) -> SessionKey {
        let read = self.store.read(async move |tx: &mut Tx| {
            let sql = "SELECT session_key FROM sessions WHERE disconnected_at IS NULL";
            tx.query_one(sql, &[]).await?.get::<String>(0)
        });
        SessionKey::stored(read.await.expect("the store answers"))
    }

    /// Advances the clock in steps of a second. Between the steps every task runs its due work.
    pub async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.manual_clock.advance(Duration::from_secs(1));
            settle().await;
        }
    }

    /// Advances the clock by a second, and waits until the sessions were reconciled with the store at the new
    /// time.
    pub async fn reconciled(&self) {
        let runs = || {
            let mut runs = self.service.job_runs();
            runs.find(|run| run.job == Job::SessionWatch).map_or(0, |run| run.done)
        };
        let before = runs();
        self.pass(1).await;
        eventually("the sessions are reconciled", async || runs() > before).await;
    }

    /// Waits until no session is left in the gateway, the queues and the store.
    pub async fn empty(&self) {
        eventually("every session is gone", async || {
            let stats = self.stats();
            stats.sessions() == 0 && stats.queued_bytes == 0 && self.connected().await == 0
        })
        .await;
    }

    /// Waits until a number of sessions ended for a reason.
    pub async fn closed(&self, reason: CloseReason, count: u64) {
        eventually(&format!("{count} ended for {reason}"), async || self.stats().closed(reason) == count)
            .await;
    }
}

pub async fn put_application(service: &Service, id: &str, profile: Option<Profile>) {
    let record = ApplicationRecord {
        client_id: ClientId::stored(id.into()),
        name: id.into(),
        organization_id: None,
        redirect_uris: vec![domain::application::RedirectUri::parse(REDIRECT).expect("a good address")],
        scopes: ScopeSet::of_users(),
        profile,
        quota: true,
    };
    service.put_application(record).await.expect("the application is made");
}

async fn listen(gateway: Gateway) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = Address(listener.local_addr().expect("it is bound"));
    let listening = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let gateway = gateway.clone();
            tokio::spawn(async move {
                stream.set_nodelay(true).expect("the socket is open");
                let socket = Socket::new(stream);
                let hold = socket.hold();
                let service = service_fn(move |mut request| {
                    request.extensions_mut().insert(hold.clone());
                    let gateway = gateway.clone();
                    async move { Ok::<_, std::convert::Infallible>(gateway.handle(request).await) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(socket), service).with_upgrades().await;
            });
        }
    });
    (address, listening)
}

/// Number of round trips of a byte in [`settle`].
const SETTLING_TRIPS: usize = 40;

/// Lets every ready task run and every socket be read. A byte makes many round trips to another task, over
/// sockets of the same runtime. A slower machine makes these round trips slower too.
pub async fn settle() {
    let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
    let echo = tokio::spawn(async move {
        while let Ok(byte) = there.read_u8().await {
            there.write_u8(byte).await.expect("it is sent back");
        }
    });
    for _ in 0..SETTLING_TRIPS {
        here.write_u8(0).await.expect("it is sent");
        here.read_u8().await.expect("it comes back");
    }
    drop(here);
    echo.await.expect("it ends");
}

/// Waits until a condition holds.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            settle().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "not within {PATIENCE:?}: {what}");
}

/// A bus that loses messages on demand.
#[derive(Default)]
pub struct LossyBus {
    inner: LocalBus,
    pub losing: AtomicBool,
}

impl Bus for LossyBus {
    fn publish_all(
        &self,
        messages: Vec<Message>,
    ) -> Pin<Box<dyn Future<Output = Vec<ChannelId>> + Send + '_>> {
        if self.losing.load(SeqCst) {
            Box::pin(async { Vec::new() })
        } else {
            self.inner.publish_all(messages)
        }
    }

    fn subscribe(&self) -> Subscriber {
        self.inner.subscribe()
    }

    fn interest(&self, channel: &ChannelId) -> Interest {
        self.inner.interest(channel)
    }
}
