//! Messages to people, which leave through the operator's mail hook (`docs/accounts.md#mail`). A transaction
//! writes them into the outbox, and the job `mail` sends them.

use domain::account::Email;
use domain::limits::{MAIL_COUNTED_MS, MAIL_KEPT_MS, MAIL_LEASE_MS, MAILS_MAX, MAILS_UNPROVEN_MAX};
use domain::mail::{Mail, MailKind, flat_name, next_attempt};
use domain::seal::ServiceKey;
use domain::secret::SecretHash;
use domain::{ChannelId, DeliveryId, Language};
use store::Tx;
use store::queries::mail_outbox::LeasedMail;

use crate::work::Work;
use crate::{Error, Purpose, Service};

/// A message that this node may send now.
#[derive(Clone, Debug)]
pub struct MailAttempt {
    /// The id of the message, the same in every attempt.
    pub id: DeliveryId,
    /// The message.
    pub mail: Mail,
    /// The number of the attempt, from 1 on.
    pub number: i64,
}

fn subject(id: &DeliveryId) -> String {
    format!("mail {id}")
}

/// Writes a message into the outbox.
pub(crate) async fn write_mail(
    work: &mut Work<'_>,
    key: &ServiceKey,
    channel: &ChannelId,
    mail: &Mail,
) -> Result<(), Error> {
    insert(work, key, Some(channel), mail).await?;
    work.wake_senders();
    Ok(())
}

/// Writes a message of no account, which is never sent.
pub(crate) async fn write_decoy(work: &mut Work<'_>, key: &ServiceKey, mail: &Mail) -> Result<(), Error> {
    insert(work, key, None, mail).await
}

/// Counts a message with links of an account to an address: `false` when there were too many within an hour.
/// Then it is not written. Strangers cause such messages, so notices are not counted with them.
pub(crate) async fn may_send_link(
    work: &mut Work<'_>,
    channel: &ChannelId,
    to: &str,
    is_proven: bool,
) -> Result<bool, Error> {
    let (now, max) = (work.now(), if is_proven { MAILS_MAX } else { MAILS_UNPROVEN_MAX });
    let over_since = now.plus_ms(-MAIL_COUNTED_MS);
    let address = format!("to {}", SecretHash::of(to).as_str());
    Ok(work.count_mail(&format!("of {channel}"), now, over_since, MAILS_MAX).await?
        && work.count_mail(&address, now, over_since, max).await?)
}

/// Counts a notice: `false` when there were too many of its kind within an hour. Each kind has its own count,
/// so that no act hides the notice of another one.
async fn may_notify(work: &mut Work<'_>, channel: &ChannelId, kind: MailKind) -> Result<bool, Error> {
    let (now, subject) = (work.now(), format!("{} of {channel}", kind.name()));
    Ok(work.count_mail(&subject, now, now.plus_ms(-MAIL_COUNTED_MS), MAILS_MAX).await?)
}

/// Writes a message that informs the owner of an account, if the account has a proven address and there were
/// not too many of its kind.
pub(crate) async fn write_notice(
    work: &mut Work<'_>,
    service: &Service,
    channel: &ChannelId,
    kind: MailKind,
    language: Language,
) -> Result<(), Error> {
    if !service.account_settings().sends_mail {
        return Ok(());
    }
    let Some(account) = work.account(channel).await? else { return Ok(()) };
    let (Some(to), Some(_)) = (account.email, account.email_verified_at) else { return Ok(()) };
    if !may_notify(work, channel, kind).await? {
        return Ok(());
    }
    let language = Mail::language_tag(language).to_owned();
    let (name, accounts) = (flat_name(&account.channel_name), Vec::new());
    let mail = Mail { kind, to, language, link: None, name, accounts };
    write_mail(work, service.key(), channel, &mail).await
}

/// Gives an account another address, or none. The former one gets a notice, if it was proven.
pub(crate) async fn replace_email(
    work: &mut Work<'_>,
    service: &Service,
    channel: &ChannelId,
    email: Option<&Email>,
    language: Language,
) -> Result<(), Error> {
    let before = work.account(channel).await?.and_then(|account| account.email);
    if before.as_deref() != email.map(Email::as_str) {
        write_notice(work, service, channel, MailKind::EmailChanged, language).await?;
    }
    work.put_email(channel, email).await?;
    Ok(())
}

async fn insert(
    work: &mut Work<'_>,
    key: &ServiceKey,
    channel: Option<&ChannelId>,
    mail: &Mail,
) -> Result<(), Error> {
    let now = work.now();
    let id = DeliveryId::generate(now, work.random(Purpose::Mail));
    let text = serde_json::to_string(mail).map_err(|_| Error::Internal("a message is not JSON"))?;
    let sealed = key.seal(&subject(&id), &text, work.random(Purpose::Nonce));
    work.insert_mail(&id, channel, &sealed, now, now.plus_ms(MAIL_KEPT_MS)).await?;
    Ok(())
}

impl Service {
    /// Informs the owner of an account about what was done in the person's name.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn notify(&self, channel: &ChannelId, kind: MailKind, language: Language) -> Result<(), Error> {
        let (service, id) = (self.clone(), channel.clone());
        self.write(async move |work: &mut Work<'_>| write_notice(work, &service, &id, kind, language).await)
            .await
    }

    /// Takes up to `limit` messages that are due. Other nodes leave them alone until their leases end.
    pub async fn take_mails(&self, limit: i64) -> Result<Vec<MailAttempt>, Error> {
        let now = self.now();
        let due = self.read(async move |tx: &mut Tx| Ok(tx.mails_due(now, limit).await?)).await?;
        let mut taken = Vec::new();
        for id in due {
            let leased = self
                .write(async move |work: &mut Work<'_>| {
                    let now = work.now();
                    Ok(work.lease_mail(&id, now, now.plus_ms(MAIL_LEASE_MS)).await?)
                })
                .await?;
            if let Some(leased) = leased {
                match self.opened(&leased) {
                    Some(attempt) if now < leased.expires_at => taken.push(attempt),
                    // It is too late, or was sealed with another service key.
                    _ => self.end_mail(&leased.mail_id, leased.attempts).await?,
                }
            }
        }
        Ok(taken)
    }

    fn opened(&self, leased: &LeasedMail) -> Option<MailAttempt> {
        let text = self.key().open(&subject(&leased.mail_id), &leased.sealed)?;
        let mail = serde_json::from_str(&text).ok()?;
        Some(MailAttempt { id: leased.mail_id.clone(), mail, number: leased.attempts })
    }

    /// Records that a message was sent, or will never be.
    pub async fn end_mail(&self, id: &DeliveryId, number: i64) -> Result<(), Error> {
        let id = id.clone();
        self.write(async move |work: &mut Work<'_>| {
            work.delete_mail(&id, number).await?;
            Ok(())
        })
        .await
    }

    /// Records that an attempt failed: `false` if no attempt follows.
    pub async fn retry_mail(&self, id: &DeliveryId, number: i64) -> Result<bool, Error> {
        let Some(due_at) = next_attempt(number, self.now()) else {
            self.end_mail(id, number).await?;
            return Ok(false);
        };
        let id = id.clone();
        self.write(async move |work: &mut Work<'_>| Ok(work.retry_mail(&id, number, due_at).await?)).await?;
        Ok(true)
    }
}
