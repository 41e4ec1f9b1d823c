//! What files say about agents: definitions in `.claude/agents/*.md` and instructions in
//! `AGENTS.md`. This module reads and checks; it starts nothing.

mod definition;
mod front_matter;
mod instructions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use midturn_core::rules::id::AgentName;

pub(crate) use definition::Definition;
pub(crate) use instructions::Instructions;

use crate::env::{Env, folders_down_to};
use crate::failure::Failure;
use crate::files;

/// Where definitions lie, below the project's folders and the person's own.
const FOLDER: &str = ".claude/agents";

/// The largest file, in bytes: all of it goes into a prompt.
const FILE_MAX: usize = 256 << 10;

/// How many definitions one folder may have.
const DEFINITIONS_MAX: usize = 256;

/// All definitions that hold in `folder`: the project's win over the person's own, and of the
/// project's the nearer one.
///
/// # Errors
/// [`Failure::Usage`] with the file and line of what can't be read.
pub(crate) fn definitions(folder: &Path, env: &Env) -> Result<BTreeMap<AgentName, Definition>, Failure> {
    let mut found = BTreeMap::new();
    for place in env.home().into_iter().chain(folders_down_to(folder)) {
        found.extend(in_folder(&place.join(FOLDER))?);
    }
    Ok(found)
}

/// The definitions of one folder; none when there is no such folder.
fn in_folder(folder: &Path) -> Result<BTreeMap<AgentName, Definition>, Failure> {
    let mut found: BTreeMap<AgentName, Definition> = BTreeMap::new();
    for path in markdown_files(folder)? {
        let source = text_of(&path)?;
        let definition = Definition::parse(&path, &source)?;
        if let Some(other) = found.get(&definition.name) {
            return Err(Failure::usage(format!(
                "{}:{}: the agent `{}` is defined in {} too; give one of them another name",
                path.display(),
                definition.name_line,
                definition.name,
                other.path.display()
            )));
        }
        found.insert(definition.name.clone(), definition);
    }
    Ok(found)
}

/// Sorted, so that errors and prompts don't depend on the file system's order.
fn markdown_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let complain =
        |error: std::io::Error| Failure::usage(format!("{}: can't be read: {error}", folder.display()));
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if files::is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(complain(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(complain)?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
        if paths.len() > DEFINITIONS_MAX {
            return Err(Failure::usage(format!(
                "{}: more than {DEFINITIONS_MAX} definitions",
                folder.display()
            )));
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
