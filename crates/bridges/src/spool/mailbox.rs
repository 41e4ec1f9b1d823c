//! One joined agent's mailbox. Each step is one rename, so whoever dies between two leaves the message in a
//! folder, and whoever comes next finds it there.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use midturn_core::rules::boundary::{Committed, Inbox};
use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::{Point, ReturnReason, Urgency};
use serde::{Deserialize, Serialize};

use super::message::{Message, Name, key};
use super::place::{
    all_names, alone_now, is_ours_or_none, moved, names, own_folder, read, removed, write_whole,
};
use super::session::started;

/// How many settled ones are kept, so that their senders can ask.
const SETTLED: usize = 256;

const FOLDERS: [&str; 7] = ["new", "handed", "taken", "returned", "calls", "running", "landed"];

/// The mailbox of one joined agent.
#[derive(Debug)]
pub struct Mailbox {
    folder: PathBuf,
    pub(super) now: u64,
    /// Why a look failed; it can't say so itself.
    trouble: RefCell<Option<io::Error>>,
    /// Held by whoever takes, until it has said what.
    taking: RefCell<Option<File>>,
}

/// What became of a message that was accepted (semantics.md, section 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In the mailbox, or on its way: nothing shows yet that the model has it.
    Queued,
    /// In the conversation, as the program's transcript shows.
    Injected,
    /// It will never be.
    Returned(ReturnReason),
}

/// Where messages that were handed over together go in, and what they have cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// Where (semantics.md, section 3).
    pub point: Point,
    /// The calls that were skipped for them, by the program's ids.
    pub skipped: Vec<String>,
    /// The calls that were cut.
    pub interrupted: Vec<String>,
}

impl Landed {
    /// Where nothing is running that they could cost.
    pub(crate) fn at(point: Point) -> Self {
        Self { point, skipped: Vec::new(), interrupted: Vec::new() }
    }
}

/// What a withdraw came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// It is returned.
    Now,
    /// It was read, or has cost a call.
    TooLate,
    /// It was returned before.
    Before,
    /// There is no such message here.
    Unknown,
}

/// How a message was handed over, which its file's name says from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handed {
    /// When, in microseconds since 1970.
    pub(crate) at: u64,
    pub(crate) name: Name,
    /// How long the agent's transcript was then: what shows it stands behind that.
    pub(crate) offset: u64,
    pub(crate) by: By,
}

/// Who hands something over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct By {
    /// By waking an idle session, not as a hook's context.
    pub(crate) woke: bool,
    /// The program that it is given to, and when that began: another may take the session up.
    pub(crate) pid: u32,
    pub(crate) started: u64,
}

impl By {
    /// Whether that program is gone: what it has not shown it never will. One that is not said is not known to be.
    pub(crate) fn is_dead(&self) -> bool {
        self.pid != 0 && started(self.pid) != Some(self.started)
    }
}

/// What of a mailbox is on its way.
#[derive(Debug, Default)]
pub(crate) struct Open {
    pending: Vec<Name>,
    handed: Vec<Handed>,
}

impl Handed {
    fn file(&self) -> String {
        let By { woke, pid, started } = self.by;
        let how = if woke { 'w' } else { 'h' };
        format!("{}@{}-{}-{how}-{pid}-{started}", self.name, self.at, self.offset)
    }

    fn of_file(file: &str) -> Option<Self> {
        let (name, rest) = file.split_once('@')?;
        let [at, offset, how, pid, started] = rest.split('-').collect::<Vec<_>>().try_into().ok()?;
        let by = By { woke: how == "w", pid: pid.parse().ok()?, started: started.parse().ok()? };
        Some(Self { at: at.parse().ok()?, name: name.parse().ok()?, offset: offset.parse().ok()?, by })
    }
}

impl Mailbox {
    /// The mailbox in this folder; `now` in microseconds since 1970.
    pub(crate) fn at(folder: PathBuf, now: u64) -> Self {
        Self { folder, now, trouble: RefCell::new(None), taking: RefCell::new(None) }
    }

    /// The folder that a message comes into.
    pub fn arrivals(&self) -> PathBuf {
        self.folder.join("new")
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether nobody has put a link, or a folder that others can write, in the place of one of its own.
    ///
    /// # Errors
    /// Somebody has: nothing in it is touched.
    pub(crate) fn is_ours(&self) -> io::Result<()> {
        is_ours_or_none(&self.folder)?;
        FOLDERS.iter().try_for_each(|part| is_ours_or_none(&self.folder.join(part)))
    }

    /// Makes its folders.
    ///
    /// # Errors
    /// One is a link, somebody else's, or can't be made.
    pub(crate) fn made(&self) -> io::Result<()> {
        own_folder(&self.folder)?;
        FOLDERS.iter().try_for_each(|part| own_folder(&self.folder.join(part)))
    }

    /// What is queued, in order of arrival, also what has expired and nobody has returned yet.
    ///
    /// # Errors
    /// The folder can't be read.
    pub fn pending(&self) -> io::Result<Vec<Name>> {
        let mut files = all_names(&self.arrivals())?;
        if files.iter().any(|file| file.starts_with('.')) {
            self.mends()?;
            files = all_names(&self.arrivals())?;
        }
        let mut pending: Vec<Name> = files.iter().filter_map(|file| file.parse().ok()).collect();
        pending.sort_unstable();
        Ok(pending)
    }

    /// Returns what has expired. Reads every message that is queued, so it is asked where one is taken.
    pub(crate) fn expire(&self) -> io::Result<()> {
        for name in self.pending()?.into_iter().filter(|name| !name.committed) {
            let message = self.read(&self.arrivals().join(name.to_string()))?;
            let is_over = message.and_then(|message| message.expires_at).is_some_and(|at| at <= self.now);
            if is_over {
                self.give_back(&name, ReturnReason::Expired)?;
            }
        }
        Ok(())
    }

    /// Takes what is at least so urgent out of the mailbox, in order of arrival, to be handed over. What the
    /// program delivers itself is taken, and not told. Where two hooks look at once, one takes all of it: which of
    /// the two the model reads first nobody knows. The other waits for nothing.
    pub(crate) fn take(
        &self,
        least: Urgency,
        offset: u64,
        by: By,
        landed: &Landed,
    ) -> io::Result<Vec<Message>> {
        let Some(alone) = alone_now(&self.folder.join("taking"))? else { return Ok(Vec::new()) };
        self.taking.replace(Some(alone));
        self.expire()?;
        let mut taken = Vec::new();
        for name in self.pending()?.into_iter().filter(|name| name.urgency >= least) {
            let from = self.arrivals().join(name.to_string());
            if name.own {
                moved(&from, &self.folder.join("taken").join(name.to_string()))?;
                self.forget("taken")?;
                continue;
            }
            let to = self.folder.join("handed").join(Handed { at: self.now, name, offset, by }.file());
            if moved(&from, &to)? {
                match self.read(&to)?.filter(|message| message.sender().is_some()) {
                    Some(message) => {
                        self.lands(&name, landed)?;
                        taken.push(message);
                    }
                    // None of ours: it would be in the way for ever. A folder can't be removed, and is in no way there.
                    None => drop(removed(&to)),
                }
            }
        }
        Ok(taken)
    }

    fn lands(&self, name: &Name, landed: &Landed) -> io::Result<()> {
        let bytes = serde_json::to_vec(landed).map_err(io::Error::from)?;
        write_whole(&self.folder.join("landed").join(name.to_string()), &bytes, false)?;
        self.forget("landed")
    }

    /// Where a message went in, and what it has cost; `None`: it has not, or nobody has noted it.
    pub fn landed(&self, from: &str, id: &MessageId) -> io::Result<Option<Landed>> {
        let injected = self.found(from, id)?.filter(|(_, state, _)| *state == State::Injected);
        let landed =
            injected.and_then(|(name, ..)| read(&self.folder.join("landed").join(name.to_string())).ok());
        Ok(landed.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// What was handed over and is not known to be in the conversation, the earliest first.
    pub(crate) fn handed(&self) -> io::Result<Vec<(Handed, Message)>> {
        let files = names(&self.folder.join("handed"))?;
        let mut handed: Vec<Handed> = files.iter().filter_map(|file| Handed::of_file(file)).collect();
        handed.sort_unstable();
        let mut with = Vec::new();
        for handed in handed {
            if let Some(message) = self.read(&self.folder.join("handed").join(handed.file()))? {
                with.push((handed, message));
            }
        }
        Ok(with)
    }

    /// It is in the conversation.
    pub(crate) fn arrived(&self, handed: &Handed) -> io::Result<()> {
        let from = self.folder.join("handed").join(handed.file());
        moved(&from, &self.folder.join("taken").join(handed.name.to_string()))?;
        self.forget("taken")
    }

    /// It never came there: it waits in the mailbox again, in its old place.
    pub(crate) fn was_lost(&self, handed: &Handed) -> io::Result<()> {
        let from = self.folder.join("handed").join(handed.file());
        moved(&from, &self.arrivals().join(handed.name.to_string())).map(drop)
    }

    /// What the program was to deliver itself is done with.
    pub(crate) fn forget_own(&self) -> io::Result<()> {
        for name in self.pending()?.into_iter().filter(|name| name.own) {
            moved(
                &self.arrivals().join(name.to_string()),
                &self.folder.join("taken").join(name.to_string()),
            )?;
        }
        Ok(())
    }

    /// Takes a message back, as its sender (semantics.md, section 8).
    ///
    /// # Errors
    /// The spool can't be written.
    pub fn withdraw(&self, from: &str, id: &MessageId) -> io::Result<Withdrawn> {
        self.take_back(from, id, ReturnReason::Withdrawn)
    }

    fn take_back(&self, from: &str, id: &MessageId, reason: ReturnReason) -> io::Result<Withdrawn> {
        match self.found(from, id)? {
            None => Ok(Withdrawn::Unknown),
            Some((_, State::Returned(_), _)) => Ok(Withdrawn::Before),
            Some((_, State::Injected, _)) => Ok(Withdrawn::TooLate),
            Some((name, State::Queued, _)) if name.committed => Ok(Withdrawn::TooLate),
            Some((name, State::Queued, _)) => {
                Ok(if self.give_back(&name, reason)? { Withdrawn::Now } else { Withdrawn::TooLate })
            }
        }
    }

    /// What is not settled now.
    pub(crate) fn open(&self) -> io::Result<Open> {
        let handed = self.handed()?.into_iter().map(|(handed, _)| handed).collect();
        Ok(Open { pending: self.pending()?, handed })
    }

    /// Returns what was open then and still is, because the session has ended.
    ///
    /// # Errors
    /// The spool can't be written.
    pub(crate) fn close(&self, open: &Open) -> io::Result<()> {
        for name in &open.pending {
            self.give_back(name, ReturnReason::Closed)?;
        }
        // What another program was given meanwhile isn't the dead one's.
        for handed in open.handed.iter().filter(|handed| handed.by.pid == 0 || handed.by.is_dead()) {
            let from = self.folder.join("handed").join(handed.file());
            if !moved(&from, &self.returned(&handed.name, ReturnReason::Closed))? {
                // It was never read.
                self.give_back(&handed.name, ReturnReason::Closed)?;
            }
        }
        Ok(())
    }

    fn give_back(&self, name: &Name, reason: ReturnReason) -> io::Result<bool> {
        let went = moved(&self.arrivals().join(name.to_string()), &self.returned(name, reason))?;
        self.forget("returned")?;
        Ok(went)
    }

    pub(super) fn returned(&self, name: &Name, reason: ReturnReason) -> PathBuf {
        self.folder.join("returned").join(format!("{name}.{}", reason.as_str()))
    }

    /// Where a message is.
    ///
    /// # Errors
    /// The spool can't be read.
    pub fn state(&self, from: &str, id: &MessageId) -> io::Result<Option<State>> {
        Ok(self.found(from, id)?.map(|(_, state, _)| state))
    }

    /// A message moves forward between two looks, and back to the first folder if it was lost: one more
    /// round finds what has passed the looker.
    pub(super) fn found(&self, from: &str, id: &MessageId) -> io::Result<Option<(Name, State, Message)>> {
        for _ in 0..2 {
            for part in ["new", "handed", "taken", "returned"] {
                if let Some(found) = self.found_in(part, from, id)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    fn found_in(&self, part: &str, from: &str, id: &MessageId) -> io::Result<Option<(Name, State, Message)>> {
        let key = key(from, id);
        for file in names(&self.folder.join(part))? {
            let Some(name) = name_in(&file).filter(|name| name.key == key) else { continue };
            let message = self.read(&self.folder.join(part).join(&file))?;
            if let Some(message) = message.filter(|message| message.from == from && message.id == *id) {
                return Ok(state_in(part, &file).map(|state| (name, state, message)));
            }
        }
        Ok(None)
    }

    /// `None`: it is gone, or none of ours.
    pub(super) fn read(&self, file: &Path) -> io::Result<Option<Message>> {
        match read(file) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
                Ok(None)
            }
            read => Ok(serde_json::from_slice(&read?).ok()),
        }
    }

    /// Keeps the newest of what is settled.
    pub(super) fn forget(&self, part: &str) -> io::Result<()> {
        let folder = self.folder.join(part);
        let mut files = names(&folder)?;
        if files.len() <= SETTLED {
            return Ok(());
        }
        files.sort_unstable();
        let old = files.len() - SETTLED / 2;
        files[..old].iter().try_for_each(|file| removed(&folder.join(file)).map(drop))
    }

    /// The first of what is queued that acts, once it has cost a call: it can't be withdrawn any more.
    fn commit_first(&self, least: Urgency) -> io::Result<Option<Committed>> {
        let mut first = None;
        let mut highest = least;
        for mut name in self.pending()?.into_iter().filter(|name| name.urgency >= least) {
            let from = self.arrivals().join(name.to_string());
            let uncommitted = !std::mem::replace(&mut name.committed, true);
            let to = self.arrivals().join(name.to_string());
            if uncommitted && !moved(&from, &to)? {
                continue;
            }
            if first.is_none() {
                first = self.read(&to)?.and_then(|message| message.sender());
            }
            highest = highest.max(name.urgency);
        }
        Ok(first.map(|sender| Committed { sender, highest }))
    }

    /// Why a look failed, if one did.
    pub(crate) fn trouble(&self) -> Option<io::Error> {
        self.trouble.take()
    }

    fn heard<T: Default>(&self, looked: io::Result<T>) -> T {
        looked.unwrap_or_else(|error| {
            self.trouble.replace(Some(error));
            T::default()
        })
    }
}

impl Inbox for Mailbox {
    fn pending(&self) -> Option<Urgency> {
        let pending = self.heard(Self::pending(self));
        pending.into_iter().map(|name| name.urgency).max()
    }

    fn commit(&self, at_least: Urgency) -> Option<Committed> {
        let committed = self.expire().and_then(|()| self.commit_first(at_least));
        self.heard(committed)
    }
}

/// The name that a file of any of the folders begins with.
pub(super) fn name_in(file: &str) -> Option<Name> {
    file.split(['@', '.']).next()?.parse().ok()
}

pub(super) fn state_in(part: &str, file: &str) -> Option<State> {
    match part {
        "new" | "handed" => Some(State::Queued),
        "taken" => Some(State::Injected),
        _ => {
            let word = file.rsplit_once('.')?.1;
            ReturnReason::ALL.into_iter().find(|reason| reason.as_str() == word).map(State::Returned)
        }
    }
}
