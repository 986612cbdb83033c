//! JUnit XML: the report of a run, in the form that CI servers read.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::CommandFailure;

/// Maximum length of a text in the report, in characters. CI servers refuse very large files.
const TEXT_CHARS_MAX: usize = 64 * 1024;

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestSuite {
    /// The name of the run.
    pub name: String,
    /// What was tested, in order.
    pub cases: Vec<TestCase>,
}

/// The report of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCase {
    /// Its name.
    pub name: String,
    /// How long it took.
    pub took: Duration,
    /// Its outcome.
    pub outcome: CaseOutcome,
}

/// The outcome of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed {
        /// The reason in one line.
        message: String,
        /// Everything else that helps.
        detail: String,
    },
    /// It did not run, for this reason.
    Skipped(String),
}

impl TestSuite {
    /// The report as XML.
    pub fn to_xml(&self) -> String {
        let count = |is: fn(&CaseOutcome) -> bool| self.cases.iter().filter(|case| is(&case.outcome)).count();
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{}\"",
            self.cases.len(),
            count(|outcome| matches!(outcome, CaseOutcome::Failed { .. })),
            count(|outcome| matches!(outcome, CaseOutcome::Skipped(_))),
            seconds(self.cases.iter().map(|case| case.took).sum()),
        );
        let name = escaped(&self.name);
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{name}\" {counts}>\n"
        );
        for case in &self.cases {
            let TestCase { name: test, took, outcome } = case;
            let (test, took) = (escaped(test), seconds(*took));
            // Writing to a text cannot fail.
            let _ = write!(xml, "    <testcase classname=\"{name}\" name=\"{test}\" time=\"{took}\"");
            let _ = match outcome {
                CaseOutcome::Passed => writeln!(xml, "/>"),
                CaseOutcome::Failed { message, detail } => {
                    let (message, detail) = (escaped(message), escaped(detail));
                    writeln!(
                        xml,
                        ">\n      <failure message=\"{message}\">{detail}</failure>\n    </testcase>"
                    )
                }
                CaseOutcome::Skipped(reason) => {
                    let reason = escaped(reason);
                    writeln!(xml, ">\n      <skipped message=\"{reason}\"/>\n    </testcase>")
                }
            };
        }
        xml + "  </testsuite>\n</testsuites>\n"
    }

    /// Writes the report into a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), CommandFailure> {
        let failed =
            |error| CommandFailure::Usage(format!("{}: cannot write the report: {error}", path.display()));
        std::fs::write(path, self.to_xml()).map_err(failed)
    }
}

/// Checks the file of `--junit`, before the run that it is about.
///
/// # Errors
/// A sentence: no file can be there.
pub(crate) fn report_file(file: PathBuf) -> Result<PathBuf, String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder.is_dir() {
        _ if file.is_dir() => Err("it is a folder".to_owned()),
        true => Ok(file),
        false => Err(format!("there is no folder {}", folder.display())),
    }
}

fn seconds(span: Duration) -> String {
    format!("{:.3}", span.as_secs_f64())
}

/// The text for an attribute or an element. Characters that XML 1.0 forbids become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars().take(TEXT_CHARS_MAX) {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Readers replace bare line ends in an attribute by spaces.
            '\n' | '\r' | '\t' => _ = write!(out, "&#{};", u32::from(letter)),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, ms: u64, outcome: CaseOutcome) -> TestCase {
        TestCase { name: name.to_owned(), took: Duration::from_millis(ms), outcome }
    }

    #[test]
    fn a_report_counts_and_lists_its_tests() {
        let failed = CaseOutcome::Failed { message: "a < b".to_owned(), detail: "1 & 2\n\u{7}".to_owned() };
        let suite = TestSuite {
            name: "a \"suite\"".to_owned(),
            cases: vec![
                case("one", 1_500, CaseOutcome::Passed),
                case("하늘", 0, failed),
                case("three", 2, CaseOutcome::Skipped("not asked".to_owned())),
            ],
        };
        let counts = r#"tests="3" failures="1" errors="0" skipped="1" time="1.502""#;
        let expected = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites {counts}>
  <testsuite name="a &quot;suite&quot;" {counts}>
    <testcase classname="a &quot;suite&quot;" name="one" time="1.500"/>
    <testcase classname="a &quot;suite&quot;" name="하늘" time="0.000">
      <failure message="a &lt; b">1 &amp; 2&#10;{}</failure>
    </testcase>
    <testcase classname="a &quot;suite&quot;" name="three" time="0.002">
      <skipped message="not asked"/>
    </testcase>
  </testsuite>
</testsuites>
"#,
            '\u{fffd}'
        );
        assert_eq!(suite.to_xml(), expected);
    }
}
