//! The file `interface.json`: who holds a project and how it is spoken to.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// Why `interface.json` is of no use, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InterfaceError(String);

/// More than any such file has, in bytes.
const FILE_MAX: u64 = 64 << 10;

/// What `interface.json` says.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The process.
    pub pid: u32,
    /// Its Unix socket.
    pub socket: PathBuf,
    /// What every request has to bring.
    pub token: String,
    /// The version of the program.
    pub version: String,
    /// Where it listens on loopback, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<SocketAddr>,
}

impl fmt::Debug for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interface")
            .field("pid", &self.pid)
            .field("socket", &self.socket)
            .field("version", &self.version)
            .field("tcp", &self.tcp)
            .finish_non_exhaustive()
    }
}

impl Interface {
    /// Reads the file. `None`: there is none. The process that wrote it may have died since.
    ///
    /// # Errors
    /// It is there and can't be believed.
    pub fn read(path: &Path) -> Result<Option<Self>, InterfaceError> {
        let complain = |what: &str| {
            InterfaceError(format!("{} {what}: remove it and start Midturn again", path.display()))
        };
        // Neither a link nor a pipe in its place is followed or waited for.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(complain(&format!("can't be read ({error})"))),
        };
        check(&file).map_err(complain)?;
        let mut text = String::new();
        let read = file.take(FILE_MAX).read_to_string(&mut text);
        read.map_err(|error| complain(&format!("can't be read ({error})")))?;
        serde_json::from_str(&text).map(Some).map_err(|_| complain("is damaged"))
    }

    /// Whether the process is stopped by a signal (Ctrl-Z, SIGSTOP) or a debugger, as far as this system tells.
    pub fn is_suspended(&self) -> bool {
        // Its name stands in parentheses and may hold any sign, so the state is looked for from the end.
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let state = String::from_utf8_lossy(&stat)
            .rsplit(')')
            .next()
            .and_then(|rest| rest.trim_start().chars().next());
        matches!(state, Some('T' | 't'))
    }

    /// Writes the file, whole or not at all, for this user only. The folder is there.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, path: &Path) -> Result<(), InterfaceError> {
        let complain = |error| system(path, "written", &error);
        let text = serde_json::to_string(self).map_err(|error| complain(error.into()))?;
        let beside = path.with_extension(format!("{}.new", std::process::id()));
        let written = write_new(&beside, &text).and_then(|()| std::fs::rename(&beside, path));
        written.map_err(|error| {
            // It may not even be there: what counts is why it could not be written.
            let _ = std::fs::remove_file(&beside);
            complain(error)
        })
    }

    /// Removes the file if it still says the same.
    ///
    /// # Errors
    /// It can't be believed, or removed.
    pub fn remove(&self, path: &Path) -> Result<(), InterfaceError> {
        if Self::read(path)?.as_ref() != Some(self) {
            return Ok(());
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(system(path, "removed", &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn system(path: &Path, done: &str, error: &std::io::Error) -> InterfaceError {
    InterfaceError(format!("{} can't be {done}: {error}", path.display()))
}

/// Whether only this user can have written the file, and nobody else read it.
fn check(file: &File) -> Result<(), &'static str> {
    let found = file.metadata().map_err(|_| "can't be looked at")?;
    if !found.is_file() {
        return Err("is not a file");
    }
    if found.uid() != geteuid().as_raw() {
        return Err("belongs to another user");
    }
    if found.mode() & 0o077 != 0 {
        return Err("can be read or written by other users");
    }
    if found.len() >= FILE_MAX { Err("is damaged") } else { Ok(()) }
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    // One of that name can only be left from a process that died while it wrote.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_that_others_could_have_written_is_not_believed() {
        type Spoil = fn(&Path);
        let rows: [(Spoil, &str); 4] = [
            (
                |path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap(),
                "by other users",
            ),
            (|path| std::fs::write(path, "{}").unwrap(), "is damaged"),
            (
                |path| {
                    std::fs::rename(path, path.with_extension("moved")).unwrap();
                    symlink(path.with_extension("moved"), path).unwrap();
                },
                "can't be read",
            ),
            (
                |path| {
                    std::fs::remove_file(path).unwrap();
                    std::fs::create_dir(path).unwrap();
                },
                "is not a file",
            ),
        ];
        let interface = Interface {
            pid: 7,
            socket: "/run/x.sock".into(),
            token: "secret".into(),
            version: "1".into(),
            tcp: None,
        };
        for (spoil, expected) in rows {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("interface.json");
            interface.write(&path).unwrap();
            spoil(&path);
            let error = Interface::read(&path).unwrap_err().to_string();
            assert!(error.contains(expected) && error.ends_with("start Midturn again"), "{error}");
        }
    }
}
