//! `file` expectations: what stands in an agent's worktree after a replay with real tools.

use std::path::Path;

use midturn_core::rules::id::AgentName;

use super::{Miss, Worktrees};
use crate::error::short;
use crate::scenario::FileClaim;
use crate::values::{Absent, Texts};

/// The largest file that is looked into, in bytes.
const LARGEST: u64 = 16 << 20;

/// Checks a claim about a file.
pub(super) fn check(claim: &FileClaim, worktrees: &Worktrees) -> Vec<Miss> {
    let FileClaim { agent, path, contains, absent } = claim;
    let name = format!("{} in the worktree of {}", path.value, agent.value);
    let folder = AgentName::new(&agent.value).ok().and_then(|agent| worktrees(&agent));
    let Some(folder) = folder else {
        return vec![Miss::new(name, "the agent has no worktree", None)];
    };
    let path = folder.join(&path.value);
    if let Some(Absent::File(true)) = absent {
        let there = path.symlink_metadata().is_ok();
        return if there { vec![Miss::new(format!("no {name}"), "it is there", None)] } else { Vec::new() };
    }
    let without = match absent {
        Some(Absent::Texts(without)) => Some(without),
        Some(Absent::File(_)) | None => None,
    };
    let text = match read(&path) {
        Ok(text) => text,
        Err(why) => return vec![Miss::new(name, why, None)],
    };
    let mut misses = Vec::new();
    for (texts, wanted) in [(contains.as_ref(), true), (without, false)] {
        let texts = texts.map(Texts::as_slice).unwrap_or_default().iter();
        for expected in texts.filter(|expected| text.contains(expected.as_str()) != wanted) {
            let verb = if wanted { "with" } else { "without" };
            let happened = format!("it says {:?}", short(&text));
            misses.push(Miss::new(format!("{name} {verb} {expected:?}"), happened, None));
        }
    }
    misses
}

fn read(path: &Path) -> Result<String, String> {
    let size = path.metadata().map_err(|error| format!("it can't be read: {error}"))?.len();
    if size > LARGEST {
        return Err(format!("it has {size} bytes, too many to look into"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("it can't be read: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
