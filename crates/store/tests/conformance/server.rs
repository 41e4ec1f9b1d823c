//! A PostgreSQL server of the tests' own, for as long as it is held.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, chown, geteuid};
use tempfile::TempDir;

/// A server that runs. It ends with this value, and with the tests.
pub(crate) struct Server {
    process: Child,
    port: u16,
    _data: TempDir,
}

/// Where Debian has PostgreSQL, the newest version first; or what the PATH has.
fn binaries() -> PathBuf {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            Some((path.file_name()?.to_str()?.parse().ok()?, path.join("bin")))
        })
        .collect();
    versions.sort();
    let of_path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = versions.into_iter().rev().map(|(_, bin)| bin).chain(std::env::split_paths(&of_path));
    found.find(|bin| bin.join("initdb").exists() && bin.join("postgres").exists()).unwrap_or_else(|| {
        panic!(
            "there is no PostgreSQL server on this machine, and this test needs one: install it (Debian: apt-get install postgresql)"
        )
    })
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
    pub(crate) fn start() -> Self {
        let (bin, user) = (binaries(), user());
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
            .expect("setpriv (util-linux) is there");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = command(user.as_ref(), &bin.join("postgres"))
            .arg("-D")
            .arg(&folder)
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", "", "-F", "-c", "shared_buffers=16MB"])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_ready(&mut process);
        Self { process, port, _data: data }
    }

    /// The address of a database on it.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://midturn@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }
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
        let id = Pid::from_raw(self.process.id().cast_signed());
        // `setpriv` has become the server: SIGQUIT ends it and all its children at once.
        kill(id, Signal::SIGQUIT).unwrap();
        self.process.wait().unwrap();
    }
}
