//! `stagedoor listen`: holds a session of a user, shows its events, and forwards them to a program.

use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use jobs::webhooks::{ATTEMPT_MAX, Client, ClientConfig, Outgoing};
use serde_json::{Value, json};
use service::Clock;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::client::{Failure, Server};
use crate::event_line::event_line;
use crate::failure::CommandFailure;
use crate::forward_target;
use crate::polling::{Polled, PollingSession};
use crate::target::Target;
use crate::user_options::UserOptions;

/// `stagedoor listen`
#[derive(Debug, Args)]
pub struct SessionListenOptions {
    #[command(flatten)]
    of: UserOptions,

    /// The events that the session subscribes to.
    #[arg(
        long,
        value_enum,
        value_name = "EVENTS",
        value_delimiter = ',',
        default_value = "chat,donation,subscription"
    )]
    events: Vec<EventOption>,

    /// Posts each event to this address, as in http://127.0.0.1:3000/events, in the form that --json prints.
    #[arg(long, value_name = "URL")]
    forward_to: Option<String>,
}

/// One of `--events`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EventOption {
    /// Chat messages.
    Chat,
    /// Donations.
    Donation,
    /// Paid subscriptions.
    Subscription,
}

impl EventOption {
    /// The word in the path of the subscribe call.
    fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Donation => "donation",
            Self::Subscription => "subscription",
        }
    }
}

/// The end of the command's help.
pub const HELP: &str = "\
Examples:
  stagedoor listen --user haneul
  stagedoor listen --user haneul --events donation --json
  stagedoor listen --user haneul --forward-to http://127.0.0.1:3000/events";

/// The first and the longest pause before the next session.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// Maximum number of events that wait to be forwarded. Further ones are left out.
const FORWARDED_MAX: usize = 1_000;

/// Listens until `stop` is ready, or until the output is closed.
///
/// # Errors
/// [`CommandFailure`]; the first session cannot be opened.
pub async fn run(
    options: &SessionListenOptions,
    stop: impl Future<Output = ()>,
) -> Result<(), CommandFailure> {
    let mut listener = SessionListener::new(options)?;
    let (stopped, mut stopping) = watch::channel(false);
    let listen = async {
        loop {
            if !listener.step(&mut stopping).await? {
                return Ok(());
            }
        }
    };
    let stop = async {
        stop.await;
        let _ = stopped.send(true);
        // The listener ends by itself.
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = listen => ended,
        () = stop => Ok(()),
    };
    if let Some(forwarder) = listener.forwarder {
        forwarder.end(&listener.clock).await;
    }
    ended
}

struct SessionListener<'a> {
    options: &'a SessionListenOptions,
    clock: Clock,
    forwarder: Option<Forwarder>,
    session: Option<LiveSession>,
    /// Whether a session was open before.
    has_listened: bool,
    /// The pause before the next session, and the one after that.
    pauses: (Duration, Duration),
}

/// A session, and what its calls need.
struct LiveSession {
    target: Target,
    token: HeaderMap,
    polling: PollingSession,
    key: Option<String>,
}

impl<'a> SessionListener<'a> {
    fn new(options: &'a SessionListenOptions) -> Result<Self, CommandFailure> {
        let clock = Clock::system();
        let forwarder = match &options.forward_to {
            Some(url) => Some(Forwarder::start(url, clock.clone()).map_err(CommandFailure::Usage)?),
            None => None,
        };
        let pauses = (Duration::ZERO, PAUSES.0);
        Ok(Self { options, clock, forwarder, session: None, has_listened: false, pauses })
    }

    /// Opens a session, or shows what the session receives. `false` at the end.
    async fn step(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<bool, CommandFailure> {
        let Some(session) = &self.session else {
            return tokio::select! {
                opened = self.open() => opened.map(|()| true),
                _ = stopping.wait_for(|stops| *stops) => Ok(false),
            };
        };
        let polled = {
            let poll = session.polling.poll();
            tokio::pin!(poll);
            tokio::select! {
                polled = &mut poll => polled,
                _ = stopping.wait_for(|stops| *stops) => {
                    // While the poll still waits: without it the session would end as a lost connection.
                    session.polling.say_goodbye().await;
                    return Ok(false);
                }
            }
        };
        match polled {
            Ok(polled) => self.receive(polled).await,
            Err(failure) => self.lost(&format!("the session ended: {failure}")).map(|()| true),
        }
    }

    /// Shows events. `false` if the output is closed.
    async fn receive(&mut self, polled: Polled) -> Result<bool, CommandFailure> {
        let Some(session) = &mut self.session else { return Ok(true) };
        let mut has_ended = polled.has_ended;
        for (name, payload) in &polled.events {
            if !show(self.options, self.forwarder.as_ref(), name, payload) {
                session.polling.say_goodbye().await;
                return Ok(false);
            }
            if name == "SYSTEM" && payload["type"] == "connected" {
                let key = payload["data"]["sessionKey"].as_str().unwrap_or_default();
                session.key = Some(key.to_owned());
                has_ended |= !session.subscribe(&self.options.events, key).await?;
                (self.has_listened, self.pauses.1) = (true, PAUSES.0);
            }
        }
        if has_ended {
            let reason = session.close_reason().await.unwrap_or_else(|| "no reason is known".to_owned());
            self.lost(&format!("the session ended: {reason}"))?;
        }
        Ok(true)
    }

    /// Opens a session after the pause. Only the first one has to succeed.
    async fn open(&mut self) -> Result<(), CommandFailure> {
        self.clock.sleep(self.pauses.0).await;
        match LiveSession::open(self.options).await {
            Ok(session) => {
                self.session = Some(session);
                Ok(())
            }
            Err(failure) if self.has_listened => self.lost(&format!("no new session: {failure}")),
            Err(failure) => Err(failure),
        }
    }

    /// Prepares the pause before the next session.
    fn lost(&mut self, reason: &str) -> Result<(), CommandFailure> {
        self.session = None;
        if !self.has_listened {
            return Err(CommandFailure::Failed(reason.to_owned()));
        }
        let pause = self.pauses.1;
        crate::err_line!("stagedoor: {reason}; trying again in {} s", pause.as_secs());
        self.pauses = (pause, (pause * 2).min(PAUSES.1));
        Ok(())
    }
}

impl LiveSession {
    /// Signs the user in, and opens a session. The sandbox is looked for each time, because it may have been
    /// started again.
    async fn open(options: &SessionListenOptions) -> Result<Self, CommandFailure> {
        let target = options.of.target.find().await?;
        let body = options.of.body();
        let issued = target.call(Method::POST, "/sandbox/v1/tokens", Some(&body), Duration::ZERO).await?;
        let token = format!("Bearer {}", issued["accessToken"].as_str().unwrap_or_default());
        let mut token = HeaderValue::from_str(&token).map_err(|_| strange(target.server()))?;
        token.set_sensitive(true);
        let token = HeaderMap::from_iter([(AUTHORIZATION, token)]);
        let path = "/open/v1/sessions/auth";
        let answer = target.server().call(Method::GET, path, token.clone(), None, Duration::ZERO).await?;
        let url = answer["url"].as_str().ok_or_else(|| strange(target.server()))?;
        let polling = PollingSession::open(url).await?;
        Ok(Self { target, token, polling, key: None })
    }

    /// Subscribes to events. `false` if the session has ended meanwhile.
    async fn subscribe(&self, events: &[EventOption], key: &str) -> Result<bool, CommandFailure> {
        for event in events {
            let path = format!("/open/v1/sessions/events/subscribe/{}?sessionKey={key}", event.word());
            let server = self.target.server();
            let answer = server.call(Method::POST, &path, self.token.clone(), None, Duration::ZERO).await;
            match answer {
                Err(Failure::Refused { status: 404, .. }) => return Ok(false),
                answer => _ = answer.map_err(|failure| subscribe_failure(*event, &failure))?,
            }
        }
        Ok(true)
    }

    /// Why the session ended, if the platform API is on the same address.
    async fn close_reason(&self) -> Option<String> {
        let path = format!("/platform/v1/sessions/{}", self.key.as_ref()?);
        let details = self.target.attempt(Method::GET, &path, None, Duration::ZERO).await.ok()?;
        details["closeReason"].as_str().map(str::to_owned)
    }
}

fn strange(server: &Server) -> CommandFailure {
    let text = format!("{} sent an answer that this version cannot read", server.base());
    CommandFailure::Unreachable(text)
}

fn subscribe_failure(event: EventOption, failure: &Failure) -> CommandFailure {
    let word = event.word();
    let hint = match failure {
        Failure::Refused { status: 403, .. } => {
            "\nLeave the event out with --events, or choose another --client"
        }
        _ => "",
    };
    CommandFailure::Failed(format!("subscribing to {word}: {failure}{hint}"))
}

/// Prints and forwards an event. `false` if the output is closed.
fn show(options: &SessionListenOptions, forwarder: Option<&Forwarder>, name: &str, payload: &Value) -> bool {
    let event = json!({ "event": name, "data": payload });
    if let Some(forwarder) = forwarder {
        forwarder.forward(name, &event);
    }
    let line = if options.of.target.json { event.to_string() } else { event_line(name, payload) };
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).is_ok()
}

/// Posts events to a program, one after another.
struct Forwarder {
    queue: mpsc::Sender<(String, Vec<u8>)>,
    task: JoinHandle<()>,
}

impl Forwarder {
    fn start(url: &str, clock: Clock) -> Result<Self, String> {
        let target = forward_target::parse(url)?;
        let client = Client::new(ClientConfig::system(forward_target::REACH, clock, 1));
        let client = client.map_err(|error| format!("TLS is not available: {error}"))?;
        let (queue, mut events) = mpsc::channel::<(String, Vec<u8>)>(FORWARDED_MAX);
        let task = tokio::spawn(async move {
            while let Some((name, body)) = events.recv().await {
                let header = ("stagedoor-event".to_owned(), name.clone());
                let Some(outgoing) = Outgoing::new(target.clone(), &[header], body) else { continue };
                match client.send(outgoing).await {
                    Ok(answer) => crate::err_line!("stagedoor: forwarded {name}: {}", answer.status),
                    Err(failure) => crate::err_line!("stagedoor: not forwarded {name}: {}", failure.name()),
                }
            }
        });
        Ok(Self { queue, task })
    }

    fn forward(&self, name: &str, event: &Value) {
        if self.queue.try_send((name.to_owned(), event.to_string().into_bytes())).is_err() {
            crate::err_line!("stagedoor: not forwarded {name}: the program is too slow");
        }
    }

    /// Finishes the attempt that runs.
    async fn end(self, clock: &Clock) {
        let Self { queue, task } = self;
        drop(queue);
        tokio::select! {
            _ = task => {}
            () = clock.sleep(ATTEMPT_MAX) => {}
        }
    }
}
