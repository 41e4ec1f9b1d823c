//! Which call this is: the hook that was asked about it left a file in the spool, and it is ours when we have
//! renamed it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::SystemTime;

use midturn_core::rules::mail::Sender;
use serde::Deserialize;

use super::folder::Folder;
use super::{mail, quoted};
use crate::spool::{Call, state_folder};

const CALLS: &str = "calls";
const RUNNING: &str = "running";
const NEW: &str = "new";

/// A call that nobody has claimed yet.
struct Waiting {
    agent: OsString,
    id: OsString,
    call: Call,
    since: SystemTime,
}

/// The call that is ours.
pub(super) struct Claim {
    running: Folder,
    id: OsString,
    new: Folder,
    can_be_cut: bool,
}

impl Claim {
    pub(super) fn can_be_cut(&self) -> bool {
        self.can_be_cut
    }

    /// Where its agent's mail comes.
    pub(super) fn mailbox(&self) -> &Folder {
        &self.new
    }

    /// The sender of urgent mail that ends this call now. The call must still be its agent's: once its result was
    /// given, as when it was moved to the background, the hook has taken the file away.
    pub(super) fn cut_by(&self) -> Option<Sender> {
        let (call, _) = self.running.read::<Call>(Path::new(&self.id)).ok()?;
        call.can_be_cut().then(|| mail::commit_urgent(&self.new)).flatten()
    }
}

/// Claims the call that runs this text. `None`: no session of ours, no call, or a spool that can't be trusted.
pub(super) fn claim(text: &[u8]) -> Option<Claim> {
    let session = session()?;
    let mut waiting = waiting(&session);
    waiting.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
    if waiting.len() != 1 {
        waiting.retain(|one| quoted::runs(text, &one.call.command));
    }
    // Whose this is of several agents' can't be told, whatever their hooks knew of each other.
    let mut agents: Vec<_> = waiting.iter().map(|one| &one.agent).collect();
    agents.dedup();
    if agents.len() > 1 {
        waiting.iter_mut().for_each(|one| one.call.ambiguous = true);
    }
    waiting.into_iter().find_map(|one| take(&session, one))
}

/// `None`: another one was quicker.
fn take(session: &Folder, waiting: Waiting) -> Option<Claim> {
    let Waiting { agent, id, call, .. } = waiting;
    let agent = session.inner(agent.as_ref()).ok()?;
    let calls = agent.inner(CALLS.as_ref()).ok()?;
    let new = agent.inner_or_new(NEW.as_ref()).ok()?;
    let running = agent.inner_or_new(RUNNING.as_ref()).ok()?;
    calls.rename(id.as_ref(), &running, id.as_ref()).ok()?;
    Some(Claim { running, id, new, can_be_cut: call.can_be_cut() })
}

fn waiting(session: &Folder) -> Vec<Waiting> {
    let mut found = Vec::new();
    for agent in session.names().unwrap_or_default() {
        let calls = session.inner(agent.as_ref()).and_then(|agent| agent.inner(CALLS.as_ref()));
        let Ok(calls) = calls else { continue };
        for id in calls.names().unwrap_or_default() {
            // Half a file, or somebody else's, is no call.
            let Ok((call, since)) = calls.read(id.as_ref()) else { continue };
            found.push(Waiting { agent: agent.clone(), id, call, since });
        }
    }
    found
}

/// The folder of the session that runs us: the one it names, else the one that its process opened.
fn session() -> Option<Folder> {
    let root = Folder::open(&state_folder()?.join("joined")).ok()?;
    let named = std::env::var_os("CLAUDE_CODE_SESSION_ID").filter(|id| is_a_name(id.as_bytes()));
    named
        .and_then(|id| root.inner(id.as_ref()).ok())
        .or_else(|| opened_by(&root, std::env::var("CLAUDE_PID").ok()?))
}

fn is_a_name(id: &[u8]) -> bool {
    !id.is_empty() && !id.starts_with(b".") && !id.contains(&b'/')
}

fn opened_by(root: &Folder, pid: String) -> Option<Folder> {
    #[derive(Deserialize)]
    struct Session {
        pid: u32,
    }
    let pid: u32 = pid.parse().ok()?;
    let sessions = root.names().ok()?.into_iter().filter_map(|name| {
        let folder = root.inner(name.as_ref()).ok()?;
        let (session, since) = folder.read::<Session>("session.json".as_ref()).ok()?;
        (session.pid == pid).then_some((since, folder))
    });
    sessions.max_by_key(|(since, _)| *since).map(|(_, folder)| folder)
}
