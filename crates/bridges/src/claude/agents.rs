//! The agents of a session, by Claude Code's own names: it notes each subagent in a file beside its transcript.

use std::fs;
use std::path::Path;

use super::wire::Meta;
use crate::spool::{Joined, MAIN, is_name};

/// More is no file of the program's.
const LONGEST: u64 = 256 * 1024;

/// An agent that can be written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The program's id of it, or `main`: the name of its mailbox.
    pub id: String,
    /// What its coordinator calls it, if anything.
    pub name: Option<String>,
    /// What kind of agent it is, in the program's word.
    pub kind: Option<String>,
    /// Who began it; `None`: the main agent, or nobody.
    pub parent: Option<String>,
}

impl Known {
    /// The main agent of any session.
    pub fn main() -> Self {
        Self { id: MAIN.to_owned(), name: None, kind: None, parent: None }
    }

    /// What people and other agents call it.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// The agents of a session: `main` first, then its subagents, the newest first.
pub fn known(joined: &Joined) -> Vec<Known> {
    let of_main = joined.transcript(MAIN);
    let mut agents = vec![Known::main()];
    agents.extend(of_main.map(|transcript| beside(&transcript)).unwrap_or_default());
    agents
}

/// The subagents noted beside a main agent's transcript.
pub(crate) fn beside(transcript: &Path) -> Vec<Known> {
    let Ok(listed) = fs::read_dir(transcript.with_extension("").join("subagents")) else { return Vec::new() };
    let mut found: Vec<_> = listed.flatten().filter_map(|entry| noted(&entry)).collect();
    found.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    found.into_iter().map(|(_, known)| known).collect()
}

fn noted(entry: &fs::DirEntry) -> Option<(std::time::SystemTime, Known)> {
    let file = entry.file_name().into_string().ok()?;
    let id = file.strip_prefix("agent-")?.strip_suffix(".meta.json")?.to_owned();
    let about = entry.metadata().ok().filter(|about| about.is_file() && about.len() <= LONGEST)?;
    let meta: Meta = serde_json::from_slice(&fs::read(entry.path()).ok()?).ok()?;
    let known = Known { id, name: meta.name, kind: meta.agent_type, parent: meta.parent_agent_id };
    is_name(&known.id).then_some((about.modified().ok()?, known))
}

/// Who is meant by a word of the program's: an id, or else a name, of which the newest bears it.
pub fn meant<'a>(agents: &'a [Known], word: &str) -> Option<&'a Known> {
    let by_id = agents.iter().find(|agent| agent.id == word);
    by_id.or_else(|| agents.iter().find(|agent| agent.name.as_deref() == Some(word)))
}

/// Whether one agent stands above another: `main` above all, another above those it began, and those they began.
pub(crate) fn is_above(agents: &[Known], above: &str, below: &str) -> bool {
    let mut at = below;
    // As deep as the longest line could be: what is written there may go round.
    for _ in 0..=agents.len() {
        let Some(agent) = agents.iter().find(|agent| agent.id == at) else { return false };
        let parent = agent.parent.as_deref().unwrap_or(MAIN);
        if at == MAIN {
            return false;
        }
        if parent == above {
            return true;
        }
        at = parent;
    }
    false
}
