//! Urgent mail in an agent's mailbox. It is committed once something was done because of it: it can't be taken back
//! any more.

use std::io;

use midturn_core::rules::mail::{Sender, Urgency};

use super::folder::Folder;
use crate::spool::{Message, Name};

/// How often what was there is withdrawn while we look, at most.
const LOOKS: u32 = 100;

/// The sender of the first urgent message, which is committed now.
pub(super) fn commit_urgent(new: &Folder) -> Option<Sender> {
    for _ in 0..LOOKS {
        let names = new.names().ok()?;
        let mut urgent: Vec<Name> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
        urgent.retain(|name| name.urgency == Urgency::Urgent);
        urgent.sort_unstable();
        // One that can't be read can't be committed either: it is withdrawn, or none of ours.
        let mut readable = urgent.into_iter().filter_map(|name| {
            let (message, _) = new.read::<Message>(name.to_string().as_ref()).ok()?;
            Some((name, message))
        });
        let (name, message) = readable.next()?;
        let committed = Name { committed: true, ..name };
        match new.rename(name.to_string().as_ref(), new, committed.to_string().as_ref()) {
            Ok(()) => return message.sender(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    None
}
