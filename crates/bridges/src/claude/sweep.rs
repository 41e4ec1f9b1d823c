//! What nobody's hook does any more: settling what was handed over in sessions that rest or have ended.

use std::io;

use super::transcript::settle;
use crate::spool::{Joined, Spool};

/// As many sessions as are kept; of those that have ended the oldest go first.
const MOST_SESSIONS: usize = 512;

/// Brings every session's mail to where it is by now, and gives back what was for one that has ended. Whoever asks
/// about messages or writes one calls this first.
///
/// # Errors
/// The spool can't be read or written.
pub fn sweep(spool: &Spool) -> io::Result<()> {
    for (place, joined) in spool.sessions()?.into_iter().enumerate() {
        // Asked first: what a program writes after its transcript was read, and dies, would go back as never read.
        let lives = joined.program().is_some_and(|program| program.lives());
        settle_all(&joined)?;
        if lives {
            continue;
        }
        joined.close()?;
        if place >= MOST_SESSIONS {
            joined.remove()?;
        }
    }
    Ok(())
}

fn settle_all(joined: &Joined) -> io::Result<()> {
    for agent in joined.agents()? {
        if let Some(mailbox) = joined.mailbox(&agent) {
            mailbox.mends()?;
            settle(joined, &agent, &mailbox)?;
        }
    }
    Ok(())
}
