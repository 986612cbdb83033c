//! The quotas of a call, and their headers (`docs/spec/limits.md#quotas`).

use std::hash::Hash;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use domain::application::Application;
use domain::client_address::AddressBlock;
use domain::limits::{
    CHAT_SEND_QUOTA, CLIENT_QUOTA, FAILURE_QUOTA, SESSION_URL_QUOTA, TOKEN_QUOTA, USER_QUOTA,
};
use domain::quota::{Quota, QuotaName, QuotaShare, QuotaStatus};
use domain::token::Caller;
use domain::{ChannelId, Refusal};
use http::{HeaderMap, HeaderName};
use service::quotas::Counted;

use crate::usage::CountedRequest;
use crate::{ClientAddress, Web};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

/// An endpoint's own quota besides that of its mode. It is a type, so that a handler's signature names it.
pub trait Extra: Send {
    /// The counted thing and its quota; `None` for no additional quota.
    const EXTRA: Option<(Counted, Quota)>;
}

macro_rules! extras {
    ($($(#[$doc:meta])* $name:ident = $extra:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}
        impl Extra for $name {
            const EXTRA: Option<(Counted, Quota)> = $extra;
        }
    )+};
}

extras! {
    /// Only the quota of the mode.
    Standard = None;
    /// Chat messages of a user: 20 in 30 s.
    ChatSend = Some((Counted::ChatSend, CHAT_SEND_QUOTA));
    /// Session URLs of a caller: 30 in a minute.
    SessionUrl = Some((Counted::SessionUrls, SESSION_URL_QUOTA));
}

/// What is known about the caller of a request when it is answered: the tightest quota that it was charged
/// to, for the headers, and the application whose request it counts as.
#[derive(Clone, Debug, Default)]
pub(crate) struct Charged(Arc<Charges>);

#[derive(Debug, Default)]
struct Charges {
    tightest: Mutex<Option<QuotaStatus>>,
    counted: OnceLock<CountedRequest>,
}

impl Charged {
    /// Notes whose request it is. Only the first call counts, because a request has one application.
    pub(crate) fn count_for(&self, request: CountedRequest) {
        let _ = self.0.counted.set(request);
    }

    /// Whose request it is, if its application is known.
    pub(crate) fn counted(&self) -> Option<&CountedRequest> {
        self.0.counted.get()
    }

    /// Takes one request out of a bucket.
    ///
    /// # Errors
    /// [`Refusal::TooManyRequests`] if the bucket is empty.
    pub(crate) fn take(
        &self,
        web: &Web,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
    ) -> Result<(), Refusal> {
        self.note(counted, web.service().quotas().take(counted, caller, quota, elapsed(web)))
    }

    /// Takes one request of an application. An application without quotas always has a full bucket.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    fn take_of(
        &self,
        web: &Web,
        share: QuotaShare,
        counted: Counted,
        caller: impl Hash,
        quota: Quota,
    ) -> Result<(), Refusal> {
        match share.of(quota) {
            Some(part) => self.take(web, counted, caller, part),
            None => self.note(counted, web.service().quotas().untouched(quota)),
        }
    }

    fn note(&self, counted: Counted, status: Option<QuotaStatus>) -> Result<(), Refusal> {
        let Some(status) = status else { return Ok(()) };
        let mut noted = self.0.tightest.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.is_none_or(|noted| status.remaining < noted.remaining || status.retry_after_s.is_some()) {
            *noted = Some(status);
        }
        match status.retry_after_s {
            Some(retry_after_s) => Err(Refusal::TooManyRequests { quota: counted.name(), retry_after_s }),
            None => Ok(()),
        }
    }

    /// Writes the headers. A caller without credentials is counted by its network address.
    pub(crate) fn describe(&self, web: &Web, client: Option<ClientAddress>, headers: &mut HeaderMap) {
        let noted = *self.0.tightest.lock().unwrap_or_else(PoisonError::into_inner);
        let status = noted.or_else(|| {
            web.service().quotas().take(Counted::Unknown, block(client), CLIENT_QUOTA, elapsed(web))
        });
        if let Some(status) = status {
            headers.insert(LIMIT, status.limit.into());
            headers.insert(REMAINING, status.remaining.into());
            headers.insert(RESET, status.reset_s.into());
        }
    }
}

/// Charges a client-mode call.
pub(crate) fn charge_client<Q: Extra>(
    web: &Web,
    charged: &Charged,
    application: &Application,
) -> Result<(), Refusal> {
    let (client_id, share) = (application.client_id.as_str(), application.quota);
    charged.take_of(web, share, Counted::Client, client_id, CLIENT_QUOTA)?;
    // The key is a pair, so that an application and a user with the same id never share a bucket.
    charge_extra::<Q>(web, charged, share, ("client", client_id))
}

/// Charges a user-mode call. Chat messages and session URLs are counted for the user over all applications
/// with quotas. What an application with lowered quotas takes of them is counted for it besides, so that the
/// user's other applications do not feel it.
pub(crate) fn charge_user<Q: Extra>(web: &Web, charged: &Charged, caller: &Caller) -> Result<(), Refusal> {
    let Caller { client_id, channel_id, quota: share, .. } = caller;
    let (client_id, channel_id) = (client_id.as_str(), channel_id.as_str());
    charged.take_of(web, *share, Counted::User, (client_id, channel_id), USER_QUOTA)?;
    if !share.is_lowered() {
        return charge_extra::<Q>(web, charged, *share, channel_id);
    }
    charge_extra::<Q>(web, charged, *share, (client_id, channel_id))?;
    charge_extra::<Q>(web, charged, QuotaShare::FULL, channel_id)
}

fn charge_extra<Q: Extra>(
    web: &Web,
    charged: &Charged,
    share: QuotaShare,
    caller: impl Hash,
) -> Result<(), Refusal> {
    Q::EXTRA.map_or(Ok(()), |(counted, quota)| charged.take_of(web, share, counted, caller, quota))
}

/// Charges a token call to its application.
pub(crate) fn charge_token(web: &Web, charged: &Charged, application: &Application) -> Result<(), Refusal> {
    let client_id = application.client_id.as_str();
    charged.take_of(web, application.quota, Counted::Token, client_id, TOKEN_QUOTA)
}

/// A quota of an application or of one of its users.
#[derive(Clone, Debug)]
pub struct QuotaFigure {
    /// The quota.
    pub name: QuotaName,
    /// The user; `None` for a quota of the application.
    pub channel_id: Option<ChannelId>,
    /// What is left of it.
    pub status: QuotaStatus,
}

/// The quotas of an application and of these users, as this node counts them. Takes nothing. Empty where the
/// application has no quotas.
pub fn quota_figures(web: &Web, application: &Application, users: &[ChannelId]) -> Vec<QuotaFigure> {
    let (id, share) = (application.client_id.as_str(), application.quota);
    let mut figures = Vec::new();
    let mut add = |counted: Counted, user: Option<&ChannelId>, caller: (&str, &str), quota: Quota| {
        let now = elapsed(web);
        let Some(quota) = share.of(quota) else { return };
        let quotas = web.service().quotas();
        let status = match (counted, user) {
            (Counted::Client | Counted::Token, _) => quotas.peek(counted, id, quota, now),
            // Counted for the user, whatever the application, unless its quotas are lowered.
            (Counted::SessionUrls | Counted::ChatSend, Some(user)) if !share.is_lowered() => {
                quotas.peek(counted, user.as_str(), quota, now)
            }
            _ => quotas.peek(counted, caller, quota, now),
        };
        let channel_id = user.cloned();
        figures.extend(status.map(|status| QuotaFigure { name: counted.name(), channel_id, status }));
    };
    add(Counted::Client, None, (id, ""), CLIENT_QUOTA);
    add(Counted::Token, None, (id, ""), TOKEN_QUOTA);
    add(Counted::SessionUrls, None, ("client", id), SESSION_URL_QUOTA);
    for user in users {
        let caller = (id, user.as_str());
        add(Counted::User, Some(user), caller, USER_QUOTA);
        add(Counted::SessionUrls, Some(user), caller, SESSION_URL_QUOTA);
        add(Counted::ChatSend, Some(user), caller, CHAT_SEND_QUOTA);
    }
    figures
}

/// Counts failed authentication, whose refusal is `refusal`, against the client's address. Right credentials
/// are accepted regardless of the count, so this is called after the check.
pub(crate) fn failed(
    web: &Web,
    charged: &Charged,
    counted: Counted,
    client: Option<ClientAddress>,
    refusal: Refusal,
) -> Refusal {
    charged.take(web, counted, block(client), FAILURE_QUOTA).err().unwrap_or(refusal)
}

/// Whether an address has used up its failures.
pub(crate) fn has_failed_often(web: &Web, counted: Counted, client: Option<ClientAddress>) -> bool {
    let status = web.service().quotas().peek(counted, block(client), FAILURE_QUOTA, elapsed(web));
    status.is_some_and(|status| status.retry_after_s.is_some())
}

/// Counts a bad code of an authenticated application. An attacker may have made the code up, so it counts
/// only for this application.
///
/// # Errors
/// [`Refusal::TooManyRequests`] if there were too many bad codes.
pub(crate) fn bad_code(web: &Web, charged: &Charged, application: &Application) -> Result<(), Refusal> {
    charged.take(web, Counted::Exchanges, application.client_id.as_str(), FAILURE_QUOTA)
}

/// Counts a bad refresh token of an authenticated application. The count never causes a refusal of a refresh.
pub(crate) fn bad_refresh_token(web: &Web, application: &Application) {
    let client_id = application.client_id.as_str();
    web.service().quotas().take(Counted::Exchanges, client_id, FAILURE_QUOTA, elapsed(web));
}

/// The address block that a client is counted by.
pub(crate) fn block(client: Option<ClientAddress>) -> Option<AddressBlock> {
    client.map(|ClientAddress(address)| address.into())
}

/// The time of quotas.
fn elapsed(web: &Web) -> Duration {
    web.service().clock().elapsed()
}
