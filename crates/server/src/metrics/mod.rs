//! `GET /metrics`: the figures of a node, for Prometheus and compatible readers.
//!
//! The gateway, the web crate, the store and the service count in atomics. This module only reads and formats
//! these figures. No label contains a secret or the id of an application, user or session.
//!
//! A new figure is a row in `families` and a line in one of the functions below. A new source of figures,
//! like the bus, is another function. `docs/metrics.md` is generated from the rows.

pub mod alerts;
pub mod families;
mod process;
pub mod text;

use std::sync::Arc;

use backup::archive::FigureReader;
use domain::{SessionKey, Timestamp};
use gateway::{CloseReason, Gateway, Transport};
use jobs::webhooks::{DELAY_BOUNDS_MS, WebhookMetrics};
use service::Service;
use service::routed_sessions::RouterComparison;
use telemetry::{ExportFigures, Signal};
use upstream::Upstreams;
use web::{
    ANSWERED_RATIO, BoxFuture, Connection, DURATION_BOUNDS_US, FAST_RATIO, FailureFigures, NodeInfo,
    STATUS_CLASSES, TrafficFigures,
};

use families::*;
use process::Process;
use text::Page;

use crate::tls::ServedCertificate;

/// The sources of a node's figures.
#[derive(Debug)]
pub(crate) struct NodeMetrics {
    /// `None` on a node without the role gateway.
    pub gateway: Option<Gateway>,
    /// `None` on a node without the role jobs.
    pub webhooks: Option<Arc<WebhookMetrics>>,
    pub service: Service,
    pub upstreams: Upstreams,
    /// `None` without a collector.
    pub exported: Option<Arc<ExportFigures>>,
    /// `sqlite` or `postgres`.
    pub store: &'static str,
    /// The certificate of the listeners, if they speak HTTPS.
    pub certificate: Option<Arc<ServedCertificate>>,
    /// `None` without an archive.
    pub archive: Option<FigureReader>,
    pub started_at: Timestamp,
}

impl NodeInfo for NodeMetrics {
    fn metrics(&self, traffic: TrafficFigures) -> BoxFuture<'_, String> {
        Box::pin(async move {
            // Reading the figures of the operating system may block.
            let process = tokio::task::spawn_blocking(Process::now).await.unwrap_or_default();
            let mut page = Page::default();
            let sockets = self.gateway.as_ref().map(Gateway::stats).unwrap_or_default();
            sessions(&mut page, &sockets);
            bus(&mut page, &sockets, &self.service);
            http(&mut page, &traffic);
            store(&mut page, &self.service);
            credentials(&mut page, &self.service);
            failures(&mut page, &traffic.failures);
            upstreams(&mut page, &self.upstreams);
            webhooks(
                &mut page,
                &self.service,
                self.webhooks.as_deref().unwrap_or(&WebhookMetrics::default()),
            );
            jobs(&mut page, &self.service);
            exported(&mut page, self.exported.as_deref().unwrap_or(&ExportFigures::default()));
            self.archive(&mut page);
            self.node(&mut page, &process);
            page.into_text()
        })
    }

    fn compare_router(&self) -> BoxFuture<'_, Result<RouterComparison, service::Error>> {
        Box::pin(async {
            match &self.gateway {
                Some(gateway) => gateway.compare_with_store().await,
                None => Ok(RouterComparison::empty(self.service.node())),
            }
        })
    }

    fn connection<'a>(&'a self, session: &'a SessionKey) -> BoxFuture<'a, Option<Connection>> {
        Box::pin(async {
            let (transport, silent_for) = self.gateway.as_ref()?.connection(session).await?;
            Some(Connection { transport: transport.name(), silent_for })
        })
    }
}

fn sessions(page: &mut Page, stats: &gateway::Stats) {
    page.family(&SESSIONS)
        .sample([Transport::Websocket.name()], stats.websocket_sessions)
        .sample([Transport::Polling.name()], stats.polling_sessions);
    page.single(&SESSIONS_OPENED, stats.opened);
    page.single(&HANDSHAKES_REFUSED, stats.refused);
    let mut closed = page.family(&SESSIONS_CLOSED);
    for reason in CloseReason::ALL {
        closed.sample([reason.as_str()], stats.closed(*reason));
    }
    page.single(&EVENTS_ENCODED, stats.events_encoded);
    page.single(&DELIVERIES, stats.deliveries);
    page.single(&QUEUED_BYTES, stats.queued_bytes);
}

fn bus(page: &mut Page, stats: &gateway::Stats, service: &Service) {
    let bus = service.bus_stats();
    page.single(&BUS_GAPS, stats.gaps);
    page.single(&BUS_PUBLISHED, bus.published);
    page.single(&BUS_LOST, bus.lost);
    page.single(&EVENTS_TAKEN_OVER, service.event_batches_taken_over());
    page.single(&BUS_RECEIVED, bus.received);
    page.single(&BUS_INTERESTS, bus.interests);
    page.single(&BUS_CONNECTIONS, bus.connections);
    page.single(&BUS_DISCONNECTS, bus.disconnects);
    page.single(&BUS_MALFORMED, bus.malformed);
}

fn http(page: &mut Page, traffic: &TrafficFigures) {
    let mut requests = page.family(&HTTP_REQUESTS);
    for route in &traffic.routes {
        for (class, count) in STATUS_CLASSES.iter().zip(route.statuses) {
            requests.sample([route.route, route.method, class], count);
        }
    }
    let mut durations = page.family(&HTTP_DURATION);
    for route in &traffic.routes {
        let bounds = DURATION_BOUNDS_US.iter().map(|bound| *bound as f64 / 1e6);
        let sum = route.duration_sum.as_secs_f64();
        durations.histogram([route.route, route.method], bounds, &route.durations, sum);
    }
    let mut slow = page.family(&HTTP_SLOW);
    traffic.routes.iter().for_each(|each| _ = slow.sample([each.route, each.method], each.slow));
    let mut objectives = page.family(&HTTP_OBJECTIVE);
    for route in &traffic.routes {
        objectives.sample([route.route, route.method], route.fast_within.as_secs_f64());
    }
    page.family(&OBJECTIVE_RATIO).sample(["answered"], ANSWERED_RATIO).sample(["fast"], FAST_RATIO);
    let mut refusals = page.family(&REFUSALS);
    for (kind, count) in &traffic.refusals {
        refusals.sample([kind], count);
    }
}

fn store(page: &mut Page, service: &Service) {
    let (stats, retried) = (service.store_stats(), service.retried_writes());
    page.single(&STORE_COMMITTED, stats.committed);
    page.single(&STORE_ROLLED_BACK, stats.rolled_back);
    page.single(&STORE_COMMITS, stats.syncs);
    page.single(&STORE_LARGEST_BATCH, stats.largest_batch);
    page.single(&STORE_WAITING, stats.waiting);
    page.single(&STORE_BUSY, stats.busy);
    page.family(&STORE_RETRIES)
        .sample(["deadlock"], retried.after_deadlock)
        .sample(["lost_race"], retried.after_lost_race);
    page.single(&STORE_GIVEN_UP, retried.given_up);
    page.single(&STORE_DISK_FULL, service.store_disk().times_full);
    let measures = service.store_measures();
    page.single(&STORE_SIZE, measures.map_or(0, |measures| measures.bytes));
    let disk = measures.and_then(|measures| measures.disk);
    disk.iter().for_each(|disk| page.single(&DISK_FREE, disk.free));
    disk.iter().for_each(|disk| page.single(&DISK_SIZE, disk.size));
    let last_backup = measures.and_then(|measures| measures.last_backup);
    page.single(&LAST_BACKUP, last_backup.map_or(0.0, seconds));
}

fn credentials(page: &mut Page, service: &Service) {
    let caches = service.credential_figures();
    let mut hits = page.family(&CREDENTIAL_HITS);
    caches.iter().for_each(|each| _ = hits.sample([each.cache], each.hits));
    let mut misses = page.family(&CREDENTIAL_MISSES);
    caches.iter().for_each(|each| _ = misses.sample([each.cache], each.misses));
    let mut entries = page.family(&CREDENTIAL_ENTRIES);
    caches.iter().for_each(|each| _ = entries.sample([each.cache], each.entries));
}

fn failures(page: &mut Page, failures: &FailureFigures) {
    page.family(&SIGN_IN_FAILURES)
        .sample(["wrong"], failures.passwords)
        .sample(["limited"], failures.sign_ins_limited);
    page.single(&CLIENT_SECRET_FAILURES, failures.client_secrets);
    page.single(&OPERATOR_REFUSED, failures.operator_keys);
}

fn upstreams(page: &mut Page, upstreams: &Upstreams) {
    let mut sign_ins = page.family(&UPSTREAM_SIGN_INS);
    for provider in upstreams.iter() {
        let name = provider.settings().name.as_str();
        provider.outcomes().for_each(|(outcome, count)| _ = sign_ins.sample([name, outcome], count));
    }
}

fn webhooks(page: &mut Page, service: &Service, figures: &WebhookMetrics) {
    let mut attempts = page.family(&WEBHOOK_ATTEMPTS);
    figures.outcomes().for_each(|(outcome, count)| _ = attempts.sample([outcome], count));
    page.single(&WEBHOOK_UNDER_WAY, figures.in_flight());
    let bounds = DELAY_BOUNDS_MS.iter().map(|bound| *bound as f64 / 1e3);
    let sum = figures.delay_sum_ms() as f64 / 1e3;
    page.family(&WEBHOOK_DELAY).histogram([], bounds, &figures.delays(), sum);
    page.single(&WEBHOOK_DEAD, figures.dead());
    page.single(&WEBHOOKS_DISABLED, service.webhooks_disabled());
}

fn jobs(page: &mut Page, service: &Service) {
    let mut runs = page.family(&JOB_RUNS);
    for each in service.job_runs() {
        runs.sample([each.job.name(), "done"], each.done).sample([each.job.name(), "failed"], each.failed);
    }
    let mut last = page.family(&JOB_LAST_DONE);
    for each in service.job_runs() {
        last.sample([each.job.name()], each.last_done_at.map_or(0.0, seconds));
    }
}

fn exported(page: &mut Page, figures: &ExportFigures) {
    let mut sent = page.family(&OTLP_SENT);
    Signal::ALL.iter().for_each(|signal| _ = sent.sample([signal.name()], figures.sent(*signal)));
    let mut dropped = page.family(&OTLP_DROPPED);
    for signal in Signal::ALL {
        dropped
            .sample([signal.name(), "queue"], figures.found_no_room(signal))
            .sample([signal.name(), "collector"], figures.not_taken(signal));
    }
}

impl NodeMetrics {
    fn archive(&self, page: &mut Page) {
        let figures = self.archive.as_ref().map(FigureReader::read).unwrap_or_default();
        let lag_ms = self.archive.as_ref().map_or(0, |_| {
            let since = figures.archived_until.unwrap_or(self.started_at);
            self.service.clock().now().as_millis().saturating_sub(since.as_millis()).max(0)
        });
        page.single(&ARCHIVE_LAG, lag_ms as f64 / 1e3);
        page.single(&ARCHIVE_SPOOL, figures.spool_bytes);
        page.single(&ARCHIVE_SEGMENTS, figures.segments);
        page.single(&ARCHIVE_FAILURES, figures.failures);
        page.single(&ARCHIVE_GENERATIONS, figures.generations);
        page.single(&ARCHIVE_LAST_BASE, figures.last_base.map_or(0.0, seconds));
    }

    fn node(&self, page: &mut Page, process: &Process) {
        page.family(&BUILD_INFO).sample([env!("CARGO_PKG_VERSION"), env!("STAGEDOOR_COMMIT")], 1);
        page.family(&NODE_INFO).sample([self.service.node().as_str(), self.store], 1);
        page.single(&START_TIME, seconds(self.started_at));
        let expires = self.certificate.as_ref().map_or(0.0, |held| seconds(held.expires_at()));
        page.single(&CERTIFICATE_EXPIRES, expires);
        page.single(&CERTIFICATE_FAILURES, self.certificate.as_ref().map_or(0, |held| held.failures()));
        let Process { cpu_seconds, resident_bytes, open_fds, max_fds, threads } = process;
        cpu_seconds.iter().for_each(|value| page.single(&CPU, value));
        resident_bytes.iter().for_each(|value| page.single(&RESIDENT, value));
        open_fds.iter().for_each(|value| page.single(&OPEN_FDS, value));
        max_fds.iter().for_each(|value| page.single(&MAX_FDS, value));
        threads.iter().for_each(|value| page.single(&THREADS, value));
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millis() as f64 / 1e3
}
