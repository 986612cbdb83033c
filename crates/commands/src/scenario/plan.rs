//! The steps of a scenario as one list, with each repetition written out, and in words.

use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use super::file::{ClockStep, ScenarioFile, StepAction};
use super::values::plain;

/// Maximum number of steps of a run.
pub const STEPS_MAX: usize = 10_000;
/// Maximum length of a step in words, in characters.
const WORDS_CHARS_MAX: usize = 96;

/// A step of a run.
#[derive(Clone, Copy, Debug)]
pub struct PlannedStep<'a> {
    /// Its line in the file.
    pub line: u64,
    /// What it does.
    pub action: &'a StepAction,
    /// Within a repetition: the number of the turn, and of all turns.
    pub turn: Option<(u32, u32)>,
    /// Whether it runs only if a session is connected.
    pub needs_session: bool,
}

/// The steps of a file.
///
/// # Errors
/// The file has too many steps: line and column, and the rule.
pub fn plan(file: &ScenarioFile) -> Result<Vec<PlannedStep<'_>>, String> {
    let mut steps = Vec::new();
    add(&mut steps, &file.steps, None, false)?;
    Ok(steps)
}

fn add<'a>(
    steps: &mut Vec<PlannedStep<'a>>,
    actions: &'a [Spanned<StepAction>],
    turn: Option<(u32, u32)>,
    needs_session: bool,
) -> Result<(), String> {
    for Spanned { value: action, referenced, .. } in actions {
        let (line, column) = (referenced.line(), referenced.column());
        match action {
            StepAction::Repeat(repeat) => {
                for number in 1..=repeat.times {
                    add(steps, &repeat.steps, Some((number, repeat.times)), needs_session)?;
                }
            }
            StepAction::IfConnected(actions) => add(steps, actions, turn, true)?,
            action => steps.push(PlannedStep { line, action, turn, needs_session }),
        }
        if steps.len() > STEPS_MAX {
            return Err(format!("{line}:{column}: a scenario must have at most {STEPS_MAX} steps"));
        }
    }
    Ok(())
}

/// A step in words.
pub fn words(action: &StepAction) -> String {
    let words = match action {
        StepAction::Say(text) => text.clone(),
        StepAction::Trigger(step) => format!("trigger {}{}", step.kind, fields(&step.fields)),
        StepAction::Clock(ClockStep { advance, to, until, mode, rate, .. }) => {
            let given = [("advance", advance), ("to", to), ("until", until), ("mode", mode)];
            let given = given.into_iter().find_map(|(name, value)| Some((name, value.as_deref()?)));
            let (name, value) = given.unwrap_or_default();
            let rate = rate.map(|rate| format!(", {rate} times as fast")).unwrap_or_default();
            format!("clock {name} {value}{rate}")
        }
        StepAction::Fault(step) => format!("fault{}{}", fields(&step.effect), fields(&step.matching)),
        StepAction::RemoveFaults => "remove the fault rules".to_owned(),
        StepAction::Token(step) => format!("token as {}", step.name),
        StepAction::Call(step) => format!("call {}", step.request),
        StepAction::Expect(step) => {
            let kind = step.kind.as_deref().unwrap_or("record");
            let within = step.within.iter().map(|within| format!(" within {within}")).collect::<String>();
            let most = step.at_most.map(|most| format!("at most {most} ")).unwrap_or_default();
            format!("expect {most}{kind}{}{within}", fields(&step.conditions))
        }
        StepAction::Wait(span) => format!("wait {span}"),
        StepAction::Repeat(step) => format!("repeat {} times", step.times),
        StepAction::IfConnected(_) => "if a session is connected".to_owned(),
    };
    match words.char_indices().nth(WORDS_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

fn fields(fields: &Map<String, Value>) -> String {
    fields.iter().map(|(name, value)| format!(" {name}={}", plain(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    #[test]
    fn repetitions_are_written_out() {
        let text = "scenario: a\nsteps:\n- repeat:\n    times: 2\n    steps:\n    - say: one\n    \
                    - if-connected: [ say: two ]\n- clock: { advance: 1d }\n";
        let file = parse("a.yaml", text).expect("a scenario");
        let steps = plan(&file).expect("a plan");
        let shown: Vec<_> =
            steps.iter().map(|step| (step.line, words(step.action), step.turn, step.needs_session)).collect();
        let step = |line, words: &str, turn, needs| (line, words.to_owned(), turn, needs);
        let expected = [
            step(6, "one", Some((1, 2)), false),
            step(7, "two", Some((1, 2)), true),
            step(6, "one", Some((2, 2)), false),
            step(7, "two", Some((2, 2)), true),
            step(8, "clock advance 1d", None, false),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_scenario_has_an_end() {
        let text = "scenario: a\nsteps:\n- repeat: { times: 20000, steps: [ say: a ] }\n";
        let file = parse("a.yaml", text).expect("a scenario");
        let why = plan(&file).expect_err("too many steps");
        assert!(why.starts_with("3:") && why.contains("at most"), "{why}");
    }
}
