//! Links with which people choose a new password: asked for by e-mail, or issued by the operator
//! (`docs/accounts.md#reset`).

use domain::account::Email;
use domain::audit::AuditAction;
use domain::limits::{
    CREDENTIAL_BYTES_MAX, PASSWORD_RESET_ACCOUNTS_MAX, PASSWORD_RESET_LIFETIME_MS, PASSWORD_RESETS_MAX,
};
use domain::mail::{Mail, MailAccount, MailKind, flat_name};
use domain::refusal::Resource;
use domain::secret::ResetToken;
use domain::{ChannelId, Language, Refusal, Timestamp};
use store::Tx;
use store::queries::accounts::Contact;

use crate::identity::accounts::{about, set_password};
use crate::identity::mail::{may_send_link, write_decoy, write_mail, write_notice};
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// A link that the operator issued. It does not print.
#[derive(Clone)]
pub struct IssuedReset {
    /// The address of the page on which the person chooses a password.
    pub link: String,
    /// When the link stops to work.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for IssuedReset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IssuedReset")
    }
}

/// The result of choosing a new password with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetOutcome {
    /// The password is changed.
    Done {
        /// Whether the person can also sign in at a provider.
        has_providers: bool,
    },
    /// The link was used, is too old, or never existed.
    LinkInvalid,
}

impl Service {
    /// Sends links to the accounts with this login or e-mail address, in one message. The result is the same,
    /// and takes as long, whether there are any. `page` is the address of the page on which a password is
    /// chosen.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn request_password_reset(
        &self,
        account: &str,
        page: &str,
        language: Language,
    ) -> Result<(), Error> {
        let settings = self.account_settings();
        if !settings.sends_mail || !settings.passwords {
            return Ok(());
        }
        let account = account.trim();
        // The store cannot hold such a login, so no person has it.
        let readable = account.len() <= CREDENTIAL_BYTES_MAX && !account.contains('\0');
        let account = if readable { account.to_owned() } else { String::new() };
        let (page, key) = (page.to_owned(), self.key().clone());
        self.write(async move |work: &mut Work<'_>| {
            let contacts = contacts(work, &account).await?;
            let (mut sent, mut accounts) = (None, Vec::new());
            for Contact { channel_id, channel_name, login, email, email_verified_at } in contacts {
                let Some(to) = email else { continue };
                let is_proven = email_verified_at.is_some();
                if !may_issue(work, &channel_id, PASSWORD_RESETS_MAX).await? {
                    continue;
                }
                // Only a message that is written counts.
                if sent.is_none() && !may_send_link(work, &channel_id, &to, is_proven).await? {
                    break;
                }
                let token = issue(work, &channel_id, Some(&to)).await?;
                accounts.push(MailAccount { login, link: link(&page, &token) });
                let name = if is_proven { flat_name(&channel_name) } else { String::new() };
                sent.get_or_insert((channel_id, to, name));
            }
            match sent {
                Some((channel, to, name)) => {
                    let mail = reset_mail(to, name, accounts, language);
                    write_mail(work, &key, &channel, &mail).await
                }
                None => {
                    let token = ResetToken::generate(work.random(Purpose::Reset));
                    let accounts = vec![MailAccount { login: String::new(), link: link(&page, &token) }];
                    write_decoy(work, &key, &reset_mail(String::new(), String::new(), accounts, language))
                        .await
                }
            }
        })
        .await
    }

    /// Issues a link for the operator, who gives it to the person. The person gets a notice.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist, is barred, or has no login, and for the
    /// operator's own account.
    pub async fn issue_password_reset(
        &self,
        channel: &ChannelId,
        page: &str,
        language: Language,
    ) -> Result<IssuedReset, Error> {
        if !self.account_settings().passwords {
            return Err(Refusal::NotFound(Resource::Path).into());
        }
        let (service, id) = (self.clone(), channel.clone());
        let now = self.now();
        let token = self
            .write(async move |work: &mut Work<'_>| {
                if work.account(&id).await?.is_none() {
                    return Ok(None);
                }
                work.lock_account_of_another(&id).await?;
                if !may_issue(work, &id, i64::MAX).await? {
                    return Ok(None);
                }
                let token = issue(work, &id, None).await?;
                write_notice(work, &service, &id, MailKind::PasswordResetIssued, language).await?;
                work.audit(AuditAction::PasswordResetIssue, &id).await?;
                Ok::<_, Error>(Some(token))
            })
            .await?;
        let token = token.ok_or(Refusal::NotFound(Resource::Channel))?;
        tracing::info!(channel_id = %channel, "password reset issued by the operator");
        Ok(IssuedReset { link: link(page, &token), expires_at: now.plus_ms(PASSWORD_RESET_LIFETIME_MS) })
    }

    /// Whether a link works.
    pub async fn is_password_reset(&self, token: &str) -> Result<bool, Error> {
        let token = ResetToken::presented(token).filter(|_| self.account_settings().passwords);
        let Some(token) = token else { return Ok(false) };
        let (hash, now) = (token.hash(), self.now());
        self.read(async move |tx: &mut Tx| Ok(tx.password_reset(&hash, now).await?.is_some())).await
    }

    /// Sets the password that a person chose with a link, and signs every browser of the person out. The link
    /// works once. The second step of the sign-in stays.
    ///
    /// # Errors
    /// `Invalid` naming `newPassword`, which leaves the link valid; [`Refusal::Busy`].
    pub async fn reset_password(
        &self,
        token: &str,
        new_password: &str,
        language: Language,
    ) -> Result<ResetOutcome, Error> {
        let token = ResetToken::presented(token).filter(|_| self.account_settings().passwords);
        let Some(token) = token else { return Ok(ResetOutcome::LinkInvalid) };
        let (hash, now) = (token.hash(), self.now());
        let account = self
            .read(async move |tx: &mut Tx| {
                let Some(channel) = tx.password_reset(&hash, now).await? else { return Ok(None) };
                Ok(tx.account(&channel).await?)
            })
            .await?;
        let Some(account) = account else { return Ok(ResetOutcome::LinkInvalid) };
        let new = self.chosen("newPassword", new_password, &about(&account))?;
        let new_hash = self.hash_password(&account.login, new).await?;
        let (service, channel, hash) = (self.clone(), account.channel_id, token.hash());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            // The channel is locked first, as everywhere.
            if !work.lock_unbarred_channel(&channel).await? {
                return Ok(ResetOutcome::LinkInvalid);
            }
            let Some((_, email)) = work.take_password_reset(&hash, now).await? else {
                return Ok(ResetOutcome::LinkInvalid);
            };
            if let Some(email) = email {
                work.verify_email(&channel, &email, now).await?;
            }
            set_password(work, &channel, &new_hash).await?;
            work.delete_browser_sessions(&channel).await?;
            write_notice(work, &service, &channel, MailKind::PasswordChanged, language).await?;
            let has_providers = !work.linked_providers(&channel).await?.is_empty();
            Ok(ResetOutcome::Done { has_providers })
        })
        .await
    }
}

/// The accounts with this address, first those for whom it is proven; else the account with this login. Their
/// channels are locked in the order of the ids.
async fn contacts(work: &mut Work<'_>, account: &str) -> Result<Vec<Contact>, Error> {
    let mut contacts = match Email::parse(account) {
        Ok(email) => work.contacts_by_email(&email, PASSWORD_RESET_ACCOUNTS_MAX).await?,
        Err(_) => Vec::new(),
    };
    if contacts.is_empty() {
        contacts.extend(work.contact_by_login(account).await?);
    }
    let mut ids: Vec<_> = contacts.iter().map(|contact| contact.channel_id.clone()).collect();
    ids.sort();
    for id in ids {
        work.lock_unbarred_channel(&id).await?;
    }
    Ok(contacts)
}

/// Whether the person may get a link: not a barred one, and not one with `max` valid links.
async fn may_issue(work: &mut Work<'_>, channel: &ChannelId, max: i64) -> Result<bool, Error> {
    let now = work.now();
    Ok(work.lock_unbarred_channel(channel).await? && work.password_resets(channel, now).await? < max)
}

/// Issues a link. `email` is the address that it is sent to.
async fn issue(work: &mut Work<'_>, channel: &ChannelId, email: Option<&str>) -> Result<ResetToken, Error> {
    let token = ResetToken::generate(work.random(Purpose::Reset));
    let expires_at = work.now().plus_ms(PASSWORD_RESET_LIFETIME_MS);
    work.insert_password_reset(&token.hash(), channel, email, expires_at).await?;
    Ok(token)
}

fn link(page: &str, token: &ResetToken) -> String {
    format!("{page}?token={}", token.expose())
}

fn reset_mail(to: String, name: String, accounts: Vec<MailAccount>, language: Language) -> Mail {
    let language = Mail::language_tag(language).to_owned();
    let link = accounts.first().map(|account| account.link.clone());
    Mail { kind: MailKind::PasswordReset, to, language, link, name, accounts }
}
