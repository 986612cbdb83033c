//! Namespaces of Linux: the command has a hosts file of its own, and offline a network of its own. The files
//! and the network of every other process stay as they are.

use std::ffi::CString;
use std::fs;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, bind, listen, recv, recvmsg, sendmsg, sendto,
    socket_with, socketpair,
};
use rustix::process::{Signal, getegid, geteuid, set_parent_process_death_signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use tokio::process::Command;

use crate::hosts_file::{DEFAULT_PATH, HostsLine, with_lines};

/// The file that says where the C library looks names up.
const NAME_SERVICES: &str = "/etc/nsswitch.conf";
/// The socket of a cache of names, which looks them up outside of the namespace.
const NAME_CACHE: &str = "/var/run/nscd/socket";
/// Maximum number of ports of a network of its own.
const PORTS_MAX: usize = 2;
/// Number of connections that wait until they are accepted.
const BACKLOG: i32 = 128;

/// The namespaces of a command. Everything is prepared before the fork.
#[derive(Debug)]
pub(super) struct Namespace(Arc<Prepared>);

#[derive(Debug)]
struct Prepared {
    /// Files, and what they hide.
    mounts: Vec<(CString, CString)>,
    /// The maps of a user namespace, which a process without privileges needs.
    maps: Option<[(CString, Vec<u8>); 3]>,
    /// The ports of a network of its own, on loopback.
    ports: Option<Vec<u16>>,
}

/// The parent's side of a command's namespaces.
#[derive(Debug)]
pub(super) struct Entered(Option<OwnedFd>);

impl Namespace {
    /// Namespaces in which the hosts have this address. With `ports` the network has only loopback, and these
    /// ports. Tries whether the system allows it.
    pub fn new(
        hosts: &[String],
        address: Ipv4Addr,
        ports: Option<Vec<u16>>,
        folder: &Path,
    ) -> Result<Self, String> {
        let mounts = mounts(hosts, address, folder).map_err(|error| error.to_string())?;
        let mut failed = None;
        for maps in [None, Some(maps())] {
            let prepared = Prepared { mounts: mounts.clone(), maps, ports: ports.clone() };
            let namespace = Self(Arc::new(prepared));
            match namespace.probe() {
                Ok(()) => return Ok(namespace),
                Err(error) => failed = Some(error),
            }
        }
        let why = failed.map(|error| error.to_string()).unwrap_or_default();
        Err(format!("this system allows no namespace: {why}"))
    }

    /// Lets a command begin in the namespaces.
    #[expect(unsafe_code, reason = "only between fork and exec can a process leave its namespaces")]
    pub fn enter(&self, command: &mut Command) -> io::Result<Entered> {
        let prepared = self.0.clone();
        let (ours, theirs) = match prepared.ports {
            None => (None, None),
            Some(_) => {
                let (ours, theirs) =
                    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
                (Some(ours), Some(theirs))
            }
        };
        // SAFETY: `Prepared::enter` makes system calls only. It allocates nothing and takes no lock.
        unsafe { command.pre_exec(move || prepared.enter(theirs.as_ref())) };
        Ok(Entered(ours))
    }

    /// Starts this program in the namespaces, for nothing.
    fn probe(&self) -> io::Result<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _entered = self.enter(&mut command)?;
        // The runtime reaps it.
        command.spawn().map(drop)
    }
}

impl Entered {
    /// The listeners of the command's own network. They accept its connections, wherever they are served.
    pub fn listeners(self) -> io::Result<Vec<TcpListener>> {
        let Some(socket) = self.0 else { return Ok(Vec::new()) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PORTS_MAX))];
        let mut received = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(&socket, &mut [IoSliceMut::new(&mut byte)], &mut received, RecvFlags::CMSG_CLOEXEC)?;
        let mut listeners = Vec::new();
        for message in received.drain() {
            if let RecvAncillaryMessage::ScmRights(sockets) = message {
                listeners.extend(sockets.map(TcpListener::from));
            }
        }
        listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
        Ok(listeners)
    }
}

impl Prepared {
    /// Runs in the child before the command.
    fn enter(&self, parent: Option<&OwnedFd>) -> io::Result<()> {
        let mut flags = UnshareFlags::NEWNS;
        flags.set(UnshareFlags::NEWUSER, self.maps.is_some());
        flags.set(UnshareFlags::NEWNET, self.ports.is_some());
        unshare(flags)?;
        for (path, map) in self.maps.iter().flatten() {
            let file = open(path.as_c_str(), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(file, map)?;
        }
        // No mount is seen outside.
        mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        for (file, hidden) in &self.mounts {
            mount_bind(file.as_c_str(), hidden.as_c_str())?;
        }
        match (&self.ports, parent) {
            (Some(ports), Some(parent)) => own_network(ports, parent),
            _ => Ok(()),
        }
    }
}

#[expect(unsafe_code, reason = "no descriptors are unshared, which alone is unsafe")]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the flags do not have FILES.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Lets a command end when this process is killed.
#[expect(unsafe_code, reason = "the signal is a property of the child")]
pub(super) fn end_with_parent(command: &mut Command) {
    let request = || Ok(set_parent_process_death_signal(Some(Signal::TERM))?);
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(request) };
}

/// Brings loopback up, listens on the ports, and hands the listeners to the parent.
fn own_network(ports: &[u16], parent: &OwnedFd) -> io::Result<()> {
    bring_loopback_up()?;
    let mut listeners = [const { None }; PORTS_MAX];
    for (slot, port) in listeners.iter_mut().zip(ports) {
        let listener = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_reuseaddr(&listener, true)?;
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port))?;
        listen(&listener, BACKLOG)?;
        *slot = Some(listener);
    }
    let mut sockets = [parent.as_fd(); PORTS_MAX];
    let mut count = 0;
    for listener in listeners.iter().flatten() {
        sockets[count] = listener.as_fd();
        count += 1;
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PORTS_MAX))];
    let mut sent = SendAncillaryBuffer::new(&mut space);
    sent.push(SendAncillaryMessage::ScmRights(&sockets[..count]));
    sendmsg(parent, &[IoSlice::new(&[0])], &mut sent, SendFlags::empty())?;
    Ok(())
}

/// Sends the request that `ip link set lo up` sends, and waits for its confirmation.
fn bring_loopback_up() -> io::Result<()> {
    const REQUEST_BYTES: u32 = 32;
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_CONFIRM: u16 = 1 | 4;
    /// The first device of every network.
    const LOOPBACK: i32 = 1;
    const UP: u32 = 1;
    let mut request = [0; REQUEST_BYTES as usize];
    request[0..4].copy_from_slice(&REQUEST_BYTES.to_ne_bytes());
    request[4..6].copy_from_slice(&NEW_LINK.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_AND_CONFIRM.to_ne_bytes());
    request[20..24].copy_from_slice(&LOOPBACK.to_ne_bytes());
    request[24..28].copy_from_slice(&UP.to_ne_bytes());
    request[28..32].copy_from_slice(&UP.to_ne_bytes());
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // A header of 16 bytes, and a number that is 0 or a negative error.
    let mut answer = [0; 128];
    let (received, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
        0 if received >= 20 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// The maps by which a user keeps its ids in a user namespace.
fn maps() -> [(CString, Vec<u8>); 3] {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let map = |path: &std::ffi::CStr, text: String| (path.to_owned(), text.into_bytes());
    [
        map(c"/proc/self/setgroups", "deny".to_owned()),
        map(c"/proc/self/uid_map", format!("{user} {user} 1")),
        map(c"/proc/self/gid_map", format!("{group} {group} 1")),
    ]
}

/// Writes the files that hide those of the system.
fn mounts(hosts: &[String], address: Ipv4Addr, folder: &Path) -> io::Result<Vec<(CString, CString)>> {
    let c_string = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
    let mut mounts = Vec::new();
    let mut hide = |hidden: &str, content: &[u8]| {
        let file: PathBuf = folder.join(hidden.replace('/', "-"));
        fs::write(&file, content)?;
        mounts.push((c_string(&file)?, c_string(Path::new(hidden))?));
        io::Result::Ok(())
    };
    let content = fs::read(DEFAULT_PATH)?;
    let lines = HostsLine::all(hosts, address.into()).map_err(io::Error::other)?;
    hide(DEFAULT_PATH, &with_lines(&content, std::process::id(), &lines))?;
    match fs::read_to_string(NAME_SERVICES) {
        Ok(text) => hide(NAME_SERVICES, with_files_first(&text).as_bytes())?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if Path::new(NAME_CACHE).exists() {
        hide(NAME_CACHE, b"")?;
    }
    Ok(mounts)
}

/// The name services with the hosts file first. Others may ask a daemon, which sees another hosts file.
fn with_files_first(text: &str) -> String {
    let changed = text.split_inclusive('\n').map(|line| match line.split_once(':') {
        Some(("hosts", services)) => {
            let others: Vec<_> = services.split_whitespace().filter(|service| *service != "files").collect();
            format!("hosts: files {}\n", others.join(" "))
        }
        _ => line.to_owned(),
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_file_comes_first() {
        for (text, expected) in [
            ("passwd: files\nhosts: files dns\n", "passwd: files\nhosts: files dns\n"),
            (
                "hosts:\tmymachines resolve [!UNAVAIL=return] files dns",
                "hosts: files mymachines resolve [!UNAVAIL=return] dns\n",
            ),
            ("# hosts: dns\n", "# hosts: dns\n"),
        ] {
            assert_eq!(with_files_first(text), expected);
        }
    }
}
