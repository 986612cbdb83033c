//! The accounts of people: registration, password, e-mail address, removal (`docs/accounts.md`).

use domain::account::{Email, check_login};
use domain::limits::{BROWSER_SESSION_LIFETIME_MS, NAME_CHARS_MAX};
use domain::mail::MailKind;
use domain::password::Password;
use domain::refusal::{Resource, TokenFault};
use domain::secret::BrowserToken;
use domain::{ChannelId, Invalid, Language, Refusal, Rule, Timestamp, invalid};
use store::Tx;
use store::queries::accounts::Account;

use crate::channel::channels::login_taken;
use crate::identity::account_settings::AccountSettings;
use crate::identity::browser_sessions::still_signed_in;
use crate::identity::mail::write_notice;
use crate::work::Work;
use crate::{ChannelRecord, Error, Purpose, Service};

/// An account that a person asks for. It does not print.
#[derive(Clone)]
pub struct NewAccount {
    /// The login.
    pub login: String,
    /// The e-mail address, if the person gives one.
    pub email: Option<String>,
    /// The name of the channel.
    pub channel_name: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for NewAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NewAccount")
    }
}

/// An account as its owner sees it.
#[derive(Clone, Debug)]
pub struct AccountDetails {
    /// The login.
    pub login: String,
    /// The e-mail address.
    pub email: Option<String>,
    /// Whether the address is proven.
    pub email_is_proven: bool,
    /// The name of the channel.
    pub channel_name: String,
    /// Since when the sign-in has a second step.
    pub two_factor_since: Option<Timestamp>,
    /// The number of unused recovery codes.
    pub recovery_codes: i64,
    /// Whether the person can sign in with a password.
    pub has_password: bool,
}

/// What shows that the person at a browser owns the account: the password, or for an account without one a
/// recent sign-in of the browser.
#[derive(Clone, Copy)]
pub struct Confirmation<'a> {
    password: &'a str,
    browser: Option<&'a BrowserToken>,
}

impl<'a> Confirmation<'a> {
    /// The password that was typed in a browser.
    pub const fn new(password: &'a str, browser: &'a BrowserToken) -> Self {
        Self { password, browser: Some(browser) }
    }

    /// The browser.
    pub(crate) const fn browser(self) -> Option<&'a BrowserToken> {
        self.browser
    }
}

impl<'a> From<&'a str> for Confirmation<'a> {
    fn from(password: &'a str) -> Self {
        Self { password, browser: None }
    }
}

impl Service {
    /// The settings of accounts.
    pub fn account_settings(&self) -> &AccountSettings {
        &self.0.accounts
    }

    /// Everything that is wrong with an account that a person asks for, but a login that is taken. Nothing
    /// where the registration is closed.
    pub fn faults_of_account(&self, new: &NewAccount) -> Vec<Invalid> {
        let faults = self.registers_people().then(|| self.checked(new).err());
        faults.flatten().unwrap_or_default()
    }

    fn registers_people(&self) -> bool {
        self.account_settings().registration && self.account_settings().passwords
    }

    /// The address and the password of a new account, or what is wrong, which is never nothing.
    fn checked(&self, new: &NewAccount) -> Result<(Option<Email>, Password), Vec<Invalid>> {
        let NewAccount { login, email, channel_name, password } = new;
        let email = parse_email(email.as_deref());
        let address = email.as_ref().ok().and_then(Option::as_ref).map_or("", Email::as_str);
        let password = self.chosen("password", password, &[login, channel_name, address]);
        let name = invalid::name("channelName", channel_name, NAME_CHARS_MAX);
        let faults = [check_login(login).err(), name.err()].into_iter().flatten();
        match (email, password) {
            (Ok(email), Ok(password)) => {
                let faults: Vec<_> = faults.collect();
                if faults.is_empty() { Ok((email, password)) } else { Err(faults) }
            }
            (email, password) => Err(faults.chain(email.err()).chain(password.err()).collect()),
        }
    }

    /// Makes an account with a channel of its own, and signs the browser in.
    ///
    /// # Errors
    /// `Invalid` naming `login`, `email`, `channelName` or `password`; [`Refusal::NotFound`] when the
    /// registration is closed; [`Refusal::Busy`] when too many passwords are checked.
    pub async fn register(&self, new: NewAccount) -> Result<(ChannelId, BrowserToken), Error> {
        if !self.registers_people() {
            return Err(Refusal::NotFound(Resource::Path).into());
        }
        let (email, password) = self.checked(&new).map_err(|mut faults| faults.swap_remove(0))?;
        let NewAccount { login, channel_name, .. } = new;
        let password_hash = self.hash_password("", password).await?;
        let now = self.now();
        let channel_id = ChannelId::generate(now, self.random(Purpose::Channel));
        let token = BrowserToken::generate(self.random(Purpose::Browser));
        let (id, hash) = (channel_id.clone(), token.hash());
        self.write(async move |work: &mut Work<'_>| {
            let record = ChannelRecord {
                channel_id: id,
                name: channel_name,
                image_url: None,
                verified_mark: false,
                real_name_verified: false,
            };
            work.put_channel(&record, now).await?;
            let id = &record.channel_id;
            work.insert_person(id, &login, &password_hash, email.as_ref()).await.map_err(login_taken)?;
            work.insert_browser_session(&hash, id, now.plus_ms(BROWSER_SESSION_LIFETIME_MS)).await?;
            Ok::<_, Error>(())
        })
        .await?;
        tracing::info!(%channel_id, "account registered");
        Ok((channel_id, token))
    }

    /// The account of a signed-in person.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the account does not exist.
    pub async fn account(&self, channel: &ChannelId) -> Result<AccountDetails, Error> {
        let id = channel.clone();
        let found = self
            .read(async move |tx: &mut Tx| Ok((tx.account(&id).await?, tx.recovery_codes(&id).await?)))
            .await?;
        let (Some(account), recovery_codes) = found else { return Err(no_account()) };
        let has_password = self.account_settings().accepts(&account.password_hash);
        let Account { channel_name, login, email, email_verified_at, two_factor_since, .. } = account;
        let email_is_proven = email_verified_at.is_some();
        Ok(AccountDetails {
            login,
            email,
            email_is_proven,
            channel_name,
            two_factor_since,
            recovery_codes,
            has_password,
        })
    }

    /// Changes the password of a signed-in person, and signs the person's other browsers out. This browser
    /// gets the token that is returned. Links of password resets become invalid. Applications keep their
    /// access.
    ///
    /// # Errors
    /// `Invalid` naming `password` when it is wrong, or `newPassword`; [`Refusal::Busy`].
    pub async fn change_password(
        &self,
        channel: &ChannelId,
        browser: &BrowserToken,
        (password, new_password): (&str, &str),
        language: Language,
    ) -> Result<BrowserToken, Error> {
        let account = self.checked_account(channel, password).await?;
        if !self.account_settings().accepts(&account.password_hash) {
            return Err(Refusal::NotFound(Resource::Path).into());
        }
        let new = self.chosen("newPassword", new_password, &about(&account))?;
        let new_hash = self.hash_password(&account.login, new).await?;
        let (service, channel, browser) = (self.clone(), channel.clone(), browser.hash());
        let token = BrowserToken::generate(self.random(Purpose::Browser));
        self.write(async move |work: &mut Work<'_>| {
            lock_unchanged(work, &account).await?;
            still_signed_in(work.renew_browser(&browser, &channel, &token.hash()).await?)?;
            set_password(work, &channel, &new_hash).await?;
            work.delete_other_browser_sessions(&channel, &token.hash()).await?;
            write_notice(work, &service, &channel, MailKind::PasswordChanged, language).await?;
            Ok(token)
        })
        .await
    }

    /// The account, if this confirms that the person owns it.
    ///
    /// # Errors
    /// `Invalid` naming `password` when it is wrong, or when the account has none and the sign-in is not
    /// recent; [`Refusal::NotFound`]; [`Refusal::Busy`].
    pub(crate) async fn checked_account(
        &self,
        channel: &ChannelId,
        confirmation: impl Into<Confirmation<'_>>,
    ) -> Result<Account, Error> {
        let Confirmation { password, browser } = confirmation.into();
        let id = channel.clone();
        let account = self.read(async move |tx: &mut Tx| Ok(tx.account(&id).await?)).await?;
        let account = account.ok_or_else(no_account)?;
        if !self.account_settings().accepts(&account.password_hash) {
            return match browser {
                Some(browser) if self.is_confirmed(channel, browser).await? => Ok(account),
                _ => Err(Invalid::new("password", Rule::RecentSignIn).into()),
            };
        }
        let wrong = || Error::from(Invalid::new("password", Rule::RightPassword));
        let password = Password::typed(password).ok_or_else(wrong)?;
        let stored = Some(account.password_hash.clone());
        match self.verify_password((&account.login, true), password, stored).await? {
            true => Ok(account),
            false => Err(wrong()),
        }
    }

    /// A password that its owner chose.
    ///
    /// # Errors
    /// `Invalid` naming `field`.
    pub(crate) fn chosen(
        &self,
        field: &'static str,
        text: &str,
        about: &[&str],
    ) -> Result<Password, Invalid> {
        let chars_min = self.account_settings().password_chars_min;
        let chosen = Password::chosen(text, chars_min, about);
        chosen.map_err(|fault| Invalid::new(field, Rule::Password(fault)))
    }
}

/// The words about the owner of an account that a password may not consist of.
pub(crate) fn about(account: &Account) -> [&str; 3] {
    [&account.login, &account.channel_name, account.email.as_deref().unwrap_or_default()]
}

/// Locks the channel of an account whose password was checked.
///
/// # Errors
/// [`Refusal::InvalidToken`] when the person was barred or the password changed after the check.
pub(crate) async fn lock_unchanged(work: &mut Work<'_>, account: &Account) -> Result<(), Error> {
    let channel = &account.channel_id;
    if !work.lock_unbarred_channel(channel).await?
        || work.password_hash(channel).await?.as_ref() != Some(&account.password_hash)
    {
        return Err(Refusal::InvalidToken(TokenFault::Revoked).into());
    }
    Ok(())
}

/// Replaces the password of a locked channel's person. Links of password resets and sign-ins that wait for a
/// code become invalid.
pub(crate) async fn set_password(work: &mut Work<'_>, channel: &ChannelId, hash: &str) -> Result<(), Error> {
    work.set_password(channel, hash).await?;
    work.delete_password_resets(channel).await?;
    work.delete_pending_sign_ins(channel).await?;
    Ok(())
}

pub(crate) fn parse_email(email: Option<&str>) -> Result<Option<Email>, Invalid> {
    email.map(str::trim).filter(|email| !email.is_empty()).map(Email::parse).transpose()
}

fn no_account() -> Error {
    Refusal::NotFound(Resource::Channel).into()
}
