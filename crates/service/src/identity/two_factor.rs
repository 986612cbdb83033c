//! The second step of a sign-in: one-time codes of an authenticator app, and recovery codes
//! (`docs/accounts.md#two-factor`).

use domain::audit::AuditAction;
use domain::limits::{
    BROWSER_SESSION_LIFETIME_MS, CODE_FAILURES_MAX, CODE_FAILURES_MS, RECOVERY_CODES, SECOND_MS,
};
use domain::mail::MailKind;
use domain::quota::QuotaName;
use domain::refusal::Resource;
use domain::seal::ServiceKey;
use domain::secret::{BrowserToken, SecretHash};
use domain::totp::{RecoveryCode, TotpSecret};
use domain::{ChannelId, Invalid, Language, Refusal, Rule};
use store::Tx;

use crate::identity::accounts::{Confirmation, lock_unchanged};
use crate::identity::mail::write_notice;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// The result of entering a code after the password.
#[derive(Clone, Debug)]
pub enum EnteredCode {
    /// The browser is signed in with this token.
    SignedIn(BrowserToken),
    /// The code is wrong, or was used.
    Wrong,
    /// There were too many wrong codes. This one was not checked.
    Limited,
    /// The sign-in has to begin again with the password.
    Expired,
}

/// The verdict on a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    Wrong,
    Limited,
}

impl Verdict {
    /// Whether the code was right.
    pub(crate) fn is_right(self) -> bool {
        self == Self::Right
    }

    /// The refusal of a form with a code.
    pub(crate) fn accepted(self) -> Result<(), Error> {
        match self {
            Self::Right => Ok(()),
            Self::Wrong => Err(Invalid::new("code", Rule::RightCode).into()),
            Self::Limited => {
                let retry_after_s = u32::try_from(CODE_FAILURES_MS / SECOND_MS).unwrap_or(u32::MAX);
                Err(Refusal::TooManyRequests { quota: QuotaName::Failures, retry_after_s }.into())
            }
        }
    }
}

impl Service {
    /// Whether the sign-in of this browser waits for a code.
    pub async fn awaits_code(&self, token: &BrowserToken) -> Result<bool, Error> {
        let (hash, now) = (token.hash(), self.now());
        self.read(async move |tx: &mut Tx| Ok(tx.pending_sign_in(&hash, now).await?.is_some())).await
    }

    /// Completes the sign-in of a browser with a one-time code or a recovery code.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn enter_code(&self, token: &BrowserToken, code: &str) -> Result<EnteredCode, Error> {
        let new = BrowserToken::generate(self.random(Purpose::Browser));
        let (pending, hash) = (token.hash(), new.hash());
        let (key, code) = (self.key().clone(), code.to_owned());
        let verdict = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let Some(channel) = work.pending_sign_in(&pending, now).await? else { return Ok(None) };
                if !work.lock_unbarred_channel(&channel).await? {
                    return Ok(None);
                }
                let verdict = check_code(work, &key, &channel, &code).await?;
                if verdict == Verdict::Right {
                    if work.take_pending_sign_in(&pending, now).await?.is_none() {
                        return Ok(None);
                    }
                    let expires_at = now.plus_ms(BROWSER_SESSION_LIFETIME_MS);
                    work.insert_browser_session(&hash, &channel, expires_at).await?;
                }
                Ok::<_, Error>(Some(verdict))
            })
            .await?;
        Ok(match verdict {
            Some(Verdict::Right) => EnteredCode::SignedIn(new),
            Some(Verdict::Wrong) => EnteredCode::Wrong,
            Some(Verdict::Limited) => EnteredCode::Limited,
            None => EnteredCode::Expired,
        })
    }

    /// Begins to turn the second step on in a browser: gives a new secret for the person's authenticator app.
    /// Other browsers of the person do not see it, so that a stolen sign-in does not learn it.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the second step is on already.
    pub async fn begin_two_factor(
        &self,
        channel: &ChannelId,
        browser: &BrowserToken,
    ) -> Result<TotpSecret, Error> {
        let secret = TotpSecret::generate(self.random(Purpose::TwoFactor));
        let text = unconfirmed(&secret, browser);
        let sealed = self.key().seal(&subject(channel), &text, self.random(Purpose::Nonce));
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            if !work.lock_unbarred_channel(&channel).await? || !work.put_two_factor(&channel, &sealed).await?
            {
                return Err(Error::from(Refusal::NotFound(Resource::Path)));
            }
            Ok(())
        })
        .await?;
        Ok(secret)
    }

    /// The secret that a person has begun with in this browser and not confirmed.
    pub async fn unconfirmed_two_factor(
        &self,
        channel: &ChannelId,
        browser: &BrowserToken,
    ) -> Result<Option<TotpSecret>, Error> {
        let id = channel.clone();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.two_factor(&id).await?)).await?;
        let found = found.filter(|found| found.confirmed_at.is_none());
        let secret = found.and_then(|found| open(self.key(), channel, &found.sealed_secret));
        Ok(secret.filter(|secret| secret.is_of(browser)).map(|secret| secret.secret))
    }

    /// Turns the second step on, with the first code of the person's app. Gives the recovery codes, which are
    /// never shown again.
    ///
    /// # Errors
    /// `Invalid` naming `password` or `code`; [`Refusal::TooManyRequests`] after too many wrong codes;
    /// [`Refusal::Busy`].
    pub async fn confirm_two_factor(
        &self,
        channel: &ChannelId,
        confirmation: impl Into<Confirmation<'_>>,
        code: &str,
        language: Language,
    ) -> Result<Vec<RecoveryCode>, Error> {
        let confirmation = confirmation.into();
        let account = self.checked_account(channel, confirmation).await?;
        let browser = confirmation.browser().map(BrowserToken::hash);
        let (service, code) = (self.clone(), code.to_owned());
        let codes = self
            .write(async move |work: &mut Work<'_>| {
                lock_unchanged(work, &account).await?;
                let channel = &account.channel_id;
                let verdict = check_first_code(work, service.key(), (channel, browser), &code).await?;
                if verdict != Verdict::Right {
                    return Ok(Err(verdict));
                }
                let codes = replace_recovery_codes(work, channel).await?;
                work.delete_pending_sign_ins(channel).await?;
                write_notice(work, &service, channel, MailKind::TwoFactorOn, language).await?;
                Ok::<_, Error>(Ok(codes))
            })
            .await?;
        match codes {
            Ok(codes) => {
                tracing::info!(channel_id = %channel, "second step of the sign-in turned on");
                Ok(codes)
            }
            Err(Verdict::Wrong) => Err(Invalid::new("code", Rule::CurrentCode).into()),
            Err(verdict) => verdict.accepted().map(|()| Vec::new()),
        }
    }

    /// Replaces the recovery codes of a person whose second step is on. Gives the new ones, which are never
    /// shown again.
    ///
    /// # Errors
    /// `Invalid` naming `password`; [`Refusal::NotFound`] when the second step is off; [`Refusal::Busy`].
    pub async fn renew_recovery_codes(
        &self,
        channel: &ChannelId,
        confirmation: impl Into<Confirmation<'_>>,
        language: Language,
    ) -> Result<Vec<RecoveryCode>, Error> {
        let account = self.checked_account(channel, confirmation).await?;
        let service = self.clone();
        self.write(async move |work: &mut Work<'_>| {
            lock_unchanged(work, &account).await?;
            let two_factor = work.two_factor(&account.channel_id).await?;
            if two_factor.is_none_or(|found| found.confirmed_at.is_none()) {
                return Err(Error::from(Refusal::NotFound(Resource::Path)));
            }
            let codes = replace_recovery_codes(work, &account.channel_id).await?;
            let kind = MailKind::RecoveryCodesRenewed;
            write_notice(work, &service, &account.channel_id, kind, language).await?;
            Ok(codes)
        })
        .await
    }

    /// Turns the second step off, with the password and a code.
    ///
    /// # Errors
    /// `Invalid` naming `password` or `code`; [`Refusal::TooManyRequests`] after too many wrong codes;
    /// [`Refusal::Busy`].
    pub async fn turn_two_factor_off(
        &self,
        channel: &ChannelId,
        confirmation: impl Into<Confirmation<'_>>,
        code: &str,
        language: Language,
    ) -> Result<(), Error> {
        let account = self.checked_account(channel, confirmation).await?;
        let (service, code) = (self.clone(), code.to_owned());
        let verdict = self
            .write(async move |work: &mut Work<'_>| {
                lock_unchanged(work, &account).await?;
                let channel = &account.channel_id;
                let verdict = check_code(work, service.key(), channel, &code).await?;
                if verdict == Verdict::Right {
                    work.delete_two_factor(channel).await?;
                    write_notice(work, &service, channel, MailKind::TwoFactorOff, language).await?;
                }
                Ok::<_, Error>(verdict)
            })
            .await?;
        verdict.accepted()?;
        tracing::info!(channel_id = %channel, "second step of the sign-in turned off");
        Ok(())
    }

    /// Removes the second step of a person who lost the device and the recovery codes. A missing one is no
    /// error.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when the channel does not exist, and for the operator's own account.
    pub async fn remove_two_factor(&self, channel: &ChannelId, language: Language) -> Result<(), Error> {
        let (service, id) = (self.clone(), channel.clone());
        let removed = self
            .write(async move |work: &mut Work<'_>| {
                work.lock_account_of_another(&id).await?;
                let removed = work.delete_two_factor(&id).await?;
                work.delete_pending_sign_ins(&id).await?;
                if removed {
                    write_notice(work, &service, &id, MailKind::TwoFactorOff, language).await?;
                    work.audit(AuditAction::TwoFactorRemove, &id).await?;
                }
                Ok::<_, Error>(removed)
            })
            .await?;
        if removed {
            tracing::info!(channel_id = %channel, "second step of the sign-in removed by the operator");
        }
        Ok(())
    }
}

/// Checks a code of a locked channel, if its second step is on. Without one every code is right.
pub(crate) async fn check_code_if_on(
    work: &mut Work<'_>,
    key: &ServiceKey,
    channel: &ChannelId,
    code: &str,
) -> Result<Verdict, Error> {
    match work.two_factor(channel).await?.and_then(|found| found.confirmed_at) {
        Some(_) => check_code(work, key, channel, code).await,
        None => Ok(Verdict::Right),
    }
}

/// Checks a one-time code or a recovery code of a locked channel, and uses it up. An attempt counts before
/// its code is checked. A recovery code is too long to be guessed, so it is taken after any number of wrong
/// codes.
async fn check_code(
    work: &mut Work<'_>,
    key: &ServiceKey,
    channel: &ChannelId,
    code: &str,
) -> Result<Verdict, Error> {
    if let Some(code) = RecoveryCode::typed(code) {
        let is_right = work.take_recovery_code(channel, &code.hash(channel)).await?;
        return Ok(if is_right { Verdict::Right } else { Verdict::Wrong });
    }
    let Some(step) = charged_step(work, key, channel, code).await? else { return Ok(Verdict::Limited) };
    let Some(step) = step else { return Ok(Verdict::Wrong) };
    let is_first_use = work.use_code_step(channel, step).await?;
    Ok(if is_first_use { Verdict::Right } else { Verdict::Wrong })
}

/// Checks the code that confirms a secret, in the browser that began with it. The confirmed secret is of no
/// browser.
async fn check_first_code(
    work: &mut Work<'_>,
    key: &ServiceKey,
    (channel, browser): (&ChannelId, Option<SecretHash>),
    code: &str,
) -> Result<Verdict, Error> {
    let Some(step) = charged_step(work, key, channel, code).await? else { return Ok(Verdict::Limited) };
    let Some(step) = step else { return Ok(Verdict::Wrong) };
    let now = work.now();
    let found = work.two_factor(channel).await?.and_then(|found| open(key, channel, &found.sealed_secret));
    let Some(Opened { secret, browser: Some(began) }) = found else { return Ok(Verdict::Wrong) };
    if browser.is_none_or(|browser| browser.as_str() != began) {
        return Ok(Verdict::Wrong);
    }
    let sealed = key.seal(&subject(channel), &secret.expose(), work.random(Purpose::Nonce));
    let is_confirmed =
        work.put_two_factor(channel, &sealed).await? && work.confirm_two_factor(channel, step, now).await?;
    Ok(if is_confirmed { Verdict::Right } else { Verdict::Wrong })
}

/// Counts an attempt, and finds the step of its code: `None` after too many wrong ones.
async fn charged_step(
    work: &mut Work<'_>,
    key: &ServiceKey,
    channel: &ChannelId,
    code: &str,
) -> Result<Option<Option<i64>>, Error> {
    let now = work.now();
    let Some(found) = work.two_factor(channel).await? else { return Ok(Some(None)) };
    if !work.charge_code(channel, now.plus_ms(-CODE_FAILURES_MS), now, CODE_FAILURES_MAX).await? {
        return Ok(None);
    }
    let secret = open(key, channel, &found.sealed_secret)
        .ok_or(Error::Internal("the secret of one-time codes was sealed with another service key"))?;
    Ok(Some(secret.secret.step_of(code, now)))
}

async fn replace_recovery_codes(
    work: &mut Work<'_>,
    channel: &ChannelId,
) -> Result<Vec<RecoveryCode>, Error> {
    work.delete_recovery_codes(channel).await?;
    let codes: Vec<_> =
        (0..RECOVERY_CODES).map(|_| RecoveryCode::generate(work.random(Purpose::TwoFactor))).collect();
    for code in &codes {
        work.insert_recovery_code(channel, &code.hash(channel)).await?;
    }
    Ok(codes)
}

/// The subject under which the secret of a second step is sealed.
pub(crate) fn subject(channel: &ChannelId) -> String {
    format!("two-factor secret of {channel}")
}

/// A secret, and the hash of the browser that began with it, until it is confirmed.
struct Opened {
    secret: TotpSecret,
    browser: Option<String>,
}

impl Opened {
    fn is_of(&self, browser: &BrowserToken) -> bool {
        self.browser.as_deref() == Some(browser.hash().as_str())
    }
}

/// The text that is sealed for a secret that is not confirmed.
fn unconfirmed(secret: &TotpSecret, browser: &BrowserToken) -> String {
    format!("{} {}", secret.expose().as_str(), browser.hash().as_str())
}

fn open(key: &ServiceKey, channel: &ChannelId, sealed: &str) -> Option<Opened> {
    let text = key.open(&subject(channel), sealed)?;
    let (secret, browser) = match text.split_once(' ') {
        Some((secret, browser)) => (secret, Some(browser.to_owned())),
        None => (text.as_str(), None),
    };
    Some(Opened { secret: TotpSecret::from_base32(secret)?, browser })
}
