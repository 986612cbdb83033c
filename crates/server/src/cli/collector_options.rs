//! The options about an OpenTelemetry collector.

use clap::Args;
use commands::secret;
use telemetry::{Collector, SampleRatio};

/// The heading of the options about traces, in the help.
const TRACES: &str = "OpenTelemetry";

/// The options about an OpenTelemetry collector.
#[derive(Debug, Args)]
pub struct CollectorOptions {
    /// Sends traces and the lines of the log to an OpenTelemetry collector, by OTLP over HTTP with JSON, as
    /// in `http://127.0.0.1:4318`. The collector's /v1/traces and /v1/logs are called. Without it nothing is
    /// traced.
    #[arg(long, value_name = "URL", env = "STAGEDOOR_OTLP_ENDPOINT", help_heading = TRACES)]
    otlp_endpoint: Option<String>,

    /// Further headers for the collector: name=value, separated by commas. Better set by
    /// STAGEDOOR_OTLP_HEADERS or STAGEDOOR_OTLP_HEADERS_FILE.
    #[arg(long, value_name = "LIST", env = "STAGEDOOR_OTLP_HEADERS", hide_env_values = true,
        help_heading = TRACES)]
    otlp_headers: Option<String>,

    /// The share of requests that are traced, from 0 to 1. Callers with a header `traceparent` decide for
    /// their own requests, up to 50 requests a second.
    #[arg(long, value_name = "SHARE", env = "STAGEDOOR_TRACE_SAMPLE", default_value = "0.05",
        value_parser = sample_ratio, help_heading = TRACES)]
    trace_sample: SampleRatio,
}

impl CollectorOptions {
    /// The collector, if there is one.
    ///
    /// # Errors
    /// A sentence for the operator that names the option.
    pub(super) fn collector(&self) -> Result<Option<Collector>, String> {
        let headers = secret("STAGEDOOR_OTLP_HEADERS", self.otlp_headers.as_deref())?;
        match (&self.otlp_endpoint, headers) {
            (Some(endpoint), headers) => {
                Collector::parse(endpoint, &headers.unwrap_or_default(), self.trace_sample).map(Some)
            }
            (None, Some(_)) => Err("--otlp-headers needs --otlp-endpoint".to_owned()),
            (None, None) => Ok(None),
        }
    }
}

fn sample_ratio(text: &str) -> Result<SampleRatio, String> {
    SampleRatio::parse(text)
}
