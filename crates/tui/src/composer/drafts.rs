//! Drafts on the disk, so that a terminal that is killed loses none.
//!
//! Each terminal of a session has a file of its own in the session's folder, and beside it a lock that it holds while
//! it lives. A new terminal takes over the files of those that are gone: a file whose lock can be had has nobody.
//! The history of what was sent goes the same way, so that no file has two owners.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use midturn_core::rules::id::AgentName;
use midturn_view::review::Comment;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::DRAFT_MAX;
use super::history::History;

#[cfg(test)]
mod tests;

/// The most texts in a file, and bytes in all of them: 64 of the longest.
const TEXTS_MAX: usize = 1024;
/// The most comments in a file: each is short.
const COMMENTS_MAX: usize = 1024;
const BYTES_MAX: usize = 64 * DRAFT_MAX;
/// The longest file: a character that JSON escapes takes two bytes, of a few it does.
const FILE_MAX: u64 = 40 << 20;

/// What is saved of a composer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// What was not sent, by agent.
    pub drafts: Vec<SavedDraft>,
    /// What was sent or cleared, the oldest first.
    pub history: Vec<String>,
    /// What was said to lines of diffs and not sent, by agent.
    #[serde(default)]
    pub comments: Vec<(AgentName, Vec<Comment>)>,
}

/// What was written to one agent and not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedDraft {
    /// The agent.
    pub agent: AgentName,
    /// The draft, and what waits behind it.
    pub texts: Vec<String>,
    /// The line and the character where the draft's cursor is.
    pub cursor: (usize, usize),
}

/// Why drafts can't be kept on the disk.
#[derive(Debug, thiserror::Error)]
#[error("drafts can't be kept in {folder} ({error}): what is typed here is lost if this terminal is killed")]
pub struct DraftsError {
    folder: String,
    error: Error,
}

/// A terminal's file, which is its own while it lives.
#[derive(Debug)]
pub struct Drafts {
    path: PathBuf,
    folder: OwnedFd,
    name: String,
    /// Held, not read.
    _lock: OwnedFd,
}

/// What a terminal finds when it comes.
#[derive(Debug)]
pub struct Opened {
    /// Its file.
    pub drafts: Drafts,
    /// What terminals that are gone have left.
    pub saved: Saved,
    /// What a person has to know: a sentence for each file that could not be taken over.
    pub notes: Vec<String>,
}

impl Drafts {
    /// Opens a session's folder, which is made if there is none, and takes over what is left there.
    ///
    /// # Errors
    /// The folder is somebody else's, or can't be written. Nothing in it has changed.
    pub fn open(path: &Path) -> Result<Opened, DraftsError> {
        Self::try_open(path).map_err(|error| in_folder(path, error))
    }

    fn try_open(path: &Path) -> Result<Opened, Error> {
        let drafts = Self::begin(path)?;
        let (mut saved, mut notes, mut gone) = (Saved::default(), Vec::new(), Vec::new());
        for name in drafts.others()? {
            match drafts.find(&name, &saved) {
                Ok(Some(found)) => {
                    saved = found.together;
                    gone.push((name, found.lock));
                }
                Ok(None) => {}
                Err(note) => notes.push(note),
            }
        }
        // What is theirs goes only when it is ours.
        if !gone.is_empty() {
            drafts.write(&saved)?;
        }
        gone.iter().for_each(|(name, _)| drafts.remove(name));
        Ok(Opened { drafts, saved, notes })
    }

    /// Opens the folder and takes a lock of a name that nobody had before.
    fn begin(path: &Path) -> Result<Self, Error> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        if rustix::fs::fstat(&folder)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Error::new(ErrorKind::PermissionDenied, "it belongs to somebody else"));
        }
        rustix::fs::fchmod(&folder, Mode::RWXU)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:024}-{}", since.as_nanos(), std::process::id());
        // It gets its name when it is held: nobody finds it free.
        let (new, lock) = (format!("{name}.new"), lock_file(&name));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&folder, &new, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive)?;
        rustix::fs::renameat(&folder, &new, &folder, &lock)?;
        Ok(Self { path: path.to_owned(), folder, name, _lock: held })
    }

    /// The names of the other terminals, living or gone, the oldest first.
    fn others(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy();
            let name = file.strip_suffix(".json").or_else(|| file.strip_suffix(".lock"));
            names.extend(name.filter(|name| *name != self.name).map(str::to_owned));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// What a terminal has left, with what others have. `None`: it lives, or has left nothing.
    fn find(&self, name: &str, before: &Saved) -> Result<Option<Found>, String> {
        let file = self.path.join(data_file(name));
        let kept = |error: Error| {
            format!("drafts of another terminal could not be read ({error}): {}", file.display())
        };
        let Some(lock) = self.lock(name).map_err(kept)? else { return Ok(None) };
        let text = match self.read(name) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.remove(name);
                return Ok(None);
            }
            Err(error) => return Err(kept(error)),
        };
        let Some(saved) = parse(&text) else { return Err(self.put_aside(name)) };
        let together = before.clone().and(saved);
        match together.fits() {
            true => Ok(Some(Found { together, lock })),
            false => Err(kept(Error::other("there are too many"))),
        }
    }

    /// The lock of a terminal that is gone. `None`: it lives, or somebody else takes it over.
    fn lock(&self, name: &str) -> Result<Option<OwnedFd>, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(&self.folder, lock_file(name), flags, Mode::RUSR | Mode::WUSR)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(lock)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a file, but no more of it than one can have.
    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.folder, data_file(name), flags, Mode::empty())?);
        let mut text = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut text)?;
        Ok(text)
    }

    /// Keeps a damaged file where nobody reads it again, and says so.
    fn put_aside(&self, name: &str) -> String {
        let (file, aside) = (data_file(name), format!("{name}.damaged"));
        let moved = rustix::fs::renameat(&self.folder, &file, &self.folder, &aside);
        let left = if moved.is_ok() { aside } else { file };
        self.remove_file(&lock_file(name));
        let left = self.path.join(left);
        format!(
            "drafts of another terminal are damaged and were not taken over: look into {}",
            left.display()
        )
    }

    /// Takes away what is left of a terminal. Somebody else may have done it.
    fn remove(&self, name: &str) {
        let data = data_file(name);
        [beside(name), data, lock_file(name)].iter().for_each(|file| self.remove_file(file));
    }

    fn remove_file(&self, file: &str) {
        // What can't be removed is found again, and its texts are there already.
        let _ = rustix::fs::unlinkat(&self.folder, file, AtFlags::empty());
    }

    /// Writes the file, whole or not at all. It waits for the disk. Says how many texts were too many to be kept.
    ///
    /// # Errors
    /// It can't be written; what was saved last is there.
    pub fn save(&mut self, saved: &Saved) -> Result<usize, DraftsError> {
        let (kept, left_out) = saved.clone().cut();
        self.write(&kept).map_err(|error| in_folder(&self.path, error))?;
        Ok(left_out)
    }

    fn write(&self, saved: &Saved) -> Result<(), Error> {
        let text = serde_json::to_vec(saved)?;
        let beside = beside(&self.name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = rustix::fs::openat(&self.folder, &beside, flags, Mode::RUSR | Mode::WUSR)?;
        let mut new = File::from(new);
        new.write_all(&text)?;
        new.sync_data()?;
        rustix::fs::renameat(&self.folder, &beside, &self.folder, data_file(&self.name))?;
        Ok(())
    }
}

/// What a terminal that is gone has left.
struct Found {
    together: Saved,
    /// Held until it is ours.
    lock: OwnedFd,
}

impl Saved {
    /// These, and behind them those of another terminal. A text that is in both is one: a terminal that was killed
    /// while it took over a file leaves two.
    fn and(mut self, other: Self) -> Self {
        for SavedDraft { agent, texts, cursor } in other.drafts {
            let ours = match self.drafts.iter().position(|draft| draft.agent == agent) {
                Some(at) => &mut self.drafts[at],
                None => self.drafts.push_mut(SavedDraft { agent, texts: Vec::new(), cursor }),
            };
            texts.into_iter().for_each(|text| ours.add(text));
        }
        for (agent, comments) in other.comments {
            let ours = match self.comments.iter().position(|(known, _)| *known == agent) {
                Some(at) => &mut self.comments[at].1,
                None => &mut self.comments.push_mut((agent, Vec::new())).1,
            };
            let news = comments.into_iter().filter(|new| !ours.iter().any(|known| known.is_beside(new)));
            let news: Vec<Comment> = news.collect();
            ours.extend(news);
        }
        self.history.extend(other.history);
        self.history = History::new(self.history).entries();
        self
    }

    fn fits(&self) -> bool {
        self.clone().cut().1 == 0
    }

    /// As much of it as a file holds, and how many texts it doesn't.
    fn cut(mut self) -> (Self, usize) {
        let (mut texts, mut bytes) = (0, 0);
        let mut left_out = 0;
        for draft in &mut self.drafts {
            draft.texts.retain(|text| {
                let fits = text.len() <= DRAFT_MAX && texts < TEXTS_MAX && bytes + text.len() <= BYTES_MAX;
                (texts, bytes) = if fits { (texts + 1, bytes + text.len()) } else { (texts, bytes) };
                left_out += usize::from(!fits);
                fits
            });
        }
        let mut room = COMMENTS_MAX;
        for (_, comments) in &mut self.comments {
            left_out += comments.len().saturating_sub(room);
            comments.truncate(room);
            room -= comments.len();
        }
        (self, left_out)
    }
}

impl SavedDraft {
    fn add(&mut self, text: String) {
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }
}

/// What a file says. `None`: it is damaged.
fn parse(text: &[u8]) -> Option<Saved> {
    serde_json::from_slice(text).ok().filter(Saved::fits)
}

fn in_folder(path: &Path, error: Error) -> DraftsError {
    DraftsError { folder: path.display().to_string(), error }
}

fn lock_file(name: &str) -> String {
    format!("{name}.lock")
}

fn data_file(name: &str) -> String {
    format!("{name}.json")
}

/// Where a file is written before it takes the other one's place.
fn beside(name: &str) -> String {
    format!("{name}.json.new")
}
