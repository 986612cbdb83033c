//! The stage of one check: a fresh sandbox, the bot in it, and what the bot has done so far.

use std::collections::BTreeSet;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Uri};
use serde_json::{Value, json};
use service::Clock;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::bot::Bot;
use super::exchange::{Exchange, Frame, subscribed};
use super::finding::{Finding, Misdeed};
use super::sandbox::OwnSandbox;
use crate::client::Failure;
use crate::failure::CommandFailure;
use crate::recording::records_after;
use crate::run::{Road, RoadChoice};
use crate::target::Target;

/// The application of the seeded world that gets webhooks.
const PUBLISHER: &str = "drops";
/// The pause between two looks at the log.
const LOOK_EVERY: Duration = Duration::from_millis(150);
/// A message is answered within this time, or never.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// A bot without a call for this long has settled.
const SETTLED_AFTER: Duration = Duration::from_millis(1_200);

/// How a check starts the bot.
#[derive(Clone, Debug)]
pub struct BotOptions {
    /// The command.
    pub command: Vec<String>,
    /// The beginning of the names of its variables.
    pub prefix: String,
    /// The spelling of answers.
    pub profile: String,
    /// How long the bot may take for its first calls, and to come back.
    pub patience: Duration,
    /// The address of its webhook receiver.
    pub webhook: Option<String>,
    /// Whether a check of the pings has faster ones.
    pub fast_pings: bool,
    /// The fixed hosts.
    pub hosts: Vec<String>,
    /// Whether the sandbox speaks TLS.
    pub tls: bool,
    /// How the bot reaches the fixed hosts.
    pub road: RoadChoice,
    /// The place of a bot that receives. All of them have one address.
    pub receiving: Arc<Semaphore>,
    /// The places of bots that start. More at once would be slow, and a slow bot looks like a silent one.
    pub starting: Arc<Semaphore>,
}

/// The options of fast pings, in seconds.
const FAST_PINGS: [&str; 4] = ["--ping-interval", "2", "--ping-timeout", "4"];

impl BotOptions {
    /// The options of the sandbox.
    fn sandbox_arguments(&self, equipment: Equipment) -> Vec<String> {
        let mut arguments = vec!["--profile".to_owned(), self.profile.clone()];
        if equipment.fast_pings {
            arguments.extend(FAST_PINGS.map(str::to_owned));
        }
        if self.tls {
            arguments.push("--tls".to_owned());
        }
        arguments.extend(self.hosts.iter().flat_map(|host| ["--host".to_owned(), host.clone()]));
        arguments
    }
}

/// What a check has besides a bot in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Equipment {
    /// The application that gets webhooks, and a registered receiver.
    pub receiver: bool,
    /// Pings every few seconds.
    pub fast_pings: bool,
}

/// A registered webhook receiver.
#[derive(Clone)]
pub struct Receiver {
    /// Its address.
    pub url: String,
    /// Its secret.
    pub secret: String,
}

/// What the bot does when nothing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// It has a session with subscriptions.
    Listens,
    /// It makes calls only.
    Calls,
    /// It made no call.
    Silent,
}

/// The stage of one check.
pub struct Stage {
    /// The sandbox.
    pub sandbox: OwnSandbox,
    /// Its API.
    pub target: Target,
    /// The bot.
    pub bot: Bot,
    /// The application of the bot.
    pub client_id: String,
    /// The user of the bot.
    pub channel_id: String,
    /// The calls of the bot so far.
    pub exchanges: Vec<Exchange>,
    /// The messages of its sessions so far.
    pub frames: Vec<Frame>,
    /// How long the bot may take.
    pub patience: Duration,
    /// What the check has.
    pub equipment: Equipment,
    /// Its webhook receiver, in a check of that.
    pub receiver: Option<Receiver>,
    clock: Clock,
    read_to: u64,
}

impl Stage {
    /// Starts a sandbox, and the bot in it.
    ///
    /// # Errors
    /// One of them does not start.
    pub async fn set(options: &BotOptions, equipment: Equipment) -> Result<Self, CommandFailure> {
        let sandbox = OwnSandbox::start(options.sandbox_arguments(equipment)).await?;
        let target = sandbox.target()?;
        let wanted = if equipment.receiver { json!({ "client": PUBLISHER }) } else { json!({}) };
        let issued = target.call(Method::POST, "/sandbox/v1/tokens", Some(&wanted), Duration::ZERO).await?;
        let text = |name: &str| issued[name].as_str().unwrap_or_default().to_owned();
        let (client_id, channel_id) = (text("clientId"), text("channelId"));
        let mut environment = environment(&sandbox.world, &issued);
        let receiver = match options.webhook.as_deref().filter(|_| equipment.receiver) {
            Some(url) => Some(register(&target, &client_id, url).await?),
            None => None,
        };
        if let Some(Receiver { url, secret }) = receiver.clone() {
            environment.extend([("WEBHOOK_URL".to_owned(), url), ("WEBHOOK_SECRET".to_owned(), secret)]);
        }
        let named = environment.into_iter().map(|(name, value)| (format!("{}{name}", options.prefix), value));
        let environment: Vec<_> = named.collect();
        let road = match options.tls {
            true => Some(Road::to(&target, options.road, sandbox.folder()).await?),
            false => None,
        };
        let bot = Bot::start(&options.command, &environment, road)?;
        let (exchanges, frames, clock) = (Vec::new(), Vec::new(), Clock::system());
        let patience = options.patience;
        let read_to = 0;
        Ok(Self {
            sandbox,
            target,
            bot,
            client_id,
            channel_id,
            exchanges,
            frames,
            patience,
            equipment,
            receiver,
            clock,
            read_to,
        })
    }

    /// Waits until the bot has made its first calls.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn settle(&mut self) -> Result<Habit, CommandFailure> {
        let listens = |stage: &Self| !subscribed(&stage.exchanges).is_empty();
        self.until(self.patience, |stage| listens(stage) || stage.bot.ended().is_some()).await?;
        loop {
            let seen = self.exchanges.len();
            self.pause(SETTLED_AFTER).await;
            self.look().await?;
            let quiet = self.exchanges[seen..].iter().all(Exchange::is_transport);
            // A bot that makes calls all the time does not become quiet.
            if quiet || !listens(self) {
                break;
            }
        }
        Ok(match (listens(self), self.exchanges.is_empty()) {
            (true, _) => Habit::Listens,
            (false, false) => Habit::Calls,
            (false, true) => Habit::Silent,
        })
    }

    /// Waits until something listens where the bot's receiver is, or the bot ends or runs out of time.
    pub async fn await_receiver(&mut self) {
        let url = self.receiver.as_ref().and_then(|receiver| receiver.url.parse::<Uri>().ok());
        let Some((host, port)) = url.as_ref().and_then(host_and_port) else { return };
        let end = self.clock.monotonic() + self.patience;
        while self.clock.monotonic() < end && self.bot.ended().is_none() {
            if TcpStream::connect((host, port)).await.is_ok() {
                return;
            }
            self.pause(LOOK_EVERY).await;
        }
    }

    /// Reads the new records.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn look(&mut self) -> Result<(), CommandFailure> {
        for record in records_after(&self.target, self.read_to).await? {
            self.read_to = record["mark"].as_u64().unwrap_or(self.read_to);
            self.exchanges.extend(Exchange::of(&record));
            self.frames.extend(Frame::of(&record));
        }
        Ok(())
    }

    /// Waits until the records fulfil a condition; whether they do in time.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn until(
        &mut self,
        limit: Duration,
        mut done: impl FnMut(&mut Self) -> bool + Send,
    ) -> Result<bool, CommandFailure> {
        let end = self.clock.monotonic() + limit;
        loop {
            self.look().await?;
            if done(self) {
                return Ok(true);
            }
            if self.clock.monotonic() >= end {
                return Ok(false);
            }
            self.pause(LOOK_EVERY).await;
        }
    }

    /// Lets real time pass.
    pub async fn pause(&self, span: Duration) {
        self.clock.sleep(span).await;
    }

    /// Lets real time pass, and reads what happened.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn watch(&mut self, span: Duration) -> Result<(), CommandFailure> {
        self.pause(span).await;
        self.look().await
    }

    /// The number of calls so far: where the calls after this moment begin.
    pub fn now(&self) -> usize {
        self.exchanges.len()
    }

    /// Whether the bot has subscribed to these events since, on a new session.
    pub fn is_back(&self, since: usize, events: &BTreeSet<String>) -> bool {
        let after = &self.exchanges[since..];
        let connected = after.iter().any(|exchange| exchange.is_handshake() && exchange.is_success());
        connected && events.is_subset(&subscribed(after))
    }

    /// Calls the sandbox API.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn post(&self, path: &str, body: Value) -> Result<Value, CommandFailure> {
        self.target.call(Method::POST, path, Some(&body), Duration::from_secs(60)).await
    }

    /// Lets something happen.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn trigger(&self, kind: &str, fields: Value) -> Result<Value, CommandFailure> {
        self.post(&format!("/sandbox/v1/trigger/{kind}"), fields).await
    }

    /// Adds a fault rule, and returns it.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn fault(&self, rule: Value) -> Result<Value, CommandFailure> {
        self.post("/sandbox/v1/faults", rule).await
    }

    /// Removes a fault rule.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn remove_fault(&self, id: &str) -> Result<(), CommandFailure> {
        let path = format!("/sandbox/v1/faults/{id}");
        self.target.call(Method::DELETE, &path, None, Duration::ZERO).await.map(drop)
    }

    /// Gives the bot a reason to make a call: a message, and the end of its sessions.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn provoke(&mut self) -> Result<(), CommandFailure> {
        let since = self.now();
        self.trigger("chat", json!({ "channel": self.channel_id, "message": "!hello" })).await?;
        // Some clients end with their session, and drop the answer that they were about to send.
        let calls = |stage: &mut Self| stage.exchanges[since..].iter().any(|call| !call.is_transport());
        self.until(ANSWERED_WITHIN, calls).await?;
        self.close_sessions().await
    }

    /// Waits for a record, and returns it.
    ///
    /// # Errors
    /// There is none in time.
    pub async fn expect(&self, kind: &str, fields: Value, within: Duration) -> Result<Value, CommandFailure> {
        let body = json!({ "kind": kind, "where": fields, "within": format!("{}ms", within.as_millis()) });
        Ok(self.post("/sandbox/v1/expect", body).await?["data"][0].take())
    }

    /// Ends the sessions of the bot, as a node that stops does.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn close_sessions(&self) -> Result<(), CommandFailure> {
        self.close_sessions_as("server_shutdown").await
    }

    /// Ends the sessions of the bot with a close reason.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn close_sessions_as(&self, reason: &str) -> Result<(), CommandFailure> {
        self.end_sessions("close-session", json!({ "client": self.client_id, "reason": reason })).await
    }

    /// Loses the connections of the bot without a close frame, or lets nothing pass them any more.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn cut_connections(&self, silent: bool) -> Result<(), CommandFailure> {
        self.end_sessions("cut-connection", json!({ "client": self.client_id, "silent": silent })).await
    }

    /// A bot without a session is what it is: the check says what it does next.
    async fn end_sessions(&self, kind: &str, fields: Value) -> Result<(), CommandFailure> {
        match self.trigger(kind, fields).await {
            Err(CommandFailure::Failed(why)) if why.starts_with("409 ") => Ok(()),
            ended => ended.map(drop),
        }
    }

    /// Starts the sandbox again. Its log begins again, and the read records stay.
    ///
    /// # Errors
    /// [`CommandFailure`].
    pub async fn restart(&mut self, pause: Duration) -> Result<(), CommandFailure> {
        self.look().await?;
        self.sandbox.stop().await?;
        self.pause(pause).await;
        self.sandbox.start_again().await?;
        self.target = self.sandbox.target()?;
        self.read_to = 0;
        Ok(())
    }

    /// The end of the bot, where it should go on.
    pub fn ended(&mut self) -> Option<Finding> {
        let saw = format!("it ended with {}", shown(self.bot.ended()?));
        Some(Finding { misdeed: Misdeed::Ended, saw, records: Vec::new() })
    }

    /// The events that the bot has subscribed to.
    pub fn events(&self) -> BTreeSet<String> {
        subscribed(&self.exchanges)
    }
}

/// How the bot ended, in words.
pub fn shown(status: ExitStatus) -> String {
    status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// The variables of the bot.
fn environment(world: &Value, issued: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let applications = world["applications"].as_array().into_iter().flatten();
    let mut own = applications.filter(|application| application["clientId"] == issued["clientId"]);
    let secret = own.next().map(|application| text(&application["clientSecret"])).unwrap_or_default();
    let own = text(&world["baseUrl"]);
    let tls = &world["tls"];
    let fixed = [&tls["hosts"][0]["url"], &tls["baseUrl"]].into_iter().find_map(Value::as_str);
    let base_url = fixed.map_or_else(|| own.clone(), str::to_owned);
    let auth_url = text(&world["authUrl"]).replacen(&own, &base_url, 1);
    let token_url = format!("{base_url}/auth/v1/token");
    let named = [
        ("BASE_URL", base_url),
        ("AUTH_URL", auth_url),
        ("TOKEN_URL", token_url),
        ("CLIENT_ID", text(&issued["clientId"])),
        ("CLIENT_SECRET", secret),
        ("REDIRECT_URI", text(&issued["redirectUri"])),
        ("CHANNEL_ID", text(&issued["channelId"])),
        ("ACCESS_TOKEN", text(&issued["accessToken"])),
        ("REFRESH_TOKEN", text(&issued["refreshToken"])),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

fn host_and_port(url: &Uri) -> Option<(&str, u16)> {
    let by_scheme = if url.scheme_str() == Some("https") { 443 } else { 80 };
    Some((url.host()?.trim_matches(['[', ']']), url.port_u16().unwrap_or(by_scheme)))
}

/// Registers the address of the receiver.
async fn register(target: &Target, client_id: &str, url: &str) -> Result<Receiver, CommandFailure> {
    let path = format!("/platform/v1/applications/{client_id}/webhook");
    let body = json!({ "url": url });
    let registered = target.attempt(Method::PUT, &path, Some(&body), Duration::ZERO).await;
    let registered = registered.map_err(|failure| match failure {
        Failure::Refused { message, .. } => CommandFailure::Usage(format!("--webhook {url}: {message}")),
        failure => target.explained(failure),
    })?;
    let secret = registered["secret"].as_str().unwrap_or_default().to_owned();
    Ok(Receiver { url: url.to_owned(), secret })
}
