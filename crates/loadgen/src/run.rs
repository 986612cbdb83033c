//! A run, phase by phase.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::cli::{Cli, Via};
use crate::clock::{Clock, SECOND_NS, seconds};
use crate::crowd::each;
use crate::http::{Body, Call, Client};
use crate::plan::{EventKind, SESSIONS_PER_SOURCE, SessionPlan, applications, spread};
use crate::prepared_run::{PreparedRun, Target, peer_population};
use crate::process::{OpenFiles, cpu_seconds};
use crate::publish::{Limit, Publishers, Round, streams_per_channel};
use crate::report::{self, Report, ServerEnd, grouped};
use crate::server::{Own, Probe, Server};
use crate::setup::{Population, Progress, populate};
use crate::shared::{Entry, Shared};
use crate::sockets::{Outcome, Sockets};
use crate::stats::{Times, lock};
use crate::world::World;

/// How often a phase checks whether it is over.
const TICK: Duration = Duration::from_millis(5);
/// Interval of the progress lines.
const PROGRESS: Duration = Duration::from_secs(1);
/// Pause before a reading of memory, so that the server has freed unused memory.
const SETTLE: Duration = Duration::from_secs(2);
/// Deadline of the last events, and of the last SYSTEM messages.
const DRAIN_DEADLINE_NS: u64 = 20 * SECOND_NS;
/// Files that the server needs besides a socket for each session.
const SERVER_FILES: u64 = 256;
/// Maximum length of the world's line and the text after it.
const WORLD_BYTES_MAX: u64 = 1024 * 1024;

/// Runs the load, and returns the report. An aborted run has a report, too.
///
/// # Errors
/// A sentence, if the load could not begin.
pub(crate) async fn run(cli: &Cli) -> Result<Report, String> {
    let clock = Clock::start();
    check_files("this program", "self", cli.files_needed())?;
    let stagedoor = |line: String| Ok::<_, String>(Target::Stagedoor(Rc::new(World::read(&line)?)));
    let (server, target) = match (&cli.spawn, &cli.world, &cli.peer) {
        (Some(program), ..) => {
            let own = Own::new(program, cli.database_url.as_deref())?;
            let (spawned, line) = own.start()?;
            (Server::Own(own, Some(spawned)), stagedoor(line)?)
        }
        (None, Some(file), _) => (Server::Given(cli.pid), stagedoor(read_world(file)?)?),
        (None, None, Some(peer)) => (Server::Given(cli.pid), Target::Peer(peer.clone())),
        (None, None, None) => return Err("--world, --spawn or --peer is needed".to_owned()),
    };
    if let Probe(Some(pid)) = server.probe() {
        check_files("the server", &pid.to_string(), u64::from(cli.sessions) + SERVER_FILES)?;
    }
    let mut run = Run {
        cli,
        clock,
        target,
        server,
        report: Report {
            program: env!("CARGO_BIN_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            settings: settings(cli),
            ..Report::default()
        },
        progress: Rc::new(RefCell::new(Box::new(String::new))),
        shared: None,
    };
    run.report.memory.start = run.server.probe().memory();
    let printing = (!cli.quiet).then(|| tokio::task::spawn_local(print_progress(run.progress.clone())));
    let within = Duration::from_secs(cli.give_up.into());
    let done = tokio::time::timeout(within, run.phases()).await;
    if let Some(printing) = printing {
        printing.abort();
    }
    let Run { mut report, shared, server, .. } = run;
    if let Some(shared) = shared {
        report.errors = shared.errors.kinds();
        report.sessions_lost = shared.lost.kinds();
        report.violations = shared.violations.kinds();
    }
    report.problem = match done {
        Ok(Ok(())) => None,
        Ok(Err(problem)) => Some(problem),
        Err(_) => Some(format!("given up after {} s", cli.give_up)),
    };
    report.client_cpu_seconds = cpu_seconds(std::process::id());
    match server.stop(clock) {
        Ok(end) => {
            report.server = end.map(|(exit_code, stop_seconds)| ServerEnd { exit_code, stop_seconds });
        }
        Err(problem) => report.problem = report.problem.or(Some(problem)),
    }
    Ok(report)
}

fn settings(cli: &Cli) -> report::Settings {
    report::Settings {
        sessions: cli.sessions,
        applications: if cli.peer.is_some() { 0 } else { applications(cli.sessions) },
        channels: cli.channels,
        subscriptions: cli.subscriptions * cli.channels_each,
        connect_concurrency: cli.connect_concurrency,
        publishers: cli.publishers,
        batch: cli.batch,
        via: match cli.via {
            _ if cli.peer.is_some() => "peer",
            Via::Platform => "platform",
            Via::Open => "open",
        },
        threads: cli.threads,
    }
}

fn check_files(whose: &str, pid: &str, needed: u64) -> Result<(), String> {
    OpenFiles::of(pid).and_then(|files| files.advice(whose, needed)).map_or(Ok(()), Err)
}

fn read_world(file: &Path) -> Result<String, String> {
    let problem = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().take(WORLD_BYTES_MAX).read_to_string(&mut text)
    } else {
        fs::File::open(file).map_err(problem)?.take(WORLD_BYTES_MAX).read_to_string(&mut text)
    };
    read.map_err(problem)?;
    Ok(text)
}

/// The progress text of the current phase.
type ProgressText = Rc<RefCell<Box<dyn Fn() -> String>>>;

/// Prints the progress once a second.
async fn print_progress(progress: ProgressText) {
    let mut tick = tokio::time::interval(PROGRESS);
    let mut last = String::new();
    loop {
        tick.tick().await;
        let line = progress.borrow()();
        if line != last {
            eprintln!("{line}");
            last = line;
        }
    }
}

/// The progress text while messages are published.
fn publishing(shared: Arc<Shared>) -> impl Fn() -> String {
    let seen = Cell::new((shared.deliveries.get(), shared.clock.now()));
    move || {
        let (deliveries, now) = (shared.deliveries.get(), shared.clock.now());
        let (before, since) = seen.replace((deliveries, now));
        let rate = (deliveries - before) as f64 / seconds(now.saturating_sub(since)).max(0.001);
        let (lost, violations) = (shared.lost.total(), shared.violations.total());
        format!(
            "publishing: {} deliveries ({}/s), {lost} lost, {violations} violations",
            grouped(deliveries),
            grouped(rate as u64)
        )
    }
}

struct Run<'a> {
    cli: &'a Cli,
    clock: Clock,
    target: Target,
    server: Server,
    report: Report,
    progress: ProgressText,
    /// The counters, from the end of the set-up on.
    shared: Option<Arc<Shared>>,
}

/// The counters at the beginning of the measured round.
struct Before {
    server_cpu: Option<f64>,
    delivering: Option<f64>,
    client_cpu: Option<f64>,
    deliveries: u64,
    expected: u64,
}

impl Run<'_> {
    async fn phases(&mut self) -> Result<(), String> {
        let prepared = self.set_up().await?;
        let shared = prepared.shared.clone();
        self.report.memory.before_connecting = self.server.probe().memory();
        let urls = self.urls(&prepared).await;
        let (started, cpu) = (self.clock.now(), self.server.probe().cpu());
        let concurrency = self.cli.connect_concurrency.into();
        let plans = prepared.plans.iter().copied().zip(urls).collect();
        let sockets = Sockets::open(&shared, plans, self.cli.threads.into(), concurrency);
        let result = self.with_sockets(&prepared, started, cpu).await;
        let outcome = sockets.close()?;
        self.merge_results(&shared, result?, outcome);
        let wait = self.cli.after_closing;
        self.show(move || format!("all sessions have left: waiting {wait} s"));
        tokio::time::sleep(Duration::from_secs(wait.into())).await;
        self.report.memory.after_closing = self.server.probe().memory();
        Ok(())
    }

    fn show(&self, progress: impl Fn() -> String + 'static) {
        *self.progress.borrow_mut() = Box::new(progress);
    }

    async fn set_up(&mut self) -> Result<PreparedRun, String> {
        let summary = self.cli.summary();
        let progress = Rc::new(Progress::default());
        let counters = progress.clone();
        self.show(move || {
            format!("set-up for {summary}: {} of {} steps", counters.done.get(), counters.of.get())
        });
        let plans = spread(self.cli.sessions, self.cli.channels);
        let kinds = &EventKind::ALL[..usize::from(self.cli.subscriptions)];
        let channels_each = u32::from(self.cli.channels_each);
        let (population, entry) = match &self.target {
            Target::Peer(_) => (peer_population(self.cli.channels), Entry::Joins),
            Target::Stagedoor(world) => {
                let each = if kinds.is_empty() { 0 } else { channels_each };
                let population = self.populate(&world.clone(), &plans, each, progress).await?;
                (population, Entry::Subscribes { kinds, channels_each })
            }
        };
        let Population { applications, mut channels, viewer, tokens } = population;
        // A channel without subscribed sessions still has a number.
        channels.resize_with(self.cli.channels as usize, String::new);
        let streams = streams_per_channel(self.cli.publishers.into(), channels.len());
        let sources = self.cli.sessions.div_ceil(SESSIONS_PER_SOURCE);
        let place = (self.clock, self.target.base().clone());
        let shared = Arc::new(Shared::new(place, applications, channels, streams, entry, sources));
        self.shared = Some(shared.clone());
        let tokens = tokens.into_iter().map(|(pair, token)| (pair, format!("Bearer {token}"))).collect();
        Ok(PreparedRun { shared, plans, viewer, tokens: Rc::new(tokens) })
    }

    async fn populate(
        &mut self,
        world: &Rc<World>,
        plans: &[SessionPlan],
        each: u32,
        progress: Rc<Progress>,
    ) -> Result<Population, String> {
        let started = self.clock.now();
        let wanted = (self.cli.channels, each);
        let population = populate(world, self.clock, plans, wanted, progress).await?;
        self.report.setup = Some(report::SetupReport {
            seconds: seconds(self.clock.now() - started),
            applications: population.applications.len(),
            channels: population.channels.len(),
            tokens: population.tokens.len(),
        });
        if let Some(line) = self.server.restart(self.clock)? {
            self.target = Target::Stagedoor(Rc::new(World::read(&line)?));
            tokio::time::sleep(SETTLE).await;
            self.report.memory.start = None;
        }
        Ok(population)
    }

    /// The sessions' URLs, if they are fetched before the first session is opened.
    async fn urls(&mut self, prepared: &PreparedRun) -> Vec<Option<String>> {
        match &self.target {
            Target::Peer(peer) => prepared.peer_urls(peer),
            Target::Stagedoor(_) if !self.cli.urls_first => vec![None; prepared.plans.len()],
            Target::Stagedoor(_) => {
                self.show(|| "fetching session URLs".to_owned());
                let (started, cpu) = (self.clock.now(), self.server.probe().cpu());
                let (urls, times) = prepared.fetch_urls(self.cli.connect_concurrency.into()).await;
                let (took, call) = (seconds(self.clock.now() - started), times.summary());
                self.report.session_urls = Some(report::SessionUrls {
                    seconds: took,
                    calls_per_second: call.count as f64 / took.max(f64::MIN_POSITIVE),
                    server_cpu_us_per_call: self.cpu_us_since(cpu, call.count),
                    call,
                });
                urls
            }
        }
    }

    /// Runs all phases with open sockets, and returns the publishers' counts.
    async fn with_sockets(
        &mut self,
        prepared: &PreparedRun,
        started: u64,
        cpu: Option<f64>,
    ) -> Result<Vec<Vec<u32>>, String> {
        self.connect(&prepared.shared, started, cpu).await?;
        self.subscribe(prepared).await;
        self.show(|| "settling".to_owned());
        tokio::time::sleep(SETTLE).await;
        self.report.memory.idle = self.server.probe().memory();
        self.idle(&prepared.shared).await;
        let sent = self.publish(prepared).await?;
        self.report.memory.divide(prepared.shared.connected.get());
        Ok(sent)
    }

    async fn connect(&mut self, shared: &Arc<Shared>, started: u64, cpu: Option<f64>) -> Result<(), String> {
        let total = u64::from(self.cli.sessions);
        let counters = shared.clone();
        self.show(move || {
            let (connected, errors) = (counters.connected.get(), counters.errors.total());
            format!("connecting: {} of {} sessions, {errors} errors", grouped(connected), grouped(total))
        });
        // A session that fails after SYSTEM `connected` is in both counts. Then the loop ends a little early,
        // which does no harm.
        while shared.connected.get() + shared.failed.get() < total {
            tokio::time::sleep(TICK).await;
        }
        let connected = shared.connected.get();
        let took = seconds(shared.last_connected.get().saturating_sub(started));
        self.report.connect = Some(report::Connect {
            sessions: connected,
            failed: shared.failed.get(),
            seconds: took,
            sessions_per_second: connected as f64 / took.max(f64::MIN_POSITIVE),
            session_url: Default::default(),
            connected: Default::default(),
            server_cpu_us_per_session: self.cpu_us_since(cpu, connected),
        });
        if connected == 0 { Err("no session could be opened".to_owned()) } else { Ok(()) }
    }

    /// Microseconds of the server's CPU since `before`, divided by `count`.
    fn cpu_us_since(&self, before: Option<f64>, count: u64) -> Option<f64> {
        (count > 0).then(|| self.cpu_since(before).map(|cpu| cpu * 1e6 / count as f64)).flatten()
    }

    fn cpu_since(&self, before: Option<f64>) -> Option<f64> {
        before.zip(self.server.probe().cpu()).map(|(before, after)| after - before)
    }

    async fn subscribe(&mut self, prepared: &PreparedRun) {
        let shared = &prepared.shared;
        let jobs = subscriptions(prepared);
        let calls = jobs.len() as u64;
        if calls == 0 {
            return;
        }
        let counters = shared.clone();
        self.show(move || {
            format!("subscribing: {} of {}", grouped(counters.subscribed.get()), grouped(calls))
        });
        let (started, cpu) = (self.clock.now(), self.server.probe().cpu());
        let (times, failed) = (Rc::new(RefCell::new(Times::default())), Rc::new(Cell::new(0_u64)));
        let client = || Client::new(shared.base.clone(), self.clock);
        let work = {
            let (shared, times, failed) = (shared.clone(), times.clone(), failed.clone());
            let (tokens, plans) = (prepared.tokens.clone(), prepared.plans.clone());
            async move |client: &mut Client, (session, key, kind, channel): (u32, Rc<str>, EventKind, u32)| {
                let application = plans[session as usize].application;
                let token = tokens.get(&(application, channel)).map_or("", String::as_str);
                let started = shared.clock.now();
                match subscribe_one(client, &key, kind, token).await {
                    Ok(()) => times.borrow_mut().record(started, shared.clock.now()),
                    Err(error) => {
                        failed.update(|failed| failed + 1);
                        shared.errors.count(&format!("subscribe: {error}"));
                    }
                }
            }
        };
        each(jobs, self.cli.connect_concurrency.into(), client, work).await;
        let took = seconds(self.clock.now() - started);
        let expected = calls - failed.get();
        self.wait_for(|| shared.subscribed.get() >= expected).await;
        let missing = expected.saturating_sub(shared.subscribed.get());
        shared.violations.add("SYSTEM subscribed that never came", missing);
        self.report.subscribe = Some(report::Subscribe {
            calls,
            failed: failed.get(),
            subscribed: shared.subscribed.get(),
            seconds: took,
            calls_per_second: calls as f64 / took.max(f64::MIN_POSITIVE),
            call: times.borrow().summary(),
            server_cpu_us_per_call: self.cpu_us_since(cpu, calls),
        });
    }

    /// Waits until the condition holds, or until the deadline of the phase.
    async fn wait_for(&self, is_so: impl Fn() -> bool) {
        let started = self.clock.now();
        while !is_so() && self.clock.now() - started < DRAIN_DEADLINE_NS {
            tokio::time::sleep(TICK).await;
        }
    }

    async fn idle(&mut self, shared: &Arc<Shared>) {
        if self.cli.idle == 0 {
            return;
        }
        let (counters, started, of) = (shared.clone(), self.clock.now(), self.cli.idle);
        self.show(move || {
            let (passed, pongs) = (seconds(counters.clock.now() - started), counters.pongs.get());
            format!("idle: {passed:.0} of {of} s, {} pongs, {} lost", grouped(pongs), counters.lost.total())
        });
        let (cpu, pings, pongs) = (self.server.probe().cpu(), shared.pings.get(), shared.pongs.get());
        tokio::time::sleep(Duration::from_secs(self.cli.idle.into())).await;
        let took = seconds(self.clock.now() - started);
        let cpu = self.cpu_since(cpu);
        let (pings, pongs) = (shared.pings.get() - pings, shared.pongs.get() - pongs);
        let minutes = shared.connected.get().saturating_sub(shared.lost.total()) as f64 * took / 60.0;
        self.report.idle = Some(report::Idle {
            seconds: took,
            pings,
            pongs,
            pong: Default::default(),
            server_cpu_seconds: cpu,
            server_cpu_us_per_session_minute: cpu.map(|cpu| cpu * 1e6 / minutes.max(f64::MIN_POSITIVE)),
            server_cpu_us_per_ping: cpu.filter(|_| pings > 0).map(|cpu| cpu * 1e6 / pings as f64),
        });
    }

    async fn publish(&mut self, prepared: &PreparedRun) -> Result<Vec<Vec<u32>>, String> {
        let Some(pace) = self.cli.pace() else { return Ok(Vec::new()) };
        let shared = &prepared.shared;
        let (origin, publish_calls) = prepared.publish_calls(&self.target, self.cli);
        self.show(publishing(shared.clone()));
        let count = (self.cli.publishers.into(), self.cli.batch);
        let mut publishers = Publishers::new(shared.clone(), &origin, publish_calls, count);
        if self.cli.warm_up > 0 {
            let within = u64::from(self.cli.warm_up) * SECOND_NS;
            publishers.round(pace, Limit { within, messages: None }).await;
            self.wait_for(|| shared.outstanding() == 0).await;
        }
        let before = Before {
            server_cpu: self.server.probe().cpu(),
            delivering: self.server.probe().cpu_delivering(),
            client_cpu: cpu_seconds(std::process::id()),
            deliveries: shared.deliveries.get(),
            expected: shared.expected.load(Relaxed),
        };
        shared.measuring.store(true, Relaxed);
        let within = u64::from(self.cli.duration) * SECOND_NS;
        let round = publishers.round(pace, Limit { within, messages: self.cli.publish }).await;
        let drain = self.clock.now();
        self.wait_for(|| shared.outstanding() == 0).await;
        shared.measuring.store(false, Relaxed);
        let drain_seconds = seconds(self.clock.now() - drain);
        self.report.publish = Some(self.measured(shared, &round, &before, drain_seconds));
        self.show(|| "settling".to_owned());
        tokio::time::sleep(SETTLE).await;
        self.report.memory.after_traffic = self.server.probe().memory();
        Ok(publishers.sent())
    }

    fn measured(
        &self,
        shared: &Shared,
        round: &Round,
        before: &Before,
        drain_seconds: f64,
    ) -> report::Publish {
        let cpu = self.cpu_since(before.server_cpu);
        let deliveries = shared.deliveries.get() - before.deliveries;
        let took = round.seconds.max(f64::MIN_POSITIVE);
        report::Publish {
            seconds: round.seconds,
            drain_seconds,
            calls: round.calls,
            messages: round.messages,
            failed: round.failed,
            calls_per_second: round.calls as f64 / took,
            call: round.latency.summary(),
            lag: round.lag.summary(),
            deliveries,
            expected: shared.expected.load(Relaxed).saturating_sub(before.expected),
            deliveries_per_second: round.deliveries as f64 / took,
            latency: Default::default(),
            server_cpu_seconds: cpu,
            server_cpu_seconds_delivering: before
                .delivering
                .zip(self.server.probe().cpu_delivering())
                .map(|(before, after)| after - before),
            server_cpu_seconds_per_million_deliveries: cpu
                .filter(|_| deliveries > 0)
                .map(|cpu| cpu * 1e6 / deliveries as f64),
            server_cpu_us_per_message: cpu
                .filter(|_| round.messages > 0)
                .map(|cpu| cpu * 1e6 / round.messages as f64),
            client_cpu_seconds: before
                .client_cpu
                .zip(cpu_seconds(std::process::id()))
                .map(|(before, after)| after - before),
        }
    }

    /// Merges the results of the socket threads, and checks the rules that concern several sessions.
    fn merge_results(&mut self, shared: &Shared, sent: Vec<Vec<u32>>, outcome: Outcome) {
        let mut orders = HashMap::<u32, Vec<(u64, u64)>>::new();
        for ledger in &outcome.ledgers {
            let channel = ledger.channel();
            if let Some(sent) = sent.get(channel as usize) {
                let missing = ledger.missing_at_end(sent, &shared.uncertain);
                shared.violations.add("events missing at the end", missing);
            }
            orders.entry(channel).or_default().push(ledger.order());
        }
        // A peer makes no promise about concurrent messages of several publishers to one channel.
        if shared.entry == Entry::Joins {
            orders.clear();
        }
        let disagree = |orders: &Vec<(u64, u64)>| orders.iter().any(|order| *order != orders[0]);
        let disagreeing = orders.values().filter(|orders| disagree(orders)).count();
        shared.violations.add("channels whose sessions saw different orders", disagreeing as u64);
        if let Some(connect) = &mut self.report.connect {
            connect.session_url = outcome.url.summary();
            connect.connected = outcome.connect.summary();
        }
        if let Some(idle) = &mut self.report.idle {
            idle.pong = outcome.pongs.summary();
        }
        if let Some(publish) = &mut self.report.publish {
            publish.latency = outcome.latency.summary();
        }
    }
}

/// The subscribe calls of all connected sessions: session, key, event type and channel.
fn subscriptions(prepared: &PreparedRun) -> Vec<(u32, Rc<str>, EventKind, u32)> {
    let Entry::Subscribes { kinds, channels_each } = prepared.shared.entry else { return Vec::new() };
    let channels = prepared.shared.channels.len() as u32;
    let mut jobs = Vec::new();
    for opened in lock(&prepared.shared.opened).drain(..) {
        let key: Rc<str> = opened.key.into();
        for channel in prepared.plans[opened.session as usize].subscribes_to(channels_each, channels) {
            jobs.extend(kinds.iter().map(|kind| (opened.session, key.clone(), *kind, channel)));
        }
    }
    jobs
}

async fn subscribe_one(client: &mut Client, key: &str, kind: EventKind, token: &str) -> Result<(), String> {
    let path = format!("/open/v1/sessions/events/subscribe/{}?sessionKey={key}", kind.path());
    let headers = [("Authorization", token)];
    let call = Call { method: "POST", path: &path, headers: &headers, body: Body::Nothing };
    let answer = client.call(&call).await.map_err(|broken| broken.kind().to_owned())?;
    answer.content().map(drop)
}
