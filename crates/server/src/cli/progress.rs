//! The progress of long work, on stderr.

use std::io::{IsTerminal, Write};

use backup::Phase;
use service::Clock;

/// Between two lines of the progress on a terminal, in milliseconds: the line is written anew.
const ON_A_TERMINAL_MS: i64 = 100;
/// Between two lines in a log, in milliseconds.
const IN_A_LOG_MS: i64 = 10_000;

/// Writes how far the work is. On a terminal one line is written anew; else a line is written every 10 s.
pub(super) struct ProgressLines {
    clock: Clock,
    is_terminal: bool,
    is_quiet: bool,
    next_ms: i64,
    has_line: bool,
}

impl ProgressLines {
    pub fn new(is_quiet: bool) -> Self {
        let clock = Clock::system();
        let is_terminal = std::io::stderr().is_terminal();
        let next_ms = clock.now().as_millis() + if is_terminal { 0 } else { IN_A_LOG_MS };
        Self { clock, is_terminal, is_quiet, next_ms, has_line: false }
    }

    /// Reports a part of the work, if a report is due.
    pub fn report(&mut self, phase: Phase, name: &str, done: u64) {
        if self.is_quiet {
            return;
        }
        let now_ms = self.clock.now().as_millis();
        if now_ms < self.next_ms {
            return;
        }
        let line = line(phase, name, done);
        // A closed stderr is no reason to stop.
        let _ = if self.is_terminal {
            self.has_line = true;
            write!(std::io::stderr(), "\r\x1b[K{line}").and_then(|()| std::io::stderr().flush())
        } else {
            writeln!(std::io::stderr(), "{line}")
        };
        self.next_ms = now_ms + if self.is_terminal { ON_A_TERMINAL_MS } else { IN_A_LOG_MS };
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        if self.has_line {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(phase: Phase, name: &str, done: u64) -> String {
    match phase {
        Phase::Pages => format!("copying the data file: {} MiB", done * PAGE_BYTES / MIB),
        Phase::Rows => format!("copying {name}: {done} rows"),
        Phase::Compare => format!("comparing {name}: {done} rows"),
        Phase::Check => format!("checking {name}: pages, indexes, foreign keys"),
        Phase::Upload => format!("uploading {name}: {} MiB", done / MIB),
        Phase::Download => format!("downloading {name}: {} MiB", done / MIB),
        Phase::Segments => format!("applying segments: {done}"),
        Phase::Bytes => format!("reading {name}: {} MiB", done / MIB),
    }
}

/// SQLite's page.
const PAGE_BYTES: u64 = 4_096;
const MIB: u64 = 1 << 20;
