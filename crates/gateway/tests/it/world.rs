//! A gateway over a real service on a temporary store, on a real port, with a manual clock.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use bus::{Bus, Interest, LocalBus, Message, Subscriber};
use domain::chat::{Emojis, MessageText};
use domain::event::EventType;
use domain::session::SessionOwner;
use domain::token::Caller;
use domain::{ChannelId, ClientId, Profile, ScopeSet, SessionKey};
use gateway::{Config, Gateway, Stats};
use service::applications::ApplicationRecord;
use service::{Job, Service};
use socketio::CloseReason;
use store::testing::Fresh;
use store::{Options, Store, Tx};
use testkit::{ServiceSetup, ServiceWorld, patiently, record, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::{AbortHandle, JoinHandle};

use super::client::Address;

pub struct World {
    services: ServiceWorld,
    pub gateway: Gateway,
    pub address: Address,
    pub running: AbortHandle,
    _fresh: Fresh,
    listening: JoinHandle<()>,
}

impl Deref for World {
    type Target = ServiceWorld;

    fn deref(&self) -> &ServiceWorld {
        &self.services
    }
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
        Self::start(ServiceSetup { bus: Some(bus), ..ServiceSetup::default() }, change).await
    }

    /// A world on the system clock: the manual clock has no effect.
    pub async fn in_real_time(bus: Arc<dyn Bus>) -> Self {
        let setup = ServiceSetup { bus: Some(bus), system_clock: true };
        Self::start(setup, |config| config.shards = 1).await
    }

    async fn start(setup: ServiceSetup, change: impl FnOnce(&mut Config)) -> Self {
        let fresh = store::testing::migrated_sqlite().await;
        let store = Store::open(fresh.target(), Options::default()).await.expect("the store opens");
        let services = ServiceWorld::new(setup, store);
        services.service.join(true).await.expect("the node joins");
        services.application("app").await;
        let mut config = Config { shards: 2, ..Config::default() };
        change(&mut config);
        let gateway = Gateway::new(services.service.clone(), config);
        let running = tokio::spawn(gateway.clone().run()).abort_handle();
        let (address, listening) = serve(gateway.clone()).await;
        Self { services, gateway, address: Address(address), running, _fresh: fresh, listening }
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
        let client_id = ClientId::stored(application.to_owned());
        let application = self.service.application(&client_id).await.expect("the store answers");
        let channel = self.user(name).await;
        let caller = self.caller(&application.expect("it is registered"), &channel).await;
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
    let record = ApplicationRecord { profile, ..record(id, ScopeSet::of_users()) };
    service.put_application(record).await.expect("the application is made");
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
    patiently(what, async {
        while !holds().await {
            settle().await;
        }
    })
    .await;
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
