//! All families of the metrics: one list for the text format and for `docs/metrics.md`.

use super::text::{Family, Kind};

/// A group of families.
#[derive(Debug)]
pub struct Section {
    /// The heading in the documentation.
    pub title: &'static str,
    /// The families, in the order of the text.
    pub families: &'static [&'static Family],
}

/// Declares families together with the list of all families, so that the list is complete.
macro_rules! families {
    ($($title:literal { $($kind:ident $id:ident $name:literal [$($label:literal),*] $help:literal $alert:literal)+ })+) => {
        $($(
            #[doc = $help]
            pub(super) static $id: Family = Family {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                help: $help,
                alert: $alert,
            };
        )+)+

        /// All groups, in the order of the text.
        pub const SECTIONS: &[Section] = &[$(Section { title: $title, families: &[$(&$id),+] },)+];
    };
}

families! {
    "Realtime sessions" {
        Gauge SESSIONS "stagedoor_sessions" ["transport"]
            "Sessions connected to this node now."
            "a sudden fall; 90 % of what the node's memory and descriptors allow"
        Counter SESSIONS_OPENED "stagedoor_sessions_opened_total" []
            "Sessions opened: handshakes that succeeded."
            ""
        Counter HANDSHAKES_REFUSED "stagedoor_handshakes_refused_total" []
            "Handshakes refused: bad or used session URLs, too many sessions, a draining node."
            "a rate above that of opened sessions"
        Counter SESSIONS_CLOSED "stagedoor_sessions_closed_total" ["reason"]
            "Sessions closed, by reason; docs/close-reasons.md explains each."
            "any `internal_error`; `gap`, `slow_consumer`, `write_timeout` or `node_dead` above their usual rate"
        Counter EVENTS_ENCODED "stagedoor_events_encoded_total" []
            "Events encoded: once for each profile that a subscriber on this node has."
            ""
        Counter DELIVERIES "stagedoor_deliveries_total" []
            "Events handed to sessions: one for each event and subscribed session."
            ""
        Gauge QUEUED_BYTES "stagedoor_queued_bytes" []
            "Bytes queued for slow websockets and for the next polls."
            "steady growth: readers or the network are too slow"
    }
    "Bus" {
        Counter BUS_GAPS "stagedoor_bus_gaps_total" []
            "Gaps: times at which messages from other nodes may have been lost."
            "any: sessions were closed with `gap`"
        Counter BUS_PUBLISHED "stagedoor_bus_published_total" []
            "Messages that the bus confirmed. 0 on a single node, which needs no bus."
            ""
        Counter BUS_LOST "stagedoor_bus_lost_total" []
            "Events that were given up because the bus did not confirm them in time. They are stored."
            "any: sessions were closed with `gap`"
        Counter EVENTS_TAKEN_OVER "stagedoor_event_batches_taken_over_total" []
            "Transactions with committed events that may never have been published, found by this node (PostgreSQL only)."
            "any without a crashed node or a restarted database: sessions were closed with `gap`"
        Counter BUS_RECEIVED "stagedoor_bus_received_total" []
            "Messages received, with or without a subscribed session."
            ""
        Gauge BUS_INTERESTS "stagedoor_bus_interests" []
            "Channels whose events this node is subscribed to now."
            ""
        Gauge BUS_CONNECTIONS "stagedoor_bus_connections" []
            "Open connections to the bus that it lets work: 2 on a node with sockets, 1 on a node without, 0 without a bus."
            "fewer than before, for a minute"
        Counter BUS_DISCONNECTS "stagedoor_bus_disconnects_total" []
            "Connections to the bus that have ended."
            "more than 2 in 5 minutes"
        Counter BUS_MALFORMED "stagedoor_bus_malformed_total" []
            "Messages that could not be decoded: of another version, or of another program."
            "any, except during a rolling upgrade"
    }
    "HTTP" {
        Counter HTTP_REQUESTS "stagedoor_http_requests_total" ["route", "method", "status"]
            "Requests answered, by the route's pattern, method and class of status, without sockets and polls."
            "`status=\"5xx\"` above 0.1 % of all for 5 minutes"
        Histogram HTTP_DURATION "stagedoor_http_request_duration_seconds" ["route", "method"]
            "Time from a request's head to its answer, by the route's pattern and method."
            "the 99th percentile above 0.5 s for 5 minutes"
        Counter HTTP_SLOW "stagedoor_http_slow_requests_total" ["route", "method"]
            "Requests answered without a 5xx, but later than the endpoint promises: see `stagedoor_http_objective_seconds`."
            "the burn rates of StagedoorLatencyBudgetBurns"
        Gauge HTTP_OBJECTIVE "stagedoor_http_objective_seconds" ["route", "method"]
            "The time within which the endpoint promises its answers."
            ""
        Gauge OBJECTIVE_RATIO "stagedoor_objective_ratio" ["objective"]
            "The share of requests that keep a promise: `answered` without a 5xx, and `fast` within the endpoint's time."
            ""
        Counter REFUSALS "stagedoor_refusals_total" ["kind"]
            "Requests refused, by kind. Kinds are finer than statuses."
            "`internal`, `disk_full`: any; `too_many_requests` or `invalid_token` far above the usual rate"
    }
    "Store" {
        Counter STORE_COMMITTED "stagedoor_store_writes_committed_total" []
            "Write requests that were committed."
            ""
        Counter STORE_ROLLED_BACK "stagedoor_store_writes_rolled_back_total" []
            "Write requests that were rolled back: refused by their rules, failed, or in a batch whose commit failed."
            ""
        Counter STORE_COMMITS "stagedoor_store_commits_total" []
            "Commits of write requests. Committed requests divided by commits give the mean batch (SQLite)."
            ""
        Gauge STORE_LARGEST_BATCH "stagedoor_store_largest_batch" []
            "Maximum number of write requests in one commit since the start."
            ""
        Gauge STORE_WAITING "stagedoor_store_writes_waiting" []
            "Writes that wait for the writer thread (SQLite) or for a connection (PostgreSQL) now."
            "above 1,000 for a minute: the database is too slow (4,096 are refused)"
        Counter STORE_BUSY "stagedoor_store_busy_total" []
            "Requests, reads included, refused or given up because the store was busy. Each was answered with a 500."
            "any"
        Counter STORE_RETRIES "stagedoor_store_write_retries_total" ["cause"]
            "Writes that were run again after PostgreSQL had ended them: `deadlock` or `lost_race`. They wrote nothing before."
            ""
        Counter STORE_GIVEN_UP "stagedoor_store_writes_given_up_total" []
            "Writes that PostgreSQL ended at each of 5 runs. Their requests were answered with a 429 and the reason `busy`."
            "any: transactions lock the same rows all the time"
        Counter STORE_DISK_FULL "stagedoor_store_disk_full_total" []
            "Transactions that failed because of a full disk. Their requests were answered with a 503."
            "any: free disk space, then writes work again"
        Gauge STORE_SIZE "stagedoor_store_size_bytes" []
            "Size of the store on disk: the data file with its log, or the database with its indexes. Measured once a minute."
            "twice as much as a week ago. `deriv(stagedoor_store_size_bytes[1d])` is its growth"
        Gauge DISK_FREE "stagedoor_store_disk_free_bytes" []
            "What the process may still use of the disk of `--data`. Missing on PostgreSQL, whose disk is another machine's."
            "less than a tenth of `stagedoor_store_disk_size_bytes`, or full within a week at the growth of the last day"
        Gauge DISK_SIZE "stagedoor_store_disk_size_bytes" []
            "Size of the disk of `--data`. Missing on PostgreSQL."
            ""
        Gauge LAST_BACKUP "stagedoor_last_backup_timestamp_seconds" []
            "When the last completed `stagedoor backup` of this store began, whatever its place; 0 if none is recorded."
            "more than a day ago"
    }
    "Archive" {
        Gauge ARCHIVE_LAG "stagedoor_archive_lag_seconds" []
            "How old a commit may be that cannot be restored from the archive: as old as the store while nothing can. 0 without `--archive`."
            "above 30 s: the archive is not reached, has lost something, or is too slow"
        Gauge ARCHIVE_SPOOL "stagedoor_archive_spool_bytes" []
            "Bytes of segments that wait for the archive."
            "half of `--archive-spool-mib`"
        Counter ARCHIVE_SEGMENTS "stagedoor_archive_segments_total" []
            "Segments that were brought to the archive. Those of one file count as one."
            ""
        Counter ARCHIVE_FAILURES "stagedoor_archive_failures_total" []
            "Attempts to bring something to the archive that failed."
            "a steady rate"
        Counter ARCHIVE_GENERATIONS "stagedoor_archive_generations_total" []
            "Generations that were begun since the start, each with a new base."
            "any but the first one"
        Gauge ARCHIVE_LAST_BASE "stagedoor_archive_last_base_timestamp_seconds" []
            "When the last base was complete from which can be restored; 0 while there is none."
            "older than two times `--archive-base-hours`"
    }
    "Credentials" {
        Counter CREDENTIAL_HITS "stagedoor_credential_cache_hits_total" ["cache"]
            "Checks of access tokens and client secrets that were answered from memory."
            ""
        Counter CREDENTIAL_MISSES "stagedoor_credential_cache_misses_total" ["cache"]
            "Checks of access tokens and client secrets that queried the store."
            "a rate near that of all checks: the job `credential_watch` fails, see below"
        Gauge CREDENTIAL_ENTRIES "stagedoor_credential_cache_entries" ["cache"]
            "Credentials cached in memory."
            ""
    }
    "Failed authentication" {
        Counter SIGN_IN_FAILURES "stagedoor_sign_in_failures_total" ["outcome"]
            "Sign-ins on the page that failed: `wrong` login or password; `limited` before the password was checked, because of too many attempts."
            "a rate far above the usual one: passwords are being guessed. The log names one address a minute"
        Counter UPSTREAM_SIGN_INS "stagedoor_upstream_sign_ins_total" ["provider", "outcome"]
            "Sign-ins at a provider of `--upstreams`, by how they ended: docs/upstream.md explains each outcome."
            "`unavailable` or `client_refused`: any rate; `invalid`: any, the answers of the provider are wrong or forged"
        Counter CLIENT_SECRET_FAILURES "stagedoor_client_secret_failures_total" []
            "Calls with a wrong client secret, or with one of an application that does not exist."
            "a rate far above the usual one"
        Counter OPERATOR_REFUSED "stagedoor_operator_refused_total" []
            "Calls of the platform API with a wrong operator key."
            "any except your own mistakes: check who can reach that listener"
    }
    "Webhooks" {
        Counter WEBHOOK_ATTEMPTS "stagedoor_webhook_attempts_total" ["outcome"]
            "Attempts at webhooks that have ended: `delivered` with a 2xx status, `refused` with any other status, or the failure without an answer."
            "`address`: any; `dns`, `tls` or `timeout` at the rate of all attempts: this node's own network"
        Gauge WEBHOOK_UNDER_WAY "stagedoor_webhook_attempts_under_way" []
            "Attempts at webhooks in flight now. At most 256, or fewer if the process has few descriptors."
            "at its maximum for 10 minutes: receivers hang, and others wait"
        Histogram WEBHOOK_DELAY "stagedoor_webhook_first_attempt_delay_seconds" []
            "Time from a claim to the first attempt of its message."
            "the 99th percentile above 5 s for 10 minutes"
        Counter WEBHOOK_DEAD "stagedoor_webhook_dead_letters_total" []
            "Messages that this node gave up after their last attempt, or after a status of 410. They can be sent again."
            "any: a publisher missed a claim"
        Counter WEBHOOKS_DISABLED "stagedoor_webhooks_disabled_total" []
            "Webhooks that this node disabled, because they were gone or had failed for five days."
            "any: inform the publisher"
    }
    "Jobs" {
        Counter JOB_RUNS "stagedoor_job_runs_total" ["job", "outcome"]
            "Runs of background jobs, by outcome."
            "`outcome=\"failed\"` for 5 minutes"
        Gauge JOB_LAST_DONE "stagedoor_job_last_done_timestamp_seconds" ["job"]
            "When the last successful run ended, in seconds since 1970; 0 before the first."
            "`heartbeat` more than 15 s ago: after 20 s the other nodes end this node's sessions"
    }
    "OpenTelemetry" {
        Counter OTLP_SENT "stagedoor_otlp_sent_total" ["signal"]
            "Spans (`traces`) and lines of the log (`logs`) that the collector of `--otlp-endpoint` has taken."
            ""
        Counter OTLP_DROPPED "stagedoor_otlp_dropped_total" ["signal", "cause"]
            "Spans and lines that were dropped: `queue` because 8,192 waited, `collector` because the collector did not take them."
            "any for 15 minutes: traces and exported logs have holes. The log on stderr is complete"
    }
    "Process" {
        Gauge BUILD_INFO "stagedoor_build_info" ["version", "commit"]
            "Always 1: the running version, and the commit that it was built from, or `unknown`."
            "more than one version for longer than a rolling restart"
        Gauge NODE_INFO "stagedoor_node_info" ["node", "store"]
            "Always 1: the node's id, as in the sessions of the platform API, and the kind of its store."
            ""
        Gauge START_TIME "process_start_time_seconds" []
            "When the node started, in seconds since 1970."
            "an unplanned change"
        Gauge CERTIFICATE_EXPIRES "stagedoor_tls_certificate_expires_seconds" []
            "When the certificate of the listeners expires, in seconds since 1970; 0 without HTTPS."
            "less than 14 days ahead"
        Counter CERTIFICATE_FAILURES "stagedoor_tls_certificate_failures_total" []
            "Times at which changed files of the certificate could not be used, or were not valid, so that the former one stayed."
            "any: the log names the file"
        Counter CPU "process_cpu_seconds_total" []
            "CPU time in seconds."
            "80 % of the node's CPUs for 10 minutes"
        Gauge RESIDENT "process_resident_memory_bytes" []
            "Resident memory in bytes."
            "85 % of the node's memory limit"
        Gauge OPEN_FDS "process_open_fds" []
            "Open file descriptors. Each websocket session has one."
            "90 % of `process_max_fds`"
        Gauge MAX_FDS "process_max_fds" []
            "Maximum number of open file descriptors: the soft limit. Missing without a limit."
            "less than the planned number of sessions"
        Gauge THREADS "process_threads" []
            "Threads of the process."
            ""
    }
}
