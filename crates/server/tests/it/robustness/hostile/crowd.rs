//! Well-behaved sessions that receive chat while other peers misbehave.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Api, Application, Socket, Sockets, Tokens, World, patiently};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The pause between two messages.
const PAUSE: Duration = Duration::from_millis(5);

/// Sessions that are subscribed to one streamer's chat, in which the streamer sends messages continuously.
pub struct Crowd {
    members: Vec<JoinHandle<Vec<Duration>>>,
    /// Incremented to make every member ping.
    pings: watch::Sender<usize>,
    /// Number of received pongs.
    pongs: Arc<AtomicUsize>,
    silent: Arc<AtomicBool>,
    talker: JoinHandle<usize>,
    size: usize,
}

/// When each message was sent.
type SaidAt = Arc<Mutex<Vec<Instant>>>;

#[allow(clippy::disallowed_methods, reason = "what others notice is about real time")]
fn now() -> Instant {
    Instant::now()
}

/// The streamer's message: its number, and padding that fills buffers.
fn message(number: usize) -> String {
    format!("{number} {}", "가".repeat(80))
}

/// Client sessions of an application, subscribed to the streamer's chat.
async fn subscribed(api: &Api, app: &Application, tokens: &Tokens, size: usize) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for _ in 0..size {
        let mut socket = api.open_client_session(app).await;
        api.subscribe(&tokens.access, "chat", socket.session_key()).await.content();
        socket.system("subscribed").await;
        sockets.push(socket);
    }
    sockets
}

impl Crowd {
    /// `size` sessions, at most 10, that receive the messages of `name`.
    pub async fn gather(api: &Api, name: &str, size: usize) -> Self {
        let app = api.application(&format!("app-of-{name}")).create().await;
        let person = api.person(name).create().await;
        let tokens = api.sign_in(&app, &person).await;
        let (pings, pongs) = (watch::Sender::new(0), Arc::new(AtomicUsize::new(0)));
        let said_at = SaidAt::default();
        let sockets = subscribed(api, &app, &tokens, size).await;
        let members = sockets.into_iter();
        let members = members
            .map(|socket| tokio::spawn(listen(socket, pings.subscribe(), pongs.clone(), said_at.clone())));
        let members = members.collect();
        let silent = Arc::new(AtomicBool::new(false));
        let talker = tokio::spawn(talk(api.clone(), tokens.access, silent.clone(), said_at));
        Self { members, pings, pongs, silent, talker, size }
    }

    /// The number of sessions.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Waits until all other sessions have ended and their ends are counted. Returns the counters. Between
    /// two looks the clock advances by this time, unless 0, and each member pings.
    pub async fn alone(&self, world: &World, seconds: u64) -> Sockets {
        patiently("only the crowd is left", async {
            loop {
                let sockets = world.sockets().await;
                // A session is dropped before its end is counted.
                if sockets.sessions == self.size() && sockets.opened == sockets.all_closed() + self.size() {
                    return sockets;
                }
                match seconds {
                    0 => tokio::task::yield_now().await,
                    _ => self.live_through(world, seconds).await,
                }
            }
        })
        .await
    }

    /// Makes every member ping, so that the clock can be advanced.
    pub async fn ping(&self) {
        let before = self.pongs.load(SeqCst);
        self.pings.send_modify(|rounds| *rounds += 1);
        patiently("everybody's pong", async {
            while self.pongs.load(SeqCst) < before + self.size {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Advances the clock in steps that well-behaved sessions survive.
    pub async fn live_through(&self, world: &World, seconds: u64) {
        const STEP: u64 = 20;
        for start in (0..seconds).step_by(STEP as usize) {
            self.ping().await;
            world.advance(Duration::from_secs(STEP.min(seconds - start)));
        }
        self.ping().await;
    }

    /// Ends the chat. Checks that every session received all messages, in order. Returns the 99th percentile
    /// of the time from the call of a message to its arrival.
    pub async fn disperse(self) -> Duration {
        self.silent.store(true, SeqCst);
        let sent = self.talker.await.expect("everything was sent");
        assert!(sent > 0, "messages were sent");
        let mut delays = Vec::new();
        for member in self.members {
            let received = member.await.expect("a member lives on");
            assert_eq!(received.len(), sent, "everything was received");
            delays.extend(received);
        }
        delays.sort_unstable();
        delays[delays.len() * 99 / 100]
    }
}

/// Sends messages until it is stopped, and then `end`. Returns the number of messages.
async fn talk(api: Api, token: String, silent: Arc<AtomicBool>, said_at: SaidAt) -> usize {
    let mut sent = 0;
    while !silent.load(SeqCst) {
        said_at.lock().expect("the lock is not poisoned").push(now());
        api.send_chat(&token, &message(sent)).await.content();
        sent += 1;
        tokio::time::sleep(PAUSE).await;
    }
    api.send_chat(&token, "end").await.content();
    sent
}

/// Receives messages until `end`, and checks their order. Returns the delay of each.
async fn listen(
    mut socket: Socket,
    mut pings: watch::Receiver<usize>,
    pongs: Arc<AtomicUsize>,
    said_at: SaidAt,
) -> Vec<Duration> {
    let mut received = Vec::new();
    loop {
        if pings.has_changed().unwrap_or(false) {
            pings.mark_unchanged();
            socket.send("2").await;
        }
        let Some(packet) = socket.next_packet().await else {
            panic!("the session of a well-behaved peer was closed: {:?}", socket.closed().await);
        };
        if packet == "3" {
            pongs.fetch_add(1, SeqCst);
            continue;
        }
        let event: Vec<String> =
            serde_json::from_str(packet.strip_prefix("42").expect("an event")).expect("an event");
        assert_eq!(event[0], "CHAT");
        let chat: Value = serde_json::from_str(&event[1]).expect("JSON");
        if chat["content"] == "end" {
            return received;
        }
        assert_eq!(chat["content"], message(received.len()));
        let said_at = said_at.lock().expect("the lock is not poisoned")[received.len()];
        received.push(now() - said_at);
    }
}
