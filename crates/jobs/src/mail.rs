//! Sends messages to people from the outbox: through the operator's mail hook, or into the record of a
//! sandbox (`docs/accounts.md#mail`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use domain::DeliveryId;
use domain::mail::{Mail, MailHook, headers};
use futures_util::future::join_all;
use service::mail::MailAttempt;
use service::{Error, Job, LogLimit, Service};

use crate::webhooks::{Client, Outgoing};

/// How often the outbox is polled, for retries and for messages of other nodes. Messages of this node are
/// found at once.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of messages that are sent at the same time.
const AT_ONCE: i64 = 8;

/// Records messages in place of a hook.
pub trait MailRecord: fmt::Debug + Send + Sync {
    /// A message left.
    fn record(&self, id: &DeliveryId, mail: &Mail);
}

/// How messages leave.
pub enum MailRoute {
    /// As signed requests to the operator's hook.
    Hook {
        /// Sends the requests.
        client: Client,
        /// The hook.
        hook: MailHook,
        /// The prefix of header names.
        header_prefix: String,
    },
    /// Into a record.
    Record(Arc<dyn MailRecord>),
}

impl fmt::Debug for MailRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hook { hook, .. } => hook.fmt(f),
            Self::Record(record) => record.fmt(f),
        }
    }
}

/// Sends messages as they are due. A message that the hook does not answer with 2xx is sent again.
pub async fn send_mails(service: Service, route: MailRoute) {
    let mut written = service.deliveries_written();
    let given_up = LogLimit::default();
    loop {
        written.borrow_and_update();
        let taken = service.take_mails(AT_ONCE).await;
        service.record_job_run(Job::Mail, taken.is_ok());
        let taken = taken.unwrap_or_else(|error| {
            service.log_failure("failed to read the messages to the mail hook: retrying", &error);
            Vec::new()
        });
        let is_full = i64::try_from(taken.len()).is_ok_and(|taken| taken == AT_ONCE);
        let sent = taken.iter().map(|attempt| send(&service, &route, attempt, &given_up));
        for outcome in join_all(sent).await {
            if let Err(error) = outcome {
                service.log_failure("failed to record a message to the mail hook: it is sent again", &error);
            }
        }
        if !is_full {
            tokio::select! {
                changed = written.changed() => if changed.is_err() { service.clock().sleep(POLL_EVERY).await },
                () = service.clock().sleep(POLL_EVERY) => {}
            }
        }
    }
}

async fn send(
    service: &Service,
    route: &MailRoute,
    attempt: &MailAttempt,
    given_up: &LogLimit,
) -> Result<(), Error> {
    let MailAttempt { id, mail, number } = attempt;
    let problem = match route {
        MailRoute::Record(record) => {
            record.record(id, mail);
            None
        }
        MailRoute::Hook { client, hook, header_prefix } => {
            let now = service.clock().now();
            let body = mail.body(id, now);
            let headers = headers(header_prefix, &hook.secret, id, now, &body, *number);
            match Outgoing::new(hook.url.clone(), &headers, body.into_bytes()) {
                None => Some("header".to_owned()),
                Some(outgoing) => match client.send(outgoing).await {
                    Ok(answer) if (200..300).contains(&answer.status) => None,
                    Ok(answer) => Some(answer.status.to_string()),
                    Err(failure) => Some(failure.name().to_owned()),
                },
            }
        }
    };
    let Some(problem) = problem else { return service.end_mail(id, *number).await };
    tracing::debug!(message_id = %id, number, problem, "mail hook attempt failed");
    if !service.retry_mail(id, *number).await?
        && let Some(times) = given_up.due(service.clock().monotonic())
    {
        tracing::warn!(message_id = %id, problem, times, "the mail hook failed too often: a message was given up");
    }
    Ok(())
}
