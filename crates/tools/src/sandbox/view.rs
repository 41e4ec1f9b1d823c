//! Makes a view of the file system of its own, where bubblewrap isn't there to do it: in the
//! supervisor, once it is process 1 of new namespaces with a `/proc` of its own.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags as Has, statvfs};

use super::layout::Step;
use super::orders::View;

/// What a fresh `/dev` holds.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

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
    // All of them first: some will be covered.
    let sources: Vec<Option<OwnedFd>> = view.steps.iter().map(source).collect::<io::Result<_>>()?;
    let devices: Vec<_> = DEVICES.iter().map(|name| Ok((*name, hold(&device(name))?))).collect::<io::Result<_>>()?;
    let null = hold(Path::new("/dev/null"))?;
    make_devices(&devices)?;
    // What root may write in there it may write without any privilege.
    read_only(Path::new("/proc"))?;
    for (step, source) in view.steps.iter().zip(&sources) {
        carry_out(step, source.as_ref(), &null)?;
    }
    std::env::set_current_dir(&view.folder)
}

fn carry_out(step: &Step, source: Option<&OwnedFd>, null: &OwnedFd) -> io::Result<()> {
    match (step, source) {
        (Step::Bind { at, writable, .. }, Some(source)) => {
            let is_folder = is_folder(source)?;
            place(at, is_folder)?;
            bind(source, at)?;
            if *writable { Ok(()) } else { read_only(at) }
        }
        (Step::Bind { .. }, None) => Err(io::ErrorKind::NotFound.into()),
        (Step::Fresh { at }, _) => {
            place(at, true)?;
            empty(at)
        }
        (Step::Nothing { at }, _) => bind(null, at),
        (Step::Seal { at }, _) => read_only(at),
    }
}

fn source(step: &Step) -> io::Result<Option<OwnedFd>> {
    match step {
        Step::Bind { from, .. } => hold(from).map(Some),
        Step::Fresh { .. } | Step::Nothing { .. } | Step::Seal { .. } => Ok(None),
    }
}

fn device(name: &str) -> PathBuf {
    Path::new("/dev").join(name)
}

fn hold(path: &Path) -> io::Result<OwnedFd> {
    let held = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    held.map_err(|errno| io::Error::new(io::Error::from(errno).kind(), format!("{}: {errno}", path.display())))
}

fn is_folder(held: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(held)?.st_mode).is_dir())
}

/// A place to mount on is made only in what is ours and empty: elsewhere it is there already,
/// or the system's own view of a file system that can't be written refuses.
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

fn bind(source: &OwnedFd, at: &Path) -> io::Result<()> {
    let from = format!("/proc/self/fd/{}", source.as_raw_fd());
    let nothing: Option<&str> = None;
    Ok(mount(Some(&*from), at, nothing, MsFlags::MS_BIND | MsFlags::MS_REC, nothing)?)
}

fn empty(at: &Path) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    Ok(mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some("mode=0755"))?)
}

/// The flags that it has are kept: some can't be taken off in a user namespace.
fn read_only(at: &Path) -> io::Result<()> {
    let has = statvfs(at)?.f_flag;
    let kept = [
        (Has::NOSUID, MsFlags::MS_NOSUID),
        (Has::NODEV, MsFlags::MS_NODEV),
        (Has::NOEXEC, MsFlags::MS_NOEXEC),
        (Has::NOATIME, MsFlags::MS_NOATIME),
        (Has::NODIRATIME, MsFlags::MS_NODIRATIME),
        (Has::RELATIME, MsFlags::MS_RELATIME),
    ];
    let kept = kept.iter().filter(|(flag, _)| has.contains(*flag)).fold(MsFlags::empty(), |all, (_, f)| all | *f);
    let nothing: Option<&str> = None;
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | kept;
    Ok(mount(nothing, at, nothing, flags, nothing)?)
}

/// No disks, no terminals of others.
fn make_devices(devices: &[(&str, OwnedFd)]) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID;
    mount(Some("tmpfs"), "/dev", Some("tmpfs"), flags, Some("mode=0755"))?;
    for (name, held) in devices {
        File::create(device(name))?;
        bind(held, &device(name))?;
    }
    for (to, name) in LINKS {
        symlink(to, device(name))?;
    }
    fs::create_dir(device("shm"))?;
    fs::create_dir(device("pts"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    Ok(mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, options)?)
}
