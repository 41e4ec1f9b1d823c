//! Folders that nobody else can write, and files that are whole before they have their name.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, OFlags, Timespec, Timestamps, utimensat};

use super::steps::{TRIES, pause, step};

/// The folder of a session's main agent.
pub const MAIN: &str = "main";

/// No record of ours comes near it: what is longer was written by somebody else.
const LONGEST: u64 = 2 * 1024 * 1024;

/// Tells what two threads write at once apart.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Midturn's state folder, as the process finds it. `None`: there is no home.
pub(crate) fn state_folder() -> Option<PathBuf> {
    // The XDG specification ignores relative paths.
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(base.join("midturn"))
}

/// Whether a word from outside may be a folder's name: the ids of sessions, agents and calls.
pub fn is_name(word: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_');
    (1..=128).contains(&word.len()) && word.bytes().all(is_plain)
}

/// Makes a folder that is ours alone, where there is none yet, and looks at it where there is one.
///
/// # Errors
/// It is a link, somebody else's, or can't be made: nothing is written there.
pub(crate) fn own_folder(folder: &Path) -> io::Result<()> {
    step();
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_ours(folder),
        made => made,
    }
}

/// # Errors
/// As [`own_folder`].
pub(crate) fn is_ours(folder: &Path) -> io::Result<()> {
    step();
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let what = format!("{} is a link, or others can write it", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// # Errors
/// As [`own_folder`]; where nothing is nothing is wrong.
pub(crate) fn is_ours_or_none(folder: &Path) -> io::Result<()> {
    match is_ours(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        ours => ours,
    }
}

/// Writes a file that has its name only once it is whole.
///
/// # Errors
/// It can't be written: then there is none.
pub(crate) fn write_whole(file: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let nth = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let beside = folder.join(format!(".{name}.{}-{nth}", std::process::id()));
    let written = write_new(&beside, bytes, durable).and_then(|()| {
        step();
        fs::rename(&beside, file)
    });
    if written.is_err() {
        // It would be found again, and is nothing.
        match fs::remove_file(&beside) {
            Ok(()) => {}
            Err(_) => return written,
        }
    }
    written?;
    if !durable {
        return Ok(());
    }
    synced(folder)
}

/// The names in a folder outlive a loss of power.
///
/// # Errors
/// The file system can't say that.
pub(crate) fn synced(folder: &Path) -> io::Result<()> {
    step();
    File::open(folder)?.sync_all()
}

fn write_new(file: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    step();
    let mut open = fs::OpenOptions::new();
    let mut file = open.write(true).create(true).truncate(true).mode(0o600).open(file)?;
    step();
    file.write_all(bytes)?;
    if durable { file.sync_all() } else { Ok(()) }
}

/// A record of ours; never a link, and never more than one of ours can have.
///
/// # Errors
/// It isn't there, or is none of ours.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    step();
    let none_of_ours = || io::Error::new(io::ErrorKind::InvalidData, "it is no record of Midturn's");
    // A pipe would make us wait.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(file).map_err(|error| {
        let is_a_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        if is_a_link { none_of_ours() } else { error }
    })?;
    let found = opened.metadata()?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(none_of_ours());
    }
    step();
    let mut bytes = Vec::new();
    opened.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The names in a folder; none where there is no folder. What begins with a dot is not whole yet.
///
/// # Errors
/// It can't be read.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = all_names(folder)?;
    names.retain(|name| !name.starts_with('.'));
    Ok(names)
}

/// The same with what isn't whole yet.
///
/// # Errors
/// It can't be read.
pub(crate) fn all_names(folder: &Path) -> io::Result<Vec<String>> {
    step();
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut names = Vec::new();
    for entry in listed {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Makes a file, or sets the time at which it was written, in microseconds since 1970; a link stays what it is.
///
/// # Errors
/// The file system refuses it.
pub(crate) fn touch(file: &Path, at: u64) -> io::Result<()> {
    match set_written(file, at) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_whole(file, b"", false),
        set => set,
    }
}

fn set_written(file: &Path, at: u64) -> io::Result<()> {
    step();
    let micros = i64::try_from(at).unwrap_or(i64::MAX);
    let time = Timespec { tv_sec: micros / 1_000_000, tv_nsec: micros % 1_000_000 * 1_000 };
    let both = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, file, &both, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Waits until nobody else holds this file. It is held until what comes back is dropped, or its process dies.
///
/// # Errors
/// It can't be made, or somebody holds it for very long.
pub(crate) fn alone(file: &Path) -> io::Result<File> {
    for _ in 0..TRIES {
        match alone_now(file)? {
            None => pause(),
            Some(held) => return Ok(held),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("somebody else holds {}", file.display())))
}

/// The same, without waiting. `None`: somebody else holds it.
///
/// # Errors
/// It can't be made.
pub(crate) fn alone_now(file: &Path) -> io::Result<Option<File>> {
    step();
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut open = fs::OpenOptions::new();
    let held = open.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link).open(file)?;
    step();
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        tried => Ok(tried.map(|()| Some(held))?),
    }
}

/// Renames a file. `false`: it isn't there any more, somebody else has it.
///
/// # Errors
/// The file system refuses it.
pub(crate) fn moved(from: &Path, to: &Path) -> io::Result<bool> {
    step();
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        moved => moved.map(|()| true),
    }
}

/// Removes a file; it is no matter if there is none.
///
/// # Errors
/// The file system refuses it.
pub(crate) fn removed(file: &Path) -> io::Result<bool> {
    step();
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}
