//! Bubblewrap's command line.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::mount_plan::Step;

/// What comes before the program that is to run in it.
pub(crate) fn arguments(steps: &[Step], folder: &Path, network: bool) -> Vec<OsString> {
    let spaces =
        ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"];
    let no_network = (!network).then_some("--unshare-net");
    let privileges = ["--as-pid-1", "--new-session", "--cap-drop", "ALL"];
    // What root may write in `/proc` it may write without any privilege, and all of the machine
    // obeys; bubblewrap leaves it open for those who are root outside.
    let base = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"];
    let before = spaces.into_iter().chain(no_network).chain(privileges).chain(base).map(OsStr::new);
    let after = ["--chdir".as_ref(), folder.as_os_str(), "--".as_ref()];
    before.chain(steps.iter().flat_map(words)).chain(after).map(OsStr::to_owned).collect()
}

fn words(step: &Step) -> Vec<&OsStr> {
    match step {
        Step::Bind { from, at, writable: true } => vec!["--bind".as_ref(), from.as_ref(), at.as_ref()],
        Step::Bind { from, at, writable: false } => vec!["--ro-bind".as_ref(), from.as_ref(), at.as_ref()],
        Step::Fresh { at } => vec!["--tmpfs".as_ref(), at.as_ref()],
        // As a device: one that can't be opened would stop programs that look whether
        // there are settings of theirs.
        Step::Nothing { at } => vec!["--dev-bind".as_ref(), "/dev/null".as_ref(), at.as_ref()],
        Step::Seal { at } => vec!["--remount-ro".as_ref(), at.as_ref()],
    }
}
