//! What agents leave for git: repositories below a folder whose settings, hooks and pointers git
//! obeys for whoever works in there (docs/decisions/0035). It is looked for at a run's end and before
//! git works in the folder, not after each command.
//!
//! A repository is left where it is; of what git would obey in it, what was not there before is put
//! aside. `.git` at the top is the project's own, and watched by the guard.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, FileType, Mode};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::aside::{Aside, restore};
use super::beneath::{HANDLE, entries, head_in, kind, name, open_folder, parent_of};
use super::git_settings::Settings;
use super::walk::{git_folders, is_dot_git};

/// The largest file of settings that is read, in bytes, and the longest pointer to a folder.
const SETTINGS_MAX: u64 = 256 << 10;
const POINTER_MAX: u64 = 8 << 10;

/// How many hooks are looked at.
const HOOKS_MAX: usize = 1_000;

/// How many sentences there are of one look.
const NOTES_MAX: usize = 5;

/// Files that git would obey, by their paths below a folder.
pub(crate) type Known = BTreeMap<PathBuf, Left>;

/// What is left for git in a folder where a person will work, run by run.
#[derive(Debug)]
pub(crate) struct LeftForGit {
    folder: PathBuf,
    /// Git's own folders of the project.
    own: Vec<PathBuf>,
    aside: Aside,
    /// What was there when the run began. `None`: none has.
    before: Mutex<Option<Known>>,
}

impl LeftForGit {
    /// In this folder of a project that has these folders of git's own.
    pub(crate) fn new(folder: &Path, own: &[PathBuf], aside: &Path) -> Self {
        let (folder, aside) = (folder.to_owned(), Aside::new(aside.to_owned()));
        Self { folder, own: own.to_vec(), aside, before: Mutex::default() }
    }

    /// Whether a run has begun.
    pub(crate) fn is_in_a_run(&self) -> bool {
        self.before.lock().is_some()
    }

    /// Before the first change of a run: the repositories that are there are a person's.
    ///
    /// # Errors
    /// The folder can't be read.
    pub(crate) fn run_begins(&self) -> io::Result<()> {
        let mut before = self.before.lock();
        if before.is_none() {
            *before = Some(repositories(&self.folder, &self.own)?.found);
        }
        Ok(())
    }

    /// What was there before the run, for somebody who outlives us.
    pub(crate) fn before(&self) -> Option<Snapshot> {
        self.before.lock().as_ref().map(|known| Snapshot::of(&self.own, known))
    }

    /// And that again: the run was begun by somebody else.
    pub(crate) fn run_goes_on(&self, snapshot: &Snapshot) {
        self.before.lock().get_or_insert_with(|| snapshot.known());
    }

    /// What git would obey in repositories that were made or changed in this run is put aside; what
    /// there is to say of it. For the run's end, and before git works in the folder.
    pub(crate) fn put_aside(&self) -> Vec<String> {
        let Some(known) = self.before.lock().take() else { return Vec::new() };
        match repositories(&self.folder, &self.own) {
            Ok(mut now) => {
                let mut notes = now.put_aside(&known, &self.aside);
                notes.extend(now.stopped);
                notes
            }
            Err(error) => {
                vec![format!("{} can't be looked through for repositories: {error}", self.folder.display())]
            }
        }
    }
}

/// What git would obey below a folder.
#[derive(Debug)]
pub(crate) struct Repositories {
    top: OwnedFd,
    found: Known,
    /// Where the look stopped, if it did, in words: beyond that nothing was found.
    pub(crate) stopped: Option<String>,
}

/// What was found, as it is remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    own: Vec<Lossless>,
    found: Vec<(Lossless, Left)>,
}

impl Snapshot {
    pub(crate) fn of(own: &[PathBuf], known: &Known) -> Self {
        let found = known.iter().map(|(path, left)| (Lossless(path.clone()), left.clone())).collect();
        Self { own: own.iter().cloned().map(Lossless).collect(), found }
    }

    pub(crate) fn known(&self) -> Known {
        self.found.iter().map(|(Lossless(path), left)| (path.clone(), left.clone())).collect()
    }

    /// Git's own folders of the project.
    pub(crate) fn own(&self) -> Vec<PathBuf> {
        self.own.iter().map(|Lossless(path)| path.clone()).collect()
    }
}

/// A path as it is remembered: it may be no text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "OsString", into = "OsString")]
pub(crate) struct Lossless(pub(crate) PathBuf);

impl From<OsString> for Lossless {
    fn from(path: OsString) -> Self {
        Self(path.into())
    }
}

impl From<Lossless> for OsString {
    fn from(Lossless(path): Lossless) -> Self {
        path.into()
    }
}

/// A file that git would obey, as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    what: What,
    /// Its inode, and when it was last changed in any way, which nobody can set back.
    stamp: (u64, i64, i64),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum What {
    /// Settings that run programs, and what else the file says.
    Settings { risky: Vec<String>, rest: String },
    /// A program.
    Hook,
    /// Git is led there, where nobody looks.
    LeadsOut(Lossless),
}

/// Looks through the folder at `top`. `own` are git's own folders of the project, wherever they
/// are: commands can't change what is in there.
///
/// # Errors
/// The folder can't be read.
pub(crate) fn repositories(top: &Path, own: &[PathBuf]) -> io::Result<Repositories> {
    let real_top = top.canonicalize()?;
    let held = rustix::fs::openat(CWD, &real_top, HANDLE, Mode::empty())?;
    let walked = git_folders(held.as_fd())?;
    let own = own.iter().cloned().chain([real_top.join(".git")]).filter_map(|own| own.canonicalize().ok());
    let mut look =
        Look { own: own.collect(), top: real_top, held, found: BTreeMap::new(), seen: BTreeSet::new() };
    for path in &walked.found {
        let folder = path.parent().unwrap_or(Path::new(""));
        if is_dot_git(path.file_name().unwrap_or_default().as_bytes()) {
            look.dot_git(path)?;
        } else if look.is_git_folder(folder) {
            look.git_folder(folder)?;
        }
    }
    let stopped = walked.stopped.map(|stopped| stopped.told(top, "repositories that git would obey"));
    Ok(Repositories { top: look.held, found: look.found, stopped })
}

impl Repositories {
    /// Puts aside what came to be since `before`, or was changed; what there is to say of it.
    pub(crate) fn put_aside(&mut self, before: &Known, aside: &Aside) -> Vec<String> {
        let new = self.found.iter().filter(|(path, left)| before.get(*path) != Some(left));
        let new: Vec<_> = new.map(|(path, _)| path.clone()).collect();
        let left = new.into_iter().filter_map(|path| self.found.remove_entry(&path));
        let left: Vec<_> = left.collect();
        let mut notes: Vec<_> = left.iter().filter_map(|(path, left)| self.put(path, left, aside)).collect();
        let more = notes.len().saturating_sub(NOTES_MAX);
        notes.truncate(NOTES_MAX);
        if more > 0 {
            notes.push(format!("and {more} more of that kind"));
        }
        notes
    }

    fn put(&self, path: &Path, left: &Left, aside: &Aside) -> Option<String> {
        let shown = path.display();
        let why = match &left.what {
            What::Settings { risky, .. } => {
                format!("has settings by which git runs programs or reads other files ({})", risky.join(", "))
            }
            What::Hook => "is run by git for whoever works there".to_owned(),
            What::LeadsOut(Lossless(to)) => format!("leads git to {}", to.display()),
        };
        let place = match aside.put(&self.top, path) {
            Ok(None) => return None,
            Ok(Some(place)) => place,
            Err(error) => {
                return Some(format!(
                    "`{shown}` {why} and could not be put aside ({error}): a person has to look at it before using git there"
                ));
            }
        };
        let kept = match &left.what {
            What::Settings { rest, .. } => match restore(&self.top, path, rest.as_bytes()) {
                Ok(()) => "; what else it says was kept".to_owned(),
                Err(error) => format!("; what else it says could not be kept ({error})"),
            },
            What::Hook | What::LeadsOut(_) => String::new(),
        };
        Some(format!("`{shown}` {why}: it was put aside to {}{kept}", place.display()))
    }
}

/// A look under way.
struct Look {
    top: PathBuf,
    held: OwnedFd,
    own: Vec<PathBuf>,
    found: BTreeMap<PathBuf, Left>,
    /// Folders of git's that were looked into.
    seen: BTreeSet<PathBuf>,
}

impl Look {
    /// A folder, or what leads to one.
    fn dot_git(&mut self, path: &Path) -> io::Result<()> {
        match self.kind(path) {
            Some(FileType::Directory) => self.git_folder(path),
            Some(FileType::Symlink) => self.link(path),
            Some(FileType::RegularFile) => {
                let text = self.head(path, POINTER_MAX)?;
                let Some(to) = text.strip_prefix(b"gitdir:") else { return Ok(()) };
                self.pointer(path, &bytes_path(to))
            }
            _ => Ok(()),
        }
    }

    /// As git tells it, without being asked for more than is needed.
    fn is_git_folder(&self, folder: &Path) -> bool {
        let is_there = |name: &str| self.kind(&folder.join(name)).is_some();
        is_there("commondir") || (is_there("objects") && is_there("refs"))
    }

    fn git_folder(&mut self, folder: &Path) -> io::Result<()> {
        if !self.seen.insert(folder.to_owned()) {
            return Ok(());
        }
        for name in ["config", "config.worktree"] {
            self.settings(folder, &folder.join(name))?;
        }
        self.hooks(&folder.join("hooks"))?;
        let common = folder.join("commondir");
        match self.kind(&common) {
            Some(FileType::Symlink) => self.link(&common),
            Some(FileType::RegularFile) => {
                let to = bytes_path(&self.head(&common, POINTER_MAX)?);
                self.pointer(&common, &to)
            }
            _ => Ok(()),
        }
    }

    fn settings(&mut self, folder: &Path, path: &Path) -> io::Result<()> {
        match self.kind(path) {
            Some(FileType::Symlink) => {
                return self.add(path, What::LeadsOut(Lossless(self.read_link(path)?)));
            }
            Some(FileType::RegularFile) => {}
            _ => return Ok(()),
        }
        let bytes = self.head(path, SETTINGS_MAX + 1)?;
        let stays = |to: &str| {
            let place = self.place(folder, Path::new(to));
            place.is_ok_and(|place| place.is_some_and(|place| is_of_submodule(folder, &place)))
        };
        let Settings { mut risky, rest } = Settings::read(&bytes, stays);
        if bytes.len() as u64 > SETTINGS_MAX {
            risky.push("too much to read".to_owned());
        }
        if risky.is_empty() { Ok(()) } else { self.add(path, What::Settings { risky, rest }) }
    }

    fn hooks(&mut self, folder: &Path) -> io::Result<()> {
        match self.kind(folder) {
            Some(FileType::Symlink) => {
                return self.add(folder, What::LeadsOut(Lossless(self.read_link(folder)?)));
            }
            Some(FileType::Directory) => {}
            _ => return Ok(()),
        }
        let opened = open_folder(&self.held, folder)?;
        let all: Vec<_> = match entries(&opened) {
            Err(Errno::ACCESS) => return Ok(()),
            all => all?.take(HOOKS_MAX).map(|entry| folder.join(name(&entry))).collect(),
        };
        for path in all {
            // Samples are no hooks as long as they are called so.
            if path.extension() != Some(OsStr::new("sample")) && self.is_program(&path) {
                self.add(&path, What::Hook)?;
            }
        }
        Ok(())
    }

    fn is_program(&self, path: &Path) -> bool {
        self.stat(path).is_some_and(|stat| match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => true,
            FileType::RegularFile => stat.st_mode & 0o111 != 0,
            _ => false,
        })
    }

    fn link(&mut self, path: &Path) -> io::Result<()> {
        let to = self.read_link(path)?;
        self.pointer(path, &to)
    }

    /// What is at `path` leads to a folder of git's. In the project that is looked into; elsewhere it
    /// could be anybody's, or come to be later.
    fn pointer(&mut self, path: &Path, to: &Path) -> io::Result<()> {
        match self.place(path.parent().unwrap_or(Path::new("")), to) {
            Ok(Some(folder)) => self.git_folder(&folder),
            Ok(None) => Ok(()),
            Err(place) => self.add(path, What::LeadsOut(Lossless(place))),
        }
    }

    /// Where a path leads that is seen from a folder: below the top, or, `None`, into git's own folders
    /// of the project.
    fn place(&self, from: &Path, to: &Path) -> Result<Option<PathBuf>, PathBuf> {
        let place = self.top.join(from).join(to);
        // What isn't there yet leads nowhere that could be looked into.
        let Ok(real) = place.canonicalize() else { return Err(place) };
        if self.own.iter().any(|own| real.starts_with(own)) {
            return Ok(None);
        }
        real.strip_prefix(&self.top).map(|below| Some(below.to_owned())).map_err(|_| real.clone())
    }

    fn add(&mut self, path: &Path, what: What) -> io::Result<()> {
        if let Some(stat) = self.stat(path) {
            let stamp = (stat.st_ino, stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or_default());
            self.found.insert(path.to_owned(), Left { what, stamp });
        }
        Ok(())
    }

    fn stat(&self, path: &Path) -> Option<rustix::fs::Stat> {
        let (parent, name) = parent_of(&self.held, path).ok()??;
        rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn kind(&self, path: &Path) -> Option<FileType> {
        let (parent, name) = parent_of(&self.held, path).ok()??;
        kind(&parent, name).ok()
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let (parent, name) = parent_of(&self.held, path)?.ok_or(io::ErrorKind::NotFound)?;
        let to = rustix::fs::readlinkat(&parent, name, Vec::new())?;
        Ok(OsString::from_vec(to.into_bytes()).into())
    }

    /// One that was taken away meanwhile, or can't be read by us, says nothing.
    fn head(&self, path: &Path, max: u64) -> io::Result<Vec<u8>> {
        let Some((parent, name)) = parent_of(&self.held, path)? else { return Ok(Vec::new()) };
        Ok(head_in(&parent, name.as_ref(), max).unwrap_or_default())
    }
}

/// Whether a work tree is where the submodules of a repository are that has their folders of git's:
/// another one would be what git writes when a person checks something out.
fn is_of_submodule(folder: &Path, work_tree: &Path) -> bool {
    let above = folder.ancestors().find(|above| above.ends_with(".git/modules"));
    let repository = above.and_then(|modules| modules.parent()?.parent());
    repository.is_some_and(|repository| {
        let below = work_tree.strip_prefix(repository).ok().and_then(|below| below.iter().next());
        below.is_some_and(|first| !is_dot_git(first.as_bytes()))
    })
}

fn bytes_path(text: &[u8]) -> PathBuf {
    OsStr::from_bytes(text.trim_ascii()).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    /// A project with a repository of its own and a fresh clone in `vendor/x`; beside it a program that
    /// says when it ran.
    struct Place {
        folder: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let place = Self { folder: tempfile::tempdir().unwrap() };
            for folder in ["upstream", "project"] {
                std::fs::create_dir(place.path(folder)).unwrap();
                place.git(folder, &["init", "--quiet", "--initial-branch", "main"]);
                place.git(folder, &["commit", "--quiet", "--allow-empty", "--message", "First"]);
            }
            let upstream = place.path("upstream");
            place.git("project", &["clone", "--quiet", upstream.to_str().unwrap(), "vendor/x"]);
            place.write("evil", &format!("#!/bin/sh\necho ran >> {}\n", place.path("ran").display()));
            place.executable("evil");
            place
        }

        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn executable(&self, path: &str) {
            std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn git(&self, folder: &str, words: &[&str]) -> String {
            let mut git = Command::new("git");
            for (name, value) in [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")] {
                git.env(name, value);
            }
            let who = ["-c", "user.name=p", "-c", "user.email=p@example.invalid"];
            let said = git.current_dir(self.path(folder)).args(who).args(words).output().unwrap();
            String::from_utf8(said.stdout).unwrap().trim().to_owned()
        }

        fn shell(&self, text: &str) {
            let mut shell = Command::new("sh");
            shell.env("EVIL", self.path("evil")).env("OUT", self.path("out"));
            assert!(shell.current_dir(self.path("project")).args(["-ec", text]).status().unwrap().success());
        }

        fn look(&self) -> Repositories {
            repositories(&self.path("project"), &[]).unwrap()
        }

        fn ran(&self) -> bool {
            std::fs::remove_file(self.path("ran")).is_ok()
        }
    }

    /// What an agent does in the project; `EVIL` is the program, `OUT` a folder beside the project.
    const BARE: &str = "git init -q --bare $1; printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\n\
                        worktree = %s\\nfsmonitor = %s\\n' $PWD $EVIL > $1/config";
    const ELSEWHERE: &str = "git init -q $OUT/x; git -C $OUT/x config core.fsmonitor $EVIL; mkdir -p y";

    /// C4: what an agent plants, the file that is put aside, and where a person works then.
    #[test]
    fn what_git_would_obey_is_put_aside_and_a_repository_goes_on() {
        let rows = [
            ("vendor/x/.git/config", "vendor/x", "git -C vendor/x config core.fsmonitor $EVIL".to_owned()),
            ("y/.git/config", "y", "git init -q y; git -C y config core.fsmonitor $EVIL".to_owned()),
            ("data/config", "data", format!("set data; {BARE}")),
            ("y/.git", "y", format!("{ELSEWHERE}; echo gitdir: $OUT/x/.git > y/.git")),
            ("y/fake/config", "y", format!("mkdir y; set y/fake; {BARE}; echo gitdir: fake > y/.git")),
            ("y/.git", "y", format!("{ELSEWHERE}; ln -s $OUT/x/.git y/.git")),
            (
                "y/.git/commondir",
                "y",
                format!("{ELSEWHERE}; git init -q y; echo $OUT/x/.git > y/.git/commondir"),
            ),
        ];
        for (file, works_in, planted) in rows {
            let place = Place::new();
            let aside = Aside::new(place.path("aside"));
            let before = place.look().found;
            assert_eq!(before, Known::new(), "a fresh clone is work");
            place.shell(&planted);
            let works_in = format!("project/{works_in}");
            place.git(&works_in, &["status"]);
            assert!(place.ran(), "{file}: git obeys it");
            let notes = place.look().put_aside(&before, &aside);
            assert!(notes.len() == 1 && notes[0].starts_with(&format!("`{file}` ")), "{file}: {notes:?}");
            place.git(&works_in, &["status"]);
            assert!(!place.ran(), "{file}: {notes:?}");
            assert_eq!(place.look().put_aside(&before, &aside), Vec::<String>::new(), "{file}");
            let remote = place.git("project/vendor/x", &["remote", "get-url", "origin"]);
            assert_eq!(remote, place.path("upstream").display().to_string(), "{file}");
        }
    }

    /// C4: the same for hooks; and what a person had there stays.
    #[test]
    fn what_was_there_before_stays_until_it_is_changed() {
        let place = Place::new();
        let aside = Aside::new(place.path("aside"));
        let hook = |name: &str| {
            let path = format!("project/vendor/x/.git/hooks/{name}");
            std::fs::create_dir_all(place.path("project/vendor/x/.git/hooks")).unwrap();
            std::fs::copy(place.path("evil"), place.path(&path)).unwrap();
            path
        };
        let of_a_person = hook("pre-commit");
        place.git("project/vendor/x", &["config", "alias.st", "!true"]);
        let before = place.look().found;
        assert_eq!(before.len(), 2);
        let planted = hook("post-checkout");
        hook("update.sample");
        let notes = place.look().put_aside(&before, &aside);
        assert!(notes.len() == 1 && notes[0].contains("post-checkout"), "{notes:?}");
        assert!(place.path(&of_a_person).exists() && !place.path(&planted).exists());
        assert_eq!(place.git("project/vendor/x", &["config", "alias.st"]), "!true");

        place.git("project/vendor/x", &["config", "core.pager", "x"]);
        std::fs::write(place.path(&of_a_person), "#!/bin/sh\necho changed\n").unwrap();
        let notes = place.look().put_aside(&before, &aside);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("alias.st") && notes[0].contains("core.pager"), "{notes:?}");
        assert!(!place.path(&of_a_person).exists());
        assert_eq!(place.git("project/vendor/x", &["config", "core.pager"]), "");
    }

    /// The project's own folders of git are kept from commands: what leads there is a submodule, or a
    /// worktree that a person made.
    #[test]
    fn what_leads_to_the_projects_own_folders_is_let_be() {
        let place = Place::new();
        place.git("project", &["worktree", "add", "--quiet", "trees/a"]);
        place.git("project/vendor/x", &["worktree", "add", "--quiet", "../y"]);
        let upstream = place.path("upstream");
        let add = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            upstream.to_str().unwrap(),
            "sub",
        ];
        place.git("project", &add);
        place.git("project/vendor/x", &add);
        for pointer in ["trees/a", "vendor/y", "sub", "vendor/x/sub"] {
            assert!(place.path("project").join(pointer).join(".git").is_file(), "{pointer}");
        }
        let found = place.look().found;
        assert!(found.is_empty(), "{found:?}");
        // The project may itself be a worktree, or a folder of one.
        let inside = repositories(&place.path("project/trees"), &[place.path("project/.git")]).unwrap();
        assert!(inside.found.is_empty(), "{inside:?}");
    }

    /// C4: git writes what a person checks out to where a work tree is said to be.
    #[test]
    fn only_a_submodules_work_tree_may_be_elsewhere() {
        for (folder, work_tree, may) in [
            ("vendor/x/.git/modules/sub", "vendor/x/sub", true),
            ("vendor/x/.git/modules/a/modules/b", "vendor/x/a/b", true),
            ("vendor/x/.git/modules/sub", "vendor/x", false),
            ("vendor/x/.git/modules/sub", "vendor", false),
            ("vendor/x/.git/modules/sub", "vendor/x/.git/hooks", false),
            ("vendor/x/.git", "vendor/x/sub", false),
            ("data", "src", false),
        ] {
            assert_eq!(is_of_submodule(Path::new(folder), Path::new(work_tree)), may, "{folder} {work_tree}");
        }
    }
}
