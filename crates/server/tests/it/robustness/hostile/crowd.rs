//! Well-behaved sessions that chat while others misbehave.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Api, Application, Socket, Sockets, Tokens, World, patiently};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The pause between two messages.
const PAUSE: Duration = Duration::from_millis(5);

/// Sessions that are subscribed to one streamer's chat, where somebody talks all the time.
pub struct Crowd {
    members: Vec<JoinHandle<Vec<Duration>>>,
    /// Moved to have every member ping.
    pings: watch::Sender<usize>,
    /// Pongs that came.
    pongs: Arc<AtomicUsize>,
    silent: Arc<AtomicBool>,
    talker: JoinHandle<usize>,
    size: usize,
}

/// When each message was said.
type SaidAt = Arc<Mutex<Vec<Instant>>>;

#[allow(clippy::disallowed_methods, reason = "what others notice is about real time")]
fn now() -> Instant {
    Instant::now()
}

/// The streamer's message: its number, and enough behind it to fill buffers.
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
    /// `size` sessions, 10 at the most, that hear `name` talk.
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

    /// How many there are.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Waits until nobody else has a session, and everybody who had one is counted as gone; `meanwhile` is
    /// done over and over. Gives what is counted then.
    pub async fn alone(&self, world: &World, mut meanwhile: impl FnMut()) -> Sockets {
        patiently("only the crowd is left", async {
            loop {
                let sockets = world.sockets().await;
                // A session is let go of before its end is counted.
                if sockets.sessions == self.size() && sockets.opened == sockets.all_closed() + self.size() {
                    return sockets;
                }
                meanwhile();
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    /// Has every member ping, so that the clock may be moved on.
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

    /// Moves the clock on in steps that well-behaved sessions live through.
    pub async fn live_through(&self, world: &World, seconds: u64) {
        const STEP: u64 = 20;
        for start in (0..seconds).step_by(STEP as usize) {
            self.ping().await;
            world.advance(Duration::from_secs(STEP.min(seconds - start)));
        }
        self.ping().await;
    }

    /// Ends the talk. Checks that everybody has heard all of it, in order. Gives the 99th percentile of the
    /// time from the call of a message to its arrival.
    pub async fn disperse(self) -> Duration {
        self.silent.store(true, SeqCst);
        let said = self.talker.await.expect("everything was said");
        assert!(said > 0, "somebody talked");
        let mut delays = Vec::new();
        for member in self.members {
            let heard = member.await.expect("a member lives on");
            assert_eq!(heard.len(), said, "everything was heard");
            delays.extend(heard);
        }
        delays.sort_unstable();
        delays[delays.len() * 99 / 100]
    }
}

/// Talks until it is to be silent; then says `end`. Gives the number of messages.
async fn talk(api: Api, token: String, silent: Arc<AtomicBool>, said_at: SaidAt) -> usize {
    let mut said = 0;
    while !silent.load(SeqCst) {
        said_at.lock().expect("nobody panicked").push(now());
        api.send_chat(&token, &message(said)).await.content();
        said += 1;
        tokio::time::sleep(PAUSE).await;
    }
    api.send_chat(&token, "end").await.content();
    said
}

/// Listens until `end`. Gives how long each message took; they must come in order.
async fn listen(
    mut socket: Socket,
    mut pings: watch::Receiver<usize>,
    pongs: Arc<AtomicUsize>,
    said_at: SaidAt,
) -> Vec<Duration> {
    let mut heard = Vec::new();
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
            return heard;
        }
        assert_eq!(chat["content"], message(heard.len()));
        let said_at = said_at.lock().expect("nobody panicked")[heard.len()];
        heard.push(now() - said_at);
    }
}
