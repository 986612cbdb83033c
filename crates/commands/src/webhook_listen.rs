//! `stagedoor webhook listen`: fetches the messages to an application's webhook, forwards each to a program
//! on this machine, and reports the outcome. For developers without a public address.

use std::time::Duration;

use clap::{Args, Subcommand};
use domain::Timestamp;
use domain::limits::LISTENER_WAIT_MAX_S;
use domain::outbound::{SendFailure, WebhookUrl};
use http::{HeaderMap, HeaderValue, Method};
use jobs::webhooks::{Answer, Client, ClientConfig, Outgoing};
use serde_json::{Value, json};
use service::Clock;
use tokio::task::JoinSet;

use crate::client::{Failure, Server};
use crate::failure::CommandFailure;
use crate::forward_target;
use crate::secrets::secret;
use crate::target::TargetOptions;

/// The commands of `stagedoor webhook`.
#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// Forwards the messages to an application's webhook to a program on this machine, and shows each
    /// attempt.
    ///
    /// For an application without a webhook, or with a webhook without an address. It needs the scope 드롭스 and
    /// a verified organization. Messages wait while no listener runs. Ctrl-C ends the command.
    Listen(ListenOptions),
}

/// `stagedoor webhook listen`
#[derive(Debug, Args)]
pub struct ListenOptions {
    /// The target of the messages, as in http://127.0.0.1:3000/webhook.
    #[arg(long, value_name = "URL")]
    forward_to: String,

    /// The base URL of the service, or which sandbox it is.
    #[command(flatten)]
    target: TargetOptions,

    /// The application.
    #[arg(long, value_name = "ID", env = "STAGEDOOR_CLIENT_ID")]
    client_id: String,

    /// The application's secret. Default: that which the sandbox knows. Better set by STAGEDOOR_CLIENT_SECRET
    /// or STAGEDOOR_CLIENT_SECRET_FILE, which keep it out of the list of processes.
    #[arg(long, value_name = "SECRET", env = "STAGEDOOR_CLIENT_SECRET", hide_env_values = true)]
    client_secret: Option<String>,
}

const LISTENER: &str = "/open/v1/drops/webhook/listener";
/// The first and the longest pause while the service is unreachable.
const AWAY_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// Maximum number of tries to report a result. After them the lease has ended.
const REPORT_TRIES: u32 = 5;
/// The pause between these tries.
const REPORT_PAUSE: Duration = Duration::from_secs(2);

/// Listens until `stop` is ready, then finishes the running attempts.
///
/// # Errors
/// [`CommandFailure`], with the next step.
pub async fn run(options: &ListenOptions, stop: impl Future<Output = ()>) -> Result<(), CommandFailure> {
    let listener = Listener::new(options).await?;
    tokio::pin!(stop);
    tokio::select! {
        started = listener.begin() => started?,
        () = &mut stop => return Ok(()),
    }
    loop {
        let attempts = tokio::select! {
            attempts = listener.fetch() => attempts?,
            () = &mut stop => return Ok(()),
        };
        let mut under_way = JoinSet::new();
        for attempt in attempts {
            under_way.spawn(listener.clone().make(attempt));
        }
        while under_way.join_next().await.is_some() {}
    }
}

impl ListenOptions {
    /// The service, and the secret of the application. A sandbox that is found knows the secrets of its
    /// applications; a given secret needs no operator key.
    async fn server_and_secret(&self) -> Result<(Server, String), CommandFailure> {
        let given = secret("STAGEDOOR_CLIENT_SECRET", self.client_secret.as_deref());
        match (given.map_err(CommandFailure::Usage)?, &self.target.server) {
            (Some(secret), Some(url)) if self.target.world.is_none() => {
                Ok((Server::parse(url).map_err(CommandFailure::Usage)?, secret))
            }
            (Some(secret), _) => Ok((self.target.find().await?.server().clone(), secret)),
            (None, _) => {
                let target = self.target.find().await.map_err(|failure| match failure {
                    CommandFailure::Usage(_) if self.target.server.is_some() => {
                        CommandFailure::Usage(NO_SECRET.to_owned())
                    }
                    failure => failure,
                })?;
                let body = json!({ "client": self.client_id });
                let path = "/sandbox/v1/environment";
                let settings = target.call(Method::POST, path, Some(&body), Duration::ZERO).await?;
                let secret = settings["clientSecret"].as_str().unwrap_or_default().to_owned();
                Ok((target.server().clone(), secret))
            }
        }
    }
}

const NO_SECRET: &str =
    "the application's secret is missing: give STAGEDOOR_CLIENT_SECRET or STAGEDOOR_CLIENT_SECRET_FILE";

#[derive(Clone)]
struct Listener {
    server: Server,
    credentials: HeaderMap,
    target: WebhookUrl,
    client: Client,
    clock: Clock,
    json: bool,
}

impl Listener {
    async fn new(options: &ListenOptions) -> Result<Self, CommandFailure> {
        let ListenOptions { forward_to, client_id, .. } = options;
        let target = forward_target::parse(forward_to).map_err(CommandFailure::Usage)?;
        let (server, secret) = options.server_and_secret().await?;
        let header = |option: &str, text: &str| {
            let wrong =
                |_| CommandFailure::Usage(format!("{option} contains characters that are not allowed"));
            HeaderValue::from_str(text).map_err(wrong)
        };
        let mut secret = header("--client-secret", &secret)?;
        secret.set_sensitive(true);
        let mut credentials = HeaderMap::new();
        credentials.insert("client-id", header("--client-id", client_id)?);
        credentials.insert("client-secret", secret);
        let clock = Clock::system();
        let client = Client::new(ClientConfig::system(forward_target::REACH, clock.clone(), 0));
        let client = client.map_err(|error| format!("TLS is not available: {error}"))?;
        Ok(Self { server, credentials, target, client, clock, json: options.target.json })
    }

    async fn begin(&self) -> Result<(), CommandFailure> {
        let webhook = self.with_retries(LISTENER, &json!({}), Duration::ZERO).await?;
        let secret = webhook["secret"].as_str();
        if self.json {
            let listening = json!({ "listening": self.target.as_str(), "secret": secret });
            crate::out_line!("{listening}");
            return Ok(());
        }
        crate::out_line!(
            "Messages to the webhook go to {} from here on. Ctrl-C ends it.",
            self.target.as_str()
        );
        match secret {
            Some(secret) => {
                crate::out_line!("They are signed with this secret, which is not shown again: {secret}\n")
            }
            None => crate::out_line!("They are signed with the secret that the webhook has.\n"),
        }
        Ok(())
    }

    /// Waits for the next attempts.
    async fn fetch(&self) -> Result<Vec<Value>, CommandFailure> {
        let path = format!("{LISTENER}/attempts");
        let body = json!({ "waitSeconds": LISTENER_WAIT_MAX_S });
        let patience = Duration::from_secs(LISTENER_WAIT_MAX_S.unsigned_abs());
        let mut fetched = self.with_retries(&path, &body, patience).await?;
        match fetched["data"].take() {
            Value::Array(attempts) => Ok(attempts),
            _ => {
                let why = format!("{} sent an answer that this version cannot read", self.server.base());
                Err(CommandFailure::Failed(why))
            }
        }
    }

    /// Repeats a call until there is an answer, or a refusal that a repetition would not change.
    async fn with_retries(
        &self,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Value, CommandFailure> {
        let (mut pause, longest) = AWAY_PAUSES;
        loop {
            let failure = match self.call(path, body, patience).await {
                Ok(content) => return Ok(content),
                Err(failure) => failure,
            };
            let wait = match failure {
                Failure::Refused { status: 429, retry_after_s, .. } => {
                    Duration::from_secs(retry_after_s.unwrap_or(1))
                }
                Failure::Refused { status: 400..=499, .. } => return Err(self.explained(&failure).into()),
                _ => pause,
            };
            crate::err_line!("stagedoor: {failure}; trying again in {} s", wait.as_secs());
            self.clock.sleep(wait).await;
            pause = (pause * 2).min(longest);
        }
    }

    async fn call(&self, path: &str, body: &Value, patience: Duration) -> Result<Value, Failure> {
        self.server.call(Method::POST, path, self.credentials.clone(), Some(body), patience).await
    }

    /// The refusal and its remedy.
    fn explained(&self, failure: &Failure) -> String {
        let next = match failure {
            Failure::Refused { status: 401, .. } => {
                "the client id or secret is wrong; those of a sandbox are printed by `stagedoor dev`"
            }
            Failure::Refused { status: 403, .. } => {
                "the application needs the scope 드롭스, and a verified organization. In a sandbox, `drops` has both"
            }
            Failure::Refused { status: 404, .. } => {
                "the webhook was deleted, or --server does not lead to Stagedoor's REST interface; start again"
            }
            _ => return failure.to_string(),
        };
        format!("{failure}\n{next}")
    }

    /// Makes one attempt, and reports it to the service and to the developer.
    async fn make(self, attempt: Value) {
        let (began_at, began) = (self.clock.now(), self.clock.monotonic());
        let answered = match self.outgoing(&attempt) {
            Some(outgoing) => self.client.send(outgoing).await,
            None => Err(SendFailure::Protocol),
        };
        let took = self.clock.monotonic().saturating_sub(began);
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let path = format!("{LISTENER}/attempts/{}", attempt["messageId"].as_str().unwrap_or_default());
        let report = report_body(&attempt, &answered, duration_ms);
        let recorded = self.report(&path, &report).await;
        let summary = Summary { attempt: &attempt, answered: &answered, began_at, duration_ms, recorded };
        if self.json {
            crate::out_line!("{}", summary.json());
        } else {
            crate::out_line!("{}", summary.text());
        }
    }

    fn outgoing(&self, attempt: &Value) -> Option<Outgoing> {
        let header = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        let headers = attempt["headers"].as_object()?.iter().map(header).collect::<Option<Vec<_>>>()?;
        Outgoing::new(self.target.clone(), &headers, attempt["body"].as_str()?.as_bytes().to_vec())
    }

    async fn report(&self, path: &str, report: &Value) -> Result<Value, Failure> {
        let mut tries = 1..REPORT_TRIES;
        loop {
            let failure = match self.call(path, report, Duration::ZERO).await {
                Err(failure @ (Failure::Unreachable(_) | Failure::Refused { status: 429 | 500.., .. })) => {
                    failure
                }
                recorded => return recorded,
            };
            if tries.next().is_none() {
                return Err(failure);
            }
            self.clock.sleep(REPORT_PAUSE).await;
        }
    }
}

/// The report of an attempt to the service.
fn report_body(attempt: &Value, answered: &Result<Answer, SendFailure>, duration_ms: u64) -> Value {
    let mut report = json!({ "number": attempt["number"], "durationMs": duration_ms });
    match answered {
        Ok(answer) => {
            report["status"] = json!(answer.status);
            report["retryAfter"] = json!(answer.retry_after);
            report["answer"] = json!(domain::delivery::excerpt(&answer.beginning));
        }
        Err(failure) => report["failure"] = json!(failure.name()),
    }
    report
}

/// The output for an attempt.
struct Summary<'a> {
    attempt: &'a Value,
    answered: &'a Result<Answer, SendFailure>,
    began_at: Timestamp,
    duration_ms: u64,
    /// The service's answer to the report.
    recorded: Result<Value, Failure>,
}

impl Summary<'_> {
    fn json(&self) -> Value {
        let Self { attempt, answered, began_at, duration_ms, recorded } = self;
        let mut summary = json!({
            "date": began_at.rfc3339(), "messageId": attempt["messageId"], "number": attempt["number"],
            "eventType": attempt["eventType"], "status": null, "failure": null, "durationMs": duration_ms,
        });
        match answered {
            Ok(answer) => summary["status"] = json!(answer.status),
            Err(failure) => summary["failure"] = json!(failure.name()),
        }
        match recorded {
            Ok(Value::Object(recorded)) => {
                recorded.iter().for_each(|(name, value)| summary[name] = value.clone());
            }
            Ok(_) => {}
            Err(failure) => summary["error"] = json!(failure.to_string()),
        }
        summary
    }

    fn text(&self) -> String {
        let Self { attempt, answered, began_at, duration_ms, recorded } = self;
        let text = |name: &str| attempt[name].as_str().unwrap_or_default();
        let answer = match answered {
            Ok(answer) => answer.status.to_string(),
            Err(failure) => format!("no answer ({})", failure.name()),
        };
        let next = match recorded {
            Err(failure) => format!("not recorded: {failure}"),
            Ok(recorded) => match (recorded["state"].as_str(), recorded["nextAttemptDate"].as_str()) {
                (Some("DELIVERED"), _) => "delivered".to_owned(),
                (_, Some(date)) => format!("failed, next attempt at {date}"),
                (Some("DEAD"), _) => "failed, given up".to_owned(),
                _ => "came too late: it is attempted anew".to_owned(),
            },
        };
        format!(
            "{}  {}  attempt {}  {}  {answer} in {duration_ms} ms  {next}",
            began_at.rfc3339(),
            text("messageId"),
            attempt["number"],
            text("eventType"),
        )
    }
}
