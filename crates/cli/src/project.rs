//! Where the state of a project is, and how a process that holds it is found: the folder
//! `projects/KEY` below the state folder, `store.db`, `interface.json` and the socket
//! (docs/protocol.md, "Finding it").
//!
//! It opens no store and speaks to nobody. What is said in `interface.json` is a secret (the
//! token): it is never printed, and a file that others could have written is not believed.

use std::fmt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use midturn_client::Interface;
use rustix::process::geteuid;

use crate::args::{LayerArgs, PlaceArgs, StoreArgs};
use crate::commands;
use crate::env::{self, Env};
use crate::failure::Failure;
use crate::secrets;

/// The longest path of a socket, in bytes: the systems' own limits are 104 and 108.
const SOCKET_MAX: usize = 100;

/// How many characters of a folder's name are in a key.
const NAME_MAX: usize = 32;

/// What a session is kept in.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreAt {
    /// A file of SQLite. It may not be there yet.
    File(PathBuf),
    /// A database of PostgreSQL, by its URL. The URL may hold a password.
    Postgres(String),
}

impl StoreAt {
    /// Reads what was given with `--store`; a relative path is one of this process's folder.
    ///
    /// # Errors
    /// [`Failure::Usage`]: a URL of something else, or a path that can't be made absolute.
    fn of(given: &str) -> Result<Self, Failure> {
        if given.starts_with("postgres://") || given.starts_with("postgresql://") {
            secrets::hide_passwords([("--store", given)])?;
            return Ok(Self::Postgres(given.to_owned()));
        }
        if let Some((scheme, _)) = given.split_once("://") {
            return Err(Failure::usage(format!(
                "--store: `{scheme}://` is not a store: give a path, or postgres://USER@HOST/NAME"
            )));
        }
        let path = std::path::absolute(given)
            .map_err(|error| Failure::usage(format!("--store: `{given}` is not a path: {error}")))?;
        Ok(Self::File(canonical(&path)))
    }
}

impl fmt::Display for StoreAt {
    /// For people: a password is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for StoreAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreAt({self})")
    }
}

/// The path without links, as far as it is there.
fn canonical(path: &Path) -> PathBuf {
    let beside = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(beside).unwrap_or_else(|| path.to_owned())
}

fn without_password(url: &str) -> String {
    // What follows `?` may hold a password too.
    let url = url.split('?').next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (login, host) = rest.rsplit_once('@').unwrap_or(("", rest));
    let user = login.split(':').next().unwrap_or_default();
    if user.is_empty() { format!("{scheme}://{host}") } else { format!("{scheme}://{user}@{host}") }
}

/// A project, and what its sessions are kept in.
///
/// Processes that keep sessions in different stores have different keys, so that each has an
/// `interface.json` of its own; who names the same file finds the same one from any folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    root: PathBuf,
    key: String,
    state: PathBuf,
    store: StoreAt,
    runtime: Option<PathBuf>,
    temporary: PathBuf,
}

impl Project {
    /// The project that a folder is in: the repository's root, or else the folder. Nothing is made.
    ///
    /// # Errors
    /// [`Failure::Usage`]: no state folder is named by the environment, or what `--store` names is not a store.
    pub(crate) fn of(folder: &Path, store: &StoreArgs, env: &Env) -> Result<Self, Failure> {
        let state = env.state_folder().ok_or_else(|| {
            Failure::usage("neither XDG_STATE_HOME nor HOME names a folder for the project's state")
        })?;
        let root = root_of(folder);
        let given = store.store.as_deref().map(StoreAt::of).transpose()?;
        let own = |key: &str| StoreAt::File(state.join("projects").join(key).join("store.db"));
        let key = match &given {
            None => key(&root, &root.to_string_lossy()),
            Some(StoreAt::File(path)) => key(path, &format!("store\0{}", path.to_string_lossy())),
            Some(StoreAt::Postgres(url)) => key(&root, &format!("{}\0{url}", root.to_string_lossy())),
        };
        let folder = |name: &str| -> Result<Option<PathBuf>, Failure> {
            Ok(env.text(name)?.map(PathBuf::from).filter(|path| path.is_absolute()))
        };
        Ok(Self {
            state: state.join("projects").join(&key),
            store: given.unwrap_or_else(|| own(&key)),
            runtime: folder("XDG_RUNTIME_DIR")?,
            temporary: folder("TMPDIR")?.unwrap_or_else(|| PathBuf::from("/tmp")),
            root,
            key,
        })
    }

    /// The project that a command's options name.
    ///
    /// # Errors
    /// [`Failure::Usage`]: the folder is not there; else as [`Project::of`].
    pub(crate) fn named(place: &PlaceArgs, env: &Env) -> Result<Self, Failure> {
        let layer = LayerArgs { cwd: place.cwd.clone(), ..LayerArgs::default() };
        Self::of(&commands::work_folder(&layer)?, &place.store, env)
    }

    /// The port of its page, if that is free: the same each time, since a browser keeps drafts by it.
    pub(crate) fn page_port(&self) -> u16 {
        let (first, count) = PAGE_PORTS;
        first + (hash(&self.key) % count) as u16
    }

    /// Whether a folder is in this project.
    pub(crate) fn holds(&self, folder: &Path) -> bool {
        root_of(folder) == self.root
    }

    /// Its folder of state; [`Project::prepare`] makes it.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// What its sessions are kept in.
    pub(crate) fn store(&self) -> &StoreAt {
        &self.store
    }

    /// Makes its folder of state, for this user only.
    ///
    /// # Errors
    /// [`Failure::Failed`]: it can't be made, or is somebody else's.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        private_folder(&self.state)
    }

    /// Who holds the project, if `interface.json` says. That process may have died since.
    ///
    /// # Errors
    /// [`Failure::Failed`]: the file is there and can't be believed.
    pub(crate) fn interface(&self) -> Result<Option<Interface>, Failure> {
        Ok(Interface::read(&self.interface_path())?)
    }

    /// Where other programs are told who holds the project.
    pub(crate) fn interface_path(&self) -> PathBuf {
        self.state.join("interface.json")
    }

    /// What the commands of agents are not to see of this project and its neighbours. The
    /// folder of the socket is made.
    ///
    /// # Errors
    /// As [`Project::socket`].
    pub(crate) fn hidden(&self) -> Result<Vec<PathBuf>, Failure> {
        let socket = self.socket()?;
        let folder = socket.parent().unwrap_or(&socket);
        // Beside it are the sockets of the person's other projects.
        let runtime = self.runtime.as_ref().map(|runtime| runtime.join("midturn"));
        let sockets =
            runtime.filter(|runtime| folder.starts_with(runtime)).unwrap_or_else(|| folder.to_owned());
        let mut hidden = vec![self.state.clone(), sockets];
        if let StoreAt::File(file) = &self.store {
            let beside = ["", "-wal", "-shm", "-journal", ".lock"].map(|end| {
                let mut name = file.clone().into_os_string();
                name.push(end);
                PathBuf::from(name)
            });
            hidden.extend(beside);
        }
        Ok(hidden)
    }

    /// Where the socket is to be, in a folder for this user only, which is made: in the
    /// runtime folder, else in the folder of state, else, where these have long names, in a
    /// short one for temporary files.
    ///
    /// # Errors
    /// [`Failure::Failed`]: no such folder can be made.
    pub(crate) fn socket(&self) -> Result<PathBuf, Failure> {
        let runtime = self.runtime.iter().filter(|folder| is_ours(folder));
        let usual = runtime.map(|folder| folder.join("midturn").join(&self.key));
        let folders = usual.chain([self.state.clone()]);
        let short = format!("midturn-{}-{:016x}", geteuid().as_raw(), hash(&self.state.to_string_lossy()));
        let folder = folders
            .chain([self.temporary.join(&short), Path::new("/tmp").join(&short)])
            .find(|folder| socket_in(folder).as_os_str().len() <= SOCKET_MAX)
            .ok_or_else(|| Failure::failed("no folder has a path short enough for a socket: set TMPDIR"))?;
        private_folder(&folder)?;
        Ok(socket_in(&folder))
    }
}

/// The first of the ports that pages are given, and how many there are: none that a system gives away by itself.
const PAGE_PORTS: (u16, u64) = (20_000, 10_000);

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("midturn.sock")
}

fn root_of(folder: &Path) -> PathBuf {
    canonical(env::repository(folder).unwrap_or(folder))
}

/// A name that is the same at each start: what people know the path by, and what no other
/// path has.
fn key(path: &Path, identity: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = name.chars().map(fits).take(NAME_MAX).collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "project" } else { name };
    format!("{name}-{:012x}", hash(identity) & 0xffff_ffff_ffff)
}

/// FNV-1a: the standard library's own hash may change from one release to the next.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Whether this is a folder of this user's, and no link to one.
fn is_ours(folder: &Path) -> bool {
    let found = folder.symlink_metadata();
    found.is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw())
}

/// Makes a folder that nobody else can look into. One that is there has to be this user's.
fn private_folder(folder: &Path) -> Result<(), Failure> {
    let complain = |what: &str| Failure::failed(format!("the folder {} {what}", folder.display()));
    let failed = |error: std::io::Error| complain(&format!("can't be made for this user only: {error}"));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    if !is_ours(folder) {
        return Err(complain("belongs to another user: remove it, or set XDG_STATE_HOME or TMPDIR"));
    }
    let mode = folder.symlink_metadata().map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
