//! Our hooks as a plugin of Claude Code: a folder that a person shares or names with `--plugin-dir`. A plugin can't set
//! the prefix.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::entries::{self, EVENTS, Group};
use super::file::{self, Refused};

/// What our plugin is called.
const NAME: &str = "midturn";

const ABOUT: &str = ".claude-plugin/plugin.json";

/// Says to a model how corrections read.
const SKILL: &str = "\
---
name: midturn
description: How to read corrections that arrive in the middle of your work, and calls that were skipped for one
---
Midturn carries messages to you between your tool calls: `[User feedback: …]` is the person's, `[Message from NAME: …]` an agent's.
- A result `PreToolUse:TOOL hook error: [Skipped: …]`: that call was not run, and nothing is broken. Read the message
  first, then decide anew. Repeat the call only if it still makes sense.
- `… hook additional context: …` is a message that came while calls ran or you were done. Follow it.
- A result that ends in `[Interrupted after …]`: the command was ended for a message; what it had written stands before.
";

/// Why no plugin was written.
#[derive(Debug, thiserror::Error)]
pub enum PluginRefused {
    /// A file that can't be written, or must not be.
    #[error(transparent)]
    File(#[from] Refused),
    /// Somebody's folder.
    #[error("{} is not empty, and no plugin of ours: nothing was written. Name a new folder", .0.display())]
    NotEmpty(PathBuf),
}

#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    version: &'a str,
    description: &'a str,
}

#[derive(Serialize)]
struct Hooks<'a> {
    description: &'a str,
    hooks: BTreeMap<&'a str, [Group; 1]>,
}

/// Writes the plugin, over an older one of ours.
///
/// # Errors
/// [`PluginRefused`].
pub fn write_plugin(folder: &Path, program: &str, version: &str) -> Result<(), PluginRefused> {
    if !is_empty(folder)? && !is_ours(folder)? {
        return Err(PluginRefused::NotEmpty(folder.to_owned()));
    }
    let description = "Corrections in the middle of the work";
    let about = About { name: NAME, version, description };
    let groups = EVENTS.into_iter().map(|event| (event, [entries::group(event, program)]));
    let hooks = Hooks { description, hooks: groups.collect() };
    file::make_folder(folder)?;
    put(folder, "hooks/hooks.json", &json(&hooks))?;
    put(folder, "skills/midturn/SKILL.md", SKILL.as_bytes())?;
    // It comes last: by it the folder is known for ours, and as whole.
    put(folder, ABOUT, &json(&about))
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), PluginRefused> {
    let path = folder.join(name);
    file::make_folder(path.parent().unwrap_or(folder))?;
    let former = file::read(&path)?;
    Ok(file::replace(&path, former.as_ref(), bytes)?)
}

fn is_empty(folder: &Path) -> Result<bool, PluginRefused> {
    match std::fs::read_dir(folder) {
        Ok(mut inside) => Ok(inside.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Refused::System(folder.to_owned(), error).into()),
    }
}

fn is_ours(folder: &Path) -> Result<bool, PluginRefused> {
    let found = file::look(&folder.join(ABOUT))?;
    let about: Option<serde_json::Value> = found.and_then(|found| serde_json::from_slice(&found.bytes).ok());
    Ok(about.is_some_and(|about| about["name"] == NAME))
}
