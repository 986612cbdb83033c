//! The retention table: as `check-config`, the operator's page and `docs/operating.md` show it.
//! `UPDATE_DOCS=1 cargo test -p server --test it retention` renews the table of the page.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use domain::limits::DAY_MS;
use domain::retention::RETENTION_TABLE;

const BEGIN: &str = "<!-- retention: this table is generated from crates/domain/src/retention.rs -->\n";
const END: &str = "<!-- end of retention -->\n";

fn table() -> String {
    let mut table =
        String::from("| Name | Default, days | Lowest | Counts from | Needed by |\n|---|---|---|---|---|\n");
    for rule in &RETENTION_TABLE {
        let (default, lowest) = (rule.default_ms / DAY_MS, rule.lowest_ms / DAY_MS);
        let _ = writeln!(
            table,
            "| `{}` | {default} | {lowest} | {} | {} |",
            rule.name, rule.counts_from, rule.needed_by
        );
    }
    table
}

#[test]
fn the_documented_table_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
    let page = std::fs::read_to_string(&path).expect("docs/operating.md");
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the table");
    let (found, after) = rest.split_once(END).expect("the end of the table");
    let expected = format!("\n{}\n", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, [before, BEGIN, &expected, END, after].concat()).expect("it can be written");
        return;
    }
    assert_eq!(found, expected, "UPDATE_DOCS=1 cargo test -p server --test it retention");
}

fn check_config(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stagedoor"));
    command.arg("check-config").args(arguments);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("STAGEDOOR_"))
    {
        command.env_remove(name);
    }
    let output = command.output().expect("it runs");
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).expect("UTF-8"))
}

#[test]
fn check_config_shows_the_times_and_refuses_what_cannot_be() {
    let (is_good, shown) = check_config(&[]);
    assert!(is_good, "{shown}");
    for rule in &RETENTION_TABLE {
        let days = format!("{} days", rule.default_ms / DAY_MS);
        let is_shown = shown.lines().any(|line| line.contains(rule.name) && line.ends_with(&days));
        assert!(is_shown, "{} in {shown}", rule.name);
    }
    let (is_good, shown) = check_config(&["--json", "--retain", "chat-messages=3"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert!(is_good && shown["retentionDays"]["chat-messages"] == 3, "{shown}");
    assert_eq!(shown["retentionDays"]["donations"], 400, "{shown}");
    for (retain, why) in [
        ("ended-sessions=30", "ended-sessions must be 90 to 3650 days"),
        ("chats=3", "chats is not known: the names are chat-messages"),
        ("chat-messages", "chat-messages is not NAME=DAYS"),
    ] {
        let (is_good, shown) = check_config(&["--retain", retain]);
        assert!(!is_good && shown.contains(why), "{retain}: {shown}");
    }
}
