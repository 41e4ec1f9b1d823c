//! What a command that is under way leaves behind when this process is killed: settings that it
//! planted and nobody has put aside yet, and what stood in where it was to make none; and what a run
//! has left for git. Meanwhile a file says what was there before; who comes later and finds one of a
//! dead process puts things right, before anything obeys them. Nothing is synced: a machine that loses
//! its power may lose the file too.
//!
//! A file is a digit and a record. From one command to the next mostly the digit changes: whether it is under way.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::mark::Owner;
use crate::protect::aside::remove_half_written;
use crate::protect::guard::{Before, Guard, Sought};
use crate::protect::head_of;
use crate::protect::repositories::{LeftForGit, Lossless, Snapshot};
use crate::sandbox::stand_in;

/// Where the files are, below the state folder, which no command sees.
const FOLDER: &str = "under-way";

/// How one is called that is being written.
const NEW: &str = "new";

/// The first byte of a file: the command that is told of is under way, or nothing of it is alive and it was looked
/// after.
const UNDER_WAY: u8 = b'1';
const OVER: u8 = b'0';

/// How many of them are looked at, and how large one is, in bytes.
const RECORDS_MAX: usize = 10_000;
const RECORD_MAX: u64 = 16 << 20;

/// What is told of an agent's command while it runs.
#[derive(Debug)]
pub(crate) struct UnderWay {
    file: PathBuf,
    folder: PathBuf,
    aside: PathBuf,
    /// What stands in the file, when it was written for a command in this run.
    told: Mutex<Option<Told>>,
    /// In a folder where a person will work.
    pub(crate) left_for_git: Option<LeftForGit>,
    /// Of what an earlier process left, what was done about it: to be told once.
    notes: Mutex<Vec<String>>,
}

/// What was told of an agent's last command.
#[derive(Debug)]
struct Told {
    command: Begun,
    stand_ins: Vec<Lossless>,
    is_over: bool,
}

/// What is in such a file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    owner: Owner,
    /// Where the agent works, and where what it plants is put aside.
    folder: Lossless,
    aside: Lossless,
    /// What stood in for what wasn't there; something that was put there since is not a command's.
    #[serde(default)]
    stand_ins: Vec<Lossless>,
    /// The command that is under way.
    command: Option<Begun>,
    /// What there was for git to obey before the run, where anybody works in the folder.
    repositories: Option<Snapshot>,
}

/// A command, as it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Begun {
    /// What had authority.
    there: BTreeSet<Lossless>,
    /// Whether that is all: a search may have stopped.
    is_whole: bool,
    temporary: Lossless,
}

impl UnderWay {
    /// For the commands of one agent of a session, one after the other, in this folder.
    pub(crate) fn of(state: &Path, session: &str, agent: &str, folder: &Path, aside: &Path) -> Self {
        let file = state.join(FOLDER).join(format!("{session}.{agent}.json"));
        let (folder, aside) = (folder.to_owned(), aside.to_owned());
        Self { file, folder, aside, told: Mutex::default(), left_for_git: None, notes: Mutex::default() }
    }

    /// Where its file is, which has to be for this user only.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// Before anything is changed: what has to be known at the run's end.
    ///
    /// # Errors
    /// It can't be known.
    pub(crate) fn run_begins(&self, guard: &Guard) -> io::Result<()> {
        let Some(left_for_git) = self.left_for_git.as_ref().filter(|left| !left.is_in_a_run()) else {
            return Ok(());
        };
        self.recover(guard)?;
        left_for_git.run_begins()?;
        *self.told.lock() = None;
        self.write(None, Vec::new())
    }

    /// Before a command, after the look: `stand_ins` are put where nothing is.
    pub(crate) fn begins(
        &self,
        before: &Before,
        stand_ins: impl Iterator<Item = PathBuf>,
        temporary: &Path,
    ) -> io::Result<()> {
        let there = before.there.iter().cloned().map(Lossless).collect();
        let (is_whole, temporary) = (before.is_whole(), Lossless(temporary.to_owned()));
        let command = Begun { there, is_whole, temporary };
        let stand_ins: Vec<_> = stand_ins.map(Lossless).collect();
        let mut told = self.told.lock();
        let same = told.take().filter(|told| told.command == command && told.stand_ins == stand_ins);
        // Somebody may have removed it: then it is written anew.
        if let Some(same) = same.filter(|_| self.say(UNDER_WAY).is_ok()) {
            *told = Some(Told { is_over: false, ..same });
            return Ok(());
        }
        self.write(Some(command.clone()), stand_ins.clone())?;
        *told = Some(Told { command, stand_ins, is_over: false });
        Ok(())
    }

    /// Nothing of the command is alive, and it was looked after. What there is to say of an earlier one.
    pub(crate) fn is_over(&self) -> Vec<String> {
        if let Some(told) = self.told.lock().as_mut() {
            // One that stays as it was says that there may be more to look after than there is.
            told.is_over = self.say(OVER).is_ok();
        }
        std::mem::take(&mut *self.notes.lock())
    }

    /// At a run's end: what there is to say of what it left for git.
    pub(crate) fn run_is_over(&self) -> Vec<String> {
        let notes = self.left_for_git.as_ref().map(LeftForGit::put_aside).unwrap_or_default();
        stand_in::sweep();
        *self.told.lock() = None;
        // As before.
        let _ = fs::remove_file(&self.file);
        notes
    }

    fn say(&self, how_far: u8) -> io::Result<()> {
        File::options().write(true).open(&self.file)?.write_all_at(&[how_far], 0)
    }

    fn write(&self, command: Option<Begun>, stand_ins: Vec<Lossless>) -> io::Result<()> {
        let record = Record {
            owner: Owner::ourselves()?,
            folder: Lossless(self.folder.clone()),
            aside: Lossless(self.aside.clone()),
            stand_ins,
            command,
            repositories: self.left_for_git.as_ref().and_then(LeftForGit::before),
        };
        let mut bytes = vec![UNDER_WAY];
        serde_json::to_writer(&mut bytes, &record)?;
        // Under its name there is always a whole one.
        let new = self.file.with_extension(NEW);
        fs::write(&new, bytes)?;
        fs::rename(&new, &self.file)
    }

    /// Before the look: whatever the last command of this agent left that nobody looked after, because
    /// its process was killed or its call given up, this guard puts right.
    pub(crate) fn recover(&self, guard: &Guard) -> io::Result<()> {
        if self.told.lock().as_ref().is_some_and(|told| told.is_over) {
            return Ok(());
        }
        let Some(Record { command, repositories, folder, stand_ins, .. }) = read(&self.file) else {
            return Ok(());
        };
        if let Some(command) = command {
            take_down(&stand_ins);
            self.notes.lock().extend(command.put_right(guard, &folder.0, &stand_ins));
        }
        // What the run has left for git is looked for at its end.
        if let (Some(left_for_git), Some(repositories)) = (&self.left_for_git, repositories) {
            left_for_git.run_goes_on(&repositories);
        }
        Ok(())
    }
}

/// Puts right what commands of dead processes left in the folder `root` of a project and below, and
/// says what. To be called before anything that is there is obeyed.
pub fn recover(state: &Path, root: &Path) -> Vec<String> {
    let Ok(files) = fs::read_dir(state.join(FOLDER)) else { return Vec::new() };
    let Ok(ours) = Owner::ourselves() else { return Vec::new() };
    let mut notes = Vec::new();
    for file in files.take(RECORDS_MAX).flatten().map(|file| file.path()) {
        // Of a command that hasn't begun.
        if file.extension() == Some(NEW.as_ref()) {
            continue;
        }
        let Some(record) = read(&file) else { continue };
        let folder = &record.folder.0;
        if !folder.starts_with(root) || !record.owner.is_dead(&ours) {
            continue;
        }
        let put_right = record.put_right();
        notes.extend(
            put_right.unwrap_or_else(|error| {
                vec![format!("{} can't be looked through: {error}", folder.display())]
            }),
        );
        // What can't be removed is looked at again.
        let _ = fs::remove_file(&file);
    }
    notes
}

/// `None`: there is none.
fn read(file: &Path) -> Option<Record> {
    let bytes = head_of(file, RECORD_MAX).ok()?;
    // Before there was a digit, a file was there as long as its command.
    let (how_far, record) = match bytes.split_first()? {
        (b'{', _) => (UNDER_WAY, &*bytes),
        (how_far, record) => (*how_far, record),
    };
    let record: Record = serde_json::from_slice(record).ok()?;
    Some(Record { command: record.command.filter(|_| how_far == UNDER_WAY), ..record })
}

impl Record {
    /// Without the guard that there was.
    fn put_right(&self) -> io::Result<Vec<String>> {
        let Self {
            folder: Lossless(folder), aside: Lossless(aside), command, repositories, stand_ins, ..
        } = self;
        let guard = Guard::new(aside.clone(), false).watch(folder, Sought::Authorities)?;
        let mut notes = Vec::new();
        take_down(stand_ins);
        if let Some(command) = command {
            notes.extend(command.put_right(&guard, folder, stand_ins));
            // What is left of it harms nobody.
            let _ = fs::remove_dir_all(&command.temporary.0);
        }
        if let Some(repositories) = repositories {
            let left_for_git = LeftForGit::new(folder, &repositories.own(), aside);
            left_for_git.run_goes_on(repositories);
            notes.extend(left_for_git.put_aside());
            // What can't be removed is in no commit.
            let _ = remove_half_written(folder);
        }
        Ok(notes)
    }
}

impl Begun {
    fn put_right(&self, guard: &Guard, folder: &Path, stood: &[Lossless]) -> Vec<String> {
        let folder = folder.display();
        if !self.is_whole {
            return vec![format!(
                "a Midturn was killed while a command ran in {folder}: what it planted there can't be told from what was \
                 there before; a person has to look"
            )];
        }
        // No command could put anything where something stood in.
        let there = self.there.iter().chain(stood).map(|Lossless(path)| path.clone()).collect();
        let notes = guard.after(&Before::of(there)).into_iter();
        notes.map(|note| format!("of a command in {folder} that nobody could look after: {note}")).collect()
    }
}

/// Of a dead process.
fn take_down(stand_ins: &[Lossless]) {
    let stood = stand_ins.iter().map(|Lossless(path)| path);
    for path in stood.filter(|path| !stand_in::stands_at(path)) {
        // What isn't empty is none any more.
        let _ = stand_in::remove(path);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    /// C8: what a name can't say in JSON must stop no command and hide no find.
    #[test]
    fn a_record_holds_every_name_that_a_file_can_have() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
        fs::create_dir_all(top.join(".vscode")).unwrap();
        fs::create_dir(folder.path().join(FOLDER)).unwrap();
        let aside = folder.path().join("aside");
        let guard = || Guard::new(aside.clone(), false).watch(&top, Sought::Authorities).unwrap();
        let under_way = UnderWay::of(folder.path(), "s", "a", &top, &aside);
        let before = guard().before().unwrap();
        under_way.begins(&before, std::iter::empty(), &aside).unwrap();
        let planted = top.join(OsStr::from_bytes(b"\xff"));
        fs::create_dir_all(planted.join(".idea/x")).unwrap();
        assert_eq!(recover(folder.path(), folder.path()), Vec::<String>::new(), "its process lives");
        under_way.recover(&guard()).unwrap();
        assert!(top.join(".vscode").exists() && !planted.join(".idea").exists());
        let notes = under_way.is_over();
        assert!(notes.len() == 1 && notes[0].contains("of a command in"), "{notes:?}");
        let record = read(&under_way.file).unwrap();
        assert!(record.command.is_none(), "looked after");
        under_way.run_is_over();
        assert!(!under_way.file.exists());
    }

    #[test]
    fn the_same_is_told_by_a_digit_and_anything_else_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (top, aside) = (folder.path().join("top"), folder.path().join("aside"));
        fs::create_dir(&top).unwrap();
        fs::create_dir(folder.path().join(FOLDER)).unwrap();
        let guard = || Guard::new(aside.clone(), false).watch(&top, Sought::Authorities).unwrap();
        let under_way = UnderWay::of(folder.path(), "s", "a", &top, &aside);
        let inode = || std::os::unix::fs::MetadataExt::ino(&under_way.file.metadata().unwrap());
        let stand_in = top.join(".claude");
        let begins = |stand_ins: &[&PathBuf]| {
            let before = guard().before().unwrap();
            under_way.begins(&before, stand_ins.iter().map(|&path| path.clone()), &aside).unwrap();
            inode()
        };
        let is_told = || read(&under_way.file).unwrap().command.is_some();
        let first = begins(&[&stand_in]);
        assert!(is_told());
        under_way.is_over();
        assert!(!is_told() && read(&under_way.file).unwrap().stand_ins.len() == 1);
        assert_eq!(begins(&[&stand_in]), first);
        assert!(is_told());
        under_way.is_over();
        fs::remove_file(&under_way.file).unwrap();
        let anew = begins(&[&stand_in]);
        assert!(is_told());
        // A call that was given up: nobody said that it is over.
        fs::create_dir(&stand_in).unwrap();
        under_way.recover(&guard()).unwrap();
        assert!(!stand_in.exists());
        assert_ne!(begins(&[]), anew);
        assert!(is_told());
    }
}
