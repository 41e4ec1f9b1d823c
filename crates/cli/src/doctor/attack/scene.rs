//! What is made for the attack, and what of this machine it has to know: a project, a neighbour of it, servers that only
//! the machine can reach. All of it lies in one temporary folder, and goes with it.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use midturn_tools::programs::{self, Program};
use midturn_tools::sandbox::{InForce, TreeLimits};
use tempfile::TempDir;

use crate::config::FILE_NAME;
use crate::env::{self, Env};
use crate::failure::Failure;

/// The largest process table that is gone through.
const PROCESSES_MAX: usize = 65_536;

/// Where the attack takes place.
pub(super) struct Scene {
    folder: TempDir,
    /// In every name that is made outside of the folder, and in nobody else's.
    pub(super) unique: u64,
    /// The person's home.
    pub(super) home: Option<PathBuf>,
    /// The person's own configuration file.
    pub(super) configuration: Option<PathBuf>,
    /// Our state: sessions, and the token.
    pub(super) state_of_ours: Option<PathBuf>,
    /// When this process began, in the system's own ticks: who has its number and began then is it.
    pub(super) began: String,
    /// Of the server on loopback.
    pub(super) port: u16,
    /// The sandbox.
    pub(super) force: InForce,
    /// Its limits.
    pub(super) limits: TreeLimits,
    /// How much memory this machine can spare, in bytes.
    pub(super) spare: u64,
    /// Servers, which nobody has to answer for: the system takes their connections.
    _servers: (TcpListener, Option<UnixListener>, Option<UnixListener>),
}

impl Scene {
    /// Makes it.
    ///
    /// # Errors
    /// There is no room for it, or no git.
    pub(super) fn make(force: InForce, limits: TreeLimits, env: &Env) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::failed(format!("the attack's folder can't be made: {error}"));
        let folder = tempfile::Builder::new().prefix("midturn-attack-").tempdir().map_err(failed)?;
        let unique = env::now().0;
        let at = |name: &str| folder.path().join(name);
        furnish(&at).map_err(failed)?;
        git_init(&at("project"))?;
        let tcp = TcpListener::bind("127.0.0.1:0");
        let tcp =
            tcp.map_err(|error| Failure::failed(format!("no server can be had on loopback: {error}")))?;
        let port = tcp.local_addr().map_err(failed)?.port();
        // Where they can't be had, their rows say that nobody can say.
        let file = UnixListener::bind(at("outside/socket")).ok();
        let name = SocketAddr::from_abstract_name(abstract_name(unique));
        let without_file = name.and_then(|name| UnixListener::bind_addr(&name)).ok();
        let stat = fs::read_to_string("/proc/self/stat").map_err(failed)?;
        Ok(Self {
            unique,
            home: env.home(),
            configuration: env.config_folder().map(|folder| folder.join(FILE_NAME)),
            state_of_ours: env.state_folder(),
            began: began(&stat).unwrap_or_default().to_owned(),
            port,
            force,
            limits,
            spare: spare(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
            _servers: (tcp, file, without_file),
            folder,
        })
    }

    /// A path in its folder.
    pub(super) fn at(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// A file of the attack's in a folder that isn't.
    pub(super) fn trace(&self, folder: &Path) -> PathBuf {
        folder.join(format!(".midturn-attack-{}", self.unique))
    }

    /// The name of the server that has no file.
    pub(super) fn abstract_name(&self) -> String {
        abstract_name(self.unique)
    }

    /// How long what is left behind sleeps: by that it is known.
    pub(super) fn nap(&self) -> String {
        format!("20.{}", self.unique)
    }
}

fn abstract_name(unique: u64) -> String {
    format!("midturn-attack-{unique}")
}

fn furnish(at: &impl Fn(&str) -> PathBuf) -> io::Result<()> {
    for folder in ["project/.git/hooks", "beside", "outside", "state"] {
        fs::create_dir_all(at(folder))?;
    }
    fs::write(at("outside/canary"), "a canary: nothing that is secret\n")?;
    fs::write(at("project").join(FILE_NAME), "# Of an attack that was tried here.\n")
}

/// As little as can be: no templates, which could be anything.
fn git_init(project: &Path) -> Result<(), Failure> {
    let git = programs::find(Program::Git).map_err(|none| Failure::failed(none.to_string()))?;
    let mut git = Command::new(git);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"] {
        git.env_remove(name);
    }
    let done = git.args(["init", "--quiet", "--template="]).arg(project).stdin(Stdio::null()).output();
    match done {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => {
            Err(Failure::failed(format!("git init fails: {}", String::from_utf8_lossy(&done.stderr).trim())))
        }
        Err(error) => Err(Failure::failed(format!("git can't be started: {error}"))),
    }
}

/// Of `/proc/PID/stat`, when the process began.
fn began(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)
}

/// Of `/proc/meminfo`, what can be had without taking it from others.
fn spare(told: &str) -> u64 {
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1_024
}

/// Whether a command has made this file, which is then taken away.
pub(super) fn was_made(path: &Path) -> bool {
    // Not gone through, should it be a link; what isn't there can't be removed; and a folder stands in for a file that
    // nobody is to make.
    let is_there = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    is_there && (fs::remove_file(path).is_ok() || path.symlink_metadata().is_ok())
}

/// Whether a file has a second name by now.
pub(super) fn was_linked(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.nlink() > 1)
}

/// Whether a process lives that has this among its words.
pub(super) fn is_running(word: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().take(PROCESSES_MAX);
    let words = |path: PathBuf| fs::read(path.join("cmdline")).unwrap_or_default();
    let is_it = |words: Vec<u8>| words.split(|&byte| byte == 0).any(|one| one == word.as_bytes());
    processes.map(|entry| words(entry.path())).any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_when_it_began_whatever_it_is_called() {
        let stat = "7 (a) b c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21";
        assert_eq!((began(stat), began("7 (a) S")), (Some("4242"), None));
        assert_eq!(spare("MemTotal: 9 kB\nMemAvailable:    4 kB\n"), 4_096);
    }

    #[test]
    fn what_was_made_is_taken_away_and_what_was_not_is_not_missed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        fs::write(&file, "").unwrap();
        assert_eq!([was_made(&file), was_made(&file), file.exists()], [true, false, false]);
    }
}
