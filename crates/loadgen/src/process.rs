//! The figures of a process in `/proc/PID`.

use std::fs;

use serde::Serialize;

/// Clock ticks per second in `/proc/PID/stat`. Linux always reports 100 to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// The user-space memory of a process, in bytes, without the kernel's memory for its sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    /// Resident pages, including files and shared pages.
    pub(crate) rss: u64,
    /// The anonymous pages among them: heap and stacks.
    pub(crate) anonymous: u64,
    /// Resident pages, each divided by the number of processes that share it. Reading them needs access to
    /// `smaps_rollup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pss: Option<u64>,
}

impl Memory {
    /// The memory of `pid` now; `None` if there is no such process.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let pss = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
            .ok()
            .and_then(|rollup| kilobytes(&rollup, "Pss:"));
        Some(Self { rss: kilobytes(&status, "VmRSS:")?, anonymous: kilobytes(&status, "RssAnon:")?, pss })
    }
}

/// The value of a `Name:   123 kB` line, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1_024)
}

/// CPU seconds of `pid`, user and system together; `None` if there is no such process.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    cpu_in_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// CPU seconds of the threads of `pid` whose names have this prefix; `None` if there are none.
pub(crate) fn cpu_seconds_of_threads(pid: u32, prefix: &str) -> Option<f64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let cpu = threads.filter_map(|thread| {
        // A thread that has ended cannot be read.
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        if !name.starts_with(prefix) {
            return None;
        }
        cpu_in_stat(&fs::read_to_string(thread.path().join("stat")).ok()?)
    });
    cpu.reduce(|sum, seconds| sum + seconds)
}

/// The second field of `stat` is a name in parentheses that may contain anything, so fields are counted after
/// it.
fn cpu_in_stat(stat: &str) -> Option<f64> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
    let user = fields.next()?.parse::<u64>().ok()?;
    let system = fields.next()?.parse::<u64>().ok()?;
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

/// The limits of open files of a process, including sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenFiles {
    /// The current limit.
    pub(crate) soft: u64,
    /// The limit up to which `ulimit -n` may raise it.
    pub(crate) hard: u64,
}

impl OpenFiles {
    /// The limits of `pid` (`self` for this process).
    pub(crate) fn of(pid: &str) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
    }

    fn read(limits: &str) -> Option<Self> {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let mut fields = line.split_ascii_whitespace().map(|field| match field {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        });
        Some(Self { soft: fields.next()??, hard: fields.next()?? })
    }

    /// The advice if `needed` exceeds the limit.
    pub(crate) fn advice(self, whose: &str, needed: u64) -> Option<String> {
        let Self { soft, hard } = self;
        if needed <= soft {
            None
        } else if needed <= hard {
            Some(format!(
                "{whose} may open {soft} files, and {needed} are needed: run `ulimit -n {needed}` in the shell first"
            ))
        } else {
            Some(format!(
                "{whose} may open {soft} files ({hard} at most), and {needed} are needed: open fewer sessions, or have \
                 the hard limit of open files raised"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_parsed_after_any_process_name() {
        let stat =
            |name: &str| format!("42 ({name}) S 1 42 42 0 -1 4194560 900 0 0 0 250 75 3 4 20 0 9 0 1 2 3");
        for name in ["stagedoor", "a b", "a) 1 2 (b", ""] {
            assert_eq!(cpu_in_stat(&stat(name)), Some(3.25), "{name}");
        }
        assert_eq!(cpu_in_stat("42 (x) S 1"), None);
        assert_eq!(cpu_in_stat(""), None);
    }

    #[test]
    fn memory_lines_are_read_in_kilobytes() {
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nRssAnon:\t 1 kB\nVmRSSx: 3 kB\n";
        assert_eq!(kilobytes(status, "VmRSS:"), Some(2_097_152));
        assert_eq!(kilobytes(status, "RssAnon:"), Some(1_024));
        assert_eq!(kilobytes(status, "Pss:"), None);
        assert_eq!(kilobytes("Pss: many kB", "Pss:"), None);
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = std::process::id();
        assert!(Memory::of(pid).is_some_and(|memory| memory.rss > 0 && memory.anonymous <= memory.rss));
        assert!(cpu_seconds(pid).is_some());
        assert!(cpu_seconds_of_threads(pid, "").is_some());
        assert_eq!(cpu_seconds_of_threads(pid, "no thread's name"), None);
        assert!(OpenFiles::of("self").is_some_and(|files| files.soft <= files.hard));
        assert_eq!(Memory::of(u32::MAX), None);
    }

    #[test]
    fn the_limit_of_open_files_and_what_to_do_about_it() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 20000                files\n";
        let files = OpenFiles::read(limits).unwrap();
        assert_eq!(files, OpenFiles { soft: 1_024, hard: 20_000 });
        assert_eq!(files.advice("this program", 1_024), None);
        assert!(files.advice("this program", 10_100).unwrap().contains("ulimit -n 10100"));
        assert!(files.advice("this program", 20_001).unwrap().contains("hard limit"));
        let unlimited = OpenFiles::read("Max open files  unlimited unlimited files").unwrap();
        assert_eq!(unlimited.advice("x", 1 << 40), None);
    }
}
