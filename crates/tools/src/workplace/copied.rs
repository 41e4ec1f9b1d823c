//! Files and folders of the project folder, copied into an agent's: by a reflink where the file system can
//! make one, else byte for byte. Never by a hard link, through which the agent would write into the project.
//!
//! Agents work in the project folder meanwhile and may swap what is there: so each file and folder is opened
//! in the one above it, and no link is followed, on either side. Links are copied as links, where they stay
//! within the project. Keys are left out, unless a person names them.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, Timestamps};
use rustix::io::Errno;
use rustix::time::Timespec;
use tokio_util::sync::CancellationToken;

use super::commit::leads_out;
use super::confine::is_key;
use crate::arguments::listed;
use crate::protect::aside::remove;

/// How deep folders are in each other.
const DEPTH_MAX: usize = 128;

/// How many names of what was left out are kept.
const LEFT_OUT_MAX: usize = 1_000;

/// One entry of `folder.copy`, being copied.
pub(super) struct Copying {
    path: PathBuf,
    max: u64,
    cancel: CancellationToken,
}

/// What was copied so far.
#[derive(Default)]
struct Copied {
    bytes: u64,
    files: u64,
    /// What was left out, and why.
    left_out: Vec<String>,
}

impl Copying {
    /// # Errors
    /// What is named is no path of the project folder.
    pub(super) fn new(path: &str, max: u64, cancel: &CancellationToken) -> Result<Self, String> {
        let path: PathBuf = Path::new(path).components().filter(|part| *part != Component::CurDir).collect();
        let is_within = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_within || path.as_os_str().is_empty() {
            return Err(
                "it has to be a path in the project folder, relative to it and without `..`".to_owned()
            );
        }
        Ok(Self { path, max, cancel: cancel.clone() })
    }

    /// Copies it; what there is to say.
    ///
    /// # Errors
    /// Why it was not, or not whole: then nothing of it is there.
    pub(super) fn copy(&self, from: &Path, to: &Path) -> Result<String, String> {
        let (parent, name) = (self.path.parent().unwrap_or(Path::new("")), self.path.file_name());
        let (mut source, mut target) = (open_root(from)?, open_root(to)?);
        for part in parent.components() {
            let part = part.as_os_str();
            source = folder_in(&source, part).map_err(|error| complaint(part, error))?;
            target = new_folder_in(&target, part, Mode::from_raw_mode(0o755))
                .map_err(|error| complaint(part, error))?;
        }
        let name = name.unwrap_or_default();
        if rustix::fs::statat(&target, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err("it is there already".to_owned());
        }
        let mut copied = Copied::default();
        let done = self.entry((source.as_fd(), target.as_fd()), name, &self.path, &mut copied);
        if let Err(why) = done {
            // Half of it would be taken for the whole.
            let removed = remove(&to.join(&self.path));
            let left = removed.err().filter(|error| error.kind() != std::io::ErrorKind::NotFound);
            return Err(left.map_or(why.clone(), |error| format!("{why}; a part is left there: {error}")));
        }
        let Copied { bytes, files, left_out } = copied;
        let left_out = listed(&left_out).map(|names| format!("; left out: {names}")).unwrap_or_default();
        let mib = bytes.div_ceil(1 << 20);
        Ok(format!(
            "`{}` was copied into the folder: {files} files, {mib} MiB{left_out}",
            self.path.display()
        ))
    }

    fn entry(
        &self,
        (source, target): (impl AsFd, impl AsFd),
        name: &OsStr,
        path: &Path,
        copied: &mut Copied,
    ) -> Result<(), String> {
        let failed = |error: Errno| complaint(path.as_os_str(), error);
        if self.cancel.is_cancelled() {
            return Err("it was stopped meanwhile".to_owned());
        }
        let stat =
            rustix::fs::statat(&source, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file((source, target), name, path, copied),
            FileType::Directory => {
                let source = folder_in(&source, name).map_err(failed)?;
                let target = new_folder_in(&target, name, mode_of(&stat)).map_err(failed)?;
                self.entries((source, target), path, copied)
            }
            FileType::Symlink => self.link((source, target), name, path, copied),
            _ => copied.leave_out(self, path, "neither a file nor a folder"),
        }
    }

    fn entries(
        &self,
        (source, target): (OwnedFd, OwnedFd),
        path: &Path,
        copied: &mut Copied,
    ) -> Result<(), String> {
        let failed = |error: Errno| complaint(path.as_os_str(), error);
        if path.components().count() > DEPTH_MAX {
            return Err(format!("{} is too deep: more than {DEPTH_MAX} folders", path.display()));
        }
        for entry in Dir::read_from(&source).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
            let path = path.join(name);
            // Only what a person named themselves.
            match is_key(&path) {
                true => copied.leave_out(self, &path, "it may hold keys: name it in `folder.copy` itself")?,
                false => self.entry((&source, &target), name, &path, copied)?,
            }
        }
        Ok(())
    }

    fn file(
        &self,
        (source, target): (impl AsFd, impl AsFd),
        name: &OsStr,
        path: &Path,
        copied: &mut Copied,
    ) -> Result<(), String> {
        let failed = |error: Errno| complaint(path.as_os_str(), error);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let from = File::from(rustix::fs::openat(source, name, flags, Mode::empty()).map_err(failed)?);
        let stat = rustix::fs::fstat(&from).map_err(failed)?;
        let left = self.max.saturating_sub(copied.bytes);
        if stat.st_size.unsigned_abs() > left {
            return Err(self.too_much());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let to = File::from(rustix::fs::openat(target, name, flags, mode_of(&stat)).map_err(failed)?);
        if rustix::fs::ioctl_ficlone(&to, &from).is_err() {
            // It may have grown since.
            let copy = std::io::copy(&mut std::io::Read::take(&from, left + 1), &mut &to);
            let bytes = copy.map_err(|error| match Errno::from_io_error(&error) {
                Some(errno) => failed(errno),
                None => format!("`{}`: {error}", path.display()),
            })?;
            if bytes > left {
                return Err(self.too_much());
            }
        }
        copied.files += 1;
        copied.bytes += rustix::fs::fstat(&to).map_err(failed)?.st_size.unsigned_abs();
        rustix::fs::fchmod(&to, mode_of(&stat)).map_err(failed)?;
        // Builds go by it.
        rustix::fs::futimens(&to, &times_of(&stat)).map_err(failed)
    }

    /// As a link, if it stays within the project.
    fn link(
        &self,
        (source, target): (impl AsFd, impl AsFd),
        name: &OsStr,
        path: &Path,
        copied: &mut Copied,
    ) -> Result<(), String> {
        let failed = |error: Errno| complaint(path.as_os_str(), error);
        let to = rustix::fs::readlinkat(source, name, Vec::new()).map_err(failed)?;
        if leads_out(&path.to_string_lossy(), &to.to_string_lossy()) {
            return copied.leave_out(self, path, "a link that leads out of the project");
        }
        rustix::fs::symlinkat(to, target, name).map_err(failed)
    }

    fn too_much(&self) -> String {
        format!(
            "it is more than {} MiB: raise `folder.copy_max`, or have `folder.setup` make it",
            self.max.div_ceil(1 << 20)
        )
    }
}

impl Copied {
    /// The entry itself can't be left out: then it isn't copied.
    fn leave_out(&mut self, copying: &Copying, path: &Path, why: &str) -> Result<(), String> {
        if path == copying.path {
            return Err(format!("it is {why}"));
        }
        if self.left_out.len() < LEFT_OUT_MAX {
            self.left_out.push(format!("{} ({why})", path.display()));
        }
        Ok(())
    }
}

fn open_root(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|error| complaint(path.as_os_str(), error))
}

fn folder_in(above: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(above, name, flags, Mode::empty())
}

fn new_folder_in(above: impl AsFd, name: &OsStr, mode: Mode) -> Result<OwnedFd, Errno> {
    // We have to be able to write in it.
    match rustix::fs::mkdirat(&above, name, mode | Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => folder_in(above, name),
        Err(error) => Err(error),
    }
}

/// What it runs with is nobody's to copy.
fn mode_of(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o777)
}

fn times_of(stat: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or_default(),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

fn complaint(path: &OsStr, error: Errno) -> String {
    let what = match error {
        Errno::LOOP | Errno::NOTDIR => "a link, or no folder: name what it leads to".to_owned(),
        Errno::NOSPC | Errno::DQUOT => {
            "the disk is full: free some, or set `folder.base` to another disk".to_owned()
        }
        other => std::io::Error::from(other).to_string(),
    };
    format!("`{}`: {what}", path.display())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    struct Two(tempfile::TempDir);

    impl Two {
        fn new() -> Self {
            let two = Self(tempfile::tempdir().unwrap());
            for folder in ["from", "to"] {
                fs::create_dir(two.0.path().join(folder)).unwrap();
            }
            two
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }

        fn write(&self, below: &str, text: &str) {
            fs::create_dir_all(self.path(below).parent().unwrap()).unwrap();
            fs::write(self.path(below), text).unwrap();
        }

        fn copy(&self, path: &str, max: u64) -> Result<String, String> {
            Copying::new(path, max, &CancellationToken::new())?.copy(&self.path("from"), &self.path("to"))
        }
    }

    #[test]
    fn a_folder_is_copied_with_its_modes_times_and_inner_links_and_by_no_hard_link() {
        let two = Two::new();
        two.write("from/m/a/run", "#!");
        fs::set_permissions(two.path("from/m/a/run"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("a/run", two.path("from/m/run")).unwrap();
        symlink("../../etc", two.path("from/m/out")).unwrap();
        symlink("/etc/passwd", two.path("from/m/abs")).unwrap();
        two.write("from/m/.env.local", "KEY=1");
        let said = two.copy("m", 100).unwrap();
        let [old, new] = ["from", "to"].map(|side| fs::metadata(two.path(side).join("m/a/run")).unwrap());
        assert_eq!((old.mode(), old.mtime(), old.mtime_nsec()), (new.mode(), new.mtime(), new.mtime_nsec()));
        assert_eq!((new.nlink(), old.nlink()), (1, 1));
        assert_ne!(new.ino(), old.ino());
        assert_eq!(fs::read_link(two.path("to/m/run")).unwrap(), Path::new("a/run"));
        for left_out in ["m/out", "m/abs", "m/.env.local"] {
            assert!(two.path("to").join(left_out).symlink_metadata().is_err(), "{left_out}");
            assert!(said.contains(left_out), "{said}");
        }
    }

    #[test]
    fn a_key_is_copied_if_it_is_named_and_only_then() {
        let two = Two::new();
        two.write("from/.env.local", "KEY=1");
        two.copy(".env.local", 100).unwrap();
        assert_eq!(fs::read_to_string(two.path("to/.env.local")).unwrap(), "KEY=1");
    }

    #[test]
    fn what_can_not_be_copied_leaves_nothing_and_says_what_to_do() {
        let two = Two::new();
        two.write("from/big/a", "0123456789");
        two.write("from/big/b", "0123456789");
        two.write("from/deep/x/y", "1");
        symlink("deep", two.path("from/linked")).unwrap();
        symlink("/etc/passwd", two.path("from/out")).unwrap();
        for (path, says) in [
            ("big", "raise `folder.copy_max`"),
            ("../x", "a path in the project folder"),
            ("/etc/passwd", "a path in the project folder"),
            ("", "a path in the project folder"),
            ("none", "No such file"),
            ("linked/x", "a link"),
            ("out", "leads out of the project"),
        ] {
            let why = two.copy(path, 15).unwrap_err();
            assert!(why.contains(says), "{path}: {why}");
        }
        assert_eq!(fs::read_dir(two.path("to")).unwrap().count(), 0);
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let cut = Copying::new("deep", 100, &cancelled).unwrap().copy(&two.path("from"), &two.path("to"));
        assert!(cut.unwrap_err().contains("stopped"));
    }
}
