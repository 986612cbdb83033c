//! The alerts: rules for Prometheus, a page for each alert, and a dashboard of all metrics. All three are
//! generated from the tables in `server::metrics`. `UPDATE_DOCS=1 cargo test -p server --test it alerts`
//! renews them. The suite `alerts` of `interop/` loads the rules and the dashboard into a real Prometheus.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};
use server::metrics::alerts::{ALERTS, Alert, Severity};
use server::metrics::families::SECTIONS;
use server::metrics::text::{Family, Kind};

/// Where the pages of the alerts are read.
const PAGES: &str = "https://stagedoor.example/docs/alerts.md";

fn all() -> impl Iterator<Item = &'static Family> {
    SECTIONS.iter().flat_map(|section| section.families).copied()
}

/// A text in single quotes, as YAML reads it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn anchor(alert: &Alert) -> String {
    alert.name.to_lowercase()
}

fn rules() -> String {
    let mut text =
        "# Generated from crates/server/src/metrics/alerts.rs. docs/alerts.md has a page for each alert.\n\
                    # Replace the host of runbook_url by the place where your team reads the pages.\n\
                    groups:\n  - name: stagedoor\n    rules:\n"
            .to_owned();
    for alert in ALERTS {
        let hold =
            if alert.hold.is_empty() { String::new() } else { format!("        for: {}\n", alert.hold) };
        let _ = write!(
            text,
            "      - alert: {}\n        expr: {}\n{hold}        labels:\n          severity: {}\n        annotations:\n          \
             summary: {}\n          runbook_url: {PAGES}#{}\n",
            alert.name,
            quoted(alert.expr),
            alert.severity.name(),
            quoted(alert.summary),
            anchor(alert),
        );
    }
    text
}

fn pages() -> String {
    let mut text = "# Alerts\n\n\
        One page for each alert of `deploy/prometheus/stagedoor.rules.yaml`. Load the rules into Prometheus with `rule_files`, and name the\n\
        scrape job `stagedoor` ([operating.md](operating.md#metrics)). `page` means at once, `ticket` the next working day.\n\n\
        This page is generated from the list in `crates/server/src/metrics/alerts.rs`:\n\
        `UPDATE_DOCS=1 cargo test -p server --test it alerts`.\n\n"
        .to_owned();
    for severity in [Severity::Page, Severity::Ticket] {
        let names = ALERTS.iter().filter(|alert| alert.severity == severity);
        let links: Vec<_> = names.map(|alert| format!("[{}](#{})", alert.name, anchor(alert))).collect();
        let _ = writeln!(text, "- **{}**: {}", severity.name(), links.join(" · "));
    }
    for alert in ALERTS {
        let hold = if alert.hold.is_empty() { String::new() } else { format!(" for {}", alert.hold) };
        let _ = write!(
            text,
            "\n## {}\n\n`{}`{hold} ({}).\n\n**Callers notice.** {}\n\n**Look at,** in this order:\n\n",
            alert.name,
            alert.expr,
            alert.severity.name(),
            alert.effect
        );
        alert.look.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
        let _ = write!(text, "\n**Do.** {}\n", alert.mend);
    }
    text
}

/// The samples of the chosen nodes.
const CHOSEN: &str = "job=\"stagedoor\", instance=~\"$node\"";

fn target(expr: &str, legend: &str) -> Value {
    json!({ "expr": expr.replace("{}", &format!("{{{CHOSEN}}}")), "legendFormat": legend, "refId": legend })
}

/// A panel of the overview: its kind, title, unit, width, and its expressions with their legends. `{}` stands
/// for the chosen nodes.
struct OverviewPanel {
    kind: &'static str,
    title: &'static str,
    about: &'static str,
    unit: &'static str,
    width: usize,
    targets: &'static [(&'static str, &'static str)],
}

/// Columns of a row of the dashboard.
const COLUMNS: usize = 24;

/// What is seen first: whether it works, for whom, and how long it will.
const OVERVIEW: &[OverviewPanel] = &[
    OverviewPanel {
        kind: "stat",
        title: "Nodes",
        about: "Nodes that answer scrapes.",
        unit: "short",
        width: 4,
        targets: &[("sum(up{})", "up"), ("count(up{})", "all")],
    },
    OverviewPanel {
        kind: "stat",
        title: "Error budget left, 30 days",
        about: "What is left of the calls that may fail: stagedoor_objective_ratio.",
        unit: "percentunit",
        width: 5,
        targets: &[(
            "1 - (sum(increase(stagedoor_http_requests_total{job=\"stagedoor\", status=\"5xx\"}[30d])) / sum(increase(stagedoor_http_requests_total{job=\"stagedoor\"}[30d]))) / (1 - max(stagedoor_objective_ratio{job=\"stagedoor\", objective=\"answered\"}))",
            "left",
        )],
    },
    OverviewPanel {
        kind: "stat",
        title: "Latency budget left, 30 days",
        about: "What is left of the answers that may be late: stagedoor_objective_ratio.",
        unit: "percentunit",
        width: 5,
        targets: &[(
            "1 - (sum(increase(stagedoor_http_slow_requests_total{job=\"stagedoor\"}[30d])) / sum(increase(stagedoor_http_requests_total{job=\"stagedoor\"}[30d]))) / (1 - max(stagedoor_objective_ratio{job=\"stagedoor\", objective=\"fast\"}))",
            "left",
        )],
    },
    OverviewPanel {
        kind: "stat",
        title: "Last backup",
        about: "Age of the last good backup.",
        unit: "s",
        width: 5,
        targets: &[("time() - max(stagedoor_last_backup_timestamp_seconds{} > 0)", "age")],
    },
    OverviewPanel {
        kind: "stat",
        title: "Disk full in",
        about: "At the growth of the last day. Nothing is shown while the room grows, and on PostgreSQL.",
        unit: "s",
        width: 5,
        targets: &[(
            "min(stagedoor_store_disk_free_bytes{} / (-deriv(stagedoor_store_disk_free_bytes{job=\"stagedoor\", instance=~\"$node\"}[1d]) > 0))",
            "time",
        )],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Calls per second",
        about: "By class of status.",
        unit: "reqps",
        width: 8,
        targets: &[(
            "sum by (status) (rate(stagedoor_http_requests_total{job=\"stagedoor\", instance=~\"$node\"}[5m]))",
            "{{status}}",
        )],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Calls that fail",
        about: "The share of 5xx. StagedoorErrors fires at 0.1 %.",
        unit: "percentunit",
        width: 8,
        targets: &[(
            "sum(rate(stagedoor_http_requests_total{job=\"stagedoor\", instance=~\"$node\", status=\"5xx\"}[5m])) / sum(rate(stagedoor_http_requests_total{job=\"stagedoor\", instance=~\"$node\"}[5m]))",
            "5xx",
        )],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Time of answers",
        about: "Percentiles over all calls.",
        unit: "s",
        width: 8,
        targets: &[
            (
                "histogram_quantile(0.5, sum by (le) (rate(stagedoor_http_request_duration_seconds_bucket{job=\"stagedoor\", instance=~\"$node\"}[5m])))",
                "p50",
            ),
            (
                "histogram_quantile(0.99, sum by (le) (rate(stagedoor_http_request_duration_seconds_bucket{job=\"stagedoor\", instance=~\"$node\"}[5m])))",
                "p99",
            ),
        ],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Slowest endpoints, p99",
        about: "The five endpoints with the longest 99th percentile.",
        unit: "s",
        width: 12,
        targets: &[(
            "topk(5, histogram_quantile(0.99, sum by (le, route, method) (rate(stagedoor_http_request_duration_seconds_bucket{job=\"stagedoor\", instance=~\"$node\"}[5m]))))",
            "{{method}} {{route}}",
        )],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Busiest endpoints",
        about: "The five endpoints with the most calls. Which applications make them: /operator.",
        unit: "reqps",
        width: 12,
        targets: &[(
            "topk(5, sum by (route, method) (rate(stagedoor_http_requests_total{job=\"stagedoor\", instance=~\"$node\"}[5m])))",
            "{{method}} {{route}}",
        )],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Sessions",
        about: "Connected sessions of each node.",
        unit: "short",
        width: 8,
        targets: &[("sum by (instance) (stagedoor_sessions{})", "{{instance}}")],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Sessions that end, by reason",
        about: "docs/close-reasons.md explains each.",
        unit: "short",
        width: 8,
        targets: &[(
            "sum by (reason) (rate(stagedoor_sessions_closed_total{job=\"stagedoor\", instance=~\"$node\"}[5m])) > 0",
            "{{reason}}",
        )],
    },
    OverviewPanel {
        kind: "timeseries",
        title: "Events delivered per second",
        about: "One for each event and subscribed session.",
        unit: "short",
        width: 8,
        targets: &[(
            "sum(rate(stagedoor_deliveries_total{job=\"stagedoor\", instance=~\"$node\"}[5m]))",
            "events",
        )],
    },
];

/// The expression of a panel: rates of counters, percentiles of histograms, and gauges as they are.
fn panel_targets(family: &Family) -> Vec<Value> {
    let by = |more: &str| {
        let labels: Vec<&str> =
            family.labels.iter().copied().chain([more]).filter(|l| !l.is_empty()).collect();
        labels.join(", ")
    };
    let name = family.name;
    match family.kind {
        Kind::Counter => {
            vec![target(&format!("sum by ({}) (rate({name}{{{CHOSEN}}}[5m]))", by("instance")), "rate")]
        }
        Kind::Gauge => vec![target(&format!("{name}{{{CHOSEN}}}"), "now")],
        Kind::Histogram => [("0.5", "p50"), ("0.99", "p99")]
            .map(|(quantile, legend)| {
                let expr = format!(
                    "histogram_quantile({quantile}, sum by (le) (rate({name}_bucket{{{CHOSEN}}}[5m])))"
                );
                target(&expr, legend)
            })
            .into(),
    }
}

/// The panels of a dashboard, placed from the top.
#[derive(Default)]
struct Panels {
    placed: Vec<Value>,
    x: usize,
    y: usize,
}

/// The height of a panel.
const HEIGHT: usize = 8;

impl Panels {
    fn row(&mut self, title: &str) {
        self.end_line();
        self.add(json!({ "type": "row", "title": title, "collapsed": false, "panels": [] }), COLUMNS, 1);
        self.end_line();
    }

    fn add(&mut self, mut panel: Value, width: usize, height: usize) {
        if self.x + width > COLUMNS {
            self.end_line();
        }
        panel["id"] = (self.placed.len() + 1).into();
        panel["gridPos"] = json!({ "h": height, "w": width, "x": self.x, "y": self.y });
        self.placed.push(panel);
        self.x += width;
    }

    /// Goes on below the last line.
    fn end_line(&mut self) {
        if self.x > 0 {
            let height =
                self.placed.last().map_or(0, |last| last["gridPos"]["h"].as_u64().unwrap_or_default());
            (self.x, self.y) = (0, self.y + usize::try_from(height).unwrap_or_default());
        }
    }
}

fn panel(kind: &str, (title, about): (&str, &str), unit: &str, targets: Vec<Value>) -> Value {
    json!({
        "type": kind, "title": title, "description": about,
        "datasource": { "type": "prometheus", "uid": "${datasource}" },
        "fieldConfig": { "defaults": { "unit": unit }, "overrides": [] },
        "targets": targets,
    })
}

fn dashboard() -> String {
    let mut panels = Panels::default();
    panels.row("Overview");
    for each in OVERVIEW {
        let targets = each.targets.iter().map(|(expr, legend)| target(expr, legend)).collect();
        let height = if each.kind == "stat" { HEIGHT / 2 } else { HEIGHT };
        panels.add(panel(each.kind, (each.title, each.about), each.unit, targets), each.width, height);
    }
    for section in SECTIONS {
        panels.row(section.title);
        for family in section.families {
            let unit = match family.kind {
                Kind::Histogram => "s",
                _ if family.name.ends_with("_bytes") => "bytes",
                _ => "short",
            };
            let about = (family.name, family.help);
            panels.add(panel("timeseries", about, unit, panel_targets(family)), COLUMNS / 3, HEIGHT);
        }
    }
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    let query = "label_values(up{job=\"stagedoor\"}, instance)";
    let dashboard = json!({
        "title": "Stagedoor", "uid": "stagedoor", "schemaVersion": 39, "editable": true, "refresh": "30s",
        "time": { "from": "now-3h", "to": "now" },
        "templating": { "list": [
            { "name": "datasource", "type": "datasource", "query": "prometheus" },
            { "name": "node", "label": "Node", "type": "query", "datasource": source, "query": query,
              "definition": query, "refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
              "current": { "text": "All", "value": "$__all" } },
        ] },
        "panels": panels.placed,
    });
    format!("{dashboard:#}\n")
}

#[test]
fn the_rules_the_pages_and_the_dashboard_are_those_of_the_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, expected) in [
        ("deploy/prometheus/stagedoor.rules.yaml", rules()),
        ("deploy/grafana/stagedoor.json", dashboard()),
        ("docs/alerts.md", pages()),
    ] {
        let file = root.join(path);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
            std::fs::write(&file, &expected).expect("the file is written");
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == expected, "{path} is old: UPDATE_DOCS=1 cargo test -p server --test it alerts");
    }
}

#[test]
fn every_metric_of_an_alert_exists_with_its_labels() {
    let known: BTreeSet<&str> = all().map(|family| family.name).collect();
    for alert in ALERTS {
        let words = alert.expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("stagedoor_") || word.starts_with("process_")) {
            let family = word.strip_suffix("_bucket").unwrap_or(word);
            assert!(known.contains(family), "{} names {word}", alert.name);
        }
        assert!(alert.name.starts_with("Stagedoor") && !alert.look.is_empty(), "{}", alert.name);
    }
    for (expr, _) in OVERVIEW.iter().flat_map(|panel| panel.targets) {
        let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("stagedoor_")) {
            assert!(
                known.contains(word.strip_suffix("_bucket").unwrap_or(word)),
                "the overview names {word}"
            );
        }
    }
    let names: BTreeSet<&str> = ALERTS.iter().map(|alert| alert.name).collect();
    assert_eq!(names.len(), ALERTS.len(), "each alert has a name of its own");
}
