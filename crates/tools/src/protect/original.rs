//! Git's own folders, held open from before any agent works. A command that may write the folder
//! they are in can move one away and put another in its place, where no mount prevents it: what
//! stands there is put aside then, and the original comes back. It is known by its device and
//! inode, looked for only where a command could have moved it, and nothing is followed.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::aside::{Aside, name_of_ours};
use super::beneath::HANDLE;

/// What the owner of a folder needs to change it: a command can take that away.
const OF_OWNER: u32 = 0o700;

/// A folder that stays where it is.
#[derive(Debug)]
pub(crate) struct Original {
    pub(super) folder: OwnedFd,
    /// Its device and inode.
    id: (u64, u64),
    /// Where it belongs.
    pub(super) path: PathBuf,
    /// The folder that a command can't move, and the way from there.
    top: OwnedFd,
    below: PathBuf,
}

impl Original {
    /// Holds the folder at `path`. `None`: it isn't below `top`, so nobody who may write there
    /// can move it.
    ///
    /// # Errors
    /// It isn't there, or there is a link on the way.
    pub(crate) fn open(top: &Path, path: &Path) -> io::Result<Option<Self>> {
        let Some(below) = path.strip_prefix(top).ok().filter(|below| below.file_name().is_some()) else {
            return Ok(None);
        };
        let top = rustix::fs::openat(CWD, top, HANDLE, Mode::empty())?;
        let folder = way(top.as_fd(), below)?;
        let id = id(&rustix::fs::fstat(&folder)?);
        Ok(Some(Self { folder, id, path: path.to_owned(), top, below: below.to_owned() }))
    }

    /// Whether it is where it belongs.
    pub(super) fn is_in_place(&self) -> bool {
        way(self.top.as_fd(), &self.below).and_then(rustix::fs::fstat).is_ok_and(|stat| id(&stat) == self.id)
    }

    /// Puts it back from wherever it is below one of the folders `within`, and puts aside what
    /// stands in its place. In words; `None`: it was where it belongs.
    ///
    /// # Errors
    /// It can't be put back, in words; what stood in its place isn't there either, as far as it could
    /// be put aside.
    pub(super) fn put_back(&self, aside: &Aside, within: &[PathBuf]) -> Result<Option<String>, String> {
        // Nothing can be done in a folder without these; who owns it can't be kept from it.
        let usable = usable(self.top.as_fd()).and_then(|()| usable(self.folder.as_fd()));
        if self.is_in_place() {
            return Ok(None);
        }
        // First of all it is taken out of where it is: that may be what is put aside.
        let taken = usable.and_then(|()| self.take(within));
        let put = if self.is_in_place() { Ok(None) } else { aside.put(&self.top, &self.below) };
        let path = self.path.display();
        let instead = match &put {
            Ok(Some(place)) => format!("; what stood in its place was put aside to {}", place.display()),
            Ok(None) => String::new(),
            Err(error) => format!("; what stands in its place could not be put aside ({error})"),
        };
        let name = self.below.file_name().unwrap_or_default();
        let why = match taken {
            // Where its place is taken yet, it is refused.
            Ok((beside, own)) => match renameat_with(&beside, &own, &beside, name, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    let words = "was put back where it belongs: commands may not move it";
                    return Ok(Some(format!("`{path}` {words}{instead}")));
                }
                Err(errno) => format!("{errno}, it is now {}", self.path.with_file_name(own).display()),
            },
            Err(error) => error.to_string(),
        };
        Err(format!("`{path}` was moved or removed and can't be put back: {why}{instead}"))
    }

    /// What there is to say as long as it isn't where it belongs.
    pub(super) fn missing(&self) -> String {
        format!(
            "`{}` is not the folder that it was when this session began: a person has to put that one back, or to \
             look at what is there and restart Midturn; until then no command is run here",
            self.path.display()
        )
    }

    /// Gives it a name of ours beside its place: the folder that this is in, and the name.
    fn take(&self, within: &[PathBuf]) -> io::Result<(OwnedFd, String)> {
        let at = std::fs::read_link(own_path(self.folder.as_fd()))?;
        let top = within.iter().find(|top| at.starts_with(top) && at != **top);
        let (Some(top), Some(parent), Some(name)) = (top, at.parent(), at.file_name()) else {
            return Err(io::Error::other(format!("it is at {}", at.display())));
        };
        let gone = || io::Error::other("it was removed");
        let top_held = rustix::fs::openat(CWD, top, HANDLE, Mode::empty())?;
        let parent = parent.strip_prefix(top).map_err(io::Error::other)?;
        let parent = way(top_held.as_fd(), parent).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => gone(),
            other => other.into(),
        })?;
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW);
        if !stat.is_ok_and(|stat| id(&stat) == self.id) {
            return Err(gone());
        }
        let beside = way(self.top.as_fd(), self.below.parent().unwrap_or(Path::new("")))?;
        let own = name_of_ours("original");
        renameat_with(&parent, name, &beside, &own, RenameFlags::NOREPLACE)?;
        Ok((beside, own))
    }
}

/// A folder below another, through no link, whatever may be done in those on the way.
fn way(top: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let mut here = rustix::fs::openat(top, ".", HANDLE, Mode::empty())?;
    for part in path {
        // Whether it helped is seen next.
        let _ = usable(here.as_fd());
        here = rustix::fs::openat(&here, part, HANDLE, Mode::empty())?;
    }
    let _ = usable(here.as_fd());
    Ok(here)
}

/// Gives us the rights in a folder of ours that a command took away: without them nothing in it
/// is seen.
pub(super) fn usable(folder: BorrowedFd<'_>) -> io::Result<()> {
    let stat = rustix::fs::fstat(folder)?;
    let mode = stat.st_mode & 0o7777;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
    if !is_ours || mode & OF_OWNER == OF_OWNER || !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Ok(());
    }
    // A handle that needs no right gives none; its own path leads to it and nowhere else.
    std::fs::set_permissions(own_path(folder), std::fs::Permissions::from_mode(mode | OF_OWNER))
}

fn own_path(held: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", held.as_raw_fd()).into()
}

fn id(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_comes_back_from_where_commands_can_write_and_from_nowhere_else() {
        type Done = fn(&Path) -> io::Result<()>;
        let rows: [(&str, bool, Done); 7] = [
            ("away", true, |top| std::fs::rename(top.join("git"), top.join("g"))),
            ("replaced", true, |top| {
                std::fs::rename(top.join("git"), top.join("g"))?;
                std::fs::write(top.join("git"), "planted")
            }),
            ("in what replaces it", true, |top| {
                std::fs::create_dir(top.join("new"))?;
                std::fs::rename(top.join("git"), top.join("new/g"))?;
                std::fs::rename(top.join("new"), top.join("git"))
            }),
            ("locked", true, |top| {
                std::fs::create_dir(top.join("sub"))?;
                std::fs::rename(top.join("git"), top.join("sub/g"))?;
                std::fs::create_dir(top.join("git"))?;
                let locked = || std::fs::Permissions::from_mode(0o0);
                std::fs::set_permissions(top.join("git"), locked())?;
                std::fs::set_permissions(top.join("sub/g"), locked())?;
                std::fs::set_permissions(top.join("sub"), locked())?;
                std::fs::set_permissions(top, std::fs::Permissions::from_mode(0o500))
            }),
            ("behind a link", true, |top| {
                std::fs::rename(top.join("git"), top.join("g"))?;
                std::os::unix::fs::symlink("g", top.join("git"))
            }),
            ("elsewhere", false, |top| std::fs::rename(top.join("git"), top.join("../g"))),
            ("removed", false, |top| {
                std::fs::remove_dir_all(top.join("git"))?;
                std::fs::create_dir(top.join("git"))
            }),
        ];
        for (claim, comes_back, done) in rows {
            let folder = tempfile::tempdir().unwrap();
            let top = folder.path().canonicalize().unwrap().join("top");
            std::fs::create_dir_all(top.join("git/hooks")).unwrap();
            let original = Original::open(&top, &top.join("git")).unwrap().unwrap();
            let aside = Aside::new(folder.path().join("aside"));
            assert_eq!(original.put_back(&aside, &[]), Ok(None), "{claim}");
            done(&top).unwrap();
            let became = original.put_back(&aside, std::slice::from_ref(&top));
            assert_eq!(matches!(became, Ok(Some(_))), comes_back, "{claim}: {became:?}");
            assert_eq!(original.is_in_place(), comes_back, "{claim}: {became:?}");
            assert_eq!(top.join("git").symlink_metadata().is_ok(), comes_back, "{claim}: {became:?}");
            assert_eq!(top.join("git/hooks").is_dir(), comes_back, "{claim}: {became:?}");
        }
    }
}
