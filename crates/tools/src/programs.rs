//! Programs of ours: those that we run outside every sandbox, or build one with. A person's `PATH`
//! often begins with a folder of the project, and whoever can write there could have us run what
//! they like: so a program is taken only from where neither an agent nor another user can put one.
//! Commands of agents keep their `PATH`.
//!
//! All of this process share one list of the folders in which agents write, since what is a person's
//! folder to one session may be another session's project.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::Mutex;
use rustix::process::{getegid, geteuid};

/// Where everybody can write.
const FOR_ALL: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// How many links lead to a program at most.
const LINKS_MAX: usize = 40;

/// A program that we run ourselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// It builds sandboxes.
    Bubblewrap,
    /// Claude Code, which is only asked for its version.
    Claude,
    /// Everything about branches and worktrees.
    Git,
    /// What it takes to tell git's two outputs apart, and to try a sandbox.
    Shell,
}

impl Program {
    const ALL: [Self; 3] = [Self::Bubblewrap, Self::Git, Self::Shell];

    const fn name(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bwrap",
            Self::Claude => "claude",
            Self::Git => "git",
            Self::Shell => "sh",
        }
    }
}

/// Why a program of ours can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no `{name}` in PATH{but}")]
pub struct NoProgram {
    name: &'static str,
    /// What is there and not used.
    but: String,
}

/// What this process knows of its programs.
struct Known {
    search: Search,
    /// Of those that were looked up.
    found: BTreeMap<Program, Found>,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(|| {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut search = Search { path, out_of: BTreeSet::new(), trusted: Trusted::of_this_system() };
    for folder in FOR_ALL.iter().map(PathBuf::from).chain([std::env::temp_dir()]) {
        search.keep_out_of(&folder);
    }
    Mutex::new(Known { search, found: BTreeMap::new() })
});

/// From now on no program of ours comes from below these folders: agents can write there. There are
/// as many as there are projects.
pub fn keep_out_of<'a>(folders: impl IntoIterator<Item = &'a Path>) {
    let mut known = KNOWN.lock();
    for folder in folders {
        if known.search.keep_out_of(folder) {
            known.found.clear();
        }
    }
}

/// Where a program of ours is.
///
/// # Errors
/// It is nowhere, or only where somebody else could have put it.
pub fn find(program: Program) -> Result<PathBuf, NoProgram> {
    let found = KNOWN.lock().look_up(program);
    found.at.ok_or_else(|| NoProgram {
        name: program.name(),
        but: found.skipped.iter().map(|skipped| format!("; {skipped}")).collect(),
    })
}

/// What stands in `PATH` before a program of ours, or in its place, and is not used; and why.
pub fn skipped() -> Vec<String> {
    let mut known = KNOWN.lock();
    Program::ALL.into_iter().flat_map(|program| known.look_up(program).skipped).collect()
}

/// Whether a program that our git may start is where nobody else can have put it.
pub(crate) fn is_in_path(name: &str) -> bool {
    KNOWN.lock().search.find(name).at.is_some()
}

/// What our git gets as `PATH`: of ours, the folders that nobody else can write in.
pub(crate) fn path() -> OsString {
    KNOWN.lock().search.folders()
}

impl Known {
    fn look_up(&mut self, program: Program) -> Found {
        self.found.entry(program).or_insert_with(|| self.search.find(program.name())).clone()
    }
}

/// What came of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    at: Option<PathBuf>,
    skipped: Vec<String>,
}

/// Where programs are searched for, and where not.
#[derive(Debug)]
struct Search {
    path: OsString,
    out_of: BTreeSet<PathBuf>,
    trusted: Trusted,
}

impl Search {
    /// Whether that is news.
    fn keep_out_of(&mut self, folder: &Path) -> bool {
        let real = real(folder);
        let is_known = self.out_of.iter().any(|known| real.starts_with(known));
        !is_known && self.out_of.insert(real)
    }

    fn find(&self, name: &str) -> Found {
        let mut found = Found::default();
        for folder in std::env::split_paths(&self.path) {
            let file = folder.join(name);
            if !is_program(&file) {
                continue;
            }
            match self.checked(&folder, name) {
                Ok(at) => return Found { at: Some(at), ..found },
                Err(why) => found.skipped.push(format!("`{}` is not used: {why}", file.display())),
            }
        }
        found
    }

    fn folders(&self) -> OsString {
        let folders = std::env::split_paths(&self.path).filter(|folder| folder.is_absolute());
        let folders = folders.filter_map(|folder| folder.canonicalize().ok());
        let checked: Vec<_> = folders.filter(|folder| self.check(folder).is_ok()).collect();
        // What was split can be joined.
        std::env::join_paths(checked).unwrap_or_default()
    }

    /// The program under the name that it has in its folder, where every link on the way to it is
    /// as it should be: some programs go by their name.
    fn checked(&self, folder: &Path, name: &str) -> Result<PathBuf, String> {
        if folder.is_relative() {
            return Err("a folder in PATH has to be a whole path".to_owned());
        }
        let at = in_real_folder(&folder.join(name))?;
        let mut step = at.clone();
        for _ in 0..LINKS_MAX {
            self.check(&step)?;
            let Ok(to) = fs::read_link(&step) else { return Ok(at) };
            step = in_real_folder(&step.parent().unwrap_or(Path::new("/")).join(to))?;
        }
        Err("too many links lead to it".to_owned())
    }

    /// Whether nobody else can have put there what is at this path, which has no links above it.
    fn check(&self, path: &Path) -> Result<(), String> {
        if let Some(folder) = self.out_of.iter().find(|folder| path.starts_with(folder)) {
            return Err(format!("agents, or others, can write in {}", folder.display()));
        }
        let others = path.ancestors().find(|part| !self.trusted.is_only_ours(part));
        others.map_or(Ok(()), |part| Err(format!("others can change {}", part.display())))
    }
}

/// Who may change what we run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trusted {
    owners: [u32; 3],
    groups: Vec<u32>,
}

impl Trusted {
    /// Ourselves, and root: who, in a user namespace, is whoever the system's own files belong to.
    fn of_this_system() -> Self {
        let (us, group) = (geteuid().as_raw(), getegid().as_raw());
        let (owner, of_system) = fs::metadata("/usr").map_or((0, 0), |about| (about.uid(), about.gid()));
        // A group of the user's number is that user's own on most systems.
        let own = (us == group).then_some(group);
        Self { owners: [us, 0, owner], groups: [0, of_system].into_iter().chain(own).collect() }
    }

    /// Whether nobody else can change a file, or what is in a folder. In a folder like `/tmp` nobody
    /// else can.
    fn is_only_ours(&self, path: &Path) -> bool {
        let Ok(about) = path.symlink_metadata() else { return false };
        let mode = about.mode();
        let is_kept = about.is_symlink() || (about.is_dir() && mode & 0o1000 != 0);
        let by_group = mode & 0o020 != 0 && !self.groups.contains(&about.gid());
        self.owners.contains(&about.uid()) && (is_kept || (mode & 0o002 == 0 && !by_group))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// A path with its folder as it really is.
fn in_real_folder(path: &Path) -> Result<PathBuf, String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(format!("{} is no file", path.display()));
    };
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.join(name))
}

/// A path as it really is, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, there)) = there else { return path.to_owned() };
    there.join(path.strip_prefix(above).unwrap_or(OsStr::new("").as_ref()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Not below a folder for temporary files: those are kept out of.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    fn program(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// C5: agents can write in the project, and its `.venv/bin` is first in `PATH`.
    #[test]
    fn programs_come_only_from_where_nobody_else_can_write() {
        let (_folder, top) = place();
        let at = |path: &str| top.join(path);
        for (path, mode) in [
            ("project/.venv/bin/git", 0o755),
            ("open/git", 0o755),
            ("file/git", 0o777),
            ("team/git", 0o775),
            ("data/git", 0o644),
            ("good/git", 0o755),
        ] {
            program(&at(path), mode);
        }
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        for folder in ["linked", "chain", "named"] {
            fs::create_dir(at(folder)).unwrap();
        }
        symlink(at("project/.venv/bin"), at("venv")).unwrap();
        symlink("../project/.venv/bin/git", at("linked/git")).unwrap();
        symlink(at("project/git"), at("chain/git")).unwrap();
        symlink(at("good/git"), at("project/git")).unwrap();
        symlink("../good/git", at("named/git")).unwrap();
        let us = geteuid().as_raw();
        let mut search = Search {
            path: OsString::new(),
            out_of: BTreeSet::new(),
            trusted: Trusted { owners: [us, 0, 0], groups: Vec::new() },
        };
        assert!(search.keep_out_of(&at("project")) && !search.keep_out_of(&at("project/not/there")));
        let rows = [
            ("project/.venv/bin", Some("can write in")),
            ("venv", Some("can write in")),
            ("linked", Some("can write in")),
            ("chain", Some("can write in")),
            ("open", Some("others can change")),
            ("file", Some("others can change")),
            ("team", Some("others can change")),
            ("data", None),
            ("none", None),
        ];
        for (folder, why) in rows {
            search.path = std::env::join_paths([at(folder), at("good")]).unwrap();
            let found = search.find("git");
            assert_eq!(found.at, Some(at("good/git")), "{folder}");
            let why_not = found.skipped.first().map(String::as_str);
            assert_eq!(why_not.is_some(), why.is_some(), "{folder}: {why_not:?}");
            assert!(why.is_none_or(|why| why_not.unwrap().contains(why)), "{folder}: {why_not:?}");
        }
        search.path = std::env::join_paths([at("named"), at("good")]).unwrap();
        assert_eq!(search.find("git").at, Some(at("named/git")), "under the name that it has there");
        search.path =
            std::env::join_paths([Path::new("bin"), &at("project/.venv/bin"), &at("open")]).unwrap();
        assert_eq!(search.find("git").at, None);
        assert_eq!(search.folders(), "");
        search.path = std::env::join_paths([at("venv"), at("good"), "relative".into()]).unwrap();
        assert_eq!(search.folders(), at("good"));
    }

    #[test]
    fn what_is_root_s_and_what_is_one_s_own_is_trusted_and_no_other_user_s() {
        let (_folder, top) = place();
        let file = top.join("git");
        let about = top.metadata().unwrap();
        for (owners, groups, mode, expected) in [
            (about.uid(), vec![], 0o755, true),
            (about.uid() + 1, vec![], 0o755, false),
            (about.uid(), vec![about.gid()], 0o775, true),
            (about.uid(), vec![about.gid() + 1], 0o775, false),
            (about.uid(), vec![about.gid()], 0o777, false),
        ] {
            program(&file, mode);
            let trusted = Trusted { owners: [owners; 3], groups };
            assert_eq!(trusted.is_only_ours(&file), expected, "{trusted:?} {mode:o}");
        }
        // Others' files can't be replaced in there.
        fs::set_permissions(&top, fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(Trusted { owners: [about.uid(); 3], groups: Vec::new() }.is_only_ours(&top));
    }
}
