//! A PostgreSQL server of the tests' own, for as long as it is held.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, chown, geteuid};
use parking_lot::Mutex;
use tempfile::TempDir;

use super::needs::{Need, has};

/// A server that runs. It ends with this value, and with the tests.
pub(crate) struct Server {
    process: Mutex<Option<Child>>,
    bin: PathBuf,
    port: u16,
    data: TempDir,
}

/// Where the server's programs are: where Debian has them, the newest version first, or on the PATH.
fn binaries() -> Option<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin")))
        })
        .collect();
    versions.sort();
    let mut found = versions.into_iter().rev().map(|(_, bin)| bin).chain(on_the_path());
    found.find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
}

fn on_the_path() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// Whom a server may run as: it refuses to be root.
fn user() -> Option<User> {
    let of = |name| User::from_name(name).ok().flatten();
    geteuid().is_root().then(|| of("postgres").or_else(|| of("nobody")).expect("a user that is not root"))
}

/// A command as that user, that ends when we do.
fn command(user: Option<&User>, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.args(["--reuid", &user.uid.to_string(), "--regid", &user.gid.to_string(), "--clear-groups"]);
    }
    command.arg("--").arg(program);
    command
}

impl Server {
    /// `None`: what it takes is not here, and the test does not run.
    pub(crate) fn start() -> Option<Self> {
        let bin = binaries();
        let setpriv = on_the_path().iter().any(|folder| folder.join("setpriv").exists());
        if !has(Need::Postgresql, bin.is_some()) || !has(Need::Setpriv, setpriv) {
            return None;
        }
        Some(Self::of(&bin?))
    }

    fn of(bin: &Path) -> Self {
        let user = user();
        let data = tempfile::Builder::new().prefix("midturn-pg").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(data.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        if let Some(user) = &user {
            chown(data.path(), Some(user.uid), Some(user.gid)).unwrap();
        }
        let folder = data.path().join("data");
        let made = command(user.as_ref(), &bin.join("initdb"))
            .args(["-U", "midturn", "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D"])
            .arg(&folder)
            .current_dir("/")
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { process: Mutex::default(), bin: bin.to_owned(), port, data };
        server.start_again();
        server
    }

    /// Starts it, over what it has.
    pub(crate) fn start_again(&self) {
        let mut process = command(user().as_ref(), &self.bin.join("postgres"))
            .arg("-D")
            .arg(self.data.path().join("data"))
            .args([
                "-p",
                &self.port.to_string(),
                "-h",
                "127.0.0.1",
                "-k",
                "",
                "-F",
                "-c",
                "shared_buffers=16MB",
            ])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_ready(&mut process);
        *self.process.lock() = Some(process);
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn stop(&self) {
        let Some(mut process) = self.process.lock().take() else { return };
        let id = Pid::from_raw(process.id().cast_signed());
        // `setpriv` has become the server: SIGQUIT ends it and all its children at once.
        kill(id, Signal::SIGQUIT).unwrap();
        process.wait().unwrap();
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The address of a database on it.
    pub(crate) fn url(&self, database: &str) -> String {
        url(self.port, database)
    }
}

/// The address of a database behind this port.
pub(crate) fn url(port: u16, database: &str) -> String {
    format!("postgres://midturn@127.0.0.1:{port}/{database}?sslmode=disable")
}

/// Reads what the server says until it says that it is ready; the rest is read and forgotten.
fn wait_until_ready(process: &mut Child) {
    let mut said = BufReader::new(process.stderr.take().unwrap());
    let mut log = String::new();
    while !log.contains("ready to accept connections") {
        assert!(said.read_line(&mut log).unwrap() > 0, "the server has ended: {log}");
    }
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        // It ends with the server.
        let _ = said.take(1 << 20).read_to_end(&mut rest);
    });
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
