//! The report of the doctor: text, JSON and JUnit.

use std::time::Duration;

use serde_json::{Value, json};

use super::finding::{CheckOutcome, Finding};
use crate::junit::{CaseOutcome, TestCase, TestSuite};

/// The report of one check.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The name of the check.
    pub name: &'static str,
    /// What was done to the bot.
    pub about: &'static str,
    /// The outcome.
    pub outcome: CheckOutcome,
    /// The last lines that the bot printed.
    pub output: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl CheckReport {
    /// The lines for a terminal.
    pub fn text(&self) -> String {
        let Self { name, about, outcome, output, took } = self;
        let seconds = took.as_secs_f64();
        match outcome {
            CheckOutcome::Passed(did) => format!("  passed  {name:<18} {did}  ({seconds:.1} s)\n"),
            CheckOutcome::NotApplicable(why) => format!("  -       {name:<18} does not apply: {why}\n"),
            CheckOutcome::Failed(findings) => {
                let mut text = format!("  FAILED  {name:<18} {about}  ({seconds:.1} s)\n");
                findings.iter().for_each(|finding| text.push_str(&details(finding)));
                if !output.is_empty() {
                    text.push_str("          the bot's last lines:\n");
                    output.iter().for_each(|line| text.push_str(&format!("            {line}\n")));
                }
                text
            }
        }
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let Self { name, about, outcome, output, took } = self;
        let finding = |finding: &Finding| {
            json!({
                "misdeed": finding.misdeed.name(), "saw": finding.saw, "change": finding.misdeed.advice(),
                "records": finding.records,
            })
        };
        let (verdict, did, findings) = match outcome {
            CheckOutcome::Passed(did) => ("passed", did.as_str(), Vec::new()),
            CheckOutcome::NotApplicable(why) => ("notApplicable", why.as_str(), Vec::new()),
            CheckOutcome::Failed(findings) => ("failed", "", findings.iter().map(finding).collect()),
        };
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        json!({
            "check": name, "about": about, "verdict": verdict, "did": did, "findings": findings,
            "output": output, "tookMs": took_ms,
        })
    }

    /// The report as a test of JUnit.
    pub fn case(&self) -> TestCase {
        let outcome = match &self.outcome {
            CheckOutcome::Passed(_) => CaseOutcome::Passed,
            CheckOutcome::NotApplicable(why) => CaseOutcome::Skipped(why.clone()),
            CheckOutcome::Failed(findings) => {
                let message = findings.iter().map(|finding| finding.misdeed.name()).collect::<Vec<_>>();
                CaseOutcome::Failed {
                    message: message.join(", "),
                    detail: findings.iter().map(details).chain(self.output.iter().cloned()).collect(),
                }
            }
        };
        TestCase { name: self.name.to_owned(), took: self.took, outcome }
    }
}

/// A finding with its records, and what to change.
fn details(finding: &Finding) -> String {
    let Finding { misdeed, saw, records } = finding;
    let mut text = format!("          {}: {saw}\n", misdeed.name());
    records.iter().for_each(|record| text.push_str(&format!("            {record}\n")));
    text.push_str(&format!("          change: {}\n", misdeed.advice()));
    text
}

/// The verdict in one line, and whether it is good.
pub fn verdict(reports: &[CheckReport]) -> (String, bool) {
    let count = |is: fn(&CheckOutcome) -> bool| reports.iter().filter(|report| is(&report.outcome)).count();
    let passed = count(|outcome| matches!(outcome, CheckOutcome::Passed(_)));
    let failed = count(|outcome| matches!(outcome, CheckOutcome::Failed(_)));
    let others = reports.len() - passed - failed;
    let text = format!("doctor: {passed} checks passed, {failed} failed, {others} do not apply");
    (text, failed == 0)
}

/// The reports as one JSON object.
pub fn json(reports: &[CheckReport]) -> Value {
    let (verdict, is_good) = verdict(reports);
    let checks = reports.iter().map(CheckReport::json).collect::<Vec<_>>();
    json!({ "passed": is_good, "verdict": verdict, "checks": checks })
}

/// The reports as JUnit.
pub fn junit(reports: &[CheckReport]) -> TestSuite {
    TestSuite { name: "stagedoor doctor".to_owned(), cases: reports.iter().map(CheckReport::case).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Misdeed;
    use super::*;

    fn report(outcome: CheckOutcome) -> CheckReport {
        let output = vec!["bye".to_owned()];
        CheckReport {
            name: "restart",
            about: "it restarts",
            outcome,
            output,
            took: Duration::from_millis(1_500),
        }
    }

    #[test]
    fn a_report_says_what_the_bot_did_and_what_to_change() {
        let failed = report(CheckOutcome::failed(Misdeed::GaveUp, "it stopped"));
        for part in ["FAILED  restart", "gave-up: it stopped", "change: Repeat the call", "bye"] {
            assert!(failed.text().contains(part), "{}", failed.text());
        }
        let passed = report(CheckOutcome::Passed("it went on".to_owned()));
        assert_eq!(passed.text(), "  passed  restart            it went on  (1.5 s)\n");
        let skipped = report(CheckOutcome::NotApplicable("no session".to_owned()));
        let reports = [failed, passed, skipped];
        let (text, is_good) = verdict(&reports);
        assert_eq!((text.as_str(), is_good), ("doctor: 1 checks passed, 1 failed, 1 do not apply", false));
        assert_eq!(json(&reports)["checks"][0]["findings"][0]["misdeed"], "gave-up");
        assert!(junit(&reports).to_xml().contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
    }
}
