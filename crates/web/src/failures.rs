//! Counts failed authentication for the metrics, and logs it at most once a minute.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use service::LogLimit;

use crate::ClientAddress;

/// The kind of failure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failed {
    /// A wrong password, or one of a login that does not exist.
    Password,
    /// A sign-in that was refused before its password was checked.
    SignInLimited,
    /// A wrong client secret, or one of an application that does not exist.
    ClientSecret,
    /// A wrong operator key.
    OperatorKey,
}

/// The failures of this node so far.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    password: FailureKind,
    sign_in_limited: FailureKind,
    client_secret: FailureKind,
    operator_key: FailureKind,
}

#[derive(Debug, Default)]
struct FailureKind {
    count: AtomicU64,
    log: LogLimit,
}

/// A snapshot of the failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailureFigures {
    /// Wrong passwords on the sign-in page.
    pub passwords: u64,
    /// Sign-ins refused before their passwords were checked.
    pub sign_ins_limited: u64,
    /// Wrong client secrets.
    pub client_secrets: u64,
    /// Wrong operator keys.
    pub operator_keys: u64,
}

impl Failures {
    /// A snapshot of the failures.
    pub(crate) fn figures(&self) -> FailureFigures {
        FailureFigures {
            passwords: self.password.count.load(Relaxed),
            sign_ins_limited: self.sign_in_limited.count.load(Relaxed),
            client_secrets: self.client_secret.count.load(Relaxed),
            operator_keys: self.operator_key.count.load(Relaxed),
        }
    }

    /// Counts a failure of a client. The log line names the client of the latest failure, and the number of
    /// failures since the line before.
    pub(crate) fn count(&self, failed: Failed, client: Option<ClientAddress>, now: Duration) {
        let (kind, text) = self.kind(failed);
        kind.count.fetch_add(1, Relaxed);
        if let Some(times) = kind.log.due(now) {
            let address = client.map(|ClientAddress(address)| tracing::field::display(address));
            tracing::warn!(address, times, "{text}");
        }
    }

    fn kind(&self, failed: Failed) -> (&FailureKind, &'static str) {
        match failed {
            Failed::Password => (&self.password, "wrong passwords on the sign-in page"),
            Failed::SignInLimited => (&self.sign_in_limited, "sign-ins refused: too many tries"),
            Failed::ClientSecret => (&self.client_secret, "wrong client secrets"),
            Failed::OperatorKey => (&self.operator_key, "wrong operator keys"),
        }
    }
}
