//! Where the state of a project is, and how a process that holds it is found: the folder
//! `projects/KEY` below the state folder, `store.db`, `interface.json` and the socket
//! (docs/protocol.md, "Finding it").
//!
//! It opens no store and speaks to nobody. What is said in `interface.json` is a secret (the
//! token): it is never printed, and a file that others could have written is not believed.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use midturn_client::Interface;
use midturn_tools::own_folder::{self, NotOurs};
use midturn_tools::under_way;
use rustix::process::geteuid;

use crate::args::{LayerArgs, PlaceArgs, StoreArgs, WorkArgs};
use crate::commands;
use crate::env::{self, Env};
use crate::failure::Failure;
use crate::meanwhile::Meanwhile;
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
    /// What the environment names for folders of state, of all programs.
    state_base: PathBuf,
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
    /// Nor is anything of it read that another user could have put there: [`Failure::Failed`].
    pub(crate) fn of(folder: &Path, store: &StoreArgs, env: &Env) -> Result<Self, Failure> {
        let project = Self::named_by(folder, store, env)?;
        project.look()?;
        Ok(project)
    }

    /// The same, and nobody has looked whose its folder of state is.
    ///
    /// # Errors
    /// [`Failure::Usage`], as [`Project::of`].
    pub(crate) fn named_by(folder: &Path, store: &StoreArgs, env: &Env) -> Result<Self, Failure> {
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
            state_base: state.parent().unwrap_or(&state).to_owned(),
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

    /// The folder of state of all projects, in which agents' folders are.
    pub(crate) fn whole_state(&self) -> PathBuf {
        self.state_base.join("midturn")
    }

    /// The repository's root, or else the folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Puts right what a killed process left in it, and says so: before git works there.
    pub(crate) fn put_right(&self) {
        tell(&under_way::recover(&self.whole_state(), &self.root));
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
        self.state_place().make()
    }

    /// Whether its folder of state is ours, as far as it is there.
    ///
    /// # Errors
    /// [`Failure::Failed`]: it isn't.
    pub(crate) fn look(&self) -> Result<(), Failure> {
        self.state_place().look()
    }

    /// Whether the folder of its socket is, too.
    ///
    /// # Errors
    /// As [`Project::look`].
    pub(crate) fn look_at_socket(&self) -> Result<(), Failure> {
        self.socket_place()?.look()
    }

    fn state_place(&self) -> Place {
        let below = Path::new("midturn/projects").join(&self.key);
        Place { base: self.state_base.clone(), below, variable: STATE }
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
        let place = self.socket_place()?;
        place.make()?;
        Ok(socket_in(&place.path()))
    }

    fn socket_place(&self) -> Result<Place, Failure> {
        // Somebody else's that `su` has left in the environment is passed over.
        let runtime = self.runtime.iter().filter(|folder| is_ours(folder));
        let runtime = runtime.map(|folder| Place {
            base: folder.clone(),
            below: Path::new("midturn").join(&self.key),
            variable: "XDG_RUNTIME_DIR",
        });
        let short = format!("midturn-{}-{:016x}", geteuid().as_raw(), hash(&self.state.to_string_lossy()));
        let temporary = [self.temporary.clone(), PathBuf::from("/tmp")].map(|base| Place {
            base,
            below: PathBuf::from(&short),
            variable: "TMPDIR",
        });
        let mut places = runtime.chain([self.state_place()]).chain(temporary);
        places
            .find(|place| socket_in(&place.path()).as_os_str().len() <= SOCKET_MAX)
            .ok_or_else(|| Failure::failed("no folder has a path short enough for a socket: set TMPDIR"))
    }
}

/// The variable that names the place of folders of state.
const STATE: &str = "XDG_STATE_HOME";

/// A folder of ours: what the environment names, what of it we make, and which variable names another place.
struct Place {
    base: PathBuf,
    below: PathBuf,
    variable: &'static str,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.base.join(&self.below)
    }

    fn make(&self) -> Result<(), Failure> {
        own_folder::make(&self.base, &self.below).map_err(|error| self.complaint(&error))
    }

    fn look(&self) -> Result<(), Failure> {
        own_folder::look(&self.base, &self.below).map_err(|error| self.complaint(&error))
    }

    /// What is wrong with it, and what to do.
    fn complaint(&self, error: &NotOurs) -> Failure {
        let instead = format!("set {} to a folder that only you can write", self.variable);
        Failure::failed(match error {
            NotOurs::Open { path, .. } => format!(
                "{error}: look whether all that is in it is yours, then `chmod go-w {}`, or {instead}",
                path.display()
            ),
            NotOurs::Anothers { .. } | NotOurs::NoFolder { .. } => {
                format!("{error}: have it removed, or {instead}")
            }
            NotOurs::System { .. } => format!("{error}: {instead}"),
        })
    }
}

/// Puts right what a killed process left in the project, and says so: before the configuration is read,
/// and before anything else there is obeyed.
///
/// # Errors
/// As [`commands::work_folder`], and as [`Project::look`].
pub(crate) fn recover(work: &WorkArgs, env: &Env) -> Result<(), Failure> {
    let folder = commands::work_folder(&work.whole_layer())?;
    let root = env::repository(&folder).unwrap_or(&folder);
    let Some(state) = env.state_folder() else { return Ok(()) };
    // What another user could have put there would be obeyed.
    look_at_state(&state)?;
    let meanwhile = Meanwhile::begin("putting right what a killed process left", env);
    let notes = under_way::recover(&state, root);
    drop(meanwhile);
    tell(&notes);
    Ok(())
}

fn tell(notes: &[String]) {
    for note in notes {
        eprintln!("note: {}", secrets::clean(note));
    }
}

/// Whether the person's folder of state, in which those of all projects are, is ours as far as it is there: before
/// anything is read there.
///
/// # Errors
/// [`Failure::Failed`]: it isn't.
fn look_at_state(state: &Path) -> Result<(), Failure> {
    let base = state.parent().unwrap_or(state).to_owned();
    Place { base, below: state.file_name().unwrap_or_default().into(), variable: STATE }.look()
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

#[cfg(test)]
mod tests;
