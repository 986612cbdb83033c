//! The hosts file: puts the fixed hosts of a sandbox in front of it, between two markers, and takes them
//! back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// The hosts file of the system.
pub const DEFAULT_PATH: &str = "/etc/hosts";
/// Maximum length of a hosts file, in bytes. Lists of blocked hosts have a few megabytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The program in a marker.
const PROGRAM: &str = "stagedoor";

/// Maximum length of a host name, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// Maximum length of a part of a host name, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// A host and its address. The host is a name, whoever gave it: a line can hold no other line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsLine {
    address: IpAddr,
    host: String,
}

impl HostsLine {
    /// The line of a host.
    ///
    /// # Errors
    /// A sentence: it is no host name.
    pub fn new(host: &str, address: IpAddr) -> Result<Self, String> {
        match is_host_name(host) {
            true => Ok(Self { address, host: host.to_owned() }),
            false => Err(format!("{host:?} is no host name")),
        }
    }

    /// The name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The lines of hosts that have one address.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn all(hosts: &[String], address: IpAddr) -> Result<Vec<Self>, String> {
        hosts.iter().map(|host| Self::new(host, address)).collect()
    }
}

/// A fixed host: its name, and its address on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedName {
    /// The name, in lower case.
    pub host: String,
    /// The address. If not given, a loopback address that reaches the listener.
    pub address: Option<IpAddr>,
}

impl FromStr for FixedName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, address) = match text.split_once('=') {
            None => (text, None),
            Some((host, address)) => {
                let address = address.parse().map_err(|_| format!("{address} is no IP address"))?;
                (host, Some(address))
            }
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if host.parse::<IpAddr>().is_ok() {
            return Err("it must be a host name, not an address".to_owned());
        }
        if !is_host_name(&host) {
            return Err("it must be a host name, as in api.example, or with its address, as in \
                        api.example=127.0.0.1"
                .to_owned());
        }
        Ok(Self { host, address })
    }
}

/// Checks the text of a fixed host.
///
/// # Errors
/// A sentence: the rule.
pub(crate) fn fixed_host(text: &str) -> Result<String, String> {
    text.parse::<FixedName>().map(|_| text.to_owned())
}

/// Whether a text is the name of a host, in ASCII.
pub fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let edges = label.starts_with('-') || label.ends_with('-');
        let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        (1..=LABEL_BYTES_MAX).contains(&label.len()) && plain && !edges
    };
    host.len() <= NAME_BYTES_MAX && host.split('.').all(is_label)
}

impl std::fmt::Display for HostsLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.address, self.host)
    }
}

/// The content with the lines of a process in front, where they win over other lines for the same host.
pub fn with_lines(content: &[u8], pid: u32, lines: &[HostsLine]) -> Vec<u8> {
    let mut out = format!("# {PROGRAM} {pid} begin: the sandbox takes these lines back when it ends\n");
    for line in lines {
        out.push_str(&format!("{line}\n"));
    }
    out.push_str(&format!("# {PROGRAM} {pid} end\n"));
    [out.as_bytes(), content].concat()
}

/// The content without the lines of the processes that `ended` names. A marker without its partner is kept.
pub fn without_lines(content: &[u8], ended: impl Fn(u32) -> bool) -> Vec<u8> {
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut out, mut at) = (Vec::with_capacity(content.len()), 0);
    while at < lines.len() {
        let block = match marker(lines[at]) {
            Some((pid, true)) if ended(pid) => {
                // A second beginning means that the end of the first one is lost.
                let next = lines[at + 1..].iter().position(|line| marker(line).is_some());
                next.filter(|next| marker(lines[at + 1 + next]) == Some((pid, false)))
            }
            _ => None,
        };
        match block {
            Some(length) => at += length + 2,
            None => {
                out.extend_from_slice(lines[at]);
                at += 1;
            }
        }
    }
    out
}

/// The process of a marker, and whether the marker is a beginning.
fn marker(line: &[u8]) -> Option<(u32, bool)> {
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    if (words.next(), words.next()) != (Some("#"), Some(PROGRAM)) {
        return None;
    }
    let pid = words.next()?.parse().ok()?;
    match words.next()? {
        "begin:" => Some((pid, true)),
        "end" => Some((pid, false)),
        _ => None,
    }
}

/// The lines of this process in a hosts file. They are taken back when this value is dropped.
#[derive(Debug)]
pub struct WrittenHosts {
    path: PathBuf,
}

impl WrittenHosts {
    /// Writes the lines of this process.
    ///
    /// # Errors
    /// A sentence that says what to do instead.
    pub fn write(path: &Path, lines: &[HostsLine]) -> Result<Self, String> {
        let pid = std::process::id();
        let edited = edit(path, |content| {
            with_lines(&without_lines(content, |of| of == pid || has_ended(of)), pid, lines)
        });
        edited.map_err(|error| {
            let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
            format!(
                "--write-hosts: cannot write {}: {error}. Start it as root, or use `stagedoor run`, which needs no \
                 hosts file, or add these lines yourself:{lines}",
                path.display()
            )
        })?;
        Ok(Self { path: path.to_owned() })
    }
}

impl Drop for WrittenHosts {
    fn drop(&mut self) {
        let pid = std::process::id();
        if let Err(error) = edit(&self.path, |content| without_lines(content, |of| of == pid)) {
            crate::err_line!(
                "{PROGRAM}: cannot take the lines back from {}: {error}. The next `stagedoor dev` does",
                self.path.display()
            );
        }
    }
}

/// Takes back the lines of processes that were killed. Returns whether there were any.
///
/// # Errors
/// The file has such lines, and cannot be written.
pub fn take_back_stale(path: &Path) -> io::Result<bool> {
    let without = |content: &[u8]| without_lines(content, has_ended);
    // A file that cannot be read has no lines of ours.
    let Ok(content) = File::open(path).and_then(|file| read(&file)) else { return Ok(false) };
    if without(&content) == content {
        return Ok(false);
    }
    edit(path, without)?;
    Ok(true)
}

/// Replaces the content in place, because a container mounts this one file, and a rename would lose its
/// owner.
fn edit(path: &Path, change: impl FnOnce(&[u8]) -> Vec<u8>) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    // Other sandboxes wait. Other programs do not know the lock.
    file.lock()?;
    let before = read(&file)?;
    let after = change(&before);
    if before == after {
        return Ok(());
    }
    file.rewind()?;
    file.write_all(&after)?;
    file.set_len(u64::try_from(after.len()).unwrap_or(u64::MAX))?;
    file.sync_all()
}

fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other("the file is too long"));
    }
    Ok(content)
}

/// Whether no process of this program has this id.
fn has_ended(pid: u32) -> bool {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    // The process of another user is alive, too.
    let is_alive = !matches!(test_kill_process(process), Err(Errno::SRCH));
    // The id may belong to another program by now.
    let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    !is_alive || name(&pid.to_string()) != name("self")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<HostsLine> {
        let line = |address: &str, host: &str| {
            HostsLine::new(host, address.parse().expect("an address")).expect("a host name")
        };
        vec![line("127.0.0.1", "api.example"), line("::1", "auth.example")]
    }

    #[test]
    fn a_line_holds_one_host_name_and_nothing_else() {
        let address = IpAddr::from([127, 0, 0, 1]);
        for host in ["api.example", "API_1.example", "a"] {
            assert_eq!(
                HostsLine::new(host, address).map(|line| line.to_string()),
                Ok(format!("127.0.0.1 {host}"))
            );
        }
        for host in ["", "a b", "a\n203.0.113.66 bank.example", "a\tb", "#", "a..b", "-a", "한.example"] {
            assert!(HostsLine::new(host, address).is_err(), "{host:?}");
            assert!(HostsLine::all(&["ok.example".to_owned(), host.to_owned()], address).is_err());
        }
    }

    #[test]
    fn what_was_there_before_is_there_afterwards_byte_for_byte() {
        let files: [&[u8]; 7] = [
            b"",
            b"127.0.0.1 localhost\n",
            b"127.0.0.1 localhost",
            b"127.0.0.1 localhost\r\n\r\n\t# \xff\xfe\r\n\n\n",
            b"# stagedoor 12 end\n# stagedoor 12 begin: x\n10.0.0.1 a\n",
            b"# stagedoor\n# stagedoor x begin:\n# stagedoor 5 begin: of another\n1.1.1.1 b\n# stagedoor 5 end",
            b"\n",
        ];
        for before in files {
            let with = with_lines(before, 7, &lines());
            let text = String::from_utf8_lossy(&with).into_owned();
            assert!(text.contains("\n127.0.0.1 api.example\n::1 auth.example\n"), "{text}");
            assert!(with.ends_with(before));
            assert_eq!(without_lines(&with, |pid| pid == 7), before);
            assert_eq!(without_lines(&with, |_| false), with);
            let twice = with_lines(&with, 8, &lines());
            assert_eq!(without_lines(&without_lines(&twice, |pid| pid == 7), |pid| pid == 8), before);
        }
    }

    #[test]
    fn changes_by_others_stay() {
        let with = with_lines(b"1.1.1.1 a\n", 7, &lines());
        let changed = [b"9.9.9.9 first\n", &with[..], b"8.8.8.8 last"].concat();
        let expected = b"9.9.9.9 first\n1.1.1.1 a\n8.8.8.8 last";
        assert_eq!(without_lines(&changed, |pid| pid == 7), expected);
        // Another block in between means that the end was lost.
        let lost = b"# stagedoor 7 begin: x\n1.1.1.1 a\n# stagedoor 8 begin: x\n# stagedoor 8 end\n# stagedoor 7 end\n";
        let expected = b"# stagedoor 7 begin: x\n1.1.1.1 a\n# stagedoor 7 end\n";
        assert_eq!(without_lines(lost, |_| true), expected);
    }

    #[test]
    fn the_lines_of_a_killed_process_are_taken_back() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("hosts");
        let before = b"127.0.0.1 localhost";
        fs::write(&path, with_lines(before, 0x7fff_fff0, &lines())).expect("written");
        assert!(take_back_stale(&path).expect("taken back"));
        assert_eq!(fs::read(&path).expect("a file"), before);
        assert!(!take_back_stale(&path).expect("nothing to do"));
        assert!(!take_back_stale(&root.path().join("missing")).expect("nothing to do"));
    }

    #[test]
    fn a_guard_takes_its_lines_back_and_a_missing_file_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("hosts");
        let problem = WrittenHosts::write(&path, &lines()).expect_err("there is no file");
        assert!(problem.contains("127.0.0.1 api.example") && problem.contains("hosts: "), "{problem}");
        fs::write(&path, "x").expect("written");
        let written = WrittenHosts::write(&path, &lines()).expect("written");
        assert!(fs::read_to_string(&path).expect("a file").contains("::1 auth.example"));
        drop(written);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "x");
    }
}
