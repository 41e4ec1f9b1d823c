//! Makes a view of the file system of its own, where bubblewrap isn't there to do it: in the
//! supervisor, once it is process 1 of new namespaces with a `/proc` of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, mount_remount, move_mount, open_tree};

use super::mount_plan::Step;
use super::orders::View;
use super::rights::DEVICES;

const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Carries out the steps and enters the folder.
///
/// # Errors
/// The first step that fails. Nothing may be run in what is made then.
pub(crate) fn make(view: &View) -> io::Result<()> {
    // All of them first: some will be covered, and none is read-only unless so told.
    let sources = view.steps.iter().map(|step| source(step).map(copy).transpose());
    let sources: Vec<Option<OwnedFd>> = sources.collect::<io::Result<_>>()?;
    let devices: Vec<_> =
        DEVICES.iter().map(|path| Ok((*path, copy(Path::new(path))?))).collect::<io::Result<_>>()?;
    // `/proc` too: what root may write in there it may write without any privilege.
    read_only(|_| true)?;
    make_devices(&devices)?;
    for (step, source) in view.steps.iter().zip(&sources) {
        carry_out(step, source.as_ref())?;
    }
    std::env::set_current_dir(&view.folder)
}

fn carry_out(step: &Step, source: Option<&OwnedFd>) -> io::Result<()> {
    match step {
        Step::Bind { at, .. } | Step::Nothing { at } => {
            let source = source.ok_or(io::ErrorKind::NotFound)?;
            place(at, is_folder(source)?)?;
            put(source, at)?;
            let is_sealed = matches!(step, Step::Bind { writable: false, .. });
            if is_sealed { read_only(|path| path.starts_with(at)) } else { Ok(()) }
        }
        Step::Fresh { at } => {
            place(at, true)?;
            empty(at)
        }
        // Not what is mounted below it.
        Step::Seal { at } => read_only(|path| path == at),
    }
}

fn source(step: &Step) -> Option<&Path> {
    match step {
        Step::Bind { from, .. } => Some(from),
        Step::Nothing { .. } => Some(Path::new("/dev/null")),
        Step::Fresh { .. } | Step::Seal { .. } => None,
    }
}

/// What is mounted there once more, nowhere as yet.
fn copy(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    open_tree(CWD, path, flags).map_err(|errno| told(path, errno))
}

fn put(copy: &OwnedFd, at: &Path) -> io::Result<()> {
    let whole = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(copy, "", CWD, at, whole).map_err(|errno| told(at, errno))
}

fn is_folder(held: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(held)?.st_mode).is_dir())
}

/// A place to mount on is made only in what is ours and empty: elsewhere it is there already,
/// or the view, which can't be written, refuses.
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

fn empty(at: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", at, "tmpfs", flags, c"mode=0755").map_err(|errno| told(at, errno))
}

/// Makes mounts read-only. What can't be reached, because something is mounted above it, can't
/// be written either.
fn read_only(is_meant: impl Fn(&Path) -> bool) -> io::Result<()> {
    let mounts = fs::read("/proc/self/mountinfo")?;
    for (path, options) in mounts.split(|&b| b == b'\n').filter_map(mounted) {
        if !is_meant(&path) || options.split(',').any(|option| option == "ro") {
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
    empty(dev)?;
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
    io::Error::new(io::Error::from(errno).kind(), format!("{}: {errno}", path.display()))
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
