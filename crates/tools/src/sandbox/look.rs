//! A look at files by their names, in which each name is asked for once. Whoever keeps it can tell later whether all
//! is still as it was: the same names, asked once more, and no path followed again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::stand_in::stands_at;

/// So many links are followed in one path at most, as the system does.
const LINKS_MAX: usize = 40;

/// What was found, by names through which no link leads.
#[derive(Debug, Default)]
pub(super) struct Look(RefCell<HashMap<OsString, Result<Found, Errno>>>);

/// What has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    kind: FileType,
    /// Where it leads, if it is a link; and when it was made, since another could have its number.
    link: Option<(PathBuf, i64, i64)>,
}

impl Found {
    pub(super) fn is_folder(&self) -> bool {
        self.kind.is_dir()
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    /// Where it leads, if it is a link.
    pub(super) fn link(&self) -> Option<&Path> {
        self.link.as_ref().map(|(to, ..)| to.as_path())
    }

    /// What stands in for something that isn't there isn't there either.
    fn at(path: &Path) -> io::Result<Self> {
        // Asked twice: another command's may be put or removed in between.
        let stands = stands_at(path);
        let found = path.symlink_metadata();
        if stands || stands_at(path) {
            return Err(Errno::NOENT.into());
        }
        Self::of(path, &found?)
    }

    fn of(path: &Path, found: &Metadata) -> io::Result<Self> {
        let target = found.is_symlink().then(|| path.read_link()).transpose()?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
            mode: found.mode(),
            user: found.uid(),
            group: found.gid(),
            kind: found.file_type(),
            link: target.map(|to| (to, found.ctime(), found.ctime_nsec())),
        })
    }
}

impl Look {
    /// Whether all that was asked for is as it was.
    pub(super) fn is_still_true(&self) -> bool {
        self.0.borrow().iter().all(|(path, found)| asked(Path::new(path)) == *found)
    }

    /// What has a name through which no link leads.
    pub(super) fn found(&self, path: &Path) -> io::Result<Found> {
        if let Some(found) = self.0.borrow().get(path.as_os_str()) {
            return Ok(found.clone()?);
        }
        let found = asked(path);
        self.0.borrow_mut().insert(path.into(), found.clone());
        Ok(found?)
    }

    /// Whether a path leads to a folder.
    pub(super) fn is_folder(&self, path: &Path) -> bool {
        self.canonical(path).and_then(|path| self.found(&path)).is_ok_and(|found| found.is_folder())
    }

    /// Where an absolute path leads.
    ///
    /// # Errors
    /// Those of [`Path::canonicalize`].
    pub(super) fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let mut links = 0;
        let mut at = PathBuf::from("/");
        // The next one last.
        let mut rest = parts(path);
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            if part == "." {
                continue;
            }
            at.push(&part);
            let found = self.found(&at)?;
            if let Some(to) = found.link() {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                at.pop();
                if to.is_absolute() {
                    at = "/".into();
                }
                rest.extend(parts(to));
            } else if !rest.is_empty() && !found.is_folder() {
                return Err(Errno::NOTDIR.into());
            }
        }
        Ok(at)
    }
}

/// The last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    // What ends with a slash has to be a folder.
    let last = path.as_os_str().as_bytes().ends_with(b"/").then(|| ".".into());
    last.into_iter().chain(path.components().rev().filter_map(part)).collect()
}

fn asked(path: &Path) -> Result<Found, Errno> {
    Found::at(path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_leads_where_the_system_says() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/file"), "").unwrap();
        for (to, from) in [
            ("a", "to-a"),
            ("../to-a/b", "a/round"),
            ("loop", "loop"),
            ("a/b/..", "up"),
            ("none", "to-none"),
            ("a/file/", "to-file"),
        ] {
            symlink(to, at(from)).unwrap();
        }
        symlink(at("to-a"), at("absolute")).unwrap();
        let look = Look::default();
        for path in [
            "to-a/b",
            "a/round",
            "a/round/../file",
            "loop",
            "up/file",
            "to-none",
            "none/more",
            "a/file/..",
            "absolute/round/.",
            "a/file",
            "to-file",
            "a/../../",
            "to-a/none",
        ] {
            let path = at(path);
            let (ours, systems) = (look.canonical(&path), path.canonicalize());
            let told = |led: io::Result<PathBuf>| led.map_err(|error| error.raw_os_error());
            assert_eq!(told(ours), told(systems), "{}", path.display());
            assert_eq!(look.is_folder(&path), path.is_dir());
        }
        assert!(look.is_still_true());
    }

    #[test]
    fn whatever_is_changed_on_a_path_is_noticed() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |path: &str| folder.path().join(path);
        type Change<'a> = &'a dyn Fn();
        let changes: [(&str, Change<'_>); 6] = [
            ("something is made", &|| fs::write(at("d/none"), "").unwrap()),
            ("a folder is moved away", &|| fs::rename(at("d"), at("e")).unwrap()),
            ("a folder comes into the place of a link", &|| {
                fs::remove_file(at("link")).unwrap();
                fs::create_dir(at("link")).unwrap();
            }),
            ("a link leads elsewhere", &|| {
                fs::remove_file(at("link")).unwrap();
                symlink("/", at("link")).unwrap();
            }),
            ("nobody else may enter any more", &|| {
                fs::set_permissions(at("d"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            }),
            ("a file is replaced", &|| {
                fs::write(at("new"), "").unwrap();
                fs::rename(at("new"), at("d/file")).unwrap();
            }),
        ];
        for (name, change) in changes {
            let _ = (fs::remove_dir_all(at("d")), fs::remove_dir_all(at("e")), fs::remove_file(at("link")));
            let _made_by_a_change = fs::remove_dir(at("link"));
            fs::create_dir(at("d")).unwrap();
            fs::write(at("d/file"), "").unwrap();
            symlink("d", at("link")).unwrap();
            let look = Look::default();
            for path in ["link/file", "d/none"] {
                let _there_or_not = look.canonical(&at(path));
            }
            assert!(look.is_still_true());
            change();
            assert!(!look.is_still_true(), "{name}");
        }
    }
}
