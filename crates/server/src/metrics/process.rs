//! Figures of the operating system about this process. A figure that the system does not report is missing
//! from the metrics, for example outside of Linux.

use std::fs;
use std::path::Path;

/// Ticks of CPU time per second. Linux reports this number to programs on every platform of Rust.
const TICKS_PER_SECOND: f64 = 100.0;

/// A snapshot of the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    /// CPU time in seconds, user and system together.
    pub cpu_seconds: Option<f64>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Open file descriptors: connections, sockets, files.
    pub open_fds: Option<u64>,
    /// Maximum number of open file descriptors.
    pub max_fds: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
}

impl Process {
    /// Reads the figures. Blocks for some microseconds, or milliseconds on a Linux before 6.2 with many
    /// descriptors.
    pub fn now() -> Self {
        let text = |name: &str| fs::read_to_string(Path::new("/proc/self").join(name)).unwrap_or_default();
        let status = text("status");
        Self {
            cpu_seconds: cpu_seconds(&text("stat")),
            resident_bytes: status_line(&status, "VmRSS:").map(|kib| kib * 1024),
            open_fds: open_fds(),
            max_fds: max_fds(&text("limits")),
            threads: status_line(&status, "Threads:"),
        }
    }
}

/// CPU time in seconds. The program's name, in parentheses, may contain any characters. The fields after it
/// are plain.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

fn status_line(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Number of open descriptors. Linux 6.2 and later report it as the size of the folder. In older versions the
/// entries must be counted.
fn open_fds() -> Option<u64> {
    let folder = Path::new("/proc/self/fd");
    match fs::metadata(folder).ok()?.len() {
        // Reading the folder itself opens one descriptor.
        0 => Some((fs::read_dir(folder).ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

fn max_fds(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_read_as_it_writes() {
        let stat = "17 (a ) b) S 1 17 17 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 4 0 99 1 2";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("17 (a"), None);
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t9\n";
        assert_eq!(status_line(status, "VmRSS:"), Some(2048));
        assert_eq!(status_line(status, "Threads:"), Some(9));
        assert_eq!(status_line(status, "Nothing:"), None);
        let limits =
            "Limit     Soft Limit  Hard Limit  Units\nMax open files            1024   4096   files\n";
        assert_eq!(max_fds(limits), Some(1024));
        assert_eq!(max_fds("Max open files   unlimited unlimited files"), None);
    }

    #[test]
    fn on_linux_everything_is_known() {
        let now = Process::now();
        if cfg!(target_os = "linux") {
            assert!(now.resident_bytes.is_some_and(|bytes| bytes > 100_000), "{now:?}");
            assert!(now.open_fds.is_some_and(|fds| fds >= 3), "{now:?}");
            assert!(now.max_fds.is_none_or(|max| max >= 3), "{now:?}");
            assert!(now.threads.is_some_and(|threads| threads >= 1), "{now:?}");
            assert!(now.cpu_seconds.is_some(), "{now:?}");
        }
    }
}
