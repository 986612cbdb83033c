//! The e-mail address of an account: its change, and the links that prove that messages reach its person
//! (`docs/accounts.md#proven-addresses`). A link is sealed with the service key, so the store keeps none. To
//! use one twice changes nothing.

use domain::limits::EMAIL_PROOF_LIFETIME_MS;
use domain::mail::{Mail, MailKind};
use domain::{ChannelId, Language, Timestamp};
use serde::{Deserialize, Serialize};

use crate::identity::accounts::{Confirmation, lock_unchanged, parse_email};
use crate::identity::mail::{may_send_link, replace_email, write_mail};
use crate::identity::two_factor::check_code_if_on;
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// What the links are sealed for.
const SUBJECT: &str = "the proof of an e-mail address";

/// What a link says.
#[derive(Serialize, Deserialize)]
struct EmailProof {
    channel: ChannelId,
    email: String,
    expires_at: i64,
}

impl Service {
    /// Changes or removes the e-mail address of a signed-in person, with a code where the second step is on.
    /// Links that were sent to the former one become invalid. The former one gets a notice, if it was proven.
    ///
    /// # Errors
    /// `Invalid` naming `password` or `code` when it is wrong, or `email`;
    /// [`Refusal::TooManyRequests`](domain::Refusal::TooManyRequests) after too many wrong codes;
    /// [`Refusal::Busy`](domain::Refusal::Busy).
    pub async fn change_email(
        &self,
        channel: &ChannelId,
        confirmation: impl Into<Confirmation<'_>>,
        (email, code): (Option<&str>, &str),
        language: Language,
    ) -> Result<(), Error> {
        let email = parse_email(email)?;
        let account = self.checked_account(channel, confirmation).await?;
        let (service, code) = (self.clone(), code.to_owned());
        let verdict = self
            .write(async move |work: &mut Work<'_>| {
                lock_unchanged(work, &account).await?;
                let channel = &account.channel_id;
                let verdict = check_code_if_on(work, service.key(), channel, &code).await?;
                if verdict.is_right() {
                    work.delete_password_resets(channel).await?;
                    replace_email(work, &service, channel, email.as_ref(), language).await?;
                }
                Ok::<_, Error>(verdict)
            })
            .await?;
        verdict.accepted()
    }

    /// Sends the person a link that proves the address of the account: `false` if it is proven, there is
    /// none, or too many messages were sent. `page` is the address of the page behind the link.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn send_email_proof(
        &self,
        channel: &ChannelId,
        page: &str,
        language: Language,
    ) -> Result<bool, Error> {
        let (service, id, page) = (self.clone(), channel.clone(), page.to_owned());
        self.write(async move |work: &mut Work<'_>| {
            write_email_proof(work, &service, &id, &page, language).await
        })
        .await
    }

    /// Takes a link as the proof of its address: `false` if it is too old or wrong, or the account has
    /// another address.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn prove_email(&self, token: &str) -> Result<bool, Error> {
        let Some(proof) = self.opened_proof(token) else { return Ok(false) };
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            Ok(work.verify_email(&proof.channel, &proof.email, now).await?)
        })
        .await
    }

    /// The address that a link proves, if it is not too old.
    pub fn address_of_proof(&self, token: &str) -> Option<String> {
        self.opened_proof(token).map(|proof| proof.email)
    }

    fn opened_proof(&self, token: &str) -> Option<EmailProof> {
        let text = self.key().open(SUBJECT, token)?;
        let proof: EmailProof = serde_json::from_str(&text).ok()?;
        (self.now() < Timestamp::from_millis(proof.expires_at)).then_some(proof)
    }
}

/// Writes the message with the link, inside a transaction.
pub(crate) async fn write_email_proof(
    work: &mut Work<'_>,
    service: &Service,
    channel: &ChannelId,
    page: &str,
    language: Language,
) -> Result<bool, Error> {
    if !service.account_settings().sends_mail {
        return Ok(false);
    }
    let Some(account) = work.account(channel).await? else { return Ok(false) };
    let (Some(to), None) = (account.email, account.email_verified_at) else { return Ok(false) };
    if !may_send_link(work, channel, &to, false).await? {
        return Ok(false);
    }
    let expires_at = work.now().plus_ms(EMAIL_PROOF_LIFETIME_MS).as_millis();
    let proof = EmailProof { channel: channel.clone(), email: to.clone(), expires_at };
    let text = serde_json::to_string(&proof).map_err(|_| Error::Internal("a proof is not JSON"))?;
    let token = service.key().seal(SUBJECT, &text, work.random(Purpose::Nonce));
    let mut link = format!("{page}?token=");
    domain::application::percent_encode(&token, &mut link);
    let language = Mail::language_tag(language).to_owned();
    let (kind, link, name, accounts) = (MailKind::EmailProof, Some(link), String::new(), Vec::new());
    let mail = Mail { kind, to, language, link, name, accounts };
    write_mail(work, service.key(), channel, &mail).await?;
    Ok(true)
}
