//! Tokens: exchange of codes, refresh, revocation (`docs/spec/authorization.md#tokens`).

use domain::application::Application;
use domain::limits::{ACCESS_TOKEN_LIFETIME_MS, REFRESH_TOKEN_LIFETIME_MS};
use domain::refusal::{CodeFault, Credential, TokenFault};
use domain::secret::{AccessToken, AuthCode, RefreshToken, SecretHash};
use domain::token::{Presented, TokenFamily, chain_has_ended};
use domain::{ChannelId, ClientId, Refusal, ScopeSet};
use store::Tx;
use store::queries::tokens::{NewToken, StoredCredential, Trace};

use crate::work::Work;
use crate::{Error, Purpose, Service};

const MALFORMED: Refusal = Refusal::InvalidToken(TokenFault::Malformed(Credential::RefreshToken));

/// A new pair of tokens.
#[derive(Clone, Debug)]
pub struct IssuedTokens {
    /// Lives 1 day.
    pub access: AccessToken,
    /// Lives 30 days and works once.
    pub refresh: RefreshToken,
    /// The scopes of the tokens.
    pub scopes: ScopeSet,
}

/// The outcome of a presented code or refresh token.
enum TokenOutcome {
    Issued(ScopeSet),
    Refused(Refusal),
    /// The credential was used more than 10 seconds ago. Its tokens were revoked.
    Stolen(Refusal),
}

impl Service {
    /// The application that a code was made for; `None` if there is no such code.
    pub async fn application_of_code(&self, code: &str) -> Result<Option<ClientId>, Error> {
        let Some(code) = AuthCode::presented(code) else { return Ok(None) };
        let hash = code.hash();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.code(&hash).await?)).await?;
        Ok(found.map(|(code, _)| code.client_id))
    }

    /// Exchanges a code for the first pair of tokens.
    ///
    /// # Errors
    /// [`Refusal::BadCode`] for every code that cannot be used, and for a `state` that differs from the
    /// sign-in's. A code that another application presents stays unused. A code that was used more than 10
    /// seconds ago also revokes the tokens issued for it.
    pub async fn exchange_code(
        &self,
        application: &Application,
        code: &str,
        state: &str,
    ) -> Result<IssuedTokens, Error> {
        self.exchange_code_for_pair(application, code, state, self.new_pair()).await
    }

    /// Exchanges a code for these tokens, such as the tokens in the world file of a sandbox.
    ///
    /// # Errors
    /// As [`exchange_code`](Self::exchange_code); the store's when one of the tokens exists.
    pub async fn exchange_code_for(
        &self,
        application: &Application,
        code: &str,
        state: &str,
        access: AccessToken,
        refresh: RefreshToken,
    ) -> Result<IssuedTokens, Error> {
        self.exchange_code_for_pair(application, code, state, Pair { access, refresh }).await
    }

    async fn exchange_code_for_pair(
        &self,
        application: &Application,
        code: &str,
        state: &str,
        pair: Pair,
    ) -> Result<IssuedTokens, Error> {
        let code = AuthCode::presented(code).ok_or(Refusal::BadCode(CodeFault::Unknown))?.hash();
        let state = SecretHash::of(state);
        let (application, hashes) = (application.clone(), pair.hashes());
        let outcome = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let fault = |fault| TokenOutcome::Refused(Refusal::BadCode(fault));
                let found = work.code(&code).await?;
                let own = found.filter(|(found, _)| found.client_id == application.client_id);
                let Some((found, code_state)) = own else { return Ok(fault(CodeFault::Unknown)) };
                if !code_state.matches(&state) {
                    return Ok(fault(CodeFault::StateDiffers));
                }
                let (client_id, channel_id) = (&found.client_id, &found.channel_id);
                let Some(consented) = work.lock_consent(client_id, channel_id).await? else {
                    return Ok(fault(CodeFault::Unknown));
                };
                match found.single_use.presented(now) {
                    Presented::Fresh if work.use_code(&code, now).await? => {
                        insert_pair(work, &found, &hashes).await?;
                        Ok(TokenOutcome::Issued(consented.and(application.scopes)))
                    }
                    Presented::Fresh | Presented::Used => Ok(fault(CodeFault::Used)),
                    Presented::Expired => Ok(fault(CodeFault::Expired)),
                    Presented::Stolen => {
                        end_tokens(work, client_id, channel_id, Some(&found.family)).await?;
                        Ok(TokenOutcome::Stolen(Refusal::BadCode(CodeFault::Reused)))
                    }
                }
            })
            .await?;
        self.conclude(outcome, pair)
    }

    /// Exchanges a refresh token for the next pair of tokens.
    ///
    /// # Errors
    /// [`Refusal::InvalidToken`] for every refresh token that cannot be used. A refresh token that was used
    /// more than 10 seconds ago also revokes every token of that client and user. None can be used once the
    /// sign-in is older than the settings allow.
    pub async fn refresh(
        &self,
        application: &Application,
        refresh_token: &str,
    ) -> Result<IssuedTokens, Error> {
        let token = RefreshToken::presented(refresh_token).ok_or(MALFORMED)?.hash();
        let pair = self.new_pair();
        let (application, hashes) = (application.clone(), pair.hashes());
        let chain_max_ms = self.account_settings().token_chain_max_ms;
        let outcome = self
            .write(async move |work: &mut Work<'_>| {
                let now = work.now();
                let fault = |fault| TokenOutcome::Refused(Refusal::InvalidToken(fault));
                let found = work.refresh_token(&token).await?;
                let own = found.filter(|found| found.client_id == application.client_id);
                let Some(found) = own else {
                    return Ok(fault(fault_of(work, &token, &application.client_id).await?));
                };
                let (client_id, channel_id) = (&found.client_id, &found.channel_id);
                let Some(consented) = work.lock_consent(client_id, channel_id).await? else {
                    return Ok(fault(TokenFault::Revoked));
                };
                match found.single_use.presented(now) {
                    Presented::Fresh if chain_has_ended(found.began_at, chain_max_ms, now) => {
                        Ok(fault(TokenFault::Expired))
                    }
                    Presented::Fresh if work.use_refresh_token(&token, now).await? => {
                        insert_pair(work, &found, &hashes).await?;
                        Ok(TokenOutcome::Issued(consented.and(application.scopes)))
                    }
                    Presented::Fresh | Presented::Used => Ok(fault(TokenFault::Used)),
                    Presented::Expired => Ok(fault(TokenFault::Expired)),
                    Presented::Stolen => {
                        end_tokens(work, client_id, channel_id, None).await?;
                        Ok(TokenOutcome::Stolen(Refusal::InvalidToken(TokenFault::Reused)))
                    }
                }
            })
            .await?;
        self.conclude(outcome, pair)
    }

    /// Revokes every token of the client and user that `token` belongs to. `token` is an access or a refresh
    /// token. An unknown token and a token of another client change nothing and are no error.
    pub async fn revoke(&self, application: &Application, token: &str) -> Result<(), Error> {
        let Some(token) = AccessToken::presented(token) else { return Ok(()) };
        let (hash, client_id) = (token.hash(), application.client_id.clone());
        self.write(async move |work: &mut Work<'_>| match work.token_holder(&hash).await? {
            Some((holder, channel)) if holder == client_id => {
                work.lock_consent(&client_id, &channel).await?;
                end_tokens(work, &client_id, &channel, None).await
            }
            _ => Ok(()),
        })
        .await
    }

    fn conclude(&self, outcome: TokenOutcome, pair: Pair) -> Result<IssuedTokens, Error> {
        match outcome {
            TokenOutcome::Issued(scopes) => {
                Ok(IssuedTokens { access: pair.access, refresh: pair.refresh, scopes })
            }
            TokenOutcome::Refused(refusal) => Err(refusal.into()),
            TokenOutcome::Stolen(refusal) => {
                if let Some(times) = self.0.reused_credentials.due(self.clock().monotonic()) {
                    tracing::warn!(times, "a used credential was presented again: its tokens were revoked");
                }
                Err(refusal.into())
            }
        }
    }

    fn new_pair(&self) -> Pair {
        Pair {
            access: AccessToken::generate(self.random(Purpose::Token)),
            refresh: RefreshToken::generate(self.random(Purpose::Token)),
        }
    }
}

/// The reason why a client has no refresh token with this hash. A token of another client is reported as
/// unknown.
async fn fault_of(tx: &mut Tx, token: &SecretHash, client_id: &ClientId) -> Result<TokenFault, Error> {
    let trace = tx.token_trace(token).await?.filter(|(owner, ..)| owner == client_id);
    Ok(match trace {
        None | Some((_, Trace::Refresh, _)) => TokenFault::Unknown,
        Some((_, Trace::Access, _)) => TokenFault::WrongKind(Credential::RefreshToken),
        Some((_, Trace::Revoked, _)) => TokenFault::Revoked,
    })
}

struct Pair {
    access: AccessToken,
    refresh: RefreshToken,
}

#[derive(Clone)]
struct PairHashes {
    access: SecretHash,
    refresh: SecretHash,
}

impl Pair {
    fn hashes(&self) -> PairHashes {
        PairHashes { access: self.access.hash(), refresh: self.refresh.hash() }
    }
}

async fn insert_pair(
    work: &mut Work<'_>,
    credential: &StoredCredential,
    pair: &PairHashes,
) -> Result<(), Error> {
    let now = work.now();
    let &StoredCredential { ref family, ref client_id, ref channel_id, generation, began_at, .. } =
        credential;
    let token = |hash, lifetime_ms| NewToken {
        hash,
        family,
        client_id,
        channel_id,
        generation,
        expires_at: now.plus_ms(lifetime_ms),
    };
    work.note_consent_use(client_id, channel_id, now).await?;
    work.insert_access_token(token(&pair.access, ACCESS_TOKEN_LIFETIME_MS)).await?;
    work.insert_refresh_token(token(&pair.refresh, REFRESH_TOKEN_LIFETIME_MS), began_at).await?;
    Ok(())
}

/// Revokes the tokens of a client and a user, and the subscriptions made with the tokens: those of one
/// family, or all. With all, unused codes are deleted too. The caller must hold the lock of the consent.
pub(crate) async fn end_tokens(
    work: &mut Work<'_>,
    client_id: &ClientId,
    channel_id: &ChannelId,
    family: Option<&TokenFamily>,
) -> Result<(), Error> {
    if family.is_none() {
        work.delete_unused_codes(client_id, channel_id).await?;
    }
    work.delete_tokens(client_id, channel_id, family).await?;
    crate::realtime::subscriptions::revoke_standing_on(work, client_id, channel_id, family).await
}
