//! The threads that hold the sockets. Each opens its share of the sessions, reads from them, pings them, and
//! leaves.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;
use wire_client::{Head, TEXT, check_handshake, handshake};

use crate::clock::Nanos;
use crate::http::{Body, Call, CallError, Client, Origin};
use crate::ledger::Ledger;
use crate::plan::SessionPlan;
use crate::session::{End, Peer, Session, Thread};
use crate::shared::Shared;
use crate::stats::Times;

/// Deadline of one session from its connection to SYSTEM `connected`.
pub(crate) const CONNECT_DEADLINE: Duration = Duration::from_secs(20);
/// How often due pings are sent.
const PING_TICK: Duration = Duration::from_millis(20);
/// One millisecond, in nanoseconds.
const MS_NS: Nanos = 1_000_000;
/// The path of the socket, if the session URL has none.
const SOCKET_PATH: &str = "/socket.io/";

/// The results of a thread.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Durations of the call for the session URL.
    pub(crate) url: Times,
    /// Durations from the connection to SYSTEM `connected`.
    pub(crate) connect: Times,
    pub(crate) latency: Times,
    pub(crate) pongs: Times,
    /// The ledgers of the sessions that were open to the end.
    pub(crate) ledgers: Vec<Ledger>,
}

/// Threads that hold sockets.
pub(crate) struct Sockets {
    threads: Vec<JoinHandle<Result<Outcome, String>>>,
    stop: watch::Sender<bool>,
}

impl Sockets {
    /// Begins to open the sessions, `concurrency` at once. A session without a URL fetches one first.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        plans: Vec<(SessionPlan, Option<String>)>,
        threads: usize,
        concurrency: usize,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut shares: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        for (index, plan) in plans.into_iter().enumerate() {
            shares[index % threads].push(plan);
        }
        let start = |share| {
            let (shared, stopped) = (shared.clone(), stopped.clone());
            let openers = concurrency.div_ceil(threads);
            std::thread::spawn(move || hold(shared, share, openers, stopped))
        };
        Self { threads: shares.into_iter().map(start).collect(), stop }
    }

    /// Leaves all sessions and ends the threads.
    ///
    /// # Errors
    /// A sentence, if a thread could not start or panicked.
    pub(crate) fn close(self) -> Result<Outcome, String> {
        let _ = self.stop.send(true);
        let mut all = Outcome::default();
        for thread in self.threads {
            let outcome = thread.join().map_err(|_| "a thread of sockets died".to_owned())??;
            all.url.merge(&outcome.url);
            all.connect.merge(&outcome.connect);
            all.latency.merge(&outcome.latency);
            all.pongs.merge(&outcome.pongs);
            all.ledgers.extend(outcome.ledgers);
        }
        Ok(all)
    }
}

/// The sessions of one thread.
struct SocketThread {
    thread: Rc<Thread>,
    waiting: RefCell<std::vec::IntoIter<(SessionPlan, Option<String>)>>,
    peers: RefCell<Vec<Rc<Peer>>>,
    /// The time of each peer's next ping or pong deadline.
    due: RefCell<BinaryHeap<Reverse<(Nanos, usize)>>>,
    url: RefCell<Times>,
    connect: RefCell<Times>,
}

fn hold(
    shared: Arc<Shared>,
    plans: Vec<(SessionPlan, Option<String>)>,
    openers: usize,
    mut stopped: watch::Receiver<bool>,
) -> Result<Outcome, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("a thread of sockets did not start: {error}"))?;
    let holder = Rc::new(SocketThread {
        thread: Rc::new(Thread::new(shared)),
        waiting: RefCell::new(plans.into_iter()),
        peers: RefCell::default(),
        due: RefCell::default(),
        url: RefCell::default(),
        connect: RefCell::default(),
    });
    let tasks = LocalSet::new();
    runtime.block_on(tasks.run_until(async {
        for _ in 0..openers {
            tokio::task::spawn_local(holder.clone().open_waiting());
        }
        tokio::task::spawn_local(holder.clone().ping());
        let _ = stopped.wait_for(|stop| *stop).await;
        Ok(holder.leave())
    }))
}

impl SocketThread {
    fn shared(&self) -> &Shared {
        &self.thread.shared
    }

    /// Opens sessions one after the other until none is left.
    async fn open_waiting(self: Rc<Self>) {
        let mut client = Client::new(self.shared().base.clone(), self.shared().clock);
        loop {
            let next = self.waiting.borrow_mut().next();
            let Some((plan, url)) = next else { return };
            match self.open(plan, url, &mut client).await {
                Ok(session) => self.take(session),
                Err(kind) => {
                    self.shared().errors.count(&kind);
                    self.shared().failed.add(1);
                }
            }
        }
    }

    async fn open(
        &self,
        plan: SessionPlan,
        url: Option<String>,
        client: &mut Client,
    ) -> Result<Session, String> {
        let clock = self.shared().clock;
        let url = match url {
            Some(url) => url,
            None => {
                let started = clock.now();
                let url = session_url(self.shared(), plan, client).await?;
                self.url.borrow_mut().record(started, clock.now());
                url
            }
        };
        let called = clock.now();
        let session = match tokio::time::timeout(CONNECT_DEADLINE, self.connect(plan, &url)).await {
            Ok(session) => session.map_err(|kind| format!("connect: {kind}"))?,
            Err(_) => return Err("connect: timed out".to_owned()),
        };
        self.connect.borrow_mut().record(called, clock.now());
        Ok(session)
    }

    async fn connect(&self, plan: SessionPlan, url: &str) -> Result<Session, String> {
        let (origin, path) = target(url)?;
        let mut stream = self.stream(plan, &origin).await.map_err(|error| error.kind().to_string())?;
        stream
            .write_all(handshake(&origin.host, &path, "").as_bytes())
            .await
            .map_err(|error| error.kind().to_string())?;
        let mut bytes = Vec::with_capacity(1_024);
        let (head, length) = loop {
            match stream.read_buf(&mut bytes).await {
                Ok(1..) => {}
                Ok(0) => return Err(End::Ended.kind()),
                Err(_) => return Err(End::Reset.kind()),
            }
            if let Some(head) = Head::read(&bytes).map_err(|bad| CallError::from(bad).kind().to_owned())? {
                break head;
            }
        };
        check_handshake(&head)?;
        let mut session = Session::new(self.thread.clone(), plan, stream);
        session.feed(&bytes[length..]).map_err(End::kind)?;
        poll_fn(|cx| session.poll_connected(cx)).await.map_err(End::kind)?;
        Ok(session)
    }

    async fn stream(&self, plan: SessionPlan, origin: &Origin) -> std::io::Result<TcpStream> {
        let source = source(plan.number, self.shared().sources, origin.address);
        let stream = match source {
            None => TcpStream::connect(origin.address).await?,
            Some(source) => {
                let socket = TcpSocket::new_v4()?;
                socket.bind(source)?;
                socket.connect(origin.address).await?
            }
        };
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    /// Starts reading the session and pinging it.
    fn take(self: &Rc<Self>, mut session: Session) {
        let peer = session.peer();
        let interval = Nanos::from(peer.timing.get().ping_interval) * MS_NS;
        // The first pings are spread over the interval. Otherwise sessions that connected together would
        // always ping together.
        let part = Nanos::from(peer.number) * 7_919 % 1_000 + 1;
        let first = self.shared().clock.now() + interval / 1_000 * part;
        let index = self.peers.borrow().len();
        self.peers.borrow_mut().push(peer.clone());
        self.due.borrow_mut().push(Reverse((first, index)));
        let thread = self.thread.clone();
        tokio::task::spawn_local(async move {
            let end = poll_fn(|cx| session.poll_end(cx)).await;
            peer.end(&thread.shared, Some(end));
        });
    }

    async fn ping(self: Rc<Self>) {
        let mut tick = tokio::time::interval(PING_TICK);
        loop {
            tick.tick().await;
            self.ping_due();
        }
    }

    fn ping_due(&self) {
        let (now, mut due) = (self.shared().clock.now(), self.due.borrow_mut());
        while let Some(&Reverse((at, index))) = due.peek()
            && at <= now
        {
            due.pop();
            let peer = self.peers.borrow()[index].clone();
            if let Some(next) = self.ping_one(&peer, now) {
                due.push(Reverse((next, index)));
            }
        }
    }

    /// Pings the peer, or ends it if its pong is overdue. Returns the time of the next check.
    fn ping_one(&self, peer: &Peer, now: Nanos) -> Option<Nanos> {
        if peer.is_over() {
            return None;
        }
        let timing = peer.timing.get();
        if let Some(pinged) = peer.pinged.get() {
            let deadline = pinged + Nanos::from(timing.ping_timeout) * MS_NS;
            if now < deadline {
                return Some(deadline);
            }
            peer.end(self.shared(), Some(End::NoPong));
            return None;
        }
        if peer.send(TEXT, b"2") {
            peer.pinged.set(Some(now));
            self.shared().pings.add(1);
        } else {
            self.shared().errors.count("a ping could not be sent");
        }
        Some(now + Nanos::from(timing.ping_interval) * MS_NS)
    }

    /// Leaves every session, and returns the ledgers of the open ones.
    fn leave(&self) -> Outcome {
        let peers = self.peers.take();
        let living = peers.iter().filter(|peer| !peer.is_over());
        let ledgers = living.map(|peer| peer.ledger.borrow().clone()).collect();
        for peer in &peers {
            peer.leave(self.shared());
        }
        Outcome {
            url: self.url.take(),
            connect: self.connect.take(),
            latency: self.thread.latency.take(),
            pongs: self.thread.pongs.take(),
            ledgers,
        }
    }
}

/// Fetches the URL of one session.
///
/// # Errors
/// The kind of error.
pub(crate) async fn session_url(
    shared: &Shared,
    plan: SessionPlan,
    client: &mut Client,
) -> Result<String, String> {
    let application = &shared.applications[plan.application as usize];
    let headers =
        [("Client-Id", application.client_id.as_str()), ("Client-Secret", &application.client_secret)];
    let path = "/open/v1/sessions/auth/client";
    let call = Call { method: "GET", path, headers: &headers, body: Body::Nothing };
    let answer = client.call(&call).await.map_err(|broken| broken.kind().to_owned());
    let content = answer.and_then(|answer| answer.content());
    let url = |content: serde_json::Value| content.get("url").and_then(|url| url.as_str()).map(str::to_owned);
    content
        .and_then(|content| url(content).ok_or_else(|| "no url".to_owned()))
        .map_err(|kind| format!("session URL: {kind}"))
}

/// Server and path of a session URL, completed like the client library does.
fn target(url: &str) -> Result<(Origin, String), String> {
    let (origin, rest) =
        Origin::split(url).map_err(|_| "a session URL that is no http:// address".to_owned())?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = if matches!(path, "" | "/") { SOCKET_PATH } else { path };
    let joint = if query.is_empty() { "" } else { "&" };
    Ok((origin, format!("{path}?{query}{joint}EIO=3&transport=websocket")))
}

/// The source address of a session: the system's choice if the ports suffice, else an address of 127.0.0.0/8.
fn source(number: u32, sources: u32, server: SocketAddr) -> Option<SocketAddr> {
    let loopback = matches!(server.ip(), IpAddr::V4(address) if address.is_loopback());
    if sources <= 1 || !loopback {
        return None;
    }
    // From 127.0.1.1 on, because servers often listen on smaller addresses.
    let last = u8::try_from(number % sources % 250 + 1).unwrap_or(1);
    Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 1, last)), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_urls_are_completed_as_the_client_library_does() {
        let check = |url: &str, path: &str| assert_eq!(target(url).unwrap().1, path, "{url}");
        check("http://127.0.0.1:1?auth=a", "/socket.io/?auth=a&EIO=3&transport=websocket");
        check("http://127.0.0.1:1/?auth=a", "/socket.io/?auth=a&EIO=3&transport=websocket");
        check("http://127.0.0.1:1", "/socket.io/?EIO=3&transport=websocket");
        check("http://127.0.0.1:1/own/?auth=a", "/own/?auth=a&EIO=3&transport=websocket");
        assert!(target("wss://127.0.0.1:1?auth=a").is_err());
    }

    #[test]
    fn sessions_beyond_the_ports_of_one_address_use_several() {
        let server = "127.0.0.1:80".parse().unwrap();
        assert_eq!(source(7, 1, server), None);
        assert_eq!(source(7, 3, "10.0.0.1:80".parse().unwrap()), None);
        assert_eq!(source(7, 3, "[::1]:80".parse().unwrap()), None);
        let addresses: Vec<_> = (0..4).map(|number| source(number, 3, server).unwrap().to_string()).collect();
        assert_eq!(addresses, ["127.0.1.1:0", "127.0.1.2:0", "127.0.1.3:0", "127.0.1.1:0"]);
    }
}
