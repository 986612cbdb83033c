//! The results of a run, as JSON and as text.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::Serialize;

use crate::process::Memory;
use crate::stats::Summary;

/// All results. Values that were not measured are omitted.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) program: &'static str,
    pub(crate) version: &'static str,
    pub(crate) settings: Settings,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) setup: Option<SetupReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_urls: Option<SessionUrls>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connect: Option<Connect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subscribe: Option<Subscribe>,
    pub(crate) memory: MemoryReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle: Option<Idle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) publish: Option<Publish>,
    /// Calls and handshakes that failed, by kind.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Sessions that ended unexpectedly, by reason.
    pub(crate) sessions_lost: BTreeMap<String, u64>,
    /// Violations of the service's promises, by kind.
    pub(crate) violations: BTreeMap<String, u64>,
    /// CPU seconds of this program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<ServerEnd>,
    /// Why the run ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settings {
    pub(crate) sessions: u32,
    pub(crate) applications: u32,
    pub(crate) channels: u32,
    pub(crate) subscriptions: u8,
    pub(crate) connect_concurrency: u16,
    pub(crate) publishers: u16,
    pub(crate) batch: u16,
    pub(crate) via: &'static str,
    pub(crate) threads: u16,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetupReport {
    pub(crate) seconds: f64,
    pub(crate) applications: usize,
    pub(crate) channels: usize,
    pub(crate) tokens: usize,
}

/// The calls for session URLs, if they were made before the first session was opened.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionUrls {
    pub(crate) seconds: f64,
    pub(crate) calls_per_second: f64,
    pub(crate) call: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_us_per_call: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Connect {
    pub(crate) sessions: u64,
    pub(crate) failed: u64,
    /// From the first call for a session URL (or the first connection, if the URLs were fetched before) to
    /// the last SYSTEM `connected`.
    pub(crate) seconds: f64,
    pub(crate) sessions_per_second: f64,
    /// Durations of the call for the session URL.
    pub(crate) session_url: Summary,
    /// Durations from the connection to SYSTEM `connected`.
    pub(crate) connected: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_us_per_session: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subscribe {
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    /// SYSTEM `subscribed` messages.
    pub(crate) subscribed: u64,
    pub(crate) seconds: f64,
    pub(crate) calls_per_second: f64,
    pub(crate) call: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_us_per_call: Option<f64>,
}

/// The server's memory in bytes, at each step.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before_connecting: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after_traffic: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after_closing: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_session: Option<PerSession>,
}

/// Memory of one session, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PerSession {
    pub(crate) idle: MemoryEach,
    /// Relative to the start of the server, so it includes memory of the set-up. Omitted if the server was
    /// restarted after the set-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_since_start: Option<MemoryEach>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after_traffic: Option<MemoryEach>,
}

/// A difference of memory, divided by the number of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryEach {
    pub(crate) rss: f64,
    pub(crate) anonymous: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pss: Option<f64>,
}

impl MemoryEach {
    fn new(before: Memory, after: Memory, sessions: u64) -> Self {
        let each = |before: u64, after: u64| (after as f64 - before as f64) / sessions.max(1) as f64;
        Self {
            rss: each(before.rss, after.rss),
            anonymous: each(before.anonymous, after.anonymous),
            pss: before.pss.zip(after.pss).map(|(before, after)| each(before, after)),
        }
    }
}

impl MemoryReport {
    /// Divides the added memory by the number of sessions.
    pub(crate) fn divide(&mut self, sessions: u64) {
        let (Some(before), Some(idle)) = (self.before_connecting, self.idle) else { return };
        self.per_session = Some(PerSession {
            idle: MemoryEach::new(before, idle, sessions),
            idle_since_start: self.start.map(|start| MemoryEach::new(start, idle, sessions)),
            after_traffic: self.after_traffic.map(|after| MemoryEach::new(before, after, sessions)),
        });
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Idle {
    pub(crate) seconds: f64,
    pub(crate) pings: u64,
    pub(crate) pongs: u64,
    /// Durations from ping to pong, also in other phases.
    pub(crate) pong: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_us_per_session_minute: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_us_per_ping: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Publish {
    pub(crate) seconds: f64,
    /// Seconds from the last answer to the arrival of the last event.
    pub(crate) drain_seconds: f64,
    pub(crate) calls: u64,
    /// Number of messages in these calls.
    pub(crate) messages: u64,
    pub(crate) failed: u64,
    pub(crate) calls_per_second: f64,
    pub(crate) call: Summary,
    /// Delays of calls because earlier calls took long. Without a rate no call is late.
    pub(crate) lag: Summary,
    pub(crate) deliveries: u64,
    /// Expected deliveries of the calls.
    pub(crate) expected: u64,
    /// Deliveries per second while calls were made, without those after the last call.
    pub(crate) deliveries_per_second: f64,
    /// Durations from the publish call to the receipt.
    pub(crate) latency: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_seconds: Option<f64>,
    /// CPU seconds of the threads that encode and write events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_seconds_delivering: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_seconds_per_million_deliveries: Option<f64>,
    /// Microseconds of CPU for each message, publishing and delivering together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_cpu_us_per_message: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_cpu_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerEnd {
    pub(crate) exit_code: i32,
    pub(crate) stop_seconds: f64,
}

impl Report {
    /// Whether there were no errors, losses or violations.
    pub(crate) fn is_clean(&self) -> bool {
        self.errors.is_empty()
            && self.sessions_lost.is_empty()
            && self.violations.is_empty()
            && self.problem.is_none()
            && self.server.as_ref().is_none_or(|server| server.exit_code == 0)
    }

    /// The report for a person.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        if let Some(SetupReport { seconds, applications, channels, tokens }) = &self.setup {
            writeln!(
                out,
                "set-up      {applications} applications, {channels} streamers, {tokens} tokens in {seconds:.1} s"
            )?;
        }
        if let Some(urls) = &self.session_urls {
            write_session_urls(out, urls)?;
        }
        if let Some(connect) = &self.connect {
            write_connect(out, connect)?;
        }
        if let Some(subscribe) = &self.subscribe {
            write_subscribe(out, subscribe)?;
        }
        self.write_memory(out)?;
        if let Some(idle) = &self.idle {
            write_idle(out, idle)?;
        }
        if let Some(publish) = &self.publish {
            write_publish(out, publish)?;
        }
        if let Some(seconds) = self.client_cpu_seconds {
            writeln!(out, "client CPU  {seconds:.2} s altogether")?;
        }
        if let Some(ServerEnd { exit_code, stop_seconds }) = &self.server {
            writeln!(out, "server      ended with {exit_code}, {stop_seconds:.2} s after SIGTERM")?;
        }
        for (what, kinds) in
            [("errors", &self.errors), ("lost", &self.sessions_lost), ("violations", &self.violations)]
        {
            if kinds.is_empty() {
                writeln!(out, "{what:<11} none")?;
            } else {
                writeln!(out, "{what}")?;
            }
            for (kind, count) in kinds {
                writeln!(out, "{:>11} {kind}", grouped(*count))?;
            }
        }
        self.problem.iter().try_for_each(|problem| writeln!(out, "problem     {problem}"))
    }

    fn write_memory(&self, out: &mut String) -> fmt::Result {
        let Some(PerSession { idle, idle_since_start, after_traffic }) = self.memory.per_session else {
            return Ok(());
        };
        let each = |each: MemoryEach| {
            let pss = each.pss.map(|pss| format!(", PSS {pss:.0}")).unwrap_or_default();
            format!("{:.0} B anonymous, RSS {:.0}{pss}", each.anonymous, each.rss)
        };
        writeln!(out, "memory      a session, idle: {}", each(idle))?;
        idle_since_start
            .into_iter()
            .try_for_each(|start| writeln!(out, "            with what the set-up left: {}", each(start)))?;
        after_traffic
            .into_iter()
            .try_for_each(|after| writeln!(out, "            after traffic: {}", each(after)))?;
        let steps = [
            ("start", self.memory.start),
            ("before connecting", self.memory.before_connecting),
            ("idle", self.memory.idle),
            ("after traffic", self.memory.after_traffic),
            ("after closing", self.memory.after_closing),
        ];
        let steps = steps.iter().filter_map(|(step, memory)| {
            memory.map(|memory| format!("{step} {:.1}", memory.anonymous as f64 / 1_048_576.0))
        });
        writeln!(out, "            server, MiB anonymous: {}", steps.collect::<Vec<_>>().join(", "))
    }
}

fn write_session_urls(out: &mut String, urls: &SessionUrls) -> fmt::Result {
    let SessionUrls { seconds, calls_per_second, call, server_cpu_us_per_call } = urls;
    let (count, rate) = (grouped(call.count), grouped(*calls_per_second as u64));
    writeln!(out, "urls        {count} calls in {seconds:.2} s: {rate}/s")?;
    writeln!(out, "            session URL {}", times(call))?;
    server_cpu_us_per_call.iter().try_for_each(|us| writeln!(out, "            server CPU {us:.0} us a call"))
}

fn write_connect(out: &mut String, connect: &Connect) -> fmt::Result {
    let Connect { sessions, failed, seconds, sessions_per_second, session_url, connected, .. } = connect;
    let with_urls = session_url.count > 0;
    writeln!(
        out,
        "connect     {} sessions in {seconds:.2} s: {}/s, session URLs {}; {failed} failed",
        grouped(*sessions),
        grouped(*sessions_per_second as u64),
        if with_urls { "included" } else { "not included" }
    )?;
    if with_urls {
        writeln!(out, "            session URL {}", times(session_url))?;
    }
    writeln!(out, "            connected {}", times(connected))?;
    connect
        .server_cpu_us_per_session
        .iter()
        .try_for_each(|us| writeln!(out, "            server CPU {us:.0} us a session"))
}

fn write_subscribe(out: &mut String, subscribe: &Subscribe) -> fmt::Result {
    let Subscribe { calls, failed, subscribed, seconds, calls_per_second, call, .. } = subscribe;
    writeln!(
        out,
        "subscribe   {} calls in {seconds:.2} s: {}/s; {failed} failed, {} SYSTEM subscribed",
        grouped(*calls),
        grouped(*calls_per_second as u64),
        grouped(*subscribed)
    )?;
    writeln!(out, "            call {}", times(call))?;
    subscribe
        .server_cpu_us_per_call
        .iter()
        .try_for_each(|us| writeln!(out, "            server CPU {us:.0} us a call"))
}

fn write_idle(out: &mut String, idle: &Idle) -> fmt::Result {
    let Idle { seconds, pings, pongs, pong, .. } = idle;
    writeln!(out, "idle        {seconds:.0} s: {} pings, {} pongs", grouped(*pings), grouped(*pongs))?;
    writeln!(out, "            pong {}", times(pong))?;
    let Some(cpu) = idle.server_cpu_seconds else { return Ok(()) };
    write!(out, "            server CPU {cpu:.2} s")?;
    if let Some(us) = idle.server_cpu_us_per_session_minute {
        write!(out, ", {us:.0} us a session and minute")?;
    }
    if let Some(us) = idle.server_cpu_us_per_ping {
        write!(out, ", {us:.1} us a ping")?;
    }
    writeln!(out)
}

fn write_publish(out: &mut String, publish: &Publish) -> fmt::Result {
    let Publish {
        seconds,
        calls,
        messages,
        failed,
        calls_per_second,
        call,
        lag,
        deliveries,
        expected,
        latency,
        ..
    } = publish;
    writeln!(
        out,
        "publish     {} messages, {} calls in {seconds:.2} s: {calls_per_second:.0}/s; {failed} failed",
        grouped(*messages),
        grouped(*calls)
    )?;
    writeln!(out, "            call {}", times(call))?;
    if lag.count > 0 {
        writeln!(out, "            lag {}", times(lag))?;
    }
    writeln!(
        out,
        "deliver     {} of {} events: {}/s, and {:.2} s for the rest",
        grouped(*deliveries),
        grouped(*expected),
        grouped(publish.deliveries_per_second as u64),
        publish.drain_seconds
    )?;
    writeln!(out, "            latency {}", times(latency))?;
    if let (Some(cpu), Some(million)) =
        (publish.server_cpu_seconds, publish.server_cpu_seconds_per_million_deliveries)
    {
        let client = publish.client_cpu_seconds.unwrap_or_default();
        write!(out, "            server CPU {cpu:.2} s")?;
        if let Some(delivering) = publish.server_cpu_seconds_delivering {
            write!(out, " (delivering {delivering:.2} s)")?;
        }
        writeln!(out, ", {million:.2} s a million deliveries; client CPU {client:.2} s")?;
    }
    Ok(())
}

fn times(summary: &Summary) -> String {
    let Summary { p50_ms, p99_ms, max_ms, .. } = summary;
    format!("p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms, max {max_ms:.2} ms")
}

/// A number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (123_456, "123,456"), (9_876_543, "9,876,543")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn memory_is_divided_by_the_sessions_and_may_have_shrunk() {
        let memory = |kb: u64| Some(Memory { rss: kb * 1_024, anonymous: kb * 512, pss: None });
        let mut report = MemoryReport {
            start: memory(1_000),
            before_connecting: memory(3_000),
            idle: memory(2_000),
            ..MemoryReport::default()
        };
        report.divide(10);
        let PerSession { idle, idle_since_start, after_traffic } = report.per_session.unwrap();
        assert_eq!(idle, MemoryEach { rss: -102_400.0, anonymous: -51_200.0, pss: None });
        assert_eq!(idle_since_start.unwrap().rss, 102_400.0);
        assert_eq!(after_traffic, None);
    }

    #[test]
    fn a_report_is_clean_only_when_nothing_went_wrong() {
        assert!(Report::default().is_clean());
        let kinds = || BTreeMap::from([("kind".to_owned(), 1)]);
        let bad = [
            Report { errors: kinds(), ..Report::default() },
            Report { sessions_lost: kinds(), ..Report::default() },
            Report { violations: kinds(), ..Report::default() },
            Report { problem: Some("given up".to_owned()), ..Report::default() },
            Report { server: Some(ServerEnd { exit_code: 1, stop_seconds: 0.0 }), ..Report::default() },
        ];
        for report in bad {
            assert!(!report.is_clean(), "{report:?}");
            assert!(serde_json::to_string(&report).is_ok_and(|json| !json.contains('\n')));
        }
        let text = Report { violations: kinds(), ..Report::default() }.text();
        assert!(text.contains("errors      none\n") && text.contains("          1 kind\n"), "{text}");
    }
}
