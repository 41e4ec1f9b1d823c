//! Where the interface listens: a Unix socket in a folder that only its owner can enter, or
//! a TCP port on loopback. Nothing else, and no other address, ever.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener, UnixStream};

/// The longest path that a Unix socket can have, in bytes.
const PATH_MAX: usize = 107;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On a Unix socket at this path; the folder is made, for its owner only, if there is none.
    Unix(PathBuf),
    /// On this address, which has to be a loopback address; port 0 is any that is free.
    Tcp(SocketAddr),
}

/// Why the interface listens nowhere.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Others could reach it.
    #[error(
        "`{0}` is not a loopback address: the interface has no TLS, so it listens on 127.0.0.1 or [::1] only; reach it from elsewhere with `ssh -L`"
    )]
    NotLoopback(SocketAddr),
    /// Another process answers there.
    #[error("another process listens on `{}`; stop it, or use another folder of state", .0.display())]
    Held(PathBuf),
    /// Others could replace the socket.
    #[error("others can enter the folder `{}`; make it yours alone: chmod 700", .0.display())]
    OpenFolder(PathBuf),
    /// Something else is there.
    #[error("`{}` is there and is not a socket; remove it, or use another folder of state", .0.display())]
    NoSocket(PathBuf),
    /// The system can't have such a long one.
    #[error("the path `{}` is too long for a socket ({PATH_MAX} bytes at most); use another folder of state", .0.display())]
    TooLong(PathBuf),
    /// The system says no.
    #[error("`{place}` can't be listened on: {error}")]
    System {
        /// Where.
        place: String,
        /// Why not.
        error: io::Error,
    },
}

/// Something that listens.
pub(crate) enum Listener {
    Unix(UnixListener, SocketFile),
    Tcp(TcpListener, SocketAddr),
}

impl Listener {
    pub(crate) async fn bind(listen: Listen) -> Result<Self, BindError> {
        match listen {
            Listen::Unix(path) => unix(path).await,
            Listen::Tcp(address) => tcp(address).await,
        }
    }

    /// The TCP address, if it is one.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(_, address) => Some(*address),
            Self::Unix(..) => None,
        }
    }

    /// Whose socket it is, if it is one.
    pub(crate) fn owner(&self) -> Option<u32> {
        match self {
            Self::Unix(_, file) => Some(file.owner),
            Self::Tcp(..) => None,
        }
    }

    /// What a request's `Host` has to be.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Unix(..) => vec!["midturn".to_owned()],
            Self::Tcp(_, address) => {
                let port = address.port();
                ["127.0.0.1", "[::1]", "localhost"].map(|host| format!("{host}:{port}")).into()
            }
        }
    }
}

async fn tcp(address: SocketAddr) -> Result<Listener, BindError> {
    if !address.ip().is_loopback() {
        return Err(BindError::NotLoopback(address));
    }
    let failed = |error| BindError::System { place: address.to_string(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok(Listener::Tcp(listener, bound))
}

async fn unix(path: PathBuf) -> Result<Listener, BindError> {
    if path.as_os_str().len() > PATH_MAX {
        return Err(BindError::TooLong(path));
    }
    let failed = |error| BindError::System { place: path.display().to_string(), error };
    folder(&path)?;
    clear(&path).await?;
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
    let file = SocketFile::of(path.clone()).map_err(failed)?;
    Ok(Listener::Unix(listener, file))
}

/// Makes the socket's folder, or looks whether it is one that only its owner can enter.
fn folder(path: &Path) -> Result<(), BindError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let failed = |error| BindError::System { place: folder.display().to_string(), error };
    if !folder.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mode = folder.metadata().map_err(failed)?.mode();
    if mode & 0o077 == 0 { Ok(()) } else { Err(BindError::OpenFolder(folder.to_owned())) }
}

/// Removes the socket of a process that is gone. A living one's stays.
async fn clear(path: &Path) -> Result<(), BindError> {
    let failed = |error| BindError::System { place: path.display().to_string(), error };
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(there) if !there.file_type().is_socket() => return Err(BindError::NoSocket(path.to_owned())),
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        // What refuses has nobody behind it; what is full has somebody.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) | Err(_) => Err(BindError::Held(path.to_owned())),
    }
}

/// The socket's file; removed at the end, if it is still the same.
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    owner: u32,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: PathBuf) -> io::Result<Self> {
        let there = path.symlink_metadata()?;
        Ok(Self { owner: there.uid(), device: there.dev(), inode: there.ino(), path })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let there = self.path.symlink_metadata();
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (self.device, self.inode))
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the socket's file stays");
        }
    }
}
