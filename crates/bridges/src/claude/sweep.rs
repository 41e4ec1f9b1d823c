//! What nobody's hook does any more: settling what was handed over in sessions that rest or have ended.

use std::io;

use super::transcript::settle;
use crate::spool::{Joined, MAIN, Mailbox, Spool};

/// As many sessions as are kept; of those that have ended the oldest go first.
const MOST_SESSIONS: usize = 512;

/// Brings every session's mail to where it is by now, and gives back what was for one that has ended. Whoever asks
/// about messages or writes one calls this first. One that can't be used is left as it is: the others can.
///
/// # Errors
/// The spool can't be read.
pub fn sweep(spool: &Spool) -> io::Result<()> {
    for (place, joined) in spool.sessions()?.into_iter().enumerate() {
        match settled(&joined) {
            Ok(false) if place >= MOST_SESSIONS => joined.remove()?,
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// The same for one session. `false`: its program has ended.
///
/// # Errors
/// It can't be used.
pub(super) fn settled(joined: &Joined) -> io::Result<bool> {
    let mailboxes = mailboxes(joined)?;
    // Looked at first: what another program that takes the session up is given meanwhile is not the dead one's.
    let open: Vec<_> = mailboxes.iter().map(|(_, mailbox)| mailbox.open()).collect::<Result<_, _>>()?;
    // Asked before: what a program writes after its transcript was read, and dies, would go back as never read.
    let lives = joined.program().is_some_and(|program| program.lives());
    for (agent, mailbox) in &mailboxes {
        mailbox.mends()?;
        settle(joined, agent, mailbox)?;
    }
    if !lives {
        mailboxes.iter().zip(&open).try_for_each(|((_, mailbox), open)| mailbox.close(open))?;
    }
    Ok(lives)
}

/// Another program has taken the session up: its main agent goes on, and nobody else does.
pub(super) fn forgets_subagents(joined: &Joined) -> io::Result<()> {
    for (agent, mailbox) in mailboxes(joined)?.into_iter().filter(|(agent, _)| agent != MAIN) {
        mailbox.made()?;
        let open = mailbox.open()?;
        settle(joined, &agent, &mailbox)?;
        mailbox.close(&open)?;
        joined.rests(&agent, true)?;
    }
    Ok(())
}

fn mailboxes(joined: &Joined) -> io::Result<Vec<(String, Mailbox)>> {
    let agents = joined.agents()?.into_iter();
    Ok(agents.filter_map(|agent| joined.mailbox(&agent).map(|mailbox| (agent, mailbox))).collect())
}
