//! The alerts: one table for the rules of Prometheus (`deploy/prometheus/stagedoor.rules.yaml`) and for their
//! pages (`docs/alerts.md`). `UPDATE_DOCS=1 cargo test -p server --test it alerts` renews both.

/// How soon a person has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// At once, at night too.
    Page,
    /// On the next working day.
    Ticket,
}

impl Severity {
    /// The value of the label `severity`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Ticket => "ticket",
        }
    }
}

/// An alert.
#[derive(Debug)]
pub struct Alert {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// How soon a person has to look.
    pub severity: Severity,
    /// The expression.
    pub expr: &'static str,
    /// How long the expression is true before the alert fires, as Prometheus writes it. Empty for at once.
    pub hold: &'static str,
    /// One line for the message, with Prometheus's templates.
    pub summary: &'static str,
    /// What callers notice.
    pub effect: &'static str,
    /// What to look at, in order.
    pub look: &'static [&'static str],
    /// What to do.
    pub mend: &'static str,
}

/// All alerts, the urgent ones first.
pub const ALERTS: &[Alert] = &[
    Alert {
        name: "StagedoorNodeDown",
        severity: Severity::Page,
        expr: "up{job=\"stagedoor\"} == 0",
        hold: "30s",
        summary: "The node {{ $labels.instance }} does not answer scrapes",
        effect: "Its sessions end and reconnect to other nodes within 20 seconds. With one node, the service is down.",
        look: &[
            "whether the process runs: `systemctl status stagedoor`, and the last lines of its log",
            "whether the machine ran out of memory: `dmesg | grep -i oom`",
            "whether only the collector cannot reach it: `curl http://NODE/health/live`",
        ],
        mend: "Start the node. If its start fails, the last line of the log says why. If the database is the cause, mend that first: nodes start without help afterwards.",
    },
    Alert {
        name: "StagedoorHeartbeatLate",
        severity: Severity::Page,
        expr: "time() - stagedoor_job_last_done_timestamp_seconds{job=\"heartbeat\"} > 15",
        hold: "",
        summary: "The node {{ $labels.instance }} is about to be declared dead",
        effect: "After 20 seconds without a heartbeat the other nodes end its sessions with `node_dead`.",
        look: &[
            "`GET /health/ready`: `STORE_UNAVAILABLE` means that the database does not answer",
            "`stagedoor_store_writes_waiting` and `stagedoor_store_busy_total` of the node",
            "the clock of the node: `timedatectl`",
        ],
        mend: "Mend the database or the network to it. Sessions come back by themselves.",
    },
    Alert {
        name: "StagedoorErrors",
        severity: Severity::Page,
        expr: "sum(rate(stagedoor_http_requests_total{status=\"5xx\"}[5m])) / sum(rate(stagedoor_http_requests_total[5m])) > 0.001",
        hold: "5m",
        summary: "{{ $value | humanizePercentage }} of all calls fail",
        effect: "Callers get status 500 or 503 and try again.",
        look: &[
            "`sum by (route, method) (rate(stagedoor_http_requests_total{status=\"5xx\"}[5m]))`: one route, or all of them",
            "the log: a failure is logged at once, and once a minute while it lasts, with `times`",
            "`GET /health/ready` of each node",
        ],
        mend: "If all routes fail, the database is the cause: see StagedoorStoreSlow and StagedoorDiskFull. If one route fails, the log names the request id: report it as a bug.",
    },
    Alert {
        name: "StagedoorErrorBudgetBurns",
        severity: Severity::Page,
        expr: "sum(rate(stagedoor_http_requests_total{status=\"5xx\"}[1h])) / sum(rate(stagedoor_http_requests_total[1h])) > 14.4 * 0.001 and sum(rate(stagedoor_http_requests_total{status=\"5xx\"}[5m])) / sum(rate(stagedoor_http_requests_total[5m])) > 14.4 * 0.001",
        hold: "",
        summary: "Calls fail so often that 2 % of the error budget of 30 days are gone in an hour",
        effect: "Callers get status 500 or 503, more than 1.4 % of them.",
        look: &[
            "`sum by (route, method) (rate(stagedoor_http_requests_total{status=\"5xx\"}[5m]))`: one endpoint, or all of them",
            "StagedoorErrors: what it says to look at",
        ],
        mend: "As for StagedoorErrors. The alert ends 5 minutes after the last failures.",
    },
    Alert {
        name: "StagedoorErrorBudgetLeaks",
        severity: Severity::Ticket,
        expr: "sum(rate(stagedoor_http_requests_total{status=\"5xx\"}[3d])) / sum(rate(stagedoor_http_requests_total[3d])) > 1 * 0.001 and sum(rate(stagedoor_http_requests_total{status=\"5xx\"}[6h])) / sum(rate(stagedoor_http_requests_total[6h])) > 1 * 0.001",
        hold: "",
        summary: "Calls fail so often that the error budget of 30 days will not last",
        effect: "Hardly anything: more than 0.1 % of the calls of three days failed.",
        look: &[
            "`topk(5, sum by (route, method) (increase(stagedoor_http_requests_total{status=\"5xx\"}[3d])))`",
            "the log of these endpoints: each failure has its request id",
        ],
        mend: "Mend the cause before you change other things: upgrades and moves need what is left of the budget.",
    },
    Alert {
        name: "StagedoorEndpointFails",
        severity: Severity::Ticket,
        expr: "sum by (route, method) (rate(stagedoor_http_requests_total{status=\"5xx\"}[6h])) / sum by (route, method) (rate(stagedoor_http_requests_total[6h])) > 6 * 0.001 and sum by (route, method) (rate(stagedoor_http_requests_total{status=\"5xx\"}[30m])) / sum by (route, method) (rate(stagedoor_http_requests_total[30m])) > 6 * 0.001 and sum by (route, method) (increase(stagedoor_http_requests_total[6h])) > 100",
        hold: "",
        summary: "{{ $labels.method }} {{ $labels.route }} spends its error budget six times too fast",
        effect: "Callers of this endpoint get status 500 or 503.",
        look: &[
            "the log: failures of this endpoint name their request ids",
            "whether an application calls it in a new way: `/operator/applications`",
        ],
        mend: "If only this endpoint fails, report it as a bug with the request ids.",
    },
    Alert {
        name: "StagedoorLatencyBudgetBurns",
        severity: Severity::Page,
        expr: "sum(rate(stagedoor_http_slow_requests_total[1h])) / sum(rate(stagedoor_http_requests_total[1h])) > 14.4 * 0.01 and sum(rate(stagedoor_http_slow_requests_total[5m])) / sum(rate(stagedoor_http_requests_total[5m])) > 14.4 * 0.01",
        hold: "",
        summary: "Answers are so slow that 2 % of the latency budget of 30 days are gone in an hour",
        effect: "Callers wait: more than 14 % of the answers come later than promised.",
        look: &[
            "`sum by (route, method) (rate(stagedoor_http_slow_requests_total[5m]))`: one endpoint, or all of them",
            "StagedoorStoreSlow",
            "`rate(process_cpu_seconds_total[5m])`: the processors of the node are used up",
        ],
        mend: "If all endpoints are slow, the database or the processors are the cause: see StagedoorStoreSlow, or add a node. If one is, find out who calls it.",
    },
    Alert {
        name: "StagedoorEndpointSlow",
        severity: Severity::Ticket,
        expr: "sum by (route, method) (rate(stagedoor_http_slow_requests_total[6h])) / sum by (route, method) (rate(stagedoor_http_requests_total[6h])) > 6 * 0.01 and sum by (route, method) (rate(stagedoor_http_slow_requests_total[30m])) / sum by (route, method) (rate(stagedoor_http_requests_total[30m])) > 6 * 0.01 and sum by (route, method) (increase(stagedoor_http_requests_total[6h])) > 100",
        hold: "",
        summary: "{{ $labels.method }} {{ $labels.route }} spends its latency budget six times too fast",
        effect: "Callers of this endpoint wait longer than `stagedoor_http_objective_seconds` says.",
        look: &[
            "`histogram_quantile(0.99, sum by (le) (rate(stagedoor_http_request_duration_seconds_bucket{route=\"ROUTE\"}[30m])))`",
            "traces of the endpoint, if a collector gets them: [observability.md](observability.md#traces)",
        ],
        mend: "If one application causes it ([who causes the load](operating.md#who-causes-the-load)), lower its quota. Else report it as a bug with the percentiles.",
    },
    Alert {
        name: "StagedoorDiskFull",
        severity: Severity::Page,
        expr: "increase(stagedoor_store_disk_full_total[5m]) > 0",
        hold: "",
        summary: "The disk of the database of {{ $labels.instance }} is full",
        effect: "Reads are answered. Writes answer 503 with the reason `disk-full` and change nothing. Sessions stay connected.",
        look: &[
            "`df -h` of the folder of `--data`, or of PostgreSQL's data folder and WAL",
            "old backups, logs and other files on that disk",
        ],
        mend: "Free or add room. Writes work again at once, and `/health/ready` 10 seconds after the last write that failed.",
    },
    Alert {
        name: "StagedoorDiskNearlyFull",
        severity: Severity::Page,
        expr: "stagedoor_store_disk_free_bytes / stagedoor_store_disk_size_bytes < 0.1",
        hold: "5m",
        summary: "The disk of the store of {{ $labels.instance }} has {{ $value | humanizePercentage }} left",
        effect: "None yet. When the disk is full, writes answer 503: StagedoorDiskFull.",
        look: &[
            "`df -h` of the folder of `--data`, and what else is on that disk: backups, the spool of the archive, logs",
            "`stagedoor_archive_spool_bytes`: segments wait for an archive that is not reached",
            "`deriv(stagedoor_store_size_bytes[1d])`: how fast the store grows",
        ],
        mend: "Move backups and logs to another disk, or enlarge it. Shorter times of `--retain` make the file grow no further, but not smaller.",
    },
    Alert {
        name: "StagedoorDiskFills",
        severity: Severity::Ticket,
        expr: "predict_linear(stagedoor_store_disk_free_bytes[1d], 7 * 86400) < 0",
        hold: "1h",
        summary: "The disk of the store of {{ $labels.instance }} will be full within a week",
        effect: "None yet.",
        look: &[
            "`deriv(stagedoor_store_size_bytes[1d])`: whether the store is what grows",
            "`/operator`: how long each kind of rows is kept, and which applications write the most",
        ],
        mend: "Enlarge the disk, move what else is on it, or shorten `--retain`. On PostgreSQL watch the disk of its machine with the node exporter.",
    },
    Alert {
        name: "StagedoorStoreGrows",
        severity: Severity::Ticket,
        expr: "stagedoor_store_size_bytes > 2 * (stagedoor_store_size_bytes offset 7d) and stagedoor_store_size_bytes > 1073741824",
        hold: "1h",
        summary: "The store of {{ $labels.instance }} has {{ $value | humanize1024 }}B, twice as much as a week ago",
        effect: "None. Backups and restores take longer.",
        look: &[
            "`GET /platform/v1/application-load?minutes=60`: which applications write",
            "`stagedoor_job_runs_total{job=\"sweep\"}`: whether old rows are deleted",
        ],
        mend: "Lower the quota of an application that floods, or shorten `--retain`.",
    },
    Alert {
        name: "StagedoorBackupOld",
        severity: Severity::Ticket,
        expr: "time() - max by (job) (stagedoor_last_backup_timestamp_seconds) > 26 * 3600",
        hold: "1h",
        summary: "The last good backup is {{ $value | humanizeDuration }} old",
        effect: "None for callers. If the store is lost now, what was written since is lost with it, unless there is an archive.",
        look: &[
            "`systemctl status stagedoor-backup.timer stagedoor-backup.service`, and the log of the service",
            "`stagedoor backup --list --to PLACE`: the backups that are there",
            "the room on the disk of the backups",
        ],
        mend: "Mend the cause, and take a backup: `systemctl start stagedoor-backup`. Delete this rule if you back PostgreSQL up with its own tools.",
    },
    Alert {
        name: "StagedoorArchiveBehind",
        severity: Severity::Page,
        expr: "stagedoor_archive_lag_seconds > 60",
        hold: "1m",
        summary: "The archive of {{ $labels.instance }} is {{ $value | humanizeDuration }} behind",
        effect: "None for callers. If the machine is lost now, what was acknowledged since is lost with it.",
        look: &[
            "the log: `the archive is not reached` with the cause, once a minute",
            "`stagedoor_archive_spool_bytes`: the room that is left of `--archive-spool-mib`, beside the data file",
            "the place: `stagedoor backup --list --to PLACE`, the room on its disk, the access key",
            "`stagedoor_archive_generations_total`: a generation has begun, and its first base is being made",
        ],
        mend: "Mend the place or the way to it. The spool is brought there by itself. If the spool becomes full before, a new generation begins with a new base when the place answers.",
    },
    Alert {
        name: "StagedoorArchiveBaseOld",
        severity: Severity::Ticket,
        expr: "stagedoor_archive_generations_total + stagedoor_archive_segments_total > 0 and time() - stagedoor_archive_last_base_timestamp_seconds > 2 * 86400",
        hold: "1h",
        summary: "The archive of {{ $labels.instance }} has had no new base for two days",
        effect: "None for callers. A restore takes longer, or is not possible if there is no base at all.",
        look: &[
            "the log: failures of the base, and `the archive has a new base`",
            "`stagedoor backup --list --to PLACE`: the bases and the times that they reach",
        ],
        mend: "Mend the cause that the log names. The next attempt comes within a minute. With a longer `--archive-base-hours` than 24, raise the threshold of this rule.",
    },
    Alert {
        name: "StagedoorStoreSlow",
        severity: Severity::Page,
        expr: "stagedoor_store_writes_waiting > 1000 or rate(stagedoor_store_busy_total[5m]) > 0",
        hold: "1m",
        summary: "The store of {{ $labels.instance }} does not keep up",
        effect: "Calls take longer, up to 3 seconds, then answer 500.",
        look: &[
            "the disk: `iostat -x 1`. A commit waits for a sync",
            "PostgreSQL: `SELECT * FROM pg_stat_activity WHERE wait_event IS NOT NULL`, and long transactions of other programs",
            "one application that writes much: `/operator`, or `GET /platform/v1/application-load`",
        ],
        mend: "Remove what competes for the disk, or use a faster one. Lower the quota of an application that floods: [who causes the load](operating.md#who-causes-the-load).",
    },
    Alert {
        name: "StagedoorEventsLost",
        severity: Severity::Page,
        expr: "increase(stagedoor_bus_gaps_total[5m]) > 0 or increase(stagedoor_sessions_closed_total{reason=\"gap\"}[5m]) > 0",
        hold: "",
        summary: "Events may have been lost on {{ $labels.instance }}",
        effect: "The sessions concerned are closed with `gap` and reconnect. Their applications know that events are missing.",
        look: &[
            "the log of NATS: slow consumers, routes between its servers",
            "`stagedoor_bus_disconnects_total` of all nodes at that time",
            "whether a rolling upgrade mixed two wire versions: StagedoorVersionsMixed",
        ],
        mend: "Mend the network to NATS, or NATS itself. No event is sent again; what was stored can be read over the API.",
    },
    Alert {
        name: "StagedoorEventsUnpublished",
        severity: Severity::Page,
        expr: "increase(stagedoor_event_batches_taken_over_total[5m]) > 0",
        hold: "",
        summary: "{{ $labels.instance }} found committed events that were not published",
        effect: "The sessions of their channels are closed with `gap` and reconnect.",
        look: &[
            "whether a node crashed or the database restarted in the minutes before: then this is the expected recovery",
            "the log: `committed events were not published`",
        ],
        mend: "After a crash nothing is to be done. Without one, report it as a bug with the log of that minute.",
    },
    Alert {
        name: "StagedoorBusDown",
        severity: Severity::Page,
        expr: "stagedoor_bus_connections < max_over_time(stagedoor_bus_connections[1d])",
        hold: "1m",
        summary: "{{ $labels.instance }} has fewer connections to NATS than before",
        effect: "Events of other nodes do not reach the sessions of this node, which are closed with `gap`.",
        look: &[
            "NATS: `systemctl status nats-server`, its monitoring port",
            "the login in `STAGEDOOR_BUS_URL`: the log says `authorization`, or `Permissions Violation` where the user lacks rights",
        ],
        mend: "Start NATS, or mend the network. The node connects again by itself.",
    },
    Alert {
        name: "StagedoorBusUnsteady",
        severity: Severity::Ticket,
        expr: "increase(stagedoor_bus_disconnects_total[5m]) > 2",
        hold: "",
        summary: "{{ $labels.instance }} lost its connections to NATS {{ $value | humanize }} times in 5 minutes",
        effect: "Sessions whose channels had an event meanwhile are closed with `gap` and reconnect.",
        look: &[
            "the log of the node: `connection to the bus lost` with the cause, once a minute",
            "`GET /health/ready`: `BUS_REFUSED` means that the user of `STAGEDOOR_BUS_URL` lacks rights to the subjects",
            "the log of NATS: slow consumers, restarts, permissions",
        ],
        mend: "Give the user the rights to publish and to subscribe to `stagedoor.>` (or the prefix of `--bus-prefix`), or mend NATS or the network.",
    },
    Alert {
        name: "StagedoorSessionsFall",
        severity: Severity::Ticket,
        expr: "sum(stagedoor_sessions) < 0.5 * sum(stagedoor_sessions offset 10m) and sum(stagedoor_sessions offset 10m) > 100",
        hold: "2m",
        summary: "Fewer than half of the sessions of ten minutes ago are connected",
        effect: "Applications do not receive their events until they reconnect.",
        look: &[
            "`topk(3, sum by (reason) (increase(stagedoor_sessions_closed_total[10m])))`, and [close-reasons.md](close-reasons.md)",
            "`stagedoor_handshakes_refused_total`: clients try to come back and are refused",
            "the balancer: whether it passes websockets on",
        ],
        mend: "What the reason says. `ping_timeout` and `transport_closed` of all applications at once point to the network or the balancer.",
    },
    Alert {
        name: "StagedoorInternalErrors",
        severity: Severity::Ticket,
        expr: "increase(stagedoor_sessions_closed_total{reason=\"internal_error\"}[5m]) > 0",
        hold: "",
        summary: "Sessions of {{ $labels.instance }} ended by a fault of the service",
        effect: "The sessions concerned reconnect.",
        look: &["the log of that minute: a panic, or a failure with the key of the session"],
        mend: "Report it as a bug with the log.",
    },
    Alert {
        name: "StagedoorDescriptors",
        severity: Severity::Page,
        expr: "process_open_fds{job=\"stagedoor\"} / process_max_fds{job=\"stagedoor\"} > 0.9",
        hold: "1m",
        summary: "{{ $labels.instance }} has used {{ $value | humanizePercentage }} of its descriptors",
        effect: "Handshakes beyond the limit are answered with 503 and `Retry-After`.",
        look: &[
            "`stagedoor_sessions`: a storm of sessions, or growth",
            "`ulimit -n` of the process, `LimitNOFILE=` of its unit",
        ],
        mend: "Raise the limit and restart the node, or add a node.",
    },
    Alert {
        name: "StagedoorMemory",
        severity: Severity::Ticket,
        expr: "process_resident_memory_bytes{job=\"stagedoor\"} / on (instance) group_left () label_replace(node_memory_MemTotal_bytes, \"instance\", \"$1\", \"instance\", \"(.*)\") > 0.85",
        hold: "10m",
        summary: "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of the memory of its machine",
        effect: "None yet. The system ends the process when the memory is used up.",
        look: &["`stagedoor_sessions`: 5 to 10 KiB each", "`stagedoor_queued_bytes`: slow readers"],
        mend: "Add a node or memory. The rule needs the node exporter with the same `instance`; without it the rule never fires.",
    },
    Alert {
        name: "StagedoorWebhookDeadLetters",
        severity: Severity::Ticket,
        expr: "increase(stagedoor_webhook_dead_letters_total[1h]) > 0 or increase(stagedoor_webhooks_disabled_total[1h]) > 0",
        hold: "",
        summary: "Publishers miss messages of their webhooks",
        effect: "A publisher did not get a claim. The message can be sent again for 30 days.",
        look: &["`/operator/webhooks`: which application, and the failure of its last attempts"],
        mend: "Inform the publisher. When the receiver works, send again: the button in the developer center, or `POST /platform/v1/applications/{clientId}/webhook/resend`.",
    },
    Alert {
        name: "StagedoorWebhooksLate",
        severity: Severity::Ticket,
        expr: "histogram_quantile(0.99, sum by (le) (rate(stagedoor_webhook_first_attempt_delay_seconds_bucket[10m]))) > 5",
        hold: "10m",
        summary: "First attempts at webhooks come {{ $value | humanizeDuration }} late",
        effect: "Viewers wait for their rewards.",
        look: &[
            "`stagedoor_webhook_attempts_under_way`: 256 means that receivers hang",
            "StagedoorStoreSlow",
        ],
        mend: "Add a node with the role jobs, or disable the webhook that hangs.",
    },
    Alert {
        name: "StagedoorWebhooksStopped",
        severity: Severity::Page,
        expr: "time() - max(stagedoor_job_last_done_timestamp_seconds{job=\"webhook_look\"}) > 30",
        hold: "1m",
        summary: "No node sends webhooks",
        effect: "No claim reaches its publisher. Nothing is lost: messages wait in the outbox.",
        look: &["whether a node with the role jobs runs: `--roles`", "the log: failures of `webhook_look`"],
        mend: "Start a node with the role jobs.",
    },
    Alert {
        name: "StagedoorWebhooksUnreachable",
        severity: Severity::Ticket,
        expr: "sum(rate(stagedoor_webhook_attempts_total{outcome=~\"dns|tls|connect\"}[10m])) / sum(rate(stagedoor_webhook_attempts_total[10m])) > 0.9",
        hold: "10m",
        summary: "Hardly any call to a webhook gets a connection",
        effect: "Publishers get their messages late.",
        look: &[
            "name resolution and the way out of the node: `getent hosts example.com`",
            "the firewall, the system's certificates",
        ],
        mend: "Mend the network of the node. The messages are sent again with their next attempts.",
    },
    Alert {
        name: "StagedoorJobsFail",
        severity: Severity::Ticket,
        expr: "increase(stagedoor_job_runs_total{outcome=\"failed\"}[5m]) > 0",
        hold: "5m",
        summary: "The job {{ $labels.job }} of {{ $labels.instance }} fails",
        effect: "Depends on the job: expired rows stay, webhooks wait, credentials are not kept in memory.",
        look: &["the log: each job names its failure once a minute"],
        mend: "Mend the cause, most often the database. Jobs run again by themselves.",
    },
    Alert {
        name: "StagedoorSlowConsumers",
        severity: Severity::Ticket,
        expr: "sum(increase(stagedoor_sessions_closed_total{reason=~\"slow_consumer|write_timeout\"}[1h])) / sum(stagedoor_sessions) > 0.01",
        hold: "10m",
        summary: "{{ $value | humanizePercentage }} of the sessions were too slow in an hour",
        effect: "The sessions concerned are closed and reconnect.",
        look: &[
            "one application: `GET /platform/v1/sessions?connected=false`",
            "the network between the balancer and the clients",
        ],
        mend: "If all applications are concerned, mend the network. If one is, inform its developer.",
    },
    Alert {
        name: "StagedoorCertificateExpires",
        severity: Severity::Ticket,
        expr: "(stagedoor_tls_certificate_expires_seconds > 0) - time() < 14 * 86400",
        hold: "1h",
        summary: "The certificate of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
        effect: "From then on clients refuse to connect. Open connections stay.",
        look: &[
            "the log of the program that renews certificates, and the date of the file of `--tls-certificate`",
            "the log of the node: `failed to read the certificate again` names a file that cannot be used, or a certificate that is not valid",
        ],
        mend: "Renew the certificate, and replace both files. The node reads them within 2 seconds, or at SIGHUP, without a restart.",
    },
    Alert {
        name: "StagedoorVersionsMixed",
        severity: Severity::Ticket,
        expr: "count(count by (version, commit) (stagedoor_build_info)) > 1",
        hold: "30m",
        summary: "Nodes of {{ $value }} versions or commits run together",
        effect: "Where the changelog names a new wire version of the bus, sessions are closed with `gap`.",
        look: &["`stagedoor_build_info`: which nodes are old"],
        mend: "Finish the rolling restart.",
    },
    Alert {
        name: "StagedoorTelemetryDropped",
        severity: Severity::Ticket,
        expr: "sum by (instance, cause) (increase(stagedoor_otlp_dropped_total[15m])) > 0",
        hold: "15m",
        summary: "{{ $labels.instance }} drops traces and exported lines of the log ({{ $labels.cause }})",
        effect: "None: no request waits for the collector. Traces and exported logs have holes.",
        look: &[
            "the log on stderr: `the collector did not take telemetry`, with the cause, once a minute",
            "`stagedoor_otlp_sent_total`: whether the collector takes anything",
        ],
        mend: "With the cause `collector`, mend the collector or the way to it. With `queue`, lower `--trace-sample` or the filter of `--log`.",
    },
    Alert {
        name: "StagedoorOperatorKeyGuessed",
        severity: Severity::Ticket,
        expr: "increase(stagedoor_operator_refused_total[10m]) > 10",
        hold: "",
        summary: "Calls of the platform API on {{ $labels.instance }} have a wrong key",
        effect: "None: ten wrong keys a minute of an address are checked, and the right key is never refused.",
        look: &["the log: the address of the caller, once a minute", "a program of your own with an old key"],
        mend: "Close the listener of the platform API to others: `--platform-listen`.",
    },
];
