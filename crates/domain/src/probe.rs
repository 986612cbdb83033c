//! The test of a connection: which steps were made, and how each ended. `jobs` makes the connections.

use std::fmt;

use crate::Timestamp;
use crate::address_fault::AddressFault;
use crate::outbound::{SendFailure, WebhookUrl};

/// A step of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// The name of the host is looked up.
    Name,
    /// The address is judged.
    Address,
    /// A TCP connection is opened.
    Tcp,
    /// The TLS handshake, with the check of the certificate.
    Tls,
    /// The request is sent, and the answer is read.
    Http,
}

/// What was wrong with a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate has expired, at this time if it is known.
    Expired(Option<Timestamp>),
    /// The certificate is not valid yet.
    NotYetValid(Option<Timestamp>),
    /// The certificate is for other names, a few of which are here. They are the peer's texts.
    OtherName(Vec<String>),
    /// No trusted authority has issued the certificate, or the chain of certificates is not complete.
    Untrusted,
    /// The peer answered without TLS.
    NotTls,
    /// Anything else.
    Other,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeFault {
    /// The address is not one that may be called.
    Judged(AddressFault),
    /// The same as in an attempt.
    Send(SendFailure),
    /// The TLS handshake.
    Tls(TlsFault),
}

/// A step that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedStep {
    /// Which.
    pub step: ProbeStep,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// Why it failed. No step follows then.
    pub fault: Option<ProbeFault>,
}

/// The steps of one request, and the status of its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// In their order.
    pub steps: Vec<ProbedStep>,
    /// The status; `None` when there was no answer.
    pub status: Option<u16>,
}

impl Probed {
    /// The result for an address that is judged before any connection.
    pub fn judged(fault: AddressFault) -> Self {
        let fault = Some(ProbeFault::Judged(fault));
        Self { steps: vec![ProbedStep { step: ProbeStep::Address, took_ms: 0, fault }], status: None }
    }

    /// Whether the answer was 2xx.
    pub fn is_accepted(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// A request of a test. `Debug` shows neither headers nor body.
#[derive(Clone, PartialEq, Eq)]
pub enum ProbeRequest {
    /// A GET.
    Get,
    /// A POST with these headers, and a body that was signed.
    Post {
        /// Every header but `Host`, `Content-Type` and `Content-Length`.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
}

impl fmt::Debug for ProbeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "Get",
            Self::Post { .. } => "Post",
        })
    }
}

/// An address to test, and the requests to send to it, one after the other. After one without an answer no
/// other follows.
#[derive(Clone, Debug)]
pub struct ProbeTarget {
    /// The address.
    pub url: WebhookUrl,
    /// The requests.
    pub requests: Vec<ProbeRequest>,
}
