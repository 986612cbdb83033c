//! The close reasons of sessions by their names.

use gateway::CloseReason;

use super::answer::Problem;

/// The close reason of a name.
pub(super) fn close_reason(field: &str, name: &str) -> Result<CloseReason, Problem> {
    CloseReason::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = CloseReason::ALL.iter().map(|reason| reason.as_str()).collect();
        Problem::invalid(field, format!("must be a close reason: {}", names.join(", ")))
    })
}
