//! `docs/close-reasons.md` lists every reason, with its code and its description.

use socketio::CloseReason;

/// The sides that may have ended a session.
const DOING: [&str; 4] = ["client", "network", "operator", "service"];

#[test]
fn the_documentation_lists_every_reason_in_order() {
    let page = include_str!("../../../docs/close-reasons.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let listed: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(listed, CloseReason::ALL.iter().map(|reason| reason.as_str()).collect::<Vec<_>>());
    for (row, reason) in rows.iter().zip(CloseReason::ALL) {
        let [_, code, when, what_to_do, doing] = row[..] else { panic!("{row:?}") };
        assert_eq!(code, reason.close_code().to_string(), "{reason}");
        assert_eq!(when, reason.description(), "{reason}");
        assert!(what_to_do.ends_with('.'), "{reason}");
        assert!(DOING.contains(&doing), "{reason}: {doing}");
    }
}
