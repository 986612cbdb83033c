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

/// The expression of a panel: rates of counters, percentiles of histograms, and gauges as they are.
fn panel_targets(family: &Family) -> Vec<Value> {
    let by = |more: &str| {
        let labels: Vec<&str> =
            family.labels.iter().copied().chain([more]).filter(|l| !l.is_empty()).collect();
        labels.join(", ")
    };
    let name = family.name;
    let target =
        |expr: String, legend: &str| json!({ "expr": expr, "legendFormat": legend, "refId": legend });
    match family.kind {
        Kind::Counter => {
            vec![target(format!("sum by ({}) (rate({name}{{job=\"stagedoor\"}}[5m]))", by("instance")), "rate")]
        }
        Kind::Gauge => vec![target(format!("{name}{{job=\"stagedoor\"}}"), "now")],
        Kind::Histogram => [("0.5", "p50"), ("0.99", "p99")]
            .map(|(quantile, legend)| {
                let expr = format!(
                    "histogram_quantile({quantile}, sum by (le) (rate({name}_bucket{{job=\"stagedoor\"}}[5m])))"
                );
                target(expr, legend)
            })
            .into(),
    }
}

fn dashboard() -> String {
    let (mut panels, mut y, mut id) = (Vec::new(), 0, 0);
    for section in SECTIONS {
        id += 1;
        panels.push(json!({ "id": id, "type": "row", "title": section.title, "collapsed": false,
            "gridPos": { "h": 1, "w": 24, "x": 0, "y": y }, "panels": [] }));
        y += 1;
        for (index, family) in section.families.iter().enumerate() {
            id += 1;
            let unit = match family.kind {
                Kind::Histogram => "s",
                _ if family.name.ends_with("_bytes") => "bytes",
                _ => "short",
            };
            panels.push(json!({
                "id": id, "type": "timeseries", "title": family.name, "description": family.help,
                "datasource": { "type": "prometheus", "uid": "${datasource}" },
                "gridPos": { "h": 8, "w": 8, "x": 8 * (index % 3), "y": y + 8 * (index / 3) },
                "fieldConfig": { "defaults": { "unit": unit }, "overrides": [] },
                "targets": panel_targets(family),
            }));
        }
        y += 8 * section.families.len().div_ceil(3);
    }
    let dashboard = json!({
        "title": "Stagedoor", "uid": "stagedoor", "schemaVersion": 39, "editable": true, "refresh": "30s",
        "time": { "from": "now-3h", "to": "now" },
        "templating": { "list": [{ "name": "datasource", "type": "datasource", "query": "prometheus" }] },
        "panels": panels,
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
    let names: BTreeSet<&str> = ALERTS.iter().map(|alert| alert.name).collect();
    assert_eq!(names.len(), ALERTS.len(), "each alert has a name of its own");
}
