//! Measures the cost of an event for many sessions, over real loopback sockets: `cargo bench -p gateway`.
//!
//! The clients run in a separate process. The same run measures a floor: the same bytes written in a plain
//! loop, one write for each session. The figures depend on the machine; their ratio does not.
//!
//! `-- SESSIONS` sets the number of sessions of the idle measurement (default 5,000; two descriptors each).

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, LocalBus, Message};
use domain::channel::UserRoleCode;
use domain::event::{ChatEvent, Event, EventKind, EventType};
use domain::session::{ChangeKind, SessionChange, SessionOwner, Subscription};
use domain::{ChannelId, ClientId, Profile, SessionKey, Timestamp};
use gateway::{Config, Gateway};
use service::Clock;
use store::testing::Fresh;
use store::{Options, Store};
use testkit::{ServiceSetup, ServiceWorld, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wire_client::handshake;

/// Sessions of the fan-out measurements.
const SESSIONS: usize = 1_000;
/// Maximum number of client sessions of one application.
const PER_APPLICATION: usize = 10;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    match args.get(1).map(String::as_str) {
        Some("--client") => {
            let address = args[2].parse().expect("an address");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(client(address));
        }
        _ => {
            let idle = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(5_000);
            runtime.block_on(measure(idle));
        }
    }
}

async fn measure(idle: usize) {
    // This measurement comes first, because later the process has freed memory to reuse.
    println!("{idle} idle sessions with 3 subscriptions each");
    World::new(idle).await.idle().await;
    println!("one event to {SESSIONS} sessions of one channel; CPU of the serving process");
    for rate in [20, 200] {
        floor(rate, 1).await;
        World::new(SESSIONS).await.hot_channel(rate).await;
    }
    World::new(SESSIONS).await.saturate().await;
    println!("events to 100 channels of 10 sessions each");
    for rate in [500, 5_000] {
        floor(rate, 100).await;
        World::new(SESSIONS).await.quiet_channels(rate).await;
    }
}

struct World {
    services: ServiceWorld,
    bus: Arc<LocalBus>,
    gateway: Gateway,
    clock: Clock,
    keys: Vec<SessionKey>,
    rss_before: u64,
    client: Client,
    _fresh: Fresh,
}

impl World {
    async fn new(sessions: usize) -> Self {
        let fresh = store::testing::sqlite();
        let store = Store::open(fresh.target(), Options::default()).await.expect("the store opens");
        let (bus, clock) = (Arc::new(LocalBus::default()), Clock::system());
        let setup = ServiceSetup { bus: Some(bus.clone()), system_clock: true };
        let services = ServiceWorld::new(setup, store);
        let mut urls = Vec::new();
        for at in 0..sessions {
            let id = format!("app{}", at / PER_APPLICATION);
            if at % PER_APPLICATION == 0 {
                services.application(&id).await;
            }
            let owner = SessionOwner::Client { client_id: ClientId::stored(id) };
            urls.push(services.service.issue_session_url(owner).await.expect("a URL").expose().to_owned());
        }
        let gateway = Gateway::new(services.service.clone(), Config::default());
        tokio::spawn(gateway.clone().run());
        let (address, _) = serve(gateway.clone()).await;
        let rss_before = rss_kib();
        let client = Client::start(address);
        let (client, keys) = client.open(urls).await;
        let keys = keys.into_iter().map(SessionKey::stored).collect();
        Self { services, bus, gateway, clock, keys, rss_before, client, _fresh: fresh }
    }

    /// Subscribes a session, as the service does after the commit.
    async fn subscribe(&self, at: usize, version: i64, channel: &str, event_type: EventType) {
        let subscription = Subscription { event_type, channel_id: ChannelId::stored(channel.to_owned()) };
        let change = SessionChange { version, kind: ChangeKind::Subscribed, subscription };
        self.bus
            .publish(Message::SessionChanged {
                node: self.services.service.node().clone(),
                session_key: self.keys[at].clone(),
                change,
            })
            .await;
    }

    /// Publishes at a rate for some seconds, over a number of channels, and reports the cost of a delivery.
    async fn publish(&self, what: &str, rate: u32, channels: usize) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let events = rate * 4;
        let per_event = (self.keys.len() / channels) as u64;
        let (started, cpu, before) = (self.clock.monotonic(), cpu_ms(), self.gateway.stats().deliveries);
        for at in 0..events {
            self.clock.sleep_until(started + Duration::from_secs(1) * at / rate).await;
            self.bus.publish(Message::Event(Arc::new(event(at as usize % channels)))).await;
        }
        while self.gateway.stats().deliveries < before + u64::from(events) * per_event {
            tokio::task::yield_now().await;
        }
        let cpu = cpu_ms() - cpu;
        report(what, u64::from(events) * per_event, self.clock.monotonic() - started, cpu);
    }

    async fn hot_channel(self, rate: u32) {
        for at in 0..self.keys.len() {
            self.subscribe(at, 1, "c0", EventType::Chat).await;
        }
        self.publish(&format!("gateway, {rate} events/s"), rate, 1).await;
        self.end();
    }

    async fn quiet_channels(self, rate: u32) {
        let channels = self.keys.len() / 10;
        for at in 0..self.keys.len() {
            self.subscribe(at, 1, &format!("c{}", at % channels), EventType::Chat).await;
        }
        self.publish(&format!("gateway, {rate} events/s"), rate, channels).await;
        self.end();
    }

    /// Publishes as many events as possible without a growing queue.
    async fn saturate(self) {
        for at in 0..self.keys.len() {
            self.subscribe(at, 1, "c0", EventType::Chat).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (started, cpu, before) = (self.clock.monotonic(), cpu_ms(), self.gateway.stats().deliveries);
        let (mut published, sessions) = (0, self.keys.len() as u64);
        while self.clock.monotonic() - started < Duration::from_secs(4) {
            let in_flight = published - (self.gateway.stats().deliveries - before) / sessions;
            if in_flight > 128 || self.gateway.stats().queued_bytes > sessions * 16_384 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            self.bus.publish(Message::Event(Arc::new(event(0)))).await;
            published += 1;
        }
        let delivered = self.gateway.stats().deliveries - before;
        report("gateway, flat out", delivered, self.clock.monotonic() - started, cpu_ms() - cpu);
        self.end();
    }

    async fn idle(self) {
        for at in 0..self.keys.len() {
            for (version, event_type) in (1..).zip(EventType::ALL) {
                self.subscribe(at, version, &format!("c{}", at / 10), event_type).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (rss, sessions) = (rss_kib(), self.keys.len() as u64);
        let each = (rss.saturating_sub(self.rss_before)) * 1024 / sessions;
        println!("  gateway: {each} bytes a session (RSS {} -> {rss} KiB)", self.rss_before);
        self.end();
    }

    fn end(self) {
        let closes = self.gateway.stats().closes;
        assert!(closes.is_empty(), "sessions were closed: {closes:?}");
        self.client.end();
    }
}

fn report(what: &str, deliveries: u64, took: Duration, cpu_ms: u64) {
    println!(
        "  {what}: {deliveries} deliveries, {:.0}/s, {:.2} us CPU each",
        deliveries as f64 / took.as_secs_f64(),
        cpu_ms as f64 * 1_000.0 / deliveries as f64
    );
}

/// The floor: the same bytes, one write for each session.
async fn floor(rate: u32, channels: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let client = Client::start(listener.local_addr().expect("bound"));
    let opening = tokio::spawn(client.open(vec!["-".into(); SESSIONS]));
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..SESSIONS {
        let (mut stream, _) = listener.accept().await.expect("accepts");
        stream.set_nodelay(true).expect("the socket is open");
        stream.write_all(b"\n").await.expect("the socket is open");
        streams.push(stream);
    }
    let (client, _) = opening.await.expect("the client is there");
    let frame = socketio::packet::event("CHAT", &event(0).payload(Profile::Documented));
    let (clock, events) = (Clock::system(), rate * 4);
    let (started, cpu) = (clock.monotonic(), cpu_ms());
    for at in 0..events {
        clock.sleep_until(started + Duration::from_secs(1) * at / rate).await;
        for stream in streams.iter().skip(at as usize % channels).step_by(channels) {
            assert_eq!(stream.try_write(frame.websocket()).ok(), Some(frame.len()));
        }
    }
    let deliveries = u64::from(events) * (SESSIONS / channels) as u64;
    report(&format!("floor, {rate} events/s"), deliveries, clock.monotonic() - started, cpu_ms() - cpu);
    client.end();
}

fn event(channel: usize) -> Event {
    let channel_id = ChannelId::stored(format!("c{channel}"));
    let chat = ChatEvent {
        sender_channel_id: channel_id.clone(),
        nickname: "별빛".into(),
        badges: Vec::new(),
        verified_mark: false,
        user_role_code: UserRoleCode::CommonUser,
        chat_channel_id: "chat".into(),
        content: "안녕하세요, 오늘 방송 정말 재미있어요!".into(),
        emojis: Default::default(),
        message_time: Timestamp::from_millis(0),
    };
    Event { channel_id, sent_at: Timestamp::from_millis(0), kind: EventKind::Chat(chat) }
}

/// The process of the clients.
struct Client(Child);

impl Client {
    fn start(address: SocketAddr) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args(["--client", &address.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    /// Opens a session for each URL and returns their keys.
    async fn open(mut self, urls: Vec<String>) -> (Self, Vec<String>) {
        let opening = tokio::task::spawn_blocking(move || {
            let mut input = self.0.stdin.take().expect("a pipe");
            let mut lines = BufReader::new(self.0.stdout.take().expect("a pipe")).lines();
            let mut keys = Vec::new();
            for url in urls {
                writeln!(input, "{url}").expect("the client reads");
                keys.push(lines.next().expect("an answer").expect("a line"));
            }
            (self, keys)
        });
        opening.await.expect("every session opens")
    }

    fn end(mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a connection for each line of the input, answers with its session's key, and continues to read.
async fn client(address: SocketAddr) {
    let (lines, mut urls) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    while let Some(url) = urls.recv().await {
        let mut stream = TcpStream::connect(address).await.expect("connects");
        let mut read = Vec::with_capacity(8 * 1024);
        let done: &[u8] = if url == "-" { b"\n" } else { b"\\\"}}\"]" };
        if url != "-" {
            let target = format!("/socket.io/?EIO=3&transport=websocket&auth={url}");
            let request = handshake("bench", &target, "");
            stream.write_all(request.as_bytes()).await.expect("the server reads");
        }
        while !read.ends_with(done) {
            assert!(stream.read_buf(&mut read).await.expect("the server answers") > 0, "refused");
        }
        let text = String::from_utf8_lossy(&read);
        let key = text
            .split_once("sessionKey\\\":\\\"")
            .map_or("-", |(_, rest)| rest.split_once('\\').map_or("-", |(key, _)| key));
        println!("{key}");
        tokio::spawn(async move {
            let mut scratch = vec![0; 2 * 1024];
            while stream.read(&mut scratch).await.is_ok_and(|read| read > 0) {}
        });
    }
    std::future::pending().await
}

/// Processor time of this process so far, in milliseconds.
fn cpu_ms() -> u64 {
    /// Clock ticks a second on Linux.
    const HERTZ: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    (ticks(11) + ticks(12)) * 1_000 / HERTZ
}

/// Resident memory of this process, in KiB.
fn rss_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it is there");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}
