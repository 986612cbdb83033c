//! The sender of messages to people, on a node with the role jobs.

use domain::mail::MailHook;
use jobs::mail::{MailRoute, send_mails};
use jobs::webhooks::{Client, ClientConfig};
use sandbox::Sandbox;
use service::Service;
use tokio::task::JoinSet;

use crate::config::Settings;

/// Maximum number of idle connections to the mail hook.
const CONNECTIONS_MAX: usize = 8;

/// Starts the sender: to the mail hook, else to the record of a sandbox.
///
/// # Errors
/// A sentence for the operator: TLS is not available.
pub(crate) fn spawn(
    background: &mut JoinSet<()>,
    service: &Service,
    settings: &Settings,
    sandbox: Option<&Sandbox>,
) -> Result<(), String> {
    if !service.roles().jobs {
        return Ok(());
    }
    let route = match (settings.mail_hook.clone(), sandbox) {
        (Some(hook), _) => {
            let config = ClientConfig::system(MailHook::REACH, service.clock().clone(), CONNECTIONS_MAX);
            let client =
                Client::new(config).map_err(|error| format!("the mail hook cannot be called: {error}"))?;
            MailRoute::Hook { client, hook, header_prefix: settings.webhooks.header_prefix.clone() }
        }
        (None, Some(sandbox)) => MailRoute::Record(sandbox.mail_record()),
        (None, None) => return Ok(()),
    };
    background.spawn(send_mails(service.clone(), route));
    Ok(())
}
