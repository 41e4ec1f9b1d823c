//! Watches over one agent's folders while a command runs: looks before it what has authority,
//! so that this can be made read-only for it, and looks again after it. What came to be in
//! between is put aside, and what has to have its content gets it back. With mounts the second
//! half finds little to do; with Landlock alone a file can be replaced where its folder is
//! writable, and so can git's own folder as a whole.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::aside::Aside;
use super::beneath::{entries, kind, name, open_folder, parent_of};
use super::memory::Memory;
use super::original::{Original, usable};
use super::replaced::{Mounted, Replaced};
use super::walk::{Bound, Stopped, Walked, authorities};
use super::what;

/// How many sentences one command gets; who plants more is told of the others' number.
const NOTES_MAX: usize = 5;

/// What is looked for, in words.
const SOUGHT: &str = "settings that commands may not make";

/// How often a folder is looked through for more after what was found was put aside.
const LOOKS_MAX: usize = 16;

/// In git's common folder, where its own folders for worktrees are; and how many are looked at.
const WORKTREES: &str = "worktrees";
const WORKTREES_MAX: usize = 1_000;

/// A folder, held open.
#[derive(Debug)]
struct OpenFolder {
    folder: OwnedFd,
    path: PathBuf,
}

/// What is looked for in a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sought {
    /// Names with authority, at any depth.
    Authorities,
    /// The same, but for a repository at the top, which is the agent's own.
    AuthoritiesBesideItsRepository,
    /// These names, in a folder of git's.
    Names(&'static [&'static str]),
    /// These files in git's own folders for worktrees that were there before, in this one of git's.
    Worktrees(&'static [&'static str]),
}

/// A folder, and what is looked for in it.
#[derive(Debug)]
struct Watched {
    at: OpenFolder,
    sought: Sought,
}

/// What was there before a command.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// What had authority, by its whole path.
    pub(crate) there: BTreeSet<PathBuf>,
    /// What is to be mounted so that the command can't write it.
    pub(crate) to_mount: Vec<PathBuf>,
    /// The same, to be known again.
    mounted: Vec<Mounted>,
    /// What it held where nothing prevents a change, and by whom it is watched.
    memories: Vec<(usize, Memory)>,
    /// The looks that came upon too much, and by whom: what they missed can't be told from what is
    /// planted.
    stopped: Vec<(usize, Stopped)>,
}

impl Before {
    /// What somebody remembers.
    pub(crate) fn of(there: BTreeSet<PathBuf>) -> Self {
        Self { there, ..Self::default() }
    }

    /// Whether nothing was missed.
    pub(crate) fn is_whole(&self) -> bool {
        self.stopped.is_empty()
    }
}

/// What was there before the first of the commands that are under way in one folder: what one of
/// them has planted so far is not what another one gives back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Together(Arc<Mutex<Weak<Before>>>);

/// One agent's guard.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    aside: Aside,
    /// Whether the sandbox can mount what is there so that it can't be changed.
    mounts: bool,
    /// What has to be where it was for a command to run.
    originals: Vec<Arc<Original>>,
    /// The other guards of the same folders, made as this one is, with which it looks as one.
    pub(crate) together: Option<Together>,
    /// Where a command could have moved either.
    within: Vec<PathBuf>,
    watched: Vec<Watched>,
    stops: Mutex<Stops>,
    replaced: Replaced,
}

/// Where looks stopped, in words: once in a run.
#[derive(Debug, Default)]
struct Stops {
    said: bool,
    note: Option<String>,
}

impl Guard {
    /// Puts aside into a folder that no command can write in.
    pub(crate) fn new(aside: PathBuf, mounts: bool) -> Self {
        Self { aside: Aside::new(aside), mounts, ..Self::default() }
    }

    /// Sees to it that these folders stay where they are, though commands can write in the folders
    /// `within`. What is looked for in one of them, from now on, is looked for wherever it is.
    pub(crate) fn originals(mut self, originals: &[Arc<Original>], within: &[PathBuf]) -> Self {
        // What isn't there yet is a folder of ours, and known by its real name.
        self.within =
            within.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
        self.originals = originals.to_vec();
        self
    }

    /// Looks for this in this folder.
    pub(crate) fn watch(mut self, folder: &Path, sought: Sought) -> io::Result<Self> {
        let at = match self.originals.iter().find(|original| original.path == folder) {
            Some(original) => OpenFolder { folder: original.folder.try_clone()?, path: folder.to_owned() },
            None => OpenFolder::open(folder)?,
        };
        self.watched.push(Watched { at, sought });
        Ok(self)
    }

    /// What a person has to see to before a command may run. `None`: nothing.
    pub(crate) fn missing(&self) -> Option<String> {
        self.originals.iter().find(|original| !original.is_in_place()).map(|original| original.missing())
    }

    /// Looks before a command.
    ///
    /// # Errors
    /// A folder can't be read: then nobody knows what would have to be kept from the command. Or
    /// one that has to stay where it is isn't there.
    pub(crate) fn before(&self) -> io::Result<Arc<Before>> {
        if let Some(missing) = self.missing() {
            return Err(io::Error::other(missing));
        }
        let Some(together) = &self.together else { return self.look().map(Arc::new) };
        let mut under_way = together.0.lock();
        if let Some(before) = under_way.upgrade() {
            return Ok(before);
        }
        let before = Arc::new(self.look()?);
        *under_way = Arc::downgrade(&before);
        Ok(before)
    }

    fn look(&self) -> io::Result<Before> {
        let mut before = Before::default();
        for (by, watched) in self.watched.iter().enumerate() {
            let at = &watched.at;
            usable(at.folder.as_fd())?;
            let memory = |path: &Path| Memory::of(at.folder.as_fd(), path);
            let Walked { found, stopped } = watched.found(0)?;
            if let Some(stopped) = stopped {
                self.stops.lock().note.get_or_insert_with(|| stopped.told(&at.path, SOUGHT));
                before.stopped.push((by, stopped));
            }
            for path in found {
                if watched.is_its_own(&path) {
                    before.there.insert(at.path.join(path));
                    continue;
                }
                let kind = at.kind(&path);
                // Of a whole repository what matters is watched by name.
                let is_repository = kind == Some(FileType::Directory) && path.ends_with(".git");
                if self.mounts && kind != Some(FileType::Symlink) {
                    let of_git = matches!(watched.sought, Sought::Names(_));
                    before.mounted.push(Mounted::new(by, at.folder.as_fd(), &path, of_git));
                    before.to_mount.push(at.path.join(&path));
                } else if self.mounts || !is_repository {
                    before.memories.push((by, memory(&path)?));
                }
                before.there.insert(at.path.join(path));
            }
            for path in watched.files()? {
                before.memories.push((by, memory(&path)?));
            }
        }
        Ok(before)
    }

    /// Looks after a command, when nothing of it is alive; what there is to say of it.
    pub(crate) fn after(&self, before: &Before) -> Vec<String> {
        // Before anything that they could have been moved into is put aside itself.
        let (mut notes, lost) = self.put_back();
        for (by, watched) in self.watched.iter().enumerate() {
            let path = watched.at.path.display();
            notes.extend(self.put_aside(by, watched, before).unwrap_or_else(|error| {
                vec![format!("{path} can't be looked through for what was planted: {error}")]
            }));
        }
        for (by, memory) in &before.memories {
            let watched = &self.watched[*by];
            let is_lost = lost.iter().any(|path| watched.at.path.starts_with(path));
            if !is_lost && watched.still_has(&memory.path) {
                notes.extend(self.give_back(&watched.at, memory));
            }
        }
        let more = notes.len().saturating_sub(NOTES_MAX);
        notes.truncate(NOTES_MAX);
        if more > 0 {
            notes.push(format!("and {more} more of that kind"));
        }
        notes
    }

    /// What there is to say, and what could not be put back.
    fn put_back(&self) -> (Vec<String>, Vec<&Path>) {
        let (mut notes, mut lost): (Vec<_>, Vec<&Path>) = (Vec::new(), Vec::new());
        for original in &self.originals {
            if lost.iter().any(|path| original.path.starts_with(path)) {
                continue;
            }
            match original.put_back(&self.aside, &self.within) {
                Ok(put_back) => notes.extend(put_back),
                Err(note) => {
                    notes.push(format!("{note}. {}", original.missing()));
                    lost.push(&original.path);
                }
            }
        }
        (notes, lost)
    }

    /// Where a look for what is planted stopped, so that more may be there: to be told to an agent
    /// once in a run.
    pub(crate) fn stopped(&self) -> Option<String> {
        let mut stops = self.stops.lock();
        let note = stops.note.clone().filter(|_| !stops.said);
        stops.said |= note.is_some();
        note
    }

    /// The same at the run's end, for a person.
    pub(crate) fn stopped_in_run(&self) -> Option<String> {
        std::mem::take(&mut *self.stops.lock()).note
    }

    /// What somebody else put in the place of what was mounted; what there is to say of it. In folders that
    /// were `read_only` as a whole the new one couldn't be written either; and what `stands_in` for something comes
    /// and goes by us.
    pub(crate) fn replaced(
        &self,
        before: &Before,
        read_only: &[PathBuf],
        stands_in: fn(&Path) -> bool,
    ) -> Vec<String> {
        let told = |mounted: &Mounted| {
            let at = &self.watched[mounted.by].at;
            if stands_in(&at.path.join(&mounted.path)) {
                return None;
            }
            let folder = at.path.join(mounted.path.parent()?);
            let is_held = read_only.iter().any(|path| folder.starts_with(path));
            if is_held { None } else { mounted.told(at.folder.as_fd(), &at.path, &self.aside) }
        };
        let told: Vec<String> = before.mounted.iter().filter_map(told).collect();
        told.iter().for_each(|told| self.replaced.keep(told));
        told
    }

    /// The same at the run's end, for a person.
    pub(crate) fn replaced_in_run(&self) -> BTreeSet<String> {
        self.replaced.take()
    }

    /// What came to be is put aside; what there is to say of it.
    fn put_aside(&self, by: usize, watched: &Watched, before: &Before) -> io::Result<Vec<String>> {
        let at = &watched.at;
        usable(at.folder.as_fd())?;
        let missed = before.stopped.iter().find(|(of, _)| *of == by).map(|(_, stopped)| stopped);
        let is_new = |path: &PathBuf| {
            let is_known = before.there.contains(&at.path.join(path)) || at.is_a_stand_in(path);
            let is_known = is_known || watched.is_its_own(path);
            !is_known && missed.is_none_or(|missed| !missed.may_have_missed(path))
        };
        let mut notes = Vec::new();
        for _ in 0..LOOKS_MAX {
            let Walked { mut found, stopped } = watched.found(before.there.len())?;
            found.retain(is_new);
            notes.extend(self.put_all_aside(watched, &found));
            let Some(stopped) = stopped else { break };
            if found.is_empty() || matches!(stopped.why, Bound::Names(_)) {
                self.stops.lock().note.get_or_insert_with(|| stopped.told(&at.path, SOUGHT));
                break;
            }
        }
        Ok(notes)
    }

    fn put_all_aside(&self, watched: &Watched, found: &[PathBuf]) -> Vec<String> {
        let at = &watched.at;
        let put = |path: &PathBuf| {
            let shown = path.display();
            match self.aside.put(&at.folder, path) {
                Ok(None) => None,
                Ok(Some(place)) => Some(format!(
                    "`{shown}` was put aside to {}: {}, which commands may not make",
                    place.display(),
                    watched.reason(path)
                )),
                Err(error) => Some(format!(
                    "`{shown}` may not be made by commands and could not be put aside ({error}): a person has to remove it"
                )),
            }
        };
        found.iter().filter_map(put).collect()
    }

    /// What was changed although it was there is made as it was; what there is to say of it.
    fn give_back(&self, at: &OpenFolder, memory: &Memory) -> Option<String> {
        let shown = memory.path.display();
        let given_back = memory.changes(at.folder.as_fd()).and_then(|changed| {
            for path in changed.iter().flatten() {
                self.aside.put(&at.folder, path)?;
            }
            memory.restore(at.folder.as_fd())?;
            Ok(changed.is_some())
        });
        match given_back {
            Ok(false) => None,
            Ok(true) => Some(format!("`{shown}` was made as it was before: commands may not change it")),
            Err(error) => Some(format!(
                "`{shown}` was changed and can't be made as it was ({error}): a person has to look at it"
            )),
        }
    }
}

impl Watched {
    /// Whether it is the agent's repository, in which it may do as it likes.
    fn is_its_own(&self, path: &Path) -> bool {
        matches!(self.sought, Sought::AuthoritiesBesideItsRepository) && path == Path::new(".git")
    }

    /// Whether what is remembered belongs there yet: a worktree is removed by others too.
    fn still_has(&self, path: &Path) -> bool {
        let Sought::Worktrees(_) = self.sought else { return true };
        path.parent().and_then(|folder| self.at.kind(folder)) == Some(FileType::Directory)
    }

    /// Files of which only these are looked at, whether they are there or not.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let Sought::Worktrees(names) = self.sought else { return Ok(Vec::new()) };
        let all = self.at.worktrees()?;
        Ok(all.iter().flat_map(|own| names.iter().map(|name| own.join(name))).collect())
    }

    /// What is there; of so many it is `known`.
    fn found(&self, known: usize) -> io::Result<Walked> {
        let at = &self.at;
        let found = match self.sought {
            Sought::Authorities | Sought::AuthoritiesBesideItsRepository => {
                return authorities(at.folder.as_fd(), known);
            }
            Sought::Worktrees(_) => {
                let is_no_folder = |path: &PathBuf| at.kind(path) != Some(FileType::Directory);
                at.worktrees()?.into_iter().filter(is_no_folder).collect()
            }
            Sought::Names(names) => {
                let is_there = |name: &&&str| at.kind(Path::new(name)).is_some();
                names.iter().filter(is_there).map(PathBuf::from).collect()
            }
        };
        Ok(Walked { found, stopped: None })
    }

    fn reason(&self, path: &Path) -> &'static str {
        let name = path.file_name().unwrap_or_default();
        match self.sought {
            Sought::Authorities | Sought::AuthoritiesBesideItsRepository => {
                what(name.as_encoded_bytes()).unwrap_or("it gives authority")
            }
            Sought::Names(_) | Sought::Worktrees(_) => "git's own settings",
        }
    }
}

impl OpenFolder {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { folder, path: path.to_owned() })
    }

    fn kind(&self, path: &Path) -> Option<FileType> {
        let (parent, name) = parent_of(&self.folder, path).ok()??;
        kind(&parent, name).ok()
    }

    /// What is where git's own folders for worktrees are.
    fn worktrees(&self) -> io::Result<Vec<PathBuf>> {
        let folder = open_folder(&self.folder, Path::new(WORKTREES))?;
        let all = entries(&folder)?.take(WORKTREES_MAX);
        Ok(all.map(|entry| Path::new(WORKTREES).join(name(&entry))).collect())
    }

    /// Whether it may be one that stands in where another command is not to make one: an empty
    /// folder at the top, which gives nobody anything. Further down hundreds of them would end the
    /// look before it came to what is planted.
    fn is_a_stand_in(&self, path: &Path) -> bool {
        if path.components().count() > 1 {
            return false;
        }
        let inside = open_folder(&self.folder, path).and_then(entries);
        inside.is_ok_and(|mut entries| entries.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a project and one of git's, and who guards them.
    fn guarded(mounts: bool) -> (tempfile::TempDir, Guard) {
        let folder = tempfile::tempdir().unwrap();
        let path = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(path("top/sub/.vscode")).unwrap();
        std::fs::create_dir_all(path("git/hooks")).unwrap();
        std::fs::create_dir(path("top/.git")).unwrap();
        let guard = Guard::new(path("aside"), mounts)
            .watch(&path("top"), Sought::AuthoritiesBesideItsRepository)
            .and_then(|guard| guard.watch(&path("git"), Sought::Names(&["hooks", "config.worktree"])))
            .unwrap();
        (folder, guard)
    }

    #[test]
    fn what_a_command_planted_is_put_aside_and_what_was_there_stays() {
        for mounts in [true, false] {
            let (folder, guard) = guarded(mounts);
            let path = |path: &str| folder.path().join(path);
            let before = guard.before().unwrap();
            let expected = ["top/sub/.vscode", "git/hooks"].map(path);
            assert_eq!(before.to_mount, if mounts { expected.to_vec() } else { Vec::new() });
            assert_eq!(guard.after(&before), Vec::<String>::new());

            std::fs::write(path("top/sub/midturn.toml"), "").unwrap();
            std::fs::write(path("git/config.worktree"), "").unwrap();
            std::fs::write(path("top/.git/config"), "its own").unwrap();
            std::fs::create_dir(path("top/.idea")).unwrap();
            let notes = guard.after(&before);
            assert_eq!(notes.len(), 2, "{notes:?}");
            for gone in ["top/sub/midturn.toml", "git/config.worktree"] {
                assert!(path(gone).symlink_metadata().is_err(), "{gone}");
            }
            assert!(path("top/.git/config").exists() && path("top/sub/.vscode").exists());
            assert_eq!(guard.after(&before), Vec::<String>::new());
        }
    }

    #[test]
    fn what_no_mount_protects_is_given_back() {
        let (folder, guard) = guarded(false);
        let path = |path: &str| folder.path().join(path);
        let before = guard.before().unwrap();
        std::fs::write(path("top/sub/.vscode/tasks.json"), "{}").unwrap();
        std::fs::remove_dir(path("git/hooks")).unwrap();
        std::os::unix::fs::symlink("/tmp", path("git/hooks")).unwrap();
        assert_eq!(guard.after(&before).len(), 2);
        assert!(!path("top/sub/.vscode/tasks.json").exists() && path("top/sub/.vscode").is_dir());
        assert!(path("git/hooks").is_dir() && !path("git/hooks").is_symlink());
    }

    #[test]
    fn what_one_command_planted_so_far_is_not_what_another_gives_back() {
        let (folder, guard) = guarded(false);
        let path = |path: &str| folder.path().join(path);
        let guard = Guard { together: Some(Together::default()), ..guard };
        let first = guard.before().unwrap();
        std::fs::write(path("git/hooks/planted"), "").unwrap();
        std::fs::write(path("top/midturn.toml"), "").unwrap();
        let second = guard.before().unwrap();
        assert_eq!(guard.after(&first).len(), 2);
        drop(first);
        assert_eq!(guard.after(&second), Vec::<String>::new());
        assert!(!path("git/hooks/planted").exists() && !path("top/midturn.toml").exists());
        drop(second);
        std::fs::write(path("git/hooks/of-a-person"), "").unwrap();
        let third = guard.before().unwrap();
        assert_eq!(guard.after(&third), Vec::<String>::new());
        assert!(path("git/hooks/of-a-person").exists());
    }

    /// C7: what more than 256 names with authority hid.
    #[test]
    fn however_many_are_planted_all_are_put_aside() {
        let (folder, guard) = guarded(true);
        let path = |path: String| folder.path().join(path);
        let before = guard.before().unwrap();
        for n in 0..600 {
            std::fs::create_dir_all(path(format!("top/{n}/.vscode"))).unwrap();
        }
        let notes = guard.after(&before);
        assert!(notes.last().unwrap().contains("595 more"), "{notes:?}");
        assert!((0..600).all(|n| !path(format!("top/{n}/.vscode")).exists()));
        assert_eq!(guard.stopped(), None);
    }

    /// C7: what a look doesn't reach before a command may be a person's.
    #[test]
    fn a_search_that_stops_says_so_once_in_a_run_and_takes_nothing_that_it_may_have_missed() {
        let (folder, guard) = guarded(true);
        let path = |path: String| folder.path().join(path);
        for n in 0..300 {
            std::fs::create_dir_all(path(format!("top/{n}/.vscode"))).unwrap();
        }
        for run in 0..2 {
            let before = guard.before().unwrap();
            // The order in which names are told changes with these.
            for n in 300..400 {
                std::fs::create_dir_all(path(format!("top/{run}-{n}"))).unwrap();
            }
            std::fs::create_dir_all(path("top/.idea/x".into())).unwrap();
            let notes = guard.after(&before);
            assert!(notes.len() == 1 && notes[0].contains("`.idea`"), "{notes:?}");
            assert!((0..300).all(|n| path(format!("top/{n}/.vscode")).exists()));
            let note = guard.stopped().unwrap();
            assert!(note.contains("stopped after 256 of them, at "), "{note}");
            assert_eq!(guard.stopped(), None);
            assert_eq!(guard.stopped_in_run(), Some(note));
        }
    }

    #[test]
    fn what_stands_in_comes_and_goes_and_anything_else_that_is_replaced_is_told() {
        let (folder, guard) = guarded(true);
        let place = folder.path().join("top/.idea");
        std::fs::create_dir_all(&place).unwrap();
        let before = guard.before().unwrap();
        // Another one, while the first is still there.
        std::fs::create_dir(folder.path().join("new")).unwrap();
        std::fs::rename(&place, folder.path().join("old")).unwrap();
        std::fs::rename(folder.path().join("new"), &place).unwrap();
        assert_eq!(guard.replaced(&before, &[], |path| path.ends_with(".idea")), Vec::<String>::new());
        let told = guard.replaced(&before, &[], |_| false);
        assert!(told.len() == 1 && told[0].contains("was replaced from outside"), "{told:?}");
    }
}
