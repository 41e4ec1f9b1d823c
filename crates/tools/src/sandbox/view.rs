//! Makes a view of the file system of its own, where bubblewrap isn't there to do it: in an anchor, once it is in new
//! namespaces; and what of it is made anew for each command. What it shows was decided elsewhere (`mount_plan`).

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxAttributes, StatxFlags, open, statx};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount, mount_bind,
    mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::pivot_root;

use super::mount_plan::{Anew, Step};
use super::orders::View;
use super::rights::DEVICES;
use super::upper::{changed, work};

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// What processes there are.
const PROCESSES: &str = "/proc";

/// Where the new root is made: it is there on every system, and what is there was taken along before.
const ANYWHERE: &str = PROCESSES;

/// What is to be mounted in one step.
struct Source {
    held: OwnedFd,
    /// An overlay that could not be had: what is below it, to be read.
    instead: bool,
}

/// Carries out the steps in an empty root. The processes that are to be seen in it are still those of all.
///
/// # Errors
/// The first step that fails. Nothing may be run in what is made then.
pub(crate) fn make(view: &View) -> io::Result<()> {
    // All of them first: of the system's view nothing is to be seen in the new root.
    let sources: Vec<Option<Source>> = view.steps.iter().map(source).collect::<io::Result<_>>()?;
    let devices: Vec<_> =
        DEVICES.iter().map(|path| Ok((*path, copy(Path::new(path))?))).collect::<io::Result<_>>()?;
    let processes = copy(Path::new(PROCESSES))?;
    leave()?;
    place(Path::new(PROCESSES), true)?;
    put(&processes, Path::new(PROCESSES))?;
    make_devices(&devices)?;
    for (step, source) in view.steps.iter().zip(&sources) {
        carry_out(step, source.as_ref())?;
    }
    let places: Vec<_> = view.steps.iter().zip(&sources).filter_map(writable).collect();
    read_only(&places)
}

/// In process 1 of a command: its own processes in the place of all, and what it has anew.
///
/// # Errors
/// The first step that fails. Nothing may be run then.
pub(crate) fn renew(anew: &Anew) -> io::Result<()> {
    let at = Path::new(PROCESSES);
    // Where none can be seen the system lets nobody make one, so the old one goes only now.
    let processes = processes()?;
    unmount(at, UnmountFlags::DETACH).map_err(|errno| told(at, errno))?;
    put(&processes, at)?;
    cover(&anew.covered)?;
    // What is mounted in a folder that comes to lie below another is taken along.
    let sources: Vec<Option<Source>> = anew.steps.iter().map(source).collect::<io::Result<_>>()?;
    anew.steps.iter().zip(&sources).try_for_each(|(step, source)| carry_out(step, source.as_ref()))
}

/// The same empty folder, which can't be written, in each of these places.
fn cover(places: &[PathBuf]) -> io::Result<()> {
    let Some((first, others)) = places.split_first() else { return Ok(()) };
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", first, "tmpfs", flags, c"mode=0755,size=4k").map_err(|errno| told(first, errno))?;
    others.iter().try_for_each(|other| mount_bind(first, other).map_err(|errno| told(other, errno)))
}

/// The first place of these steps at which nothing is mounted any more: somebody outside has moved or replaced what
/// was covered there.
pub(crate) fn uncovered(steps: &[Step]) -> Option<PathBuf> {
    let is_uncovered = |at: &&Path| {
        let found = statx(CWD, *at, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
        !found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
    };
    steps.iter().filter_map(Step::mounts).find(is_uncovered).map(Path::to_owned)
}

/// Of the PID namespace of this process, to be read.
fn processes() -> io::Result<OwnedFd> {
    let fs = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(fs.as_fd())?;
    let flags = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

/// Into an empty root, for good.
fn leave() -> io::Result<()> {
    empty(Path::new(ANYWHERE), None)?;
    std::env::set_current_dir(ANYWHERE)?;
    // The old one comes to lie on the new one, and is taken off.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}

fn carry_out(step: &Step, source: Option<&Source>) -> io::Result<()> {
    match step {
        Step::Bind { at, .. } | Step::Overlay { at, .. } | Step::Nothing { at } => {
            let held = &source.ok_or(io::ErrorKind::NotFound)?.held;
            place(at, is_folder(held)?).map_err(|error| of(at, &error))?;
            put(held, at)
        }
        Step::Fresh { at, room } => {
            place(at, true).map_err(|error| of(at, &error))?;
            empty(at, Some(*room))
        }
        Step::Folder { at } => place(at, true).map_err(|error| of(at, &error)),
        Step::Link { to, at } => {
            at.parent().map_or(Ok(()), fs::create_dir_all)?;
            symlink(to, at).map_err(|error| of(at, &error))
        }
        // When all is there.
        Step::Seal { .. } => Ok(()),
    }
}

fn source(step: &Step) -> io::Result<Option<Source>> {
    let path = match step {
        Step::Bind { from, .. } => from,
        Step::Nothing { .. } => Path::new("/dev/null"),
        Step::Overlay { lower, above, .. } => {
            let overlaid = overlay(lower, above);
            let instead = overlaid.is_err();
            let held = overlaid.or_else(|_| copy(lower))?;
            return Ok(Some(Source { held, instead }));
        }
        Step::Fresh { .. } | Step::Folder { .. } | Step::Link { .. } | Step::Seal { .. } => return Ok(None),
    };
    Ok(Some(Source { held: copy(path)?, instead: false }))
}

/// What is mounted there once more, nowhere as yet.
fn copy(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, path, flags).map_err(|errno| told(path, errno))
}

/// A folder over another, nowhere as yet. They are named by what we hold of them: in a path some characters mean
/// something here.
fn overlay(lower: &Path, above: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folders = [("lowerdir", lower.to_owned()), ("upperdir", changed(above)), ("workdir", work(above))];
    let fs = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let mut held = Vec::new();
    for (key, path) in folders {
        let folder = open(path, flags, Mode::empty())?;
        fsconfig_set_string(fs.as_fd(), key, format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
        held.push(folder);
    }
    fsconfig_set_flag(fs.as_fd(), "userxattr")?;
    fsconfig_create(fs.as_fd())?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

fn put(copy: &OwnedFd, at: &Path) -> io::Result<()> {
    let whole = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(copy, "", CWD, at, whole).map_err(|errno| told(at, errno))
}

fn is_folder(held: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(held)?.st_mode).is_dir())
}

/// A place to mount on is made only in what is ours: elsewhere it is there already, or the system refuses.
fn place(at: &Path, is_folder: bool) -> io::Result<()> {
    if at.exists() {
        return Ok(());
    }
    if is_folder {
        return fs::create_dir_all(at);
    }
    at.parent().map_or(Ok(()), fs::create_dir_all)?;
    File::create(at).map(drop)
}

/// An empty folder in memory; what is to hold names alone needs no room.
fn empty(at: &Path, room: Option<u64>) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = format!("mode=0755,size={}", room.unwrap_or(1 << 20));
    let options = CString::new(options).map_err(io::Error::other)?;
    mount("tmpfs", at, "tmpfs", flags, options.as_c_str()).map_err(|errno| told(at, errno))
}

/// Where a step leaves something that can be written, or no longer; what is below is as what is nearest above.
fn writable((step, source): (&Step, &Option<Source>)) -> Option<(PathBuf, bool)> {
    match step {
        Step::Bind { at, writable, .. } => Some((at.clone(), *writable)),
        Step::Overlay { at, .. } => Some((at.clone(), source.as_ref().is_some_and(|one| !one.instead))),
        Step::Fresh { at, .. } => Some((at.clone(), true)),
        Step::Seal { at } => Some((at.clone(), false)),
        Step::Nothing { .. } | Step::Folder { .. } | Step::Link { .. } => None,
    }
}

/// Makes all mounts read-only that no step leaves writable, `/proc` too: what root may write in there it may write
/// without any privilege. What can't be reached, because something is mounted above it, can't
/// be written either.
fn read_only(places: &[(PathBuf, bool)]) -> io::Result<()> {
    let places: BTreeMap<&Path, bool> =
        places.iter().map(|(at, writable)| (at.as_path(), *writable)).collect();
    let mounts = fs::read("/proc/self/mountinfo")?;
    for (path, options) in mounts.split(|&b| b == b'\n').filter_map(mounted) {
        let nearest = path.ancestors().find_map(|above| places.get(above)).copied().unwrap_or(false);
        // Devices and terminals are no files of a file system's.
        let is_device = path.parent() == Some(Path::new("/dev")) && path != Path::new("/dev/shm");
        if nearest || is_device || options.split(',').any(|option| option == "ro") {
            continue;
        }
        match mount_remount(&path, flags(&options) | MountFlags::BIND | MountFlags::RDONLY, c"") {
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::INVAL) => {}
            Err(errno) => return Err(told(&path, errno)),
        }
    }
    Ok(())
}

/// The flags that a mount has are kept: some can't be taken off in a user namespace.
fn flags(options: &str) -> MountFlags {
    options.split(',').filter_map(|option| MountFlags::from_name(&option.to_ascii_uppercase())).collect()
}

/// A line is `ID PARENT DEVICE ROOT AT OPTIONS …`, with blanks and the like in a path as `\040`.
fn mounted(line: &[u8]) -> Option<(PathBuf, String)> {
    let mut parts = line.split(|&b| b == b' ').skip(4);
    let (path, options) = (parts.next()?, parts.next()?);
    Some((OsString::from_vec(plain(path)).into(), String::from_utf8_lossy(options).into_owned()))
}

fn plain(mut path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    while let Some((&first, after)) = path.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\').and_then(|d| std::str::from_utf8(d).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(first));
        path = if code.is_some() { &after[3..] } else { after };
    }
    plain
}

/// No disks, no terminals of others.
fn make_devices(devices: &[(&str, OwnedFd)]) -> io::Result<()> {
    let dev = Path::new("/dev");
    place(dev, true)?;
    empty(dev, None)?;
    for (path, held) in devices {
        File::create(path)?;
        put(held, Path::new(path))?;
    }
    for (to, name) in LINKS {
        symlink(to, dev.join(name))?;
    }
    let pts = dev.join("pts");
    fs::create_dir(dev.join("shm"))?;
    fs::create_dir(&pts)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount("devpts", &pts, "devpts", flags, options).map_err(|errno| told(&pts, errno))
}

fn told(path: &Path, errno: Errno) -> io::Error {
    of(path, &errno.into())
}

fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_its_blanks_and_keeps_its_flags() {
        let line = b"31 25 0:27 / /a\\040b\\134c rw,nosuid,relatime shared:9 - ext4 /dev/x rw";
        let (path, options) = mounted(line).unwrap();
        assert_eq!((path.to_str(), &*options), (Some("/a b\\c"), "rw,nosuid,relatime"));
        assert_eq!(flags(&options), MountFlags::NOSUID | MountFlags::RELATIME);
        assert_eq!(mounted(b""), None);
    }
}
