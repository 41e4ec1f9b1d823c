//! Bubblewrap's command line.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::layout::Step;

/// Where bubblewrap is.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found =
        std::env::split_paths(&path).filter(|f| f.is_absolute()).map(|folder| folder.join("bwrap"));
    found.find(|file| file.is_file())
}

/// What comes before the program that is to run in it.
pub(crate) fn arguments(steps: &[Step], folder: &Path, network: bool) -> Vec<OsString> {
    let mut all = Arguments(Vec::with_capacity(64));
    all.words(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    if !network {
        all.words(["--unshare-net"]);
    }
    all.words(["--as-pid-1", "--new-session", "--cap-drop", "ALL"]);
    // What root may write in `/proc` it may write without any privilege, and all of the machine
    // obeys; bubblewrap leaves it open for those who are root outside.
    all.words(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]);
    steps.iter().for_each(|step| all.step(step));
    all.paths("--chdir", &[folder]);
    all.words(["--"]);
    all.0
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn words<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(OsString::from));
    }

    fn paths(&mut self, option: &str, paths: &[&Path]) {
        self.0.push(option.into());
        self.0.extend(paths.iter().map(|path| OsStr::to_owned(path.as_os_str())));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Bind { from, at, writable: true } => self.paths("--bind", &[from, at]),
            Step::Bind { from, at, writable: false } => self.paths("--ro-bind", &[from, at]),
            Step::Fresh { at } => self.paths("--tmpfs", &[at]),
            // As a device: one that can't be opened would stop programs that look whether
            // there are settings of theirs.
            Step::Nothing { at } => self.paths("--dev-bind", &["/dev/null".as_ref(), at]),
            Step::Seal { at } => self.paths("--remount-ro", &[at]),
        }
    }
}
