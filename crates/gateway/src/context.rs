//! The service, the configuration and the counters of a node, for every other module.

use std::sync::Arc;

use service::{Clock, Service};
use socketio::Millis;

use crate::config::Config;
use crate::metrics::Counters;

/// The service, the configuration and the counters of a node.
pub(crate) struct Context {
    pub(crate) service: Service,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
}

impl Context {
    pub(crate) fn new(service: Service, config: Config) -> Arc<Self> {
        Arc::new(Self { service, config, counters: Counters::default() })
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.service.clock()
    }

    /// The monotonic time in milliseconds, as the protocol counts it.
    pub(crate) fn now_ms(&self) -> Millis {
        millis(self.clock().monotonic())
    }
}

/// A monotonic time in milliseconds.
pub(crate) fn millis(time: std::time::Duration) -> Millis {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
