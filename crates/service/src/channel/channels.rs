//! Channels and their people (`docs/spec/channels.md`).

use domain::account::Email;
use domain::audit::AuditAction;
use domain::channel::Channel;
use domain::chat::check_web_address;
use domain::limits::{CREDENTIAL_BYTES_MAX, NAME_CHARS_MAX};
use domain::mail::MailKind;
use domain::password::Password;
use domain::refusal::Resource;
use domain::{ChannelId, Invalid, Refusal, Rule, invalid};
use serde_json::json;
use store::{StoreError, Tx};

use crate::identity::mail::{replace_email, write_notice};
use crate::identity::password_queue::{Asker, Busy};
use crate::work::Work;
use crate::{ChannelRecord, Error, PersonListing, Service};

/// The login and the password of a person.
#[derive(Clone)]
pub struct LoginCredentials {
    /// The login.
    pub login: String,
    /// The password.
    pub password: String,
    /// The e-mail address; `None` leaves it as it is.
    pub email: Option<String>,
}

impl std::fmt::Debug for LoginCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoginCredentials")
    }
}

/// The e-mail address of a person.
#[derive(Clone, Debug)]
pub struct StoredEmail {
    /// The address.
    pub email: String,
    /// Whether it is proven.
    pub is_proven: bool,
}

/// What is known of the password of a person.
#[derive(Clone, PartialEq, Eq)]
pub enum StoredPassword {
    /// The channel has no person who can sign in.
    None,
    /// The password.
    Known(String),
    /// Its hash, in PHC form.
    Hash(String),
}

impl std::fmt::Debug for StoredPassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredPassword")
    }
}

/// A channel after the checks and the hashing of its password.
#[derive(Clone)]
pub(crate) struct CheckedChannel {
    record: ChannelRecord,
    person: Option<HashedLogin>,
    /// Writes the notices to the person.
    service: Service,
}

impl CheckedChannel {
    pub(crate) fn id(&self) -> &ChannelId {
        &self.record.channel_id
    }
}

/// The login and the hash of the password of a person.
#[derive(Clone)]
struct HashedLogin {
    login: String,
    password_hash: String,
    email: Option<Email>,
}

impl Service {
    /// The channel of the owner of a token.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist.
    pub async fn channel(&self, id: &ChannelId) -> Result<Channel, Error> {
        self.channels(vec![id.clone()]).await?.pop().ok_or(Refusal::NotFound(Resource::Channel).into())
    }

    /// The channels of up to 20 ids, in the order of the ids. An id without a channel is left out
    /// (`docs/spec/channels.md#channels`).
    pub async fn channels(&self, ids: Vec<ChannelId>) -> Result<Vec<Channel>, Error> {
        let wanted = ids.clone();
        let mut channels = self.read(async move |tx: &mut Tx| Ok(tx.channels_by_id(&wanted).await?)).await?;
        channels.sort_by_key(|channel| ids.iter().position(|id| *id == channel.channel_id));
        Ok(channels)
    }

    /// Creates or replaces a channel. With credentials its owner can sign in. A changed password signs out
    /// every browser of the owner.
    ///
    /// # Errors
    /// `Invalid` for a wrong name, picture, login or password, and for the login of another channel.
    pub async fn put_channel(
        &self,
        channel: ChannelRecord,
        credentials: Option<LoginCredentials>,
    ) -> Result<(), Error> {
        let channel = self.checked_channel(channel, credentials).await?;
        self.write(async move |work: &mut Work<'_>| {
            put(work, &channel).await?;
            let details = json!({ "withLogin": channel.person.is_some() });
            Ok(work.audit_with(AuditAction::ChannelPut, &channel.record.channel_id, details).await?)
        })
        .await
    }

    /// [`put_channel`](Self::put_channel) with the hash of a password, of another sandbox.
    ///
    /// # Errors
    /// As [`put_channel`](Self::put_channel).
    pub async fn put_channel_with_hash(
        &self,
        channel: ChannelRecord,
        login: String,
        password_hash: String,
        email: Option<&str>,
    ) -> Result<(), Error> {
        check_credential("login", &login)?;
        let email = email.map(Email::parse).transpose()?;
        let person = Some(HashedLogin { login, password_hash, email });
        let channel = CheckedChannel { person, ..self.checked_channel(channel, None).await? };
        self.write(async move |work: &mut Work<'_>| put(work, &channel).await).await
    }

    /// The password of the person of a channel, if it is one of `candidates`. Otherwise its hash. And the
    /// e-mail address.
    pub async fn stored_password(
        &self,
        channel: &ChannelId,
        candidates: Vec<String>,
    ) -> Result<(StoredPassword, Option<StoredEmail>), Error> {
        let channel = channel.clone();
        let account = self.read(async move |tx: &mut Tx| Ok::<_, Error>(tx.account(&channel).await?));
        let Some(account) = account.await? else { return Ok((StoredPassword::None, None)) };
        let stored = account.password_hash;
        let is_proven = account.email_verified_at.is_some();
        let email = account.email.map(|email| StoredEmail { email, is_proven });
        for candidate in candidates {
            let Some(password) = Password::typed(&candidate) else { continue };
            let asker = Asker::Operator;
            if let Ok(true) = self.0.passwords.verify(password, Some(stored.clone()), asker).await {
                return Ok((StoredPassword::Known(candidate), email));
            }
        }
        Ok((StoredPassword::Hash(stored), email))
    }

    /// Checks a channel and hashes its password before the transaction. Hashing is slow, and a transaction
    /// must not wait for it.
    pub(crate) async fn checked_channel(
        &self,
        channel: ChannelRecord,
        credentials: Option<LoginCredentials>,
    ) -> Result<CheckedChannel, Error> {
        invalid::text("channelName", &channel.name, 1, NAME_CHARS_MAX)?;
        if let Some(url) = &channel.image_url {
            check_web_address("channelImageUrl", url)?;
        }
        let person = match credentials {
            Some(LoginCredentials { login, password, email }) => {
                check_credential("login", &login)?;
                check_credential("password", &password)?;
                let password_hash = self.password_hash(&channel.channel_id, password).await?;
                let email = email.as_deref().map(Email::parse).transpose()?;
                Some(HashedLogin { login, password_hash, email })
            }
            None => None,
        };
        Ok(CheckedChannel { record: channel, person, service: self.clone() })
    }

    /// The hash of a password. If the stored hash matches the password, the stored hash.
    async fn password_hash(&self, channel: &ChannelId, password: String) -> Result<String, Error> {
        let long = || Invalid::new("password", Rule::Bytes { max: CREDENTIAL_BYTES_MAX });
        let password = Password::typed(&password).ok_or_else(long)?;
        let channel = channel.clone();
        let stored = self.read(async move |tx: &mut Tx| Ok(tx.password_hash(&channel).await?)).await?;
        match stored {
            Some(stored)
                if matches!(
                    self.0.passwords.verify(password.clone(), Some(stored.clone()), Asker::Operator).await,
                    Ok(true)
                ) =>
            {
                Ok(stored)
            }
            _ => {
                let hashed = self.0.passwords.hash(password, Asker::Operator).await;
                Ok(hashed.map_err(|Busy| Refusal::Busy { retry_after_s: Busy::RETRY_AFTER_S })?)
            }
        }
    }

    /// The first `limit` people who can sign in, for the sandbox's sign-in page.
    pub async fn people(&self, limit: i64) -> Result<Vec<PersonListing>, Error> {
        self.read(async move |tx: &mut Tx| Ok(tx.people(limit).await?)).await
    }
}

/// Creates or replaces a channel, inside a transaction. The person gets a notice of another password and
/// address.
pub(crate) async fn put(work: &mut Work<'_>, channel: &CheckedChannel) -> Result<(), Error> {
    let CheckedChannel { record, person, service } = channel;
    let (now, language) = (work.now(), service.account_settings().language);
    if !work.put_channel(record, now).await? {
        return Err(Invalid::new("channelId", Rule::BeingDeleted).into());
    }
    if let Some(HashedLogin { login, password_hash, email }) = person {
        work.lock_account_of_lower_rank(&record.channel_id).await?;
        // The channel is locked, so no sign-in with the former password can follow.
        if work.password_hash(&record.channel_id).await?.is_some_and(|before| before != *password_hash) {
            work.delete_browser_sessions(&record.channel_id).await?;
            work.delete_pending_sign_ins(&record.channel_id).await?;
            work.delete_password_resets(&record.channel_id).await?;
            write_notice(work, service, &record.channel_id, MailKind::PasswordChanged, language).await?;
        }
        work.put_person(&record.channel_id, login, password_hash).await.map_err(login_taken)?;
        if email.is_some() {
            replace_email(work, service, &record.channel_id, email.as_ref(), language).await?;
        }
    }
    Ok(())
}

fn check_credential(field: &'static str, value: &str) -> Result<(), Invalid> {
    invalid::text(field, value, 1, CREDENTIAL_BYTES_MAX)?;
    if value.len() > CREDENTIAL_BYTES_MAX {
        return Err(Invalid::new(field, Rule::Bytes { max: CREDENTIAL_BYTES_MAX }));
    }
    Ok(())
}

pub(crate) fn login_taken(error: StoreError) -> Error {
    match error {
        StoreError::Unique { .. } => Invalid::new("login", Rule::Taken).into(),
        error => error.into(),
    }
}

/// Turns a violated foreign key into [`Refusal::NotFound`].
pub(crate) fn not_found(resource: Resource) -> impl FnOnce(StoreError) -> Error {
    move |error| match error {
        StoreError::ForeignKey => Refusal::NotFound(resource).into(),
        error => error.into(),
    }
}
