//! Listening on a Unix socket, beside TCP, for a proxy on the same machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixListener};

/// The rights of the socket's file: its user and its group may connect.
const MODE: u32 = 0o660;
/// The address of every peer on a Unix socket: this machine.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The file of a Unix socket that this process listens on. It is removed when this is dropped.
pub struct SocketFile {
    path: PathBuf,
    /// Device and number of the file.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens on a path. A file that a former process has left is replaced.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn listen(path: &Path) -> Result<(Self, UnixListener), String> {
        let failed = |error: io::Error| format!("--listen-socket {}: {error}", path.display());
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(format!("--listen-socket {}: there is a file that is no socket", path.display()));
            }
            Ok(_) if StdUnixStream::connect(path).is_ok() => {
                return Err(format!("--listen-socket {}: another process listens there", path.display()));
            }
            Ok(_) => std::fs::remove_file(path).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(MODE)).map_err(failed)?;
        let identity = identity(path).map_err(failed)?;
        Ok((Self { path: path.to_owned(), identity }, listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The next process may listen there already.
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let data = std::fs::symlink_metadata(path)?;
    Ok((data.dev(), data.ino()))
}

/// Takes the next connection of a closed listener, with its peer.
type LastConnections = Box<dyn Fn() -> io::Result<(TcpStream, SocketAddr)> + Send>;

/// A listener of one of both kinds.
pub enum BoundListener {
    /// On an address.
    Tcp(TcpListener),
    /// On a path.
    Unix(UnixListener),
}

impl BoundListener {
    /// The next connection and its peer.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Self::Tcp(listener) => listener.accept().await,
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((TcpStream::from_std(as_tcp(stream.into_std()?)?)?, PEER))
            }
        }
    }

    /// Closes the listener. The result takes the connections that the system has accepted for it, one by one,
    /// and fails when none is left.
    pub fn close(self) -> io::Result<LastConnections> {
        match self {
            Self::Tcp(listener) => {
                let listener = listener.into_std()?;
                Ok(Box::new(move || {
                    let (stream, peer) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    Ok((TcpStream::from_std(stream)?, peer))
                }))
            }
            Self::Unix(listener) => {
                let listener = listener.into_std()?;
                Ok(Box::new(move || {
                    let (stream, _) = listener.accept()?;
                    Ok((TcpStream::from_std(as_tcp(stream)?)?, PEER))
                }))
            }
        }
    }
}

/// Takes a local stream for a TCP stream: it is read, written and shut down, which every socket can.
fn as_tcp(stream: StdUnixStream) -> io::Result<std::net::TcpStream> {
    let stream = std::net::TcpStream::from(OwnedFd::from(stream));
    stream.set_nonblocking(true)?;
    Ok(stream)
}
