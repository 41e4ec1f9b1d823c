//! Bubblewrap's command line.

use std::ffi::OsString;
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
    let base = ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"];
    let before = spaces.into_iter().chain(no_network).chain(privileges).chain(base).map(OsString::from);
    let after = ["--chdir".into(), folder.into(), "--".into()];
    before.chain(steps.iter().flat_map(words)).chain(after).collect()
}

fn words(step: &Step) -> Vec<OsString> {
    let said = |option: &str, paths: &[&Path]| {
        std::iter::once(option.into()).chain(paths.iter().map(|path| path.as_os_str().to_owned())).collect()
    };
    match step {
        Step::Bind { from, at, writable: true } => said("--bind", &[from, at]),
        // Bubblewrap has overlays since 0.11: until then, and so always, a cache can only be read.
        Step::Bind { from, at, writable: false } | Step::Overlay { lower: from, at, .. } => {
            said("--ro-bind", &[from, at])
        }
        Step::Fresh { at, room } => {
            vec!["--size".into(), room.to_string().into(), "--tmpfs".into(), at.into()]
        }
        Step::Folder { at } => said("--dir", &[at]),
        Step::Link { to, at } => said("--symlink", &[to, at]),
        // As a device: one that can't be opened would stop programs that look whether
        // there are settings of theirs.
        Step::Nothing { at } => said("--dev-bind", &[Path::new("/dev/null"), at]),
        Step::Seal { at } => said("--remount-ro", &[at]),
    }
}
