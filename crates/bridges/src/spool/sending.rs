//! A message comes into a mailbox. One that replaces another is written aside first, whole and synced: at no moment
//! is the older one gone and the newer one nowhere. Whoever looks next finishes, or undoes, what a sender began that
//! was killed.

use std::fs;
use std::io;

use midturn_core::rules::id::MessageId;
use midturn_core::rules::mail::ReturnReason;

use super::mailbox::{Mailbox, State, name_in, state_in};
use super::message::{Message, Name};
use super::place::{all_names, alone, alone_now, moved, names, removed, synced, write_whole};

/// As many messages, and as many bytes of them, as an agent's mailbox holds (semantics.md, section 7).
const MOST_MESSAGES: usize = 1_024;
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// As much of what killed senders have left is seen to at one look: a hook has little time.
const MENDED: usize = 256;

/// A message that is in the mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its file's name.
    pub name: Name,
    /// What it is now: the same message may have come before.
    pub state: State,
    /// Whether what it was to replace had been read by then, or is unknown.
    pub too_late: bool,
}

/// Why a message is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is no room (semantics.md, section 7).
    #[error("its mailbox is full; wait until it has read some of it")]
    Full,
    /// The same id with another text, or another urgency.
    #[error("a message with this id was sent before, with another text or urgency; take another id")]
    Reused,
    /// `if_queued`, and what it was to replace is not queued any more.
    #[error("too late: what it was to replace was read already, or has cost a call; nothing was sent")]
    TooLate,
    /// The spool can't be written.
    #[error("the mailbox can't be written: {0}")]
    Broken(#[from] io::Error),
}

impl Mailbox {
    /// Accepts a message: durable when this returns.
    ///
    /// # Errors
    /// [`Refused`]: then nothing was accepted.
    pub fn send(
        &self,
        message: &Message,
        supersedes: Option<&MessageId>,
        if_queued: bool,
    ) -> Result<Accepted, Refused> {
        self.made()?;
        // Two that send one id at once would both find that it is new.
        let _alone = alone(&self.sending())?;
        self.mends_alone()?;
        if let Some((name, state, known)) = self.found(&message.from, &message.id)? {
            let same = known.text == message.text && known.urgency == message.urgency;
            return if same { Ok(Accepted { name, state, too_late: false }) } else { Err(Refused::Reused) };
        }
        self.has_room(message, supersedes.is_some())?;
        let name = message.name(self.next_order()?);
        let bytes = serde_json::to_vec(message).map_err(io::Error::from)?;
        let old = supersedes.map(|id| self.replaceable(&message.from, id)).transpose()?.flatten();
        let too_late = match old {
            Some(old) => !self.replaces(&old, &name, &bytes, if_queued)?,
            None if supersedes.is_some() && if_queued => return Err(Refused::TooLate),
            None => {
                write_whole(&self.arrivals().join(name.to_string()), &bytes, true)?;
                supersedes.is_some()
            }
        };
        Ok(Accepted { name, state: State::Queued, too_late })
    }

    /// Held by whoever brings a message.
    fn sending(&self) -> std::path::PathBuf {
        self.folder().join("sending")
    }

    /// The file of a message that can still be taken back.
    fn replaceable(&self, from: &str, id: &MessageId) -> io::Result<Option<Name>> {
        let found =
            self.found(from, id)?.filter(|(name, state, _)| *state == State::Queued && !name.committed);
        Ok(found.map(|(name, ..)| name))
    }

    /// Puts a message in the place of an older one. `false`: that was read, or has cost a call, and it is one more.
    fn replaces(&self, old: &Name, name: &Name, bytes: &[u8], if_queued: bool) -> Result<bool, Refused> {
        let aside = self.arrivals().join(aside(name, old));
        write_whole(&aside, bytes, true)?;
        let went =
            moved(&self.arrivals().join(old.to_string()), &self.returned(old, ReturnReason::Superseded))?;
        if !went && if_queued {
            removed(&aside)?;
            return Err(Refused::TooLate);
        }
        moved(&aside, &self.arrivals().join(name.to_string()))?;
        synced(&self.arrivals())?;
        // Not before: what is forgotten there is what says that the older one was replaced.
        self.forget("returned")?;
        Ok(went)
    }

    /// Sees to what senders have left that were killed. Where one is sending now, it does that itself.
    pub(crate) fn mends(&self) -> io::Result<()> {
        let is_left = all_names(&self.arrivals())?.iter().any(|file| file.starts_with('.'));
        let alone = if is_left { alone_now(&self.sending())? } else { None };
        if alone.is_some() { self.mends_alone() } else { Ok(()) }
    }

    /// Nobody sends meanwhile: whose file isn't whole, or stands aside, is dead.
    fn mends_alone(&self) -> io::Result<()> {
        let left = all_names(&self.arrivals())?.into_iter().filter(|file| file.starts_with('.'));
        for file in left.take(MENDED) {
            let from = self.arrivals().join(&file);
            match set_aside(&file) {
                Some((name, old)) if self.is_replaced(&old)? => {
                    moved(&from, &self.arrivals().join(name.to_string())).map(drop)?;
                }
                // Nobody was told that it was accepted. What can't be removed is no sender's.
                _ => drop(removed(&from)),
            }
        }
        Ok(())
    }

    fn is_replaced(&self, old: &Name) -> io::Result<bool> {
        // What moves between two looks is found by one more, as in `found`.
        for part in ["new", "handed", "taken", "returned"].iter().cycle().take(8) {
            for file in names(&self.folder().join(part))? {
                if name_in(&file).is_some_and(|name| (name.order, name.key) == (old.order, old.key)) {
                    return Ok(state_in(part, &file) == Some(State::Returned(ReturnReason::Superseded)));
                }
            }
        }
        // Nobody keeps it any more. It was replaced, for who finds it read writes nothing aside.
        Ok(true)
    }

    /// Asked before anything is taken back: who is refused has lost nothing.
    fn has_room(&self, message: &Message, replaces: bool) -> Result<(), Refused> {
        let (mut messages, mut bytes) = (0, message.text.len() as u64);
        for part in ["new", "handed"] {
            for file in names(&self.folder().join(part))? {
                messages += 1;
                // One that is renamed just now is counted where it is found next.
                bytes +=
                    fs::symlink_metadata(self.folder().join(part).join(file)).map_or(0, |found| found.len());
            }
        }
        if messages >= MOST_MESSAGES + usize::from(replaces) || bytes > MOST_BYTES {
            Err(Refused::Full)
        } else {
            Ok(())
        }
    }

    /// Behind all that ever came, whatever the clock says.
    fn next_order(&self) -> io::Result<u64> {
        let mut last = 0;
        for part in ["new", "handed", "taken", "returned"] {
            let files = names(&self.folder().join(part))?;
            let orders = files.iter().filter_map(|file| name_in(file)).map(|name| name.order);
            last = orders.max().unwrap_or_default().max(last);
        }
        Ok(self.now.max(last.saturating_add(1)))
    }
}

/// Where a message stands until the older one is gone; nothing that begins with a dot is looked at.
fn aside(name: &Name, old: &Name) -> String {
    format!(".{name}~{old}")
}

fn set_aside(file: &str) -> Option<(Name, Name)> {
    let (name, old) = file.strip_prefix('.')?.split_once('~')?;
    Some((name.parse().ok()?, old.parse().ok()?))
}
