//! A mailbox as somebody sees it who only looks.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use super::mailbox::{Mailbox, State, name_in, state_in};
use super::message::Name;
use super::place::names;

/// A message in one of the mailbox's folders.
pub(crate) struct Listed {
    pub(crate) name: Name,
    pub(crate) state: State,
    /// The folder and the file.
    place: (&'static str, String),
}

impl Mailbox {
    /// All that is queued or was not forgotten, in order of arrival. What moves between two folders meanwhile may be
    /// missing, and is there at the next look.
    ///
    /// # Errors
    /// The spool can't be read.
    pub(crate) fn listed(&self) -> io::Result<Vec<Listed>> {
        let mut all = Vec::new();
        for part in ["new", "handed", "taken", "returned"] {
            for file in names(&self.folder().join(part))? {
                if let (Some(name), Some(state)) = (name_in(&file), state_in(part, &file)) {
                    all.push(Listed { name, state, place: (part, file) });
                }
            }
        }
        all.sort_by_key(|listed| listed.name.order);
        Ok(all)
    }

    /// What a message that was listed holds. `None`: it has moved on, or is none of ours.
    ///
    /// # Errors
    /// The spool can't be read.
    pub(crate) fn message(&self, listed: &Listed) -> io::Result<Option<super::Message>> {
        let (part, file) = &listed.place;
        self.read(&self.folder().join(part).join(file))
    }

    /// When it came into its folder, in microseconds since 1970; 0: it has moved on.
    pub(crate) fn came(&self, listed: &Listed) -> u64 {
        let (part, file) = &listed.place;
        let found = fs::symlink_metadata(self.folder().join(part).join(file));
        // A rename changes nothing of the file but this.
        found.map_or(0, |found| {
            let micros = found.ctime().saturating_mul(1_000_000).saturating_add(found.ctime_nsec() / 1_000);
            u64::try_from(micros).unwrap_or_default()
        })
    }
}
