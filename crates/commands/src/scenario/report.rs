//! The report of a run: a line for each step, JSON, and JUnit.

use std::time::Duration;

use serde_json::{Value, json};

use super::runner::StepFailure;
use crate::junit::{CaseOutcome, TestCase, TestSuite};

/// Maximum length of a failure in a summary, in characters.
const FAILURE_CHARS_MAX: usize = 500;

/// The report of a run.
#[derive(Debug)]
pub struct ScenarioReport {
    /// The name of the scenario.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// The steps that were reached.
    pub steps: Vec<StepReport>,
    /// Number of steps that were not reached.
    pub unreached: usize,
    /// Why the sandbox could not be restored.
    pub unrestored: Option<String>,
}

/// The report of a step.
#[derive(Debug)]
pub struct StepReport {
    /// Its line in the file.
    pub line: u64,
    /// The step in words.
    pub words: String,
    /// Within a repetition: the number of the turn, and of all turns.
    pub turn: Option<(u32, u32)>,
    /// How long it took.
    pub took: Duration,
    /// Its outcome.
    pub outcome: StepOutcome,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum StepOutcome {
    /// It prints a heading only.
    Said,
    /// It is done. The text is worth saying.
    Done(String),
    /// It was left out.
    LeftOut,
    /// It failed.
    Failed(StepFailure),
}

/// Why a step was left out.
const LEFT_OUT: &str = "no session was connected";

impl StepReport {
    /// The lines for a terminal; `None` for a later turn of a repetition that went well. A heading may differ
    /// from turn to turn.
    pub fn lines(&self, source: &str) -> Option<String> {
        let Self { line, words, turn, took, outcome } = self;
        let later = turn.is_some_and(|(number, _)| number > 1);
        let turns = turn.map(|(_, turns)| format!(" × {turns}")).unwrap_or_default();
        let ms = took.as_millis();
        match outcome {
            StepOutcome::Failed(StepFailure { message, nearest, .. }) => {
                let turn = turn.map(|(number, turns)| format!(" (turn {number} of {turns})"));
                let mut text = format!("  FAILED  {words}{}\n", turn.unwrap_or_default());
                text.push_str(&format!("          {source}, line {line}: {message}\n"));
                nearest.iter().for_each(|miss| text.push_str(&format!("          nearest: {miss}\n")));
                Some(text)
            }
            StepOutcome::Said => Some(format!("{words}\n")),
            _ if later => None,
            StepOutcome::Done(about) if about.is_empty() => {
                Some(format!("  ok      {words}{turns}  {ms} ms\n"))
            }
            StepOutcome::Done(about) => Some(format!("  ok      {words}{turns}  {ms} ms  {about}\n")),
            StepOutcome::LeftOut => Some(format!("  -       {words}{turns}  {LEFT_OUT}\n")),
        }
    }

    fn json(&self) -> Value {
        let (word, about, nearest) = match &self.outcome {
            StepOutcome::Said => ("said", "", Vec::new()),
            StepOutcome::Done(about) => ("done", about.as_str(), Vec::new()),
            StepOutcome::LeftOut => ("leftOut", LEFT_OUT, Vec::new()),
            StepOutcome::Failed(failure) => ("failed", failure.message.as_str(), failure.nearest.clone()),
        };
        let turn = self.turn.map(|(number, _)| number);
        json!({
            "line": self.line, "step": self.words, "turn": turn, "outcome": word, "about": about,
            "nearest": nearest, "tookMs": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        })
    }

    fn case(&self) -> TestCase {
        let turn = self.turn.map(|(number, _)| format!(", turn {number}")).unwrap_or_default();
        let outcome = match &self.outcome {
            StepOutcome::Said | StepOutcome::Done(_) => CaseOutcome::Passed,
            StepOutcome::LeftOut => CaseOutcome::Skipped(LEFT_OUT.to_owned()),
            StepOutcome::Failed(failure) => {
                CaseOutcome::Failed { message: failure.message.clone(), detail: failure.nearest.join("\n") }
            }
        };
        TestCase { name: format!("line {}{turn}: {}", self.line, self.words), took: self.took, outcome }
    }
}

impl ScenarioReport {
    /// The step that failed.
    pub fn failure(&self) -> Option<(&StepReport, &StepFailure)> {
        self.steps.iter().find_map(|step| match &step.outcome {
            StepOutcome::Failed(failure) => Some((step, failure)),
            _ => None,
        })
    }

    /// Whether everything went well.
    pub fn is_good(&self) -> bool {
        self.failure().is_none() && self.unreached == 0 && self.unrestored.is_none()
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        json!({
            "scenario": self.name, "source": self.source, "passed": self.is_good(),
            "steps": self.steps.iter().map(StepReport::json).collect::<Vec<_>>(),
            "unreached": self.unreached, "unrestored": self.unrestored,
        })
    }

    /// The run in short, as the sandbox keeps it.
    pub fn summary(&self) -> Value {
        let steps = self.steps.iter().filter(|step| !matches!(step.outcome, StepOutcome::Said));
        let took: Duration = self.steps.iter().map(|step| step.took).sum();
        let failure = self.failure().map(|(step, failure)| {
            let text = format!("line {}: {}: {}", step.line, step.words, failure.message);
            text.chars().take(FAILURE_CHARS_MAX).collect::<String>()
        });
        json!({
            "name": self.name, "passed": self.is_good(), "steps": steps.count(),
            "durationMs": took.as_millis() as u64, "failure": failure,
        })
    }

    /// The report as JUnit.
    pub fn junit(&self) -> TestSuite {
        let said = |step: &&StepReport| !matches!(step.outcome, StepOutcome::Said);
        let mut cases: Vec<TestCase> = self.steps.iter().filter(said).map(StepReport::case).collect();
        let further = |name: &str, outcome| TestCase { name: name.to_owned(), took: Duration::ZERO, outcome };
        if self.unreached > 0 {
            let reason = format!("{} steps were not reached", self.unreached);
            cases.push(further("the steps after it", CaseOutcome::Skipped(reason)));
        }
        if let Some(message) = &self.unrestored {
            let outcome = CaseOutcome::Failed { message: message.clone(), detail: String::new() };
            cases.push(further("restore", outcome));
        }
        TestSuite { name: format!("scenario {}", self.name), cases }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(turn: Option<(u32, u32)>, outcome: StepOutcome) -> StepReport {
        StepReport {
            line: 7,
            words: "trigger chat".to_owned(),
            turn,
            took: Duration::from_millis(3),
            outcome,
        }
    }

    fn failed() -> StepOutcome {
        let nearest = vec!["a record".to_owned()];
        StepOutcome::Failed(StepFailure { message: "missed".to_owned(), nearest, is_unreachable: false })
    }

    #[test]
    fn a_step_is_a_line_and_a_repetition_is_one() {
        for (turn, outcome, expected) in [
            (None, StepOutcome::Done(String::new()), Some("  ok      trigger chat  3 ms\n")),
            (Some((1, 5)), StepOutcome::Done("x".to_owned()), Some("  ok      trigger chat × 5  3 ms  x\n")),
            (Some((2, 5)), StepOutcome::Done(String::new()), None),
            (None, StepOutcome::LeftOut, Some("  -       trigger chat  no session was connected\n")),
            (None, StepOutcome::Said, Some("trigger chat\n")),
            (Some((2, 5)), StepOutcome::Said, Some("trigger chat\n")),
            (
                Some((2, 5)),
                failed(),
                Some(
                    "  FAILED  trigger chat (turn 2 of 5)\n          a.yaml, line 7: missed\n          nearest: a record\n",
                ),
            ),
        ] {
            assert_eq!(step(turn, outcome).lines("a.yaml").as_deref(), expected);
        }
    }

    #[test]
    fn a_report_has_its_failure_in_every_form() {
        let report = ScenarioReport {
            name: "a".to_owned(),
            source: "a.yaml".to_owned(),
            steps: vec![step(None, StepOutcome::Done(String::new())), step(None, failed())],
            unreached: 2,
            unrestored: None,
        };
        assert!(!report.is_good());
        let json = report.json();
        assert_eq!((&json["passed"], &json["steps"][1]["outcome"]), (&json!(false), &json!("failed")));
        let xml = report.junit().to_xml();
        assert!(xml.contains("failures=\"1\"") && xml.contains("2 steps were not reached"), "{xml}");
    }
}
