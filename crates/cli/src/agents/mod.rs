//! What files say about agents: definitions in `.claude/agents/*.md` and instructions in
//! `AGENTS.md`. This module reads and checks; it starts nothing.

mod definition;
mod front_matter;
mod instructions;
mod lenient;
mod remarks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use midturn_core::rules::id::AgentName;

pub(crate) use definition::Definition;
pub(crate) use instructions::Instructions;
pub(crate) use remarks::{About, told};

use crate::env::{Env, folders_down_to};
use crate::failure::Failure;
use crate::files;

/// Where definitions lie, below the project's folders and the person's own.
const FOLDER: &str = ".claude/agents";

/// The largest file, in bytes: all of it goes into a prompt.
const FILE_MAX: usize = 256 << 10;

/// How many definitions one folder may have.
const DEFINITIONS_MAX: usize = 256;

/// The definitions that hold, and what else lies beside them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Found {
    /// Those that can be used.
    pub(crate) definitions: BTreeMap<AgentName, Definition>,
    /// Why each of the other files can't.
    pub(crate) left_out: Vec<String>,
}

/// All definitions that hold in `folder`: the project's win over the person's own, and of the
/// project's the nearer one. A file that can't be used keeps nobody from working.
pub(crate) fn definitions(folder: &Path, env: &Env) -> Found {
    let mut found = Found::default();
    for place in env.home().into_iter().chain(folders_down_to(folder)) {
        let Found { definitions, left_out } = in_folder(&place.join(FOLDER));
        found.definitions.extend(definitions);
        found.left_out.extend(left_out);
    }
    found
}

/// The definitions of one folder; none when there is no such folder.
fn in_folder(folder: &Path) -> Found {
    let mut found = Found::default();
    let paths = match markdown_files(folder) {
        Ok(paths) => paths,
        Err(error) => {
            found.left_out.push(format!("{}: can't be read: {error}", folder.display()));
            return found;
        }
    };
    if let Some(beyond) = paths.get(DEFINITIONS_MAX) {
        found.left_out.push(format!(
            "{}: has more than {DEFINITIONS_MAX} files; left out: this one and all that come after it",
            beyond.display()
        ));
    }
    for path in paths.into_iter().take(DEFINITIONS_MAX) {
        match one_more(&path, &found.definitions) {
            Ok(definition) => {
                found.definitions.insert(definition.name.clone(), definition);
            }
            Err(why) => found.left_out.push(format!("{why}; this agent file is left out")),
        }
    }
    found
}

fn one_more(path: &Path, known: &BTreeMap<AgentName, Definition>) -> Result<Definition, Failure> {
    let definition = Definition::parse(path, &text_of(path)?)?;
    match known.get(&definition.name) {
        None => Ok(definition),
        Some(other) => Err(Failure::usage(format!(
            "{}: the agent `{}` is defined in {} too: give one of them another name",
            path.display(),
            definition.name,
            other.path.display()
        ))),
    }
}

/// Sorted, so that errors and prompts don't depend on the file system's order.
fn markdown_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if files::is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A file's text, without a byte order mark.
fn text_of(path: &Path) -> Result<String, Failure> {
    let text = files::read(path, FILE_MAX)?;
    let text =
        text.ok_or_else(|| Failure::usage(format!("{}: can't be read: it is gone", path.display())))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests;
