//! One definition file, read and checked.

use std::path::{Path, PathBuf};

use midturn_core::rules::id::AgentName;
use midturn_tools::workplace::Isolation;
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::front_matter::{self, FrontMatter, at};
use crate::config::Names;
use crate::failure::Failure;
use crate::files::{Misplaced, Spot, complaint};

/// An agent as a file defines it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// The name by which `spawn_agent` asks for it.
    pub(crate) name: AgentName,
    /// The line of the name.
    pub(crate) name_line: usize,
    /// When to use it, for the model that spawns.
    pub(crate) description: String,
    /// The tools it has; absent means all.
    pub(crate) tools: Option<Names>,
    /// Its model as written: `PROVIDER/NAME`, an alias or `inherit`.
    pub(crate) model: Option<String>,
    /// The line of the model, for errors.
    pub(crate) model_line: usize,
    /// Where it works; absent means as configured.
    pub(crate) isolation: Option<Isolation>,
    /// The body: its system prompt.
    pub(crate) system: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Keys that mean nothing here, after their lines: reported, not obeyed.
    pub(crate) unknown: Vec<(usize, String)>,
}

impl Definition {
    /// Reads a definition out of a file's text.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the file, the line and what was expected.
    pub(crate) fn parse(path: &Path, source: &str) -> Result<Self, Failure> {
        let complain = complaint(path);
        let (front, body) = front_matter::read(source).map_err(complain)?;
        Self::check(path, front, body).map_err(complain)
    }

    fn check(path: &Path, front: FrontMatter, body: &str) -> Result<Self, Misplaced> {
        let name = required(front.name, "name")?;
        let description = required(front.description, "description")?;
        let model = front.model.filter(|model| !model.value.trim().is_empty());
        Ok(Self {
            name_line: at(&name).line,
            name: AgentName::new(name.value.trim()).map_err(|error| (at(&name), error.to_string()))?,
            description: description.value.trim().to_owned(),
            tools: front.tools.map(|tools| tools.value),
            model_line: model.as_ref().map_or(1, |model| at(model).line),
            model: model.map(|model| model.value.trim().to_owned()),
            isolation: front.isolation.as_ref().map(isolation_of).transpose()?,
            system: body.trim().to_owned(),
            path: path.to_owned(),
            unknown: front.unknown.into_iter().map(|key| (at(&key).line, key.value)).collect(),
        })
    }

    /// What a person is told of keys that aren't obeyed; `None` when there are none.
    pub(crate) fn note(&self) -> Option<String> {
        let keys: Vec<String> =
            self.unknown.iter().map(|(line, key)| format!("`{key}` (line {line})")).collect();
        (!keys.is_empty()).then(|| format!("{}: not obeyed here: {}", self.path.display(), keys.join(", ")))
    }
}

fn required(field: Option<Spanned<String>>, name: &str) -> Result<Spanned<String>, Misplaced> {
    field
        .filter(|field| !field.value.trim().is_empty())
        .ok_or_else(|| (Spot::START, format!("the front matter has no `{name}`")))
}

fn isolation_of(isolation: &Spanned<String>) -> Result<Isolation, Misplaced> {
    let word = isolation.value.trim();
    Isolation::deserialize(Value::from(word))
        .map_err(|_| (at(isolation), format!("`isolation`: found `{word}`, expected `worktree` or `none`")))
}
